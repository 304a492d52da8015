from typing import Any

import pytest

from graphrag_eval_lc.aggregation.measurements import SAMPLE_METRICS, STEP_METRICS
from graphrag_eval_lc.config import RESERVED_KEYS, load_config
from graphrag_eval_lc.errors import ConfigError

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


def test_evaluation_of_graphrag_eval_is_taken() -> None:
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
def test_mistake_is_one_sentence(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**changes)
    assert complaint in str(caught.value)


def test_all_keys_of_results_and_aggregates_are_reserved() -> None:
    assert {*SAMPLE_METRICS, *STEP_METRICS} <= RESERVED_KEYS
    assert {
        "question_id",
        "steps_diagnosis",
        "llm_calls",
        "answer_eval_error",
        "retrieval_utilization_cost",
        "steps",
    } <= (RESERVED_KEYS)
