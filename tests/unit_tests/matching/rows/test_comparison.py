"""The rules of the comparison, one by one."""

import json
import random
from itertools import pairwise, product
from typing import Any

import pytest

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import (
    SparqlComparison,
    compare_sparql_results,
    match_row_steps,
    parse_sparql_results,
)

XSD = "http://www.w3.org/2001/XMLSchema#"
Term = dict[str, str] | None


def lit(value: object, datatype: str = "", lang: str = "") -> dict[str, str]:
    term = {"type": "literal", "value": str(value)}
    if datatype:
        term["datatype"] = XSD + datatype
    if lang:
        term["xml:lang"] = lang
    return term


def uri(value: str) -> dict[str, str]:
    return {"type": "uri", "value": value}


def blank(label: object) -> dict[str, str]:
    return {"type": "bnode", "value": str(label)}


def table(names: str, *rows: Any) -> dict[str, Any]:
    """Return results from rows of terms, or of texts that stand for plain literals; None is unbound."""
    variables = names.split()
    bindings = [
        {
            name: lit(term) if isinstance(term, str) else term
            for name, term in zip(variables, row, strict=True)
            if term is not None
        }
        for row in rows
    ]
    return {"head": {"vars": variables}, "results": {"bindings": bindings}}


def score(one: Term, other: Term, **options: Any) -> float:
    return compare_sparql_results(table("a", (one,)), table("b", (other,)), **options).score


NUMBER_PAIRS = [
    (lit("5", "integer"), lit("5.0", "decimal")),
    (lit("5", "integer"), lit("5E0", "double")),
    (lit("5", "int"), lit("+05", "byte")),
    (lit("0.1", "decimal"), lit("0.10000000001", "decimal")),
    (lit("5", "integer"), lit("5.00000001", "decimal")),
    (lit("NaN", "double"), lit("NaN", "float")),
    (lit("INF", "double"), lit("INF", "float")),
    (lit(" 5 ", "integer"), lit("5", "integer")),
]
UNLIKE_NUMBERS = [
    (lit("5", "integer"), lit("5.000000011", "decimal")),
    (lit("12345678901234567890.1", "decimal"), lit("12345678901234567891.1", "decimal")),
    (lit("INF", "double"), lit("-INF", "double")),
    (lit("1_000", "integer"), lit("1000", "integer")),
    (lit("infinity", "double"), lit("INF", "double")),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("one", "other"), NUMBER_PAIRS)
def test_numbers_are_compared_by_value_whatever_their_datatype(one: Term, other: Term, strict: bool) -> None:
    assert score(one, other, strict=strict) == score(other, one, strict=strict) == 1.0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("one", "other"), UNLIKE_NUMBERS)
def test_numbers_that_differ_are_told_apart(one: Term, other: Term, strict: bool) -> None:
    assert score(one, other, strict=strict) == score(other, one, strict=strict) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "default", "strict"),
    [
        (lit("true", "boolean"), lit("1", "boolean"), 1, 1),
        (lit("false", "boolean"), lit("0", "boolean"), 1, 1),
        (lit("true", "boolean"), lit("false", "boolean"), 0, 0),
        (lit("TRUE", "boolean"), lit("true", "boolean"), 0, 0),
        (lit("true", "boolean"), lit("true"), 1, 0),
        (lit("1", "boolean"), lit("true"), 0, 0),
        (lit("true", "boolean"), lit("1", "integer"), 0, 0),
        (lit("5", "integer"), lit("5"), 1, 0),
        (lit("5.0", "decimal"), lit("5"), 1, 0),
        (lit("5.0", "decimal"), lit("5", "string"), 0, 0),
        (lit("5.0", "decimal"), lit("5", lang="en"), 0, 0),
        (lit("5.0"), lit("5"), 1, 0),
        (lit("1.5E1"), lit("15"), 1, 0),
        (lit("007"), lit("7"), 0, 0),
        (lit("1_000"), lit("1000"), 0, 0),
        (lit("1E999"), lit("2E999"), 0, 0),
        (lit("1E-999"), lit("0"), 0, 0),
        (uri("5.0"), uri("5"), 0, 0),
        (lit("abc", "integer"), lit("abc", "integer"), 1, 1),
        (lit("abc", "integer"), lit("abc"), 1, 0),
        (uri("urn:a"), lit("urn:a"), 1, 0),
        (lit("Oslo", lang="en"), lit("Oslo"), 1, 0),
        (lit("Oslo", lang="en"), lit("Oslo", lang="no"), 1, 0),
        (lit("Oslo", lang="en"), lit("Oslo", lang="EN"), 1, 1),
        (lit("Oslo"), lit("Oslo", "string"), 1, 1),
        (lit("2024-01-01", "date"), lit("2024-01-01"), 1, 0),
        (lit("a", "date"), {"type": "typed-literal", "value": "a", "datatype": XSD + "date"}, 1, 1),
        (lit("Oslo"), lit("OSLO"), 0, 0),
        (lit("a b"), lit("a  b"), 0, 0),
        (blank("b0"), lit("b0"), 0, 0),
        (blank("b0"), uri("b0"), 0, 0),
        (blank("b0"), blank("n7"), 1, 1),
        (None, None, 1, 1),
        (None, lit(""), 0, 0),
        (None, lit("None"), 0, 0),
        (None, blank("b0"), 0, 0),
    ],
)
def test_terms_by_value_or_strictly(one: Term, other: Term, default: float, strict: float) -> None:
    assert score(one, other) == score(other, one) == default
    assert score(one, other, strict=True) == score(other, one, strict=True) == strict


FLOAT, DOUBLE = lit("15063.998", "float"), lit("10000000000.25", "double")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (FLOAT, lit("15063.999", "float"), 1),
        (FLOAT, lit("15064.148", "float"), 1),
        (FLOAT, lit("15064.15", "float"), 0),
        (FLOAT, lit("15063.999", "double"), 1),
        (FLOAT, lit("15063.999", "decimal"), 1),
        (FLOAT, lit("15063.999"), 1),
        (FLOAT, lit("1.5063999E4", "float"), 1),
        (FLOAT, lit("15064", "integer"), 0),
        (FLOAT, lit("15064", "int"), 0),
        (FLOAT, lit("15064"), 0),
        (FLOAT, lit("15064", "float"), 1),
        (FLOAT, lit("15063.999", "string"), 0),
        (FLOAT, lit("-15063.998", "float"), 0),
        (lit("-15063.998", "float"), lit("-15063.999", "float"), 1),
        (lit("5", "integer"), lit("5.0", "float"), 1),
        (lit("5", "integer"), lit("5.000000005", "float"), 1),
        (lit("5", "integer"), lit("5.00001", "float"), 0),
        (lit("0", "float"), lit("1E-8", "float"), 1),
        (lit("0", "float"), lit("2E-8", "float"), 0),
        (DOUBLE, lit("10000000000.255", "double"), 1),
        (DOUBLE, lit("10000000000.27", "double"), 0),
        (DOUBLE, lit("10000000000.255", "decimal"), 1),
        (DOUBLE, lit("10000000000.255"), 1),
        (DOUBLE, lit("10000000005", "float"), 1),
        (lit("10000000000.25"), lit("10000000000.255"), 1),
        (lit("10000000000.25", "decimal"), lit("10000000000.255", "decimal"), 0),
        (lit("1700000000", "double"), lit("1700000001", "double"), 0),
        (lit("1700000000"), lit("1700000001"), 0),
        (lit("1700000000", "integer"), lit("1700000001", "float"), 0),
        (lit("INF", "float"), lit("3.4E38", "float"), 0),
    ],
)
def test_numbers_are_equal_within_the_tolerance_of_their_datatypes(one: Term, other: Term, expected: float) -> None:
    assert score(one, other) == score(other, one) == expected
    for options in ({"ordered": True}, {"ignore_duplicates": False}):
        assert score(one, other, **options) == expected


@pytest.mark.parametrize(
    ("tolerance", "of_floats", "of_doubles", "of_decimals"),
    [
        (None, 1, 0, 0),
        ({}, 1, 0, 0),
        ({"float": 1e-9}, 0, 0, 0),
        ({"float": 1e-9, "double": 1e-6}, 1, 1, 1),
        ({"double": 1e-6}, 1, 1, 1),
        (1e-6, 1, 1, 1),
        (1e-9, 0, 0, 0),
        (0, 0, 0, 0),
        ("1e-6", 1, 1, 1),
    ],
)
def test_a_tolerance_can_be_given(tolerance: Any, of_floats: int, of_doubles: int, of_decimals: int) -> None:
    """The pairs are float and double, double and decimal, decimal and double; a share for all is for decimals too."""
    assert score(FLOAT, lit("15063.999", "double"), tolerance=tolerance) == of_floats
    assert score(lit("15063.998", "double"), lit("15063.999", "decimal"), tolerance=tolerance) == of_doubles
    assert score(lit("15063.998", "decimal"), lit("15063.999", "double"), tolerance=tolerance) == of_decimals
    decimals = lit("15063.998", "decimal"), lit("15063.999", "decimal")
    assert score(*decimals, tolerance=tolerance) == float(of_decimals and not isinstance(tolerance, dict))
    assert score(lit("1000001", "integer"), lit("1000002", "integer"), tolerance=tolerance) == 0.0


@pytest.mark.parametrize("tolerance", [-1e-6, 1, 5, float("nan"), True, "5%", [1e-6], {"float": -1}, {"decimal": 1e-6}])
def test_what_is_no_tolerance_is_refused(tolerance: Any) -> None:
    with pytest.raises(ValueError, match=r"tolerance of decimal|from 0 to below 1"):
        compare_sparql_results(table("a", "x"), table("a", "x"), tolerance=tolerance)


def test_strictly_compared_terms_have_no_tolerance_but_one_that_is_given_for_all() -> None:
    near = lit("15063.999", "float")
    assert score(FLOAT, near, strict=True) == score(FLOAT, near, strict=True, tolerance={"float": 0.1}) == 0.0
    assert score(FLOAT, near, strict=True, tolerance=1e-6) == 1.0
    assert score(FLOAT, lit("15063.998"), strict=True) == 0.0


def floats(*rows: str) -> dict[str, Any]:
    """Return rows of a name and some floats."""
    return table("n a b"[: 2 * len(rows[0].split()) - 1], *[
        (name, *(lit(number, "float") for number in numbers)) for name, *numbers in map(str.split, rows)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("mine", "others", "as_set", "as_bag"),
    [
        (["x 1000"], ["x 1000", "x 1000"], 1, 0),
        (["x 1000"], ["x 1000", "x 1000.001"], 0, 0),
        (["x 1000", "x 1000"], ["x 1000", "x 1000.001"], 1, 1),
        (["x 1000", "x 1000"], ["x 1000.001"], 1, 0),
        (["x 1000", "x 1000.001"], ["x 1000.001", "x 1000.002"], 1, 1),
        (["x 1000", "y 1000"], ["x 1000.001", "y 1000.001"], 1, 1),
        (["x 1000", "y 1000.001"], ["x 1000.001", "y 1000"], 1, 1),
        (["x 1000", "y 2000"], ["x 2000.001", "y 1000.001"], 0, 0),
        (["x 1000 2000", "x 1000.001 3000"], ["x 1000.001 3000", "x 1000.002 2000.001"], 1, 1),
        (["x 1000 3000", "x 2000 4000"], ["x 1000.001 4000.001", "x 2000.001 3000.001"], 0, 0),
    ],
)
def test_rows_of_near_numbers_are_rows_of_their_own(
    mine: list[str], others: list[str], as_set: float, as_bag: float
) -> None:
    for one, other in ((mine, others), (others, mine)):
        assert compare_sparql_results(floats(*one), floats(*other)).score == as_set
        assert compare_sparql_results(floats(*one), floats(*other), ignore_duplicates=False).score == as_bag


def test_decimals_keep_apart_beside_floats() -> None:
    def column(*numbers: str) -> dict[str, Any]:
        return table("n", *[(lit(number[1:], "float" if number[0] == "f" else "decimal"),) for number in numbers])

    mine = column("f1000.007", "d1000.007", "d1000.014")
    assert compare_sparql_results(mine, column("d1000.007", "d1000.014", "f1000.014")).score == 1.0
    assert compare_sparql_results(mine, column("d1000.006", "d1000.015", "f1000.014")).score == 0.0
    assert compare_sparql_results(mine, column("f1000.007", "f1000.008", "f1000.009")).score == 1.0


def test_near_numbers_in_columns_that_do_not_count_never_matter() -> None:
    reference = table("a", (lit("5", "integer"),), (lit("5", "string"),))
    actual = table("b c", (lit("5", "integer"), lit("5.000000005", "decimal")))
    assert compare_sparql_results(reference, table("b", (lit("5", "integer"),))).score == 1.0
    assert compare_sparql_results(reference, actual).score == 1.0


def test_columns_are_found_by_near_numbers() -> None:
    reference = floats("x 1000 2000", "y 1001 2001")
    actual = table("q p o", *[
        (lit(q, "float"), lit(p, "float"), o) for q, p, o in (("2001.001", "1001.001", "y"), ("2000.001", "1000", "x"))
    ])  # fmt: skip
    assert compare_sparql_results(reference, actual).columns == {"n": "o", "a": "p", "b": "q"}


@pytest.mark.full
@pytest.mark.parametrize("mode", [{}, {"ignore_duplicates": False}])
def test_numbers_so_dense_that_all_are_linked_do_not_hide_the_columns(mode: dict[str, Any]) -> None:
    rng = random.Random(5)
    rows = [[rng.uniform(49, 51) for _ in range(5)] for _ in range(1_000)]
    exact = [tuple(lit(f"{number:.6g}", "float") for number in row) for row in rows]
    near = [
        tuple(lit(f"{number * (1 + rng.uniform(-4e-6, 4e-6)):.6g}", "float") for number in reversed(row))
        for row in rows
    ]
    rng.shuffle(near)
    found = compare_sparql_results(table("a b c d e", *exact), table("p q r s t", *near), **mode)
    assert (found.score, found.columns["a"]) == (1.0, "t")
    near[0], near[1] = (near[1][0], *near[0][1:]), (near[0][0], *near[1][1:])
    found = compare_sparql_results(table("a b c d e", *exact), table("p q r s t", *near), **mode)
    assert (found.score, found.missing_row_count) == (0.0, 2)


@pytest.mark.full
@pytest.mark.parametrize("mode", [{}, {"ignore_duplicates": False}])
def test_a_column_of_numbers_that_are_nearly_all_alike(mode: dict[str, Any]) -> None:
    rng = random.Random(3)
    numbers = [rng.uniform(1, 1.00003) for _ in range(2_000)]
    reference = table("a", *[(lit(f"{number:.9f}", "float"),) for number in numbers])
    near = [(lit(f"{number * (1 + rng.uniform(-3e-6, 3e-6)):.9f}", "float"),) for number in numbers]
    found = compare_sparql_results(reference, table("b", *near), **mode)
    assert found.score == 1.0, found.reason
    low = [(lit("0.99999", "float"),)] * 2 + near[2:]
    low[0] = (lit("0.999991", "float"),)
    found = compare_sparql_results(reference, table("b", *low), **mode)
    assert found.score == 0.0
    assert "cut off" not in found.reason


def test_a_near_number_beside_blank_nodes() -> None:
    reference = table("a b", (blank(1), lit("1000", "float")), (blank(2), lit("1000.001", "float")))
    actual = table("a b", (blank(3), lit("1000.002", "float")), (blank(4), lit("1000", "float")))
    merged = table("a b", (blank(3), lit("1000.002", "float")), (blank(3), lit("1000", "float")))
    for mode in ({}, {"ignore_duplicates": False}, {"ordered": True}):
        assert compare_sparql_results(reference, actual, **mode).score == 1.0
        assert compare_sparql_results(reference, merged, **mode).score == 0.0


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (
            lit("15063.998", "decimal"),
            lit("15063.999", "decimal"),
            "1 of 1 row is missing, e.g. (15063.998); 1 row too many, e.g. (15063.999); "
            "15063.999 instead of 15063.998 differs by 7e-8 of its value.",
        ),
        (
            FLOAT,
            lit("15063.999", "float"),
            "The only row matches (`a` is played by `b`); "
            "15063.999 instead of 15063.998 differs by 7e-8 of its value, which is within the tolerance.",
        ),
        (FLOAT, FLOAT, "The only row matches (`a` is played by `b`)."),
        (FLOAT, lit("15163.998", "float"), "No column plays `a`; 1 of 1 row is missing, e.g. (15063.998)."),
        (
            lit("1000001", "integer"),
            lit("1000002", "integer"),
            "No column plays `a`; 1 of 1 row is missing, e.g. (1000001).",
        ),
    ],
)
def test_the_reason_says_by_how_much_near_numbers_differ(one: Term, other: Term, reason: str) -> None:
    assert compare_sparql_results(table("a", (one,)), table("b", (other,))).reason == reason


def test_the_reason_shows_the_near_number_of_the_row_that_is_nearest() -> None:
    reference = table("n v", ("x", lit("1.5", "decimal")), ("y", lit("20.5", "decimal")))
    actual = table(
        "n v", ("x", lit("1.5", "decimal")), ("z", lit("20.5001", "decimal")), ("y", lit("20.501", "decimal"))
    )
    assert "20.501 instead of 20.5 differs by 5e-5 of its value" in compare_sparql_results(reference, actual).reason
    ordered = compare_sparql_results(floats("x 1000", "y 2000"), floats("x 1000", "y 2000.002"), ordered=True)
    assert "2000.002 instead of 2000 differs by 1e-6 of its value, which is within the tolerance" in ordered.reason


def test_rows_are_tuples_not_joined_texts() -> None:
    assert compare_sparql_results(table("a b", ("a", "bc")), table("a b", ("ab", "c"))).score == 0.0


@pytest.mark.parametrize(
    ("mine", "others", "as_set", "as_bag", "as_list"),
    [
        ("AB", "AB", 1, 1, 1),
        ("AB", "BA", 1, 1, 0),
        ("AB", "AAB", 1, 0, 0),
        ("AAB", "ABB", 1, 0, 0),
        ("AAB", "BAA", 1, 1, 0),
        ("AB", "ABC", 0, 0, 0),
        ("ABC", "AB", 0, 0, 0),
    ],
)
def test_rows_as_set_bag_or_list(mine: str, others: str, as_set: float, as_bag: float, as_list: float) -> None:
    reference, actual = table("n", *mine), table("m", *others)
    assert compare_sparql_results(reference, actual).score == as_set
    assert compare_sparql_results(reference, actual, ignore_duplicates=False).score == as_bag
    for ignore_duplicates in (False, True):
        options: dict[str, Any] = {"ordered": True, "ignore_duplicates": ignore_duplicates}
        assert compare_sparql_results(reference, actual, **options).score == as_list


def test_names_decide_only_between_columns_that_both_fit() -> None:
    reference = table("a b", ("x", "x"), ("y", "y"))
    assert compare_sparql_results(reference, table("c b a", *["xxx", "yyy"])).columns == {"a": "a", "b": "b"}
    swapped = compare_sparql_results(table("a b", ("x", "1")), table("b a", ("x", "1")))
    assert (swapped.score, swapped.columns) == (1.0, {"a": "b", "b": "a"})


def test_only_required_columns_count() -> None:
    reference = table("a b", ("x", "1"), ("y", "2"))
    actual = table("c d", ("x", "8"), ("y", "9"))
    assert compare_sparql_results(reference, actual, ["a"]).score == 1.0
    assert compare_sparql_results(reference, actual).score == 0.0
    assert compare_sparql_results(reference, actual, ["a", "a"]).score == 1.0


def test_one_actual_column_stands_for_one_required_column_only() -> None:
    reference = table("a b", ("x", "x"))
    assert compare_sparql_results(reference, table("c", ("x",))).score == 0.0
    assert compare_sparql_results(reference, table("c d", ("x", "x"))).score == 1.0


def test_a_required_column_that_the_reference_lacks_is_the_references_fault() -> None:
    found = compare_sparql_results(table("a", "x"), table("a", "x"), ["a", "b"])
    assert found.score == 0.0
    assert "reference output in the dataset is at fault: it has no column `b`" in found.reason


@pytest.mark.parametrize("required", ["a", 5, [5], {"a": 1}])
def test_required_columns_that_are_no_list_of_names_are_the_references_fault(required: Any) -> None:
    found = compare_sparql_results(table("a", "x"), table("a", "x"), required)
    assert found.score == 0.0
    assert "required_columns is no list" in found.reason


@pytest.mark.parametrize(
    ("reference", "actual", "required", "expected"),
    [
        (table("a"), table("b"), ["a"], 1.0),
        (table("a b"), table("b"), ["a", "b"], 0.0),
        (table("a"), table("b", "x"), ["a"], 0.0),
        (table("a", "x"), table("b"), ["a"], 0.0),
        (table("a", "x"), table("b", "y"), [], 1.0),
        (table("a", "x"), table("b"), [], 0.0),
        (table("a"), table("b"), [], 1.0),
        (table("a", "x"), table("", ()), [], 1.0),
        (table("", ()), table("b", "y"), None, 1.0),
    ],
)
def test_results_without_rows_or_required_columns(reference: Any, actual: Any, required: Any, expected: float) -> None:
    assert compare_sparql_results(reference, actual, required).score == expected


@pytest.mark.parametrize(
    ("reference", "actual", "expected"),
    [
        ({"boolean": True}, {"head": {}, "boolean": True}, 1.0),
        ({"boolean": True}, {"boolean": False}, 0.0),
        ({"boolean": True}, table("a", "x"), 0.0),
        (table("a"), {"boolean": True}, 0.0),
    ],
)
def test_answers_equal_the_same_answer_only(reference: Any, actual: Any, expected: float) -> None:
    assert compare_sparql_results(reference, actual, []).score == expected


def test_an_unreadable_actual_output_scores_0_and_says_so() -> None:
    found = compare_sparql_results(table("a", "x"), "@prefix ex: <http://ex.org/> .")
    assert found.score == 0.0
    assert found.unreadable is not None
    assert found.unreadable.startswith("no JSON")
    assert found.unreadable in found.reason


def test_an_unreadable_reference_is_blamed_on_the_dataset() -> None:
    found = compare_sparql_results("ex:a ex:b ex:c .", table("a", "x"))
    assert (found.score, found.unreadable) == (0.0, None)
    assert "reference output in the dataset is at fault" in found.reason


BLANK_PAIRS = table("a b", (blank(1), "x"), (blank(1), "y"), (blank(2), "x"))


@pytest.mark.parametrize("mode", [{}, {"ignore_duplicates": False}, {"ordered": True}])
def test_blank_nodes_are_equal_up_to_one_renaming(mode: dict[str, Any]) -> None:
    renamed = table("a b", (blank(2), "x"), (blank(2), "y"), (blank("c"), "x"))
    split = table("a b", (blank(1), "x"), (blank(3), "y"), (blank(2), "x"))
    merged = table("a b", (blank(1), "x"), (blank(1), "y"), (blank(1), "x"))
    assert compare_sparql_results(BLANK_PAIRS, renamed, **mode).score == 1.0
    assert compare_sparql_results(BLANK_PAIRS, split, **mode).score == 0.0
    assert compare_sparql_results(BLANK_PAIRS, merged, **mode).score == 0.0


def test_the_reason_names_blank_nodes_where_only_they_differ() -> None:
    one = table("a b", (blank(1), blank(2)), (blank(2), blank(1)))
    other = table("a b", (blank(1), blank(1)), (blank(2), blank(2)))
    assert "blank nodes" in compare_sparql_results(one, other).reason


def edges(*pairs: tuple[object, object]) -> dict[str, Any]:
    return table("a b", *[(blank(one), blank(other)) for one, other in pairs])


def cycle(size: int, start: int = 0) -> list[tuple[object, object]]:
    nodes = [start + (3 * at) % size for at in range(size)]
    return [*pairwise(nodes), (nodes[-1], nodes[0])]


@pytest.mark.full
@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        (cycle(10), cycle(10, 5), 1.0),
        (cycle(10), cycle(5) + cycle(5, 5), 0.0),
        (cycle(5) + cycle(5, 5), cycle(5, 20) + cycle(5), 1.0),
        ([(at, at + 1) for at in range(3_000)], [(-at, -at - 1) for at in range(3_000)], 1.0),
        ([("hub", at) for at in range(3_000)], [("h", -at) for at in range(3_000)], 1.0),
        (list(product(range(20), repeat=2)), list(product(range(20), repeat=2)), 1.0),
    ],
    ids=["cycle", "two cycles for one", "two cycles", "chain", "star", "clique"],
)
def test_blank_nodes_in_symmetric_structures(
    mine: list[tuple[object, object]], others: list[tuple[object, object]], expected: float
) -> None:
    found = compare_sparql_results(edges(*mine), edges(*others))
    assert found.score == expected, found.reason


def doubles(*values: str) -> dict[str, Any]:
    return table("n", *[(lit(value, "double"),) for value in values])


@pytest.mark.parametrize(
    ("mine", "others", "as_set", "as_bag"),
    [
        (("0", "8e-9", "16e-9"), ("0", "8e-9", "16e-9"), 1, 1),
        (("0", "8e-9", "16e-9"), ("4e-9", "12e-9"), 0, 0),
        (("0", "8e-9", "16e-9"), ("4e-9", "12e-9", "12e-9"), 1, 1),
        (("0", "8e-9", "16e-9"), ("8e-9",), 0, 0),
        (("0", "8e-9"), ("16e-9",), 0, 0),
        (("0", "8e-9"), ("8e-9", "16e-9"), 1, 1),
        (("0", "0", "8e-9"), ("8e-9", "16e-9", "16e-9"), 1, 0),
        (("0", "8e-9", "16e-9"), ("8e-9", "8e-9", "8e-9"), 1, 1),
    ],
)
def test_nearness_is_not_passed_on(
    mine: tuple[str, ...], others: tuple[str, ...], as_set: float, as_bag: float
) -> None:
    for one, other in ((mine, others), (others, mine)):
        reference, actual = doubles(*one), doubles(*other)
        assert compare_sparql_results(reference, actual).score == as_set
        assert compare_sparql_results(reference, actual, ignore_duplicates=False).score == as_bag


@pytest.mark.parametrize("ignore_duplicates", [False, True])
def test_thousands_of_numbers_that_are_hardly_larger_than_the_tolerance(ignore_duplicates: bool) -> None:
    reference = doubles(*(f"{at * 9}e-9" for at in range(2_000)))
    near = doubles(*(f"{at * 9 + 8}e-9" for at in range(2_000)))
    far = doubles(*(f"{at * 9 + 8}e-9" for at in range(1_999)), "18010e-9")
    assert compare_sparql_results(reference, near, ignore_duplicates=ignore_duplicates).score == 1.0
    found = compare_sparql_results(reference, far, ignore_duplicates=ignore_duplicates)
    assert (found.score, "cut off" in found.reason) == (0.0, False)


def test_a_number_beside_the_texts_of_its_neighbours() -> None:
    reference = table("n", (lit("5", "integer"),), (lit("5.0", "decimal"),))
    five, five_and_more = lit("5", "string"), lit("5.0", "string")
    assert compare_sparql_results(reference, table("m", (five,))).score == 0.0
    assert compare_sparql_results(reference, table("m", (five,), (five_and_more,))).score == 1.0


def test_a_search_that_reaches_its_bound_scores_0_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    mine, others = ([tuple(rng.choice("01") for _ in range(width)) for _ in range(9)] for width in (4, 8))
    reference, actual = table("a b c d", *mine), table("r s t u v w x y", *others)
    assert "cut off" not in compare_sparql_results(reference, actual).reason
    monkeypatch.setattr("graphrag_eval_lc.matching.rows.coded_rows.MAX_STEPS", 200)
    monkeypatch.setattr("graphrag_eval_lc.matching.rows.coded_rows.MAX_PASSES", 1)
    found = compare_sparql_results(reference, actual)
    assert found.score == 0.0
    assert "cut off at its bound of 200 steps" in found.reason


def test_a_reason_counts_and_shows_what_differs() -> None:
    reference = table("name power", ("OSLO T1", lit("110.0", "decimal")), ("OSLO T2", None), ("ASKER", "1"))
    actual = table("n p", ("OSLO T2", None), ("ASKER", "1"), ("ASKER", "2"))
    found = compare_sparql_results(reference, actual)
    assert (
        found.reason == "1 of 3 rows is missing, e.g. (OSLO T1, 110.0); 1 row too many, e.g. (ASKER, 2); row F1 0.67."
    )
    assert found.missing_rows == [("OSLO T1", "110.0")]
    assert found.extra_rows == [("ASKER", "2")]
    assert (found.missing_row_count, found.extra_row_count) == (1, 1)
    assert found.row_precision == found.row_recall == pytest.approx(2 / 3)
    assert found.row_f1 == pytest.approx(2 / 3)
    assert found.columns == {"name": "n", "power": "p"}


def test_a_reason_names_the_columns_that_nothing_stands_for() -> None:
    found = compare_sparql_results(table("a name", ("x", "Oslo")), table("b", ("x",)))
    assert found.columns == {"a": "b"}
    assert found.reason.startswith("Only 1 column for 2 required; no column plays `name`;")


def test_a_namesake_without_a_common_value_is_the_nearest_column() -> None:
    assert compare_sparql_results(table("a", "x"), table("b a", ("y", "z"))).columns == {"a": "a"}


def test_a_reason_tells_where_the_order_differs() -> None:
    found = compare_sparql_results(table("a", *"ABCD"), table("b", *"ACBD"), ordered=True)
    assert found.reason == "The rows are the same but in another order, from row 2 on."


def test_shown_rows_are_few_and_short() -> None:
    reference = table("a", *[(f"{at}\n{'long' * 100}",) for at in range(50)])
    found = compare_sparql_results(reference, table("a", ("x",)))
    assert (len(found.missing_rows), found.missing_row_count) == (20, 50)
    assert all(len(text or "") <= 60 and "\n" not in (text or "") for row in found.missing_rows for text in row)


def test_shares_of_rows_lie_between_0_and_1_where_numbers_meet_texts_like_them() -> None:
    double, integer, five = lit("5.00", "double"), lit("5", "integer"), lit("5", "string")
    reference = table("a b c", (double, double, "a"), (double, five, "a"))
    actual = table("p q r s t", *[(five, number, "a", five, five) for number in (integer, double)])
    found = compare_sparql_results(reference, actual)
    assert found.score == 0.0
    assert 0.0 <= found.row_precision <= 1.0
    assert 0.0 <= found.row_recall <= 1.0
    assert "2 of 2 rows are missing" in found.reason


def test_one_parsed_reference_serves_many_comparisons() -> None:
    reference = parse_sparql_results(json.dumps(table("a", "x", "y")))
    scores = [compare_sparql_results(reference, table("b", *rows)).score for rows in ("xy", "yx", "x", "xyz")]
    assert scores == [1.0, 1.0, 0.0, 0.0]


def test_nothing_that_is_passed_in_is_changed() -> None:
    reference, actual = table("a b", ("x", blank(1))), table("b a", (blank(1), "y"))
    before = json.dumps([reference, actual])
    found: SparqlComparison = compare_sparql_results(reference, actual, ["a", "b"])
    assert found.reason
    assert json.dumps([reference, actual]) == before


def step(results: Any, **keys: Any) -> StepView:
    return StepView({"name": "sparql_query", "output": json.dumps(results), **keys})


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, 1.0),
        ({"ordered": True}, 0.0),
        ({"ordered": None, "ignore_duplicates": None, "strict": None, "required_columns": None}, 1.0),
        ({"ignore_duplicates": False}, 0.0),
        ({"required_columns": ["a"]}, 1.0),
        ({"required_columns": []}, 1.0),
        ({"required_columns": ["z"]}, 0.0),
        ({"strict": True}, 0.0),
        ({"ordered": "no"}, 0.0),
        ({"tolerance": "no"}, 0.0),
        ({"tolerance": 1e-6}, 1.0),
        ({"tolerance": {"float": 1e-6, "double": 1e-12}}, 1.0),
    ],
)
def test_the_keys_of_a_reference_step_say_how_to_compare(keys: dict[str, Any], expected: float) -> None:
    reference = table("a b", ("x", "1"), ("y", "2"))
    actual = table("c d", ("y", lit("2", lang="en")), ("x", "1"), ("x", "1"))
    found = match_row_steps(step(reference, **keys), step(actual))
    assert found.score == expected
    assert (found.closeness() == 1.0) == (expected == 1.0)
    assert found.reason()


def test_the_tolerance_of_a_reference_step() -> None:
    reference, actual = table("a", (lit("5.5", "decimal"),)), table("b", (lit("5.50001", "decimal"),))
    for tolerance, expected in ((None, 0.0), (1e-6, 0.0), (1e-5, 1.0), ("1e-5", 1.0)):
        assert match_row_steps(step(reference, tolerance=tolerance), step(actual)).score == expected
    fault = match_row_steps(step(reference, tolerance="5%"), step(actual)).reason()
    assert fault.startswith("The reference step in the dataset is at fault: `tolerance` is '5%': Give a share")


def test_a_step_of_another_media_type_is_unreadable() -> None:
    actual = StepView({"name": "sparql_query", "output": "ex:a ex:b ex:c ."})
    found = match_row_steps(step(table("a", "x")), actual)
    assert found.score == 0.0
    assert found.unreadable is not None


def test_closeness_orders_steps_that_all_score_0() -> None:
    reference = step(table("a b", ("x", "1"), ("y", "2"), ("z", "3")))
    actual = [
        table("a b", ("x", "1"), ("y", "2")),
        table("a b", ("x", "1"), ("y", "3")),
        table("a b", ("x", "5"), ("y", "6")),
        table("b", ("q",)),
    ]
    closeness = [match_row_steps(reference, step(results)).closeness() for results in actual]
    assert closeness == sorted(closeness, reverse=True)
    assert len(set(closeness)) == len(closeness)
    assert closeness[0] < 1.0


def test_a_step_of_nearly_the_same_numbers_is_closer_than_one_without() -> None:
    reference = step(table("total", (lit("15063.998", "decimal"),)))
    near, far = (step(table("sum", (lit(number, "decimal"),))) for number in ("15063.999", "7.5"))
    assert match_row_steps(reference, near).closeness() > match_row_steps(reference, far).closeness() == 0.0
