"""What a store serialises is read back to the term, in each of W3C's formats."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat, Store

from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
FORMATS = {
    "json": QueryResultsFormat.JSON,
    "xml": QueryResultsFormat.XML,
    "csv": QueryResultsFormat.CSV,
    "tsv": QueryResultsFormat.TSV,
}
# Characters that XML 1.0 has, without those that it makes others of (a carriage return).
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]) | st.sampled_from("\n\t\",;'\\<>&"))
TERMS = st.one_of(
    st.builds(Literal, TEXTS),
    st.builds(lambda text: Literal(text, language="no"), TEXTS),
    st.builds(lambda number: Literal(str(number), datatype=NamedNode(f"{XSD}integer")), st.integers()),
    st.builds(lambda number: Literal(str(number), datatype=NamedNode(f"{XSD}decimal")), st.integers(-9, 9)),
    st.builds(lambda text: Literal(text, datatype=NamedNode("urn:type")), TEXTS),
    st.builds(lambda number: Literal(repr(number), datatype=NamedNode(f"{XSD}double")), st.floats(-1e9, 1e9)),
    st.sampled_from([NamedNode("urn:a"), NamedNode("urn:øb"), BlankNode("b0"), BlankNode("b1")]),
)


def served(terms: list[Any], query: str) -> dict[str, str]:
    """Return the results of a query over some terms, by format."""
    store = Store()
    store.extend(Quad(NamedNode(f"urn:s{at}"), NamedNode(f"urn:p{at % 2}"), term) for at, term in enumerate(terms))
    return {name: bytes(store.query(query).serialize(format=form) or b"").decode() for name, form in FORMATS.items()}


@given(st.lists(TERMS, max_size=6))
def test_json_xml_and_tsv_hold_the_same_terms(terms: list[Any]) -> None:
    found = served(terms, "SELECT ?s ?a ?b { ?s ?p ?o OPTIONAL { ?s <urn:p0> ?a } OPTIONAL { ?s <urn:p1> ?b } }")
    for format in ("xml", "tsv"):
        for results in (read_sparql_results(found[format]), read_sparql_results(found[format], format=format)):  # type: ignore[arg-type]
            compared = compare_sparql_results(found["json"], results, ignore_duplicates=False, strict=True)
            assert compared.score == 1.0, compared.reason


@given(st.lists(TERMS.filter(lambda term: getattr(term, "value", "") != ""), max_size=6))
def test_csv_holds_the_same_values(terms: list[Any]) -> None:
    texts = [term for term in terms if not str(getattr(term, "value", "")).startswith("_:")]
    found = served(texts, "SELECT ?s ?a ?b { ?s ?p ?o OPTIONAL { ?s <urn:p0> ?a } OPTIONAL { ?s <urn:p1> ?b } }")
    results = read_sparql_results(found["csv"], format="csv")
    compared = compare_sparql_results(found["json"], results, ignore_duplicates=False)
    assert compared.score == 1.0, compared.reason


@pytest.mark.parametrize("format", ["json", "xml"])
@pytest.mark.parametrize("answer", [True, False])
def test_answers_are_read(format: str, answer: bool) -> None:
    store = Store()
    store.add(Quad(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c")))
    found = store.query(f"ASK {{ <urn:{'a' if answer else 'x'}> ?p ?o }}").serialize(format=FORMATS[format])
    assert read_sparql_results(bytes(found or b"").decode()).boolean is answer


def test_csv_writes_an_empty_text_as_it_writes_an_unbound_cell() -> None:
    found = served([Literal("")], "SELECT ?s ?o { ?s ?p ?o }")
    assert compare_sparql_results(found["json"], read_sparql_results(found["csv"])).score == 0.0
    assert read_sparql_results(found["csv"]).columns["o"].kind(0) == ""
