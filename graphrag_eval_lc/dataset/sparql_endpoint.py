"""Runs the queries of a dataset on a SPARQL endpoint, several at once, and keeps each result so that it can resume."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import httpx

from graphrag_eval_lc.dataset.gold import BrokenGoldError, with_truth
from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, OptionError
from graphrag_eval_lc.event_loop.http_connections import (
    RefusedRedirectError,
    RefusedResponseError,
    TooLargeResponseError,
    bounded_http,
)
from graphrag_eval_lc.files.writing import AppendFile, json_line
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS
from graphrag_eval_lc.retrying import RetryPolicy
from graphrag_eval_lc.texts import shortened

DEFAULT_MAX_BYTES: Final = 100_000_000
_SHOWN: Final = 200
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_RETRIES: Final = RetryPolicy(longest_retry_after=60.0)
_UNREACHED: Final = (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.RemoteProtocolError)
# Public endpoints, such as Wikidata's, refuse requests without a User-Agent.
_HEADERS: Final = {"Accept": SPARQL_RESULTS, "User-Agent": "graphrag-eval-lc (SPARQL results for a reference dataset)"}


class EndpointError(Exception):
    """An endpoint returns no results for a query; the message says why."""


class EndpointGoneError(EndpointError):
    """An endpoint that has answered before cannot be reached any more."""


class SparqlEndpoint:
    """A SPARQL endpoint; an asynchronous context manager."""

    def __init__(
        self, url: str, timeout: float, max_bytes: int = DEFAULT_MAX_BYTES, *, follows_redirects: bool = False
    ) -> None:
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as problem:
            raise OptionError(f"the endpoint is not a URL: {problem}", hint="Give one as http://host/sparql.") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            what = f"the endpoint {masked_text(shortened(url, 80))} is not an HTTP URL"
            raise OptionError(what, hint="Give one as http://host/sparql.")
        if not timeout > 0:
            raise OptionError(f"timeout is above 0 seconds, not {timeout:g}")
        if not max_bytes > 0:
            raise OptionError(f"max_bytes is above 0, not {max_bytes}", hint="Give --max-bytes a positive number.")
        self._url = parsed
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            timeout=timeout,
            headers=_HEADERS,
            trust_env=parsed.host not in _LOCAL,  # no proxy for an endpoint on this machine
            follow_redirects=True,
            event_hooks=bounded_http(max_bytes, follows_redirects=follows_redirects),
        )
        self._has_answered = False

    @property
    def name(self) -> str:
        """The URL without user and password."""
        return str(self._url.copy_with(userinfo=b""))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def results(self, query: str) -> Any:
        """Return the results of a query as parsed JSON. Temporary errors are retried."""
        attempt = 1
        while True:
            try:
                return with_truth(query, self._parsed(await self._sent(query)))
            except BrokenGoldError as problem:
                raise EndpointError(str(problem)) from problem
            except httpx.TimeoutException:
                raise EndpointError(self._too_long()) from None
            except httpx.HTTPError as problem:
                if not self._has_answered and isinstance(problem, _UNREACHED):
                    what = f"the endpoint {self.name} cannot be reached ({problem})"
                    raise DatasetError(what, hint="Check the URL, and that the endpoint runs.") from problem
                wait = _RETRIES.wait_before_retry(attempt, problem)
                if wait is None:
                    said = masked_text(str(problem) or type(problem).__name__)
                    is_gone = isinstance(problem, httpx.ConnectError)
                    raise (EndpointGoneError if is_gone else EndpointError)(said) from problem
            attempt += 1
            await asyncio.sleep(wait)

    async def _sent(self, query: str) -> httpx.Response:
        """Send a query once."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, data={"query": query}) as response,
            ):
                self._has_answered = True
                await response.aread()
        except TimeoutError:
            raise EndpointError(self._too_long()) from None
        except RefusedRedirectError as problem:
            hint = "Give the URL that it redirects to; dataset import also has --follow-redirects (follow_redirects)."
            if not self._has_answered:
                raise DatasetError(str(problem), hint=hint) from None
            raise EndpointError(f"{problem}. {hint}") from None
        except TooLargeResponseError as problem:
            raise EndpointError(f"{problem}; --max-bytes (max_bytes) allows more") from None
        except RefusedResponseError as problem:
            raise EndpointError(str(problem)) from None
        return response

    def _parsed(self, response: httpx.Response) -> Any:
        text = response.content.decode("utf-8", "replace")
        if not response.is_success:
            message = f"status {response.status_code}: {shortened(text, _SHOWN) or response.reason_phrase}"
            raise httpx.HTTPStatusError(message, request=response.request, response=response)
        try:
            return parse_json(text)
        except (ValueError, RecursionError):
            media_type = response.headers.get("Content-Type", "no media type")
            raise EndpointError(f"it returns no JSON ({media_type}): {shortened(text, _SHOWN)}") from None

    def _too_long(self) -> str:
        return f"no results within {self._timeout:g} seconds"


STATE_SUFFIX = ".refresh.jsonl"
"""What the name of the file of results ends in, next to the dataset."""
DEFAULT_CONCURRENCY = 4


class Graph(Protocol):
    """Something that answers SPARQL queries: an endpoint, or a graph in a file."""

    @property
    def name(self) -> str:
        """The URL without a password, or the path."""

    async def results(self, query: str) -> Any:
        """Return SPARQL 1.1 JSON results."""


async def run_queries(
    graph: Graph,
    queries: Iterable[str],
    *,
    state: Path | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run each distinct query once, and return its results or its error by query.

    ``state`` is a file to which results are appended, so that a stopped call can be resumed. ``on_progress`` is called
    with the number of queries that are done, and of all.
    """
    outcomes: dict[str, Any] = dict.fromkeys(queries)
    known = {} if state is None else _known_results(state)
    limit = asyncio.Semaphore(max_concurrency)
    gone: EndpointGoneError | None = None
    done = 0
    journal = None if state is None else _journal(state)

    async def run(query: str) -> None:
        nonlocal done, gone
        key = hashlib.sha256(f"{graph.name}\n{query}".encode()).hexdigest()
        async with limit:
            if gone is not None:
                outcomes[query] = gone
                return
            try:
                if key not in known:
                    known[key] = await graph.results(query)
                    if journal is not None:
                        journal.append(json_line({"key": key, "results": known[key]}))
                outcomes[query] = known[key]
            except EndpointError as problem:
                outcomes[query] = problem
                gone = gone or (problem if isinstance(problem, EndpointGoneError) else None)
        done += 1
        if on_progress is not None:
            on_progress(done, len(outcomes))

    try:
        async with asyncio.TaskGroup() as group:
            for query in outcomes:
                group.create_task(run(query))
    except* GraphRAGEvalError as problems:
        raise problems.exceptions[0] from None
    finally:
        if journal is not None:
            journal.close()
    return outcomes


def _journal(state: Path) -> AppendFile:
    """Open the file of results. If a kill cut off its last line, a line break is added first."""
    journal = AppendFile(state, is_private=False)
    if journal.length and not state.read_bytes().endswith(b"\n"):
        journal.append(b"\n")
    return journal


def _known_results(state: Path) -> dict[str, Any]:
    """Return the results that an earlier run wrote. The last line may be cut off."""
    known = {}
    try:
        lines = state.read_bytes().split(b"\n")
    except OSError:
        return {}
    for line in lines:
        try:
            record = json.loads(line)
            known[record["key"]] = record["results"]
        except (ValueError, KeyError, TypeError):
            continue
    return known
