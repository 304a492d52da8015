from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.config.base import expanded
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model
from graphrag_eval_lc.onboarding.old_config import ENDPOINTS, OF_LANGCHAIN, moved_config, moved_model

CUSTOM = {"name": "polite", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"politeness": "0-5"}}


def generation(**settings: Any) -> dict[str, Any]:
    moved = moved_model({"model": "m", **settings}, "llm.generation")[0]
    assert moved is not None
    return moved


@pytest.mark.parametrize("provider", sorted(ENDPOINTS))
def test_provider_with_a_compatible_endpoint_is_used_directly(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOSTED_VLLM_API_BASE", "LM_STUDIO_API_BASE", "LITELLM_PROXY_API_BASE"):
        monkeypatch.setenv(name, "http://localhost:8000/v1")
    if ENDPOINTS[provider].key is not None:
        monkeypatch.setenv(str(ENDPOINTS[provider].key), "a-key")
    config = load_config({"llm": {"generation": generation(provider=provider)}})
    assert config.llm is not None
    model = as_judge_model(expanded(config.llm.generation, "llm.generation"))
    assert type(model).__name__ == "OpenAIJudgeModel"


def test_azure_is_used_through_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
    old = {"provider": "azure", "model": "gpt-4o", "api_base": "https://x.example", "api_version": "2024-10-21"}
    sections, notes = moved_config({"llm": {"generation": old, "embedding": {**old, "model": "small"}}})
    config = load_config(sections)
    assert config.llm is not None
    assert config.llm.embedding is not None
    assert config.llm.generation.model_extra == {"azure_endpoint": "https://x.example", "api_version": "2024-10-21"}
    as_judge_model(expanded(config.llm.generation, "llm.generation"))
    as_embedding_model(expanded(config.llm.embedding, "llm.embedding"))
    assert any("langchain-openai" in note for note in notes)


def test_explicit_url_overrides_the_providers() -> None:
    model_settings = generation(provider="hosted_vllm", api_base="http://gpu:8000/v1")
    assert model_settings["base_url"] == "http://gpu:8000/v1"
    assert "api_key" not in model_settings
    assert generation(provider="openai", api_base="http://gpu:8000/v1")["base_url"] == "http://gpu:8000/v1"


@pytest.mark.parametrize("provider", ["openai", "together_ai", "azure", "vertex_ai", "hosted_vllm"])
def test_keys_are_never_copied(provider: str) -> None:
    settings, notes = moved_model(
        {"provider": provider, "model": "m", "api_key": "sk-secret-1234567890"}, "llm.generation"
    )
    assert "sk-secret" not in str(settings)
    assert str((settings or {})["api_key"]).startswith("${")
    assert any("is not copied" in note for note in notes)


def test_variable_reference_is_kept() -> None:
    assert generation(provider="openai", api_key="${MY_KEY}")["api_key"] == "${MY_KEY}"
    assert generation(provider="openai", api_key="os.environ/MY_KEY")["api_key"] == "${MY_KEY}"


def test_needed_variables_are_named() -> None:
    _, [note] = moved_model({"provider": "azure", "model": "gpt-4o"}, "llm.generation")
    assert note.endswith("Set AZURE_OPENAI_API_KEY and AZURE_API_BASE and AZURE_API_VERSION in the environment.")


def test_secret_under_another_key_is_dropped() -> None:
    old = {"provider": "openai", "model": "m", "extra_headers": {"Authorization": "Bearer abcdef1234567890abcdef"}}
    settings, notes = moved_model(old, "llm.generation")
    assert "extra_headers" not in (settings or {})
    assert any("extra_headers holds a secret" in note for note in notes)


def test_model_options_are_kept_but_litellm_options_are_not() -> None:
    old = {"provider": "openai", "model": "m", "top_p": 0.5, "num_retries": 3}
    settings, [note] = moved_model(old, "llm.generation")
    assert settings == {"provider": "openai", "model": "m", "top_p": 0.5}
    assert note.startswith("llm.generation.num_retries is not copied: the section judges says")


def test_unsupported_provider_drops_what_needs_it() -> None:
    sections, notes = moved_config(
        {"llm": {"generation": {"provider": "replicate", "model": "m"}}, "custom_evaluations": [CUSTOM]}
    )
    assert sections == {}
    assert any("replicate has no counterpart" in note for note in notes)
    assert any("custom_evaluations is left out" in note for note in notes)


def test_other_sections_are_unchanged() -> None:
    old = {
        "llm": {
            "generation": {"provider": "openai", "model": "gpt-4o-mini", "temperature": 0.0, "max_tokens": 4096},
            "embedding": {"provider": "openai", "model": "text-embedding-3-small"},
        },
        "answer_correctness": {"enabled": True, "prompt": "{question} {reference_answer} {actual_answer}"},
        "answer_relevance": {"enabled": False},
        "custom_evaluations": [CUSTOM],
    }
    assert moved_config(old) == (old, [])
    load_config(old)


def test_unread_keys_are_named() -> None:
    assert moved_config({"colour": "red", "answer_relevance": {"metric": "x"}})[1] == [
        "colour is not a key of graphrag-eval and is left out.",
        "answer_relevance.metric is not a key of graphrag-eval and is left out.",
    ]


def test_broken_config_is_one_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_text("llm:\n  generation: gpt-4o\n")
    with pytest.raises(ConfigError, match=r"old.yaml, line 2, key llm.generation: a model with provider"):
        moved_config(path)


def test_every_provider_is_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "moving-from-graphrag-eval.md"
    text = page.read_text(encoding="utf-8")
    for name, endpoint in ENDPOINTS.items():
        assert f"| `{name}` | `base_url: {endpoint.address}` |" in text
    for name, documented in OF_LANGCHAIN.items():
        assert f"| `{name}` | `provider: {documented.name}`; `pip install langchain {documented.package}` |" in text
