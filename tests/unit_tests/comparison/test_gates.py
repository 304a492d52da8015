from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs, compute_aggregates, run_evaluation, score_responses
from graphrag_eval_lc.comparison import gate_requirements, gate_results
from graphrag_eval_lc.errors import OptionError

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
