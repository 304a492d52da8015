"""Querying a SPARQL endpoint, which may fail."""

import time
from typing import Any

import pytest
from support.sparql_stub import Answer, answering

from graphrag_eval_lc.dataset import sparql_endpoint
from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError, EndpointGoneError, SparqlEndpoint
from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.retrying import RetryPolicy


async def results(url: str, query: str = "SELECT", seconds: float = 5, **options: Any) -> Any:
    async with SparqlEndpoint(url, seconds, **options) as endpoint:
        return await endpoint.results(query)


async def test_query_returns_its_json_results() -> None:
    query = "SELECT ?x WHERE { ?x :p 'å + & = ?' }"
    with answering(lambda given: (200, f'{{"boolean": {str(given == query).lower()}}}', {})) as url:
        assert await results(url, query) == {"boolean": True}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((400, "parse error\nat 7", {}), "^status 400: parse error at 7$"),
        ((404, "", {}), "^status 404: Not Found$"),
        ((200, "<html>", {"Content-Type": "text/html"}), r"^it returns no JSON \(text/html\): <html>$"),
        ((200, "x" * 300, {}), r"^it returns no JSON \(application/json\): x{200}…$"),
        ((200, '{"head": ', {}), "^it returns no JSON"),
    ],
)
async def test_failed_query_says_why(answer: Answer, text: str) -> None:
    with answering(lambda _: answer) as url, pytest.raises(EndpointError, match=text):
        await results(url)


@pytest.mark.full
async def test_transient_failure_is_retried() -> None:
    answers = iter([(503, "busy", {"Retry-After": "0"}), (429, "slower", {"Retry-After": "0"}), (200, "{}", {})])
    with answering(lambda _: next(answers)) as url:
        assert await results(url) == {}


async def test_long_retry_after_is_not_waited_for() -> None:
    with (
        answering(lambda _: (429, "slower", {"Retry-After": "7200"})) as url,
        pytest.raises(EndpointError, match=r"^status 429: slower$"),
    ):
        await results(url)


async def test_slow_query_times_out() -> None:
    def answer(_: str) -> Answer:
        time.sleep(0.5)
        return 200, "{}", {}

    with answering(answer) as url, pytest.raises(EndpointError, match=r"^no results within 0\.1 seconds$"):
        await results(url, seconds=0.1)


async def test_unreachable_endpoint_gets_no_further_queries() -> None:
    with answering(lambda _: (200, "{}", {})) as url:
        pass
    with pytest.raises(DatasetError, match="cannot be reached") as caught:
        await results(url.replace("http://", "http://user:secret@"))
    assert url in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["http://[", "http://127.0.0.1:1/"])
async def test_endpoint_behind_a_dead_redirect_gets_no_further_queries(place: str) -> None:
    with (
        answering(lambda _: (307, "", {"Location": place})) as url,
        pytest.raises(DatasetError, match="cannot be reached"),
    ):
        await results(url, follows_redirects=True)


async def test_lost_connection_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql_endpoint, "_RETRIES", RetryPolicy(first_wait=0))
    with answering(lambda _: (200, "{}", {})) as url:
        endpoint = SparqlEndpoint(url, 5)
        assert await endpoint.results("SELECT") == {}
    async with endpoint:
        with pytest.raises(EndpointGoneError, match="attempts failed"):
            await endpoint.results("SELECT")


async def test_local_endpoint_bypasses_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(lambda _: (200, "{}", {})) as url:
        assert await results(url) == {}


@pytest.mark.parametrize("url", ["foo", "ftp://host/sparql", "http://", ""])
def test_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(OptionError, match="endpoint"):
        SparqlEndpoint(url, 5)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeout_must_be_positive(timeout: float) -> None:
    with pytest.raises(OptionError, match="timeout is above 0"):
        SparqlEndpoint("http://localhost/sparql", timeout)
    with pytest.raises(OptionError, match="max_bytes is above 0"):
        SparqlEndpoint("http://localhost/sparql", 1, 0)
