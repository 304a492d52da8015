"""The HTTP client of an endpoint: one per event loop, closed with it."""

import asyncio

from support.openai_stub import OpenAIStub

from graphrag_eval_lc.config import GenerationConfig
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.openai_models import Endpoint


def endpoint_of(stub: OpenAIStub) -> Endpoint:
    return Endpoint(GenerationConfig(model="m", base_url=stub.base_url, api_key="k"))


async def clients_after(endpoint: Endpoint, requests: int) -> list[object]:
    body = {"model": "m", "messages": []}
    await asyncio.gather(*(endpoint.post("/chat/completions", body) for _ in range(requests)))
    return [endpoint._client]


def test_synchronous_calls_share_one_client(openai_stub: OpenAIStub) -> None:
    openai_stub.latency_sec = 0.05
    endpoint = endpoint_of(openai_stub)
    clients = [run_sync(lambda: clients_after(endpoint, 20)) for _ in range(2)]
    assert clients[0] == clients[1]


def test_each_event_loop_has_its_own_client_that_is_closed_with_it(openai_stub: OpenAIStub) -> None:
    endpoint = endpoint_of(openai_stub)
    clients = [asyncio.run(clients_after(endpoint, 1)) for _ in range(2)]
    assert clients[0] != clients[1]
    assert all(client.is_closed() for clients in clients for client in clients)  # type: ignore[attr-defined]


async def test_endpoint_can_be_closed_and_used_again(openai_stub: OpenAIStub) -> None:
    endpoint = endpoint_of(openai_stub)
    await endpoint.aclose()
    (first,) = await clients_after(endpoint, 1)
    await endpoint.aclose()
    await endpoint.aclose()
    assert await clients_after(endpoint, 1) != [first]
