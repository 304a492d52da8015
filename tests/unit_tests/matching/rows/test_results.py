import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.rows import parse_sparql_results

LITERAL = {"type": "literal", "value": "Oslo"}


def select(variables: Any, bindings: Any) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": bindings}}


def test_a_string_and_what_it_holds_are_read_alike() -> None:
    output = select(["n", "m"], [{"n": LITERAL}, {"n": LITERAL, "m": {"type": "uri", "value": "urn:a"}}])
    assert parse_sparql_results(json.dumps(output)) == parse_sparql_results(output)


def test_cells_are_read_column_by_column() -> None:
    blank = {"type": "bnode", "value": "b0"}
    results = parse_sparql_results(select(["n", "m"], [{"n": LITERAL, "m": blank}, {"n": LITERAL}]))
    assert (results.variables, results.row_count, results.boolean) == (("n", "m"), 2, None)
    assert [results.columns["n"].readable(row) for row in (0, 1)] == ["Oslo", "Oslo"]
    assert [results.columns["m"].readable(row) for row in (0, 1)] == ["_:b0", None]


def test_a_variable_named_twice_is_one_column() -> None:
    assert parse_sparql_results(select(["n", "n"], [])).variables == ("n",)


def test_bindings_outside_of_the_head_are_left_out() -> None:
    assert parse_sparql_results(select([], [{"n": 5}])).columns == {}


def test_an_answer_needs_no_head() -> None:
    assert parse_sparql_results('{"boolean": false}').boolean is False


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (None, "nothing"),
        (5, "an? int"),
        (float("nan"), "float"),
        ([], "list"),
        (b"{}", "bytes"),
        ("", "an empty text"),
        ("@prefix ex: <http://ex.org/> .\nex:a ex:b ex:c .", "no JSON .*@prefix ex: <http"),
        ("5", "int"),
        ("null", "nothing"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 10_000, "no JSON"),
        ('{"head": NaN}', "NaN is no JSON value"),
        ("\ud800", "no JSON"),
        ({}, "it is empty"),
        ({"error": "timeout"}, "its keys are error"),
        ({10**5_000: 1}, "without SPARQL results"),
        ({"boolean": "true"}, "neither true nor false"),
        ({"boolean": None}, "neither true nor false"),
        ({"head": [], "results": {"bindings": []}}, '"head"'),
        ({"head": {}}, '"vars"'),
        (select("n", []), '"vars"'),
        (select([5], []), '"vars"'),
        ({"head": {"vars": ["n"]}}, '"bindings"'),
        ({"head": {"vars": ["n"]}, "results": []}, '"bindings"'),
        (select(["n"], {}), '"bindings"'),
        (select(["n"], [{}, "a"]), "row 2 is no object"),
        (select(["\udfff"], []), "lone surrogate"),
    ],
)
def test_what_is_no_sparql_results_is_unreadable_and_says_why(output: Any, found: str) -> None:
    with pytest.raises(UnreadableOutput, match=found) as caught:
        parse_sparql_results(output)
    assert str(caught.value).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["head", "vars", "results", "bindings", "n", "type", "value", "datatype", "boolean"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.builds(select, st.just(["n"]) | JSON, st.lists(st.fixed_dictionaries({"n": JSON})) | JSON))
def test_nothing_but_unreadable_output_is_raised(output: Any) -> None:
    for given_output in (output, json.dumps(output)):
        try:
            results = parse_sparql_results(given_output)
        except UnreadableOutput:
            continue
        assert results.row_count >= 0
