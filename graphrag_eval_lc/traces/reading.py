"""A file of traces, or runs of LangSmith, go in; the format is detected, and responses to the questions come out."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from graphrag_eval_lc.dataset.loading import DatasetSource, read_dataset
from graphrag_eval_lc.errors import ResponsesError, warn
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.texts import counted, listed, plural
from graphrag_eval_lc.traces.conventions import CONVENTIONS
from graphrag_eval_lc.traces.json_stream import JsonStream
from graphrag_eval_lc.traces.langsmith import langsmith_calls
from graphrag_eval_lc.traces.otlp import RESOURCES, SpanReader
from graphrag_eval_lc.traces.responses import QuestionIds, responses_of
from graphrag_eval_lc.traces.spans import call_of
from graphrag_eval_lc.traces.whole_traces import Spool, TracedCall, WholeTraces

_HINT = (
    "Give OTLP/JSON (of the collector's file exporter: format: json), the spans that a ConsoleSpanExporter prints, or "
    "runs of LangSmith as JSON or JSON Lines."
)
_PRINTED = "context"  # of spans that the SDK prints
_RUNS = "runs"
_RUN = "run_type"
_ZIPPED = b"\x1f\x8b"


def read_calls(path: str | PathLike[str], warn: Callable[[str], object]) -> Iterator[list[TracedCall]]:
    """Yield the calls of each trace in a file, in the order of their starts; the trace that began first comes first.

    The file has OTLP/JSON, printed spans or LangSmith's runs, and may be compressed with gzip. It is read once, and the
    spans of a trace may be scattered over it. Memory holds one trace at a time, and the largest single span or run.
    ``warn`` is called at the end with each warning about the file.

    Raises:
        ResponsesError: The file cannot be read, is not valid JSON, or has no traces.
    """
    spans, whole, others = SpanReader(), WholeTraces(), 0
    with Spool() as spool:
        is_empty = True
        for call in _calls(path, spans):
            spool.add(call)
            is_empty = False
        if is_empty:
            raise ResponsesError("found no traces in the file", path=path, hint=_HINT)
        for calls in spool.traces():
            if any(call.kind != "other" for call in calls):
                yield whole.completed(calls)
            else:
                others += 1
    for warning in (*_about_others(others), *spans.warnings(), *whole.warnings()):
        warn(warning)


def _calls(path: str | PathLike[str], spans: SpanReader) -> Iterator[TracedCall]:
    """Yield the calls of a file in its order; the format of each object is detected by its keys.

    Lists of resources and of runs are entered, so that memory holds one span or run at a time.
    """
    with _opened(path) as file:
        stream = JsonStream(file, str(path))
        if stream.peek() not in ("", "{", "["):
            raise ResponsesError("the file has no traces in a known format: it is not JSON", path=path, hint=_HINT)
        is_known = False
        for _ in _objects(stream):
            record: dict[str, Any] = {}
            for key in stream.members():
                if stream.peek() != "[" or (key not in RESOURCES and key != _RUNS):
                    record[key] = stream.value()
                    continue
                is_known = True
                for _ in stream.items():
                    if key == _RUNS:
                        yield from langsmith_calls(stream.value())
                    else:
                        yield from map(call_of, spans.in_resource(stream))
            if _RUN in record:
                yield from langsmith_calls(record)
            elif _PRINTED in record:
                yield call_of(spans.span(record, ""))
            elif record and not is_known:
                what = f"the file has no traces in a known format: its first object has the keys {listed(list(record))}"
                raise ResponsesError(what, path=path, hint=_HINT)
            is_known = is_known or bool(record)


def _about_others(traces: int) -> Iterator[str]:
    """Yield a warning about traces, such as those of a web server, in which no call is of an agent, model or tool."""
    if traces:
        yield (
            f"{counted(traces, 'trace')} without a call of an agent, a model or a tool, in the words of "
            f"{listed([convention.name for convention in CONVENTIONS], 10)}, {plural(traces, 'is', 'are')} left out"
        )


def _opened(path: str | PathLike[str]) -> IO[str]:
    """Open a file for reading as text, without a byte order mark."""
    try:
        with Path(path).open("rb") as file:
            is_zipped = file.read(len(_ZIPPED)) == _ZIPPED
        if is_zipped:
            return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig"))
        return Path(path).open(encoding="utf-8-sig")
    except OSError as problem:
        is_absent = isinstance(problem, FileNotFoundError)
        raise ResponsesError(
            f"the traces cannot be read ({'the file does not exist' if is_absent else problem.strerror or problem})",
            path=path,
            hint="Fix the path." if is_absent else "Check the path and the permissions.",
        ) from problem


def _objects(stream: JsonStream) -> Iterator[None]:
    """Yield before each object at the top or in a list there; other values are passed over."""
    for _ in stream.documents():
        for _ in stream.items() if stream.peek() == "[" else [None]:
            if stream.peek() == "{":
                yield
            else:
                stream.value()


TraceSource = str | PathLike[str] | Iterable[Any]
"""A path, or runs of LangSmith."""


class TraceReading:
    """The responses in traces, one at a time.

    Args:
        source: A path, or runs of LangSmith, such as those of LangChain's ``RunCollectorCallbackHandler``.
        dataset: The dataset whose questions were asked; None: each trace names its question's id.

    Attributes:
        number_of_traces: How many traces were read.
        warnings: What the user should know; complete once all were read.
    """

    def __init__(self, source: TraceSource, dataset: DatasetSource | None = None) -> None:
        loaded = None if dataset is None else read_dataset(dataset)
        self.number_of_traces = 0
        self.warnings: list[str] = [] if loaded is None else list(loaded.notes)
        self._source = source
        self._ids = QuestionIds(None if loaded is None else loaded.templates)

    def __iter__(self) -> Iterator[Response]:
        """Yield the responses in the order in which the traces began.

        Raises:
            ResponsesError: The file cannot be read, is broken or no known kind of traces; or several questions have
                the text of a trace.
        """
        for calls in self._traces():
            self.number_of_traces += 1
            for response in responses_of(calls):
                named = self._ids.named(response)
                if named is not None:
                    yield named
        self.warnings += self._ids.warnings()

    def _traces(self) -> Iterator[list[TracedCall]]:
        if isinstance(self._source, str | PathLike):
            yield from read_calls(self._source, self.warnings.append)
            return
        with Spool() as spool:
            for run in self._source:
                for call in langsmith_calls(run):
                    spool.add(call)
            whole = WholeTraces()
            yield from map(whole.completed, spool.traces())


def read_traces(source: TraceSource, dataset: DatasetSource | None = None) -> list[Response]:
    """Return the responses in traces of other tools, so that the agent need not run again.

    A file holds spans of OpenTelemetry (OTLP as JSON, of Traceloop's, OpenInference's, Langfuse's and other
    instrumentations) or LangSmith's runs (a list or a run a line); the format is detected. The question id
    is in the metadata of the trace (``question_id``), else the question's text decides. A question that several
    traces answer has repeats.

    Args:
        source: A path; or runs of LangSmith, such as ``client.list_runs(…)`` or the ``traced_runs`` of LangChain's
            ``RunCollectorCallbackHandler``.
        dataset: The dataset whose questions were asked, as a path or its templates; None: each trace names its
            question's id.

    Returns:
        The responses in the order in which the traces began. Traces of no question of the dataset are left out, with a
        ``GraphRAGEvalWarning``.

    Raises:
        ResponsesError: The file cannot be read, is broken or no known kind of traces, has no response at all, or
            several questions have the text of a trace.
        DatasetError: The dataset cannot be read or breaks the format.

    Example:
        >>> run = {
        ...     "id": "1",
        ...     "run_type": "chain",
        ...     "name": "agent",
        ...     "start_time": "2026-01-31T12:00:00",
        ...     "inputs": {"question": "1 + 1?"},
        ...     "outputs": {"answer": "2"},
        ... }
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> [(response["question_id"], response["actual_answer"]) for response in read_traces([run], dataset)]
        [('q1', '2')]
    """
    reading = TraceReading(source, dataset)
    responses = list(reading)
    if not responses:
        raise nothing_read(reading, source)
    for warning in reading.warnings:
        warn(warning, stacklevel=2)
    return responses


def nothing_read(reading: TraceReading, source: TraceSource) -> ResponsesError:
    """Return the error that says why no response was read."""
    path = source if isinstance(source, str | PathLike) else None
    if not reading.number_of_traces:
        return ResponsesError("found no traces", path=path, hint="Give an export that has some.")
    found = counted(reading.number_of_traces, "trace")
    why = "; ".join(reading.warnings[-1:])
    return ResponsesError(
        f"none of {found} answers a question that is known: {why}", path=path, hint="Give the dataset that was asked."
    )
