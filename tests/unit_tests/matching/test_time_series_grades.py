"""Calls for time series and data points are worth the share of their equal arguments."""

from typing import Any

import pytest

from graphrag_eval_lc.matching import match_steps

POINTS = {"external_id": "e", "granularity": "1h", "aggregates": ["avg"], "start": "2h-ago", "end": "now"}


def diagnosed(name: str, expected: Any, found: Any) -> tuple[float, float, str]:
    step = {"name": name, "args": found, "id": "c", "status": "success", "output": ""}
    groups = [[{"name": name, "args": expected}]]
    binary, graded = match_steps(groups, [step]), match_steps(groups, [step], grading="graded")
    assert binary.steps_score is not None
    return binary.steps_score, graded.diagnosis[0][0].score, graded.diagnosis[0][0].reason


@pytest.mark.parametrize(
    ("expected", "found", "worth"),
    [
        pytest.param(POINTS, POINTS, 1.0, id="all"),
        pytest.param(POINTS, {**POINTS, "granularity": "60m"}, 0.8, id="four of five"),
        pytest.param(POINTS, {**POINTS, "external_id": "f", "end": "1h-ago"}, 0.6, id="three of five"),
        pytest.param(POINTS, {**POINTS, "limit": 10}, 5 / 6, id="one too many"),
        pytest.param(POINTS, {"external_id": "e"}, 0.2, id="one of five"),
        pytest.param(POINTS, {}, 0.0, id="none"),
        pytest.param(POINTS, None, 0.0, id="no arguments"),
        pytest.param({"external_id": "e"}, {"external_id": "f"}, 0.0, id="the only one is another"),
        pytest.param({}, {"external_id": "f"}, 0.0, id="a reference that asks for nothing"),
    ],
)
def test_data_points_are_worth_the_share_of_equal_arguments(expected: Any, found: Any, worth: float) -> None:
    binary, graded, _ = diagnosed("retrieve_data_points", expected, found)
    assert (binary, graded) == (float(worth == 1), pytest.approx(worth))


@pytest.mark.parametrize(
    ("expected", "found", "worth"),
    [
        pytest.param({"mrid": ["a", "b"], "limit": 5}, {"mrid": ["b", "a"], "limit": 5}, 1.0, id="all"),
        pytest.param({"mrid": ["a", "b"], "limit": 5}, {"mrid": ["b", "a"], "limit": 6}, 0.5, id="another limit"),
        pytest.param({"mrid": "a"}, {"mrid": "a", "limit": 6}, 1.0, id="a limit that the reference leaves free"),
        pytest.param({"mrid": "a"}, {"mrid": "b"}, 0.0, id="another series"),
        pytest.param({"limit": 5}, {"limit": 5, "mrid": "a"}, 0.5, id="a series too many"),
    ],
)
def test_time_series_are_worth_the_share_of_equal_arguments(expected: Any, found: Any, worth: float) -> None:
    binary, graded, _ = diagnosed("retrieve_time_series", expected, found)
    assert (binary, graded) == (float(worth == 1), pytest.approx(worth))


def test_reason_says_the_share() -> None:
    reason = diagnosed("retrieve_data_points", POINTS, {**POINTS, "granularity": "1d"})[2]
    assert reason == "granularity is '1d' instead of '1h'. Worth 0.80: 4 of 5 arguments are equal."
