"""Which format a file of traces has, and its calls, trace by trace."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.texts import listed
from graphrag_eval_lc.traces.json_stream import JsonStream
from graphrag_eval_lc.traces.otlp import RESOURCES, SpanReader
from graphrag_eval_lc.traces.spans import call_of
from graphrag_eval_lc.traces.spool import Spool
from graphrag_eval_lc.traces.traced_calls import TracedCall
from graphrag_eval_lc.traces.whole_traces import WholeTraces

_HINT = (
    "Give OTLP/JSON (the collector's file exporter, with format: json), the spans that a ConsoleSpanExporter prints, "
    "or runs of LangSmith as JSON or JSON Lines."
)
_OTLP_MARKS = RESOURCES | {"context"}  # the latter of printed spans


def read_calls(path: str | PathLike[str], warn: Callable[[str], object]) -> Iterator[list[TracedCall]]:
    """Yield the calls of each trace of a file, in the order of their starts; the trace that began first comes first.

    The spans of a trace may be scattered over the file, which is read once. Memory holds one trace at a time, and the
    largest single span.

    Args:
        path: A file in any of the formats.
        warn: Is called with what is to be known of the file, when all of it has been read.

    Raises:
        ResponsesError: The file cannot be read, is no valid JSON, or is in no known format.
    """
    with Spool() as spool:
        spans = SpanReader()
        for span in _spans(path, spans):
            spool.add(call_of(span))
        whole = WholeTraces()
        for calls in spool.traces():
            yield whole.completed(calls)
        for warning in (*spans.warnings(), *whole.warnings()):
            warn(warning)


def _spans(path, reader):
    with open_text(path) as file:
        yield from reader.spans(JsonStream(file, str(path)))
