"""Keep OpenTelemetry spans in memory, and write them as exporters and collectors do."""

import base64
import json
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

_BATCH = 50


def recording(most_attributes: int = 10_000) -> tuple[TracerProvider, InMemorySpanExporter]:
    """Return a provider that sends spans to the in-memory exporter, and that exporter."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=most_attributes))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def write_otlp(exporter: InMemorySpanExporter, path: Path) -> None:
    """Write OTLP/JSON: a single request, or several lines with some spans each if the name ends in .jsonl."""
    spans = exporter.get_finished_spans()
    size = _BATCH if path.suffix == ".jsonl" else len(spans)
    batches = [spans[at : at + size] for at in range(0, len(spans), size)]
    path.write_text("".join(f"{json.dumps(_with_hex(json.loads(_protobuf(batch))))}\n" for batch in batches))


def write_protobuf_json(exporter: InMemorySpanExporter, path: Path) -> None:
    """Write protobuf's JSON encoding, which has base64 ids."""
    path.write_text(_protobuf(exporter.get_finished_spans()))


def write_printed(exporter: InMemorySpanExporter, path: Path) -> None:
    """Write the spans like a ConsoleSpanExporter."""
    path.write_text("".join(f"{span.to_json()}\n" for span in exporter.get_finished_spans()))


def _protobuf(spans: Any) -> str:
    return MessageToJson(encode_spans(spans))


def _with_hex(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: base64.b64decode(each).hex() if key in ("traceId", "spanId", "parentSpanId") else _with_hex(each)
            for key, each in value.items()
        }
    return [_with_hex(each) for each in value] if isinstance(value, list) else value
