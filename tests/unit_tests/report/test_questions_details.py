from typing import Any

from support.report_samples import result, step, table

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.questions import Measures, detail_of
from graphrag_eval_lc.report.steps import SampleSteps
from graphrag_eval_lc.view.samples import seen_samples


def detail(result: Any, config: Any = None) -> dict[str, Any]:
    settings = load_config(config, has_llm=True)
    metrics = Metrics(settings)
    return detail_of(next(seen_samples([result], metrics)), SampleSteps(result, settings), Measures(settings, metrics))


def test_details_have_question_answers_and_steps() -> None:
    found = detail(result(step("lookup", "x"), step("sparql_query", table("T1", "T2")), elapsed_sec=2.5))
    assert (found["key"], found["template"], found["status"], found["total_sec"]) == ("q", "t", "success", 2.5)
    assert (found["reference_answer"], found["actual_answer"]) == ("T1 and T2.", "T1.")
    assert found["timeline"][1]["used_for"] == "✓ group 2 step 1"
    assert found["extra_steps"] == [0]
    assert found["counts"] == {"extra": 1, "repeated": 0, "failed": 0, "undecided": 0, "outputs_cut": 0}
    assert not {"claims", "error"} & found.keys()


def test_long_output_is_shortened() -> None:
    output = detail(result(step("lookup", "x" * 10_000_000)))["timeline"][0]["output"]
    assert len(output) < 21_000
    assert "9,980,000 characters left out" in output


def test_claims_are_grouped_as_by_the_judge() -> None:
    judged = {
        "answer_true_positives": ["T1"],
        "answer_false_positives": [],
        "answer_false_negatives": ["T2\u202e"],
        "answer_correctness_reason": "T2 is missing",
        "answer_correctness_cost": 0.01,
        "answer_recall": 0.5,
        "answer_precision": 1.0,
        "answer_f1": 2 / 3,
    }
    found = detail(result(**judged))
    assert found["claims"] == {
        "supported": ["T1"],
        "wrong": [],
        "missing": ["T2⟨U+202E⟩"],
        "reason": "T2 is missing",
    }
    assert found["measures"][:3] == [
        {"name": "steps_score", "value": 0.0},
        {"name": "answer_recall", "value": 0.5, "usd": 0.01},
        {"name": "answer_precision", "value": 1.0},
    ]


def test_failed_judge_has_an_error_and_no_value() -> None:
    measures = detail(result(answer_relevance_error="JudgeError: no answer"))["measures"]
    assert measures[1] == {"name": "answer_relevance", "value": None, "error": "JudgeError: no answer"}


def test_custom_evaluations_are_measures_even_if_texts() -> None:
    custom = {"name": "tone", "inputs": ["question"], "instructions": "Judge.", "outputs": {"polite": "?", "word": "?"}}
    judged = {"polite": True, "word": "kind", "tone_cost": 0.5, "mine": 2, "custom_metrics": ["mine"]}
    found = detail(result(**judged), {"custom_evaluations": [custom]})
    names = {measure["name"]: measure for measure in found["measures"]}
    assert names["polite"] == {"name": "polite", "value": True, "usd": 0.5}
    assert names["word"] == {"name": "word", "value": "kind"}
    assert names["mine"]["value"] == 2


def test_failed_attempts_are_listed() -> None:
    attempts = [{"error": "away", "elapsed_sec": 1.5, "actual_steps": [{}], "total_tokens": 7}, "broken"]
    assert detail(result(failed_attempts=attempts))["failed_attempts"] == [
        {"error": "away", "seconds": 1.5, "tokens": 7, "calls": 1}
    ]
