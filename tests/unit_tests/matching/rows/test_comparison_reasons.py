"""What a comparison of rows reports: reasons, differing rows, answers of ASK queries, and errors in the reference."""

from typing import Any

import pytest

from graphrag_eval_lc.matching.rows.comparison import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"


def term(value: Any) -> dict[str, str]:
    if isinstance(value, bool | int | float):
        kind = "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "decimal"
        return {"type": "literal", "value": str(value).lower(), "datatype": XSD + kind}
    kind = "bnode" if value.startswith("_:") else "uri" if value.startswith("urn:") else "literal"
    return {"type": kind, "value": value.removeprefix("_:")}


def table(names: str, *rows: Any) -> dict[str, Any]:
    variables = names.split()
    bindings = [
        {name: term(cell) for name, cell in zip(variables, row, strict=True) if cell is not None} for row in rows
    ]
    return {"head": {"vars": variables}, "results": {"bindings": bindings}}


ORDERED = {"ordered": True}
LONG = "x" * 50 + "middle" + "y" * 50
REASONS: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a match": (
        table("n", "a", "b", "c"),
        table("name", "c", "b", "a"),
        {},
        "All 3 rows match (`n` is matched by `name`).",
    ),
    "one row": (table("n", "a"), table("n", "a"), {}, "The only row matches."),
    "rows that differ": (
        table("name power", ("OSLO T1", 110), ("OSLO T2", None), ("ASKER", 1)),
        table("n p", ("OSLO T2", None), ("ASKER", 1), ("ALTA", 2)),
        {},
        "The result has `n` for `name`, `p` for `power`; 1 of 3 rows is missing: (OSLO T1, 110); "
        "1 extra row: (ALTA, 2).",
    ),
    "a near miss": (
        table("name ratedS", ("a", 110), ("b", 200), ("c", 315)),
        table("name ratedS", ("a", 110), ("b", 200), ("c", 300)),
        {},
        "1 of 3 rows is missing: (c, 315); 1 extra row, like it but with `ratedS` 300 instead of 315.",
    ),
    "a near miss next to other rows": (
        table("t power", ("a", 1000), ("b", 1)),
        table("t power", ("b", 1), ("z", 5), ("a", 300), ("a", 420)),
        {},
        "1 of 2 rows is missing: (a, 1000); 3 extra rows, one like it but with `power` 300 instead of 1000.",
    ),
    "IRIs with a column of labels that is not required": (
        table("t ratedS name", ("urn:1", 1000, "OSLO T1"), ("urn:2", 300, "OSLO T2")),
        table("t ratedU name", ("urn:2", 300, "OSLO T2"), ("urn:1", 420, "OSLO T1"), ("urn:3", 5, "OSLO T3")),
        {"required_columns": ["t", "ratedS"]},
        "The result has `ratedU` for `ratedS`; 1 of 2 rows is missing: (OSLO T1, 1000); "
        "2 extra rows, one like it but with `ratedS` 420 instead of 1000.",
    ),
    "labels are those of either result": (
        table("t", ("urn:1",), ("urn:2",)),
        table("t tLabel", ("urn:2", "two"), ("urn:3", "three")),
        {"required_columns": ["t"]},
        "1 of 2 rows is missing: (urn:1); 1 extra row: (three).",
    ),
    "IRIs that share a label": (
        table("t name", ("urn:1", "OSLO"), ("urn:2", "ASKER")),
        table("t name", ("urn:3", "OSLO"), ("urn:2", "ASKER")),
        {"required_columns": ["t"]},
        "1 of 2 rows is missing: (urn:1); 1 extra row: (urn:3).",
    ),
    "a text may be the same as a label": (
        table("t name", ("urn:1", "OSLO"), ("OSLO T1", "OSLO")),
        table("t name", ("OSLO T1", "OSLO")),
        {"required_columns": ["t"]},
        "1 of 2 rows is missing: (OSLO).",
    ),
    "labels that look the same are ambiguous": (
        table("t name", ("urn:1", "OSLO T1"), ("urn:2", "OSLO\nT1")),
        table("t name", ("urn:2", "OSLO\nT1")),
        {"required_columns": ["t"]},
        "1 of 2 rows is missing: (urn:1).",
    ),
    "the label of another column": (
        table("t zone zoneName", ("urn:1", "urn:z", "NO1"), ("urn:2", "urn:y", "NO2")),
        table("t zone zoneName", ("urn:2", "urn:y", "NO2")),
        {"required_columns": ["t", "zone"]},
        "1 of 2 rows is missing: (urn:1, NO1).",
    ),
    "columns of another name come first": (
        table("a b", ("x", 1), ("y", 2)),
        table("a p", ("x", 1), ("y", 3)),
        {},
        "The result has `p` for `b`; 1 of 2 rows is missing: (y, 2); 1 extra row, like it but with `b` 3 instead of 2.",
    ),
    "no column": (
        table("sum", (1300,)),
        table("x", ("Oslo",)),
        {},
        "No result column matches `sum`; the only row is missing: (1300).",
    ),
    "other values": (
        table("low high", (1, 2)),
        table("id from to", (7, 8, 9)),
        {},
        "The result has `from` for `low`, `to` for `high`; the only row is missing: (1, 2); 1 extra row: (8, 9).",
    ),
    "too few columns": (
        table("a b", ("x", "y")),
        table("b", ("x",)),
        {},
        "Only 1 column for 2 required; no result column matches `b`; the result has `b` for `a`; "
        "the only row is missing: (x, y); 1 extra row, like it but with no `b` (y).",
    ),
    "a column for two": (
        table("a b", ("1", "1"), ("2", "2")),
        table("c", ("1",), ("2",)),
        {},
        "Only 1 column for 2 required; no result column matches `b`; the result has `c` for `a`; "
        "2 of 2 rows are missing, e.g. (1, 1); 2 extra rows, one like it but with no `b` (1).",
    ),
    "the order": (
        table("a", *"ABCD"),
        table("b", *"ACBD"),
        ORDERED,
        "The result has `b` for `a`; the rows are the same but in another order, from row 2 on: (C) instead of (B).",
    ),
    "blank nodes": (
        table("a b", ("_:1", "x"), ("_:1", "y")),
        table("a b", ("_:1", "x"), ("_:2", "y")),
        {},
        "The rows differ in their blank nodes only: no one-to-one renaming makes them equal.",
    ),
    "a long text": (
        table("a", (LONG,)),
        table("a", ("b\nc",)),
        {},
        "The only row is missing: (xxxxxxxxxxxxxxxxxxxx…yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy); 1 extra row: (b c).",
    ),
    "no rows": (table("a", "x"), table("a"), {}, "The actual results have no rows, the reference has 1."),
    "rows for none": (table("a"), table("a", "x", "y"), {}, "The actual results have 2 rows, the reference has none."),
    "both empty": (table("a"), table("b"), {}, "Both results have no rows."),
    "no column required": (
        table("a", "x"),
        table("b", "y"),
        {"required_columns": []},
        "Both results have rows; no column is required.",
    ),
    "an absent column": (
        table("a", "x"),
        table("a", "x"),
        {"required_columns": ["a", "b"]},
        "The reference output in the dataset is at fault: it has no column `b`, which required_columns names.",
    ),
    "the same text": (
        "@prefix : <urn:x> . Prose.",
        " @prefix : <urn:x> . Prose.\n",
        {},
        "Both outputs have the same text.",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_reason_names_rows_and_columns(name: str) -> None:
    reference, actual, options, reason = REASONS[name]
    assert compare_sparql_results(reference, actual, **options).reason == reason


@pytest.mark.parametrize("required", ["a", 5, [5], {"a": 1}])
def test_invalid_required_columns_are_the_references_error(required: Any) -> None:
    found = compare_sparql_results(table("a", "x"), table("a", "x"), required)
    assert (found.score, found.reason) == (
        0.0,
        "The reference output in the dataset is at fault: required_columns is not a list of column names.",
    )


YES, NO = ({"boolean": True}, {"boolean": False})


def test_differing_rows_are_counted_and_the_first_shown() -> None:
    found = compare_sparql_results(table("a b", ("x", None), ("y", 1)), table("a b", ("y", 1), ("z", 2), ("z", 2)))
    assert (found.missing_rows, found.extra_rows) == ([("x", None)], [("z", "2")])
    assert (found.missing_row_count, found.extra_row_count, found.columns) == (1, 1, {"a": "a", "b": "b"})
    assert (found.row_precision, found.row_recall, found.row_f1) == (0.5, 0.5, 0.5)
    many = compare_sparql_results(table("a", *[(f"a{at}",) for at in range(50)]), table("a", ("x",)))
    assert (len(many.missing_rows), many.missing_row_count, many.row_f1) == (20, 50, 0.0)


def test_closeness_ranks_mismatches_and_grades_rank_rows() -> None:
    reference = table("a b", ("x", 1), ("y", 2), ("z", 3))
    actual = [
        table("a b", ("x", 1), ("y", 2)),
        table("a b", ("x", 1), ("y", 3)),
        table("a b", ("x", 5), ("q", 6)),
        table("b", ("q",)),
    ]
    found = [compare_sparql_results(reference, each) for each in actual]
    for values in ([each.closeness for each in found], [each.grade for each in found]):
        assert values == sorted(values, reverse=True)
    assert found[0].closeness < 1.0
    assert found[-1].closeness == found[-1].grade == 0.0


def test_reversed_rows_grade_0_even_if_their_cells_match() -> None:
    found = compare_sparql_results(table("a", (1,), (2,)), table("a", (2,), (1,)), ordered=True)
    assert found.grade == 0.0 < found.closeness < 1.0
    assert "recall 1.00" in found.grade_reason
    assert "0.00 of the pairs of rows are in the right order" in found.grade_reason


FLOAT = {"type": "literal", "datatype": XSD + "float"}


@pytest.mark.parametrize(
    ("cell", "other", "about"),
    [
        (
            {**FLOAT, "value": "15063.998"},
            term(15064.998),
            "`a` 15064.998 instead of 15063.998",
        ),
        (term(5), term(7), "`a` 7 instead of 5"),
        (term("Oslo"), term("oslo "), "`a` 'oslo ' instead of 'Oslo', another case or other spaces"),
        (term("Oslo"), {**term("Oslo"), "xml:lang": "no"}, "`a` 'Oslo' in another datatype, language tag or kind"),
        (term("Oslo"), term("Bergen"), "`a` Bergen instead of Oslo"),
        (term(""), {}, "`a` unbound instead of ''"),
    ],
)
def test_reason_says_how_close_cells_are(cell: Any, other: Any, about: str) -> None:
    reference, actual = (table("key a", ("x", None)) for _ in range(2))
    reference["results"]["bindings"][0]["a"], actual["results"]["bindings"][0]["a"] = cell, other
    found = compare_sparql_results(reference, actual, strict=True)
    assert f"1 extra row, like it but with {about}" in found.reason
