"""P-values of several tests at once: Holm's adjustment."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Give p-values adjusted for their number, so that the chance of even one false alarm stays what it was for one.

    The smallest of m is multiplied by m, the next by m − 1 and so on; none becomes smaller than one before it, and
    none larger than 1: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure" (Scandinavian Journal of
    Statistics 6, 65–70). The tests may depend on each other.

    Args:
        p_values: 0 to 1 each, in any order.

    Returns:
        The adjusted p-values in the order of the given ones.

    Example:
        >>> [round(p_value, 2) for p_value in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
