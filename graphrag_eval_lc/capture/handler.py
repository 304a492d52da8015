"""The public callback handler, which turns recorded runs into responses, and the context manager ``capture_run``."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from typing import Any, Unpack
from uuid import uuid4

from langchain_core.tracers.context import register_configure_hook

from graphrag_eval_lc.capture import values
from graphrag_eval_lc.capture.recorder import RunCallbacks
from graphrag_eval_lc.capture.responses import response_from, runs_of, runs_of_responses
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.records import Response


class GraphRAGEvalCallbackHandler(RunCallbacks):
    """Records the runs of agents as graphrag-eval responses.

    One handler records any number of runs, one after the other or at the same time. It never raises into the agent;
    what it could not record is listed in the response's ``capture_warnings``.

    Args:
        step_names: Names for the steps in ``actual_steps``, by tool name; other tools keep their names.
        retrieval_documents: Whether the output of a successful step is the documents that its tool retrieved, as a JSON
            array of ``{"id", "text"}``, which retrieval matching needs: True for all tools, or the names of some. The
            documents come from the retrievers that the tool ran, otherwise from its artifact if that is a list of
            documents. ``args.k`` is taken from a single retriever's metadata (``metadata={"k": 5}``), unless the tool
            has such an argument; an unknown ``k`` is left out. Off by default: the output is what the model read.
        nodes: The nodes of a LangGraph agent that run queries without a tool, by name: each of their runs is a step.
            Its arguments are parts of the node's input, its output is a part of what the node returns:
            ``{"execute_cypher": {"args": {"query": "statement"}, "output": "records"}}``; see ``NodeConfig``.
        max_output_chars: The number of characters to which outputs and errors of steps are cut, with a warning; the
            step keeps the full length as ``full_length``. A cut output scores 0 if rows, documents or JSON are
            compared, and counts as undecided.
        redact: A function whose return value is kept in place of each step's args (a dict), output (a string) and
            artifact, of errors (strings), of what warnings show of a model's answer (strings), and of the texts
            (strings) and args of kept messages. It gets a copy, and must be fast and not wait for other threads, as
            it runs in the agent's thread. If it raises, ``[redaction failed]`` is kept, with a warning. The
            question, the answer and the names stay as they are. The text ``"secrets"`` in place of a function masks
            the keys, tokens and passwords that this package knows, in the answer too; all else stays equal.
        keep_artifacts: Whether steps have the ``artifact`` that a tool returns next to its text.
        keep_messages: Whether the response has the prompts, outputs and tools of model calls: each message once in
            ``llm_messages``, each tool once in ``llm_tools``, and their indices in each of ``llm_calls``.
            ``redact`` is applied to texts and arguments, ``max_output_chars`` cuts texts. Of images and other binary
            contents only the length is kept. Off by default.

    Raises:
        CaptureError: An option has a wrong value.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> handler = GraphRAGEvalCallbackHandler()
        >>> agent = RunnableLambda(lambda question: question.upper())
        >>> agent.invoke("why?", config={"callbacks": [handler], "metadata": {"question_id": "q1"}})
        'WHY?'
        >>> handler.response("q1")["actual_answer"]
        'WHY?'
    """

    def __init__(self, **options: Unpack[values.CaptureKeywords]) -> None:
        super().__init__(values.CaptureOptions(**options))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which keeps only the runs that have ended."""
        with self._lock:
            records = self._records.of_ended_runs()
            parts = {tree: self._part(tree) for tree in records.trees}
        return {**self.__dict__, "_records": records, "_parts": parts, "_lock": None, "_enclosing": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def responses(self) -> list[Response]:
        """Return a response for each root run and each block of ``capture_run(question_id=…)``, in start order.

        A paused (interrupted) run and those that resumed it are one response.

        Returns:
            New dicts of plain JSON values. A run that has not ended counts as an error.
        """
        with self._lock:
            return [
                response_from([self._part(tree) for tree in runs], self._options)
                for runs in runs_of_responses(self._records.trees)
            ]

    def response(self, question_id: str | None = None) -> Response:
        """Return the last response of one question; ``responses()`` has all.

        Args:
            question_id: The ``question_id`` in the metadata of its run, or of its block. It may be left out if the
                handler recorded one question only, or one run without an id.

        Raises:
            CaptureError: No run matches, or several may be meant.
        """
        with self._lock:
            runs = runs_of(self._records.trees, question_id)
            return response_from([self._part(tree) for tree in runs], self._options)

    def response_ended_now(self, question_id: str, error: str) -> Response:
        """Return the response as if a question's runs had ended now; the runs themselves continue.

        Args:
            question_id: The question.
            error: The error for the runs and for every call that is still under way in them.

        Raises:
            CaptureError: No run matches.
        """
        with self._lock:
            runs = runs_of(self._records.trees, question_id)
            trees = [tree if tree.has_ended else copy(tree) for tree in runs]
            for tree in trees:
                tree.close(error)
            parts = list(map(self._part, trees))
        return response_from(parts, self._options)

    @property
    def has_runs(self) -> bool:
        """Whether any run was recorded."""
        with self._lock:
            return bool(self._records.trees)

    def add_run(
        self,
        inputs: Any,
        output: Any,
        *,
        question_id: str | None = None,
        elapsed_sec: float | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a run that called no handler, such as ``RemoteGraph.invoke``, from its output's messages.

        Steps, answer and tokens are those of the messages; what is not in them, such as times, is unknown.

        Args:
            inputs: The run's input. If its messages are in the output too, they and the messages before them are not
                part of the run. With None or a ``Command``, which resume a thread, the run is what follows the end of
                an earlier run of this handler.
            output: The run's output.
            question_id: The id of its question.
            elapsed_sec: How long it took, up to now.
            tags: The tags of its config.
            metadata: The metadata of its config.

        Example:
            >>> from langchain_core.messages import AIMessage
            >>> handler = GraphRAGEvalCallbackHandler()
            >>> handler.add_run({"messages": [("user", "why?")]}, {"messages": [AIMessage("so")]}, question_id="q1")
            >>> handler.response("q1")["actual_answer"]
            'so'
        """
        run_id = uuid4()
        own = {} if question_id is None else {"question_id": question_id}
        self.on_chain_start(None, inputs, run_id=run_id, tags=list(tags), metadata={**(metadata or {}), **own})
        with self._lock:
            record = self._records.open.get(run_id)
            if record is not None:
                record.tree.run_ids.remove(run_id)
                if elapsed_sec is not None and record.parent is None:
                    record.tree.started -= elapsed_sec
                    record.tree.started_at -= elapsed_sec
        self.on_chain_end(output, run_id=run_id)

    def clear(self) -> None:
        """Forget all runs. Those under way are not recorded any further."""
        with self._lock:
            self._records.clear()
            self._parts.clear()


def without_runs(handler: GraphRAGEvalCallbackHandler) -> GraphRAGEvalCallbackHandler:
    """Return a handler with the same options and no runs, without checking the options again."""
    new: GraphRAGEvalCallbackHandler = object.__new__(type(handler))
    RunCallbacks.__init__(new, handler._options)
    return new


_current: ContextVar[GraphRAGEvalCallbackHandler | None] = ContextVar("graphrag_eval_lc_capture", default=None)
register_configure_hook(_current, inheritable=True)  # at import, as LangChain never drops a registration


@contextmanager
def capture_run(
    *, question_id: str | int | None = None, **options: Unpack[values.CaptureKeywords]
) -> Iterator[GraphRAGEvalCallbackHandler]:
    """Record every run that starts inside the ``with`` block, in this thread or task.

    With a question id the whole block is one response. It may contain a hand-written loop around ``model.invoke`` and
    ``tool.invoke``, chains, and agents; ids in their metadata are ignored. The question comes from the first input that
    has one, the answer from the last model, chain or agent, and the time is the block's. If an exception leaves the
    block, or its last run failed, that is the response's error. Without a question id each root run is a separate
    response.

    A block inside another one records into both, each with its own options. An inner block with a question id is one
    response in its own handler, and a part of the outer response if the outer block has a question id too.

    A new thread is recorded if it is started with this one's context, as LangChain's own are
    (``contextvars.copy_context().run``), or if the handler is passed on: ``config={"callbacks": [handler]}``.

    Args:
        question_id: The id of the question that the block answers.
        **options: Those of ``GraphRAGEvalCallbackHandler``.

    Yields:
        The handler that records; it can be read after the block too.

    Raises:
        CaptureError: An option has a wrong value.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> upper = RunnableLambda(lambda question: question.upper())
        >>> with capture_run(question_id="q1") as handler:
        ...     answer = upper.invoke(upper.invoke("why?") + " because.")
        >>> handler.response("q1")["question_text"], handler.response("q1")["actual_answer"]
        ('why?', 'WHY? BECAUSE.')
    """
    is_id = isinstance(question_id, str | int) and not isinstance(question_id, bool) and question_id != ""
    if question_id is not None and not is_id:
        hint = "Give a text or a whole number."
        raise CaptureError(f"{question_id!r:.80} is not a value of the option", key="question_id", hint=hint)
    handler = GraphRAGEvalCallbackHandler(**options)
    handler._enclosing = _current.get()
    token = _current.set(handler)
    block_id = None if question_id is None else handler.open_block(str(question_id))
    error: BaseException | None = None
    try:
        yield handler
    except BaseException as problem:
        error = problem
        raise
    finally:
        with suppress(ValueError):  # a generator may be closed in another context than it was begun in
            _current.reset(token)
        if block_id is not None:
            handler.on_block_end(run_id=block_id, error=error)
