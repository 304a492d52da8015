from datetime import timedelta

import pytest

from graphrag_eval_lc.demo.time_series import (
    FIRST,
    NOW,
    STEP,
    TimeSeries,
    TimeSeriesError,
    data_points,
    moment,
    time_text,
)

SERIES = TimeSeries("power-1", "m", "power", "MW", low=0, high=100)


def timestamps(*args):
    return [point["timestamp"] for point in data_points(SERIES, *args)]


def test_without_aggregates_values_come_every_5_minutes_from_start_until_before_end():
    points = data_points(SERIES, "2025-11-01T00:00:00Z", "2025-11-01T00:15:00Z")
    assert [point["timestamp"][11:16] for point in points] == ["00:00", "00:05", "00:10"]
    assert points[0]["value"] == SERIES.value_at(moment("start", "2025-11-01"))


def test_aggregates_are_computed_per_interval():
    values = [point["value"] for point in data_points(SERIES, "2025-11-01", "2025-11-01T02:00:00Z")]
    points = data_points(SERIES, "2025-11-01", "2025-11-01T02:00:00Z", ["average", "max", "min"], "1h")
    assert len(values) == 24
    for point, hour in zip(points, (values[:12], values[12:]), strict=True):
        assert (point["max"], point["min"]) == (max(hour), min(hour))
        assert point["average"] == pytest.approx(sum(hour) / 12, abs=0.051)


def test_intervals_begin_at_start_and_the_last_may_be_shorter():
    begin = timestamps("2025-11-01T00:20:00Z", "2025-11-01T01:00:00Z", ["max"], "15m")
    assert [each[11:16] for each in begin] == ["00:20", "00:35", "00:50"]


@pytest.mark.parametrize("granularity", ["60m", "60 minutes", "1h", "1hour", "1 Hours"])
def test_granularity_has_several_spellings(granularity):
    assert len(timestamps("1d-ago", "now", ["min"], granularity)) == 24


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("now", "2025-11-12T09:30:00Z"),
        ("90m-ago", "2025-11-12T08:00:00Z"),
        ("2d-ago", "2025-11-10T09:30:00Z"),
        ("1w-ahead", "2025-11-19T09:30:00Z"),
        ("2025-11-01", "2025-11-01T00:00:00Z"),
        ("2025-11-01T01:00:00+01:00", "2025-11-01T00:00:00Z"),
    ],
)
def test_times_are_absolute_or_relative_to_the_demos_now(text, time):
    assert time_text(moment("start", text)) == time


def test_there_are_no_values_before_the_first_or_after_now():
    assert timestamps("0001-01-01", "2025-01-01T00:10:00Z") == ["2025-01-01T00:00:00Z", "2025-01-01T00:05:00Z"]
    assert timestamps("10m-ago", "9999-12-31")[-1] == "2025-11-12T09:25:00Z"
    assert timestamps("now", "1d-ahead") == timestamps("2024-01-01", "2024-12-31", ["max"], "1d") == []


def test_intervals_without_values_are_left_out():
    assert timestamps("2024-12-30", "2025-01-02", ["max"], "1d") == ["2025-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("yesterday", "now"), "start is 'yesterday', but must be ISO 8601"),
        (("2h-ago", "2 h ago"), "end is '2 h ago', but must be ISO 8601"),
        (("9999999d-ago", "now"), "start is '9999999d-ago', but must be"),
        (("now", "2h-ago"), "start 'now' is not before end '2h-ago'"),
        (("2h-ago", "now", ["max"]), "both aggregates and granularity"),
        (("2h-ago", "now", [], "1h"), "both aggregates and granularity"),
        (("2h-ago", "now", ["max"], "1mo"), "granularity is '1mo', but must be a number and one of m, h, d and w"),
        (("2h-ago", "now", ["max"], "0h"), "granularity is '0h'"),
        (("2h-ago", "now", ["max"], "hourly"), "granularity is 'hourly'"),
        (("5d-ago", "now"), r"1440 data points, more than 1000\. Shorten the time"),
    ],
)
def test_invalid_request_is_an_error_that_says_how_to_fix_it(args, message):
    with pytest.raises(TimeSeriesError, match=message):
        data_points(SERIES, *args)


def test_now_is_the_time_of_a_value_so_that_relative_periods_have_whole_intervals():
    assert timestamps("5m-ago", "now") == [time_text(NOW.replace(minute=25))]


# --- the values

FLOW = TimeSeries("flow-1", "m", "flow", "MW", low=-700, high=700)
DAYS = [[FLOW.value_at(FIRST + day * timedelta(days=1) + step * STEP) for step in range(288)] for day in range(14)]


def test_values_depend_only_on_series_and_time():
    assert [FLOW.value_at(NOW - back * STEP) for back in (1, 2, 3)] == [-270.2, -204.0, -133.5]
    assert TimeSeries("flow-1", "other", "other", "kW", -700, 700).value_at(NOW) == FLOW.value_at(NOW)


def test_other_series_have_other_values():
    assert TimeSeries("flow-2", "m", "flow", "MW", -700, 700).value_at(NOW) != FLOW.value_at(NOW)


def test_values_use_most_of_the_range_and_stay_within_it():
    values = [value for day in DAYS for value in day]
    assert -700 <= min(values) < -400
    assert 400 < max(values) <= 700


def test_each_day_differs_from_the_others():
    assert len({round(sum(day)) for day in DAYS}) == len(DAYS)


def test_time_series_are_found_by_mrid(time_series):
    [series] = time_series.of_thing("33493c83-6d76-5b77-8648-005e165add0c")
    assert (series.name, series.unit) == ("DC FEDA-EEMSHAVEN 1 flow towards EEMSHAVEN", "MW")
    assert time_series.with_id(series.external_id) is series


def test_thing_without_time_series_has_none(time_series):
    assert time_series.of_thing("e09642e5-8ea7-5990-a973-ac4a1fe2a7c8") == []


def test_unknown_id_is_an_error_that_says_where_to_find_ids(time_series):
    with pytest.raises(
        TimeSeriesError, match=r"Unknown time series 'oslo'\. Take the external_id from retrieve_time_series"
    ):
        time_series.with_id("oslo")
