"""Sums that a SPARQL engine takes in another order match; real queries over a real store."""

import random

import pytest

from graphrag_eval_lc.matching.rows import compare_sparql_results

pyoxigraph = pytest.importorskip("pyoxigraph")

XSD = "http://www.w3.org/2001/XMLSchema#"
SUM = "SELECT ?area (SUM(?p) AS ?total) {{ ?unit <urn:in> ?area ; <urn:p> ?p }} GROUP BY ?area"
SUM_IN_ANOTHER_ORDER = (
    "SELECT ?of (SUM(?mw) AS ?sum)"
    " {{ SELECT ?of ?mw ?unit {{ ?unit <urn:p> ?mw ; <urn:in> ?of ; <urn:order> ?at }} ORDER BY ?at }} GROUP BY ?of"
)


def sums(datatype: str, low: float, high: float, seed: int, changed: float = 0.0) -> tuple[str, str]:
    """Return the results of both queries over three areas of 40 units; ``changed`` is added to a number in between."""
    rng = random.Random(seed)
    node, literal, quad = pyoxigraph.NamedNode, pyoxigraph.Literal, pyoxigraph.Quad
    store = pyoxigraph.Store()
    numbers = [[rng.uniform(low, high) for _ in range(40)] for _ in range(3)]

    def fill() -> None:
        for area, units in enumerate(numbers):
            for at, number in enumerate(units):
                unit = node(f"urn:unit:{area}:{at}")
                store.add(quad(unit, node("urn:p"), literal(f"{number:.3f}", datatype=node(XSD + datatype))))
                store.add(quad(unit, node("urn:in"), node(f"urn:area:{area}")))
                store.add(quad(unit, node("urn:order"), literal((at * 17) % 40)))

    def answer(query: str) -> str:
        return str(store.query(query.format()).serialize(format=pyoxigraph.QueryResultsFormat.JSON).decode())

    fill()
    reference = answer(SUM)
    if changed:
        numbers[1][7] += changed
        store.clear()
        fill()
    return reference, answer(SUM_IN_ANOTHER_ORDER)


CASES = [("float", 100.0, 1_000.0), ("double", 1e8, 5e8)]


@pytest.mark.parametrize(("datatype", "low", "high"), CASES)
@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.full)])
def test_equivalent_queries_match(datatype: str, low: float, high: float, count: int) -> None:
    results = [sums(datatype, low, high, seed) for seed in range(count)]
    found = [compare_sparql_results(*each) for each in results]
    assert [each.reason for each in found if not each.score] == []
    # Without a tolerance most of them would not.
    without = [compare_sparql_results(*each, tolerance=0).score for each in results]
    assert sum(without) < count / 2


@pytest.mark.parametrize(("datatype", "low", "high"), CASES)
def test_a_sum_with_another_number_in_it_does_not_match(datatype: str, low: float, high: float) -> None:
    found = compare_sparql_results(*sums(datatype, low, high, 1, changed=high / 1_000))
    assert (found.score, found.missing_row_count) == (0.0, 1)
    assert "of its value" in found.reason
