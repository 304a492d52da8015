"""What rows are worth: surplus, chance, order and empty results, each told by an example."""

from typing import Any

import pytest

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import compare_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import match_row_steps

XSD = "http://www.w3.org/2001/XMLSchema#"


def term(value: Any) -> dict[str, str]:
    if isinstance(value, bool):
        return {"type": "literal", "value": str(value).lower(), "datatype": f"{XSD}boolean"}
    if isinstance(value, int):
        return {"type": "literal", "value": str(value), "datatype": f"{XSD}integer"}
    if isinstance(value, float):
        return {"type": "literal", "value": repr(value), "datatype": f"{XSD}double"}
    return {"type": "uri" if value.startswith("urn:") else "literal", "value": value}


def results(names: str, *rows: tuple[Any, ...]) -> dict[str, Any]:
    variables = names.split()
    bindings = [
        {name: term(value) for name, value in zip(variables, row, strict=True) if value is not None} for row in rows
    ]
    return {"head": {"vars": variables}, "results": {"bindings": bindings}}


def grade(reference: Any, actual: Any, required: list[str] | None = None, **options: Any) -> float:
    return compare_sparql_results(reference, actual, required, **options).grade


FIVE = results("count", (5,))
CITIES = [(f"urn:city:{at}", "urn:City", 2000 + at % 5, 100.5 + at) for at in range(30)]
CITY_TABLE = results("city class year load", *CITIES)


def test_the_example_of_the_formula_is_worth_what_it_says() -> None:
    reference = results("name n", ("Oslo", 1), ("Bergen", 2))
    actual = results("name n x", ("Oslo", 1, "?"), ("Bergen", 3, "?"), ("Paris", 9, "?"))
    found = compare_sparql_results(reference, actual)
    assert found.grade == pytest.approx(6 / 13)
    assert found.grade_reason == (
        "Worth 0.46: recall 0.75 and precision 0.33 of the cells; nobody asked for 1 column: `x`."
    )


def test_right_rows_and_nothing_else_are_worth_1() -> None:
    assert grade(CITY_TABLE, CITY_TABLE) == 1.0
    renamed = results("a b c d", *[(load, year, kind, city) for city, kind, year, load in reversed(CITIES)])
    assert grade(CITY_TABLE, renamed) == 1.0
    assert grade(results("a b", (1, 1), (2, 3)), results("a b", (1, 1), (2, 3)), ["b"]) == 1.0


def test_a_third_of_the_rows_is_worth_half_and_one_wrong_column_of_four_a_quarter_less() -> None:
    assert grade(CITY_TABLE, results("city class year load", *CITIES[:10])) == pytest.approx(0.5)
    wrong = results("city class year load", *[(*row[:3], row[3] + 1_000) for row in CITIES])
    assert grade(CITY_TABLE, wrong) == pytest.approx(0.75)


def test_a_class_and_a_year_do_not_make_wrong_rows_right() -> None:
    wrong = results("city class year load", *[(f"urn:other:{at}", *row[1:3], 1.5) for at, row in enumerate(CITIES)])
    assert 0 <= grade(CITY_TABLE, wrong) < 0.05
    one_column = results("class", *[("urn:City",)] * 30)
    assert grade(CITY_TABLE, one_column) < 0.05


def test_a_single_column_of_every_term_is_worth_nearly_nothing() -> None:
    everything = results("s p o", *[(f"urn:city:{at}", f"urn:p{at % 7}", at) for at in range(1_000)])
    assert grade(results("city", ("urn:city:1",)), everything) < 0.01


def test_columns_that_nobody_asked_for_have_their_price() -> None:
    rows = [("urn:a", 1), ("urn:b", 2)]
    assert grade(results("x", *[row[:1] for row in rows]), results("x y", *rows)) == pytest.approx(2 / 3)
    three = results("x y z", *[(*row, "more") for row in rows])
    assert grade(results("x", *[row[:1] for row in rows]), three) == pytest.approx(0.5)


def test_columns_of_the_reference_that_are_not_required_were_asked_for() -> None:
    assert grade(CITY_TABLE, CITY_TABLE, ["city"]) == 1.0
    renamed = results("a b c d", *CITIES)
    assert grade(CITY_TABLE, renamed, ["city"]) == 1.0
    label = results("city Load", *[(row[0], at) for at, row in enumerate(CITIES)])  # another value of the same name
    assert grade(CITY_TABLE, label, ["city"]) == 1.0
    assert grade(CITY_TABLE, results("city x", *[(row[0], "x") for row in CITIES]), ["city"]) < 1.0


def test_a_count_among_300_numbers_is_worth_nothing() -> None:
    many = results(" ".join(f"c{at}" for at in range(300)), tuple(range(300)))
    assert compare_sparql_results(FIVE, many).score == 1.0
    assert grade(FIVE, many) == 0.0


def test_both_booleans_are_worth_nothing_under_names_in_two_cases_too() -> None:
    reference = results("ok", (True,))
    assert grade(reference, results("x y", (True, False))) == 0.0
    assert grade(reference, results("ok OK", (False, True))) == 0.0
    assert grade(reference, results("x", (True,))) == 1.0
    assert grade(reference, results("name x", ("Oslo", True))) == pytest.approx(2 / 3)


def test_a_count_is_trusted_by_its_name_or_as_the_only_number() -> None:
    assert grade(FIVE, results("name n", ("Oslo", 5))) == pytest.approx(2 / 3)
    assert grade(FIVE, results("Count n", (5, 7))) == pytest.approx(2 / 3)
    doubted = compare_sparql_results(FIVE, results("n m", (5, 7)))
    assert doubted.grade == pytest.approx(0.8 * 2 / 3)
    assert "chance may explain `count`" in doubted.grade_reason


def test_a_column_of_the_required_name_plays_it_where_another_has_the_same_cells() -> None:
    assert grade(FIVE, results("x Count", (5, 5))) == pytest.approx(2 / 3)


def test_long_columns_need_no_names() -> None:
    reference = results("city open", *[(f"urn:city:{at}", at % 3 == 0) for at in range(40)])
    actual = results("c a b", *[(f"urn:city:{at}", at % 3 == 0, at % 2 == 0) for at in range(40)])
    assert grade(reference, actual) == pytest.approx(0.8)
    constants = results("c a b", *[(f"urn:city:{at}", True, False) for at in range(40)])
    assert grade(reference, constants) < 0.5


@pytest.mark.parametrize(
    ("order", "worth"), [([0, 1, 2, 3], 1.0), ([1, 0, 2, 3], 5 / 6), ([3, 2, 1, 0], 0.0), ([3, 0, 1, 2], 0.5)]
)
def test_order_counts_by_the_pairs_that_stand_right(order: list[int], worth: float) -> None:
    rows = [(f"urn:{at}", at) for at in range(4)]
    actual = results("x n", *[rows[at] for at in order])
    assert grade(results("x n", *rows), actual, ordered=True) == pytest.approx(worth)
    assert grade(results("x n", *rows), actual) == 1.0


def test_order_is_that_of_the_rows_that_fit() -> None:
    rows = [(f"urn:{at}", at) for at in range(4)]
    some = results("x n", rows[0], ("urn:other", 99), rows[3])
    assert grade(results("x n", *rows), some, ordered=True) == pytest.approx(8 / 14)
    swapped = results("x n", rows[3], ("urn:other", 99), rows[0])
    assert grade(results("x n", *rows), swapped, ordered=True) == 0.0
    named = results("x n", *[(name, n + 50) for name, n in reversed(rows)])
    assert grade(results("x n", *rows), named, ordered=True) == 0.0
    one = results("x n", rows[2])
    assert grade(results("x n", *rows), one, ordered=True) == pytest.approx(4 / 10)


def test_duplicates_are_never_out_of_order_among_themselves() -> None:
    rows = [("urn:a",), ("urn:a",), ("urn:b",)]
    reference = results("x", *rows)
    assert grade(reference, results("x", *rows), ordered=True) == 1.0
    assert grade(reference, results("x", ("urn:a",), ("urn:b",), ("urn:a",)), ordered=True) == pytest.approx(2 / 3)
    assert grade(reference, results("x", ("urn:a",), ("urn:b",)), ordered=True) == pytest.approx(0.8)


def test_duplicates_count_where_they_are_not_ignored() -> None:
    once, twice = results("x", ("urn:a",)), results("x", ("urn:a",), ("urn:a",))
    assert grade(once, twice) == 1.0
    assert grade(once, twice, ignore_duplicates=False) == pytest.approx(2 / 3)


def test_numbers_fit_within_their_tolerance_one_by_one() -> None:
    loads = [1000.0 + at / 1_000 for at in range(50)]  # each within the tolerance of the next
    single = {"datatype": f"{XSD}float"}
    reference, actual = results("n load", *enumerate(loads)), results("n load", *enumerate(loads))
    for row in (*reference["results"]["bindings"], *actual["results"]["bindings"]):
        row["load"] |= single
    for row in actual["results"]["bindings"][:10]:
        row["load"]["value"] = str(float(row["load"]["value"]) + 0.5)
    assert compare_sparql_results(reference, actual).score == 0.0
    assert grade(reference, actual) == pytest.approx(0.9)


def test_rows_that_differ_in_their_blank_nodes_alone_are_worth_less_than_1() -> None:
    def tree(*edges: tuple[str, str]) -> dict[str, Any]:
        rows = [{"a": {"type": "bnode", "value": one}, "b": {"type": "bnode", "value": two}} for one, two in edges]
        return {"head": {"vars": ["a", "b"]}, "results": {"bindings": rows}}

    found = compare_sparql_results(tree(("x", "y"), ("y", "z")), tree(("x", "y"), ("z", "z")))
    assert found.score == 0.0
    assert 0.5 < found.grade < 1.0


def test_ask_is_worth_1_or_nothing() -> None:
    yes, no = ({"head": {}, "boolean": answer} for answer in (True, False))
    assert [grade(yes, yes), grade(yes, no), grade(yes, FIVE), grade(FIVE, yes)] == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("actual", "worth"),
    [
        (results("city load"), 1.0),
        (results("Load City"), 1.0),
        (results("city load x"), 0.8),
        (results("a b"), 0.5),
        ([], 0.5),
        (results("a b c"), 0.0),
        (results("a"), 0.0),
        (results("city load", ("urn:a", 1)), 0.0),
    ],
)
def test_an_empty_reference_leaves_only_names_to_compare(actual: Any, worth: float) -> None:
    found = compare_sparql_results(results("city load"), actual)
    assert found.grade == pytest.approx(worth)
    rows = not isinstance(actual, list) and actual["results"]["bindings"]
    assert rows or found.grade_reason.endswith("an empty reference tells little of a query.")


def test_without_required_columns_rows_or_none_is_all_that_counts() -> None:
    assert grade(FIVE, results("a b", ("x", "y")), []) == 1.0
    assert grade(FIVE, results("a"), []) == 0.0
    assert grade(results("a"), results("b"), []) == 0.5


def test_no_rows_and_no_common_cell_are_worth_nothing() -> None:
    assert grade(FIVE, results("count")) == 0.0
    assert grade(FIVE, results("count", (6,))) == 0.0


def test_what_cannot_be_read_is_worth_nothing_for_the_same_reason() -> None:
    found = compare_sparql_results(FIVE, "Sorry.")
    assert (found.grade, found.grade_reason) == (0.0, found.reason)
    at_fault = compare_sparql_results(FIVE, FIVE, ["absent"])
    assert (at_fault.grade, at_fault.grade_reason) == (0.0, at_fault.reason)
    assert "at fault" in at_fault.grade_reason


def step(output: Any, **more: Any) -> dict[str, Any]:
    return {"name": "sparql_query", "status": "success", "output": output, **more}


def test_a_step_is_worth_its_grade_and_scores_as_before() -> None:
    reference = StepView(step(CITY_TABLE))
    part = match_row_steps(reference, StepView(step(results("city class year load", *CITIES[:10]))))
    assert (part.score, part.worth) == (0.0, pytest.approx(0.5))
    assert part.grade_reason is not None
    assert part.grade_reason() == "Worth 0.50: recall 0.33 and precision 1.00 of the cells."
    whole = match_row_steps(reference, StepView(step(CITY_TABLE)))
    assert (whole.score, whole.worth) == (1.0, 1.0)
