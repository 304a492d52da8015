"""How judges, remote agents and SPARQL endpoints handle servers that redirect, drip, flood and send decompression
bombs.
"""

import asyncio
import functools
import gzip
import json
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from support.unruly_server import Seen, Unruly, bomb, byte_by_byte, response, unruly, without_end

from graphrag_eval_lc.benchmark import deployed_agents
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import AgentCall
from graphrag_eval_lc.config import GenerationConfig
from graphrag_eval_lc.dataset.sparql_endpoint import SparqlEndpoint
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.models import as_judge_model

SHORT, LONG = 0.6, 30.0
MB = 1_000_000
QUESTION: Any = {"id": "q", "question_text": "secret question"}
KEY = "secret-key-8841"
ASSISTANT = [{"assistant_id": "a1", "graph_id": "agent"}]

Pieces = Iterable[bytes]


class Verdict(BaseModel):
    reason: str
    verdict: Literal[0, 1]


async def of_endpoint(url: str, sec: float = SHORT, **options: Any) -> Any:
    address = f"{url}/sparql".replace("//", f"//user:{KEY}@")
    async with SparqlEndpoint(address, sec, **options) as endpoint:
        return await endpoint.results("ASK { 'secret question' }")


async def of_judge(url: str, sec: float) -> Any:
    settings = GenerationConfig(model="m", base_url=f"{url}/v1", api_key=KEY, default_headers={"x-own-key": KEY})
    judge = as_judge_model(settings, timeout=sec, max_retries=0)
    return (await judge.aask("You judge.", "secret question", Verdict)).value.verdict == 1


async def of_azure(url: str, sec: float) -> Any:
    settings = GenerationConfig(
        provider="azure_openai", model="m", api_key=KEY, azure_endpoint=url, api_version="2024-10-21", max_retries=0
    )
    judge = as_judge_model(settings, timeout=sec, max_retries=0)
    return (await judge.aask("You judge.", "secret question", Verdict)).value.verdict == 1


async def of_check(url: str, sec: float) -> Any:
    deployed_agents._CHECK_SEC = sec
    agent = await aload_agent(f"{url}/agent", key_variable="UNRULY_KEY")
    await agent.aclose()
    return True


async def of_question(url: str, sec: float) -> Any:
    """Send a question to an agent whose server becomes unruly only then."""
    agent = await aload_agent(f"{url}/agent", key_variable="UNRULY_KEY")
    try:
        attempt = await AgentCall(agent, timeout=sec).aattempt(QUESTION, "r/1/q/1/1/1", abandoned())
    finally:
        await agent.aclose()
    if attempt.error is not None:
        raise attempt.error
    return attempt.response["actual_answer"] == "Oslo"


def abandoned() -> Any:
    return asyncio.get_running_loop().create_future()


CLIENTS: dict[str, Callable[[str, float], Awaitable[Any]]] = {
    "endpoint": of_endpoint,
    "judge": of_judge,
    "azure": of_azure,
    "check": of_check,
    "question": of_question,
}
MESSAGE = {"role": "assistant", "content": json.dumps({"reason": "R.", "verdict": 1})}
COMPLETION = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": None}
STATE = {"messages": [{"type": "human", "content": "x"}, {"type": "ai", "content": "Oslo"}]}
GOOD = {
    "endpoint": f"{json.dumps(True):>50}",
    "azure": json.dumps({**COMPLETION, "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}),
    "check": json.dumps(ASSISTANT),
    "question": f"event: values\ndata: {json.dumps(STATE)}\n\n",
}
GOOD["judge"] = GOOD["azure"]


def good(client: str, body: bytes | None = None, **headers: str) -> bytes:
    kind = {"content_type": "text/event-stream"} if client == "question" else {}
    return response(GOOD[client].encode() if body is None else body, **{**kind, **headers})


def answering(client: str, pieces: Callable[[Seen], Pieces]) -> Callable[[Seen], Pieces]:
    """Return the responses of a server that is unruly only for the requests under test."""

    def answer(seen: Seen) -> Pieces:
        if is_under_test(client, seen):
            return pieces(seen)
        return [response(json.dumps(ASSISTANT if seen.path.endswith("/search") else {}).encode())]

    return answer


def is_under_test(client: str, seen: Seen) -> bool:
    wanted = {"question": "/runs/stream", "check": "/assistants/search"}.get(client, "/")
    return wanted in seen.path


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY_KEY", KEY)


async def outcome(client: str, server: Unruly, sec: float = LONG) -> str:
    """Return the outcome, with an error as one line, at the latest after the timeout."""
    began = time.monotonic()
    try:
        found = await CLIENTS[client](server.url, sec)
    except Exception as problem:
        message = f"{type(problem).__name__}: {problem}"
    else:
        message = "answered" if found is True else f"found {found}"
    assert time.monotonic() - began < sec + 5  # the state of the agent's thread is read, too
    assert "\n" not in message
    return message


# --- redirects -------------------------------------------------------------------------------------------------------


STATUSES = (301, 302, 303, 307, 308)


@pytest.mark.parametrize("client", CLIENTS)
async def test_redirect_on_the_same_server_keeps_method_and_body(client: str) -> None:
    for status in STATUSES:
        redirect = functools.partial(response, b"", status)

        def pieces(seen: Seen, redirect: Callable[..., bytes] = redirect) -> Pieces:
            return [good(client) if "moved" in seen.path else redirect(location=f"{seen.path}?moved")]

        with unruly(answering(client, pieces)) as server:
            assert await outcome(client, server) == "answered"
            first, second = [seen for seen in server.seen if is_under_test(client, seen)]
        assert (first.method, first.body) == (second.method, second.body)
        assert first.body


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 302), ("localhost", 307), ("port", 303)])
async def test_nothing_is_sent_to_another_host(client: str, status: int, host: str) -> None:
    with unruly(lambda _: [good(client)]) as other, unruly(lambda _: []) as server:
        port = (other if host == "port" else server).url.rpartition(":")[2]
        place = other.url if host == "port" else f"{'https' if host == '127.0.0.1' else 'http'}://{host}:{port}"
        server.answer = answering(client, lambda _: [response(b"", status, location=f"{place}/x")])
        message = await outcome(client, server)
        asked = [seen for seen in server.seen if seen.path == "/x"]
    assert f"redirects to another host, {place}" in message
    assert not other.seen
    assert not asked
    assert KEY not in message


@pytest.mark.parametrize("status", [302, 308])
async def test_endpoint_may_redirect_if_allowed(status: int) -> None:
    with unruly(lambda _: [good("endpoint")]) as other:
        there = response(b"", status, location=f"{other.url}/sparql")
        with unruly(lambda _: [there]) as server:
            assert await of_endpoint(server.url, follows_redirects=True) is True
    assert (other.seen[0].method, other.seen[0].body) == ("POST", server.seen[0].body)
    assert "authorization" in server.seen[0].headers
    assert "authorization" not in other.seen[0].headers


async def test_judge_is_not_called_after_three_redirects() -> None:
    with unruly(lambda _: [response(b"", 307, location="http://localhost:1/")]) as server:
        judge = as_judge_model(GenerationConfig(model="m", base_url=f"{server.url}/v1", api_key=KEY))
        for number in range(5):
            with pytest.raises(JudgeError, match="redirects to another host, http://localhost:1, and nothing"):
                await judge.aask("You judge.", f"Is it {number}?", Verdict)
    assert len(server.seen) == 3


# --- bodies ----------------------------------------------------------------------------------------------------------


def slow_body(client: str) -> Iterator[bytes]:
    yield good(client, b"")
    yield from byte_by_byte(GOOD[client].encode())


UNRULY: dict[str, tuple[Callable[[str], Pieces], float, str]] = {
    "packed": (
        lambda name: [good(name, gzip.compress(GOOD[name].encode()), content_encoding="gzip")],
        LONG,
        "answered",
    ),
    "bomb": (lambda name: [good(name, bomb(), content_encoding="gzip")], LONG, "sent more than 64,000,000 bytes"),
    "flood": (lambda name: without_end(good(name, b"")), LONG, "sent more than 64,000,000 bytes"),
    "slow headers": (lambda name: byte_by_byte(good(name)), SHORT, "within 0.6 s"),
    "slow body": (slow_body, SHORT, "within 0.6 s"),
    "other encoding": (lambda name: [good(name, content_encoding="br")], LONG, "with the encoding br, which was not"),
    "not packed": (lambda name: [good(name, b"no", content_encoding="gzip")], LONG, "sent a body that is not gzip"),
}


@pytest.mark.full
@pytest.mark.parametrize("behaviour", UNRULY)
@pytest.mark.parametrize("client", CLIENTS)
async def test_body_is_bounded_in_time_and_size(client: str, behaviour: str) -> None:
    pieces, sec, message = UNRULY[behaviour]
    message = message.replace("64,", "100,").replace("0.6 s", "0.6 seconds") if client == "endpoint" else message
    with unruly(answering(client, lambda _: pieces(client))) as server:
        bomb()
        tracemalloc.start()
        try:
            assert message in await outcome(client, server, sec)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        asked = [seen for seen in server.seen if is_under_test(client, seen)]
    assert len(asked) == 1
    assert peak < 150 * MB
    assert "br" not in asked[0].headers["accept-encoding"]
