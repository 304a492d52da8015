from typing import Any, get_args

import pytest

from graphrag_eval_lc.aggregation import SAMPLE_METRICS, SPENT_METRICS, is_error
from graphrag_eval_lc.config import Score


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"status": "success"}, False),
        ({"status": "success", "error": None}, False),
        ({"status": "error"}, True),
        ({"error": "boom"}, True),
        ({}, False),
    ],
)
def test_result_with_an_error_or_its_status_failed(result: dict[str, Any], failed: bool) -> None:
    assert is_error(result) is failed


def test_repeats_may_be_judged_by_every_score_that_is_summed_up() -> None:
    assert set(get_args(Score)) == set(SAMPLE_METRICS) - set(SPENT_METRICS)
