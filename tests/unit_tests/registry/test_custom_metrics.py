"""Registering custom metrics, rejecting invalid ones, and reading their recorded from a run's record."""

from typing import Any

import pytest

from graphrag_eval_lc import MetricSpec, register_evaluator, register_metric
from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import declaration, note_recorded, recorded_only_here
from graphrag_eval_lc.registry.metrics import is_declared, metrics_of_users


def measure(question: Any, response: Any) -> float:
    return 1.0


def other(question: Any, response: Any) -> float:
    return 2.0


def test_decorator_declares_the_metric_and_returns_the_function() -> None:
    decorated = register_metric(key="saved_sec", title="seconds saved", unit="seconds", lower_is_better=True)(measure)
    spec = metric_spec("saved_sec")
    assert decorated is measure
    assert metrics_of_users["saved_sec"].function is measure
    assert (spec.title, spec.unit, spec.lower_is_better, spec.over) == ("seconds saved", "seconds", True, "questions")
    assert spec.error_key == "saved_sec_error"


@pytest.mark.parametrize("is_decorator", [True, False])
def test_spec_can_be_passed_instead(is_decorator: bool) -> None:
    spec = MetricSpec(key="saved_sec", unit="seconds", range=(None, 60))
    returned = register_metric(spec)(measure) if is_decorator else register_metric(spec, measure)
    assert returned is measure
    assert metric_spec("saved_sec").range == (None, 60)


@pytest.mark.parametrize(
    ("declared", "bounds"),
    [
        ({}, (0.0, 1.0)),
        ({"unit": "seconds"}, (None, None)),
        ({"kind": "count"}, (None, None)),
        ({"range": (0, 5)}, (0, 5)),
    ],
)
def test_default_range_of_0_to_1_is_only_for_scores_without_a_unit(declared: Any, bounds: Any) -> None:
    register_metric(key="own", **declared)(measure)
    assert metric_spec("own").range == bounds


def test_failed_questions_count_as_the_worst_known_value() -> None:
    for key, declared in {"more": {}, "less": {"range": (0, 60)}, "open": {"range": (0, None)}}.items():
        register_metric(key=key, lower_is_better=key != "more", **declared)(measure)  # type: ignore[arg-type]
    assert [metric_spec(key).value_of_failure for key in ("more", "less", "open")] == [0.0, 60, None]


def test_lower_is_better_for_spent_metrics_by_default() -> None:
    register_metric(key="effort", kind="spent", unit="min")(measure)
    register_metric(MetricSpec(key="energy", kind="spent", unit="kWh"), measure)
    assert [metric_spec(key).lower_is_better for key in ("effort", "energy")] == [True, True]


@pytest.mark.parametrize("key", ["", "1st", "a,b", "a=b", "two words", 3, "tone_error", "tone_reason", "tone_cost"])
def test_invalid_key_is_rejected(key: Any) -> None:
    with pytest.raises(PluginError, match="the key of a metric cannot be"):
        register_metric(key=key)(measure)
    assert not metrics_of_users


@pytest.mark.parametrize(
    "key", ["steps_score", "answer_f1", "elapsed_sec", "retrieval_ids_own", "question_id", "micro"]
)
def test_reserved_key_is_rejected(key: str) -> None:
    with pytest.raises(PluginError, match=f"the key {key} is one of the results' own.* Rename it"):
        register_metric(key=key)(measure)


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ({"range": (1, 0)}, r"the range of the metric own cannot be \(1, 0\)\. Give the least and the greatest"),
        ({"range": (0, float("nan"))}, "the range of the metric own cannot be"),
        ({"range": (0, float("inf"))}, "the range of the metric own cannot be .* None for no bound"),
        ({"range": (0, 10**400)}, "the range of the metric own cannot be"),
        ({"range": 5}, "the range of the metric own cannot be 5"),
        ({"unit": ""}, "the unit of the metric own cannot be ''"),
        ({"unit": 3}, "the unit of the metric own cannot be 3"),
        ({"unit": "a\rb"}, "the unit of the metric own cannot be"),
        ({"title": "a\x1b[31mb"}, "the title of the metric own cannot be"),
        ({"kind": "good"}, "the kind of the metric own cannot be 'good'. Give one of score, spent, count"),
        ({"lower_is_better": "yes"}, "the lower_is_better of the metric own cannot be 'yes'"),
    ],
)
def test_invalid_declaration_is_rejected(declared: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        register_metric(key="own", **declared)(measure)


def test_built_in_kinds_are_rejected() -> None:
    with pytest.raises(PluginError, match="the over of the metric own cannot be 'steps'"):
        register_metric(MetricSpec(key="own", over="steps"), measure)
    with pytest.raises(PluginError, match=r"the judge of the metric own cannot be 'answer_relevance'\. Leave it out"):
        register_metric(MetricSpec(key="own", judge="answer_relevance"), measure)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: register_metric()(measure), r"a metric needs a key. Write @register_metric\(key="),  # type: ignore[call-overload]
        (lambda: register_metric(measure), "a metric is declared by its key or a MetricSpec, not by <function"),  # type: ignore[call-overload]
        (lambda: register_metric(MetricSpec(key="own"), key="own")(measure), "own is declared twice"),  # type: ignore[call-overload]
        (lambda: register_metric(MetricSpec(key="own"), 3), "a metric cannot be int"),  # type: ignore[type-var]
    ],
)
def test_invalid_call_shows_the_correct_one(call: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        call()


def test_registering_the_same_function_again_replaces_it() -> None:
    def cell(value: float) -> Any:
        def measured(question: Any, response: Any) -> float:
            return value

        return measured

    first, second = cell(1.0), cell(2.0)
    register_metric(key="own", unit="a")(first)
    register_metric(key="own", unit="b")(second)
    assert metrics_of_users["own"].function is second
    assert metric_spec("own").unit == "b"


def test_key_of_another_function_is_rejected() -> None:
    register_metric(key="own")(measure)
    with pytest.raises(PluginError, match=f"the key own of {__name__}:other is that of the metric {__name__}:measure"):
        register_metric(key="own")(other)
    with pytest.raises(PluginError, match=r"the key own .* is that of the metric"):
        register_evaluator(name="own")(other)
    assert metrics_of_users["own"].function is measure


def test_recorded_declaration_is_used_if_the_metric_is_not_registered() -> None:
    register_metric(key="extra_wait", title="seconds longer", unit="seconds", lower_is_better=True, range=(0, 60))(
        measure
    )
    recorded = declaration(metric_spec("extra_wait"))
    with recorded_only_here():
        note_recorded(
            [
                ("extra_wait", {**recorded, "title": "other"}),
                ("waited", recorded),
                ("steps_score", recorded),
            ]
        )
        assert metric_spec("extra_wait").title == "seconds longer"
        assert not metric_spec("steps_score").lower_is_better
        assert (metric_spec("waited").lower_is_better, metric_spec("waited").range) == (True, (0, 60))
        assert not is_declared("waited")


def test_recorded_declaration_ends_with_its_block() -> None:
    recorded = [("waited", {"unit": "seconds", "lower_is_better": True})]
    with recorded_only_here():
        note_recorded(recorded)
        with recorded_only_here():
            assert not metric_spec("waited").lower_is_better
        assert metric_spec("waited").lower_is_better
    note_recorded(recorded)
    assert not metric_spec("waited").lower_is_better


@pytest.mark.parametrize(
    "recorded",
    [
        {"unit": 3},
        {"unit": "\ud800"},
        {"title": "\x1b[31m", "unit": "seconds"},
        {"range": "wide"},
        {"range": [0, 10**400]},
        {"range": [0, float("inf")], "lower_is_better": True},
        {"kind": {}},
        {"lower_is_better": "yes"},
    ],
)
def test_invalid_recorded_declaration_is_ignored(recorded: Any) -> None:
    with recorded_only_here():
        note_recorded([("waited", recorded)])
        assert not metric_spec("waited").lower_is_better
        assert metric_spec("waited").unit == "score"
