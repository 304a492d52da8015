"""The format of a trace file is detected, and a file without traces is one clear error."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.span_files import request, span, traces_in

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.reading import read_calls

TOOL = {"openinference.span.kind": "TOOL", "tool.name": "now", "output.value": "12:00"}
RUN = {"id": "r", "run_type": "tool", "name": "now", "start_time": "2026-01-31T12:00:00", "inputs": {}}


def read(path: Path) -> list[Any]:
    return list(read_calls(path, [].append))


@pytest.mark.parametrize(
    "documents", [[RUN, {**RUN, "id": "s"}], [[RUN, {**RUN, "id": "s"}]], [{"runs": [RUN, {**RUN, "id": "s"}]}]]
)
def test_langsmith_runs_may_be_lines_a_list_or_an_api_response(tmp_path: Path, documents: Any) -> None:
    traces = traces_in(tmp_path, *documents)
    assert [call.name for calls in traces for call in calls] == ["now", "now"]


def test_tree_of_runs_is_one_trace(tmp_path: Path) -> None:
    (calls,) = traces_in(tmp_path, {**RUN, "run_type": "chain", "child_runs": [{**RUN, "id": "s"}]})
    assert [(call.kind, call.parent_id) for call in calls] == [("agent", None), ("tool", "r")]


def test_gzip_files_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    text = json.dumps(request([span(0, TOOL)]))
    zipped, marked = tmp_path / "a.json.gz", tmp_path / "b.json"
    zipped.write_bytes(gzip.compress(text.encode()))
    marked.write_text(text, encoding="utf-8-sig")
    assert read(zipped) == read(marked)
    assert len(read(zipped)) == 1


def test_traces_of_other_services_are_skipped_and_counted(tmp_path: Path) -> None:
    warnings: list[str] = []
    web = span(3, {"http.request.method": "GET"}, name="GET /", traceId="ab" * 16)
    traces = traces_in(tmp_path, request([web, span(0, TOOL)]), warnings=warnings)
    assert len(traces) == 1
    assert len(warnings) == 1
    assert warnings[0].startswith("1 trace without a call of an agent, a model or a tool")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "found no traces"),
        (b"[]", "found no traces"),
        (b'{"resourceSpans": []}', "found no traces"),
        (b'{"traceEvents": [], "displayTimeUnit": "ms"}', "the keys traceEvents, displayTimeUnit"),
        (b'{"resourceSpans": [', "ends in the middle"),
        (b"\x0a\xff\xfe\x00", "not UTF-8"),
        (b"trace,span\n1,2", "it is not JSON"),
        (b"\x1f\x8b broken", "cannot be read"),
    ],
)
def test_file_without_traces_is_one_clear_error(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "traces.json"
    path.write_bytes(content)
    with pytest.raises(ResponsesError) as caught:
        read(path)
    assert what in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResponsesError, match="the file does not exist"):
        read(tmp_path / "no.json")
    with pytest.raises(ResponsesError, match="cannot be read"):
        read(tmp_path)
