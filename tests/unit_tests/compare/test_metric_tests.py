"""Intervals and verdicts of a comparison's metrics."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare import MetricComparison

METRICS = ("steps_score", "answer_f1", "answer_relevance", "steps_f1", "steps_recall", "total_tokens")
SCORES = st.sampled_from((0.0, 0.0, 0.5, 1.0, 1.0, 0.9))


def results(values: list[list[float]], shift: float, templates: int) -> list[dict[str, Any]]:
    return [
        {
            "question_id": f"q{index}",
            "template_id": f"t{index % templates}",
            **{metric: min(1.0, value + shift) for metric, value in zip(METRICS, scores, strict=True)},
        }
        for index, scores in enumerate(values)
    ]


@given(
    number=st.integers(2, 30),
    templates=st.integers(1, 12),
    shift=st.sampled_from((0.0, 0.1, 0.5, 1.0)),
    data=st.data(),
)
def test_interval_contains_0_if_and_only_if_there_is_no_evidence(
    number: int, templates: int, shift: float, data: st.DataObject
) -> None:
    rows = st.lists(st.lists(SCORES, min_size=6, max_size=6), min_size=number, max_size=number)
    a, b = results(data.draw(rows), 0.0, templates), results(data.draw(rows), shift, templates)
    for metric in compare_runs(a, b).pairs[0].metrics:
        check(metric)


def check(metric: MetricComparison) -> None:
    is_found = metric.verdict != "no evidence"
    assert is_found is (metric.deciding_p_value < 0.05)
    if metric.interval is None:
        assert not is_found
        return
    assert is_found is not (metric.interval.low <= 0 <= metric.interval.high)
    assert metric.interval.low <= metric.difference <= metric.interval.high
    assert metric.confidence >= 0.95 - 1e-12
    if metric.is_main:
        assert metric.confidence == 0.95
    if metric.is_proportion:
        assert metric.interval.low >= -1
        assert metric.interval.high <= 1
    if not metric.can_tell:
        assert not is_found


def test_intervals_widen_with_many_metrics_except_for_the_main_one() -> None:
    a, b = (results([[0.1 * (index % 3), *[level] * 5] for index in range(16)], 0.0, 16) for level in (0.2, 0.4))
    pair = compare_runs(a, b).pairs[0]
    alone = compare_runs(a, b, metrics=["answer_f1"]).pairs[0].metrics[0]
    among = pair.metric("answer_f1")
    assert among is not None
    assert among.interval is not None
    assert alone.interval is not None
    assert (alone.confidence, among.confidence > 0.95) == (0.95, True)
    assert among.interval.low < alone.interval.low < alone.interval.high < among.interval.high


def test_power_refers_to_a_drop_of_5_points_or_5_percent() -> None:
    a, b = (results([[0.5, 0.5, 0.5, 0.5, 0.5, level + index % 3] for index in range(40)], 0.0, 20) for level in (9, 9))
    for index, result in enumerate(b):
        result["total_tokens"] = 20.0 + index % 4
        a[index]["total_tokens"] = 20.0 + index % 3
    pair = compare_runs(a, b).pairs[0]
    score, tokens = pair.metric("steps_score"), pair.metric("total_tokens")
    assert score is not None
    assert tokens is not None
    assert score.power is not None
    assert tokens.power is not None
    assert 0 < score.power < 0.5 < tokens.power < 1


def test_power_is_undefined_for_one_question_or_zero_usage() -> None:
    one = [{"question_id": "q", "template_id": "t", "steps_score": 1.0, "total_tokens": 5.0}]
    assert [metric.power for metric in compare_runs(one, one).pairs[0].metrics] == [None, None]
    a, b = (
        [{"question_id": f"q{index}", "template_id": f"t{index}", "total_tokens": level * index} for index in range(9)]
        for level in (0, 1)
    )
    assert compare_runs(a, b, metrics=["total_tokens"]).pairs[0].metrics[0].power is None
