"""Comparing the calls that look for time series and fetch their data points: by their arguments, not their outputs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView, explained
from graphrag_eval_lc.matching.times import do_times_equal, normalized_granularity
from graphrag_eval_lc.texts import shortened

_SHOWN = 80

Arguments = Mapping[str, Any]


def match_time_series_steps(reference: StepView, actual: StepView) -> Comparison:
    """Score 1 where a ``retrieve_time_series`` call asks for the same ``mrid`` (one or several, in any order).

    The ``limit`` must be equal where the reference has one. Without an ``mrid`` in the reference the call must have
    none either, and the same limit.
    """
    return _compared(reference, actual, _time_series_differences)


def match_data_points_steps(reference: StepView, actual: StepView) -> Comparison:
    """Score 1 where a ``retrieve_data_points`` call asks for the same data.

    ``external_id`` and ``aggregates`` (one or several, in any order), ``granularity`` in any spelling, ``start`` and
    ``end`` as times relative to the step's ``execution_timestamp`` or absolute, and ``limit`` must agree.
    """
    return _compared(reference, actual, _data_points_differences)


def _compared(
    reference: StepView, actual: StepView, differing_keys: Callable[[Arguments, Arguments, Any], Iterable[str]]
) -> Comparison:
    expected, found = reference.get("args"), actual.get("args")
    if not isinstance(expected, Mapping):
        return explained(0.0, "the reference step has no arguments to compare with")
    if not isinstance(found, Mapping):
        return explained(0.0, "the call has no arguments")
    keys = list(differing_keys(expected, found, actual.get("execution_timestamp")))
    if not keys:
        return explained(1.0, "the same arguments")
    return Comparison(0.0, lambda: _reason(keys, expected, found), lambda: 1 / (1 + len(keys)))


def _time_series_differences(expected: Arguments, found: Arguments, anchor: Any) -> Iterable[str]:
    del anchor
    if not expected.get("mrid"):
        if found.get("mrid") is not None:
            yield "mrid"
        if expected.get("limit") != found.get("limit"):
            yield "limit"
        return
    if _bag(expected["mrid"]) != _bag(found.get("mrid")):
        yield "mrid"
    if expected.get("limit") and expected["limit"] != found.get("limit"):
        yield "limit"


def _data_points_differences(expected: Arguments, found: Arguments, anchor: Any) -> Iterable[str]:
    if not expected.get("external_id") or _bag(expected["external_id"]) != _bag(found.get("external_id")):
        yield "external_id"
    if normalized_granularity(expected.get("granularity")) != normalized_granularity(found.get("granularity")):
        yield "granularity"
    if _bag(expected.get("aggregates")) != _bag(found.get("aggregates")):
        yield "aggregates"
    for key in ("start", "end"):
        if not do_times_equal(anchor, expected.get(key), found.get(key)):
            yield key
    if expected.get("limit") != found.get("limit"):
        yield "limit"


def _bag(values: Any) -> Any:
    """Give one or several values in a form in which their order does not matter."""
    if not values:
        return Counter()
    return Counter(map(repr, values if isinstance(values, list | tuple) else [values]))


def _reason(keys: Iterable[str], expected: Arguments, found: Arguments) -> str:
    return "; ".join(
        f"{key} is {_shown(found[key])} instead of {_shown(expected.get(key))}" if key in found else f"{key} is missing"
        for key in keys
    )


def _shown(value: Any) -> str:
    return shortened(repr(value), _SHOWN, keeps_lines=True)
