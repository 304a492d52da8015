"""Whether two JSON values are equal, and where they first differ, for values nested to any depth."""

import json
import math
from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest
from typing import Any

NOTHING = "nothing"
"""What stands where a part is missing."""

_MISSING = object()
_LONGEST_PLACE = 160


class ComparableJson:
    """A JSON value that may be compared with many others.

    Values are equal as in graphrag-eval: numbers by value, true as 1, and NaN equal to NaN.

    Args:
        value: See the attribute.

    Attributes:
        value: The JSON value.

    Example:
        >>> ComparableJson([1, float("nan")]).equals(ComparableJson([1.0, float("nan")]))
        True
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def equals(self, other: "ComparableJson") -> bool:
        """Return whether the values are equal."""
        if self._is_plain and other._is_plain:
            try:
                return bool(self.value == other.value)
            except RecursionError:
                pass
        return first_difference(self.value, other.value) is None

    @cached_property
    def _is_plain(self) -> bool:
        """Whether Python compares the value as it should, and fast: no NaN, not too deep, nothing that is not JSON."""
        try:
            json.dumps(self.value, allow_nan=False)
        except (ValueError, TypeError, RecursionError):
            return False
        return True


def first_difference(found: Any, expected: Any) -> tuple[str, Any, Any] | None:
    """Return where two JSON values first differ, and what stands there: "nothing" where a part is missing.

    The walk has a stack of its own, as deep values would exhaust the interpreter's. Of a place with a long name, as in
    deep values, the middle is left out.

    Returns:
        The place and both parts; None where the values are equal.

    Example:
        >>> first_difference({"rows": [1, 2]}, {"rows": [1, 3]})
        ('rows[1]', 2, 3)
    """
    levels: list[Iterator[tuple[str, Any, Any]]] = [iter([("", found, expected)])]
    path: list[str] = []
    while levels:
        for part, one, other in levels[-1]:
            path[len(levels) - 1 :] = [part]
            inner = _parts(one, other)
            if inner is not None:
                levels.append(inner)
                break
            if not _are_leaves_equal(one, other):
                one, other = (NOTHING if each is _MISSING else each for each in (one, other))
                return _place(path), one, other
        else:
            levels.pop()
    return None


def _parts(found: Any, expected: Any) -> Iterator[tuple[str, Any, Any]] | None:
    """Return the parts of two objects or two arrays, in the order of the expected one; None for all else."""
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = (*expected, *(key for key in found if key not in expected))
        return ((f".{key}", found.get(key, _MISSING), expected.get(key, _MISSING)) for key in keys)
    if isinstance(found, list) and isinstance(expected, list):
        pairs = enumerate(zip_longest(found, expected, fillvalue=_MISSING))
        return ((f"[{index}]", one, other) for index, (one, other) in pairs)
    return None


def _are_leaves_equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    try:
        return bool(left == right)
    except RecursionError:  # deep values of other kinds, such as tuples
        return False


def _place(parts: list[str]) -> str:
    text = "".join(parts).removeprefix(".")
    if len(text) <= _LONGEST_PLACE:
        return text
    half = _LONGEST_PLACE // 2
    return f"{text[:half]}…{text[-half:]} ({len(parts) - 1:,} levels deep)"
