"""Which responses the event hooks accept and reject, with httpx and httpx2."""

import gzip
import itertools
import zlib
from importlib import import_module
from typing import Any

import httpx
import pytest
from support.unruly_server import response, unruly

from graphrag_eval_lc.event_loop.http_connections import RefusedResponseError, _is_same_server, bounded_http
from graphrag_eval_lc.retrying import is_worth_a_retry

MOST = 1000
TEXT = b"x" * MOST
EVENTS = {"content_type": "text/event-stream; charset=utf-8"}


@pytest.fixture(params=["httpx", "httpx2"])
def client(request: pytest.FixtureRequest) -> Any:
    module = pytest.importorskip(request.param)
    return module.AsyncClient(event_hooks=bounded_http(MOST), follow_redirects=True, trust_env=False)


@pytest.mark.parametrize(
    ("body", "headers", "complaint"),
    [
        (TEXT, {}, None),
        (TEXT + b"x", {}, "sent more than 1,000 bytes"),
        (gzip.compress(TEXT), {"content_encoding": "gzip"}, None),
        (gzip.compress(TEXT), {"content_encoding": "X-GZIP"}, None),
        (zlib.compress(TEXT), {"content_encoding": "deflate"}, None),
        (gzip.compress(TEXT) + b"y" * 100_000, {"content_encoding": "gzip"}, None),
        (b"", {"content_encoding": "gzip"}, None),
        (TEXT, {"content_encoding": "identity"}, None),
        (gzip.compress(TEXT + b"x"), {"content_encoding": "gzip"}, "sent more than"),
        (gzip.compress(gzip.compress(TEXT)), {"content_encoding": "gzip, gzip"}, "with the encoding gzip, gzip,"),
        (TEXT, {"content_encoding": "gzip"}, "that is not gzip"),
        (b"data: 1\n\n" * MOST, EVENTS, None),
        (b"data: 1\r\n\r\n" * MOST, EVENTS, None),
        (b"data: 1\n" * MOST, EVENTS, "sent more than"),
        (b"data: 1\n\n" * MOST, {}, "sent more than"),
    ],
    ids=itertools.count(),  # compressed bodies contain a timestamp
)
async def test_body_is_accepted_or_rejected(
    client: Any, body: bytes, headers: dict[str, str], complaint: str | None
) -> None:
    with unruly(lambda _: [response(body, **headers)]) as server:
        async with client:
            if complaint is None:
                content = (await client.get(server.url)).content
                assert content == (body if "content_encoding" not in headers or not body else TEXT)
                return
            with pytest.raises(RefusedResponseError, match=complaint) as caught:
                await client.get(server.url)
    assert not is_worth_a_retry(caught.value)


async def test_event_stream_may_be_long_and_its_connection_is_closed(client: Any) -> None:
    with unruly(lambda _: itertools.chain([response(b"", **EVENTS)], itertools.repeat(b": ping\n\n"))) as server:
        async with client:
            async with client.stream("GET", server.url) as streamed:
                async for number, _ in with_byte_count(streamed.aiter_bytes()):
                    if number > 50 * MOST:
                        break
            assert streamed.is_closed
            assert all(connection.is_closed() for connection in client._transport._pool.connections)


async def with_byte_count(chunks: Any) -> Any:
    total = 0
    async for chunk in chunks:
        total += len(chunk)
        yield total, chunk


async def test_client_stays_with_the_server_of_its_first_request(client: Any) -> None:
    with unruly(lambda _: [response()]) as server, unruly(lambda _: [response()]) as other:
        async with client:
            await client.get(f"{server.url}/a")
            await client.get(f"{server.url}/b")
            with pytest.raises(RefusedResponseError, match="redirects to another host"):
                await client.get(f"{other.url}/reconnect")
    assert not other.seen


@pytest.mark.parametrize(
    ("first_url", "second_url", "is_same"),
    [
        ("http://a/x", "http://a:80/y", True),
        ("http://a/x", "https://a/y", True),
        ("https://a/x", "https://A:443/y", True),
        ("https://a/x", "http://a/y", False),
        ("http://a:81/x", "https://a:81/y", False),
        ("http://a:81/x", "https://a/y", False),
        ("http://a/x", "http://a.b/y", False),
        ("http://127.0.0.1/", "http://localhost/", False),
        ("http://a/x", "ftp://a/x", False),
    ],
)
def test_server_is_identified_by_scheme_host_and_port(first_url: str, second_url: str, is_same: bool) -> None:
    for name in ("httpx", "httpx2"):
        url = import_module(name).URL
        assert _is_same_server(url(first_url), url(second_url)) == is_same


async def test_redirect_loop_ends() -> None:
    with unruly(lambda seen: [response(b"", 302, location=seen.path)]) as server:
        async with httpx.AsyncClient(event_hooks=bounded_http(), follow_redirects=True, trust_env=False) as client:
            with pytest.raises(httpx.TooManyRedirects):
                await client.post(f"{server.url}/x", content=b"query")
    assert {seen.body for seen in server.seen} == {b"query"}
