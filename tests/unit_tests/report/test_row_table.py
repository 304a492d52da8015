"""The table of rows below a step: missing, extra and equal rows, with all columns."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.report.steps import row_table

Rows = list[dict[str, Any]]


def output(rows: Rows, names: tuple[str, ...] = ()) -> str:
    columns = names or tuple(dict.fromkeys(name for row in rows for name in row))
    bindings = [{name: {"type": "literal", "value": str(value)} for name, value in row.items()} for row in rows]
    return json.dumps({"head": {"vars": list(columns)}, "results": {"bindings": bindings}})


def table_of(reference: Rows | str, actual: Rows | str, **keys: Any) -> Any:
    expected, found = (rows if isinstance(rows, str) else output(rows) for rows in (reference, actual))
    step = {"name": "sparql_query", "output": expected, "output_media_type": "application/sparql-results+json", **keys}
    return row_table(StepView(step), StepView({"name": "sparql_query", "status": "success", "output": found}))


CITIES: Rows = [{"city": "c1", "people": 5}, {"city": "c2", "people": 7}]


def test_missing_extra_and_equal_rows_are_distinguished() -> None:
    found = table_of(CITIES, [{"city": "c1", "people": 5}, {"city": "c9", "people": 8}])
    assert found["unlike"] == [["missing", ["c2", "7"], []], ["extra", ["c9", "8"], []]]
    assert found["equal"] == [["c1", "5"]]
    assert found["counts"] == [1, 1, 1]


def test_rows_that_share_cells_are_paired_and_mark_the_differing_cells() -> None:
    found = table_of(
        [*CITIES, {"city": "c3", "people": 9}], [{"city": "c2", "people": 70}, {"city": "c1", "people": 5}]
    )
    assert found["unlike"] == [
        ["missing", ["c2", "7"], [1]],
        ["extra", ["c2", "70"], [1]],
        ["missing", ["c3", "9"], []],
    ]


def test_optional_columns_are_shown_too() -> None:
    reference = [{"city": "c1", "people": 5, "label": "Oslo"}, {"city": "c2", "people": 7, "label": "Bergen"}]
    actual = [{"id": "c1", "n": 5, "label": "OSLO", "area": 454}, {"id": "c4", "n": 6, "label": "Narvik", "area": 1}]
    found = table_of(reference, actual, required_columns=["city", "people"])
    assert found["columns"] == [
        ["city", "id", True],
        ["people", "n", True],
        ["label", "label", False],
        [None, "area", False],
    ]
    assert found["unlike"] == [
        ["missing", ["c2", "7", "Bergen", None], []],
        ["extra", ["c4", "6", "Narvik", "1"], []],
    ]
    assert found["equal"] == [["c1", "5", "OSLO", "454"]]


def test_equal_row_has_the_references_label() -> None:
    reference = [{"city": "c1", "label": "Oslo"}, {"city": "c2", "label": "Bergen"}]
    found = table_of(reference, [{"city": "c1"}], required_columns=["city"])
    assert found["columns"] == [["city", "city", True], ["label", None, False]]
    assert found["equal"] == [["c1", "Oslo"]]


def test_first_twenty_rows_of_each_kind_are_shown_and_all_counted() -> None:
    def rows(first: int, last: int) -> Rows:
        return [{"city": f"c{number}", "people": number} for number in range(first, last)]

    found = table_of(rows(0, 90), rows(30, 120))
    kinds = [kind for kind, _, _ in found["unlike"]]
    assert (kinds.count("missing"), kinds.count("extra"), len(found["equal"])) == (20, 20, 20)
    assert found["counts"] == [30, 30, 60]


def test_all_rows_are_missing_if_the_query_returns_none() -> None:
    found = table_of(CITIES, output([], ("city",)), required_columns=["city"])
    assert found["columns"] == [["city", "city", True], ["people", None, False]]
    assert found["unlike"] == [["missing", ["c1", "5"], []], ["missing", ["c2", "7"], []]]
    assert found["counts"] == [2, 0, 0]


def test_all_rows_are_extra_if_the_reference_has_none() -> None:
    found = table_of(output([], ("city",)), CITIES)
    assert [kind for kind, _, _ in found["unlike"]] == ["extra", "extra"]


def test_unbound_cells_are_null_and_long_ones_truncated() -> None:
    found = table_of([{"a": "x", "b": "y"}], [{"a": "x"}, {"a": "z" * 1000, "b": "w\n‮"}])
    cells = [cells for kind, cells, _ in found["unlike"] if kind == "extra"]
    assert ["x", None] in cells
    (long,) = [each for each in cells if each[0] != "x"]
    assert len(long[0]) <= 301
    assert "‮" not in long[1]


ASK = '{"head": {}, "boolean": true}'


@pytest.mark.parametrize(
    ("reference", "actual"),
    [
        (CITIES, CITIES),
        (CITIES, "the server is away"),
        ("the server is away", CITIES),
        (ASK, '{"head": {}, "boolean": false}'),
        (ASK, CITIES),
        (CITIES, ASK),
        (output([], ("city",)), output([], ("city",))),
    ],
    ids=["equal", "unreadable", "unreadable reference", "answers", "reference answers", "answer", "no rows"],
)
def test_without_differing_rows_there_is_no_table(reference: Any, actual: Any) -> None:
    assert table_of(reference, actual) is None


def test_reordered_rows_have_no_table() -> None:
    assert table_of(CITIES, CITIES[::-1], ordered=True) is None
