"""Files of OpenTelemetry's spans: OTLP/JSON, as exporters and collectors write it, and the SDK's own printed spans."""

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from graphrag_eval_lc.capture.values import to_plain
from graphrag_eval_lc.texts import counted, text_of
from graphrag_eval_lc.traces.json_stream import JsonStream
from graphrag_eval_lc.traces.spans import Span
from graphrag_eval_lc.traces.whole_traces import LATEST

RESOURCES = frozenset({"resourceSpans", "resource_spans", "batches"})
_SCOPES = frozenset({"scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans"})
_SCOPE = frozenset({"scope", "instrumentationLibrary", "instrumentation_library"})
_FAILED = frozenset({"2", "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR"})
_ENDED_WELL = frozenset({"1", "STATUS_CODE_OK", "OK", "StatusCode.OK"})
_BYTES_OF_IDS = (8, 16)
_LIMIT = 128  # the SDKs' default limit of attributes; beyond it, new ones replace the oldest
_INTEGER = re.compile("-?[0-9]{1,20}")  # of 64 bits
_HEX_DIGITS = frozenset("0123456789abcdef")


class SpanReader:
    """Reads the spans of one file.

    Attributes:
        cut: The number of spans that lost attributes to the SDK's limit.
        full: The number of spans that have as many attributes as the limit allows, and may have lost some.
        without_start: The number of spans without a time of their start.
    """

    def __init__(self) -> None:
        self.cut = 0
        self.full = 0
        self.without_start = 0

    def warnings(self) -> Iterator[str]:
        """Yield what the user should know about the spans that were read."""
        limit = "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT to 1000 or more for the agent that records them"
        if self.cut:
            yield (
                f"{counted(self.cut, 'span')} lost attributes to the limit of the SDK (128 by default), so that "
                f"arguments, outputs or messages may be missing: {limit}"
            )
        if self.full:
            yield (
                f"{counted(self.full, 'span')} with exactly {_LIMIT} attributes, the SDK's limit, may have lost "
                f"others: {limit}"
            )
        if self.without_start:
            yield f"{counted(self.without_start, 'span')} without a start time: their order is not known"

    def in_resource(self, stream: JsonStream) -> Iterator[Span]:
        """Yield the spans of a resource, which comes next in a stream."""
        for key in _keys(stream):
            if key in _SCOPES and stream.peek() == "[":
                for _ in stream.items():
                    yield from self._in_scope(stream)
            else:
                stream.value()

    def _in_scope(self, stream: JsonStream) -> Iterator[Span]:
        scope = ""
        for key in _keys(stream):
            if key == "spans" and stream.peek() == "[":
                for _ in stream.items():
                    value = stream.value()
                    if isinstance(value, Mapping):
                        yield self.span(value, scope)
            else:
                value = stream.value()
                if key in _SCOPE and isinstance(value, Mapping):
                    scope = str(value.get("name") or "")

    def span(self, value: Mapping[str, Any], scope: str) -> Span:
        """Return a span, whose keys are in camel case, in snake case, or those of the SDK's printed spans."""
        context = value.get("context")
        identified = context if isinstance(context, Mapping) else value
        attributes = _attributes(value.get("attributes"))
        exceptions = []
        for event in _items(value.get("events")):
            details = _attributes(event.get("attributes"))
            if event.get("name") == "exception":
                exceptions.append((_text_at(details, "exception.type"), _text_at(details, "exception.message")))
            else:  # messages may be in events instead of attributes
                attributes |= {key: item for key, item in details.items() if key not in attributes}
        dropped = _either(value, "droppedAttributesCount", "dropped_attributes_count")
        self.cut += bool(dropped and str(dropped) != "0")
        self.full += not dropped and len(attributes) == _LIMIT
        status = value.get("status")
        status = status if isinstance(status, Mapping) else {}
        code = str(status.get("code", status.get("status_code")))
        ended = _seconds(_either(value, "endTimeUnixNano", "end_time_unix_nano", "end_time"))
        started = _seconds(_either(value, "startTimeUnixNano", "start_time_unix_nano", "start_time"))
        self.without_start += started is None
        return Span(
            trace_id=hex_id(_either(identified, "traceId", "trace_id")) or "",
            id=hex_id(_either(identified, "spanId", "span_id")) or "",
            parent_id=hex_id(_either(value, "parentSpanId", "parent_span_id", "parent_id")),
            name=str(value.get("name") or ""),
            started=started if started is not None else ended or 0.0,
            ended=ended,
            attributes=attributes,
            scope=scope,
            has_failed=True if code in _FAILED else False if code in _ENDED_WELL else None,
            message=_text_at(status, "message") or _text_at(status, "description") or None,
            exceptions=exceptions,
        )


def _keys(stream: JsonStream) -> Iterator[str]:
    """Enter an object, and pass over anything else."""
    if stream.peek() == "{":
        yield from stream.members()
    else:
        stream.value()


def hex_id(value: Any) -> str | None:
    """Return an id in hexadecimal digits, as OTLP/JSON has it; protobuf's own JSON has base64. None if it is empty.

    Example:
        >>> hex_id("W47/95gDgQPSabYzgT/GDA=="), hex_id("0x5B8EFFF798038103D269B633813FC60C")
        ('5b8efff798038103d269b633813fc60c', '5b8efff798038103d269b633813fc60c')
    """
    if not isinstance(value, str) or not value:
        return None
    digits = value.lower().removeprefix("0x")
    if len(digits) not in (16, 32) or not _HEX_DIGITS.issuperset(digits):
        try:
            decoded = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return value
        if len(decoded) not in _BYTES_OF_IDS:
            return value
        digits = decoded.hex()
    return digits if digits.strip("0") else None


def _seconds(value: Any) -> float | None:
    """Return a time in seconds since 1970, of nanoseconds or ISO 8601; None if it is 0, as of spans not ended."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError):
            return None
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        seconds = int(value) / 1e9
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < LATEST else None


def _attributes(value: Any) -> dict[str, Any]:
    """Return attributes by key: of the list of keys and typed values, or of the mapping in printed spans."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    return {str(item["key"]): _value(item.get("value")) for item in _items(value) if "key" in item}


def _value(value: Any) -> Any:
    """Return the plain value of a typed one: ``{"intValue": "12"}`` is 12."""
    if not isinstance(value, Mapping) or not value:
        return None if value == {} else value
    kind, inner = next(iter(value.items()))
    match kind.replace("_", "").lower().removesuffix("value"):
        case "int":
            return int(inner) if isinstance(inner, str) and _INTEGER.fullmatch(inner) else inner
        case "double":
            return _number(inner)
        case "array":
            return [_value(item) for item in _list(inner)]
        case "kvlist":
            return {str(item["key"]): _value(item.get("value")) for item in _items(_list(inner)) if "key" in item}
        case "bytes":
            return _bytes_text(inner)
        case _:
            return inner


def _number(value: Any) -> Any:
    """Return a number that JSON may have as a text, such as NaN."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return value
    return number if math.isfinite(number) else str(value)


def _bytes_text(value: Any) -> Any:
    try:
        return to_plain(base64.b64decode(value, validate=True))
    except (binascii.Error, TypeError, ValueError):
        return value


def _list(value: Any) -> list[Any]:
    values = value.get("values") if isinstance(value, Mapping) else value
    return values if isinstance(values, list) else []


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _either(value: Mapping[str, Any], *keys: str) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _text_at(attributes: Mapping[str, Any], key: str) -> str:
    value = attributes.get(key)
    return "" if value is None else text_of(value)
