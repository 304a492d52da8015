from typing import Any

import pytest
from pydantic import SecretStr

from graphrag_eval_lc.config import EmbeddingConfig, EvaluationConfig, GenerationConfig, LLMConfig, load_config
from graphrag_eval_lc.masking import masked_values


def llm(values: dict[str, Any]) -> LLMConfig:
    section = load_config({"llm": values}).llm
    assert section is not None
    return section


def test_without_the_section_there_is_no_model() -> None:
    assert load_config().llm is None
    assert load_config({"llm": None}).llm is None


def test_empty_section_selects_both_default_models() -> None:
    assert llm({}) == LLMConfig(generation=GenerationConfig(), embedding=EmbeddingConfig())
    assert llm({}).generation.model_dump() == {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "base_url": None,
        "api_key": None,
        "temperature": 0.0,
        "max_tokens": None,
    }
    assert llm({}).embedding == EmbeddingConfig(provider="openai", model="text-embedding-3-small")


def test_generation_section_alone_configures_no_embedding_model() -> None:
    assert llm({"generation": {}}).embedding is None


def test_unknown_keys_are_passed_to_the_model() -> None:
    section = llm({"generation": {"top_p": 0.5}, "embedding": {"dimensions": 256}})
    assert section.generation.model_extra == {"top_p": 0.5}
    assert section.embedding is not None
    assert section.embedding.model_extra == {"dimensions": 256}


def test_temperature_can_be_omitted() -> None:
    assert llm({"generation": {"temperature": None}}).generation.temperature is None


def test_secrets_are_not_printed() -> None:
    section = llm({"generation": {"api_key": "qwertz99", "default_headers": {"X-Api-Key": "qwertz99"}}})
    config = EvaluationConfig(llm=section)
    for text in (repr(config), str(section), str(config.model_dump()["llm"]["generation"]["api_key"])):
        assert "qwertz99" not in text
    assert section.generation.api_key is not None
    assert section.generation.api_key.get_secret_value() == "qwertz99"


def test_recorded_config_keeps_variable_references_and_masks_secrets() -> None:
    config = load_config({"llm": {"generation": {"api_key": "${KEY}"}, "embedding": {"api_key": "qwertz99"}}})
    record = masked_values(config.model_dump())["llm"]
    assert record["generation"]["api_key"] == "${KEY}"
    assert record["embedding"]["api_key"] == "***"
    assert '"api_key":"***"' in config.model_dump_json()


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"llm": {}},
        {"llm": {"generation": {"api_key": "abc", "top_p": 0.5}}},
        {"llm": {"generation": {"api_key": SecretStr("abc")}}, "answer_correctness": {"prompt": "x"}},
    ],
)
def test_dump_can_be_loaded_again(values: dict[str, Any]) -> None:
    config = load_config(values)
    assert load_config(config.model_dump()) == config
