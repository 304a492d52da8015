"""Differences of a SPARQL query from the reference query: a table of cases, and laws."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("rdflib")

from graphrag_eval_lc.graph.query_difference import in_words, query_differences
from graphrag_eval_lc.graph.query_forms import TooLargeQueryError, UnreadableQueryError, read_query
from graphrag_eval_lc.graph.query_lint import lint_query

CASES = yaml.safe_load((Path(__file__).parent / "vectors/query_differences.yaml").read_text(encoding="utf-8"))
PREFIX = "PREFIX c: <urn:c#>\n"


def test_differences() -> None:
    for case in CASES:
        options = {key: case[key] for key in ("required_columns", "ordered") if key in case}
        found = query_differences(PREFIX + case["reference"], PREFIX + case["actual"], **options)
        assert [f"{each.kind}: {each.sentence}" for each in found] == case["differences"], case["name"]


def test_undeclared_prefix_is_taken_from_the_other_query() -> None:
    assert not query_differences("PREFIX c: <urn:c#> ASK { ?x a c:Line }", "ASK { ?y a c:Line }")
    assert not query_differences("ASK { ?x a c:Line }", "ASK { ?y a <urn:c#Line> }")


@pytest.mark.parametrize("text", ["", "no query", "SELECT {", "INSERT DATA { <urn:a> <urn:b> 1 }", "SELECT ?x { ?x a"])
def test_invalid_query_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableQueryError):
        query_differences("ASK {}", text)


def test_sentence_names_the_first_of_many_differences() -> None:
    found = query_differences("SELECT * { ?a <urn:p> 1, 2, 3, 4, 5 }", "SELECT * { ?a <urn:q> ?b }")
    assert in_words(found).endswith("; and 3 more differences.")
    assert in_words([]) == ""


names = st.sampled_from(["a", "b", "x1", "line"])
terms = st.one_of(names.map("?{}".format), st.sampled_from(["<urn:i>", "<urn:j>", '"t"', "7"]))
subjects = st.one_of(names.map("?{}".format), st.just("<urn:i>"))
predicates = st.sampled_from(["<urn:p>", "<urn:q>", "<urn:p>/<urn:q>", "^<urn:r>", "(<urn:p>|<urn:q>)", "<urn:p>*"])
triples = st.lists(st.tuples(subjects, predicates, terms).map(" ".join), min_size=1, max_size=5, unique=True)


@given(triples, st.randoms(use_true_random=False))
def test_variable_names_and_order_do_not_matter(patterns: list[str], random: Any) -> None:
    reference = f"SELECT * {{ {' . '.join(patterns)} }}"
    assert not query_differences(reference, reference)
    shuffled = random.sample(patterns, len(patterns))
    renamed = f"SELECT * {{ {' . '.join(shuffled)} }}"
    for name in ("line", "x1", "b", "a"):
        renamed = renamed.replace(f"?{name} ", f"?other_{name} ")
    expected, actual = read_query(reference), read_query(renamed)
    assert len(expected.patterns) == len(actual.patterns)
    kinds = {each.kind for each in query_differences(reference, renamed, required_columns=[])}
    assert not kinds


conditions = st.sampled_from(
    ["?a = <urn:j>", "?b IN ('u', <urn:i>, \"t\"@en, 7)", "regex(?x1, 't', \"i\")", "?line != 't' || ?line != <urn:r>"]
)


@pytest.mark.full
@settings(max_examples=30)
@given(triples, conditions)
def test_queries_that_differ_only_in_terms_share_a_parse_without_changing_the_result(
    patterns: list[str], condition: str
) -> None:
    for other in ("<urn:a>", "<urn:z>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"):
        query = f"ASK {{ {' . '.join(patterns)} FILTER({condition}) }}".replace("<urn:p>", other).replace("'u'", other)
        parsed_alone = f"BASE <urn:base:> {query}"  # a query with relative IRIs gets no markers
        assert not query_differences(query, parsed_alone)
        assert read_query(query).patterns == read_query(parsed_alone).patterns


@given(triples)
def test_missing_pattern_is_reported(patterns: list[str]) -> None:
    reference = f"ASK {{ {' . '.join([*patterns, '<urn:new> <urn:only> 99'])} }}"
    found = query_differences(reference, f"ASK {{ {' . '.join(patterns)} }}")
    assert [each.sentence for each in found] == ["lacks <urn:new> <urn:only> 99"]


LARGE = {
    "patterns in a chain": "SELECT * { " + " ".join(f"?a{n} <urn:p> ?a{n + 1} ." for n in range(90)) + " }",
    "nested parentheses": f"SELECT * {{ ?a <urn:p> ?b FILTER({'(' * 25}?b > 3{')' * 25}) }}",
    "thousands of parentheses": f"SELECT * {{ ?a <urn:p> ?b FILTER({'(' * 50_000}?b > 3{')' * 50_000}) }}",
    "groups": "SELECT * { " + "{ ?a <urn:p> ?b } " * 300 + "}",
    "a long condition": f"SELECT * {{ ?a <urn:p> ?b FILTER({'?b = 1 || ' * 8_000}?b = 2) }}",
    "columns": f"SELECT {'?a ' * 20_000} {{ ?a <urn:p> ?b }}",
    "a long path": f"SELECT * {{ ?a {'<urn:p>/' * 300}<urn:p> ?b }}",
    "a long list": f"SELECT * {{ ?a <urn:p> ?b FILTER(?b IN ({'1, ' * 20_000}2)) }}",
    "values": "SELECT * { VALUES ?a { " + "<urn:entity> " * 20_000 + "} ?a <urn:p> ?b }",
    "a text": f"SELECT * {{ ?a <urn:p> '{'x' * 2_000_000}' }}",
}


@pytest.mark.parametrize("name", LARGE)
def test_large_query_is_rejected_quickly(name: str) -> None:
    started = time.process_time()
    for reference, actual in ((LARGE[name], "ASK { ?a <urn:p> ?b }"), ("ASK { ?a <urn:p> ?b }", LARGE[name])):
        with pytest.raises(TooLargeQueryError):
            query_differences(reference, actual)
    assert "too_large" in [each.rule for each in lint_query(LARGE[name])]
    assert time.process_time() - started < 3


def test_largest_accepted_query_is_compared_quickly() -> None:
    groups = "".join(
        f"{{ ?a{n} <urn:p{n % 3}> ?b{n} . ?b{n} <urn:q> ?c{n} }} UNION {{ ?c{n} <urn:r> ?a{n} }} " for n in range(22)
    )
    reference = f"SELECT * {{ {groups} }}"
    started = time.process_time()
    assert not query_differences(reference, reference.replace("?a", "?other"))
    assert query_differences(reference, reference.replace("urn:q", "urn:s").replace("?b", "?y"))
    assert time.process_time() - started < 10


def test_sum_nested_deeper_than_python_allows_is_rejected() -> None:
    query = f"ASK {{ ?a <urn:p> ?b FILTER({'?b + ' * 600}?b > 2) }}"
    with pytest.raises(TooLargeQueryError):
        query_differences(query, "ASK { ?a <urn:p> ?b }")


@pytest.mark.parametrize("condition", ["?b IN (1{0})", "?b = 1{1}"])
def test_lists_and_conditions_with_hundreds_of_values_are_compared(condition: str) -> None:
    in_list = "".join(f", {n}" for n in range(2, 201))
    disjunction = "".join(f" || ?b = {n}" for n in range(2, 201))
    query = f"SELECT * {{ ?a <urn:p> ?b FILTER({condition.format(in_list, disjunction)}) }}"
    assert not query_differences(query, query.replace("?b", "?c"))


def test_long_chain_of_repeated_properties_equals_itself() -> None:
    chain = "SELECT * { " + " ".join(f"?a{n} <urn:p{n % 7}> ?a{n + 1} ." for n in range(45)) + " }"
    assert not query_differences(chain, chain.replace("?a", "?b"))


def test_comparing_a_query_repeatedly_gives_the_same_result() -> None:
    query = "SELECT ?n { ?a <urn:p> ?b . SERVICE <urn:s> { ?b <urn:q> ?n FILTER(?n > 3) } }"
    assert [query_differences(query, query) for _ in range(3)] == [[], [], []]
