"""Error rates of comparisons, measured on pairs of runs whose true difference is known."""

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
import pytest

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare import PairComparison

pytestmark = pytest.mark.full

PAIRS = 250
# With this many pairs, a true rate of 6 % rarely exceeds this bound (two standard errors).
MOST_ALARMS = 0.06 + 2 * sqrt(0.06 * 0.94 / PAIRS)
Generator = np.random.Generator
Results = list[dict[str, Any]]


def two_runs(random: Generator, effect: float, number_of_templates: int) -> tuple[Results, Results]:
    """Return the results of two agents. The second is better by ``effect``, with equal usage.

    Templates have 1 to 5 questions, with a difficulty per template and agent; one in ten questions fails.
    """
    runs: tuple[Results, Results] = ([], [])
    for template in range(number_of_templates):
        ease = random.beta(2, 1) * (1 - 2 * abs(effect))
        chances = np.clip(ease + np.array([0, effect]) + random.normal(0, 0.05, 2), 0, 1)
        for question in range(int(random.integers(1, 6))):
            for run, chance in zip(runs, chances, strict=True):
                run.append(result(random, f"t{template}", f"q{template}_{question}", float(chance)))
    return runs


def result(random: Generator, template_id: str, question_id: str, chance: float) -> dict[str, Any]:
    spent = {"total_tokens": int(random.normal(1000, 100)), "elapsed_sec": float(random.random())}
    base = {"template_id": template_id, "question_id": question_id, **spent}
    if random.random() < 0.1:
        return {**base, "status": "error", "error": "away", "reference_steps": [[{"name": "lookup"}]]}
    return {
        **base,
        "status": "success",
        "steps_score": float(random.random() < chance),
        "answer_relevance": float(random.random()),
        "actual_steps": [
            {"name": "retrieval", "retrieval_utilization": random.random(), "retrieval_context_recall": random.random()}
        ],
    }


def compared(
    number: int, effect: float, number_of_templates: int, metrics: list[str] | None = None
) -> Iterator[PairComparison]:
    for seed in range(number):
        runs = two_runs(np.random.default_rng(seed), effect, number_of_templates)
        yield compare_runs(*runs, metrics=metrics).pairs[0]


def test_equal_agents_rarely_raise_an_alarm_and_intervals_contain_the_truth() -> None:
    main = others = held = 0
    for pair in compared(PAIRS, 0.0, 25):
        verdicts = {metric.metric: metric.verdict for metric in pair.metrics}
        assert len(verdicts) == 6
        main += verdicts.pop("steps_score") != "no evidence"
        others += any(verdict != "no evidence" for verdict in verdicts.values())
        interval = pair.metrics[0].interval
        assert interval is not None
        held += interval.low <= 0 <= interval.high
    assert main / PAIRS <= MOST_ALARMS
    assert others / PAIRS <= MOST_ALARMS
    assert 0.92 <= held / PAIRS <= 0.98


def test_difference_of_15_points_is_detected_in_most_pairs() -> None:
    number = 60
    found = sum(pair.metrics[0].verdict == "better" for pair in compared(number, 0.15, 80, ["steps_score"]))
    assert found / number > 0.5
