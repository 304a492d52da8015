import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs, compute_aggregates, register_metric, run_evaluation, score_responses
from graphrag_eval_lc.compare import DEFAULT_MAX_DROP, RegressionGate, allowed_drop, gate_requirements, gate_results
from graphrag_eval_lc.errors import ComparisonError, OptionError

Scored = Callable[..., list[dict[str, Any]]]


def test_errors_count_as_0(scored: Scored) -> None:
    (gate,) = gate_results(scored(1.0, 1.0, None), {"steps_score": 0.7})
    assert not gate.has_passed
    assert str(gate) == "steps_score 0.667 falls short of 0.7 (3 questions, 1 failed and counted as 0)"


def test_mean_that_is_just_enough_passes(scored: Scored) -> None:
    (gate,) = gate_results(scored(*[0.9] * 3), {"steps_score": 0.9})
    assert gate.has_passed
    assert str(gate) == "steps_score 0.900 reaches 0.9 (3 questions)"


def test_mean_that_is_rounded_does_not_look_like_enough(scored: Scored) -> None:
    (gate,) = gate_results(scored(0.8999), {"steps_score": 0.9})
    assert str(gate) == "steps_score 0.899900000 falls short of 0.9 (1 question)"


def test_questions_without_the_score_are_told(scored: Scored) -> None:
    results = [{**scored(1.0)[0], "answer_f1": 0.5}, *scored(1.0, 1.0)[1:]]
    (gate,) = gate_results(results, {"answer_f1": 0.8})
    assert str(gate) == "answer_f1 0.500 falls short of 0.8 (1 question, 1 without it)"


@pytest.mark.parametrize("results", [[], [{"question_id": "q", "reference_answer": "2", "error": "away"}]])
def test_what_nobody_measured_falls_short(results: list[dict[str, Any]]) -> None:
    (gate,) = gate_results(results, {"answer_f1": 0.0})
    assert not gate.has_passed
    assert str(gate) == "answer_f1 was not measured, and 0 is required"


def test_each_question_counts_once(scored: Scored) -> None:
    repeats = [{**scored(0.0)[0], "repeat": repeat} for repeat in (1, 2, 3)]
    (gate,) = gate_results([*repeats, *scored(1.0, 1.0)[1:]], {"steps_score": 0.5})
    assert gate.has_passed


def test_a_metric_that_turns_out_to_be_one_of_which_less_is_better_is_refused(scored: Scored) -> None:
    requirements = gate_requirements(["detour=3"])
    register_metric(key="detour", unit="km", lower_is_better=True)(lambda question, response: 12.0)
    with pytest.raises(OptionError, match="detour is a metric of which less is better, and --fail-under requires"):
        gate_results(scored(1.0, detour=12.0), requirements)


def test_any_number_of_the_results_can_be_required(scored: Scored) -> None:
    (gate,) = gate_results(scored(1.0, 1.0, polite=True), {"polite": 1.0})
    assert gate.has_passed


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["steps_score"], "'steps_score' is no requirement. Write it as --fail-under steps_score=0.9."),
        (["=0.9"], "is no requirement"),
        (["steps_score=high"], "is no requirement"),
        (["steps_score=nan"], "is no requirement"),
        (["steps_score>=0.9"], "'steps_score>=0.9' is no requirement. Write it as --fail-under steps_score=0.9."),
        (["steps_score<=0.9"], "is no requirement"),
        (["steps score=0.9"], "is no requirement"),
        (["steps_score=1_0"], "is no requirement"),
        (["steps_score=0.9", "steps_score=0.8"], "steps_score is required twice"),
        (["total_tokens=100"], "total_tokens says what was spent, of which less is better"),
        (["tone_cost=1"], "tone_cost says what was spent"),
    ],
)
def test_wrong_requirements_are_told(texts: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        gate_requirements(texts)


def test_spaces_and_percent_like_numbers_are_taken() -> None:
    assert gate_requirements(["steps_score = .9", "custom=-1e2"]) == {"steps_score": 0.9, "custom": -100.0}


ZERO: dict[str, Any] = {"retrieval": {"missing": "zero", "measures": ["R"]}}
FOUND = {"name": "retrieval", "args": {}, "id": "c", "status": "success", "output": '[{"id": "a"}]'}
STEP = {"name": "retrieval", "relevant_ids": ["a"]}
QUESTIONS = [{"id": name, "question_text": "?", "reference_steps": [[STEP]]} for name in ("q1", "q2")]
RETRIEVAL: list[Any] = [{"template_id": "t", "questions": QUESTIONS}]
RESPONSES: list[Any] = [
    {"question_id": "q1", "actual_steps": []},
    {"question_id": "q2", "actual_steps": [FOUND]},
]


def test_retrieval_that_is_missing_counts_as_in_the_aggregates(tmp_path: Path) -> None:
    metric = "retrieval_ids_recall"
    score_responses(RETRIEVAL, RESPONSES, output_dir=tmp_path / "run", config=ZERO)
    results = run_evaluation(RETRIEVAL, RESPONSES, ZERO)
    assert compute_aggregates(results, ZERO)["micro"][metric]["mean"] == 0.5
    assert gate_results(tmp_path / "run", {metric: 0.9})[0].mean == 0.5
    assert gate_results(results, {metric: 0.9}, ZERO)[0].mean == 0.5
    compared = compare_runs(tmp_path / "run", results, metrics=[metric], config=ZERO).pairs[0].metric(metric)
    assert compared is not None
    assert (compared.mean_a, compared.mean_b) == (0.5, 0.5)


def test_what_is_missing_is_no_score() -> None:
    with pytest.raises(OptionError, match="retrieval_missing counts what is missing, of which less is better"):
        gate_requirements(["retrieval_missing=1"])


# 11 templates with 48 questions, as the demo has them.
DEMO = [f"t{index}" for index, size in enumerate([5, 4, 4, 4, 3, 6, 5, 5, 5, 4, 3]) for _ in range(size)]
LOST = [float(template not in {"t0", "t1", "t2", "t3", "t4"}) for template in DEMO]
TOO_FEW = "with fewer than 6 no p-value is below 0.05"


# Where so many questions hardly differ, the test would see a drop of 0.05 in so many of 100 comparisons.
SEEN = 100


def gate_of(a: list[dict[str, Any]], b: list[dict[str, Any]], *metrics: str, **options: float) -> RegressionGate:
    (gate,) = compare_runs(a, b, metrics=metrics or None).regression_gates(**options)
    return gate


def test_drop_that_stays_inside_five_templates_is_a_regression(scored: Scored) -> None:
    gate = gate_of(scored(*[1.0] * 48, templates=DEMO), scored(*LOST, templates=DEMO))
    assert LOST.count(0.0) == 20
    assert (gate.has_passed, gate.decided_by, gate.letter) == (False, "effect", "B")
    assert gate.drop == pytest.approx(20 / 48)
    assert str(gate) == (
        "B is worse in steps_score by more than 0.05: 1.000 → 0.583 (−0.417); the effect decided: only 5 templates "
        f"differ, and {TOO_FEW}"
    )


def test_five_templates_that_failed_are_a_regression_too(scored: Scored) -> None:
    gate = gate_of(scored(*[1.0] * 48, templates=DEMO), scored(*(score or None for score in LOST), templates=DEMO))
    assert (gate.has_passed, gate.drop) == (False, pytest.approx(20 / 48))


def test_small_gain_elsewhere_does_not_hide_the_drop(scored: Scored) -> None:
    before = [*[1.0] * 47, 0.0]
    gate = gate_of(scored(*before, templates=DEMO), scored(*LOST, templates=DEMO))
    assert (gate.has_passed, gate.decided_by) == (False, "effect")
    assert str(gate).endswith(f"; the effect decided: only 5 templates are worse, and {TOO_FEW}")


def test_one_question_of_48_is_within_what_is_allowed_and_that_is_said(scored: Scored) -> None:
    a, b = scored(*[1.0] * 48, templates=DEMO), scored(0.0, *[1.0] * 47, templates=DEMO)
    gate = gate_of(a, b)
    assert (gate.has_passed, gate.decided_by) == (True, "effect")
    assert str(gate) == (
        "B is not worse in steps_score by more than 0.05: 1.000 → 0.979 (−0.021); the effect decided: only 1 template "
        f"differs, and {TOO_FEW}"
    )
    assert not gate_of(a, b, max_drop=0.02).has_passed
    assert not gate_of(a, b, max_drop=0).has_passed


def test_runs_that_are_the_same_pass(scored: Scored) -> None:
    gate = gate_of(scored(1.0, 0.5), scored(1.0, 0.5), max_drop=0)
    assert gate.has_passed
    assert str(gate) == "steps_score is the same in A and B for each question"


def test_better_run_passes_whatever_decides(scored: Scored) -> None:
    gate = gate_of(scored(0.0, 0.0), scored(1.0, 1.0), max_drop=0)
    assert (gate.has_passed, gate.drop) == (True, -1.0)
    assert str(gate).startswith("B is not worse in steps_score by more than 0: 0.000 → 1.000 (+1.000); the effect")
    gate = gate_of(scored(*[0.8] * 200), scored(*[0.82] * 200))
    assert str(gate) == (
        "B is not worse in steps_score: 0.800 → 0.820 (+0.020, p < 0.001); the p-value decided: the test would see a "
        f"drop of 0.05 in {SEEN} % of such comparisons (200 questions in 200 templates)"
    )


def test_p_value_decides_where_the_test_sees_a_small_drop(scored: Scored) -> None:
    gate = gate_of(scored(*[1.0] * 200), scored(*[0.9] * 20, *[1.0] * 180))
    assert (gate.has_passed, gate.decided_by) == (False, "p-value")
    assert str(gate) == (
        "B is worse in steps_score: 1.000 → 0.990 (−0.010, p < 0.001); the p-value decided: the test would see a drop "
        f"of 0.05 in {SEEN} % of such comparisons (200 questions in 200 templates)"
    )
    gate = gate_of(scored(*[0.5] * 200), scored(*[0.49] * 105, *[0.51] * 95), max_drop=0)
    assert (gate.has_passed, gate.decided_by) == (True, "p-value")
    assert str(gate).startswith("no evidence that B is worse in steps_score: 0.500 → 0.500 (−0.001, p = ")


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("number", [6, 8, 11, 40])
def test_gate_never_passes_a_run_that_the_table_calls_worse(scored: Scored, spread: float, number: int) -> None:
    draw = random.Random(number)
    for drop in (0.01, 0.03, 0.05, 0.2):
        before = [draw.uniform(0.2, 0.8) for _ in range(number)]
        after = [min(1.0, max(0.0, score - drop + spread * draw.uniform(-1, 1))) for score in before]
        for is_confident in (False, True):
            comparison = compare_runs(scored(*before), scored(*after))
            (gate,) = comparison.regression_gates(max_drop=0.5, confident=is_confident)
            assert gate.has_passed is (gate.metric.verdict != "worse" and gate.drop <= 0.5), str(gate)
    if not spread:
        assert not gate.has_passed


def test_small_drop_that_the_test_sees_although_it_rarely_would_is_worse(scored: Scored) -> None:
    gate = gate_of(scored(*[0.5] * 7), scored(0.3, 0.35, 0.48, 0.47, 0.45, 0.46, 0.4), max_drop=0.1)
    assert (gate.metric.verdict, gate.has_passed, gate.decided_by) == ("worse", False, "p-value")
    assert str(gate).startswith("B is worse in steps_score: 0.500 → 0.416 (−0.084, p = ")
    assert str(gate).endswith("); the p-value decided: it is below 0.05")


def test_effect_decides_where_the_test_would_rarely_see_a_drop(scored: Scored) -> None:
    gate = gate_of(scored(*[1.0] * 5, *[0.0] * 5), scored(*[0.0] * 5, *[1.0] * 5))
    assert (gate.metric.can_tell, gate.has_passed, gate.decided_by) == (True, True, "effect")
    gate = gate_of(scored(*[1.0] * 5, *[0.0] * 4), scored(*[0.0] * 5, *[1.0] * 4))
    assert (gate.metric.can_tell, gate.has_passed, gate.decided_by) == (True, False, "effect")
    assert re.fullmatch(
        r"B is worse in steps_score by more than 0\.05: 0\.556 → 0\.444 \(−0\.111, p = 1\.000\); the effect decided: "
        r"the test would see a drop of 0\.05 in only \d % of such comparisons \(9 questions in 9 templates\)",
        str(gate),
    )


def test_questions_of_the_only_template_count_each_for_itself(scored: Scored) -> None:
    few = gate_of(*(scored(*[score] * 5, templates=["t"] * 5) for score in (1.0, 0.0)))
    assert not few.has_passed
    assert str(few).endswith(f"the effect decided: only 5 questions differ, and {TOO_FEW}")
    many = gate_of(*(scored(*[score] * 200, templates=["t"] * 200) for score in (1.0, 0.98)))
    assert (many.has_passed, many.decided_by) == (False, "p-value")


def test_metric_that_only_one_template_has_is_decided_by_the_effect(scored: Scored) -> None:
    a, b = scored(*[1.0] * 8), scored(*[1.0] * 8)
    a[0]["answer_f1"], b[0]["answer_f1"] = 1.0, 0.5
    gate = gate_of(a, b, "answer_f1")
    assert not gate.has_passed
    assert str(gate).endswith(f"; the effect decided: only one template has it, and {TOO_FEW}")


def test_repeats_of_a_question_are_one_value(scored: Scored) -> None:
    a = [{**result, "repeat": repeat} for repeat in (1, 2) for result in scored(*[1.0] * 10)]
    b = [{**result, "repeat": repeat} for repeat in (1, 2) for result in scored(float(repeat - 1), *[1.0] * 9)]
    gate = gate_of(a, b)
    assert (gate.has_passed, gate.drop) == (True, pytest.approx(0.05))


@pytest.mark.parametrize("mean", [0.05, 0.1, 0.15, 0.3, 0.35, 0.7, 0.95, 1.0])
def test_drop_of_just_what_is_allowed_passes(scored: Scored, mean: float) -> None:
    assert gate_of(scored(*[mean] * 3), scored(*[mean - 0.05] * 3)).has_passed


def test_drop_that_is_rounded_does_not_look_as_if_it_were_allowed(scored: Scored) -> None:
    gate = gate_of(scored(1.0), scored(0.9499))
    assert str(gate).startswith("B is worse in steps_score by more than 0.05: 1.000 → 0.950 (−0.050, by 0.050100000)")


def test_of_what_was_spent_more_is_worse_and_a_share_is_allowed(scored: Scored) -> None:
    def spent(tokens: float) -> list[dict[str, Any]]:
        return scored(1.0, 1.0, 1.0, total_tokens=tokens)

    dearer = gate_of(spent(1000), spent(1100), "total_tokens")
    assert (dearer.has_passed, dearer.drop) == (False, pytest.approx(0.1))
    assert str(dearer) == (
        "B is worse in total_tokens by more than 5 % of A's mean: 1,000 → 1,100 (+100, by 10.0 %); the effect "
        f"decided: only 3 templates differ, and {TOO_FEW}"
    )
    assert gate_of(spent(1000), spent(1050), "total_tokens").has_passed
    assert gate_of(spent(1000), spent(10), "total_tokens").has_passed
    from_nothing = gate_of(spent(0), spent(10), "total_tokens", max_drop=1.0)
    assert not from_nothing.has_passed
    assert "5 % of A's mean: 0 → 10 (+10); the effect" in str(gate_of(spent(0), spent(10), "total_tokens"))


def test_of_scores_beyond_1_a_share_is_allowed(scored: Scored) -> None:
    def rated(*stars: int) -> list[dict[str, Any]]:
        return [{**result, "stars": each} for result, each in zip(scored(*[1.0] * len(stars)), stars, strict=True)]

    assert gate_of(rated(*[4] * 20), rated(*[4] * 19, 3), "stars").has_passed
    gate = gate_of(rated(4, 4, 4, 4), rated(4, 4, 4, 3), "stars")
    assert (gate.has_passed, gate.drop) == (False, 0.0625)
    assert gate_of(rated(-4), rated(-5), "stars").drop == 0.25


def test_each_run_is_held_against_the_baseline_and_the_worse_are_the_regressions(scored: Scored) -> None:
    comparison = compare_runs(scored(1.0, 1.0), scored(1.0, 0.98), scored(1.0, 0.5))
    assert [gate.has_passed for gate in comparison.regression_gates()] == [True, False]
    assert comparison.regressions() == [comparison.pairs[1].metric("steps_score")]
    assert comparison.regressions(max_drop=0.25) == []
    assert len(comparison.regressions(max_drop=0)) == 2


def test_regression_in_a_metric_that_a_run_lacks_is_an_error(scored: Scored) -> None:
    comparison = compare_runs(scored(1.0, answer_f1=1.0), [{**scored(1.0, answer_f1=1.0)[0], "steps_score": None}])
    with pytest.raises(ComparisonError, match="A and B do not both have steps_score"):
        comparison.regression_gates()


@pytest.mark.parametrize("wrong", [-0.01, 1.01, float("nan"), float("inf"), True, "0.05", None])
def test_drop_that_cannot_be_allowed_is_told(scored: Scored, wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"is no drop that can be allowed\. Give one number from 0 to 1"):
        compare_runs(scored(1.0), scored(1.0)).regressions(max_drop=wrong)


@pytest.mark.parametrize("wrong", ["", "5", "5%", "-0.1", "nan", "inf", "0_1", "0,05", "steps_score=0.05"])
def test_text_of_a_drop_that_cannot_be_allowed_is_told(wrong: str) -> None:
    with pytest.raises(OptionError, match=r"is no drop that can be allowed.*--max-drop 0\.05"):
        allowed_drop(wrong)


def test_text_of_a_drop_is_a_number() -> None:
    assert [allowed_drop(text) for text in ("0", ".02", "5e-2", "1")] == [0, 0.02, DEFAULT_MAX_DROP, 1]


def test_texts_of_gates_are_visible_and_on_one_line(scored: Scored) -> None:
    (gate,) = gate_results(scored(1.0), {"of\x1b[2J\nnobody": 0.5})
    assert str(gate) == "of␛[2J␊nobody was not measured, and 0.5 is required"
