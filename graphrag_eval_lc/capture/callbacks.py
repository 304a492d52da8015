"""The callbacks: each hands one event of LangChain or LangGraph to the record of its run."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.graph_events import is_handoff, is_interrupt
from graphrag_eval_lc.capture.messages import question_in
from graphrag_eval_lc.capture.outputs import (
    args_snapshot,
    document_value,
    error_text,
    json_text,
    output_text,
    tool_message_of,
)
from graphrag_eval_lc.capture.run_record import Ending, message_ending
from graphrag_eval_lc.capture.runs import Run, Runs
from graphrag_eval_lc.capture.steps import NO_ARTIFACT
from graphrag_eval_lc.capture.usage import model_name

_Callback = TypeVar("_Callback", bound=Callable[..., None])


def _harmless(callback: _Callback) -> _Callback:
    """Keep a callback's own failure away from the agent: it becomes a capture warning of the run."""
    name = callback.__name__

    @functools.wraps(callback)
    def harmless(self: "RunCallbacks", *args: Any, **kwargs: Any) -> None:
        try:
            callback(self, *args, **kwargs)
        except Exception as error:
            self._warn(f"capture failed in {name}: {error_text(error)}", kwargs.get("run_id"))
        if self._enclosing is not None:
            getattr(self._enclosing, name)(*args, **kwargs)

    return cast("_Callback", harmless)


class RunCallbacks(BaseCallbackHandler):
    """Keeps the records of all runs that it is told of, from any number of threads. Never raises into the agent.

    Core runs synchronous handlers that are ``run_inline`` without a thread of their own, in sync and async agents
    alike.
    """

    run_inline = True
    raise_error = False

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._runs = Runs()
        self._enclosing: RunCallbacks | None = None  # the handler of the capture_run() block around this one

    def _warn(self, warning: str, run_id: object) -> None:
        with self._lock:
            run = self._runs.get(run_id) if isinstance(run_id, UUID) else None
            records = [run.record] if run is not None else self._runs.records[-1:]
            for record in records:
                record.warnings[warning] = None

    # --- chains, graphs and their nodes ---

    @_harmless
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a root run, or what a node is given."""
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata, tags)
            if run is not None and (run.is_root or run.is_node) and not run.record.has_ended:
                if run.is_root:
                    run.record.question = question_in(inputs)
                run.record.node_started(inputs, run.scope, run.outer_step)

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Read the answer of a root run, or the messages of a node."""
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None or run.record.has_ended:
                return
            if run.is_root:
                self._end_root(run, outputs)
            elif run.is_node:
                run.record.node_ended(outputs, run.scope, run.outer_step)

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a root run that failed; note a run that pauses."""
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None or run.record.has_ended:
                return
            steers = is_interrupt(error) or is_handoff(error)
            run.record.is_paused = run.record.is_paused or is_interrupt(error)
            if run.is_root:
                run.record.close(None if steers else error_text(error))

    @_harmless
    def on_interrupt(self, event: Any) -> None:
        """Note that langgraph pauses a run, also before a node has started."""
        with self._lock:
            run = self._runs.get(getattr(event, "run_id", None))
            if run is not None and not run.record.has_ended:
                run.record.is_paused = True

    @staticmethod
    def _end_root(run: Run, output: Any) -> None:
        try:
            run.record.root_ended(output)
        finally:
            run.record.close()

    # --- tools ---

    @_harmless
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a step, with a copy of the arguments before the tool can change them."""
        args = args_snapshot(inputs, input_str)
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata)
            if run is not None and not run.record.has_ended:
                run.step = run.record.tool_started(run_id, name, args, tool_call_id, run.scope, run.outer_step)

    @_harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a step with what the tool returned."""
        call_id = self._call_id_of(run_id)
        message = tool_message_of(output, call_id)
        ending: Ending = ("success", output_text(output), NO_ARTIFACT) if message is None else message_ending(message)
        self._end_step(run_id, ending, None if message is None else message.tool_call_id)

    @_harmless
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a step with its error; leave it pending where the tool waits for somebody."""
        if is_interrupt(error):
            ending: Ending = ("pending", "", NO_ARTIFACT)
        elif is_handoff(error):
            ending = ("success", output_text(error.args[0] if error.args else None), NO_ARTIFACT)
        else:
            ending = ("error", error_text(error), NO_ARTIFACT)
        self._end_step(run_id, ending, None, root_error=None if ending[0] != "error" else ending[1])

    def _call_id_of(self, run_id: UUID) -> str | None:
        with self._lock:
            run = self._runs.get(run_id)
            return run.step.id if run is not None and run.step is not None else None

    def _end_step(self, run_id: UUID, ending: Ending, call_id: str | None, root_error: str | None = None) -> None:
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None or run.record.has_ended:
                return
            if run.step is not None:
                run.record.step_ended(run.step, run_id, ending, call_id, run.scope)
            if run.is_root:
                run.record.close(root_error)

    # --- retrievers ---

    @_harmless
    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a step for a retriever, unless it works for a tool or another retriever."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        k = (metadata or {}).get("k")
        args = {"query": query} if k is None else {"query": query, "k": k}
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata)
            if run is not None and not run.record.has_ended and not run.is_inside_step:
                run.step = run.record.retriever_started(run_id, name, args, run.outer_step)

    @_harmless
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a retriever's step with its documents as a JSON array of ``{id, text}``."""
        output = json_text([document_value(document) for document in documents])
        self._end_step(run_id, ("success", output, NO_ARTIFACT), None)

    @_harmless
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a retriever's step with its error."""
        self._end_step(run_id, ("error", error_text(error), NO_ARTIFACT), None, root_error=error_text(error))

    # --- models ---

    @_harmless
    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a model call."""
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata)
            if run is not None and not run.record.has_ended:
                run.model_call = run.record.model_started(model_name(kwargs.get("invocation_params"), metadata))

    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **kwargs: Any) -> None:
        """Open a call of a plain language model."""
        self.on_chat_model_start(serialized, [], **kwargs)

    @_harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a model call with its tokens."""
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None or run.record.has_ended:
                return
            if run.model_call is not None:
                run.record.model_ended(run.model_call, response, run.scope, run.outer_step)
            if run.is_root:
                self._end_root(run, response)

    @_harmless
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a model call that failed."""
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None or run.record.has_ended:
                return
            if run.model_call is not None:
                run.record.model_failed(run.model_call, error, kwargs.get("response"))
            if run.is_root:
                run.record.close(error_text(error))
