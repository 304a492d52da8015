"""Laws for comparisons and grades of any two tables."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows import SparqlComparison, compare_sparql_results

Cell = tuple[str, str] | None  # type and text; None is unbound
Rows = list[tuple[Cell, ...]]
Mode = dict[str, Any]

XSD = "http://www.w3.org/2001/XMLSchema#"
TEXTS: list[Cell] = [("literal", "a"), ("literal", "b"), ("uri", "urn:a"), ("integer", "5"), ("double", "6.5"), None]
BLANKS: list[Cell] = [("bnode", f"b{at}") for at in range(3)]
# Too long to be guessed.
NAMES: list[Cell] = [("uri", f"urn:example:value:{letter}") for letter in "abcdef"]
MODES: list[Mode] = [{}, {"ordered": True}, {"ignore_duplicates": False}]


def term(kind: str, text: str) -> dict[str, str]:
    datatype = {"datatype": XSD + kind} if kind in ("integer", "double", "float", "boolean") else {}
    return {"type": "literal" if datatype else kind, "value": text, **datatype}


def table(rows: Rows, names: list[str] | None = None) -> dict[str, Any]:
    names = [f"c{at}" for at in range(len(rows[0]))] if names is None else names
    bindings = [{name: term(*cell) for name, cell in zip(names, row, strict=True) if cell} for row in rows]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def compared(mine: Rows, others: Rows, names: list[str] | None = None, **options: Any) -> SparqlComparison:
    return compare_sparql_results(table(mine), table(others, names), **options)


@st.composite
def tables(draw: st.DrawFn, cells: list[Cell] | None = None, width: int = 3) -> Rows:
    """Draw a small table with few distinct values, so that many cells are equal."""
    pool = draw(st.lists(st.sampled_from(cells or TEXTS + BLANKS), min_size=1, max_size=5, unique=True))
    row = st.tuples(*[st.sampled_from(pool)] * draw(st.integers(1, width)))
    return draw(st.lists(row, min_size=1, max_size=4))


@st.composite
def pairs(draw: st.DrawFn, cells: list[Cell] | None = None) -> tuple[Rows, Rows]:
    """Draw a table and a variant: columns reordered, cells changed, columns and rows added or removed."""
    mine = draw(tables(cells))
    rng = draw(st.randoms(use_true_random=False))
    pool = [*(cells or TEXTS + BLANKS), ("uri", "urn:example:other:1")]
    width = max(1, len(mine[0]) + rng.choice([-1, 0, 0, 0, 1]))
    columns = rng.sample(range(max(width, len(mine[0]))), width)
    others: Rows = []
    for row in mine:
        longer = [rng.choice(pool) if rng.random() < 0.1 else cell for cell in row]
        longer += [rng.choice(pool) for _ in range(width - len(row))]
        if rng.random() < 0.9 or not others:
            others.append(tuple(longer[at] for at in columns))
    if rng.random() < 0.3:
        others.append(rng.choice([*others, tuple(rng.choice(pool) for _ in range(width))]))
    rng.shuffle(others)
    return mine, others


def shuffled(rows: Rows, rng: random.Random, *, is_ordered: bool = False) -> tuple[Rows, list[str]]:
    """Return rows with columns shuffled, blank nodes relabelled and, unless ordered, rows shuffled."""
    columns = rng.sample(range(len(rows[0])), len(rows[0]))
    labels = {f"b{at}": f"n{new}" for at, new in enumerate(rng.sample(range(3), 3))}
    others: Rows = [
        tuple(
            ("bnode", labels[cell[1]]) if cell and cell[0] == "bnode" else cell for cell in (row[at] for at in columns)
        )
        for row in rows
    ]
    return others if is_ordered else rng.sample(others, len(others)), [f"x{at}" for at in columns]


# --- verdicts --------------------------------------------------------------------------------------------------------


@given(rows=tables(), mode=st.sampled_from(MODES), strict=st.booleans())
def test_results_match_themselves(rows: Rows, mode: Mode, strict: bool) -> None:
    found = compared(rows, rows, strict=strict, **mode)
    assert (found.score, found.row_f1, found.missing_row_count, found.extra_row_count) == (1.0, 1.0, 0, 0)
    assert found.columns == {f"c{at}": f"c{at}" for at in range(len(rows[0]))}


@given(rows=tables(width=4), mode=st.sampled_from(MODES), strict=st.booleans(), rng=st.randoms(use_true_random=False))
def test_names_labels_extra_columns_and_order_do_not_matter(
    rows: Rows, mode: Mode, strict: bool, rng: random.Random
) -> None:
    others, names = shuffled(rows, rng, is_ordered="ordered" in mode)
    wider: Rows = [(*row, ("literal", f"free {at}")) for at, row in enumerate(others)]
    found = compared(rows, wider, [*names, "free"], strict=strict, **mode)
    assert found.score == 1.0, found.reason


@given(rows=tables(), rng=st.randoms(use_true_random=False))
def test_duplicates_count_only_in_bags_and_lists(rows: Rows, rng: random.Random) -> None:
    more = [*rows, rng.choice(rows)]
    assert compared(rows, more).score == compared(more, rows).score == 1.0
    for mode in MODES[1:]:
        found = compared(rows, more, **mode)
        assert (found.score, found.extra_row_count) == (0.0, 1)


@pytest.mark.parametrize("mode", MODES)
@given(rows=tables(), rng=st.randoms(use_true_random=False))
def test_changed_cell_or_added_row_with_new_values_never_matches(mode: Mode, rows: Rows, rng: random.Random) -> None:
    new: Cell = ("literal", "new")
    more = [*rows, tuple(new for _ in rows[0])]
    found = compared(rows, more, **mode)
    assert (found.score, found.extra_row_count) == (0.0, 1)
    assert compared(more, rows, **mode).missing_row_count == 1
    changed = list(rows)
    at, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
    changed[at] = tuple(new if index == column else cell for index, cell in enumerate(rows[at]))
    assert compared(rows, changed, **mode).score == 0.0


@given(pair=pairs(TEXTS), mode=st.sampled_from(MODES))
def test_outcome_agrees_with_trying_all_columns(pair: tuple[Rows, Rows], mode: Mode) -> None:
    mine, others = pair
    as_collection: Callable[[Rows], Any] = list if "ordered" in mode else set if not mode else Counter
    choices = permutations(range(len(others[0])), len(mine[0]))
    fits = any(
        as_collection(mine) == as_collection([tuple(row[at] for at in choice) for row in others]) for choice in choices
    )
    found = compared(mine, others, **mode)
    assert found.score == float(fits), found.reason
    assert 0.0 <= found.row_precision <= 1.0
    assert 0.0 <= found.row_recall <= 1.0
    assert found.reason.endswith(".")
    assert found.columns.keys() <= {f"c{at}" for at in range(len(mine[0]))}
    assert len(set(found.columns.values())) == len(found.columns)


@given(pair=pairs(), mode=st.sampled_from(MODES), column=st.sampled_from(TEXTS + BLANKS))
def test_extra_column_never_breaks_a_match(pair: tuple[Rows, Rows], mode: Mode, column: Cell) -> None:
    mine, others = pair
    wider = [(*row, column) for row in others]
    assert compared(mine, wider, **mode).score >= compared(mine, others, **mode).score


# --- grades ----------------------------------------------------------------------------------------------------------


@given(pair=pairs(), mode=st.sampled_from(MODES))
def test_grade_is_1_only_for_a_match_without_extra_columns(pair: tuple[Rows, Rows], mode: Mode) -> None:
    mine, others = pair
    found = compared(mine, others, **mode)
    assert 0.0 <= found.grade <= 1.0
    assert found.grade_reason
    assert found.grade < 1.0 or found.score == 1.0
    assert compared(mine, mine, **mode).grade == 1.0


@given(pair=pairs(NAMES), mode=st.sampled_from(MODES), index=st.integers(0, 5))
def test_gaming_does_not_pay(pair: tuple[Rows, Rows], mode: Mode, index: int) -> None:
    """Adding a wrong row or an unneeded column never raises the grade."""
    mine, others = pair
    grade = compared(mine, others, **mode).grade
    wrong: tuple[Cell, ...] = tuple(("uri", f"urn:example:wrong:{at}") for at in range(len(others[0])))
    assert compared(mine, [*others[:index], wrong, *others[index:]], **mode).grade <= grade + 1e-9
    wider: Rows = [(*row, ("uri", "urn:example:more")) for row in others]
    assert compared(mine, wider, **mode).grade <= grade + 1e-9


def test_returning_everything_has_a_low_grade() -> None:
    cities: Rows = [
        (("uri", f"urn:city:{at}"), ("uri", "urn:City"), ("integer", str(2000 + at % 5))) for at in range(30)
    ]
    everything: Rows = [
        (("uri", f"urn:city:{at}"), ("uri", f"urn:p{at % 7}"), ("integer", str(at))) for at in range(1000)
    ]
    assert compared([(("uri", "urn:city:1"),)], everything).grade < 0.01
    others: Rows = [(("uri", f"urn:other:{at}"), *row[1:]) for at, row in enumerate(cities)]
    assert compared(cities, others).grade < 0.1
    numbers: Rows = [tuple(("integer", str(at)) for at in range(300))]
    assert compared([(("integer", "5"),)], numbers).grade < 0.05


def test_arguments_are_not_modified_and_outcomes_are_deterministic() -> None:
    rng = random.Random(3)
    mine: Rows = [tuple(rng.choice(TEXTS) for _ in range(4)) for _ in range(20)]
    reference, actual = table(mine), table(mine[::-1][:18], ["s", "t", "u", "v"])
    before = repr((reference, actual))
    first, second = compare_sparql_results(reference, actual), compare_sparql_results(reference, actual)
    assert (first.reason, first.columns, first.grade) == (second.reason, second.columns, second.grade)
    assert first.missing_rows == second.missing_rows
    assert repr((reference, actual)) == before


@pytest.mark.parametrize("tolerance", [-1e-6, 1, 5, float("nan"), True, "5%", [1e-6], {"float": -1}, {"decimal": 1e-6}])
def test_invalid_tolerance_is_rejected(tolerance: Any) -> None:
    with pytest.raises(ValueError, match=r"decimal|from 0 to below 1"):
        compared([(("literal", "x"),)], [(("literal", "x"),)], tolerance=tolerance)


# --- tables that are hard to compare ---------------------------------------------------------------------------------


def twisted(count: int, rng: random.Random) -> tuple[Rows, Rows]:
    """Return two graphs of blank nodes that look alike locally but differ: one ring, and two rings."""
    one = [(at, (at + 1) % count) for at in range(count)]
    two = [(at, at + 1 if (at + 1) % (count // 2) else at + 1 - count // 2) for at in range(count)]
    sides = []
    for edges in (one, two):
        order = rng.sample(range(count), count)
        sides.append([tuple(("bnode", f"b{order[at]}") for at in edge) for edge in edges])
    return sides[0], sides[1]  # type: ignore[return-value]


def test_locally_identical_graphs_never_get_a_wrong_outcome() -> None:
    rng = random.Random(1)
    for count in (6, 12, 40):
        ring, two_rings = twisted(count, rng)
        assert compared(ring, two_rings).outcome in ("mismatch", "undecided")
        assert compared(ring, ring[::-1]).outcome in ("match", "undecided")


@pytest.mark.parametrize("width", [8, 25])
def test_many_columns_of_two_values_end_in_time(width: int) -> None:
    rng = random.Random(width)
    mine: Rows = [tuple(("literal", rng.choice("01")) for _ in range(width)) for _ in range(12)]
    others, names = shuffled([(*row, *(("literal", rng.choice("01")) for _ in range(width))) for row in mine], rng)
    assert compared(mine, others, names).outcome in ("match", "undecided")
    changed = [tuple(("literal", "2") if at == 0 else cell for at, cell in enumerate(row)) for row in mine]
    assert compared(changed, others, names).outcome == "mismatch"
