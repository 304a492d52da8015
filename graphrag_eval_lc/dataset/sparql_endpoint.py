"""Asking a SPARQL endpoint over HTTP, as the SPARQL 1.1 protocol has it."""

import time
from types import TracebackType
from typing import Any, Final, Self

import httpx

from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS
from graphrag_eval_lc.retrying import RetryPolicy
from graphrag_eval_lc.texts import shortened

# Longer results are no gold that anybody reads, and would fill the memory.
_MOST_BYTES: Final = 50_000_000
_SHOWN: Final = 200
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_RETRIES: Final = RetryPolicy(longest_retry_after=60.0)
# Public endpoints, such as Wikidata's, refuse requests that do not say who asks.
_HEADERS: Final = {"Accept": SPARQL_RESULTS, "User-Agent": "graphrag-eval-lc (SPARQL results for a reference dataset)"}


class EndpointError(Exception):
    """An endpoint gives no results for a query; the message says why."""


class EndpointGoneError(EndpointError):
    """An endpoint that has answered before cannot be reached any more."""


class SparqlEndpoint:
    """An endpoint that is asked one query after the other; a context manager.

    Args:
        url: Its URL; a user and a password in it are sent as basic authentication.
        timeout: The longest time for a query, in seconds.

    Raises:
        OptionError: The URL is none of HTTP, or the timeout is not above 0.
    """

    def __init__(self, url: str, timeout: float) -> None:
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as problem:
            raise OptionError(f"the endpoint is no URL: {problem}", hint="Give one as http://host/sparql.") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            what = f"the endpoint {masked_text(shortened(url, 80))} is no URL of HTTP"
            raise OptionError(what, hint="Give one as http://host/sparql.")
        if not timeout > 0:
            raise OptionError(f"timeout is above 0 seconds, not {timeout:g}")
        self._url = parsed
        self._timeout = timeout
        # What runs on this machine is asked directly, whatever proxy the environment names.
        is_local = parsed.host in _LOCAL
        self._client = httpx.Client(timeout=timeout, headers=_HEADERS, follow_redirects=True, trust_env=not is_local)
        self._has_answered = False

    @property
    def name(self) -> str:
        """The URL without user and password."""
        return str(self._url.copy_with(userinfo=b""))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def results(self, query: str) -> Any:
        """Return the results of a query as parsed JSON. What passes with time is tried again.

        Raises:
            EndpointError: There are no results.
            DatasetError: Nothing at all answers at the URL.
        """
        attempt = 1
        while True:
            try:
                return self._asked(query)
            except httpx.HTTPError as problem:
                self._refuse_unreached(problem)
                is_slow = isinstance(problem, httpx.TimeoutException)
                wait = None if is_slow else _RETRIES.wait_before_retry(attempt, problem)
                if wait is None:
                    is_gone = isinstance(problem, httpx.ConnectError)
                    raise (EndpointGoneError if is_gone else EndpointError)(self._said(problem)) from problem
            attempt += 1
            time.sleep(wait)

    def _asked(self, query: str) -> Any:
        """Return the results of a query that is sent once."""
        end = time.monotonic() + self._timeout
        with self._client.stream("POST", self._url, data={"query": query}) as response:
            self._has_answered = True
            content = bytearray()
            for part in response.iter_bytes():
                content += part
                if time.monotonic() > end:
                    raise EndpointError(self._too_long())
                if len(content) > _MOST_BYTES:
                    raise EndpointError(f"the results are larger than {_MOST_BYTES // 1_000_000} MB")
        text = content.decode("utf-8", "replace")
        if response.is_error or not response.is_success:
            message = f"status {response.status_code}: {shortened(text, _SHOWN) or response.reason_phrase}"
            raise httpx.HTTPStatusError(message, request=response.request, response=response)
        try:
            return parse_json(text)
        except (ValueError, RecursionError):
            media_type = response.headers.get("Content-Type", "no media type")
            raise EndpointError(f"it gives no JSON ({media_type}): {shortened(text, _SHOWN)}") from None

    def _refuse_unreached(self, problem: httpx.HTTPError) -> None:
        """Raise an error if nothing has ever answered, so that no other query is worth a try."""
        if self._has_answered or not isinstance(
            problem, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.RemoteProtocolError
        ):
            return
        hint = "Check the URL, and that the endpoint runs."
        raise DatasetError(f"the endpoint {self.name} cannot be reached ({problem})", hint=hint) from problem

    def _said(self, problem: httpx.HTTPError) -> str:
        if isinstance(problem, httpx.TimeoutException):
            return self._too_long()
        return masked_text(str(problem) or type(problem).__name__)

    def _too_long(self) -> str:
        return f"no results within {self._timeout:g} seconds"
