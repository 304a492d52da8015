"""The callbacks: each passes one event of LangChain or LangGraph to the trace of its run."""

import functools
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from graphrag_eval_lc.capture.answer_problems import answer_problems
from graphrag_eval_lc.capture.calls_without_tools import is_model_node
from graphrag_eval_lc.capture.kept_messages import Noted, places, ranges
from graphrag_eval_lc.capture.llm_calls import (
    OpenModelCall,
    finish_reason,
    first_generation,
    has_content,
    model_name,
    unanswered_tool,
)
from graphrag_eval_lc.capture.messages import question_in
from graphrag_eval_lc.capture.outputs import (
    Outcome,
    args_snapshot,
    document_value,
    output_outcome,
    output_text,
    tool_message_of,
)
from graphrag_eval_lc.capture.redaction import CaptureOptions, Retrieval, asked_k, kept_args, kept_outcome, kept_text
from graphrag_eval_lc.capture.runs import Run, Runs, calling_run_id, is_handoff, is_interrupt
from graphrag_eval_lc.capture.steps import Step
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import error_text

_CALL_PARSERS = "ToolsParser"  # how the names of the parsers end that take a message's tool calls for the result
_UNKNOWN_ERROR = "unknown error"  # where an option leaves nothing of it

_Callback = TypeVar("_Callback", bound=Callable[..., None])


def _harmless(callback: _Callback) -> _Callback:
    """Turn a callback's own failure into a capture warning; call the enclosing block's handler too."""
    name = callback.__name__

    @functools.wraps(callback)
    def harmless(self: "RunCallbacks", *args: Any, **kwargs: Any) -> None:
        try:
            callback(self, *args, **kwargs)
        except Exception as error:
            run_id = kwargs.get("run_id")
            self._warn(run_id, f"capture failed in {name}: {self._kept_error(error, run_id)}")
        if self._enclosing is not None:
            if self._runs.block_id is not None and kwargs.get("parent_run_id", "") is None:
                kwargs["parent_run_id"] = self._parent_inside_block()
            getattr(self._enclosing, name)(*args, **kwargs)

    return cast("_Callback", harmless)


class RunCallbacks(BaseCallbackHandler):
    """Keeps the traces of all its runs, in any number of threads. Never raises into the agent.

    Being ``run_inline``, it is called in the agent's own thread, by async agents too.
    """

    run_inline = True
    raise_error = False

    def __init__(self, options: CaptureOptions) -> None:
        super().__init__()
        self._options = options
        self._lock = threading.RLock()
        self._runs = Runs(options)
        self._enclosing: RunCallbacks | None = None  # the handler of the capture_run() block around this one

    def _warn(self, run_id: object, *warnings: str) -> None:
        with self._lock:
            run = self._runs.get(run_id) if isinstance(run_id, UUID) else None
            traces = [run.trace] if run is not None else self._runs.traces[-1:]
            for trace in traces:
                trace.warn(*warnings)

    def _kept_error(self, error: object, run_id: object) -> str:
        """Return an exception's text as it is kept; ``redact``, which is not ours, is called without the lock."""
        warnings: list[str] = []
        text = kept_text(error_text(error), self._options, "error", warnings)
        if warnings:
            self._warn(run_id, *warnings)
        return text or _UNKNOWN_ERROR

    # --- blocks of code, all runs of which make one response ---

    def open_block(self, question_id: str) -> UUID:
        """Begin a block, to which runs without a known parent belong, and return its id."""
        block_id = uuid4()
        self.on_block_start(run_id=block_id, parent_run_id=calling_run_id(), question_id=question_id)
        with self._lock:
            self._runs.block_id = block_id
        return block_id

    def _parent_inside_block(self) -> UUID | None:
        """Return the parent that a run without one has for the handler of the enclosing block."""
        caller_id = calling_run_id()
        with self._lock:
            return self._runs.block_id if self._runs.get(caller_id) is None else caller_id

    @_harmless
    def on_block_start(self, *, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Note that a block begins, of this handler or of one inside its own."""
        with self._lock:
            self._runs.block_started(run_id, parent_run_id, question_id)

    @_harmless
    def on_block_end(self, *, run_id: UUID, error: BaseException | None) -> None:
        """End the trace of a block."""
        kept = None if error is None else self._kept_error(error, run_id)
        with self._lock:
            self._runs.block_ended(run_id, kept)

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
        """Note a root run, or read a node's input."""
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata, tags)
            if run is None:
                return
            run.name = kwargs.get("name")
            if not run.is_node:
                self._runs.chain_given(run, inputs, metadata)
            if run.is_top and run.trace.question is None:
                run.trace.question = question_in(inputs)
            if run.opens is not None:
                run.trace.messages.graph_goes_on(inputs, run.opens.inputs, is_start=True)
            if run.is_top or run.is_node:
                run.is_model_node = run.is_node and is_model_node(metadata)
                run.trace.node_started(inputs, run.scope, run.outer_step, run.node_id)
                return
            run.inputs = inputs
            if kwargs.get("run_type") == "parser" and str(kwargs.get("name")).endswith(_CALL_PARSERS):
                run.trace.messages.message_parsed(inputs)

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Read the answer of a root run, or the messages of a node."""
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None:
                return
            if run.is_root:
                self._end_root(run, outputs)
                self._runs.root_ended(run.trace)
            elif run.is_top:
                run.trace.top_ended(outputs, is_state=run.has_nodes)
            elif run.is_node:
                run.trace.node_ended(
                    outputs, run.scope, run.outer_step, run.node_id, is_of_model_node=run.is_model_node
                )
            else:
                if run.is_graph:
                    self._end_graph(run, outputs)
                run.trace.messages.chain_ended(outputs, run.scope, run.outer_step)

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End a root run that failed; note a run that pauses."""
        steers = is_interrupt(error) or is_handoff(error)
        kept = None if steers or not self._is_open_top(run_id) else self._kept_error(error, run_id)
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None:
                return
            if run.is_node and is_handoff(error):
                run.trace.node_gave(error.args, run.scope)
            run.trace.is_paused = run.trace.is_paused or is_interrupt(error)
            self._end_top(run, kept)

    def _is_open_top(self, run_id: UUID) -> bool:
        with self._lock:
            run = self._runs.get(run_id)
            return run is not None and run.is_top and not run.trace.has_ended

    def _end_top(self, run: Run, error: str | None) -> None:
        """End a root with its trace, or a run that a block calls: the block failed if its last run did."""
        if run.is_root:
            run.trace.close(error)
            self._runs.root_ended(run.trace)
        elif run.is_top:
            run.trace.error = error

    @_harmless
    def on_interrupt(self, event: Any) -> None:
        """Note that langgraph pauses a run, perhaps before any node has started."""
        with self._lock:
            run = self._runs.get(getattr(event, "run_id", None))
            if run is not None and not run.trace.has_ended:
                run.is_interrupted = run.trace.is_paused = True

    @_harmless
    def on_resume(self, event: Any) -> None:
        """Note that langgraph goes on with a thread, perhaps with no node left to run."""
        with self._lock:
            run = self._runs.get(getattr(event, "run_id", None))
            if run is not None and not run.trace.has_ended and not run.is_graph:
                run.note_graph()

    @staticmethod
    def _end_graph(run: Run, output: Any) -> None:
        """End a graph inside a root run; an outermost one tells whether the run is paused."""
        if run.goes_on:
            run.trace.messages.graph_goes_on(output, run.inputs)
        if not run.trace.is_graph and run.scope == run.trace.root_id:
            run.trace.is_paused = run.is_interrupted

    @staticmethod
    def _end_root(run: Run, output: Any) -> None:
        try:
            run.trace.root_ended(output, is_state=run.has_nodes)
        finally:
            run.trace.close()

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
        """Open a step, with a copy of the arguments, as the tool may change them."""
        args = args_snapshot(inputs, input_str)
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        warnings: list[str] = []
        kept = kept_args(args, self._options, name, warnings)
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata, root_tags=tags)
            if run is not None:
                if warnings:
                    run.trace.warn(*warnings)
                run.step = run.trace.steps.tool_started(
                    run_id, name, args, kept, tool_call_id, run.scope, run.outer_step
                )

    @_harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a step with what the tool returned."""
        step = self._open_step(run_id)
        message = None
        if type(output) is not str:
            message = tool_message_of(output, None if step is None else step.asked_id)
        outcome = output_outcome(output, message)
        self._end_step(run_id, step, outcome, call_id=None if message is None else message.tool_call_id)

    @_harmless
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a step with its error, or leave it pending at an interrupt."""
        if is_interrupt(error):
            outcome = Outcome("pending", "")
        elif is_handoff(error):
            outcome = Outcome("success", output_text(error.args[0] if error.args else None))
        else:
            outcome = Outcome("error", error_text(error))
        self._end_step(run_id, self._open_step(run_id), outcome, fails_root=outcome.status == "error")

    def _open_step(self, run_id: UUID) -> Step | None:
        with self._lock:
            run = self._runs.get(run_id)
            return None if run is None or run.trace.has_ended else run.step

    def _end_step(
        self, run_id: UUID, step: Step | None, outcome: Outcome, *, call_id: str | None = None, fails_root: bool = False
    ) -> None:
        """End a run of a tool or retriever; ``redact``, which is not ours, is called without the lock."""
        kept = None if step is None else kept_outcome(outcome, self._options, step.name, step.retrievals)
        root_error = None
        if fails_root and self._is_open_top(run_id):
            root_error = self._kept_error(outcome.text, run_id) if kept is None else kept.text or _UNKNOWN_ERROR
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None:
                return
            if run.step is not None and kept is not None:
                run.trace.step_ended(run.step, run_id, kept, call_id, run.scope)
            self._end_top(run, root_error)

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
        """Open a step for a retriever, unless a tool or another retriever called it."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        k = asked_k(metadata)
        args = {"query": query} if k is None else {"query": query, "k": k}
        warnings: list[str] = []
        kept = kept_args(args, self._options, name, warnings)
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata, root_tags=tags)
            if run is None:
                return
            if not run.is_inside_step:
                if warnings:
                    run.trace.warn(*warnings)
                run.step = run.trace.steps.retriever_started(run_id, name, kept, run.outer_step)
            elif run.outer_step is not None and not run.is_retriever:
                run.retrieval = Retrieval(k)
                if self._options.wants_documents(run.outer_step.name):
                    run.outer_step.retrievals = (*run.outer_step.retrievals, run.retrieval)
            run.is_retriever = True

    @_harmless
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a retriever's step with its documents as a JSON array of ``{id, text}``."""
        values = [document_value(document) for document in documents]
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None and run.retrieval is not None:
                run.retrieval.documents = values
        step = self._open_step(run_id)
        self._end_step(run_id, step, Outcome("success", "" if step is None else json_text(values)))

    @_harmless
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a retriever's step with its error."""
        self._end_step(run_id, self._open_step(run_id), Outcome("error", error_text(error)), fails_root=True)

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
        prompts: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a model call, and read its prompt."""
        params = kwargs.get("invocation_params")
        with self._lock:
            run = self._runs.started(run_id, parent_run_id, metadata, root_tags=tags)
            if run is not None:
                if run.is_top and run.trace.question is None and messages:
                    run.trace.question = question_in(messages[0])
                call = run.model_call = run.trace.model_started(
                    model_name(params, metadata),
                    messages[0] if messages else (),
                    run.outer_step,
                    unanswered_tool=unanswered_tool(params, kwargs.get("options")),
                )
                if metadata is not None:
                    call.node = metadata.get("langgraph_node")
                    call.namespace = metadata.get("langgraph_checkpoint_ns")
                    call.agent = self._runs.graph_name(run) or metadata.get("lc_agent_name")
        if self._options.keep_messages and run is not None and run.model_call is not None:
            self._keep_given(run, run.model_call, messages[0] if messages else (prompts or ())[:1], params)

    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **kwargs: Any) -> None:
        """Open a call of a plain language model."""
        self.on_chat_model_start(serialized, [], prompts=prompts, **kwargs)
        with self._lock:
            run = self._runs.get(kwargs.get("run_id"))
            if run is not None and run.is_top and run.trace.question is None and prompts:
                run.trace.question = prompts[0]

    def _keep_given(self, run: Run, call: OpenModelCall, messages: Sequence[BaseMessage | str], params: object) -> None:
        """Keep a model call's prompt and tools; ``redact``, which is not ours, is called without the lock."""
        kept, warnings = run.trace.kept, list[str]()
        if kept is not None:
            noted, tools = kept.noted(messages, warnings), kept.noted_tools(params, warnings)
            with self._lock:
                if not run.trace.has_ended:
                    run.trace.warn(*warnings)
                    call.input_messages = ranges(places(kept.messages, noted))
                    call.tools = ranges(places(kept.tools, tools))

    @_harmless
    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token: text, reasoning or a part of a tool call, not an empty first chunk."""
        run = self._runs.get(run_id)  # without the lock: tokens are many, and only the first one matters
        call = None if run is None else run.model_call
        if call is not None and call.first_token is None and (token or has_content(chunk)):
            call.first_token = perf_counter()

    @_harmless
    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token of a model that streams content blocks."""
        run = self._runs.get(run_id)
        call = None if run is None else run.model_call
        if call is not None and call.first_token is None and event.get("event") == "content-block-delta":
            call.first_token = perf_counter()

    @_harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a model call with its result; ``redact``, which is not ours, is called without the lock."""
        warnings: list[str] = []
        reason = finish_reason(response)
        problems = answer_problems(response, reason, self._options, warnings)
        output = self._kept_output(run_id, response) if self._options.keep_messages else ()
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None:
                return
            if warnings:
                run.trace.warn(*warnings)
            if run.model_call is not None:
                run.model_call.finish_reason, run.model_call.problems = reason, problems
                run.trace.model_ended(run.model_call, response, run.scope, run.outer_step, run.node_id)
                run.trace.keep_output(run.model_call, output)
            if run.is_root:
                self._end_root(run, response)
            elif run.is_top:
                run.trace.top_ended(response)

    def _kept_output(self, run_id: UUID, result: object) -> list[int | Noted]:
        """Note a model call's output: its first message, or the first text of a plain language model."""
        with self._lock:
            run = self._runs.get(run_id)
            kept = None if run is None or run.trace.has_ended or run.model_call is None else run.trace.kept
        generation = first_generation(result) if isinstance(result, LLMResult) else None
        if kept is None or generation is None:
            return []
        message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
        warnings: list[str] = []
        noted = kept.noted([message], warnings)
        if warnings:
            self._warn(run_id, *warnings)
        return noted

    @_harmless
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a model call that failed."""
        kept = self._kept_error(error, run_id)
        output = self._kept_output(run_id, kwargs.get("response")) if self._options.keep_messages else ()
        with self._lock:
            run = self._runs.ended(run_id)
            if run is None:
                return
            if run.model_call is not None:
                run.model_call.fail(kept, kwargs.get("response"))
                run.trace.keep_output(run.model_call, output)
            self._end_top(run, kept)
