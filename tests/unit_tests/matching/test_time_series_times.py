from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.time_series import absolute_time, do_times_equal, normalized_granularity, relative_offset

ANCHOR = "2025-12-15T15:00:00Z"


@pytest.mark.parametrize(
    ("reference", "actual", "equal"),
    [
        ("now", "now", True),
        ("2h-ago", "120m-ago", True),
        ("1w-ago", "7d-ago", True),
        ("1d-ahead", "1d-ago", False),
        ("now", "2025-12-15T15:01:00Z", True),
        ("now", "2025-12-15T15:01:01Z", False),
        ("2h-ago", "2025-12-15T14:00:45+01:00", True),
        ("2025-12-15T13:00:00Z", "2h-ago", False),
        ("2025-12-15T13:00:00Z", "2025-12-15T13:00:00", True),
        ("2025-12-15T13:00:00Z", "2025-12-15T13:00:01Z", False),
        ("2025-12-15", "20251215", True),
        (1765810800000, ANCHOR, True),
        ("yesterday", "yesterday", True),
        ("yesterday", "1d-ago", False),
        (None, None, True),
        (None, "now", False),
        ("now", None, False),
        ("now", "yesterday", False),
        ("now", "9" * 400 + "d-ago", False),
    ],
)
def test_equal_times(reference: Any, actual: Any, equal: bool) -> None:
    assert do_times_equal(ANCHOR, reference, actual) is equal


@pytest.mark.parametrize("anchor", [ANCHOR, "2025-12-15T15:00:00", 1765810800000, datetime(2025, 12, 15, 15)])
def test_anchor_may_be_a_string_a_datetime_or_milliseconds_and_defaults_to_utc(anchor: Any) -> None:
    assert do_times_equal(anchor, "1h-ago", "2025-12-15T14:00:30Z")


def test_without_an_anchor_relative_and_absolute_times_are_not_compared() -> None:
    assert do_times_equal(None, "1h-ago", "60m-ago")
    assert not do_times_equal(None, "1h-ago", ANCHOR)


@given(st.integers(0, 10**6), st.sampled_from("smhdw"), st.sampled_from(["ago", "ahead"]))
def test_relative_time_equals_its_absolute_time(count: int, unit: str, direction: str) -> None:
    anchor = datetime(4000, 1, 1, tzinfo=UTC)
    offset = relative_offset(f"{count}{unit}-{direction}")
    assert offset is not None
    if abs(offset) < timedelta(days=300_000):
        assert do_times_equal(anchor, f"{count}{unit}-{direction}", (anchor + offset).isoformat())


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()))
def test_no_value_raises(value: Any) -> None:
    assert absolute_time(value) is None or isinstance(absolute_time(value), datetime)
    assert do_times_equal(value, value, value) in (True, False)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("15m", "15minutes", True),
        ("15M", "15 Minute", True),
        ("1mo", "1month", True),
        ("1h", "60m", False),
        (None, "", True),
        ("1d", None, False),
        ("hourly", "hourly", True),
    ],
)
def test_granularity_in_any_spelling(left: str | None, right: str | None, equal: bool) -> None:
    assert (normalized_granularity(left) == normalized_granularity(right)) is equal
