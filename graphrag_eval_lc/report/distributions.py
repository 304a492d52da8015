"""How values are spread: counts in ten bins, and percentiles."""

from collections.abc import Sequence

NUMBER_OF_BINS = 10


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """Give the range over which values are shown: 0 to 1 where they are all in it, else theirs.

    Example:
        >>> range_of([0.2, 0.4]), range_of([1, 5])
        ((0.0, 1.0), (1, 5))
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def bins_of(values: Sequence[float], low: float, high: float) -> list[int]:
    """Count values in ten bins of equal width from ``low`` to ``high``, which falls into the last.

    Example:
        >>> bins_of([0, 0.05, 0.1, 1], 0, 1)
        [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    counts = [0] * NUMBER_OF_BINS
    width = high - low
    for value in values:
        at = int((value - low) / width * NUMBER_OF_BINS) if width else 0
        counts[min(at, NUMBER_OF_BINS - 1)] += 1
    return counts


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value below which a share of the values lies, between two of them in proportion (numpy's way).

    Args:
        values: At least one.
        share: 0 to 1.

    Example:
        >>> percentile([1, 2, 3, 4], 0.5), percentile([7], 0.95)
        (2.5, 7)
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[below]
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
