"""Laws of the grade of rows, among them agreement with one that tries everything."""

import random
from collections import Counter
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows import compare_sparql_results

Cell = str | None
Rows = list[tuple[Cell, ...]]
MODES: list[dict[str, Any]] = [{}, {"ignore_duplicates": False}, {"ordered": True}]
UNORDERED = MODES[:2]
# Long enough that chance explains none of them.
VALUES: list[Cell] = [f"urn:example:value:{letter}" for letter in "abcdef"]


def as_results(rows: Rows, names: list[str]) -> dict[str, Any]:
    bindings = [
        {name: {"type": "uri", "value": cell} for name, cell in zip(names, row, strict=True) if cell is not None}
        for row in rows
    ]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def named(width: int, prefix: str = "c") -> list[str]:
    return [f"{prefix}{at}" for at in range(width)]


def compared(mine: Rows, others: Rows, prefix: str = "c", **options: Any) -> Any:
    return compare_sparql_results(
        as_results(mine, named(len(mine[0]))), as_results(others, named(len(others[0]), prefix)), **options
    )


EXAMPLES = 100


@st.composite
def tables(draw: st.DrawFn, max_width: int = 3, values: list[Cell] | None = None) -> Rows:
    pool = draw(st.lists(st.sampled_from(values or VALUES), min_size=1, max_size=5, unique=True))
    row = st.tuples(*[st.sampled_from(pool)] * draw(st.integers(1, max_width)))
    return draw(st.lists(row, min_size=1, max_size=4))


@st.composite
def pairs_of_tables(draw: st.DrawFn, values: list[Cell] | None = None) -> tuple[Rows, Rows]:
    """A table and one made from it: columns in another order, cells changed, columns and rows added or left out."""
    mine = draw(tables(values=values))
    rng = draw(st.randoms(use_true_random=False))
    pool = [*(values or VALUES), "urn:example:other:1", "urn:example:other:2"]
    width = max(1, len(mine[0]) + rng.choice([-1, 0, 0, 0, 1]))
    columns = rng.sample(range(max(width, len(mine[0]))), width)
    others: Rows = []
    for row in mine:
        longer = [rng.choice(pool) if rng.random() < 0.2 else cell for cell in row]
        longer += [rng.choice(pool) for _ in range(width - len(row))]
        if rng.random() < 0.85 or not others:
            others.append(tuple(longer[at] for at in columns))
    if rng.random() < 0.4:
        others.append(tuple(rng.choice(pool) for _ in range(width)))
    return mine, others


def oracle(mine: Rows, others: Rows, *, ignore_duplicates: bool = True) -> float:
    """Return the grade of rows in any order by trying all columns and all ways to pair the rows.

    A column may play another with which it shares a cell.
    """
    width, actual_width = len(mine[0]), len(others[0])
    mine = list(dict.fromkeys(mine)) if ignore_duplicates else mine
    best = 0.0
    contents, actual_contents = (
        [set(cells) for cells in zip(*mine, strict=True)],
        [set(cells) for cells in zip(*others, strict=True)],
    )
    may_play = [[None, *(at for at, found in enumerate(actual_contents) if found & wanted)] for wanted in contents]
    for choice in product(*may_play):
        played = [at for at in choice if at is not None]
        if not played or len(set(played)) < len(played):
            continue
        rows: list[tuple[Any, ...]] = [tuple("absent" if at is None else row[at] for at in choice) for row in others]
        rows = list(dict.fromkeys(rows)) if ignore_duplicates else rows
        shared = shared_cells(mine, rows)
        best = max(best, 2 * shared / (len(mine) * width + len(rows) * actual_width))
    return best


def shared_cells(mine: Rows, rows: list[tuple[Any, ...]]) -> float:
    full = Counter(mine) & Counter(rows)
    left = list((Counter(mine) - full).elements())
    others = list((Counter(rows) - full).elements())
    size = max(len(left), len(others))
    credits = [
        [credit(mine, left[at], others[to]) if at < len(left) and to < len(others) else 0.0 for to in range(size)]
        for at in range(size)
    ]
    pairs = max(
        (sum(credits[at][to] for at, to in enumerate(order)) for order in permutations(range(size))), default=0.0
    )
    return full.total() * len(mine[0]) + pairs


def credit(mine: Rows, row: tuple[Any, ...], other: tuple[Any, ...]) -> float:
    shared = [at for at in range(len(row)) if row[at] == other[at]]
    distinct = set(mine)
    alike = sum(all(row[at] == each[at] for at in shared) for each in distinct)
    return len(shared) * (1.0 if alike == 1 else (1 / alike - 1 / len(distinct)) / (1 - 1 / len(distinct)))


@pytest.mark.full
@settings(max_examples=EXAMPLES)
@given(pair=pairs_of_tables(), mode=st.sampled_from(UNORDERED))
def test_the_grade_is_that_of_trying_everything(pair: tuple[Rows, Rows], mode: dict[str, Any]) -> None:
    found = compared(*pair, **mode)
    assert found.grade == pytest.approx(oracle(*pair, **mode))


@pytest.mark.full
@settings(max_examples=200)
@given(pair=pairs_of_tables(values=[*VALUES, None]), mode=st.sampled_from(MODES), prefix=st.sampled_from("cd"))
def test_grades_lie_between_0_and_1_and_are_1_for_a_match_without_surplus(
    pair: tuple[Rows, Rows], mode: dict[str, Any], prefix: str
) -> None:
    mine, others = pair
    found = compared(mine, others, prefix, **mode)
    assert 0.0 <= found.grade <= 1.0
    assert (found.grade == 1.0) == (found.score == 1.0 and len(others[0]) == len(mine[0]))


FLOAT = "http://www.w3.org/2001/XMLSchema#float"
TERMS: list[dict[str, str]] = [
    *({"type": "literal", "value": text, "datatype": FLOAT} for text in ("1000", "1000.008", "1000.016", "1000.5")),
    *({"type": "bnode", "value": label} for label in "xyz"),
    {"type": "literal", "value": "1000"},
    {"type": "uri", "value": "urn:example:a"},
]


@pytest.mark.full
@settings(max_examples=150)
@given(data=st.data(), mode=st.sampled_from(MODES))
def test_cells_that_are_near_several_others_and_blank_nodes_keep_that_law(
    data: st.DataObject, mode: dict[str, Any]
) -> None:
    pool = data.draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=4))
    width, surplus = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 1))

    def drawn(names: list[str], likely: list[dict[str, dict[str, str]]]) -> dict[str, Any]:
        bindings = [{name: data.draw(st.sampled_from(pool)) for name in names} for _ in range(len(likely) or 3)]
        if likely and data.draw(st.booleans()):
            bindings = [found | row for found, row in zip(bindings, data.draw(st.permutations(likely)), strict=True)]
        return {"head": {"vars": names}, "results": {"bindings": bindings}}

    reference = drawn(named(width), [])
    actual = drawn(named(width + surplus), reference["results"]["bindings"])
    found = compare_sparql_results(reference, actual, **mode)
    assert 0.0 <= found.grade <= 1.0
    assert (found.grade == 1.0) == (found.score == 1.0 and not surplus)


@pytest.mark.full
@settings(max_examples=100)
@given(rows=tables(max_width=4), seed=st.integers(0, 1_000), mode=st.sampled_from(MODES), surplus=st.booleans())
def test_each_right_row_makes_the_grade_higher(rows: Rows, seed: int, mode: dict[str, Any], surplus: bool) -> None:
    rows = list(dict.fromkeys(rows))
    taken = random.Random(seed).sample(range(len(rows)), len(rows))
    last = 0.0
    for count in range(1, len(rows) + 1):
        some = [rows[at] + (("urn:example:more",) if surplus else ()) for at in sorted(taken[:count])]
        grade = compared(rows, some, "d", **mode).grade
        assert grade > last
        last = grade
    assert (last == 1.0) is not surplus


@pytest.mark.full
@settings(max_examples=150)
@given(pair=pairs_of_tables(values=[*VALUES, "5", "true", None]), mode=st.sampled_from(MODES), place=st.integers(0, 5))
def test_a_wrong_row_never_makes_the_grade_higher(pair: tuple[Rows, Rows], mode: dict[str, Any], place: int) -> None:
    mine, others = pair
    wrong = tuple(f"urn:example:wrong:{at}" for at in range(len(others[0])))
    more = [*others[:place], wrong, *others[place:]]
    assert compared(mine, more, **mode).grade <= compared(mine, others, **mode).grade + 1e-12


@pytest.mark.full
@settings(max_examples=150)
@given(
    pair=pairs_of_tables(values=[*VALUES, "5", "true", None]),
    mode=st.sampled_from(MODES),
    value=st.sampled_from(["urn:example:more", "7", "false", None]),
)
def test_a_column_of_nothing_required_never_makes_the_grade_higher(
    pair: tuple[Rows, Rows], mode: dict[str, Any], value: Cell
) -> None:
    mine, others = pair
    if value is None and any(None in row for row in mine):
        return  # unbound cells may be required
    more = [(*row, value) for row in others]
    assert compared(mine, more, **mode).grade <= compared(mine, others, **mode).grade + 1e-12


@settings(max_examples=100)
@given(pair=pairs_of_tables(), seed=st.integers(0, 1_000), mode=st.sampled_from(UNORDERED))
def test_names_and_the_order_of_rows_and_columns_do_not_matter(
    pair: tuple[Rows, Rows], seed: int, mode: dict[str, Any]
) -> None:
    mine, others = pair
    rng = random.Random(seed)
    columns = rng.sample(range(len(others[0])), len(others[0]))
    shuffled = [tuple(row[at] for at in columns) for row in rng.sample(others, len(others))]
    again = compared(rng.sample(mine, len(mine)), shuffled, "other", **mode)
    assert again.grade == pytest.approx(compared(mine, others, **mode).grade)


@pytest.mark.parametrize("mode", UNORDERED)
def test_the_order_of_many_rows_does_not_matter_either(mode: dict[str, Any]) -> None:
    rng = random.Random(5)
    mine: Rows = [(f"urn:s:{at}", f"urn:t:{at % 9}", f"urn:u:{rng.randrange(40)}", str(at * 17)) for at in range(300)]
    others: Rows = [tuple(rng.choice(["urn:x", cell, cell, cell]) for cell in row) for row in mine]
    grade = compared(mine, others, **mode).grade
    assert 0.4 < grade < 0.9
    for _ in range(3):
        rng.shuffle(others)
        rng.shuffle(mine)
        assert compared(mine, others, **mode).grade == pytest.approx(grade)
