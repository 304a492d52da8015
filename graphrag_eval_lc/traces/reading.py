"""A file of traces, or runs of LangSmith's client, go in; the responses to the questions in them come out."""

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

from graphrag_eval_lc.dataset.loading import DatasetSource, read_dataset
from graphrag_eval_lc.errors import ResponsesError, warn
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.traces.formats import read_calls
from graphrag_eval_lc.traces.langsmith import langsmith_calls
from graphrag_eval_lc.traces.question_ids import QuestionIds
from graphrag_eval_lc.traces.responses import responses_of
from graphrag_eval_lc.traces.spool import Spool
from graphrag_eval_lc.traces.traced_calls import TracedCall
from graphrag_eval_lc.traces.whole_traces import WholeTraces

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
