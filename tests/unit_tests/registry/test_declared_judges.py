import pytest

from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry import metrics as registry


def test_judges_are_for_questions_or_steps_and_keys_are_unique() -> None:
    assert {judge.key: judge.over for judge in registry.JUDGES} == {
        "answer_correctness": "questions",
        "answer_relevance": "questions",
        "retrieval_answer": "steps",
        "retrieval_context": "steps",
        "retrieval_utilization": "steps",
    }
    keys = [key for judge in registry.JUDGES for key in judge.keys]
    assert len(keys) == len(set(keys))
    assert registry.OLDER_CORRECTNESS_ERROR in keys


def test_registration_overrides_what_the_name_suggests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not metric_spec("saved_sec").lower_is_better
    spec = MetricSpec(key="saved_sec", lower_is_better=True, range=(0.0, None))
    monkeypatch.setitem(registry.metrics_of_users, "saved_sec", registry.RegisteredMetric(spec, lambda *_: None))
    assert metric_spec("saved_sec") is spec


@pytest.mark.parametrize(
    ("spec", "counts_as"),
    [
        (MetricSpec(key="m"), 0.0),
        (MetricSpec(key="m", range=(1.0, 5.0)), 0.0),
        (MetricSpec(key="m", range=(-5.0, -1.0)), -5.0),
        (MetricSpec(key="m", range=(-1.0, 1.0), usual_range=(0.0, 1.0)), 0.0),
        (MetricSpec(key="m", lower_is_better=True), 1.0),
        (MetricSpec(key="m", lower_is_better=True, range=(0.0, None)), None),
        (MetricSpec(key="m", kind="spent", lower_is_better=True), None),
        (MetricSpec(key="m", kind="count", lower_is_better=True), None),
    ],
)
def test_failed_question_counts_as_the_worst_score_but_spent_metrics_are_absent(
    spec: MetricSpec, counts_as: float | None
) -> None:
    assert spec.value_of_failure == counts_as
