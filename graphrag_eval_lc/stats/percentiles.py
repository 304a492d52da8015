"""Percentiles of values."""

from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, interpolated between two values as numpy does.

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
