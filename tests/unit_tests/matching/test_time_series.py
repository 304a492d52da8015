from typing import Any

import pytest

from graphrag_eval_lc.matching import StepView
from graphrag_eval_lc.matching.time_series import match_data_points_steps, match_time_series_steps

AT = "2025-12-15T15:00:00Z"


@pytest.mark.parametrize(
    ("reference", "actual", "score"),
    [
        ({"mrid": "m"}, {"mrid": ["m"], "limit": 10}, 1.0),
        ({"mrid": ["m", "n"]}, {"mrid": ["n", "m"]}, 1.0),
        ({"mrid": ["m"]}, {"mrid": ["m", "m"]}, 0.0),
        ({"mrid": "m", "limit": 5}, {"mrid": "m"}, 0.0),
        ({"limit": 5}, {"limit": 5}, 1.0),
        ({}, {"mrid": "m"}, 0.0),
        ({}, {}, 1.0),
    ],
)
def test_time_series_are_looked_for_by_the_same_arguments(reference: Any, actual: Any, score: float) -> None:
    assert match_time_series_steps(StepView({"args": reference}), StepView({"args": actual})).score == score


@pytest.mark.parametrize(
    ("changed", "score"),
    [
        ({}, 1.0),
        ({"granularity": "15minutes", "aggregates": ["average"]}, 1.0),
        ({"start": "2025-12-15T13:00:20Z", "end": "2025-12-15T14:59:30Z"}, 1.0),
        ({"external_id": ["e", "f"]}, 0.0),
        ({"start": "3h-ago"}, 0.0),
        ({"limit": 10}, 0.0),
    ],
)
def test_data_points_are_fetched_by_the_same_arguments(changed: dict[str, Any], score: float) -> None:
    args = {"external_id": "e", "granularity": "15m", "aggregates": "average", "start": "2h-ago", "end": "now"}
    actual = StepView({"args": args | changed, "execution_timestamp": AT})
    assert match_data_points_steps(StepView({"args": args}), actual).score == score


def test_reason_names_each_argument_that_differs() -> None:
    reference = StepView({"args": {"external_id": "e", "granularity": "1h", "start": "now"}})
    actual = StepView({"args": {"external_id": "f", "granularity": "1h"}, "execution_timestamp": AT})
    reason = match_data_points_steps(reference, actual).reason()
    assert reason == "external_id is 'f' instead of 'e'; start is missing"


@pytest.mark.parametrize("args", [None, "m", []])
def test_steps_without_arguments_score_0(args: Any) -> None:
    full = StepView({"args": {"external_id": "e"}})
    assert match_data_points_steps(full, StepView({"args": args})).score == 0.0
    assert "reference" in match_data_points_steps(StepView({"args": args}), full).reason()
