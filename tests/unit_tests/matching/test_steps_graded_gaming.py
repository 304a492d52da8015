"""Dishonest steps that score 1.0 in binary grading score less in graded grading.

The outputs come from a real store. Each case has the steps of an honest agent and steps that trick binary grading:
both score 1.0 there, but only the honest ones score 1 if steps are graded.
"""

import json
from typing import Any, Final, Literal, NamedTuple

import pyoxigraph
import pytest

from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS

_STATIONS: Final = {"OSLO": 3, "BERGEN": 2, "HAMAR": 4, "BODØ": 1, "ALTA": 5}
_TURTLE: Final = "@prefix : <https://example.org/> .\n" + "\n".join(
    f':station{at} a :Substation ; :name "{name}" ; :number {at} .\n'
    + "\n".join(
        f':station{at}t{unit} a :Transformer ; :in :station{at} ; :power {100 * unit} ; :name "{name} T{unit}" .'
        for unit in range(1, units + 1)
    )
    for at, (name, units) in enumerate(_STATIONS.items())
)
_PREFIX: Final = "PREFIX : <https://example.org/> "
_BERGEN: Final = "https://example.org/station1"
_POWERS_OF: Final = "SELECT ?t ?power {{ ?t :in :station{} ; :power ?power }}"
_COUNT: Final = "SELECT (COUNT(*) AS ?n) { ?t a :Transformer }"
_HAS_BERGEN: Final = "ASK { ?s a :Substation ; :name 'BERGEN' }"


class Graph:
    """A small graph with a search; its outputs look like those of tools."""

    def __init__(self) -> None:
        self._store = pyoxigraph.Store()
        self._store.load(_TURTLE.encode(), format=pyoxigraph.RdfFormat.TURTLE)

    def query(self, query: str) -> dict[str, Any]:
        """Return the step for a query."""
        found = self._store.query(_PREFIX + query)
        assert isinstance(found, pyoxigraph.QuerySolutions | pyoxigraph.QueryBoolean)
        text = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        assert text is not None
        return _step("sparql_query", query, text.decode())

    def search(self, text: str, hits: int = 1) -> dict[str, Any]:
        """Return the step for a search that returns the best hits by name."""
        rows = json.loads(self.query("SELECT ?x ?name { ?x :name ?name } ORDER BY ?name")["output"])
        bindings = rows["results"]["bindings"]
        bindings.sort(key=lambda row: (not row["name"]["value"].startswith(text), row["name"]["value"]))
        rows["results"]["bindings"] = bindings[:hits]
        return _step("autocomplete_search", text, json.dumps(rows))


def _step(name: str, query: str, output: str) -> dict[str, Any]:
    return {"name": name, "args": {"query": query}, "id": query, "status": "success", "output": output}


GRAPH: Final = Graph()


def reference(query: str, *required: str) -> dict[str, Any]:
    """Return the reference step for a query."""
    step = {"name": "sparql_query", "output": GRAPH.query(query)["output"], "output_media_type": SPARQL_RESULTS}
    return {**step, "required_columns": list(required)} if required else step


IRI: Final = {"name": "iri_discovery", "output": _BERGEN, "output_media_type": "text/uri"}
POWERS: Final = reference(_POWERS_OF.format(1), "t", "power")
COUNTED: Final = reference(_COUNT)
ASKED: Final = reference(_HAS_BERGEN)
TRUTH: Final = reference("SELECT (true AS ?has) {}")
NOTHING: Final = reference("SELECT ?t ?power { ?t :in :station1 ; :power ?power FILTER(?power > 900) }")


class Case(NamedTuple):
    """A trick, and the highest graded score that it may have."""

    wanted: dict[str, Any]
    honest: list[dict[str, Any]]
    trick: list[dict[str, Any]]
    at_most: float


def numbers(count: int) -> str:
    return "SELECT " + " ".join(f"({at} AS ?c{at})" for at in range(count)) + " {}"


QUERY, SEARCH = GRAPH.query, GRAPH.search
CASES: Final = {
    "the same query for five substations of which one is right": Case(
        POWERS, [QUERY(_POWERS_OF.format(1))], [QUERY(_POWERS_OF.format(at)) for at in range(5)], 0.34
    ),
    "300 constants for a count": Case(COUNTED, [QUERY(_COUNT)], [QUERY(numbers(300))], 0.05),
    "20 constants for a count": Case(COUNTED, [QUERY(_COUNT)], [QUERY(numbers(20))], 0.2),
    "both truth values for one": Case(
        TRUTH, [QUERY("SELECT (true AS ?has) {}")], [QUERY("SELECT (true AS ?x) (false AS ?y) {}")], 0.7
    ),
    "all subjects for an IRI": Case(IRI, [SEARCH("BERGEN")], [QUERY("SELECT ?s { ?s ?p ?o } ORDER BY ?s")], 0.34),
    "whole triples for an IRI": Case(IRI, [SEARCH("BERGEN")], [QUERY("SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o")], 0.2),
    "all subjects as texts for an IRI": Case(
        IRI, [SEARCH("BERGEN")], [QUERY("SELECT (STR(?s) AS ?x) { ?s ?p ?o } ORDER BY ?s")], 0.34
    ),
    "a search with 40 hits for an IRI": Case(IRI, [SEARCH("BERGEN")], [SEARCH("", 40)], 0.34),
    "ASK both ways": Case(
        ASKED, [QUERY(_HAS_BERGEN)], [QUERY("ASK { ?s a :Nothing }"), QUERY("ASK { ?s ?p ?o }")], 0.67
    ),
    "any empty query for an empty reference": Case(
        NOTHING,
        [QUERY("SELECT ?t ?power { ?t :in :station1 ; :power ?power FILTER(?power > 900) }")],
        [QUERY("SELECT ?x ?y { ?x a :Nothing }")],
        0.5,
    ),
    "the right query, then a wrong one on which the answer rests": Case(
        POWERS, [QUERY(_POWERS_OF.format(1))], [QUERY(_POWERS_OF.format(1)), QUERY(_POWERS_OF.format(2))], 0.67
    ),
    "all columns of a wide query": Case(
        COUNTED,
        [QUERY(_COUNT)],
        [QUERY("SELECT (15 AS ?a) (MAX(?power) AS ?b) (MIN(?power) AS ?c) (SUM(?power) AS ?d) { ?t :power ?power }")],
        0.5,
    ),
}


@pytest.mark.parametrize("trick", CASES)
def test_trick_scores_1_in_binary_grading_but_less_in_graded(trick: str) -> None:
    case = CASES[trick]
    assert score(case, case.honest, "binary") == 1.0
    assert score(case, case.trick, "binary") == 1.0  # before
    assert score(case, case.honest, "graded") == 1.0
    assert score(case, case.trick, "graded") <= case.at_most  # after


def score(case: Case, steps: list[dict[str, Any]], grading: Literal["binary", "graded"]) -> float:
    found = match_steps([[case.wanted]], [{**step, "id": f"c{at}"} for at, step in enumerate(steps)], grading=grading)
    assert found.steps_score is not None
    return found.steps_score
