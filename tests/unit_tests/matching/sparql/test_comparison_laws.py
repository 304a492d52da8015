"""Laws of the comparison, among them agreement with a slow and plain one."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.matching.sparql import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
Cell = tuple[str, str, str] | None
Rows = list[tuple[Cell, ...]]


def typed(text: str, datatype: str) -> Cell:
    return ("literal", text, datatype)


BLANK_NODES: list[Cell] = [("bnode", f"b{at}", "") for at in range(3)]
CELLS: list[Cell] = [
    None,
    ("literal", "a", ""),
    ("uri", "a", ""),
    ("literal", "5", ""),
    ("literal", "true", ""),
    typed("5", "integer"),
    typed("5.0", "decimal"),
    typed("5.000000008", "double"),
    typed("5.000000016", "decimal"),
    typed("true", "boolean"),
    typed("1", "boolean"),
    typed("1", "integer"),
]
# Cells that can be compared without reading values, but for the texts that are written like numbers.
PLAIN: list[Cell] = [
    ("literal", "a", ""),
    ("literal", "5", ""),
    ("literal", "5.0", ""),
    typed("5", "integer"),
    typed("5.0", "decimal"),
    typed("5.00", "double"),
    typed("5.0", "integer"),
    typed("-0", "integer"),
    typed("0.0", "double"),
    typed("false", "boolean"),
]
NUMERIC = {"integer", "decimal", "double"}
MODES: list[dict[str, Any]] = [{"ordered": True}, {"ignore_duplicates": True}, {"ignore_duplicates": False}]


def is_number(cell: tuple[str, str, str]) -> bool:
    return cell[2] in NUMERIC and not (cell[2] == "integer" and "." in cell[1])


def cells_equal(one: Cell, other: Cell) -> bool:
    if one is None or other is None:
        return one is other
    if "bnode" in (one[0], other[0]):
        return one == other
    if is_number(one) and is_number(other):
        return abs(Fraction(one[1]) - Fraction(other[1])) <= Fraction(1, 10**8)
    if one[2] == other[2] == "boolean":
        return (one[1] in ("true", "1")) == (other[1] in ("true", "1"))
    return one[1] == other[1]


def rows_equal(one: tuple[Cell, ...], other: tuple[Cell, ...]) -> bool:
    return all(map(cells_equal, one, other))


def bags_equal(mine: Rows, others: Rows) -> bool:
    if len(mine) != len(others):
        return False
    if not mine:
        return True
    return any(
        rows_equal(mine[0], other) and bags_equal(mine[1:], others[:at] + others[at + 1 :])
        for at, other in enumerate(others)
    )


def rows_match(mine: Rows, others: Rows, ordered: bool, ignore_duplicates: bool) -> bool:
    if ordered:
        return len(mine) == len(others) and all(map(rows_equal, mine, others))
    if not ignore_duplicates:
        return bags_equal(mine, others)
    return all(any(rows_equal(row, other) for other in others) for row in mine) and all(
        any(rows_equal(row, other) for other in mine) for row in others
    )


def renamings(mine: Rows, others: Rows) -> Iterator[Rows]:
    """Give the other rows under every one-to-one renaming of their blank nodes to mine."""
    labels, other_labels = (
        sorted({cell[1] for row in rows for cell in row if cell is not None and cell[0] == "bnode"})
        for rows in (mine, others)
    )
    if len(labels) != len(other_labels):
        return
    for order in permutations(labels):
        new = dict(zip(other_labels, order, strict=True))
        yield [
            tuple(("bnode", new[cell[1]], "") if cell is not None and cell[0] == "bnode" else cell for cell in row)
            for row in others
        ]


def plain_score(mine: Rows, others: Rows, width: int, ordered: bool = False, ignore_duplicates: bool = True) -> float:
    for columns in permutations(range(width), len(mine[0])):
        projected = [tuple(row[at] for at in columns) for row in others]
        for renamed in renamings(mine, projected):
            if rows_match(mine, renamed, ordered, ignore_duplicates):
                return 1.0
    return 0.0


def as_results(rows: Rows, names: list[str]) -> dict[str, Any]:
    bindings = []
    for row in rows:
        binding = {}
        for name, cell in zip(names, row, strict=True):
            if cell is not None:
                kind, text, datatype = cell
                binding[name] = {"type": kind, "value": text} | ({"datatype": XSD + datatype} if datatype else {})
        bindings.append(binding)
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def named(width: int) -> list[str]:
    return [f"c{at}" for at in range(width)]


@st.composite
def tables(draw: st.DrawFn, max_width: int = 3) -> Rows:
    """Small tables of few values, so that much is ambiguous."""
    cells = draw(st.sampled_from([CELLS + BLANK_NODES, PLAIN]))
    pool = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=5, unique=True))
    width = draw(st.integers(1, max_width))
    row = st.tuples(*[st.sampled_from(pool)] * width)
    return draw(st.lists(row, min_size=1, max_size=4))


@st.composite
def pairs_of_tables(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """A table and one made from it: columns and rows in another order, cells changed, columns and rows added."""
    mine = draw(tables())
    rng = draw(st.randoms(use_true_random=False))
    cells = PLAIN if all(cell in PLAIN for row in mine for cell in row) else CELLS + BLANK_NODES
    pool = sorted({cell for row in mine for cell in row} | {rng.choice(cells)}, key=str)
    near = {
        cell: [other for other in cells if cells_equal(cell, other)] if cell not in BLANK_NODES else [cell]
        for cell in pool
    }
    width = len(mine[0]) + rng.choice([0, 0, 1, 2])
    columns = rng.sample(range(width), width)
    others = []
    for row in mine:
        longer = [rng.choice(near[cell]) if rng.random() < 0.3 else cell for cell in row]
        longer += [rng.choice(pool) for _ in range(width - len(row))]
        others.append(tuple(longer[at] for at in columns))
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = rng.randrange(len(others))
        changed = list(others[at])
        changed[rng.randrange(width)] = rng.choice(pool)
        others[at] = tuple(changed)
    if rng.random() < 0.3:
        others.append(rng.choice(others))
    if rng.random() < 0.7:
        rng.shuffle(others)
    return mine, others


@settings(max_examples=1_200)
@given(pair=pairs_of_tables(), mode=st.sampled_from(MODES))
def test_the_score_is_that_of_trying_everything(pair: tuple[Rows, Rows], mode: dict[str, Any]) -> None:
    mine, others = pair
    found = compare_sparql_results(
        as_results(mine, named(len(mine[0]))), as_results(others, named(len(others[0]))), **mode
    )
    assert found.score == plain_score(mine, others, len(others[0]), **mode)
    assert 0.0 <= found.row_precision <= 1.0
    assert 0.0 <= found.row_recall <= 1.0
    assert found.reason.endswith(".")
    if found.score:
        assert (found.row_f1, found.missing_row_count, found.extra_row_count) == (1.0, 0, 0)


@settings(max_examples=150)
@given(rows=tables(max_width=4), seed=st.integers(0, 1_000), mode=st.sampled_from(MODES), strict=st.booleans())
def test_order_of_columns_names_labels_and_free_columns_do_not_matter(
    rows: Rows, seed: int, mode: dict[str, Any], strict: bool
) -> None:
    rng = random.Random(seed)
    width = len(rows[0])
    columns = rng.sample(range(width), width)
    labels = {f"b{at}": f"n{new}" for at, new in enumerate(rng.sample(range(3), 3))}
    others: Rows = [
        (
            *(
                ("bnode", labels[cell[1]], "") if cell is not None and cell[0] == "bnode" else cell
                for cell in (row[at] for at in columns)
            ),
            ("literal", f"free {at}", ""),
        )
        for at, row in enumerate(rows)
    ]
    if not mode.get("ordered"):
        rng.shuffle(others)
    names = [f"x{at}" for at in columns] + ["free"]
    reference = as_results(rows, [f"x{at}" for at in reversed(range(width))])
    found = compare_sparql_results(reference, as_results(others, names), strict=strict, **mode)
    assert found.score == 1.0, found.reason


@given(rows=tables(), mode=st.sampled_from(MODES), strict=st.booleans())
def test_results_match_themselves_by_name(rows: Rows, mode: dict[str, Any], strict: bool) -> None:
    names = named(len(rows[0]))
    found = compare_sparql_results(as_results(rows, names), as_results(rows, names), strict=strict, **mode)
    assert found.score == 1.0
    assert found.columns == dict(zip(names, names, strict=True))


@pytest.mark.parametrize("mode", MODES)
@given(rows=tables())
def test_an_added_row_of_a_new_value_never_matches(mode: dict[str, Any], rows: Rows) -> None:
    names = named(len(rows[0]))
    more: Rows = [*rows, tuple(("literal", "new", "") for _ in names)]
    found = compare_sparql_results(as_results(rows, names), as_results(more, names), **mode)
    assert found.score == 0.0
    assert found.extra_row_count >= 1
