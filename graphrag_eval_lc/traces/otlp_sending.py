"""Requests of OTLP sent over HTTP, as protobuf, which all receivers take."""

import base64
import os
import time
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote

import httpx

from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.retrying import RetryPolicy

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
        """Send a request in OTLP/JSON's form, again after errors that pass with time.

        Returns:
            Why the receiver rejected a part of it; None if it took all.

        Raises:
            httpx.HTTPError: The receiver cannot be reached, or refuses it.
        """
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
