"""Extracts what a server says in the body of an error response, whatever the shape of the body."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_LONGEST = 10_000  # characters of a body that are read
_SHOWN = 500
# Keys whose values repeat the request or the answer: these are not the server's words.
_ECHOES = frozenset({"input", "inputs", "prompt", "request", "ctx", "messages", "failed_generation"})
# Keys that name a part of the request.
_PARAMETERS = frozenset({"response_format", "tools", "tool_choice", "temperature", "max_tokens", "n"})
_LEAST_MESSAGE = 4  # characters


def body_of(error: BaseException) -> str:
    """Return the text of the response that an exception carries; empty if there is none.

    It never waits for a body: httpx and requests have already read it, and other clients keep the body that they read.
    """
    try:
        content = getattr(getattr(error, "response", None), "_content", None)
        body = getattr(error, "body", None)
        if isinstance(content, bytes):
            return content[:_LONGEST].decode("utf-8", "replace").strip()
        return body[:_LONGEST] if isinstance(body, str) else json.dumps(body, default=str) if body else ""
    except Exception:  # a property of some client may raise anything
        return ""


def words_of(error: BaseException) -> str:
    """Return the message of an exception, followed by all strings in the body of its HTTP response.

    Example:
        >>> error = ValueError("Error code: 422")
        >>> error.body = {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs"}]}
        >>> words_of(error)
        'Error code: 422 body tools Extra inputs'
    """
    return " ".join([_message_of(error), *_body_texts(error)])


def unsaid_body(error: BaseException) -> str:
    """Return what the response body says in addition to the exception's message; empty if nothing.

    Example:
        >>> error = ValueError("Error code: 401")
        >>> error.body = {"detail": "Invalid token"}
        >>> unsaid_body(error)
        'Invalid token'
    """
    message, texts = _message_of(error), _body_texts(error)
    if any(text in message for text in texts if len(text) >= _LEAST_MESSAGE):
        return ""
    return " ".join(texts)[:_SHOWN]


def _message_of(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST]
    except Exception:
        return ""


def _body_texts(error: BaseException) -> list[str]:
    text = body_of(error)
    try:
        return list(_texts_in(json.loads(text)))
    except (ValueError, RecursionError):
        return [text] if text else []


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in _PARAMETERS:
                yield key
            if key not in _ECHOES:
                yield from _texts_in(item)
