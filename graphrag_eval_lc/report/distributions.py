"""How values are spread: counts in ten bins, and percentiles."""

from collections.abc import Sequence

from graphrag_eval_lc.registry import MetricSpec

NUMBER_OF_BINS = 10


def range_of(spec: MetricSpec, values: Sequence[float]) -> tuple[float, float]:
    """Give the range over which a metric's values are shown: its usual or whole range where all are in it, else theirs.

    Example:
        >>> metric, stars = MetricSpec(key="f1"), MetricSpec(key="stars", range=(0, None))
        >>> range_of(metric, [0.2, 0.4]), range_of(metric, [1, 5]), range_of(stars, [2, 5])
        ((0.0, 1.0), (1, 5), (0, 5))
    """
    least, greatest = min(values, default=0.0), max(values, default=1.0)
    for low, high in filter(None, (spec.usual_range, spec.range)):
        shown = (least if low is None else low, greatest if high is None else high)
        if shown[0] <= least and greatest <= shown[1]:
            return shown
    return least, greatest


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
