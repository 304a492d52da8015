import pytest

from graphrag_eval_lc.evaluation.judge_agreement import JudgeAgreement, verdict_in
from graphrag_eval_lc.metrics import krippendorffs_alpha, wilson_interval

COUNTS = {"#Reference": "2", "#PTarget": "4", "#Matching": "2", "Error": ""}


def test_worked_example() -> None:
    labels = [True] * 25 + [False] * 25 + [None, True]
    verdicts = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15 + [None, None]
    agreement = JudgeAgreement(labels, verdicts)
    assert agreement.table == [[20, 5], [10, 15]]
    assert (agreement.judged, agreement.unlabelled) == (50, 1)
    assert (agreement.agreement.value, agreement.agreement.interval) == (0.7, wilson_interval(35, 50))
    assert (agreement.false_positives.value, agreement.false_positives.interval) == (0.4, wilson_interval(10, 25))
    assert (agreement.false_negatives.value, agreement.false_negatives.interval) == (0.2, wilson_interval(5, 25))
    assert agreement.kappa == 0.4
    assert agreement.kappa_interval == (pytest.approx(0.130, abs=5e-4), pytest.approx(0.634, abs=5e-4))
    assert agreement.disagreements == list(range(20, 35))


def test_judge_counts_as_another_rater_if_the_raters_agree() -> None:
    raters = [[True, True, False, False], [True, False, False, False]]
    agreement = JudgeAgreement([True, None, False, False], [True, True, False, True], raters)
    assert agreement.alpha_of_people == krippendorffs_alpha(zip(*raters, strict=True))
    judged = [True, None, False, True]  # raters disagree on the second
    assert agreement.alpha_with_judge == krippendorffs_alpha(zip(*raters, judged, strict=True))
    assert JudgeAgreement([True], [True], raters[:1]).alpha_with_judge is None


def test_undefined_figures_are_none() -> None:
    agreement = JudgeAgreement([True, True], [True, None])
    assert agreement.false_negatives.value == 0.0
    assert agreement.false_positives.value is agreement.false_positives.interval is None
    assert agreement.kappa is agreement.kappa_interval is None


@pytest.mark.parametrize(
    ("metric", "threshold", "verdict"),
    [
        ("answer_f1", 0.5, True),
        ("answer_f1", 2 / 3, True),
        ("answer_f1", 0.7, False),
        ("answer_recall", 1.0, True),
        ("answer_f1", 0.0, True),
    ],
)
def test_answer_is_correct_at_or_above_the_threshold(metric: str, threshold: float, verdict: bool) -> None:
    assert verdict_in(COUNTS, metric, threshold) is verdict


@pytest.mark.parametrize("changed", [{"Error": "refused"}, {"#Matching": ""}, dict.fromkeys(list(COUNTS)[:3], "0")])
def test_without_counts_or_claims_there_is_no_verdict(changed: dict[str, str]) -> None:
    assert verdict_in({**COUNTS, **changed}, "answer_f1", 0.5) is None
