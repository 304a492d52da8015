from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig, load_config, with_measures
from graphrag_eval_lc.errors import ConfigError

CUSTOM = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Rate it.", "outputs": {"tone_score": "0 to 1"}}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"custom_evaluations": [CUSTOM]}, "custom_evaluations"),
        ({"answer_correctness": {"enabled": True}}, "answer_correctness"),
        ({"answer_correctness": {}}, "answer_correctness"),
        ({"answer_relevance": {"enabled": True}}, "answer_relevance"),
        ({"judges": {"metrics": ["retrieval_answer"]}}, "judges.metrics"),
    ],
)
def test_metric_that_needs_a_model_says_what_to_add(config: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=f"key {key}: a model is needed") as caught:
        load_config(config)
    assert "Add llm: {}" in str(caught.value)
    with pytest.raises(ConfigError):
        load_config(EvaluationConfig(**config))
    assert load_config(config, has_llm=True, has_embeddings=True)
    assert load_config({"llm": {}, **config})


@pytest.mark.parametrize("config", [{"answer_relevance": {}}, {"judges": {"metrics": ["answer_relevance"]}}])
def test_answer_relevance_needs_an_embedding_model(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"an embedding model is needed .* Add llm.embedding"):
        load_config({"llm": {"generation": {}}, **config})
    assert load_config({"llm": {"generation": {}}, **config}, has_embeddings=True)


def test_disabled_metric_needs_no_model() -> None:
    load_config({"answer_correctness": {"enabled": False}, "answer_relevance": {"enabled": False}})
    load_config({"llm": {"generation": {}}, "answer_relevance": {"enabled": False}})


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ({}, "key custom_evaluations.1.name: the name tone appears twice"),
        ({"name": "other"}, "key custom_evaluations.1: the key tone_score is given by tone and by other"),
        ({"name": "other", "outputs": {"tone_error": "x"}}, "the key tone_error is given by tone and by other"),
    ],
)
def test_output_key_may_be_declared_only_once(second: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_config({"llm": {}, "custom_evaluations": [CUSTOM, {**CUSTOM, **second}]})


def test_score_for_repeats_must_be_measured_by_the_config() -> None:
    config = load_config({"retrieval": {"measures": ["P@5"]}, "repeats": {"metric": "retrieval_ids_precision@5"}})
    with pytest.raises(ConfigError, match=r"repeats\.metric: 'retrieval_ids_precision@5' is not allowed here"):
        with_measures(config, ["nDCG@10"])


def test_recorded_config_loads_without_its_registered_metrics() -> None:
    config = EvaluationConfig.model_validate({"repeats": {"metric": "saved_sec", "threshold": 60.0}})
    with pytest.raises(ConfigError, match="'saved_sec' is not allowed here"):
        load_config(config)
