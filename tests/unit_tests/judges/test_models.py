import builtins
import sys
from typing import Any, Literal

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import GenericFakeChatModel
from pydantic import BaseModel
from support.openai_stub import OpenAIStub

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.judges.models import (
    LangChainEmbeddingModel,
    LangChainJudgeModel,
    as_embedding_model,
    as_judge_model,
    is_openai_compatible,
)
from graphrag_eval_lc.judges.openai_models import OpenAIJudgeModel


class Verdict(BaseModel):
    verdict: Literal[0, 1]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


@pytest.mark.parametrize(
    ("llm", "name"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("openai:gpt-4o", "openai:gpt-4o"),
        (GenerationConfig(), "openai:gpt-4o-mini"),
        (GenerationConfig(provider="vllm", model="org/m:8b", base_url="http://localhost:1/v1"), "vllm:org/m:8b"),
    ],
)
def test_openai_and_compatible_endpoints_use_openais_client(llm: Any, name: str) -> None:
    model = as_judge_model(llm)
    assert isinstance(model, OpenAIJudgeModel)
    assert model.name == name


def test_langchain_and_custom_models_are_accepted() -> None:
    judge = as_judge_model(GenericFakeChatModel(messages=iter([])))
    embedding = as_embedding_model(DeterministicFakeEmbedding(size=2))
    assert isinstance(judge, LangChainJudgeModel)
    assert isinstance(embedding, LangChainEmbeddingModel)
    assert as_judge_model(judge) is judge
    assert as_embedding_model(embedding) is embedding


async def test_other_providers_use_langchain(openai_stub: OpenAIStub) -> None:
    endpoint = openai_stub.base_url.removesuffix("/v1")
    keys = {"provider": "azure_openai", "api_key": "k", "azure_endpoint": endpoint, "api_version": "2024-10-21"}
    judge = as_judge_model(GenerationConfig(model="gpt-4o-mini", temperature=0.5, **keys))
    assert isinstance(judge, LangChainJudgeModel)
    assert (await judge.aask("You judge.", "So?", Verdict)).value == Verdict(verdict=0)
    request = openai_stub.requests[0]
    assert request.path.startswith("/openai/deployments/gpt-4o-mini/chat/completions")
    assert request.body["temperature"] == 0.5
    embedding = as_embedding_model(
        EmbeddingConfig(model="text-embedding-3-small", check_embedding_ctx_length=False, **keys)
    )
    assert len((await embedding.aembed(["a", "b"])).value) == 2


@pytest.mark.parametrize("provider", ["cohere", "no-such-provider"])
def test_unavailable_provider_is_a_clear_error(provider: str) -> None:
    with pytest.raises(ConfigError, match=rf"LangChain cannot make the model {provider}:m: .+"):
        as_judge_model(f"{provider}:m")


@pytest.mark.parametrize(
    ("provider", "langchain_name"),
    [("azure", "azure_openai"), ("gemini", "google_genai"), ("vertex_ai", "google_vertexai"), ("mistral", "mistralai")],
)
def test_litellms_provider_names_are_accepted(
    monkeypatch: pytest.MonkeyPatch, provider: str, langchain_name: str
) -> None:
    created = []
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model",
        lambda name, **_: created.append(name) or GenericFakeChatModel(messages=iter([])),
    )
    as_judge_model(f"{provider}:m")
    assert created == [f"{langchain_name}:m"]


@pytest.mark.parametrize(("path", "is_openai"), [("", False), ("/v1", True), ("/v1/", True)])
def test_ollama_protocol_follows_its_url(path: str, is_openai: bool) -> None:
    settings = GenerationConfig(provider="ollama", model="m", base_url=f"http://localhost:1{path}")
    assert is_openai_compatible(settings) == is_openai


def test_base_url_does_not_make_a_provider_compatible() -> None:
    settings = GenerationConfig(provider="cohere", model="m", base_url="http://localhost:1")
    assert not is_openai_compatible(settings)
    with pytest.raises(ConfigError, match="cohere:m"):
        as_judge_model(settings)


@pytest.mark.parametrize("value", [None, 3, object(), OpenAIJudgeModel])
def test_other_values_are_rejected(value: Any) -> None:
    with pytest.raises(OptionError, match="cannot judge"):
        as_judge_model(value)
    with pytest.raises(OptionError, match="is not an embedding model"):
        as_embedding_model(value)


@pytest.mark.parametrize(("llm", "missing"), [("gpt-4o", "openai"), ("anthropic:m", "langchain")])
def test_missing_package_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, llm: str, missing: str) -> None:
    real_import = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real_import(name, *arguments, **keywords)

    for module in list(sys.modules):
        if module.split(".")[0] == missing or module.endswith(".openai_models"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingExtraError, match=rf"needs the package {missing}, .*graphrag-eval-lc\[judges\]"):
        as_judge_model(llm)
