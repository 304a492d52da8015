"""Decides whether an exception of an agent or a model is worth a retry, and how long to wait first."""

import asyncio
import email.utils
import logging
import math
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta
from random import random as random_number
from typing import Any

from graphrag_eval_lc.error_bodies import body_of, words_of
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.http_connections import RefusedRedirectError, is_before_sending, is_of_another_loop
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.texts import error_text, visible

_log = logging.getLogger(__name__)

RetryOn = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None


class ForwardedError(Exception):
    """An exception from another process, as that process classified it."""

    is_rate_limit = False
    asked_wait: float | None = None
    is_worth_a_retry = False


def is_rate_limit(error: BaseException) -> bool:
    """Return whether an exception is about a rate limit.

    An exception is one if it, its cause or a member of its group has the HTTP status 429, carries ``retry_after``, or
    is called RateLimitError, TooManyRequests, ResourceExhausted or the like. A used up quota or an unpaid bill does
    not count, although it comes with 429: waiting does not help.
    """
    if isinstance(error, ForwardedError):
        return error.is_rate_limit
    errors = list(_errors_in(error))
    return any(map(_says_rate_limit, errors)) and not any(map(_says_quota_used_up, errors))


def retry_after_of(error: BaseException) -> float | None:
    """Return the seconds that a server asks to wait; the longest wait of an exception and its causes.

    They are read from the attribute ``retry_after`` (a number, a timedelta or text), the response's headers
    ``retry-after-ms`` and ``Retry-After`` (seconds or an HTTP date, RFC 9110 section 10.2.3), and Google's
    ``retryDelay`` in the body of a 429.

    Returns:
        Seconds, at least 0; None if no readable wait is found.
    """
    if isinstance(error, ForwardedError):
        return error.asked_wait
    waits = [wait for found in _errors_in(error) if (wait := _retry_after(found)) is not None]
    return max(waits, default=None)


def is_worth_a_retry(error: BaseException) -> bool:
    """Return whether another attempt may well succeed.

    Worth a retry are rate limits, the HTTP statuses 408, 409, 425, 500, 502, 503, 504 and 529, and connection errors
    and timeouts: Python's own, and those of httpx, requests, urllib3, aiohttp, botocore, openai and anthropic.
    Not worth one are a used up quota, other HTTP errors, addresses and certificates that are wrong, the recursion
    limit, an interrupt, and the timeout of the question itself. An error because a connection belongs to another event
    loop is worth a retry only if nothing was sent; otherwise the answer is lost but paid for.

    An unspecific exception, such as RuntimeError or ValueError, is judged by its cause (``__cause__``, else
    ``__context__`` unless suppressed); without a cause it is not worth a retry. A group of exceptions is worth one if
    each of its exceptions is.

    Example:
        >>> is_worth_a_retry(ConnectionResetError()), is_worth_a_retry(ValueError("no such class"))
        (True, False)
    """
    of_other_loops = [found for found in _errors_in(error) if is_of_another_loop(found)]
    if of_other_loops:
        return all(map(is_before_sending, of_other_loops))
    if any(
        isinstance(found, ssl.SSLCertVerificationError) or not _WRONG_REQUESTS.isdisjoint(_class_names_of(found))
        for found in _errors_in(error)
    ):
        return False  # such a request can never succeed as it is, whatever wraps the error
    return _is_transient(error, {})


def refuses_everything(error: BaseException) -> bool:
    """Return whether a server will refuse all requests: wrong key, unknown model, no money, a redirect to another host.

    Example:
        >>> refused = RuntimeError("Incorrect API key provided")
        >>> refused.status_code = 401
        >>> refuses_everything(refused), refuses_everything(TimeoutError())
        (True, False)
    """
    for found in _errors_in(error):
        status = status_of(found)
        if isinstance(found, RefusedRedirectError) or status in _REFUSING_STATUSES or _says_quota_used_up(found):
            return True
        if status in {400, 422}:  # does it name a model or a key that the server does not know?
            text = words_of(found)
            is_unknown = _UNKNOWN_TO_SERVER.search(text) is not None and _PART_OF_REQUEST.search(text) is None
            if is_unknown or not _UNKNOWN_CODES.isdisjoint(_codes_of(found)):
                return True
    return False


def is_too_long(error: BaseException) -> bool:
    """Return whether a model refused a request because its texts and the limit for the answer are too long together."""
    status = status_of(error)
    if status == 413:
        return True
    if status not in {400, 422}:
        return False
    return not _TOO_LONG_CODES.isdisjoint(_codes_of(error)) or _TOO_LONG.search(words_of(error)) is not None


def was_never_sent(error: BaseException) -> bool:
    """Return whether a request cannot have cost anything, as it reached no server, or only one that redirects."""
    found = _errors_in(error)
    return any(is_before_sending(each) or not _NEVER_SENT.isdisjoint(_class_names_of(each)) for each in found)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an exception carries; None if it carries none."""
    for place in _STATUS_PLACES:
        status = _found(error, *place)
        if isinstance(status, str) and re.fullmatch("[1-5][0-9][0-9]", status):
            return int(status)
        if isinstance(status, int) and 100 <= status < 600:
            return int(status)
    return None


_LONGEST_WAIT_SEC = 60.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed attempt is followed by another one.

    Attributes:
        max_retries: How many attempts may follow the first, at least 0.
        retry_on: What is worth a retry. None: see ``is_worth_a_retry``. One or several exception types: an exception
            of these, or one that such an exception led to. A function: called with the exception; if it raises,
            the attempt is not retried and the log says so. Interrupts and cancellations are never retried.
        first_wait: Seconds before the first retry; doubled before each further one, up to 60. Half of a wait is
            random.
        longest_retry_after: Seconds; if a server asks for a longer wait, the attempt is not retried.

    Raises:
        OptionError: A number is negative, or ``retry_on`` is none of these.
    """

    max_retries: int = 2
    retry_on: RetryOn = None
    first_wait: float = 1.0
    longest_retry_after: float = 600.0

    def __post_init__(self) -> None:
        for name in ("max_retries", "first_wait", "longest_retry_after"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} is at least 0, not {getattr(self, name)}")
        types = self.retry_on if isinstance(self.retry_on, tuple) else (self.retry_on,)
        if all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in types):
            return
        if self.retry_on is not None and (isinstance(self.retry_on, type | tuple) or not callable(self.retry_on)):
            raise OptionError(
                f"retry_on cannot be {self.retry_on!r}",
                hint="Give an exception type, a tuple of them, or a function that takes an exception.",
            )

    def wait_before_retry(
        self, attempt: int, error: BaseException, random: Callable[[], float] = random_number
    ) -> float | None:
        """Return the seconds to wait before the next attempt.

        Args:
            attempt: The number of the attempt that has just failed, counted from 1.
            error: What it failed with.
            random: Returns numbers in [0, 1).

        Returns:
            Seconds, at least those that the server asks for; None: do not retry.
        """
        if attempt > self.max_retries or not self._is_worth_a_retry(error):
            return None
        longest = min(_LONGEST_WAIT_SEC, self.first_wait * 2.0 ** min(attempt - 1, 100))
        chance = random()
        wait = longest * (1 + chance) / 2
        asked = retry_after_of(error)
        if asked is None:
            return wait
        if asked > self.longest_retry_after:
            return None
        return max(wait, asked + chance * self.first_wait)  # jitter, so that requests do not all retry together

    def _is_worth_a_retry(self, error: BaseException) -> bool:
        if isinstance(error, ForwardedError):
            return error.is_worth_a_retry
        if self.retry_on is None:
            return is_worth_a_retry(error)
        leaves = _leaves_of(error) if isinstance(error, BaseExceptionGroup) else (error,)
        interrupts = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
        if any(isinstance(leaf, interrupts) for leaf in leaves):
            return False
        if isinstance(self.retry_on, type | tuple):
            return any(isinstance(found, self.retry_on) for found in _errors_in(error))
        try:
            return bool(self.retry_on(error))
        except Exception as problem:
            message = f"retry_on raised {masked_error_text(problem)} on {masked_error_text(error)}: no retry"
            _log.warning("%s", visible(message))
            return False


_LONGEST_TEXT = 10_000
_OTHER_LOOP = (
    "A client, checkpointer or lock was used that belongs to another event loop; if it is a model's client, the "
    "answer to its request is lost. Do not use it elsewhere with asyncio.run at the same time, or make a new one "
    "for each loop, as ChatOpenAI(http_async_client=...)."
)


def masked_error_text(error: BaseException) -> str:
    """Return ``Type: message`` with secrets masked; a group includes the messages of its exceptions.

    It is never empty; beyond 10,000 characters it is cut, and says so.

    Example:
        >>> masked_error_text(ExceptionGroup("2 tools failed", [ValueError("no"), TimeoutError()]))
        'ExceptionGroup: 2 tools failed (2 sub-exceptions): ValueError: no; TimeoutError'
        >>> masked_error_text(RuntimeError("401: api_key=5f2a99c1 is wrong"))
        'RuntimeError: 401: api_key=*** is wrong'
    """
    text = error_text(error)
    if isinstance(error, BaseExceptionGroup):
        text += f": {'; '.join(error_text(leaf) for leaf in _leaves_of(error))}"
    if any(map(is_of_another_loop, _errors_in(error))):
        text += f". {_OTHER_LOOP}"
    if len(text := masked_text(text)) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}… (the first {_LONGEST_TEXT:,} of {len(text):,} characters)"


# --- the exceptions behind an exception ------------------------------------------------------------------------------


def _cause_of(error: BaseException) -> BaseException | None:
    return error.__cause__ if error.__cause__ or error.__suppress_context__ else error.__context__


def _errors_in(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes and the members of its groups, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting.append(_cause_of(found))
        if isinstance(found, BaseExceptionGroup):
            waiting += reversed(found.exceptions)


def _leaves_of(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions of a group and of the groups in it."""
    waiting = [*reversed(group.exceptions)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseExceptionGroup):
            waiting += reversed(found.exceptions)
        else:
            yield found


# --- what one exception says -----------------------------------------------------------------------------------------

_RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# By name, since these packages may not be installed and are not imported only for their exceptions.
_TRANSIENT = frozenset(
    {
        "ConnectionError",  # Python, requests, botocore
        "TimeoutError",  # Python, urllib3
        "gaierror",
        "TransportError",  # httpx
        "Timeout",  # requests
        "ChunkedEncodingError",
        "MaxRetryError",  # urllib3
        "ProtocolError",
        "ClientConnectionError",  # aiohttp
        "ClientPayloadError",
        "ConnectionClosedError",  # botocore
        "APIConnectionError",  # openai, anthropic; their timeouts are some
    }
)
_WRONG_REQUESTS = frozenset(
    {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "InvalidSchema", "MissingSchema", "LocationValueError"}
) | {"RefusedResponseError"}
_RATE_LIMIT = re.compile(
    r"(rate_?limit(ed|_?exceeded|_?reached)?|too_?many_?requests|resource_?exhausted|throttl(ed|ing))"
    r"(_?error|_?exception)?",
    re.IGNORECASE,
)
# Not "exceeded your current quota": some providers also use it for the quota per minute.
_QUOTA_USED_UP = re.compile(r"insufficient[_ ](?:quota|balance|funds|credits?)|billing_|credit balance", re.IGNORECASE)


_REFUSING_STATUSES = frozenset({401, 402, 403, 404})
# The words of some servers with status 400.
_UNKNOWN_TO_SERVER = re.compile(
    r"(?:invalid|unknown|no such|unsupported) model|model\b.{0,80}?(?:not found|not exist|not supported|is invalid)"
    r"|(?:invalid|incorrect|expired) api[ _-]?key|api[ _-]?key.{0,20}?(?:not valid|invalid|incorrect|expired)",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN_CODES = frozenset({"model_not_found", "invalid_api_key"})
# Parts that can be left out of a request if a server says that the model does not accept them.
_PART_OF_REQUEST = re.compile(
    r"response.?format|json.?(?:schema|object)|structured.?output|tool|function|temperature|max_(?:completion_)?tokens",
    re.IGNORECASE,
)
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_TOO_LONG = re.compile(
    r"maximum context length|context_length|context (?:window|size)|too long|reduce the length|too many tokens"
    r"|exceeds? (?:the (?:maximum|model's|limit)|context limit)|input tokens? (?:count )?exceed|tokens`? must be <="
    r"|context length of only",
    re.IGNORECASE,
)
_GOOGLES_WAIT = re.compile(r'"retryDelay":\s*"([0-9.]{1,12})s"')
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ConnectionRefusedError", "gaierror"})


def _is_transient(error: BaseException, groups: dict[int, bool]) -> bool:
    """Return the judgement of the first exception in a chain of causes that has one.

    ``groups`` has the judgements of groups by id; a group that is still being judged counts as not worth a retry.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:  # the exception, its cause, and so on
        seen.add(id(link))
        if isinstance(link, BaseExceptionGroup):
            if id(link) not in groups:
                groups[id(link)] = False
                groups[id(link)] = len(groups) < 100 and all(_is_transient(leaf, groups) for leaf in link.exceptions)
            return groups[id(link)]
        judgement = _judgement_of(link)
        if judgement is not None:
            return judgement
        link = _cause_of(link)
    return False


def _judgement_of(error: BaseException) -> bool | None:
    """Return whether an exception alone, without its causes, is worth a retry; None if it does not say."""
    if not isinstance(error, Exception) or isinstance(error, RecursionError) or _says_quota_used_up(error):
        return False
    if getattr(error, "is_question_timeout", False) is True:
        return False
    if _says_rate_limit(error):
        return True
    status = status_of(error)
    if status is not None and status >= 400:
        return status in _RETRIED_STATUSES
    is_overloaded = "overloaded_error" in _codes_of(error)  # anthropic, within a stream whose status is 200
    return True if is_overloaded or not _TRANSIENT.isdisjoint(_class_names_of(error)) else None


def _says_rate_limit(error: BaseException) -> bool:
    return (
        status_of(error) == 429
        or _seconds(_found(error, "retry_after")) is not None
        or any(_RATE_LIMIT.fullmatch(name) for name in (*_class_names_of(error), *_codes_of(error)))
    )


def _says_quota_used_up(error: BaseException) -> bool:
    return any(map(_QUOTA_USED_UP.search, (*_codes_of(error), words_of(error))))


def _class_names_of(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


# --- reading the attributes that clients set on their exceptions -----------------------------------------------------

_STATUS_PLACES = (
    ("status_code",),
    ("status",),
    ("code",),
    ("http_status",),
    ("response", "status_code"),
    ("response", "status"),
    ("response", "ResponseMetadata", "HTTPStatusCode"),  # botocore
)
_CODE_PLACES = (
    ("code",),
    ("type",),
    ("status",),
    ("body", "code"),
    ("body", "type"),
    ("body", "error", "code"),
    ("body", "error", "type"),
    ("response", "Error", "Code"),  # botocore
)
_HEADER_PLACES = (("response", "headers"), ("headers",), ("response", "ResponseMetadata", "HTTPHeaders"))


def _found(value: Any, *place: str) -> Any:
    """Return the value at a path of attributes and keys; None if it is missing or unreadable."""
    try:
        for name in place:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:
        return None
    return value


def _codes_of(error: BaseException) -> list[str]:
    return [code for place in _CODE_PLACES if isinstance(code := _found(error, *place), str)]


def _retry_after(error: BaseException) -> float | None:
    own = _seconds(_found(error, "retry_after"))
    if own is not None:
        return own
    for place in _HEADER_PLACES:
        found = _found(error, *place)
        try:
            headers = {str(name).lower(): value for name, value in found.items()}
        except Exception:  # no headers
            continue
        if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
            return milliseconds / 1000
        value = headers.get("retry-after")
        # A date is relative to the date of the response, as clocks differ.
        until, now = (
            _date_in(text.strip()) if isinstance(text, str) else None for text in (value, headers.get("date"))
        )
        wait = _seconds(value) if until is None or now is None else max(0.0, until - now)
        if wait is not None:
            return wait
    asked = _GOOGLES_WAIT.search(body_of(error)) if status_of(error) == 429 else None
    return None if asked is None else float(asked[1])


def _seconds(value: object) -> float | None:
    """Return a number, a timedelta, a number as text or an HTTP date as seconds from now; None for anything else."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if abs(value) < 1e15 else math.nan
    elif isinstance(value, str):
        text = value.strip()
        date = _date_in(text)
        is_number = re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]*)?", text, re.ASCII) is not None
        seconds = float(text) if is_number else math.nan if date is None else date - time.time()
    else:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date_in(text: str) -> float | None:
    """Return an HTTP date in seconds since 1970; None for any other text."""
    try:
        date = email.utils.parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
