"""Laws of the comparison, among them agreement with a slow and plain one."""

import random
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparql_brute_force import Cell, Equal, Rows, Rules, brute_force_score

from graphrag_eval_lc.matching.rows import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"


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
# A chain of numbers that each equal the next, as far as their datatypes have a tolerance, and a name beside them.
NEAR: list[Cell] = [
    ("literal", "a", ""),
    typed("1000.008", "integer"),
    ("literal", "1000.008", ""),
    *(typed(text, datatype) for text in ("1000", "1000.008", "1000.016") for datatype in ("float", "decimal")),
    typed("1000.016", "double"),
    typed("1000", "integer"),
]
POOLS = [CELLS + BLANK_NODES, PLAIN, NEAR]
RELATIVE = {"integer": None, "decimal": 0.0, "double": 1e-12, "float": 1e-5}
MODES: list[dict[str, Any]] = [{"ordered": True}, {"ignore_duplicates": True}, {"ignore_duplicates": False}]


def number_kind(cell: tuple[str, str, str]) -> str | None:
    kind, text, datatype = cell
    if kind == "literal" and not datatype and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text):
        return "double" if "." in text else "integer"
    return datatype if datatype in RELATIVE and not (datatype == "integer" and "." in text) else None


def numbers_equal(one: tuple[str, str, str], other: tuple[str, str, str], tolerance: float | None) -> bool:
    """Tell whether numbers are equal; a negative tolerance compares values exactly."""
    low, high = sorted((Fraction(one[1]), Fraction(other[1])))
    kinds = [RELATIVE[number_kind(cell) or ""] for cell in (one, other)]
    if tolerance is not None and tolerance < 0:
        return low == high
    relative = 0.0 if None in kinds else max(kind or 0.0 for kind in kinds) if tolerance is None else tolerance
    share = Fraction(str(relative)) * max(abs(low), abs(high))
    return high - low <= max(Fraction(1, 10**8), share)


def cells_equal(one: Cell, other: Cell, tolerance: float | None = None) -> bool:
    if one is None or other is None:
        return one is other
    if "bnode" in (one[0], other[0]):
        return one == other
    if number_kind(one) and number_kind(other):
        return numbers_equal(one, other, tolerance)
    if one[2] == other[2] == "boolean":
        return (one[1] in ("true", "1")) == (other[1] in ("true", "1"))
    return one[1] == other[1]


def equality(tolerance: float | None) -> Equal:
    return lambda one, other, exactly: cells_equal(one, other, -1.0 if exactly else tolerance)


def plain_score(
    mine: Rows,
    others: Rows,
    width: int,
    ordered: bool = False,
    ignore_duplicates: bool = True,
    tolerance: float | None = None,
) -> float:
    assert len(others[0]) == width
    equal = equality(tolerance)
    return brute_force_score(mine, others, equal, ordered=ordered, ignore_duplicates=ignore_duplicates)


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
    cells = draw(st.sampled_from(POOLS))
    pool = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=5, unique=True))
    width = draw(st.integers(1, max_width))
    row = st.tuples(*[st.sampled_from(pool)] * width)
    return draw(st.lists(row, min_size=1, max_size=4))


@st.composite
def pairs_of_tables(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """A table and one made from it: columns and rows in another order, cells changed, columns and rows added."""
    mine = draw(tables())
    rng = draw(st.randoms(use_true_random=False))
    cells = next(pool for pool in reversed(POOLS) if all(cell in pool for row in mine for cell in row))
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


@pytest.mark.full
@settings(max_examples=800)
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


@given(pair=pairs_of_tables(), mode=st.sampled_from(MODES), strict=st.booleans())
def test_results_of_as_many_columns_are_compared_the_same_either_way(
    pair: tuple[Rows, Rows], mode: dict[str, Any], strict: bool
) -> None:
    mine, others = ([row[: len(pair[0][0])] for row in rows] for rows in pair)
    one, other = (as_results(rows, named(len(rows[0]))) for rows in (mine, others))
    there, back = (
        compare_sparql_results(*sides, strict=strict, **mode).score for sides in ((one, other), (other, one))
    )
    assert there == back


@given(
    pair=pairs_of_tables(),
    mode=st.sampled_from(MODES),
    tolerances=st.tuples(*[st.sampled_from([0, 1e-9, 1e-6, 1e-5, 2e-5, 1e-3])] * 2),
    strict=st.booleans(),
)
def test_what_matches_matches_within_a_larger_tolerance_too(
    pair: tuple[Rows, Rows], mode: dict[str, Any], tolerances: tuple[float, float], strict: bool
) -> None:
    one, other = (as_results(rows, named(len(rows[0]))) for rows in pair)
    tight, loose = (
        compare_sparql_results(one, other, tolerance=tolerance, strict=strict, **mode).score
        for tolerance in sorted(tolerances)
    )
    assert tight <= loose


@pytest.mark.full
@settings(max_examples=200)
@given(pair=pairs_of_tables(), mode=st.sampled_from(MODES), tolerance=st.sampled_from([0, 7e-6, 1e-5, 2e-5]))
def test_the_score_within_a_tolerance_for_all_numbers_is_that_of_trying_everything(
    pair: tuple[Rows, Rows], mode: dict[str, Any], tolerance: float
) -> None:
    mine, others = pair
    one, other = (as_results(rows, named(len(rows[0]))) for rows in pair)
    found = compare_sparql_results(one, other, tolerance=tolerance, **mode)
    assert found.score == plain_score(mine, others, len(others[0]), tolerance=tolerance, **mode)


@given(pair=pairs_of_tables(), mode=st.sampled_from(MODES), seed=st.integers(0, 1_000))
def test_the_order_of_rows_and_columns_does_not_matter(
    pair: tuple[Rows, Rows], mode: dict[str, Any], seed: int
) -> None:
    rng = random.Random(seed)
    mine, others = pair
    columns = rng.sample(range(len(others[0])), len(others[0]))
    moved = [tuple(row[at] for at in columns) for row in others]
    if not mode.get("ordered"):
        rng.shuffle(moved)
    reference = as_results(mine, named(len(mine[0])))
    actual = as_results(others, named(len(others[0])))
    shuffled = as_results(moved, [f"c{at}" for at in columns])
    scores = {compare_sparql_results(reference, results, **mode).score for results in (actual, shuffled)}
    assert len(scores) == 1


# Floats of which only neighbours are equal, in one long chain; the more there are of them the more it takes.
STEPS: list[Cell] = [typed(f"{1_000 + at * 0.007:.3f}", "float") for at in range(6)] * 3
OTHER_KINDS: list[Cell] = [
    *(typed(f"{1_000 + at * 0.007:.3f}", "decimal") for at in range(6)),
    typed("1000.014", "double"),
    typed("1000", "integer"),
]


def most_pairs(mine: Rows, others: Rows, rules: Rules) -> int:
    """Return how many rows can be paired off at most, by trying everything."""
    if not mine:
        return 0
    best = most_pairs(mine[1:], others, rules)
    for at, other in enumerate(others):
        if best < len(mine) and rules.rows_equal(mine[0], other):
            best = max(best, 1 + most_pairs(mine[1:], others[:at] + others[at + 1 :], rules))
    return best


@pytest.mark.full
@settings(max_examples=250)
@given(
    rows=st.lists(st.sampled_from(STEPS) | st.sampled_from(OTHER_KINDS), min_size=1, max_size=6),
    others=st.lists(st.sampled_from(STEPS) | st.sampled_from(OTHER_KINDS), min_size=1, max_size=6),
    second=st.lists(st.sampled_from(STEPS[:3]), min_size=6, max_size=6) | st.none(),
    ignore_duplicates=st.booleans(),
)
def test_as_many_rows_in_a_chain_of_near_numbers_are_paired_off_as_can_be(
    rows: list[Cell], others: list[Cell], second: list[Cell] | None, ignore_duplicates: bool
) -> None:
    mine: Rows = [(cell, *(second[at : at + 1] if second else ())) for at, cell in enumerate(rows)]
    theirs: Rows = [(cell, *(second[at : at + 1] if second else ())) for at, cell in enumerate(others)]
    names = named(len(mine[0]))
    found = compare_sparql_results(
        as_results(mine, names), as_results(theirs, names), ignore_duplicates=ignore_duplicates
    )
    assert found.score == plain_score(mine, theirs, len(names), ignore_duplicates=ignore_duplicates)
    if len(names) == 1 and not ignore_duplicates and not found.score:
        rules = Rules({*rows, *others}, equality(None))
        most = most_pairs(mine, theirs, rules)
        missing, extra = found.missing_row_count, found.extra_row_count
        assert (missing, extra) == (len(mine) - most, len(theirs) - most)
