"""Gates that compare a run with a baseline: a table of decisions and messages, and their invariants."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare import GateResult
from graphrag_eval_lc.registry import MetricSpec, metrics

Results = list[dict[str, Any]]
Scored = Callable[..., Results]
FAULTS = MetricSpec(key="faults", lower_is_better=True, range=(0.0, 1.0))
FEW = "with fewer than 6, no p-value is below 0.05"
# 11 templates with 48 questions, like the demo; the questions of five templates are lost.
DEMO = [index for index, size in enumerate([5, 4, 4, 4, 3, 6, 5, 5, 5, 4, 3]) for _ in range(size)]
LOST = [float(template > 4) for template in DEMO]


def run_of(scores: Sequence[float], metric: str = "steps_score", templates: int = 4, **values: Any) -> Results:
    return [
        {"template_id": f"t{index % templates}", "question_id": f"q{index}", metric: score, **values}
        for index, score in enumerate(scores)
    ]


def demo(scores: Sequence[float]) -> Results:
    return [
        {"template_id": f"t{template}", "question_id": f"q{index}", "steps_score": score}
        for index, (template, score) in enumerate(zip(DEMO, scores, strict=True))
    ]


def check(a: Results, b: Results, *gates: Any, **options: Any) -> list[GateResult]:
    return compare_runs(a, b, **options).gate_results(gates)


def tokens(number: float) -> Results:
    return run_of([1.0] * 3, total_tokens=number)


SIX = [1.0, 1.0, 1.0, 0.5, 1.0, 0.0]
SIX_NOW = [0.0, 0.9, 1.0, 0.0, 1.0, 1.0]
SLIGHT = run_of([0.0, *[1.0] * 35], templates=2)
# Runs, gate, state and message.
CASES: dict[str, tuple[Results, Results, Any, str, str]] = {
    "drop": (run_of([1.0] * 4), run_of([1, 1, 0, 1]), "--max-drop 0.05", "failed", "1.000 → 0.750, drop 0.250 > 0.05"),
    "drop within": (run_of([1.0] * 4), run_of([1, 1, 0, 1]), "--max-drop 0.3", "passed", "drop 0.250 ≤ 0.3"),
    "rounded drop": (run_of([1.0]), run_of([0.9499]), "--max-drop 0.05", "failed", "drop 0.0501 > 0.05"),
    "drop of just the limit": (run_of([0.35]), run_of([0.3]), "--max-drop 0.05", "passed", "drop 0.05 ≤ 0.05"),
    "gain": (run_of([0.5]), run_of([1.0]), "--max-drop 0", "passed", "0.500 → 1.000, no drop"),
    "tokens": (
        tokens(1000),
        tokens(1100),
        "--max-drop total_tokens=0.05",
        "failed",
        "1,000 → 1,100, rise 10.0 % > 5 %",
    ),
    "fewer tokens": (tokens(9), tokens(8), "--max-drop total_tokens=0.1", "passed", "9 → 8, no rise"),
    "from nothing": (tokens(0), tokens(9), "--max-drop total_tokens=1", "failed", "0 → 9, rise from 0 > 100 %"),
    "of a template": (
        run_of(SIX),
        run_of(SIX_NOW),
        "--max-drop t0/steps_score=0.2",
        "failed",
        "t0/steps_score 1.000 → 0",
    ),
    "templates": (
        run_of([1.0] * 16),
        run_of([0.0, 1, 1, 0.5, 0.0, 1, 1, 1, 0.0, 1, 1, 1, 1, 1, 1, 1]),
        "--max-drop-per-template 0.1",
        "failed",
        "B: steps_score worse by more than 0.1 in 2 of 4 templates: t0 1.000 → 0.250, t3 1.000 → 0.875",
    ),
    "templates within": (
        run_of([1.0] * 4),
        run_of([0.5, 1, 1, 1]),
        "--max-drop-per-template 0.8",
        "passed",
        "B: steps_score in the worst of 4 templates, t0: 1.000 → 0.500, drop 0.500 ≤ 0.8",
    ),
    "many templates": (
        run_of([1.0] * 8, templates=8),
        run_of([0.0] * 8, templates=8),
        "--max-drop-per-template 0.1",
        "failed",
        "t4 1.000 → 0.000 and 3 more",
    ),
    "uncertain": (
        run_of([1.0]),
        run_of([0.0]),
        {"max_drop": 0.1, "confident": True},
        "passed",
        f"drop 1.000 > 0.1, but not certain: only 1 question differs; {FEW}",
    ),
    "certain": (
        run_of([1.0] * 40, templates=10),
        run_of([0.5] * 40, templates=10),
        {"max_drop": 0.1, "confident": True},
        "failed",
        "drop 0.500 > 0.1; certain are 0.472 > 0.1",
    ),
    "uncertain template": (
        run_of([1.0] * 36, templates=2),
        SLIGHT,
        {"max_drop_per_template": 0.05, "confident": True},
        "passed",
        f"only 1 question differs; {FEW}; too few questions to be certain in t0",
    ),
    "certain template": (
        run_of([1.0] * 36, templates=2),
        run_of([float(index % 2) for index in range(36)], templates=2),
        {"max_drop_per_template": 0.05, "confident": True},
        "failed",
        "steps_score worse by certainly more than 0.05 in 1 of 2 templates: t0 1.000 → 0.000",
    ),
    "lost": (
        run_of(SIX),
        run_of(SIX_NOW),
        "--max-lost 1",
        "failed",
        "B: steps_score: 2 of 4 right questions broken > 1: q0, q1",
    ),
    "lost within": (
        run_of(SIX),
        run_of(SIX_NOW),
        "--max-lost 2",
        "passed",
        "2 of 4 right questions broken ≤ 2: q0, q1",
    ),
    "lost in a template": (run_of(SIX), run_of(SIX_NOW), "--max-lost 0/t0", "failed", "t0/steps_score: 1 of 2 right"),
    "lost per template": (
        run_of(SIX, templates=2),
        run_of(SIX_NOW, templates=2),
        "--max-lost 0/template",
        "failed",
        "B: steps_score: 1 right question broken in t0 > 0, also too many in t1: q0, q1",
    ),
    "none lost": (
        run_of(SIX),
        run_of(SIX),
        "--max-lost 0/template",
        "passed",
        "0 right questions broken in each template ≤ 0",
    ),
    "lost while undecided": (
        run_of([1.0, 1.0]),
        [{**each, "steps_counts": {"undecided": 1}} for each in run_of([0.0, 1.0])],
        "--max-lost 0",
        "failed",
        "1 of 2 right questions broken > 0: q0 (undecided)",
    ),
    "lost in another metric": (
        run_of([1.0, 1.0], answer_f1=1.0),
        run_of([1.0, 1.0], answer_f1=0.5),
        {"metric": "answer_f1", "max_lost": 1},
        "failed",
        "answer_f1: 2 of 2 right questions broken > 1",
    ),
    "increase": (
        tokens(1000),
        tokens(1200),
        "total_tokens=+10%",
        "failed",
        "B: total_tokens 1,000 → 1,200, +20.0 % > +10%",
    ),
    "increase within": (tokens(1000), tokens(1200), "t1/total_tokens.max=+200", "passed", "1,000 → 1,200, +200 ≤ +200"),
    "decrease": (tokens(9), tokens(8), "total_tokens=+0%", "passed", "9 → 8, no increase"),
    "increase from 0": (tokens(0), tokens(9), "total_tokens=+50%", "failed", "9, from 0 > +50%"),
    "small values": (
        run_of([1.0], elapsed_sec=0.0261),
        run_of([1.0], elapsed_sec=0.0332),
        "elapsed_sec=+10%",
        "failed",
        "0.0261 → 0.0332, +27.2 % > +10%",
    ),
    "no regression": (
        run_of([1, 0.5]),
        run_of([1, 0.5]),
        "--fail-on-regression",
        "passed",
        "is the same for each question",
    ),
    "regression inside five templates": (
        demo([1.0] * 48),
        demo(LOST),
        "--fail-on-regression",
        "failed",
        f"1.000 → 0.583, drop 0.417 > 0.05 (the effect decided: only 5 templates differ; {FEW})",
    ),
    "one question of 48": (
        demo([1.0] * 48),
        demo([0.0, *[1.0] * 47]),
        "--fail-on-regression",
        "passed",
        f"drop 0.021 ≤ 0.05 (the effect decided: only 1 template differs; {FEW})",
    ),
    "one question of 48, strict": (
        demo([1.0] * 48),
        demo([0.0, *[1.0] * 47]),
        {"regression": 0.02},
        "failed",
        "> 0.02",
    ),
    "a small drop that a strong test sees": (
        run_of([1.0] * 200, templates=200),
        run_of([*[0.9] * 20, *[1.0] * 180], templates=200),
        "--fail-on-regression",
        "failed",
        "B: steps_score 1.000 → 0.990, p < 0.001 (the p-value decided)",
    ),
    "a change of nothing that a strong test does not see": (
        run_of([0.5] * 200, templates=200),
        run_of([*[0.49] * 105, *[0.51] * 95], templates=200),
        {"regression": 0},
        "passed",
        "(the p-value decided)",
    ),
    "a drop that a weak test sees": (
        run_of([0.5] * 7, templates=7),
        run_of([0.3, 0.35, 0.48, 0.47, 0.45, 0.46, 0.4], templates=7),
        {"regression": 0.1},
        "failed",
        "(the p-value decided)",
    ),
    "a drop that a weak test does not see": (
        run_of([*[1.0] * 5, *[0.0] * 4], templates=9),
        run_of([*[0.0] * 5, *[1.0] * 4], templates=9),
        "--fail-on-regression",
        "failed",
        "drop 0.111 > 0.05 (the effect decided: the test finds a drop of 0.05 in only",
    ),
    "an uncertain regression": (
        run_of([1.0] * 3),
        run_of([0.0] * 3),
        {"regression": 0.05, "confident": True},
        "passed",
        "drop 1.000 > 0.05, but not certain",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_state_and_message(case: str) -> None:
    a, b, gate, state, sentence = CASES[case]
    (result,) = check(a, b, gate)
    assert (result.state, result.letter) == (state, "B"), result.sentence
    assert sentence in result.sentence
    assert str(result) == result.sentence


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ("--max-drop answer_f1=0.1", "B: answer_f1 cannot be compared: B has not measured it"),
        ("--max-drop answer_relevance=0.1", "answer_relevance cannot be compared: neither run measured it"),
        ("--max-drop t1/steps_score=0.1", "t1/steps_score cannot be compared: A and B have no question of the t"),
        ("--max-lost 0/t1", "B: t1/steps_score cannot be compared: A and B have no question of the template t1"),
        ("agent_cost=+10%", "B: agent_cost cannot be compared: A has not measured it"),
        ("t1/total_tokens.p95=+10%", "t1/total_tokens.p95 cannot be compared: A and B have no question of the t"),
        ({"metric": "answer_f1", "max_lost": 2}, "B: answer_f1 cannot be compared: B has not measured it"),
        ({"metric": "f1_here", "max_drop_per_template": 0}, "f1_here cannot be compared: no question has it in both"),
        ({"metric": "answer_f1", "regression": 0}, "B: answer_f1 cannot be compared: B has not measured it"),
    ],
)
def test_gate_without_data_is_unchecked_with_a_reason(gate: Any, why: str) -> None:
    a = run_of([1.0, 1.0, 1.0], answer_f1=1.0, total_tokens=1)
    b = [each for each in run_of([1.0, 1.0, 1.0], agent_cost=1.0, total_tokens=1) if each["template_id"] != "t1"]
    a[0]["f1_here"], b[1]["f1_here"] = 1.0, 1.0
    (result,) = check(a, b, gate)
    assert (result.state, result.has_passed, result.value) == ("not checked", False, None)
    assert why in result.sentence


def test_runs_without_a_score_in_common_have_no_main_metric() -> None:
    a, b = ([{"template_id": "t", "question_id": "q", "total_tokens": number}] for number in (1, 2))
    (result,) = check(a, b, "--max-drop 0.1")
    assert (result.state, result.metric) == ("not checked", "")
    assert result.sentence == "B: the main metric cannot be compared: A and B have no score in common"


SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=24)
LIMITS = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5, 1.0])


@settings(max_examples=25, deadline=None)
@given(pairs=SCORES, limit=LIMITS)
def test_gate_passes_if_the_drop_is_within_the_limit(pairs: list[tuple[int, int]], limit: float) -> None:
    a, b = (run_of([pair[side] / 4 for pair in pairs]) for side in (0, 1))
    drop = sum(before - after for before, after in pairs) / 4 / len(pairs)
    conditions: list[Any] = [{"max_drop": limit}, {"max_drop_per_template": limit}]
    sure = [{**condition, "confident": True} for condition in conditions]
    plain, of_templates, confident, sure_of_templates = check(a, b, *conditions, *sure)
    assert plain.value == pytest.approx(drop)
    assert plain.has_passed is (drop <= limit + 1e-9)
    by_template = [
        sum(before - after for before, after in pairs[first::4]) / 4 / len(pairs[first::4])
        for first in range(min(4, len(pairs)))
    ]
    assert of_templates.value == pytest.approx(max(by_template))
    assert len(of_templates.details) == sum(each > limit + 1e-9 for each in by_template)
    assert of_templates.has_passed is not of_templates.details
    assert confident.has_passed or not plain.has_passed
    assert sure_of_templates.has_passed or not of_templates.has_passed


@settings(max_examples=25, deadline=None)
@given(pairs=SCORES, limit=LIMITS)
def test_lower_is_better_metric_is_mirrored(pairs: list[tuple[int, int]], limit: float) -> None:
    gates = [{"max_drop": limit}, {"max_drop_per_template": limit}, {"max_lost": 1}, {"regression": limit}]
    spec = metrics.RegisteredMetric(FAULTS, lambda *_: None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(metrics.metrics_of_users, "faults", spec)
        a, b = (run_of([pair[side] / 4 for pair in pairs]) for side in (0, 1))
        mirrored_a, mirrored_b = (run_of([1 - pair[side] / 4 for pair in pairs], "faults") for side in (0, 1))
        states = [gate.state for gate in check(a, b, *gates)]
        assert [gate.state for gate in check(mirrored_a, mirrored_b, *gates, metrics=["faults"])] == states


@settings(max_examples=15, deadline=None)
@given(scores=st.lists(st.integers(0, 4), min_size=1, max_size=12), number=st.integers(0, 10_000))
def test_run_compared_with_itself_passes_every_zero_gate(scores: list[int], number: int) -> None:
    same = run_of([score / 4 for score in scores], total_tokens=number)
    gates = ["--max-drop 0", "--max-drop-per-template 0", "--max-lost 0", "--max-lost 0/template", "--max-lost 0/t0"]
    gates += ["--max-drop t0/steps_score=0", "--max-drop total_tokens=0", "--fail-over total_tokens=+0%"]
    results = check(same, same, *gates, "--fail-over total_tokens.p95=+0", "--fail-on-regression=0")
    assert [gate for gate in results if not gate.has_passed] == []


@settings(max_examples=25, deadline=None)
@given(
    spent=st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), min_size=1, max_size=9),
    percent=st.integers(0, 100),
)
def test_increase_passes_if_it_is_within_the_limit(spent: list[tuple[int, int]], percent: int) -> None:
    a, b = (
        [{**each, "total_tokens": pair[side]} for each, pair in zip(run_of([1.0] * len(spent)), spent, strict=True)]
        for side in (0, 1)
    )
    gates = (f"total_tokens=+{percent}%", f"total_tokens.sum=+{percent}%", f"total_tokens.max=+{percent}")
    of_mean, of_sum, absolute = check(a, b, *gates)
    total_a, total_b = (sum(pair[side] for pair in spent) for side in (0, 1))
    is_within = 100 * total_b <= (100 + percent) * total_a
    assert (of_mean.has_passed, of_sum.has_passed) == (is_within, is_within)
    assert absolute.has_passed is (max(b for _, b in spent) <= max(a for a, _ in spent) + percent)


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("number", [6, 8, 11, 40])
def test_regression_gate_never_passes_a_run_with_verdict_worse(spread: float, number: int) -> None:
    draw = random.Random(number)
    for drop in (0.01, 0.05, 0.2):
        before = [draw.uniform(0.2, 0.8) for _ in range(number)]
        after = [min(1.0, max(0.0, score - drop + spread * draw.uniform(-1, 1))) for score in before]
        comparison = compare_runs(run_of(before, templates=number), run_of(after, templates=number))
        metric = comparison.pairs[0].metric("steps_score")
        assert metric is not None
        for gate in comparison.gate_results([{"regression": 0.5}, {"regression": 0.5, "confident": True}]):
            assert gate.has_passed is (metric.verdict != "worse" and -metric.difference <= 0.5), str(gate)


def pair_of_runs(draw: random.Random, drop: float) -> tuple[Results, Results]:
    """Return two runs of 44 questions in 11 templates with individual success rates, B's lower by ``drop``."""
    runs: tuple[Results, Results] = ([], [])
    for template in range(11):
        chance = min(1.0, draw.gauss(0.85, 0.15))
        for question in range(4):
            ids = {"template_id": f"t{template}", "question_id": f"t{template}-{question}"}
            for run, right in zip(runs, (chance, chance - drop), strict=True):
                run.append({**ids, "steps_score": float(draw.random() < right)})
    return runs


@pytest.mark.full
def test_gates_detect_a_drop_of_20_points_that_p_values_mostly_miss() -> None:
    draw, number = random.Random(1), 150
    seen = {"p-value": 0, "max_drop": 0, "regression": 0, "confident": 0}
    for _ in range(number):
        comparison = compare_runs(*pair_of_runs(draw, 0.2), metrics=["steps_score"])
        gates = ["--fail-on-regression", "--max-drop 0.05", {"max_drop": 0.05, "confident": True}]
        failed = [not gate.has_passed for gate in comparison.gate_results(gates)]
        seen["p-value"] += comparison.pairs[0].metrics[0].verdict == "worse"
        for name, has_failed in zip(("regression", "max_drop", "confident"), failed, strict=True):
            seen[name] += has_failed
    share = {name: count / number for name, count in seen.items()}
    assert 0.25 < share["p-value"] < 0.5
    assert share["confident"] <= share["p-value"]
    assert min(share["max_drop"], share["regression"]) > 0.88


def test_lost_questions_are_those_that_flipped_to_wrong() -> None:
    comparison = compare_runs(run_of(SIX), run_of(SIX_NOW))
    (gate,) = comparison.gate_results(["--max-lost 0"])
    assert set(gate.details) == {flip.question_id for flip in comparison.pairs[0].broken}


def test_question_with_repeats_is_right_if_all_repeats_are() -> None:
    a = [{**each, "repeat": repeat} for repeat in (1, 2) for each in run_of([1.0, 1.0])]
    b = [{**each, "repeat": repeat} for repeat in (1, 2) for each in run_of([1.0, float(repeat - 1)])]
    assert [gate.value for gate in (*check(a, b, "--max-lost 0"), *check(b, a, "--max-lost 0"))] == [1, 0]


def test_failed_question_is_lost(scored: Scored) -> None:
    assert check(scored(1.0, 1.0), scored(1.0, None), "--max-lost 0")[0].details == ("q1",)


def test_increase_is_over_common_questions() -> None:
    a = [{**each, "elapsed_sec": 1.0 + index} for index, each in enumerate(run_of([1.0] * 4))]
    b = [{**each, "elapsed_sec": 2.0 + index} for index, each in enumerate(run_of([1.0] * 3))]
    del b[0]["elapsed_sec"]
    (gate,) = check(a, b, "--fail-over elapsed_sec=+10%")
    assert gate.sentence == "B: elapsed_sec 2.50 → 3.50, +40.0 % > +10%"


def test_increase_of_a_score_counts_failed_questions_like_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(metrics.metrics_of_users, "faults", metrics.RegisteredMetric(FAULTS, lambda *_: None))
    a, b = run_of([0.0, 0.5], faults=0.25), run_of([0.0, 0.5], faults=0.25)
    b[0] = {**b[0], "status": "error", "error": "away"}
    comparison = compare_runs(a, b, metrics=["faults"])
    metric = comparison.pairs[0].metric("faults")
    assert metric is not None
    assert comparison.gate_results(["faults=+0.1"])[0].value == pytest.approx(metric.difference)


def test_questions_of_a_single_template_count_separately() -> None:
    few, many = (
        check(*(run_of([score] * number, templates=1) for score in (1.0, after)), "--fail-on-regression")[0]
        for number, after in ((5, 0.0), (200, 0.98))
    )
    assert f"only 5 questions differ; {FEW}" in few.sentence
    assert (few.state, many.state) == ("failed", "failed")
    assert "the p-value decided" in many.sentence


def test_metric_of_a_single_template_is_decided_by_the_effect() -> None:
    a, b = run_of([1.0] * 8, templates=8), run_of([1.0] * 8, templates=8)
    a[0]["answer_f1"], b[0]["answer_f1"] = 1.0, 0.5
    (gate,) = check(a, b, "--fail-on-regression", metrics=["answer_f1"])
    assert gate.state == "failed"
    assert f"(the effect decided: only one template has it; {FEW})" in gate.sentence


def test_limit_is_relative_for_scores_beyond_1() -> None:
    gates = [
        check(run_of(a, "stars"), run_of(b, "stars"), "--max-drop 0.05", metrics=["stars"])[0]
        for a, b in (([4] * 20, [*[4] * 19, 3]), ([4] * 4, [4, 4, 4, 3]), ([-4], [-5]))
    ]
    assert [gate.value for gate in gates] == pytest.approx([0.0125, 0.0625, 0.25])
    assert [gate.has_passed for gate in gates] == [True, False, False]


def test_each_run_is_compared_with_the_baseline() -> None:
    runs = [run_of(scores) for scores in ([1.0, 1.0], [1.0, 0.98], [1.0, 0.5])]
    gates = compare_runs(*runs).gate_results(["--fail-on-regression", "--max-lost 0"])
    assert [(gate.letter, gate.has_passed) for gate in gates] == [("B", True), ("B", False), ("C", False), ("C", False)]
