"""Assigning actual steps to reference steps, each used once, so that the total score is the highest."""

from collections.abc import Mapping, Sequence

# Scores are compared to 12 digits, so that sums of floats that should be equal are.
_SCALE = 10**12


def best_assignment(scores: Sequence[Mapping[int, float]]) -> list[int | None]:
    """Assign to each reference step at most one actual step, each used once, with the highest total score.

    Of assignments with equal totals the one that fulfils more reference steps wins; of those the one with the later
    actual steps (its earliest actual step is the latest possible, then its second earliest, and so on); of those the
    one that gives later reference steps the later actual steps.

    Args:
        scores: For each reference step the scores above 0 by the index of the actual step.

    Returns:
        For each reference step the index of its actual step, or None.

    Example:
        >>> best_assignment([{0: 1.0, 1: 1.0}, {1: 1.0}])
        [0, 1]
    """
    columns = sorted({index for row in scores for index, score in row.items() if score > 0})
    if not columns:
        return [None] * len(scores)
    if len(scores) == 1:
        return [max(scores[0], key=lambda index: (round(scores[0][index] * _SCALE), index))]
    weights = [
        [
            _weight(scores[row].get(index, 0.0), row, rank, len(scores), len(columns))
            for rank, index in enumerate(columns)
        ]
        for row in range(len(scores))
    ]
    chosen = _maximum_weight(weights)
    return [
        columns[rank] if rank is not None and row.get(columns[rank], 0.0) > 0 else None
        for row, rank in zip(scores, chosen, strict=True)
    ]


def _weight(score: float, row: int, rank: int, rows: int, columns: int) -> int:
    """Pack score, number of matches, lateness and order into one whole number, the score in the highest digits.

    An actual step of rank r costs 2^(columns - 1 - r): an earlier one costs more than all later ones together. Order
    is the product of both places, whose sum is highest where later reference steps have later actual steps.
    """
    if score <= 0:
        return 0
    match = 1 << columns
    weight = max(1, round(score * _SCALE)) * match * (rows + 1) + match - (1 << (columns - 1 - rank))
    return weight * (rows * rows * columns + 1) + (row + 1) * (rank + 1)


def _maximum_weight(weights: Sequence[Sequence[int]]) -> list[int | None]:
    """Solve the assignment problem by the Hungarian method with potentials, in O(rows² · columns).

    Kuhn, The Hungarian method for the assignment problem, 1955. Beside the real columns each row has one of its own
    with weight 0, which stands for "not matched".
    """
    rows, real = len(weights), len(weights[0])
    columns = real + rows
    cost = [[-weight for weight in row] + [0] * rows for row in weights]
    row_potential, column_potential = [0] * (rows + 1), [0] * (columns + 1)
    row_of: list[int] = [0] * (columns + 1)  # 1-based; 0 is free
    for row in range(1, rows + 1):
        _augment(row, cost, row_potential, column_potential, row_of)
    assigned: list[int | None] = [None] * rows
    for column in range(1, real + 1):
        if row_of[column]:
            assigned[row_of[column] - 1] = column - 1
    return assigned


def _augment(
    start: int, cost: list[list[int]], row_potential: list[int], column_potential: list[int], row_of: list[int]
) -> None:
    """Assign a column to one more row, along the cheapest alternating path."""
    columns = len(row_of) - 1
    slack: list[int | None] = [None] * (columns + 1)
    previous = [0] * (columns + 1)
    used = [False] * (columns + 1)
    row_of[0], column = start, 0
    while row_of[column]:
        used[column] = True
        row, delta, following = row_of[column], None, 0
        for candidate in range(1, columns + 1):
            if used[candidate]:
                continue
            reduced = cost[row - 1][candidate - 1] - row_potential[row] - column_potential[candidate]
            known = slack[candidate]
            if known is None or reduced < known:
                slack[candidate] = known = reduced
                previous[candidate] = column
            if delta is None or known < delta:
                delta, following = known, candidate
        _shift(delta or 0, used, slack, row_potential, column_potential, row_of)
        column = following
    while column:
        row_of[column] = row_of[previous[column]]
        column = previous[column]


def _shift(
    delta: int,
    used: list[bool],
    slack: list[int | None],
    row_potential: list[int],
    column_potential: list[int],
    row_of: list[int],
) -> None:
    for column, is_used in enumerate(used):
        if is_used:
            row_potential[row_of[column]] += delta
            column_potential[column] -= delta
        else:
            known = slack[column]
            slack[column] = None if known is None else known - delta
