"""Many numbers in little memory."""

from array import array

_LARGEST_WHOLE = 2**53


class Numbers:
    """A growing row of numbers, 8 bytes each; whole numbers come out whole where all are.

    Example:
        >>> numbers = Numbers()
        >>> numbers.append(3)
        >>> numbers.values()
        [3]
        >>> numbers.append(0.5)
        >>> numbers.values(), numbers.mean()
        ([3.0, 0.5], 1.75)
    """

    __slots__ = ("_are_whole", "_running", "_values")

    def __init__(self) -> None:
        self._values = array("d")
        self._are_whole = True
        self._running = (0, 0.0)

    def append(self, value: float) -> None:
        """Add a number; a whole one beyond 2**53 becomes the nearest float."""
        self._values.append(value)
        self._are_whole = self._are_whole and isinstance(value, int) and abs(value) <= _LARGEST_WHOLE
        count, total = self._running
        self._running = (count + 1, total + value)

    def values(self) -> list[float]:
        """Give the numbers in the order in which they were added."""
        return [int(value) for value in self._values] if self._are_whole else self._values.tolist()

    def mean(self) -> float | None:
        """Give the mean as far as a running sum of floats knows it, at once; None without numbers.

        Another thread may ask while numbers are added.
        """
        count, total = self._running
        return total / count if count else None
