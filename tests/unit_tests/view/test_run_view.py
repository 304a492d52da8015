"""The view of a run: verdicts, the headline, and that all of it is JSON."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from support.report_samples import QUESTION, sample, step, table

from graphrag_eval_lc.config import EvaluationConfig, RepeatsConfig
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users
from graphrag_eval_lc.view import RunView, run_view
from graphrag_eval_lc.view.run_view import Earlier, GateLine
from graphrag_eval_lc.view.samples import verdict_of


def result_of(question_id: str, score: float | None = None, template_id: str = "t", **more: Any) -> dict[str, Any]:
    """Return a result with a score; without one, it has only the keys passed."""
    base = {"template_id": template_id, "question_id": question_id, "question_text": "?", "status": "success"}
    return {**base, **({} if score is None else {"steps_score": score}), **more}


def headline_of(*results: dict[str, Any], **options: Any) -> str:
    return str(run_view(results, **options).headline)


ERROR = {"status": "error", "error": "ValueError: away", "steps_score": 0.0}

# A result, its state, and the score that determines it.
STATES: list[tuple[dict[str, Any], str, str | None]] = [
    ({"steps_score": 1.0}, "right", "steps_score"),
    ({"steps_score": 0.4}, "partly", "steps_score"),
    ({"steps_score": 0.0}, "wrong", "steps_score"),
    ({"steps_score": 0.0, "steps_score_upper": 1.0}, "undecided", "steps_score"),
    ({"steps_score": 0.0, "steps_score_upper": 0.5}, "wrong", "steps_score"),
    ({"steps_score": 1.0, "answer_f1": 0.0}, "right", "steps_score"),
    ({"answer_f1": 0.5}, "right", "answer_f1"),
    ({"answer_f1": 0.2}, "partly", "answer_f1"),
    ({"answer_f1": 0.0}, "wrong", "answer_f1"),
    ({"detour": 0.0, "custom_metrics": ["detour"]}, "right", "detour"),
    ({"detour": 2.0, "custom_metrics": ["detour"]}, "partly", "detour"),
    ({"detour": 4.0, "custom_metrics": ["detour"]}, "wrong", "detour"),
    ({"total_tokens": 4}, "unscored", None),
    ({}, "unscored", None),
    (ERROR, "error", "steps_score"),
]


@pytest.mark.parametrize(("result", "state", "metric"), STATES)
def test_first_available_score_determines_the_state(
    result: dict[str, Any], state: str, metric: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = MetricSpec(key="detour", lower_is_better=True, range=(0.0, 4.0))
    monkeypatch.setitem(metrics_of_users, "detour", RegisteredMetric(spec, lambda question, response: None))
    view = run_view([result_of("q", **result)])
    assert view.headline.states == {state: 1}
    assert [failure.metric for failure in view.failures] == ([metric] if view.headline.not_right else [])


def test_configured_passing_score_takes_precedence() -> None:
    passing = RepeatsConfig(metric="answer_f1", threshold=0.8)
    judged = sample(step("sparql_query", table("T1", "T2")), answer_f1=0.7)
    assert (verdict_of(judged, passing).state, verdict_of(judged, RepeatsConfig()).state) == ("partly", "right")


def test_headline_contains_only_what_is_known() -> None:
    assert headline_of() == "no questions"
    assert headline_of(result_of("q")) == "1 question, not scored"
    results = [
        result_of("a", 1.0, total_tokens=900, agent_cost=0.1),
        result_of("b", 0.5, total_tokens=1100, agent_cost=0.2),
        result_of("c", agent_cost=0.0, **ERROR),
    ]
    headline = "1 of 3 right, 1 partly right, 1 error · steps_score 0.500 (0.04–0.96) · $0.30 · 1.0 k tokens a question"
    assert headline_of(*results) == headline
    assert headline_of(results[0], result_of("d")).startswith("1 of 2 right, 1 not scored · steps_score 1.000")
    assert headline_of(result_of("q", retrieval_ids_recall=1.0)) == "1 question, not scored"
    repeated = [result_of("a", 1.0, repeat=1), result_of("a", 0.0, repeat=2)]
    assert headline_of(*repeated).startswith("1 of 2 samples right, 1 wrong · steps_score 0.500")
    several = [result_of(f"q{at}", float(at % 3 > 0), f"t{at % 6}") for at in range(24)]
    assert headline_of(*several) == "16 of 24 right, 8 wrong · steps_score 0.667 (0.20–0.94)"


def test_headline_includes_the_changes() -> None:
    now = [
        result_of("a", 0.0),
        result_of("b", **ERROR),
        result_of("c", 1.0),
        result_of("d", 1.0),
        result_of("new", 0.0),
    ]
    earlier = Earlier("runs/main", {"a": True, "b": True, "c": False, "d": True, "gone": True})
    assert headline_of(*now, earlier=earlier).endswith(" · 2 broken, 1 fixed since runs/main")
    assert headline_of(now[3], earlier=earlier).endswith(" · nothing broken or fixed since runs/main")


def test_templates_have_counts_scores_and_costs() -> None:
    empty = {"name": "q", "status": "success", "output": '{"head": {}, "results": {"bindings": []}}'}
    failed = {"name": "q", "status": "error", "error": "away"}
    view = run_view(
        [
            result_of("a", 1.0, "t", actual_steps=[empty, failed], total_tokens=10, retrieval_missing=2),
            result_of("b", template_id="t", **ERROR),
            result_of("c", 0.5, "u", elapsed_sec=2.0),
        ]
    )
    first, second = view.templates
    assert (first.template_id, first.questions, first.errors, first.right) == ("t", 2, 1, 1)
    assert (first.failed_calls, first.empty_results, first.missing, second.missing) == (1, 1, 2, None)
    assert (first.tokens, first.usd, second.seconds) == (10, None, 2.0)
    assert (first.scores["steps_score"].means, second.scores["steps_score"].mean) == ((0.5, 1.0), 0.5)


def test_unanswered_templates_are_hidden_only_if_they_are_the_majority() -> None:
    none = {"status": "error", "error": "there is no response to this question"}
    many = run_view([*(result_of(f"n{at}", None, f"t{at}", **none) for at in range(12)), result_of("q", 1.0, "u")])
    assert [line.template_id for line in many.hidden_templates] == [f"t{at}" for at in range(12)]
    few = run_view([result_of("n", None, "t", **none), result_of("q", 1.0, "u")])
    assert few.hidden_templates == ()


def test_view_is_json_and_reads_results_once() -> None:
    results: list[Any] = [
        result_of("a", 0.0, repeat=1),
        result_of("a", 1.0, repeat=2, agent_cost=0.5),
        result_of("b", **ERROR),
    ]
    gates = [GateLine("failed", "steps_score 0.5 falls short of 0.9")]
    view = run_view(iter(results), EvaluationConfig(), gates=gates, earlier=Earlier("A", {"a": True}))
    assert isinstance(view, RunView)
    found = json.loads(json.dumps(asdict(view), allow_nan=False))
    assert found["gates"] == [{"state": "failed", "text": "steps_score 0.5 falls short of 0.9"}]
    assert [failure["key"] for failure in found["failures"]] == ["b", "a"]
    assert found["headline"]["changes"] == {"run": "A", "broken": ["a"], "fixed": [], "path": None}


def test_failure_has_expected_and_actual_answer() -> None:
    wrong = sample(step("sparql_query", table("T1")), reference_answer=QUESTION["reference_answer"]).result
    (failure,) = run_view([wrong]).failures
    assert (failure.expected, failure.received) == ("T1 and T2.", "T1.")
    assert failure.reason.startswith("sparql_query: 1 of 2 rows is missing")
    assert (failure.kind, failure.state) == ("missing rows", "wrong")


@pytest.mark.parametrize("diagnosis", [[[{}]], [[{"matched": None, "score": 0}]], [["text"]], [None], {"a": 1}])
def test_unreadable_diagnosis_has_no_reason(diagnosis: Any) -> None:
    view = run_view([result_of("q", 0.5, steps_diagnosis=diagnosis, reference_steps=[])])
    assert [failure.reason for failure in view.failures] == [""]
