"""Responses written as traces of OpenTelemetry, which viewers show and ``read_traces`` reads again.

A span has the attributes of OpenInference and those of the GenAI conventions, so that tools of either kind read it.
"""

import base64
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, Literal
from urllib.parse import unquote

from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.json_values import JSON_MEDIA_TYPE, json_text
from graphrag_eval_lc.masking import masked_secrets, masked_text
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.retrying import RetryPolicy
from graphrag_eval_lc.texts import text_of

_SCOPE: Final = "graphrag_eval_lc"
_WRAPPED: Final = ("tool_call_id", '"output"', '"raw_output"')  # readers mistake such an output for a message
_TOKENS: Final = {
    INPUT_TOKENS: ("llm.token_count.prompt", "gen_ai.usage.input_tokens"),
    OUTPUT_TOKENS: ("llm.token_count.completion", "gen_ai.usage.output_tokens"),
    TOTAL_TOKENS: ("llm.token_count.total", "gen_ai.usage.total_tokens"),
    "cached_input_tokens": (
        "llm.token_count.prompt_details.cache_read",
        "gen_ai.usage.cache_read.input_tokens",
    ),
    "cache_write_input_tokens": (
        "llm.token_count.prompt_details.cache_write",
        "gen_ai.usage.cache_creation.input_tokens",
    ),
    "reasoning_tokens": ("llm.token_count.completion_details.reasoning", "gen_ai.usage.reasoning.output_tokens"),
}
_TRACES_IN_REQUEST: Final = 20


def exported_trace_id(run_id: str, question_id: str, repeat: int) -> str:
    """Return the id of the trace that an exported response has: 32 hexadecimal digits, always the same.

    Example:
        >>> len(exported_trace_id("monday", "q1", 1))
        32
    """
    return blake2b(f"{run_id}\n{question_id}\n{repeat}".encode(), digest_size=16).hexdigest()


def otlp_requests(
    responses: Iterable[Mapping[str, Any]], run_id: str, project: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the responses as requests of OTLP/JSON, some traces in each; secrets are masked.

    Args:
        responses: The responses.
        run_id: The id of their run, from which the ids of traces and spans are made.
        project: The project in which Phoenix shows them.
    """
    resource = {"service.name": "graphrag-eval-lc", **({} if project is None else {_PROJECT: project})}
    left = iter(responses)
    while part := list(islice(left, _TRACES_IN_REQUEST)):
        spans = [span for response in part for span in _Exported(response, run_id).spans()]
        scoped = {"scope": {"name": _SCOPE}, "spans": spans}
        yield {"resourceSpans": [{"resource": {"attributes": otlp_attributes(resource)}, "scopeSpans": [scoped]}]}


_PROJECT: Final = "openinference.project.name"


class _Exported:
    """A response as spans: the agent's, and in it those of models and tools."""

    def __init__(self, response: Mapping[str, Any], run_id: str) -> None:
        self._response = response
        self._question_id = str(response.get("question_id"))
        repeat = response.get("repeat")
        self._repeat = repeat if isinstance(repeat, int) else 1
        self._trace_id = exported_trace_id(run_id, self._question_id, self._repeat)
        self._started = _seconds(response.get("started_at")) or 1.0
        self._run_id = run_id

    def spans(self) -> Iterator[dict[str, Any]]:
        """Yield the spans, the agent's first."""
        response = self._response
        models, steps = response.get("llm_calls") or (), response.get("actual_steps") or ()
        starts = [self._start(call.get("started_at")) for call in models]
        step_starts: list[float] = []
        for step in steps:  # a step without a time begins right after the start of the one before
            before = step_starts[-1] if step_starts else self._started
            step_starts.append(_seconds(step.get("execution_timestamp")) or before + 1e-6)
        ends = [start + _number(each.get(ELAPSED_SEC)) for start, each in zip(starts, models, strict=True)]
        ends += [start + _number(each.get(ELAPSED_SEC)) for start, each in zip(step_starts, steps, strict=True)]
        ended = max([self._started + _number(response.get(ELAPSED_SEC)), *ends])
        yield self._span("agent", None, self._question_id, self._agent(), self._started, ended, _error_of(response))
        asked = _asked(starts, steps, step_starts)
        known = {str(step.get("id")): f"step {place}" for place, step in reversed(list(enumerate(steps)))}
        for place, (call, start) in enumerate(zip(models, starts, strict=True)):
            name = str(call.get("model") or "model")
            parent = known.get(str(call.get("parent_id")), "agent")
            end = start + _number(call.get(ELAPSED_SEC))
            attributes = _model(call, [(steps[at], at) for at in asked.get(place, ())])
            yield self._span(f"model {place}", parent, f"chat {name}", attributes, start, end, call.get("error"))
        for place, (step, start) in enumerate(zip(steps, step_starts, strict=True)):
            name, outer = str(step.get("name")), known.get(str(step.get("parent_id")), "agent")
            parent = "agent" if outer == f"step {place}" else outer
            end = start + _number(step.get(ELAPSED_SEC))
            yield self._span(f"step {place}", parent, name, _tool(step, place), start, end, _error_of(step))

    def _start(self, value: object) -> float:
        return _seconds(value) or self._started

    def _agent(self) -> dict[str, Any]:
        response = self._response
        own = {"question_id": self._question_id, "graphrag_eval_lc_run": self._run_id, "repeat": self._repeat}
        answer = response.get("actual_answer")
        return {
            "openinference.span.kind": "AGENT",
            "gen_ai.operation.name": "invoke_agent",
            "input.value": masked_text(text_of(response.get("question_text") or "")),
            "output.value": None if answer is None else masked_text(text_of(answer)),
            "metadata": json_text({**masked_secrets(response.get("metadata") or {}), **own}),
            "tag.tags": [str(tag) for tag in response.get("tags") or ()] or None,
        }

    def _span(
        self,
        key: str,
        parent: str | None,
        name: str,
        attributes: Mapping[str, Any],
        start: float,
        end: float,
        error: object,
    ) -> dict[str, Any]:
        failed = {"code": 2, "message": masked_text(text_of(error))}
        return {
            "traceId": self._trace_id,
            "spanId": self._span_id(key),
            **({} if parent is None else {"parentSpanId": self._span_id(parent)}),
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(round(start * 1e9)),
            "endTimeUnixNano": str(round(max(start, end) * 1e9)),
            "attributes": otlp_attributes({key: value for key, value in attributes.items() if value is not None}),
            "status": {"code": 1} if error is None else failed,
        }

    def _span_id(self, key: str) -> str:
        return blake2b(f"{self._trace_id} {key}".encode(), digest_size=8).hexdigest()


def _asked(
    starts: Sequence[float], steps: Sequence[Mapping[str, Any]], step_starts: Sequence[float]
) -> dict[int, list[int]]:
    """Return for each model call the steps that it requested: those that began after it and before the next call."""
    asked: dict[int, list[int]] = {}
    for at, (step, started) in enumerate(zip(steps, step_starts, strict=True)):
        before = [place for place, start in enumerate(starts) if start <= started]
        if before and step.get("id") is not None:
            asked.setdefault(max(before, key=lambda place: starts[place]), []).append(at)
    return asked


def _model(call: Mapping[str, Any], asked: Sequence[tuple[Mapping[str, Any], int]]) -> dict[str, Any]:
    model = call.get("model")
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "llm.model_name": model,
        "gen_ai.request.model": model,
    }
    for key, names in _TOKENS.items():
        attributes |= dict.fromkeys(names, call.get(key))
    if asked:
        attributes["llm.output_messages.0.message.role"] = "assistant"
    for number, (step, _) in enumerate(asked):
        beginning = f"llm.output_messages.0.message.tool_calls.{number}.tool_call"
        attributes[f"{beginning}.id"] = str(step["id"])
        attributes[f"{beginning}.function.name"] = str(step.get("name"))
        attributes[f"{beginning}.function.arguments"] = json_text(masked_secrets(step.get("args") or {}))
    return attributes


def _tool(step: Mapping[str, Any], place: int) -> dict[str, Any]:
    name, call_id = str(step.get("name")), str(step.get("id") or f"step-{place}")
    arguments = json_text(masked_secrets(step.get("args") or {}))
    output = None
    if not is_error(step):
        given = step.get("output")
        output = masked_text(given if isinstance(given, str) else "" if given is None else json_text(given))
        if not output or any(mark in output for mark in _WRAPPED):  # readers mistake an empty text for a missing one
            message = {"type": "tool", "content": output, "tool_call_id": call_id, "status": "success"}
            output = json_text({"output": message})
    return {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "tool.name": name,
        "gen_ai.tool.name": name,
        "tool_call.id": call_id,
        "gen_ai.tool.call.id": call_id,
        "tool_call.function.arguments": arguments,
        "input.value": arguments,
        "input.mime_type": JSON_MEDIA_TYPE,
        "gen_ai.tool.call.arguments": arguments,
        "output.value": output,
        "gen_ai.tool.call.result": output,
    }


def _error_of(record: Mapping[str, Any]) -> str | None:
    """Return the error of a response or step; recorded steps may have it in their output."""
    if not is_error(record):
        return None
    error = record.get("error")
    return text_of(record.get("output") or "error without a message" if error is None else error)


def otlp_attributes(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP/JSON has them.

    Example:
        >>> otlp_attributes({"k": 5, "name": "a"})
        [{'key': 'k', 'value': {'intValue': '5'}}, {'key': 'name', 'value': {'stringValue': 'a'}}]
    """
    return [{"key": key, "value": _value(value)} for key, value in plain.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
        case _:
            return {"stringValue": text_of(value)}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0


def _seconds(value: object) -> float | None:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None


Signal = Literal["traces", "logs"]
_IDS = frozenset({"traceId", "spanId", "parentSpanId"})
_TIMEOUT_SEC = 60.0


class OTLPSender:
    """Sends requests to one receiver.

    Args:
        url: The address of the signal, such as ``http://localhost:4318/v1/traces``.
        signal: What is sent.
        headers: HTTP headers, such as those with a key; None: those in OTEL_EXPORTER_OTLP_HEADERS.

    Raises:
        MissingExtraError: opentelemetry-proto is not installed.
        OptionError: The address is not one of HTTP.
    """

    def __init__(self, url: str, signal: Signal, headers: Mapping[str, str] | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise OptionError(f"{url} is not an address of HTTP", hint=f"Give http://HOST:4318/v1/{signal}.")
        try:
            from google.protobuf import json_format
            from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
        except ModuleNotFoundError as problem:
            raise MissingExtraError("Sending OTLP", "otel", "opentelemetry-proto") from problem
        self._parse = json_format.ParseDict
        self._request: Any = traces.ExportTraceServiceRequest if signal == "traces" else logs.ExportLogsServiceRequest
        self._response: Any = (
            traces.ExportTraceServiceResponse if signal == "traces" else logs.ExportLogsServiceResponse
        )
        self._url = url
        given = _headers_in(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")) if headers is None else headers
        self._headers = {**given, "content-type": "application/x-protobuf"}
        self._policy = RetryPolicy(max_retries=4)

    def send(self, request: Mapping[str, Any], *, retries: bool = True) -> str | None:
        """Send a request in OTLP/JSON's form, with retries after transient errors.

        Returns:
            Why the receiver rejected a part of it; None if it accepted all.

        Raises:
            httpx.HTTPError: The receiver cannot be reached, or refuses it.
        """
        import httpx  # imported late: scoring loads this module, but does not need httpx

        body = self._parse(_with_base64(request), self._request()).SerializeToString()
        attempt = 1
        while True:
            try:
                answer = httpx.post(self._url, content=body, headers=self._headers, timeout=_TIMEOUT_SEC)
                answer.raise_for_status()
                break
            except httpx.HTTPError as problem:
                wait = self._policy.wait_before_retry(attempt, problem) if retries else None
                if wait is None:
                    raise
                time.sleep(wait)
                attempt += 1
        if "protobuf" not in answer.headers.get("content-type", ""):
            return None
        partial = self._response.FromString(answer.content).partial_success
        rejected = getattr(partial, "rejected_spans", 0) or getattr(partial, "rejected_log_records", 0)
        return partial.error_message or f"{rejected} records were rejected" if rejected else None


def _with_base64(value: Any) -> Any:
    """Return a request with its ids in base64, as protobuf's own JSON has bytes."""
    if isinstance(value, list):
        return [_with_base64(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in _IDS else _with_base64(item)
        for key, item in value.items()
    }


def _headers_in(text: str) -> dict[str, str]:
    """Return the headers in an environment variable of OpenTelemetry.

    Example:
        >>> _headers_in("api_key=abc,x-scope=a%20b")
        {'api_key': 'abc', 'x-scope': 'a b'}
    """
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name).strip(): unquote(value).strip() for name, _, value in pairs}
