"""Span files in OTLP/JSON with the attributes that real instrumentations write."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_eval_lc.traces.reading import read_calls
from graphrag_eval_lc.traces.whole_traces import TracedCall

TRACE = "5b8efff798038103d269b633813fc60c"
STARTED = 1_800_000_000


def value(plain: Any) -> dict[str, Any]:
    """Return a value in OTLP/JSON."""
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case list():
            return {"arrayValue": {"values": [value(item) for item in plain]}}
        case dict():
            return {"kvlistValue": {"values": attributes(plain)}}
        case _:
            return {"stringValue": plain}


def attributes(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes in OTLP/JSON."""
    return [{"key": key, "value": value(item)} for key, item in plain.items()]


def span(
    number: int, plain: Mapping[str, Any], *, parent: int | None = None, name: str = "span", **more: Any
) -> dict[str, Any]:
    """Return a span that starts at second ``number`` and lasts half a second."""
    started = (STARTED + number) * 1_000_000_000
    return {
        "traceId": TRACE,
        "spanId": f"{number + 1:016x}",
        **({} if parent is None else {"parentSpanId": f"{parent + 1:016x}"}),
        "name": name,
        "startTimeUnixNano": str(started),
        "endTimeUnixNano": str(started + 500_000_000),
        "attributes": attributes(plain),
        **more,
    }


def request(spans: Sequence[Mapping[str, Any]], scope: str = "") -> dict[str, Any]:
    """Return an export request with the spans of one instrumentation."""
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": spans}]}]}


def traces_in(folder: Path, *documents: Any, warnings: list[str] | None = None) -> list[list[TracedCall]]:
    """Write the documents one per line and return the traces of that file."""
    path = folder / "traces.json"
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return list(read_calls(path, [].append if warnings is None else warnings.append))


def calls_in(folder: Path, *spans: Mapping[str, Any], scope: str = "") -> list[TracedCall]:
    """Return the calls of a single trace."""
    (calls,) = traces_in(folder, request(spans, scope))
    return calls
