"""Compares calls for time series and data points by their arguments, with times in any spelling."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from graphrag_eval_lc.matching.matchers import StepScore, StepView, explained
from graphrag_eval_lc.registry.step_kinds import StepKind
from graphrag_eval_lc.texts import shortened

Arguments = Mapping[str, Any]


def match_time_series_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if a ``retrieve_time_series`` call has the same ``mrid`` (one or several, in any order).

    If the reference has a ``limit``, it must be equal. If the reference has no ``mrid``, the call must have none
    either, and the same limit. The grade is the share of equal arguments among those that the reference has and those
    that the call should not have.
    """
    return _compared(reference, actual, ("mrid", "limit"), _time_series_differences)


def match_data_points_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if a ``retrieve_data_points`` call asks for the same data.

    These arguments must agree: ``external_id`` and ``aggregates`` (one or several, in any order), ``granularity`` in
    any spelling, ``limit``, and ``start`` and ``end``, absolute or relative to the step's ``execution_timestamp``. The
    grade is the share of equal arguments among those that the reference or the call has.
    """
    return _compared(reference, actual, _DATA_POINTS_KEYS, _data_points_differences)


def _compared(
    reference: StepView, actual: StepView, keys: Collection[str], differences: Callable[..., Iterable[str]]
) -> StepScore:
    expected, found = reference.get("args"), actual.get("args")
    if not isinstance(expected, Mapping):
        return explained(0.0, "the reference step has no arguments to compare with")
    if not isinstance(found, Mapping):
        return explained(0.0, "the call has no arguments")
    different = list(differences(expected, found, actual.get("execution_timestamp")))
    if not different:
        return explained(1.0, "the same arguments")
    # A surplus argument is a difference only if it changes what the call requests.
    wanted = len({key for key in keys if expected.get(key)} | set(different))
    equal = wanted - len(different)
    return StepScore(
        0.0,
        lambda: "; ".join(
            f"{key} is {_shown(found[key])} instead of {_shown(expected.get(key))}"
            if key in found
            else f"{key} is missing"
            for key in different
        ),
        lambda: 1 / (1 + len(different)),
        grade=lambda: equal / wanted,
        grade_reason=lambda: f"Worth {equal / wanted:.2f}: {equal} of {wanted} arguments are equal.",
    )


_DATA_POINTS_KEYS = ("external_id", "granularity", "aggregates", "start", "end", "limit")


def _time_series_differences(expected: Arguments, found: Arguments, _: Any) -> Iterator[str]:
    mrid, limit = expected.get("mrid"), expected.get("limit")
    if _bag(mrid) != _bag(found.get("mrid")) if mrid else found.get("mrid") is not None:
        yield "mrid"
    if (limit or not mrid) and limit != found.get("limit"):
        yield "limit"


def _data_points_differences(expected: Arguments, found: Arguments, anchor: Any) -> Iterator[str]:
    for key in _DATA_POINTS_KEYS:
        one, other = expected.get(key), found.get(key)
        if key == "external_id":
            is_equal = bool(one) and _bag(one) == _bag(other)
        elif key == "aggregates":
            is_equal = _bag(one) == _bag(other)
        elif key == "granularity":
            is_equal = normalized_granularity(one) == normalized_granularity(other)
        else:
            is_equal = one == other if key == "limit" else do_times_equal(anchor, one, other)
        if not is_equal:
            yield key


def _bag(values: Any) -> Any:
    """Return one or several values so that their order does not matter."""
    if not values:
        return Counter()
    return Counter(map(repr, values if isinstance(values, list | tuple) else [values]))


def _shown(value: Any) -> str:
    return shortened(repr(value), 80, keeps_lines=True)


# How far an absolute time that an agent writes may be from a relative one, such as "now", that it stands for.
TOLERANCE = timedelta(seconds=60)

_RELATIVE = re.compile(r"(\d{1,8})([smhdw])-(ago|ahead)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_GRANULARITY = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")
_GRANULARITY_UNITS = {"mo": "month", "q": "quarter", "y": "year"} | {
    letter: unit.removesuffix("s") for letter, unit in _UNITS.items()
}


def do_times_equal(anchor_time: Any, reference_time: Any, actual_time: Any) -> bool:
    """Return whether an actual time means the same as a reference time.

    Times are datetimes, ISO 8601 texts, milliseconds since 1970 as numbers, or texts relative to the anchor: ``now``,
    ``2h-ago``, ``1d-ahead`` (units s, m, h, d, w). Times without a zone are in UTC. A relative reference and an
    absolute actual time may be 60 seconds apart. An absolute reference never equals a relative time, because that
    would mean something else on another day.

    The anchor is the time of the call. It is needed only to compare a relative reference with an absolute time.
    """
    if reference_time is None or actual_time is None:
        return reference_time is actual_time
    reference_offset, actual_offset = relative_offset(reference_time), relative_offset(actual_time)
    if reference_offset is not None and actual_offset is not None:
        return reference_offset == actual_offset
    if reference_offset is None:
        if actual_offset is not None:
            return False
        reference, actual = absolute_time(reference_time), absolute_time(actual_time)
        return reference_time == actual_time if reference is None or actual is None else reference == actual
    anchor, actual = absolute_time(anchor_time), absolute_time(actual_time)
    if anchor is None or actual is None:
        return False
    return abs(anchor - actual + reference_offset) <= TOLERANCE


def relative_offset(time: Any) -> timedelta | None:
    """Return the offset of a relative time from its anchor; None for other values."""
    if not isinstance(time, str):
        return None
    if time.strip() == "now":
        return timedelta(0)
    match = _RELATIVE.fullmatch(time.strip())
    if match is None:
        return None
    offset = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return offset if match[3] == "ahead" else -offset


def absolute_time(time: Any) -> datetime | None:
    """Return a datetime, an ISO 8601 text or milliseconds since 1970 as a datetime in UTC; None for other values."""
    try:
        if isinstance(time, str):
            time = datetime.fromisoformat(time.strip().upper())
        elif isinstance(time, int | float) and not isinstance(time, bool):
            return datetime.fromtimestamp(time / 1000, UTC)
        if not isinstance(time, datetime):
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def normalized_granularity(granularity: Any) -> Any:
    """Return a granularity in one spelling: ``15m``, ``15minutes`` and ``15 Minute`` are the same."""
    match = _GRANULARITY.fullmatch(granularity) if isinstance(granularity, str) else None
    if match is None:
        return granularity or None
    unit = match[2].lower()
    unit = _GRANULARITY_UNITS.get(unit, unit.removesuffix("s"))
    return f"{match[1]}{unit}"


TIME_SERIES = StepKind(
    key="time_series",
    title="time series",
    serves=(("retrieve_time_series", None),),
    matcher=match_time_series_steps,
    reads="args",
)
DATA_POINTS = StepKind(
    key="data_points",
    title="data points",
    serves=(("retrieve_data_points", None),),
    matcher=match_data_points_steps,
    reads="args",
)
