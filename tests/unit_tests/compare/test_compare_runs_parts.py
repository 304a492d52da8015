"""Metrics that break down steps_score are tested separately from the others."""

from collections.abc import Callable
from typing import Any

from graphrag_eval_lc import compare_runs

Scored = Callable[..., list[dict[str, Any]]]
PARTS = ("steps_recall", "steps_precision", "steps_f1", "steps_order")


def run_of(scored: Scored, *, is_better: bool, with_parts: bool) -> list[dict[str, Any]]:
    results = scored(*[1.0 if is_better or index % 2 else 0.0 for index in range(20)])
    for index, result in enumerate(results):
        result["answer_relevance"] = result["steps_score"] * (0.9 if index else 0.1)
        result["total_tokens"] = 10 + index * is_better
        if with_parts:
            result |= dict.fromkeys(PARTS, result["steps_score"])
    return results


def p_values_of(scored: Scored, *, with_parts: bool) -> dict[str, float]:
    runs: list[Any] = [run_of(scored, is_better=is_better, with_parts=with_parts) for is_better in (False, True)]
    return {metric.metric: metric.adjusted_p_value for metric in compare_runs(*runs).pairs[0].metrics}


def test_parts_do_not_change_other_p_values(scored: Scored) -> None:
    with_parts, without = p_values_of(scored, with_parts=True), p_values_of(scored, with_parts=False)
    assert {metric: p for metric, p in with_parts.items() if metric not in PARTS} == without
    assert len(without) == 3


def test_parts_are_adjusted_together(scored: Scored) -> None:
    runs: list[Any] = [run_of(scored, is_better=is_better, with_parts=True) for is_better in (False, True)]
    parts = [metric for metric in compare_runs(*runs).pairs[0].metrics if metric.metric in PARTS]
    assert [metric.metric for metric in parts] == [*PARTS]
    assert {metric.adjusted_p_value for metric in parts} == {4 * parts[0].p_value}
