import pytest

from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, RegisteredMetric, metrics_of_users
from graphrag_eval_lc.report.formats import score_display


def register(monkeypatch: pytest.MonkeyPatch, spec: MetricSpec) -> str:
    monkeypatch.setitem(metrics_of_users, spec.key, RegisteredMetric(spec, lambda question, response: None))
    return spec.key


def test_built_in_scores_need_no_display_settings() -> None:
    assert all(score_display(spec.key) == {} for spec in BUILT_IN if spec.kind == "score")


def test_lower_is_better_score_shows_its_range_and_what_a_failure_counts_as(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = MetricSpec(key="detour", title="way for nothing", unit="km", lower_is_better=True, range=(0.0, 20.0))
    assert score_display(register(monkeypatch, spec)) == {
        "unit": "km",
        "note": "way for nothing; less is better",
        "lower": True,
        "worst": 20.0,
        "best": 0.0,
        "failed": 20.0,
        "failure_note": "an error counts as 20.0 km",
    }


def test_failures_do_not_count_without_a_worst_value(monkeypatch: pytest.MonkeyPatch) -> None:
    display = score_display(register(monkeypatch, MetricSpec(key="wait", lower_is_better=True, range=(0.0, None))))
    assert (display["failed"], display["failure_note"]) == (None, "an error does not count")
    assert (display["note"], display["worst"], display["best"]) == ("less is better", None, 0.0)


def test_counts_are_not_scores_of_failed_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = MetricSpec(key="warnings", kind="count", unit="count", lower_is_better=True, range=(0.0, None))
    display = score_display(register(monkeypatch, spec))
    assert display["failed"] is None
    assert "failure_note" not in display


def test_undeclared_metric_is_classified_by_name() -> None:
    assert (score_display("tone"), score_display("saved_sec")) == ({}, {"unit": "seconds"})
