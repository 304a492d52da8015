"""The requests of ragas, made here by hand on the client that it gets; the scores need ragas itself."""

from collections.abc import Iterator
from typing import Any

import pytest
from openai_stub import OpenAIStub, broken_body, embeddings_count, missing_usage, rate_limit, refusal

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.model_interface import cost_of
from graphrag_eval_lc.judges.ragas_engine import ACCOUNT, Account, RagasModel

CHAT_COST = 1000 * 0.15e-6 + 100 * 0.6e-6
MESSAGES: list[Any] = [{"role": "user", "content": "Say something in json."}]


@pytest.fixture
def account() -> Iterator[Account]:
    account = Account()
    token = ACCOUNT.set(account)
    yield account
    ACCOUNT.reset(token)


class Kept(dict[str, Any]):
    def put(self, digest: str, record: Any) -> None:
        self[digest] = record


def chat_model(stub: OpenAIStub, *, cache: Kept | None = None, **settings: Any) -> RagasModel:
    generation = GenerationConfig(model="gpt-4o-mini", base_url=stub.base_url, api_key="k", **settings)
    return RagasModel(generation, lambda client: client, cache=cache)


def embedding_model(stub: OpenAIStub, *, cache: Kept | None = None, **settings: Any) -> RagasModel:
    embedding = EmbeddingConfig(model="text-embedding-3-small", base_url=stub.base_url, api_key="k", **settings)
    return RagasModel(embedding, lambda client: client, cache=cache)


async def said(model: RagasModel) -> str:
    client = await model.get()
    completion = await client.chat.completions.create(
        model="gpt-4o-mini", messages=MESSAGES, response_format={"type": "json_object"}
    )
    return str(completion.choices[0].message.content)


async def vectors(model: RagasModel) -> list[list[float]]:
    client = await model.get()
    return [each.embedding for each in (await client.embeddings.create(model="m", input=["a", "b"])).data]


async def test_a_request_is_priced_by_its_usage(openai_stub: OpenAIStub, account: Account) -> None:
    openai_stub.answers.append("{}")
    assert await said(chat_model(openai_stub)) == "{}"
    await vectors(embedding_model(openai_stub))
    assert account.costs == [pytest.approx(CHAT_COST), pytest.approx(50 * 0.02e-6)]


async def test_a_request_without_usage_has_no_price(openai_stub: OpenAIStub, account: Account) -> None:
    openai_stub.chat_faults.append(missing_usage())
    await said(chat_model(openai_stub))
    assert account.costs == [None]


async def test_requests_are_sent_again_after_rate_limits_and_broken_answers(
    openai_stub: OpenAIStub, account: Account
) -> None:
    openai_stub.chat_faults.extend([rate_limit(retry_after_ms="5"), broken_body("{")])
    openai_stub.embedding_faults.extend([broken_body("<html>"), embeddings_count(0)])
    await said(chat_model(openai_stub))
    await vectors(embedding_model(openai_stub))
    assert len(openai_stub.requests) == 6


async def test_nothing_is_asked_after_a_failure(openai_stub: OpenAIStub, account: Account) -> None:
    openai_stub.chat_faults.append(refusal("No."))
    model = chat_model(openai_stub)
    for _ in range(2):
        with pytest.raises(JudgeError, match="refused") as caught:
            await said(model)
    assert caught.value is account.failure
    assert account.failure is not None
    assert cost_of(account.failure) == pytest.approx(CHAT_COST)
    assert len(openai_stub.requests) == 1


async def test_equal_requests_for_one_score_are_kept_apart(openai_stub: OpenAIStub, account: Account) -> None:
    openai_stub.answers.extend(["1", "2"])
    cache = Kept()
    model = chat_model(openai_stub, cache=cache)
    assert [await said(model), await said(model)] == ["1", "2"]
    ACCOUNT.set(again := Account())
    assert [await said(model), await said(model)] == ["1", "2"]
    assert len(openai_stub.requests) == 2
    assert again.costs == account.costs


async def test_vectors_are_kept_as_they_came(openai_stub: OpenAIStub, account: Account) -> None:
    cache = Kept()
    first = await vectors(embedding_model(openai_stub, cache=cache))
    ACCOUNT.set(Account())
    assert await vectors(embedding_model(openai_stub, cache=cache)) == first
    assert len(openai_stub.requests) == 1


@pytest.mark.usefixtures("account")
async def test_settings_of_the_config_are_sent_along(openai_stub: OpenAIStub) -> None:
    await said(chat_model(openai_stub, seed=7, extra_headers={"X-Team": "grid"}, organization="acme"))
    await vectors(embedding_model(openai_stub, dimensions=256))
    chat, embeddings = openai_stub.requests
    assert chat.body["seed"] == 7
    assert (chat.headers["x-team"], chat.headers["openai-organization"]) == ("grid", "acme")
    assert embeddings.body["dimensions"] == 256
