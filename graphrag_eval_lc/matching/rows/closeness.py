"""How near two results come that do not match: common rows, the nearest columns, nearly equal numbers."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.rows.coded_rows import rows_of
from graphrag_eval_lc.matching.rows.plain_cells import sample_reader
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn, relevant_values
from graphrag_eval_lc.matching.rows.tables import Table
from graphrag_eval_lc.matching.rows.values import NO_VALUES, ValueRules
from graphrag_eval_lc.matching.rows.xsd_numbers import NumberKind, relative_difference

_SAMPLED_ROWS: Final = 1_000
"""So many rows are looked at."""

_SAMPLED_PAIRS: Final = 2_000
"""Where there are more pairs of a required and an actual column, fewer cells of each are looked at."""

_FEWEST_SAMPLED: Final = 3


def _sample_size(most: int, pairs: int) -> int:
    """Return how many rows or cells to look at, so that many pairs of columns do not take much longer than few."""
    return max(_FEWEST_SAMPLED, min(most, most * _SAMPLED_PAIRS // pairs)) if pairs else most


def closeness_of(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], values: ValueRules | None
) -> float:
    """Return how much two results have in common, from a sample of their rows; 0 to below 1.

    Cells count by their texts, or by their values where there are rules for these; numbers always by their texts.
    What two results have in common is mostly the share of common rows (F1) under the columns that have most in common,
    then the share of common cells, or of nearly the same numbers where a column has none in common.
    """
    if not required or not reference.row_count or not actual.row_count:
        return 0.0
    size = _sample_size(_SAMPLED_ROWS, len(required) * len(actual.columns))
    values = NO_VALUES if values is None else relevant_values(reference, actual, required, values)
    samples = {name: _sampled_cells(reference.columns[name], values) for name in required}
    actual_samples = {name: _sampled_cells(column, values) for name, column in actual.columns.items()}
    contents = {name: frozenset(sample[:size]) for name, sample in actual_samples.items()}
    near = _NearNumbers(size)
    chosen: dict[str, None] = {}
    overlap = 0.0
    for name in required:
        wanted = frozenset(samples[name][:size])
        shares = {other: _dice_coefficient(wanted, found) for other, found in contents.items() if other not in chosen}
        if not any(shares.values()):  # at most half of what the same numbers would have in common
            column = reference.columns[name]
            shares = {other: near.share(column, actual.columns[other]) / 2 for other in shares}
        best = max(shares, key=lambda other: (shares[other], other == name), default=None)
        if best is None:
            break
        chosen[best] = None
        overlap += shares[best]
    mine = set(zip(*(samples[name] for name in required[: len(chosen)]), strict=True))
    theirs = set(zip(*(actual_samples[name] for name in chosen), strict=True))
    return 0.9 * _dice_coefficient(mine, theirs) + 0.09 * overlap / len(required)


def _sampled_cells(column: TermColumn, values: ValueRules) -> Sequence[Hashable]:
    """Return what the first cells count as."""
    if values == NO_VALUES:
        return column.texts[:_SAMPLED_ROWS]
    column = column.in_nfc if values.nfc else column
    texts = column.texts[:_SAMPLED_ROWS]
    shapes = column.shapes[:_SAMPLED_ROWS] if isinstance(column.shapes, list) else [column.shapes] * len(texts)
    readers = {shape: sample_reader(shape, values) for shape in set(shapes)}
    return [readers[shape](text) for shape, text in zip(shapes, texts, strict=True)]


def _dice_coefficient(mine: Set[object], theirs: Set[object]) -> float:
    """Return how much two sets share, 0 to 1: F1, also called the Dice coefficient."""
    total = len(mine) + len(theirs)
    return 2 * len(mine & theirs) / total if total else 0.0


_SAMPLED_CELLS: Final = 1_000
"""So many distinct cells of a column are looked up in another one."""

_PROBED_CELLS: Final = 2_000_000
"""In larger tables columns with the same contents are told apart by their names alone."""


def overlaps_of(reference: Table, actual: Table) -> list[list[float]]:
    """Return for each required and each actual column the share of values in common, from a sample."""
    size = _sample_size(_SAMPLED_CELLS, len(reference.names) * len(actual.names))
    samples = [_sample(content, size) for content in reference.contents]
    actual_samples = [_sample(content, size) for content in actual.contents]
    return [
        [
            (_share_of_sample(sample, other) + _share_of_sample(other_sample, content)) / 2
            for other, other_sample in zip(actual.contents, actual_samples, strict=True)
        ]
        for content, sample in zip(reference.contents, samples, strict=True)
    ]


def _sample(content: frozenset[int], size: int) -> frozenset[int]:
    return content if len(content) <= size else frozenset(islice(content, size))


def _share_of_sample(sample: frozenset[int], content: frozenset[int]) -> float:
    return len(sample & content) / len(sample)


def nearest_columns(reference: Table, actual: Table, overlaps: list[list[float]]) -> dict[int, int]:
    """Map each required column to an actual one, the surest first.

    Columns with the same contents are told apart by the rows that they make with the columns chosen before, as far
    as that is cheap, then by their names. Where nothing else is left a column of nearly the same numbers is taken,
    then a namesake without a common value.
    """
    mapping: dict[int, int] = {}
    cells = len(overlaps) * len(actual.names) * (reference.row_count + actual.row_count)
    taken: set[int] = set()
    for at in sorted(
        range(len(overlaps)), key=lambda at: (-max(overlaps[at], default=0), -len(reference.contents[at]))
    ):
        free = [candidate for candidate in range(len(actual.names)) if candidate not in taken]
        best = max((overlaps[at][candidate] for candidate in free), default=0.0)
        if best > 0:
            ties = [candidate for candidate in free if overlaps[at][candidate] == best]
            common = Counter(
                {candidate: _common_rows(reference, actual, {**mapping, at: candidate}) for candidate in ties}
                if len(ties) > 1 and cells <= _PROBED_CELLS and cells * len(overlaps) <= 10 * _PROBED_CELLS
                else {}
            )
            name = reference.names[at]
            mapping[at] = max(ties, key=lambda candidate: (common[candidate], actual.names[candidate] == name))
            taken.add(mapping[at])
    _add_columns_of_near_numbers(reference, actual, mapping)
    for at, name in enumerate(reference.names):
        if at not in mapping and name in actual.names and actual.names.index(name) not in mapping.values():
            mapping[at] = actual.names.index(name)
    return mapping


def _add_columns_of_near_numbers(reference: Table, actual: Table, mapping: dict[int, int]) -> None:
    near = _NearNumbers(_sample_size(_SAMPLED_NUMBERS, len(reference.names) * len(actual.names)))
    taken = set(mapping.values())
    for at, name in enumerate(reference.names):
        if at in mapping:
            continue
        shares = {
            candidate: near.share(reference.term_columns[at], actual.term_columns[candidate])
            for candidate in range(len(actual.names))
            if candidate not in taken
        }
        best = max(shares, key=lambda candidate: (shares[candidate], actual.names[candidate] == name), default=None)
        if best is not None and shares[best]:
            mapping[at] = best
            taken.add(best)


def _common_rows(reference: Table, actual: Table, mapping: dict[int, int]) -> int:
    mine = Counter(rows_of([reference.columns[at] for at in mapping]))
    return (mine & Counter(rows_of([actual.columns[at] for at in mapping.values()]))).total()


NEAR: Final = 1e-3
"""Numbers are nearly the same when they differ by at most this share of the larger one."""


_SAMPLED_NUMBERS: Final = 1_000
"""So many numbers of a column are looked at."""

_COMPARED_ROWS: Final = 20_000
"""So many pairs of rows are looked at."""

_LARGEST: Final = 1e300


class NearNumber(NamedTuple):
    """A number of the reference and what stands in its place.

    Attributes:
        expected: How the reference writes it.
        found: How the actual results write it.
        difference: The difference as a share of the larger number.
    """

    expected: str
    found: str
    difference: float


def near_number(
    columns: Sequence[TermColumn],
    actual_columns: Sequence[TermColumn],
    rows: Sequence[int],
    actual_rows: Sequence[int],
    codes: Sequence[Sequence[int]],
    actual_codes: Sequence[Sequence[int]],
) -> NearNumber | None:
    """Find the first two rows that are equal but for nearly the same numbers; return the number that differs most.

    The rows to look at are given by their positions, of which the first few count; equal cells have equal codes.
    """
    # Rows that are nearly equal have the same cells where there are no numbers.
    fixed = [at for at, column in enumerate(columns) if all(column.number(row) is None for row in rows)]
    alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for other in actual_rows:
        alike[tuple(actual_codes[at][other] for at in fixed)].append(other)
    left = _COMPARED_ROWS
    for row in rows:
        found: list[NearNumber] = []
        for other in alike.get(tuple(codes[at][row] for at in fixed), ())[:left]:
            differing = [at for at in range(len(columns)) if codes[at][row] != actual_codes[at][other]]
            worst: NearNumber | None = None
            for at in differing:
                near = _near(columns[at], row, actual_columns[at], other)
                if near is None:
                    break
                worst = near if worst is None or near.difference > worst.difference else worst
            else:
                found += [] if worst is None else [worst]
            left -= 1
        if found:
            return min(found, key=lambda each: each.difference)
    return None


def _near(column: TermColumn, row: int, actual_column: TermColumn, actual_row: int) -> NearNumber | None:
    mine, theirs = column.number(row), actual_column.number(actual_row)
    if mine is None or theirs is None or mine[1] == theirs[1] == NumberKind.INTEGER:
        return None
    difference = relative_difference(mine[0], theirs[0])
    if difference is None or difference > NEAR:
        return None
    return NearNumber(column.texts[row].strip(), actual_column.texts[actual_row].strip(), difference)


def share_of_near_numbers(column: TermColumn, other: TermColumn) -> float:
    """Return the share of a column's numbers, from a sample, that are nearly the same as some of another; 0 to 1.

    Integers, such as ids and counts, are near none.
    """
    return _NearNumbers(_SAMPLED_NUMBERS).share(column, other)


class _NearNumbers:
    """Compares the numbers of columns, of which each is read once.

    Args:
        size: So many cells of a column are looked at.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._numbers_of: dict[int, tuple[TermColumn, list[float], list[float]]] = {}

    def share(self, column: TermColumn, other: TermColumn) -> float:
        """Return the share of a column's numbers that are nearly the same as some of another."""
        _, numbers, _ = self._read(column)
        _, _, others = self._read(other)
        if not numbers or not others or not self._lie_near(column, other):
            return 0.0
        return sum(_lies_near(number, others) for number in numbers) / len(numbers)

    def _lie_near(self, column: TermColumn, other: TermColumn) -> bool:
        """Return whether the ranges of two columns' numbers meet, or nearly."""
        (_, _, one), (_, _, two) = self._read(column), self._read(other)
        gap = max(one[0] - two[-1], two[0] - one[-1])
        return gap <= NEAR * max(abs(one[0]), abs(one[-1]), abs(two[0]), abs(two[-1]))

    def _read(self, column: TermColumn) -> tuple[TermColumn, list[float], list[float]]:
        known = self._numbers_of.get(id(column))
        if known is None:
            numbers = _numbers(column, self._size)
            # The column is kept so that its id stays its own.
            known = self._numbers_of[id(column)] = column, numbers, sorted(numbers)
        return known


def _lies_near(number: float, others: list[float]) -> bool:
    at = bisect_left(others, number)
    return any(abs(number - other) <= NEAR * max(abs(number), abs(other)) for other in others[max(at - 1, 0) : at + 1])


def _numbers(column: TermColumn, size: int) -> list[float]:
    """Return the numbers among the first cells, as floats; no integers, as they are near none."""
    if column.floats is not None:
        return column.floats[:size]
    if not column.may_have_numbers:
        return []
    found = map(column.number, range(min(len(column.texts), size)))
    numbers = [each[0] for each in found if each is not None and each[1] != NumberKind.INTEGER]
    return [float(number) for number in numbers if not isinstance(number, str) and -_LARGEST < number < _LARGEST]
