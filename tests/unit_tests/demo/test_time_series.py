from datetime import timedelta

import pytest

from graphrag_eval_lc.demo.time_series import FIRST, NOW, STEP, TimeSeries, TimeSeriesError

SERIES = TimeSeries("flow-1", "m", "flow", "MW", low=-700, high=700)
DAYS = [[SERIES.value_at(FIRST + day * timedelta(days=1) + step * STEP) for step in range(288)] for day in range(14)]


def test_values_follow_from_the_series_and_the_time_alone():
    assert [SERIES.value_at(NOW - back * STEP) for back in (1, 2, 3)] == [-270.2, -204.0, -133.5]
    assert TimeSeries("flow-1", "other", "other", "kW", -700, 700).value_at(NOW) == SERIES.value_at(NOW)


def test_another_series_has_other_values():
    assert TimeSeries("flow-2", "m", "flow", "MW", -700, 700).value_at(NOW) != SERIES.value_at(NOW)


def test_values_stay_between_low_and_high_and_use_most_of_the_range():
    values = [value for day in DAYS for value in day]
    assert -700 <= min(values) < -400
    assert 400 < max(values) <= 700


def test_each_day_differs_from_the_others():
    assert len({round(sum(day)) for day in DAYS}) == len(DAYS)


def test_the_time_series_of_a_thing_are_found_by_its_mrid(time_series):
    [series] = time_series.of_thing("33493c83-6d76-5b77-8648-005e165add0c")
    assert (series.name, series.unit) == ("DC FEDA-EEMSHAVEN 1 flow towards EEMSHAVEN", "MW")
    assert time_series.with_id(series.external_id) is series


def test_a_thing_without_time_series_has_none(time_series):
    assert time_series.of_thing("e09642e5-8ea7-5990-a973-ac4a1fe2a7c8") == []


def test_an_unknown_id_is_an_error_that_says_where_ids_are_found(time_series):
    with pytest.raises(
        TimeSeriesError, match=r"Unknown time series 'oslo'\. Take the external_id from retrieve_time_series"
    ):
        time_series.with_id("oslo")
