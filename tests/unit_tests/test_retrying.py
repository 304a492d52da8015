import asyncio
import email.utils
import ssl
import time
import urllib.error
from datetime import timedelta
from email.message import Message
from typing import Any

import httpx
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from langgraph.errors import GraphRecursionError

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.http_connections import TooLargeResponseError
from graphrag_eval_lc.retrying import (
    RetryPolicy,
    is_rate_limit,
    is_worth_a_retry,
    masked_error_text,
    refuses_everything,
    retry_after_of,
)

QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}

_DATE = "Wed, 21 Oct 2015 {} GMT"


def http_error(status: int, *, headers: dict[str, str] | None = None, body: Any = None) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://model.example/v1")
    response = httpx.Response(status, headers=headers, json=body or {}, request=request)
    return httpx.HTTPStatusError(f"Client error {status}", request=request, response=response)


def error_with(**attributes: Any) -> Exception:
    error = RuntimeError("refused")
    vars(error).update(attributes)
    return error


def raised_from(error: Exception, cause: BaseException | None, *, context: BaseException | None = None) -> Exception:
    error.__context__ = context
    error.__cause__ = cause
    error.__suppress_context__ = cause is not None
    return error


class RateLimitError(Exception):
    """As in openai and anthropic."""


class ThrottlingException(Exception):  # noqa: N818
    """As in botocore."""


class APIConnectionError(Exception):
    """As in openai and anthropic."""


class APITimeoutError(APIConnectionError):
    """As in openai and anthropic."""


class ClientConnectionError(Exception):
    """As in aiohttp."""


class QuestionTimeout(TimeoutError):  # noqa: N818
    is_question_timeout = True


class Unreadable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no")


class Broken(Exception):  # noqa: N818
    @property
    def response(self) -> Any:
        raise RuntimeError("no")


RATE_LIMITS = [
    http_error(429),
    error_with(status_code=429),
    error_with(status=429),
    error_with(code="429"),
    error_with(http_status=429),
    error_with(response={"ResponseMetadata": {"HTTPStatusCode": 429}}),
    error_with(retry_after=3),
    error_with(body={"error": {"type": "rate_limit_error"}}),
    error_with(status="RESOURCE_EXHAUSTED"),
    RateLimitError(),
    ThrottlingException(),
    raised_from(ValueError("no answer"), http_error(429)),
    raised_from(ValueError("no answer"), None, context=http_error(429)),
    ExceptionGroup("tools", [ValueError(), http_error(429)]),
    urllib.error.HTTPError("http://h", 429, "slow down", Message(), None),
]


@pytest.mark.parametrize("error", RATE_LIMITS, ids=repr)
def test_rate_limits_are_recognized(error: Exception) -> None:
    assert is_rate_limit(error)


@pytest.mark.parametrize(
    "error",
    [
        http_error(429, body=QUOTA),
        error_with(status_code=429, code="insufficient_quota"),
        error_with(status_code=429, body=QUOTA["error"]),
        error_with(status_code=429, code="billing_not_active"),
        raised_from(error_with(status_code=429, code="insufficient_quota"), http_error(429)),
        RateLimitError(f"Error code: 429 - {QUOTA}"),
    ],
    ids=repr,
)
def test_exhausted_quota_is_not_a_rate_limit(error: Exception) -> None:
    assert not is_rate_limit(error)
    assert not is_worth_a_retry(error)


def test_quota_per_minute_is_a_rate_limit() -> None:
    message = "You exceeded your current quota, please check your plan and billing details. Retry in 35 s."
    assert is_rate_limit(http_error(429, body={"error": {"message": message, "status": "RESOURCE_EXHAUSTED"}}))


@pytest.mark.parametrize(
    "error",
    [
        *RATE_LIMITS[:-2],
        *map(http_error, (408, 409, 425, 500, 502, 503, 504, 529)),
        ConnectionResetError(),
        TimeoutError(),
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("gone"),
        requests.ConnectionError(),
        requests.Timeout(),
        APIConnectionError(),
        APITimeoutError(),
        ClientConnectionError(),
        error_with(status_code=200, body={"error": {"type": "overloaded_error"}}),
        raised_from(TimeoutError(), asyncio.CancelledError()),
        raised_from(RuntimeError("the tool failed"), httpx.ConnectError("no route")),
        raised_from(http_error(503), None, context=http_error(404)),
        ExceptionGroup("tools", [TimeoutError(), ExceptionGroup("more", [http_error(503)])]),
    ],
    ids=repr,
)
def test_transient_errors_are_retried(error: Exception) -> None:
    assert is_worth_a_retry(error)


@pytest.mark.parametrize(
    "error",
    [
        *map(http_error, (400, 401, 403, 404, 422, 501)),
        ValueError("no such class"),
        Broken(),
        QuestionTimeout(),
        GraphRecursionError(),
        KeyboardInterrupt(),
        SystemExit(503),
        asyncio.CancelledError(),
        httpx.UnsupportedProtocol("no scheme"),
        httpx.LocalProtocolError("illegal header"),
        httpx.InvalidURL("no"),
        requests.exceptions.MissingSchema(),
        raised_from(APIConnectionError(), httpx.UnsupportedProtocol("no scheme")),
        raised_from(APIConnectionError(), TooLargeResponseError("too much")),
        raised_from(requests.exceptions.SSLError(), ssl.SSLCertVerificationError("expired")),
        raised_from(http_error(401), None, context=http_error(503)),
        raised_from(GraphRecursionError(), None, context=http_error(503)),
        ExceptionGroup("tools", [TimeoutError(), ValueError()]),
        BaseExceptionGroup("tools", [TimeoutError(), KeyboardInterrupt()]),
    ],
    ids=repr,
)
def test_permanent_errors_are_not_retried(error: BaseException) -> None:
    assert not is_worth_a_retry(error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (http_error(401), True),
        (http_error(404), True),
        (http_error(429), False),
        (http_error(429, body=QUOTA), True),
        (error_with(status_code=400, body={"error": {"code": "model_not_found"}}), True),
        (http_error(400, body={"detail": "The model gpt-x does not exist"}), True),
        (http_error(422, body={"detail": "Incorrect API key provided"}), True),
        (http_error(400, body={"detail": "response_format json_schema of this model is not supported"}), False),
        (http_error(400, body={"detail": "messages is empty"}), False),
        (http_error(503, body={"detail": "The model gpt-x does not exist"}), False),
        (TimeoutError(), False),
    ],
)
def test_server_that_rejects_all_requests_is_recognized(error: Exception, expected: bool) -> None:
    assert refuses_everything(error) is expected


def test_suppressed_context_is_ignored() -> None:
    error = raised_from(ValueError(), None, context=http_error(429))
    error.__suppress_context__ = True
    assert not is_rate_limit(error)
    assert not is_worth_a_retry(error)


def test_circular_and_deep_exception_chains_terminate() -> None:
    first, second = ValueError(), RuntimeError()
    first.__context__, second.__context__ = second, first
    assert not is_worth_a_retry(first)
    inner = ValueError()
    group = ExceptionGroup("circle", [inner])
    inner.__cause__ = group
    assert not is_worth_a_retry(group)
    deep: Exception = TimeoutError()
    for _ in range(3000):
        deep = raised_from(ValueError(), deep)
    assert is_worth_a_retry(deep)
    nested: Exception = TimeoutError()
    for _ in range(3000):
        nested = ExceptionGroup("deep", [nested])
    assert not is_worth_a_retry(nested)
    assert masked_error_text(nested).endswith("TimeoutError")


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (http_error(429, headers={"Retry-After": "7"}), 7),
        (http_error(503, headers={"retry-after-ms": "1500", "Retry-After": "2"}), 1.5),
        (error_with(response={"ResponseMetadata": {"HTTPHeaders": {"Retry-After": "7"}}}), 7),
        (error_with(headers={"RETRY-AFTER": "7"}), 7),
        (error_with(retry_after=2.5), 2.5),
        (error_with(retry_after="2.5"), 2.5),
        (error_with(retry_after=timedelta(minutes=1)), 60),
        (error_with(retry_after=-3), 0),
        (http_error(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), 0),
        # Relative to the server's clock, whatever the local clock says.
        (http_error(429, headers={"Retry-After": _DATE.format("07:28:30"), "Date": _DATE.format("07:28:00")}), 30),
        (http_error(429, headers={"Retry-After": _DATE.format("07:27:00"), "Date": _DATE.format("07:28:00")}), 0),
        (http_error(429, headers={"Retry-After": "7", "Date": _DATE.format("07:28:00")}), 7),
        (raised_from(ValueError(), error_with(retry_after=4)), 4),
        (ExceptionGroup("tools", [error_with(retry_after=1), error_with(retry_after=4)]), 4),
        (http_error(429, headers={"Retry-After": "soon"}), None),
        (error_with(retry_after=float("nan")), None),
        (error_with(retry_after=10**400), None),
        (error_with(retry_after=True), None),
        (http_error(429, headers={"x-ratelimit-reset-requests": "7"}), None),
        (ValueError(), None),
        (Broken(), None),
    ],
    ids=repr,
)
def test_requested_wait(error: Exception, seconds: float | None) -> None:
    assert retry_after_of(error) == seconds


def test_retry_after_date_is_relative_to_now() -> None:
    asked = retry_after_of(
        http_error(503, headers={"Retry-After": email.utils.formatdate(time.time() + 1000, usegmt=True)})
    )
    assert asked is not None
    assert 900 < asked <= 1000


@given(st.text() | st.integers() | st.floats() | st.binary() | st.none())
def test_wait_is_never_negative_or_infinite(value: Any) -> None:
    asked = retry_after_of(error_with(retry_after=value))
    assert asked is None or 0 <= asked < float("inf")


@pytest.mark.parametrize(("attempt", "least", "most"), [(1, 0.5, 1), (2, 1, 2), (3, 2, 4), (7, 30, 60), (5000, 30, 60)])
def test_wait_doubles_up_to_the_limit_with_half_of_it_random(attempt: int, least: float, most: float) -> None:
    policy = RetryPolicy(max_retries=10_000)
    assert policy.wait_before_retry(attempt, TimeoutError(), lambda: 0.0) == least
    assert policy.wait_before_retry(attempt, TimeoutError(), lambda: 1.0) == most


def test_attempts_are_limited() -> None:
    assert RetryPolicy(max_retries=2).wait_before_retry(2, TimeoutError()) is not None
    assert RetryPolicy(max_retries=2).wait_before_retry(3, TimeoutError()) is None
    assert RetryPolicy(max_retries=0).wait_before_retry(1, TimeoutError()) is None


def test_wait_is_at_least_the_requested_one() -> None:
    policy = RetryPolicy(longest_retry_after=100)
    assert policy.wait_before_retry(1, error_with(retry_after=100), lambda: 0.0) == 100
    assert policy.wait_before_retry(1, error_with(retry_after=100), lambda: 0.5) == 100.5
    assert policy.wait_before_retry(1, error_with(retry_after=0), lambda: 0.0) == 0.5
    assert policy.wait_before_retry(1, error_with(retry_after=101)) is None


@pytest.mark.parametrize(
    ("retry_on", "error", "retried"),
    [
        (ValueError, ValueError(), True),
        ((KeyError, ValueError), ValueError(), True),
        (KeyError, TimeoutError(), False),
        (ValueError, raised_from(RuntimeError(), ValueError()), True),
        ((), TimeoutError(), False),
        (lambda error: "again" in str(error), RuntimeError("again"), True),
        (lambda error: False, TimeoutError(), False),
        (Exception, QuestionTimeout(), True),
        (BaseException, KeyboardInterrupt(), False),
        (BaseException, asyncio.CancelledError(), False),
        (lambda error: True, BaseExceptionGroup("g", [SystemExit()]), False),
    ],
)
def test_retry_on_decides_what_is_retried(retry_on: Any, error: BaseException, retried: bool) -> None:
    assert (RetryPolicy(retry_on=retry_on).wait_before_retry(1, error) is not None) is retried


def test_failing_retry_on_means_no_retry_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(error: BaseException) -> bool:
        raise KeyError("status")

    assert RetryPolicy(retry_on=broken).wait_before_retry(1, TimeoutError("slow")) is None
    assert "retry_on raised KeyError: 'status' on TimeoutError: slow" in caplog.text


@pytest.mark.parametrize(
    "values",
    [
        {"max_retries": -1},
        {"first_wait": -1},
        {"first_wait": float("nan")},
        {"retry_on": 3},
        {"retry_on": int},
        {"retry_on": (int,)},
    ],
)
def test_invalid_policy_is_rejected(values: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        RetryPolicy(**values)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (TimeoutError(), "TimeoutError"),
        (Unreadable(), "Unreadable: <Unreadable>"),
        (RuntimeError("401: password=abc is wrong"), "RuntimeError: 401: password=*** is wrong"),
        (
            BaseExceptionGroup("tools", [ValueError("a"), BaseExceptionGroup("b", [KeyError("c"), SystemExit()])]),
            "BaseExceptionGroup: tools (2 sub-exceptions): ValueError: a; KeyError: 'c'; SystemExit",
        ),
    ],
)
def test_text_of_an_error_is_its_type_and_message(error: BaseException, text: str) -> None:
    assert masked_error_text(error) == text


def test_huge_error_text_is_truncated_and_says_so() -> None:
    text = masked_error_text(ValueError("x" * 1_000_000))
    assert text.endswith("xxx… (the first 10,000 of 1,000,012 characters)")
    assert len(text) < 10_100
