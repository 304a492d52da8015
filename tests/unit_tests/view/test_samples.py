from typing import Any

from support.report_samples import sample, step, table

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.view.samples import seen_samples

STEPS_SCORES = ("steps_score", "steps_recall", "steps_precision", "steps_f1", "steps_order")


def keys(*results: Any) -> list[str]:
    return [sample.key for sample in seen_samples(results, Metrics(EvaluationConfig()))]


def test_key_contains_the_repeat_from_the_second_on() -> None:
    assert keys({"question_id": "q", "repeat": 1}, {"question_id": "q", "repeat": 2}) == ["q", "q #2"]


def test_keys_are_unique_and_safe_in_links() -> None:
    found = keys({"question_id": "q #2"}, {"question_id": "q", "repeat": 2}, {"question_id": "\ud800\n\x00"})
    assert found == ["q #2", "q #2 (2)", "⟨U+D800⟩ ␀"]


def test_failed_sample_has_scores_of_0() -> None:
    found = sample(step("sparql_query", table("T1", "T2")), error="away")
    assert found.scores == dict.fromkeys(STEPS_SCORES, 0.0)


def test_step_scores_are_averaged_and_costs_are_not_scores() -> None:
    judged = [step("retrieval", "[]", retrieval_answer_f1=score, retrieval_answer_f1_cost=0.1) for score in (0.5, 1.0)]
    scores = dict.fromkeys(STEPS_SCORES, 0.0) | {"steps_order": 1.0, "retrieval_answer_f1": 0.75}
    assert sample(*judged).scores == scores
