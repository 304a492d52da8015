"""Embedding models at OpenAI-compatible endpoints and from LangChain, over real HTTP."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from support.openai_stub import (
    Fault,
    OpenAIStub,
    broken_body,
    connection_reset,
    cut_off,
    embeddings_count,
    missing_usage,
    rate_limit,
    server_error,
)
from support.scripted_judges import MemoryCache

from graphrag_eval_lc.config import EmbeddingConfig
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError
from graphrag_eval_lc.judges.models import LangChainEmbeddingModel
from graphrag_eval_lc.judges.openai_models import OpenAIEmbeddingModel

COST = 50 * 0.02e-6  # one request to text-embedding-3-small: 50 tokens
VECTORS = {"a": [1.0, 0.5], "b": [0.1, -2.0], "c": [0.0, 3.0]}


@pytest.fixture
def stub(openai_stub: OpenAIStub) -> OpenAIStub:
    openai_stub.embed = VECTORS.__getitem__
    return openai_stub


def model_of(stub: OpenAIStub, embedding: dict[str, Any] | None = None, **options: Any) -> OpenAIEmbeddingModel:
    keys = {"model": "text-embedding-3-small", "base_url": stub.base_url, "api_key": "k", **(embedding or {})}
    return OpenAIEmbeddingModel(EmbeddingConfig(**keys), **{"max_retries": 2, **options})


async def test_vectors_are_in_the_order_of_the_texts(stub: OpenAIStub) -> None:
    embedded = await model_of(stub).aembed(["b", "a"])
    assert embedded.value == (pytest.approx([0.1, -2.0]), pytest.approx([1.0, 0.5]))
    assert embedded.cost == pytest.approx(COST)
    assert embedded.usages[0]["input_tokens"] == 50
    assert stub.requests[0].body == {
        "model": "text-embedding-3-small",
        "input": ["b", "a"],
        "encoding_format": "float",
    }


async def test_index_determines_the_order_if_the_endpoint_reorders(stub: OpenAIStub) -> None:
    stub.embedding_faults.append(Fault(change=lambda answer: answer["data"].reverse()))
    assert (await model_of(stub).aembed(["a", "c"])).value == ((1.0, 0.5), (0.0, 3.0))


def with_embedding(value: Any) -> Callable[[], Fault]:
    return lambda: Fault(change=lambda answer: answer["data"][0].update(embedding=value))


PASSING: dict[str, Callable[[], Fault]] = {
    "rate limit": lambda: rate_limit(retry_after="0"),
    "500": server_error,
    "connection reset": connection_reset,
    "cut body": cut_off,
    "half of the JSON": broken_body,
    "too few": lambda: embeddings_count(1),
    "too many": lambda: embeddings_count(3),
    "none": lambda: embeddings_count(0),
    "no data": lambda: Fault(change=lambda answer: answer.pop("data")),
    "another length": with_embedding([1.0]),
    "empty": with_embedding([]),
    "not finite": with_embedding([float("nan"), 1.0]),
    "null": with_embedding(None),
    "base64": with_embedding("AAAAPwAAgD8="),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_transient_failure_is_retried(stub: OpenAIStub, fault: Callable[[], Fault]) -> None:
    stub.embedding_faults.append(fault())
    assert (await model_of(stub).aembed(["a", "c"])).value == ((1.0, 0.5), (0.0, 3.0))
    assert len(stub.requests) == 2


async def test_wrong_number_of_embeddings_is_an_error_with_its_cost(stub: OpenAIStub) -> None:
    stub.embedding_faults.append(embeddings_count(3))
    with pytest.raises(UnusableAnswerError, match="returned 3 embeddings for 2 texts") as caught:
        await model_of(stub, max_retries=0).aembed(["a", "c"])
    assert caught.value.cost == pytest.approx(COST)


async def test_without_usage_or_price_the_cost_is_unknown(stub: OpenAIStub) -> None:
    stub.embedding_faults.append(missing_usage())
    assert (await model_of(stub).aembed(["a"])).cost is None
    assert (await model_of(stub, {"model": "our-own-model"}).aembed(["a"])).cost is None


async def test_embedded_texts_are_cached(stub: OpenAIStub) -> None:
    cache = MemoryCache()
    first = await model_of(stub, cache=cache).aembed(["a", "b"])
    repeated = await model_of(stub, cache=cache).aembed(["a", "b"])
    assert repeated.value == first.value
    assert repeated.cost == first.cost
    assert repeated.is_cached
    assert not (await model_of(stub, cache=cache).aembed(["b", "a"])).is_cached
    assert not (await model_of(stub, {"dimensions": 2}, cache=cache).aembed(["a", "b"])).is_cached
    cache.update({digest: {"vectors": ["A"], "usages": []} for digest in cache})
    assert not (await model_of(stub, cache=cache).aembed(["a", "b"])).is_cached


# --- LangChain ---


def over_http(stub: OpenAIStub) -> Embeddings:
    return OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=stub.base_url,
        api_key="k",
        max_retries=0,
        check_embedding_ctx_length=False,
    )


async def test_langchain_vectors_are_in_the_order_of_the_texts(openai_stub: OpenAIStub) -> None:
    openai_stub.embed = {"a": [1.0, 0.5], "b": [0.0, -2.0]}.__getitem__
    model = LangChainEmbeddingModel(over_http(openai_stub))
    embedded = await model.aembed(["b", "a"])
    assert model.name == "OpenAIEmbeddings:text-embedding-3-small"
    assert embedded.value == ((0.0, -2.0), (1.0, 0.5))
    assert embedded.cost is None
