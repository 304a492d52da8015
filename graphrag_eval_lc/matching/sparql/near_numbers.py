"""Numbers that are nearly the same, for people: how far two rows that do not match are from matching."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.sparql.numbers import NumberKind, relative_difference
from graphrag_eval_lc.matching.sparql.results import TermColumn

NEAR: Final = 1e-3
"""Numbers are nearly the same when they differ by at most this share of the larger one."""

_SAMPLE: Final = 1_000
"""So many numbers of a column are looked at."""

_COMPARED_ROWS: Final = 20_000
"""So many pairs of rows are looked at."""

_LARGEST: Final = 1e300


class NearNumber(NamedTuple):
    """A number of the reference and what stands in its place.

    Attributes:
        expected: How the reference writes it.
        found: How the actual results write it.
        difference: The difference as a share of the larger one.
    """

    expected: str
    found: str
    difference: float


def near_number(
    columns: Sequence[TermColumn],
    players: Sequence[TermColumn],
    rows: Sequence[int],
    others: Sequence[int],
    codes: Sequence[Sequence[int]],
    other_codes: Sequence[Sequence[int]],
) -> NearNumber | None:
    """Give the number in which the first two rows differ most that are equal but for nearly the same numbers.

    Args:
        columns: The required columns.
        players: The actual columns that play them.
        rows: Places of rows of the reference; the first few are looked at.
        others: Places of actual rows, likewise.
        codes: The codes of the required columns; equal cells have the same.
        other_codes: Those of the actual columns.
    """
    # Rows that are nearly equal have the same cells where there are no numbers.
    fixed = [at for at, column in enumerate(columns) if all(column.number(row) is None for row in rows)]
    alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for other in others:
        alike[tuple(other_codes[at][other] for at in fixed)].append(other)
    left = _COMPARED_ROWS
    for row in rows:
        found: list[NearNumber] = []
        for other in alike.get(tuple(codes[at][row] for at in fixed), ())[:left]:
            differing = [at for at in range(len(columns)) if codes[at][row] != other_codes[at][other]]
            near = [_near(columns[at], row, players[at], other) for at in differing]
            if near and None not in near:
                found.append(max((each for each in near if each is not None), key=lambda each: each.difference))
            left -= 1
        if found:
            return min(found, key=lambda each: each.difference)
    return None


def _near(column: TermColumn, row: int, player: TermColumn, other: int) -> NearNumber | None:
    mine, theirs = column.number(row), player.number(other)
    if mine is None or theirs is None or mine[1] == theirs[1] == NumberKind.INTEGER:
        return None
    difference = relative_difference(mine[0], theirs[0])
    if difference is None or difference > NEAR:
        return None
    return NearNumber(column.texts[row].strip(), player.texts[other].strip(), difference)


def share_of_near_numbers(column: TermColumn, other: TermColumn) -> float:
    """Give the share of a column's numbers, from a sample, that are nearly the same as some of another; 0 to 1.

    Integers, such as ids and counts, are near none.
    """
    numbers, others = _numbers(column), sorted(_numbers(other))
    if not numbers or not others:
        return 0.0
    return sum(_lies_near(number, others) for number in numbers) / len(numbers)


def _lies_near(number: float, others: list[float]) -> bool:
    at = bisect_left(others, number)
    nearest = others[max(at - 1, 0) : at + 1]
    return any(abs(number - other) <= NEAR * max(abs(number), abs(other)) for other in nearest)


def _numbers(column: TermColumn) -> list[float]:
    found = map(column.number, range(min(len(column.texts), _SAMPLE)))
    numbers = [each[0] for each in found if each is not None and each[1] != NumberKind.INTEGER]
    return [float(number) for number in numbers if not isinstance(number, str) and -_LARGEST < number < _LARGEST]
