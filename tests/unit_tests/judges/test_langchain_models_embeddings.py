import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_openai import OpenAIEmbeddings
from openai_stub import OpenAIStub, embeddings_count

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.embedding_models import LangChainEmbeddingModel


def over_http(stub: OpenAIStub) -> Embeddings:
    return OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=stub.base_url,
        api_key="k",
        max_retries=0,
        check_embedding_ctx_length=False,
    )


async def test_vectors_come_in_the_order_of_the_texts(openai_stub: OpenAIStub) -> None:
    openai_stub.embed = {"a": [1.0, 0.5], "b": [0.0, -2.0]}.__getitem__
    model = LangChainEmbeddingModel(over_http(openai_stub))
    embedded = await model.aembed(["b", "a"])
    assert model.name == "OpenAIEmbeddings:text-embedding-3-small"
    assert embedded.values == ((0.0, -2.0), (1.0, 0.5))
    assert embedded.cost is None


async def test_the_wrong_number_of_embeddings_is_an_error(openai_stub: OpenAIStub) -> None:
    openai_stub.embedding_faults.append(embeddings_count(1))
    with pytest.raises(JudgeError, match="gave 1 embeddings for 2 texts"):
        await LangChainEmbeddingModel(over_http(openai_stub), max_retries=0).aembed(["a", "b"])


async def test_any_embeddings_will_do() -> None:
    model = LangChainEmbeddingModel(DeterministicFakeEmbedding(size=3))
    assert [len(vector) for vector in (await model.aembed(["a", "b"])).values] == [3, 3]
