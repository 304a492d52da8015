"""Whether two JSON values are equal, and where they first differ, for values nested to any depth.

Both are found by a walk with a stack of its own, as deep values would exhaust the interpreter's.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

NOTHING = "nothing"
"""What stands where a part is missing."""

_MISSING = object()
_LONGEST_PLACE = 160
_CLOSING = frozenset({"},", "],"})


def are_json_equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: numbers by value, true as 1 (as in graphrag-eval), NaN equal to NaN."""
    waiting: list[Iterator[tuple[Any, Any]]] = [iter([(left, right)])]
    while waiting:
        for one, other in waiting[-1]:
            if isinstance(one, dict) and isinstance(other, dict):
                if one.keys() != other.keys():
                    return False
                waiting.append(zip(one.values(), map(other.__getitem__, one), strict=True))
                break
            if isinstance(one, list) and isinstance(other, list):
                if len(one) != len(other):
                    return False
                waiting.append(zip(one, other, strict=True))
                break
            if not _are_leaves_equal(one, other):
                return False
        else:
            waiting.pop()
    return True


def first_difference(found: Any, expected: Any) -> tuple[str, Any, Any]:
    """Return where two different JSON values first differ, and what stands there: "nothing" where a part is missing.

    Of a place with a long name, as in deep values, the middle is left out.

    Example:
        >>> first_difference({"rows": [1, 2]}, {"rows": [1, 3]})
        ('rows[1]', 2, 3)
    """
    path: list[Any] = []
    waiting = [_Level("{}", iter([("", found, expected)]))]
    while waiting:
        for key, one, other in waiting[-1].parts:
            path[len(waiting) - 1 :] = [key]
            if one is _MISSING or other is _MISSING:
                place = _place([level.form.format(key) for level, key in zip(waiting, path, strict=True)])
                return place, NOTHING if one is _MISSING else one, NOTHING if other is _MISSING else other
            inner = _inner(one, other)
            if inner is not None:
                waiting.append(inner)
                break
            if not _are_leaves_equal(one, other):
                return _place([level.form.format(key) for level, key in zip(waiting, path, strict=True)]), one, other
        else:
            waiting.pop()
    return "", found, expected


class ComparableJson:
    """A JSON value that may be compared with many others.

    Its second comparison and all later ones ask for a number first that equal values share, so that hundreds of
    values that begin alike are told apart at once. It costs as much as some comparisons.

    Args:
        value: See the attribute.

    Attributes:
        value: The JSON value.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._comparisons = 0

    def equals(self, other: "ComparableJson") -> bool:
        """Return ``are_json_equal`` of both values."""
        for each in (self, other):
            each._comparisons += 1
        if min(self._comparisons, other._comparisons) > 1 and self._shared_number != other._shared_number:
            return False
        return are_json_equal(self.value, other.value)

    @cached_property
    def _shared_number(self) -> int:
        return _shared_number(self.value)


def _shared_number(value: Any) -> int:
    """Return a number that is the same for equal values; Python's hash has 1, 1.0 and true as one already."""
    above: list[tuple[Any, Iterator[Any], list[int]]] = []
    while True:
        if isinstance(value, dict):
            above.append((value, iter(value.values()), []))
        elif isinstance(value, list):
            above.append((value, iter(value), []))
        else:
            number = _number_of_leaf(value)
            if not above:
                return number
            above[-1][2].append(number)
        while True:
            holder, parts, numbers = above[-1]
            try:
                value = next(parts)
                break
            except StopIteration:
                above.pop()
            number = hash(frozenset(zip(holder, numbers, strict=True)) if isinstance(holder, dict) else tuple(numbers))
            if not above:
                return number
            above[-1][2].append(number)


def _number_of_leaf(value: Any) -> int:
    if isinstance(value, float) and math.isnan(value):
        return 0
    try:
        return hash(value)
    except (TypeError, RecursionError):  # what is no JSON, such as a set in YAML
        return 0


class _Level(NamedTuple):
    """The parts of two objects or two arrays still to be compared: key or index, and what stands there."""

    form: str
    parts: Iterator[tuple[Any, Any, Any]]


def _inner(found: Any, expected: Any) -> _Level | None:
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = (*expected, *(key for key in found if key not in expected))
        return _Level(".{}", ((key, found.get(key, _MISSING), expected.get(key, _MISSING)) for key in keys))
    if isinstance(found, list) and isinstance(expected, list):
        pairs = zip_longest(found, expected, fillvalue=_MISSING)
        return _Level("[{}]", ((index, one, other) for index, (one, other) in enumerate(pairs)))
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


def deep_text(value: Any) -> str:
    """Return a text that equal values share, whatever their depth and the order of the keys of their objects.

    Example:
        >>> deep_text({"b": [1, 2], "a": None})
        "{'a':None,'b':[1,2,],},"
    """
    written: list[str] = []
    above: set[int] = set()  # the ids of the containers around a part: one that holds itself has no end
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        before, part = waiting.pop()
        written.append(before)
        if before in _CLOSING:
            above.remove(part)
        elif isinstance(part, dict | list) and id(part) not in above:
            above.add(id(part))
            if isinstance(part, dict):
                inner = sorted(((f"{key!r}:", item) for key, item in part.items()), key=itemgetter(0))
            else:
                inner = [("", item) for item in part]
            opening, closing = ("{", "},") if isinstance(part, dict) else ("[", "],")
            written.append(opening)
            waiting.append((closing, id(part)))
            waiting.extend(reversed(inner))
        else:
            written.append(f"{'itself' if isinstance(part, dict | list) else repr(part)},")
    return "".join(written)
