"""Results of registered metrics and evaluators, and the reasons if there are none."""

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from graphrag_eval_lc import compute_aggregates, register_evaluator, register_metric, run_evaluation
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.judges.custom_functions import all_functions

DATASET: list[Any] = [
    {"template_id": "t", "questions": [{"id": q, "question_text": "How many?"} for q in ("q1", "q2", "q3")]}
]
RESPONSES: Any = {
    "q1": {"actual_answer": "one two", "elapsed_sec": 2.0},
    "q2": {"actual_answer": "", "elapsed_sec": 3.0, "status": "error", "error": "away"},
}


def words(question: Any, response: Any) -> int:
    return len(response["actual_answer"].split())


async def nothing(question: Any, response: Any) -> None:
    await asyncio.sleep(0)


def registered(returned: Any, **declared: Any) -> dict[str, Any]:
    """Return the result of q1 with a metric that returns the value, or raises it if it is an exception."""

    @register_metric(key="own", **declared)
    def own(question: Any, response: Any) -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    return dict(run_evaluation(DATASET, RESPONSES)[0])


def test_registered_functions_are_called_as_well_as_passed_ones() -> None:
    register_metric(key="words", kind="count", unit="words")(words)
    register_evaluator(name="tone")(lambda question, response: {"calm": True, "mood": "fine"})
    first, second, third = run_evaluation(DATASET, RESPONSES, evaluators=[lambda_free])
    assert first["custom_metrics"] == ["words", "calm", "lambda_free"]
    assert (first["words"], first["calm"], first["mood"]) == (2, True, "fine")  # type: ignore[typeddict-item]
    assert second["words"] == 0  # type: ignore[typeddict-item]  # failed questions are measured too
    assert "custom_metrics" not in third  # it has no response
    micro = compute_aggregates([first, second, third])["micro"]
    assert micro["words"]["sum"] == 2
    assert micro["number_of_error_samples"] == 2


def lambda_free(question: Any, response: Any) -> float:
    return 0.5


def test_function_both_registered_and_passed_is_called_once() -> None:
    register_metric(key="words", kind="count")(words)
    assert [each.name for each in all_functions([words])] == ["words"]


def test_registered_functions_keep_their_names() -> None:
    register_evaluator(words)

    def other(question: Any, response: Any) -> int:
        return 1

    other.__name__ = "words"
    assert [each.name for each in all_functions([other])] == ["words", "words_2"]


@pytest.mark.parametrize(
    ("returned", "value"), [(0.5, 0.5), (1, 1), (True, True), (np.float64(0.25), 0.25), (np.int64(1), 1)]
)
def test_numbers_and_booleans_are_values(returned: Any, value: Any) -> None:
    result = registered(returned)
    assert result["own"] == value
    assert result["custom_metrics"] == ["own"]
    assert "own_error" not in result


def test_none_is_absent_and_not_0() -> None:
    register_metric(key="own")(nothing)
    result = run_evaluation(DATASET, RESPONSES)[0]
    assert {"own", "own_error", "custom_metrics"}.isdisjoint(result)


@pytest.mark.parametrize(
    ("returned", "declared", "reason"),
    [
        (math.nan, {}, "the metric own returned nan; return None if there is nothing to measure."),
        (math.inf, {"unit": "seconds"}, "the metric own returned inf; return None if there is nothing to measure."),
        ("0.5", {}, "the metric own returned '0.5' instead of a number or None."),
        ({"own": 1}, {}, "the metric own returned {'own': 1} instead of a number or None."),
        (1.5, {}, "the metric own returned 1.5, and is declared with a range from 0 to 1."),
        (10**308, {}, "the metric own returned 1e+308; return None if there is nothing to measure."),
        (-1, {"range": (0, None)}, "the metric own returned -1, and is declared with a range from 0 to ∞."),
        (KeyError("form_sec"), {}, "KeyError: 'form_sec'"),
        (SystemExit(3), {}, "SystemExit: 3"),
    ],
)
def test_invalid_value_is_an_error_with_the_reason(returned: Any, declared: Any, reason: str) -> None:
    result = registered(returned, **declared)
    assert result["own_error"] == reason
    assert "own" not in result


def test_values_of_an_earlier_evaluation_are_dropped() -> None:
    register_metric(key="own")(nothing)
    earlier: Any = {"q1": {**RESPONSES["q1"], "own": 0.9, "own_error": "away"}}
    assert {"own", "own_error"}.isdisjoint(run_evaluation(DATASET, earlier)[0])


def test_evaluators_must_be_a_list() -> None:
    with pytest.raises(OptionError, match="evaluators cannot be 3"):
        all_functions(3)  # type: ignore[arg-type]
