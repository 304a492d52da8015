import pytest
from pydantic import SecretStr

from graphrag_eval_lc.config import GenerationConfig, expanded
from graphrag_eval_lc.errors import ConfigError


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_OF_MODEL", "llm.example")
    monkeypatch.setenv("KEY_OF_MODEL", "abc")
    monkeypatch.setenv("EMPTY_OF_MODEL", "")
    monkeypatch.delenv("ABSENT_OF_MODEL", raising=False)


def test_variables_are_expanded_in_every_string() -> None:
    section = GenerationConfig(
        base_url="https://${HOST_OF_MODEL}/v1",
        api_key=SecretStr("${KEY_OF_MODEL}"),
        default_headers={"X-Keys": ["${KEY_OF_MODEL}", 1]},
    )
    used = expanded(section, "llm.generation")
    assert used.base_url == "https://llm.example/v1"
    assert used.api_key is not None
    assert used.api_key.get_secret_value() == "abc"
    assert used.model_extra == {"default_headers": {"X-Keys": ["abc", 1]}}
    assert section.base_url == "https://${HOST_OF_MODEL}/v1"
    assert section.model_extra == {"default_headers": {"X-Keys": ["${KEY_OF_MODEL}", 1]}}


def test_double_dollar_is_a_literal_dollar() -> None:
    assert expanded("$${KEY_OF_MODEL} costs $5 {x} ${}", "k") == "${KEY_OF_MODEL} costs $5 {x} ${}"


@pytest.mark.parametrize(("name", "state"), [("ABSENT_OF_MODEL", "not set"), ("EMPTY_OF_MODEL", "empty")])
def test_unset_or_empty_variable_is_an_error_at_its_key(name: str, state: str) -> None:
    section = GenerationConfig(api_key=SecretStr(f"${{{name}}}"))
    with pytest.raises(ConfigError, match=f"key llm.generation.api_key: the environment variable {name} is {state}"):
        expanded(section, "llm.generation")


def test_masked_value_from_a_recorded_run_needs_the_original_config() -> None:
    with pytest.raises(ConfigError, match=r"key llm.generation.api_key: the value was masked .* Pass the config again"):
        expanded(GenerationConfig(api_key=SecretStr("***")), "llm.generation")
    with pytest.raises(ConfigError, match=r"key llm.generation.base_url: the value was masked"):
        expanded(GenerationConfig(base_url="https://me:***@llm.example"), "llm.generation")
