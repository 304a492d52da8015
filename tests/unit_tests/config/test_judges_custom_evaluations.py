from typing import Any

import pytest

from graphrag_eval_lc import score_responses
from graphrag_eval_lc.config import is_reserved_key, load_config
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES

CUSTOM = {
    "name": "sparql_use",
    "inputs": ["question", "reference_steps", "actual_steps"],
    "steps_name": "sparql_query",
    "steps_keys": ["args", "output"],
    "instructions": "Compare the queries.",
    "outputs": {"sparql_recall": "Share of the patterns, 0 to 1", "sparql_reason": "Why"},
}


def loaded(**changes: Any) -> None:
    values = {key: value for key, value in {**CUSTOM, **changes}.items() if value is not ...}
    load_config({"llm": {}, "custom_evaluations": [values]})


def test_evaluation_in_graphrag_evals_format_is_accepted() -> None:
    loaded()
    loaded(inputs=["question", "reference_answer", "actual_answer"], steps_name=..., steps_keys=...)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"steps_name": ...}, "custom_evaluations.0.steps_name: steps_name is required when steps are in inputs"),
        ({"steps_keys": ...}, "custom_evaluations.0.steps_keys: steps_keys is required when steps are in inputs"),
        ({"steps_keys": []}, "custom_evaluations.0.steps_keys"),
        ({"steps_keys": ["name"]}, "'args' or 'output'"),
        ({"inputs": []}, "custom_evaluations.0.inputs"),
        ({"inputs": ["answer"]}, "custom_evaluations.0.inputs.0: 'answer' is not allowed here"),
        ({"outputs": {}}, "custom_evaluations.0.outputs"),
        ({"outputs": {"steps_score": "x"}}, "outputs.steps_score: the output key steps_score is reserved"),
        ({"outputs": {"sparql_use_error": "x"}}, "the output key sparql_use_error is reserved"),
        ({"name": "answer_relevance"}, "the name answer_relevance is reserved"),
        ({"name": ...}, "the key name is missing"),
        ({"instruction": "x", "instructions": ...}, "Did you mean instructions?"),
    ],
)
def test_error_names_key_and_problem(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**changes)
    assert complaint in str(caught.value)


def test_keys_of_results_and_aggregates_are_reserved() -> None:
    steps = [{"name": "retrieval", "args": {}, "id": "1", "status": "success", "output": "[]"}]
    reference = {"name": "retrieval", "output": '[{"id": "d"}]'}
    question = {"id": "q", "question_text": "?", "reference_steps": [[reference]]}
    response = {"question_id": "q", "actual_steps": steps, "elapsed_sec": 1.0, "llm_calls": [], "total_tokens": 1}
    dataset = [{"template_id": "t", "questions": [question]}]
    run = score_responses(dataset, [{**response, "repeat": repeat} for repeat in (1, 2)])
    aggregates = run.aggregates
    keys = {*run.results[0], *aggregates, *aggregates["per_template"]["t"], *aggregates["micro"], *aggregates["macro"]}
    assert [key for key in keys if not is_reserved_key(key)] == []


def test_keys_of_judges_and_metrics_are_reserved() -> None:
    documented = [
        "answer_correctness",
        "answer_relevance_reason",
        "retrieval_answer_f1_cost",
        "retrieval_utilization_error",
    ]
    others = [
        "answer_eval_error",
        "answer_matching_claims_count",
        "question_id",
        "llm_calls",
        "judges_cost",
        "interrupted",
    ]
    judge_keys = [key for judge in JUDGES for key in judge.keys]
    keys = [*documented, *others, *judge_keys, *(spec.key for spec in BUILT_IN)]
    assert [key for key in keys if not is_reserved_key(key)] == []
    assert not is_reserved_key("saved_sec")
