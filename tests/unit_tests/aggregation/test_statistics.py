from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.aggregation.statistics import Column


def sample(template_id: str = "t", **values: Any) -> dict[str, Any]:
    return {"template_id": template_id, "status": "success", **values}


EMPTY = '{"head": {"vars": ["x"]}, "results": {"bindings": [ ]}}'


def test_steps_are_counted_by_tool_in_graphrag_evals_four_ways() -> None:
    steps = [
        {"name": "sparql_query", "status": "error", "error": "syntax"},
        {"name": "sparql_query", "status": "success", "output": EMPTY},
        {"name": "search", "status": "success", "output": "text"},
        {"name": "sparql_query", "status": "success", "output": "@prefix : <urn:> .", "comparison_error": "no JSON"},
    ]
    aggregates = compute_aggregates([sample(actual_steps=steps), sample("u", actual_steps=steps[:1])])
    assert aggregates["per_template"]["t"]["steps"] == {
        "total": {"sparql_query": 3, "search": 1},
        "once_per_sample": {"sparql_query": 1, "search": 1},
        "empty_results": {"sparql_query": 1},
        "errors": {"sparql_query": 2},
    }
    assert aggregates["micro"]["steps"]["total"] == {"sparql_query": 4, "search": 1}
    assert aggregates["micro"]["steps"]["once_per_sample"] == {"sparql_query": 2, "search": 1}


def test_names_are_sorted_whatever_was_called_first() -> None:
    steps = [{"name": name, "status": "error"} for name in "cab"]
    for counts in compute_aggregates([sample(actual_steps=steps)])["micro"]["steps"].values():
        assert list(counts) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("output", "is_empty"),
    [
        (EMPTY, True),
        ('{"results": {"bindings": []}}', True),
        ('{"results": {"bindings": [{}]}}', False),
        ('{"boolean": false}', False),
        ('{"results": "bindings"}', False),
        ('{"note": "\\"bindings\\": []"}', False),
        ('"bindings": []', False),
        ("[]", False),
        ("", False),
        (None, False),
        (3, False),
    ],
)
def test_empty_result_is_a_select_without_rows(output: Any, is_empty: bool) -> None:
    steps = [{"name": "s", "status": "success", "output": output}]
    assert ("empty_results" in compute_aggregates([sample(actual_steps=steps)])["micro"]["steps"]) is is_empty


@pytest.mark.parametrize(
    ("name", "output", "is_empty"),
    [
        ("cypher_query", "[]", True),
        ("read_neo4j_cypher", " [ ]\n", True),
        ("cypher_query", [], True),
        ("sql_db_query", "", True),
        ("cypher_query", "", False),
        ("cypher_query", "[{}]", False),
        ("sql_db_query", "[(0,)]", False),
        ("autocomplete_search", "[]", False),
    ],
)
def test_known_tools_of_cypher_and_sql_give_empty_results_too(name: str, output: Any, is_empty: bool) -> None:
    steps = [{"name": name, "status": "success", "output": output}]
    assert ("empty_results" in compute_aggregates([sample(actual_steps=steps)])["micro"]["steps"]) is is_empty


def column_of(values: list[float]) -> Column:
    column = Column()
    column.add(0, values)
    return column


@given(st.lists(st.integers(-(2**53), 2**53)))
def test_whole_numbers_come_out_whole(values: list[float]) -> None:
    found = column_of(values).values()
    assert found == values
    assert all(isinstance(value, int) for value in found)


@given(st.lists(st.floats(-1e100, 1e100) | st.integers(-(2**53), 2**53)))
def test_mixed_numbers_keep_their_values(values: list[float]) -> None:
    assert column_of(values).values() == values


def test_whole_number_beyond_the_exact_ones_becomes_the_nearest_float() -> None:
    assert column_of([2**53 + 1, 1]).values() == [float(2**53), 1.0]
