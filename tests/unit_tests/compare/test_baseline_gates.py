"""Gates beside a baseline: the laws that they keep, and what they see that a p-value alone does not."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare.baseline_gates import DropGate, IncreaseGate, LostGate, NotComparable, TemplatesGate
from graphrag_eval_lc.compare.gates import Gate
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry import MetricSpec, metrics

Results = list[dict[str, Any]]
Scored = Callable[..., Results]
FAULTS = MetricSpec(key="faults", lower_is_better=True, range=(0.0, 1.0))


def run_of(scores: Sequence[float], metric: str = "steps_score", templates: int = 4, **values: Any) -> Results:
    return [
        {"template_id": f"t{index % templates}", "question_id": f"q{index}", metric: score, **values}
        for index, score in enumerate(scores)
    ]


def check(a: Results, b: Results, *gates: Any, **options: Any) -> list[Gate]:
    return compare_runs(a, b, **options).gate_results(gates)


def gate_of(a: Results, b: Results, gate: Any, **options: Any) -> Any:
    (result,) = check(a, b, gate, **options)
    return result


SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=24)
LIMITS = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 1.0])


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a score of which less is better."""
    monkeypatch.setitem(metrics.metrics_of_users, "faults", metrics.RegisteredMetric(FAULTS, lambda *_: None))


@settings(max_examples=25, deadline=None)
@given(pairs=SCORES, limit=LIMITS)
def test_gate_is_passed_where_the_drop_is_within_the_limit(pairs: list[tuple[int, int]], limit: float) -> None:
    a, b = (run_of([pair[side] / 4 for pair in pairs]) for side in (0, 1))
    drop = sum(before - after for before, after in pairs) / 4 / len(pairs)
    plain, confident, of_templates, sure_of_templates = check(
        a,
        b,
        {"metric": "steps_score", "max_drop": limit},
        {"metric": "steps_score", "max_drop": limit, "confident": True},
        {"metric": "steps_score", "max_drop_per_template": limit},
        {"metric": "steps_score", "max_drop_per_template": limit, "confident": True},
    )
    assert isinstance(plain, DropGate)
    assert plain.drop == pytest.approx(drop)
    assert plain.has_passed is (drop <= limit + 1e-9)
    assert confident.has_passed or not plain.has_passed
    assert isinstance(of_templates, TemplatesGate)
    by_template = [
        sum(before - after for before, after in pairs[first::4]) / 4 / len(pairs[first::4])
        for first in range(min(4, len(pairs)))
    ]
    assert of_templates.has_passed is (max(by_template) <= limit + 1e-9)
    assert [each.drop for each in of_templates.templates] == pytest.approx(sorted(by_template, reverse=True))
    assert sure_of_templates.has_passed or not of_templates.has_passed


@settings(max_examples=25, deadline=None)
@given(pairs=SCORES, limit=LIMITS)
def test_what_less_is_better_of_is_mirrored(pairs: list[tuple[int, int]], limit: float) -> None:
    gates = [{"max_drop": limit}, {"max_drop_per_template": limit}, {"max_lost": 1}, {"max_lost_per_template": 0}]
    spec = metrics.RegisteredMetric(FAULTS, lambda *_: None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(metrics.metrics_of_users, "faults", spec)
        a, b = (run_of([pair[side] / 4 for pair in pairs]) for side in (0, 1))
        mirrored_a, mirrored_b = (run_of([1 - pair[side] / 4 for pair in pairs], "faults") for side in (0, 1))
        passed = [gate.has_passed for gate in check(a, b, *gates)]
        assert [gate.has_passed for gate in check(mirrored_a, mirrored_b, *gates, metrics=["faults"])] == passed


@settings(max_examples=15, deadline=None)
@given(scores=st.lists(st.integers(0, 4), min_size=1, max_size=12), tokens=st.integers(0, 10_000))
def test_run_passes_every_gate_of_nothing_beside_itself(scores: list[int], tokens: int) -> None:
    same = run_of([score / 4 for score in scores], total_tokens=tokens)
    gates = ["--max-drop 0", "--max-drop-per-template 0", "--max-lost 0", "--max-lost 0/template", "--max-lost 0/t0"]
    gates += ["--max-drop t0/steps_score=0", "--max-drop total_tokens=0", "--fail-over total_tokens=+0%"]
    results = check(same, same, *gates, "--fail-over total_tokens.p95=+0")
    assert [gate for gate in results if not gate.has_passed] == []


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), min_size=1, max_size=9),
    percent=st.integers(0, 100),
)
def test_increase_is_passed_where_it_is_within_the_limit(tokens: list[tuple[int, int]], percent: int) -> None:
    a, b = (
        [{**each, "total_tokens": pair[side]} for each, pair in zip(run_of([1.0] * len(tokens)), tokens, strict=True)]
        for side in (0, 1)
    )
    of_mean, of_sum, absolute = check(
        a, b, f"total_tokens=+{percent}%", f"total_tokens.sum=+{percent}%", f"total_tokens.max=+{percent}"
    )
    total_a, total_b = (sum(pair[side] for pair in tokens) for side in (0, 1))
    is_within = 100 * total_b <= (100 + percent) * total_a
    assert (of_mean.has_passed, of_sum.has_passed) == (is_within, is_within)
    assert absolute.has_passed is (max(b for _, b in tokens) <= max(a for a, _ in tokens) + percent)


def pair_of_runs(draw: random.Random, drop: float) -> tuple[Results, Results]:
    """Return two runs of 44 questions in 11 templates, each with its own chance, of which B's are lower by ``drop``."""
    runs: tuple[Results, Results] = ([], [])
    for template in range(11):
        chance = min(1.0, draw.gauss(0.85, 0.15))
        for question in range(4):
            ids = {"template_id": f"t{template}", "question_id": f"t{template}-{question}"}
            for run, right in zip(runs, (chance, chance - drop), strict=True):
                run.append({**ids, "steps_score": float(draw.random() < right)})
    return runs


@pytest.mark.full
def test_gates_see_the_drop_of_20_points_that_the_p_value_mostly_does_not() -> None:
    draw, number = random.Random(1), 150
    seen = {"p-value": 0, "--max-drop": 0, "--fail-on-regression": 0, "confident": 0}
    for _ in range(number):
        comparison = compare_runs(*pair_of_runs(draw, 0.2), metrics=["steps_score"])
        (regression,) = comparison.regression_gates()
        plain, confident = comparison.gate_results(
            ["--max-drop steps_score=0.05", {"metric": "steps_score", "max_drop": 0.05, "confident": True}]
        )
        seen["p-value"] += regression.metric.verdict == "worse"
        seen["--max-drop"] += not plain.has_passed
        seen["--fail-on-regression"] += not regression.has_passed
        seen["confident"] += not confident.has_passed
    share = {name: count / number for name, count in seen.items()}
    assert 0.25 < share["p-value"] < 0.5
    assert share["confident"] <= share["p-value"]
    assert share["--max-drop"] > 0.88
    assert share["--fail-on-regression"] > 0.88


def test_templates_that_dropped_are_named_the_worst_first() -> None:
    a, b = run_of([1.0] * 16), run_of([0.0, 1, 1, 0.5, 0.0, 1, 1, 1, 0.0, 1, 1, 1, 1, 1, 1, 1])
    gate = gate_of(a, b, "--max-drop-per-template 0.1")
    assert [each.template for each in gate.failed] == ["t0", "t3"]
    assert str(gate) == (
        "B: steps_score is worse by more than 0.1 in 2 of 4 templates: t0 (by 0.750: 1.000 → 0.250), "
        "t3 (by 0.125: 1.000 → 0.875)"
    )
    many = gate_of(run_of([1.0] * 8, templates=8), run_of([0.0] * 8, templates=8), "--max-drop-per-template 0.1")
    assert str(many).endswith("t4 (by 1.000: 1.000 → 0.000) and 3 more")
    passed = gate_of(a, b, "--max-drop-per-template steps_score=0.8")
    assert str(passed) == (
        "B: steps_score is worse by at most 0.750 in a template (t0), and 0.8 is allowed in each (4 templates)"
    )
    better = gate_of(b, a, "--max-drop-per-template 0")
    assert str(better) == "B: steps_score is worse in no template, and a drop of 0 is allowed in each (4 templates)"


def test_template_with_too_few_questions_is_unsure_and_that_is_said() -> None:
    a = run_of([1.0] * 36, templates=2)
    b = run_of([0.0, *[1.0] * 35], templates=2)
    few = run_of([1.0, 0.0, 1.0, 0.0], templates=1), run_of([0.0, 0.0, 0.0, 0.0], templates=1)
    gate = {"metric": "steps_score", "max_drop_per_template": 0.05, "confident": True}
    assert str(gate_of(a, b, gate)) == (
        "B: steps_score is worse by at most 0.056 in a template (t0), but surely by more than 0.05 in none "
        "(2 templates); too few questions to be sure of anything: t0"
    )
    assert not gate_of(*few, "--max-drop-per-template 0.05").has_passed
    assert gate_of(*few, gate).has_passed
    lost = run_of([float(index % 2) for index in range(36)], templates=2)
    sure = gate_of(a, lost, gate)
    assert not sure.has_passed
    assert str(sure).startswith("B: steps_score is surely worse by more than 0.05 in 1 of 2 templates: t0 (by 1.000")


def test_only_sure_drops_fail_where_that_is_wanted() -> None:
    draw = random.Random(3)
    a = run_of([1.0] * 40, templates=10)
    slight = run_of([float(draw.random() < 0.85) for _ in range(40)], templates=10)
    unsure = gate_of(a, slight, {"max_drop": 0.1, "confident": True})
    assert not gate_of(a, slight, "--max-drop 0.1").has_passed
    assert unsure.has_passed
    assert "but not surely" in str(unsure)
    assert "the lower end of the 95 % interval is" in str(unsure)
    sure = gate_of(a, run_of([0.5] * 40, templates=10), {"max_drop": 0.1, "confident": True})
    assert not sure.has_passed
    assert re.search(r"surely by 0\.\d{3} \(the lower end of the 95 % interval\), and only 0\.1 is allowed", str(sure))
    one = gate_of(run_of([1.0]), run_of([0.0]), {"max_drop": 0.1, "confident": True})
    assert one.has_passed
    assert str(one).startswith("B: steps_score is worse by 1.000, of which nothing is sure: only 1 question differs")


def test_drop_is_told_on_its_side_of_the_limit() -> None:
    a, b = run_of([1.0]), run_of([0.9499])
    assert str(gate_of(a, b, "--max-drop steps_score=0.05")) == (
        "B: steps_score is worse by 0.050100000, and only 0.05 is allowed (1.000 → 0.950, 1 question)"
    )
    assert str(gate_of(b, a, "--max-drop steps_score=0.05")) == (
        "B: steps_score is better, and a drop of 0.05 is allowed (0.950 → 1.000, 1 question)"
    )
    assert str(gate_of(run_of([1.0, 0.0]), run_of([0.0, 1.0]), "--max-drop 0")) == (
        "B: steps_score is the same in the mean, and a drop of 0 is allowed (0.500 → 0.500, 2 questions in 2 templates)"
    )
    from_nothing = gate_of(run_of([1], total_tokens=0), run_of([1], total_tokens=9), "--max-drop total_tokens=1")
    assert not from_nothing.has_passed
    assert "is worse by more than any share of A's mean, which is 0, and only 100 % of A's mean" in str(from_nothing)


def test_of_what_was_spent_a_share_is_allowed() -> None:
    a, b = run_of([1.0] * 3, total_tokens=1000), run_of([1.0] * 3, total_tokens=1100)
    assert gate_of(a, b, "--max-drop total_tokens=0.1").has_passed
    assert str(gate_of(a, b, "--max-drop t0/total_tokens=0.05")) == (
        "B: t0/total_tokens is worse by 10.0 %, and only 5 % of A's mean is allowed (1,000 → 1,100, 1 question)"
    )


def test_what_less_is_better_of_rises() -> None:
    a, b = run_of([1.0] * 3, total_tokens=1100), run_of([1.0] * 3, total_tokens=1000)
    assert "total_tokens is better, and a rise of 10 % of A's mean is allowed" in str(
        gate_of(a, b, "--max-drop total_tokens=0.1")
    )
    per_template = gate_of(a, b, "--max-drop-per-template total_tokens=0.1")
    assert "worse in no template, and a rise of 10 % of A's mean is allowed in each" in str(per_template)


def test_values_that_differ_do_not_look_alike() -> None:
    a, b = run_of([1.0], elapsed_sec=0.0261), run_of([1.0], elapsed_sec=0.0332)
    assert str(gate_of(a, b, {"metric": "elapsed_sec", "over": "+10%"})) == (
        "B: elapsed_sec is higher by 27.2 %, and only +10% is allowed (0.0261 → 0.0332, 1 question)"
    )
    assert "(0.0261 → 0.0332, 1 question)" in str(gate_of(a, b, "--max-drop elapsed_sec=0.1"))


def test_drop_that_is_not_sure_is_not_told_as_none() -> None:
    (gate,) = compare_runs(run_of([1.0] * 3), run_of([0.0] * 3)).regression_gates(confident=True)
    assert gate.has_passed
    assert str(gate).startswith(
        "B is not surely worse in steps_score by more than 0.05: 1.000 → 0.000 (−1.000, of which nothing is sure)"
    )


def test_lost_questions_are_those_that_flipped_to_wrong_and_are_named() -> None:
    a = run_of([1.0, 1.0, 1.0, 0.5, 1.0, 0.0], templates=2)
    b = run_of([0.0, 0.9, 1.0, 0.0, 1.0, 1.0], templates=2)
    comparison = compare_runs(a, b)
    (gate,) = comparison.gate_results(["--max-lost 1"])
    assert isinstance(gate, LostGate)
    assert {each.question_id for each in gate.lost} == {flip.question_id for flip in comparison.pairs[0].broken}
    assert str(gate) == (
        "B: steps_score has 2 lost questions, and only 1 may be (4 of 6 questions were right in A): q0, q1"
    )
    each, notes, in_t1 = comparison.gate_results(["--max-lost 1/template", "--max-lost 0/t0", "--max-lost 0/t1"])
    assert str(each) == (
        "B: steps_score has at most 1 lost question in a template (t0), and 1 may be in each (4 of 6 questions were "
        "right in A)"
    )
    assert str(notes) == (
        "B: t0/steps_score has 1 lost question, and only 0 may be (3 of 3 questions were right in A): q0"
    )
    assert not in_t1.has_passed
    (none,) = comparison.gate_results(["--max-lost 0/template"])
    assert str(none) == (
        "B: steps_score has more than 0 lost questions in 2 templates (4 of 6 questions were right in A): "
        "t0 (1: q0), t1 (1: q1)"
    )


def test_question_with_repeats_is_right_where_each_of_them_is() -> None:
    a = [{**each, "repeat": repeat} for repeat in (1, 2) for each in run_of([1.0, 1.0])]
    b = [{**each, "repeat": repeat} for repeat in (1, 2) for each in run_of([1.0, float(repeat - 1)])]
    assert gate_of(a, b, "--max-lost 0").number_lost == 1
    assert gate_of(b, a, "--max-lost 0").number_lost == 0


def test_failed_question_is_lost(scored: Scored) -> None:
    assert gate_of(scored(1.0, 1.0), scored(1.0, None), "--max-lost 0").number_lost == 1


def test_questions_with_undecided_steps_are_marked() -> None:
    a = run_of([1.0, 1.0])
    b = [{**each, "steps_counts": {"undecided": 1}} for each in run_of([0.0, 1.0])]
    assert str(gate_of(a, b, "--max-lost 0")).endswith(": q0 (undecided)")


def test_questions_are_lost_in_a_metric_of_the_gate_too() -> None:
    a, b = run_of([1.0, 1.0], answer_f1=1.0), run_of([1.0, 1.0], answer_f1=0.5)
    assert gate_of(a, b, {"metric": "answer_f1", "max_lost": 1}).number_lost == 2
    with pytest.raises(OptionError, match=r"total_tokens has no best value, so that no question is right in it"):
        gate_of(run_of([1], total_tokens=1), run_of([1], total_tokens=1), {"metric": "total_tokens", "max_lost": 1})


def test_increase_is_over_the_questions_that_both_have() -> None:
    a = [{**each, "elapsed_sec": 1.0 + index} for index, each in enumerate(run_of([1.0] * 4))]
    b = [{**each, "elapsed_sec": 2.0 + index} for index, each in enumerate(run_of([1.0] * 3))]
    del b[0]["elapsed_sec"]
    gate = gate_of(a, b, "--fail-over elapsed_sec=+10%")
    assert isinstance(gate, IncreaseGate)
    assert (gate.value_a, gate.value_b, gate.number_of_questions) == (2.5, 3.5, 2)
    assert str(gate) == "B: elapsed_sec is higher by 40.0 %, and only +10% is allowed (2.50 → 3.50, 2 questions)"
    assert str(gate_of(a, b, "t1/elapsed_sec.max=+1")) == (
        "B: t1/elapsed_sec.max is higher by 1, and +1 is allowed (2.00 → 3.00, 1 and 1 samples of 1 question)"
    )
    assert str(gate_of(b, a, "elapsed_sec=+0%")) == (
        "B: elapsed_sec is lower, and +0% is allowed (3.50 → 2.50, 2 questions)"
    )


def test_increase_over_nothing_fails() -> None:
    a, b = run_of([1.0], agent_cost=0.0), run_of([1.0], agent_cost=0.01)
    gate = gate_of(a, b, "agent_cost=+50%")
    assert not gate.has_passed
    assert "is higher by more than any share of A's, which is 0, and only +50% is allowed" in str(gate)
    assert gate_of(a, b, "agent_cost=+0.01").has_passed
    assert "by 0.01, and only +0.0099" in str(gate_of(a, b, "agent_cost=+0.0099"))


@pytest.mark.usefixtures("faults")
def test_increase_of_a_score_counts_failed_questions_as_compare_does() -> None:
    a = run_of([0.0, 0.5], faults=0.25)
    b = run_of([0.0, 0.5], faults=0.25)
    b[0] = {**b[0], "status": "error", "error": "away"}
    comparison = compare_runs(a, b, metrics=["faults"])
    (gate,) = comparison.gate_results(["faults=+0.1"])
    assert isinstance(gate, IncreaseGate)
    metric = comparison.pairs[0].metric("faults")
    assert metric is not None
    assert (gate.value_a, gate.value_b) == (metric.mean_a, metric.mean_b)


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ("--max-drop answer_f1=0.1", "B: answer_f1 could not be compared: B has not measured it"),
        ("--max-drop answer_relevance=0.1", "answer_relevance could not be compared: it was measured in neither run"),
        ("--max-drop t1/steps_score=0.1", "t1/steps_score could not be compared: A and B have no question of the t"),
        ("--max-lost 0/t1", "B: t1/steps_score could not be compared: A and B have no question of the template t1"),
        ("agent_cost=+10%", "B: agent_cost could not be compared: A has not measured it"),
        ("t1/total_tokens.p95=+10%", "t1/total_tokens.p95 could not be compared: A and B have no question of the t"),
        ({"metric": "answer_f1", "max_lost": 2}, "B: answer_f1 could not be compared: B has not measured it"),
        ({"metric": "f1_here", "max_drop_per_template": 0}, "f1_here could not be compared: no question has it in b"),
    ],
)
def test_where_nothing_can_be_compared_that_is_said(gate: Any, why: str) -> None:
    a = run_of([1.0, 1.0, 1.0], answer_f1=1.0, total_tokens=1)
    b = [each for each in run_of([1.0, 1.0, 1.0], agent_cost=1.0, total_tokens=1) if each["template_id"] != "t1"]
    a[0]["f1_here"], b[1]["f1_here"] = 1.0, 1.0
    result = gate_of(a, b, gate)
    assert isinstance(result, NotComparable)
    assert (result.has_passed, result.is_comparable) == (False, False)
    assert why in str(result)
