"""The callbacks: each records one event of LangChain or LangGraph in the tree of its run."""

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

from graphrag_eval_lc.capture.calls_without_tools import is_from_agent, is_model_node, structured_response
from graphrag_eval_lc.capture.kept_messages import ranges
from graphrag_eval_lc.capture.llm_calls import (
    answer_problems,
    finish_reason,
    first_generation,
    generated_message,
    has_content,
    is_cache_hit,
    model_name,
    unanswered_tool,
)
from graphrag_eval_lc.capture.messages import answer_fields, is_interrupted, question_in, tool_calls_in
from graphrag_eval_lc.capture.outputs import (
    Outcome,
    args_snapshot,
    document_value,
    is_command,
    output_outcome,
    output_text,
    to_plain,
    tool_message_of,
)
from graphrag_eval_lc.capture.record import Facts, MessageList, ModelRun, Record, ToolRun, model_call
from graphrag_eval_lc.capture.redaction import CaptureOptions, Retrieval, asked_k, kept_args, kept_outcome, kept_text
from graphrag_eval_lc.capture.runs import (
    Records,
    calling_run_id,
    is_handoff,
    is_interrupt,
    is_state_update,
    tool_messages_of,
)
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import error_text

_CALL_PARSERS = "ToolsParser"  # the end of the names of parsers that return a message's tool calls
_UNKNOWN_ERROR = "unknown error"  # if an option leaves nothing of it
_RETRY_TAG = "retry:attempt:"  # of what with_retry runs again

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
            if self._records.block_id is not None and kwargs.get("parent_run_id", "") is None:
                kwargs["parent_run_id"] = self._parent_inside_block()
            getattr(self._enclosing, name)(*args, **kwargs)

    return cast("_Callback", harmless)


class RunCallbacks(BaseCallbackHandler):
    """Records the runs of agents, in any number of threads. Never raises into the agent.

    Being ``run_inline``, it is called in the agent's own thread, by async agents too.
    """

    run_inline = True
    raise_error = False

    def __init__(self, options: CaptureOptions) -> None:
        super().__init__()
        self._options = options
        self._lock = threading.RLock()
        self._records = Records(options)
        self._enclosing: RunCallbacks | None = None  # the handler of the capture_run() block around this one

    def _warn(self, run_id: object, *warnings: str) -> None:
        with self._lock:
            record = self._records.get(run_id) if isinstance(run_id, UUID) else None
            trees = [record.tree] if record is not None else self._records.trees[-1:]
            for tree in trees:
                tree.warn(*warnings)

    def _kept_error(self, error: object, run_id: object) -> str:
        """Return an exception's text as it is kept; ``redact``, the user's code, is called without the lock."""
        warnings: list[str] = []
        text = kept_text(error_text(error), self._options, "error", warnings)
        if warnings:
            self._warn(run_id, *warnings)
        return text or _UNKNOWN_ERROR

    def _end(self, record: Record | None, error: str | None) -> None:
        """End a root with its tree, or a run that a block calls: the block failed if its last run did."""
        if record is None or not record.is_top:
            return
        tree = record.tree
        if not record.is_root:
            tree.error = error
            return
        with self._lock:
            if tree.has_ended:
                return
            tree.close(error)
            self._records.root_ended(tree)
        if record.tool is not None and len(tree.events) == 2:
            record.tool.asked_args = record.tool.args  # a tool alone has no calls, and is interpreted when it is read
        else:
            part = self._records.interpreted(tree)  # without the lock: nothing of it changes any more
            with self._lock:
                self._records.keep(tree, part)

    # --- blocks of code, all runs of which make one response ---

    def open_block(self, question_id: str) -> UUID:
        """Begin a block, to which runs without a known parent belong, and return its id."""
        block_id = uuid4()
        self.on_block_start(run_id=block_id, parent_run_id=calling_run_id(), question_id=question_id)
        with self._lock:
            self._records.block_id = block_id
        return block_id

    def _parent_inside_block(self) -> UUID | None:
        """Return the parent that a run without one has for the handler of the enclosing block."""
        caller_id = calling_run_id()
        with self._lock:
            return self._records.block_id if self._records.get(caller_id) is None else caller_id

    @_harmless
    def on_block_start(self, *, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Note that a block begins, of this handler or of one inside its own."""
        with self._lock:
            self._records.block_started(run_id, parent_run_id, question_id)

    @_harmless
    def on_block_end(self, *, run_id: UUID, error: BaseException | None) -> None:
        """End the tree of a block."""
        kept = None if error is None else self._kept_error(error, run_id)
        with self._lock:
            record = self._records.block_ended(run_id)
            if record is not None and kept is not None and not record.tree.events:
                self._records.trees.append(record.tree)
        if record is not None:
            self._end(record, kept or record.tree.error)

    # --- chains, graphs and their nodes ---

    @_harmless
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a root run, a graph, a node or another chain."""
        name, metadata = kwargs.get("name"), kwargs.get("metadata")
        with self._lock:
            if is_state_update(name, metadata, kwargs.get("parent_run_id")):
                self._records.ignore(run_id)
                return
            record = self._records.started("chain", run_id, kwargs)
            if record is None:
                return
            record.name, record.inputs = name, inputs
            if not record.is_node:
                self._records.note_thread(record, inputs, metadata)
            if record.is_top:
                record.is_graph_run = metadata is not None and "ls_integration" in metadata
                if record.tree.question is None:
                    record.tree.question = question_in(inputs)
            if record.is_top or record.is_node:
                record.input_messages = record.tree.read(inputs)
                if type(inputs) is not dict or "tool_call" in inputs:
                    record.loose_calls = tool_calls_in(inputs)
                record.is_model_node = record.is_node and is_model_node(metadata)
                record.inputs = None if inputs is None or is_command(inputs) else ()
            elif kwargs.get("run_type") == "parser" and str(name).endswith(_CALL_PARSERS):
                record.parsed = inputs if isinstance(inputs, AIMessage) else None

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the output of a root run, or the messages of a node."""
        with self._lock:
            record = self._records.ended(run_id)
            if record is None:
                return
        try:
            with self._lock:
                record.inputs = None if record.inputs is None else ()
                self._chain_ended(record, outputs)
        finally:
            self._end(record, None)

    def _chain_ended(self, record: Record, outputs: Any) -> None:
        tree = record.tree
        if record.is_top or record.is_node:
            if record.is_top:
                tree.is_paused = tree.is_paused or is_interrupted(outputs)
                record.output = outputs
            record.output_messages = tree.read(outputs)
            record.facts = self._facts(record, outputs)
            tree.ended(record)
        elif record.is_graph:
            if record.continues_thread:
                record.output_messages = tree.read(outputs)
                tree.ended(record)
            if record.scope is not None and record.scope.is_root and not record.scope.is_graph:
                tree.is_paused = record.is_interrupted
        elif messages := tuple(tool_messages_of(outputs)):
            tree.note_texts(messages)
            record.output_messages = [MessageList(messages)]
            tree.ended(record)

    @staticmethod
    def _facts(record: Record, output: Any) -> Facts:
        scope = record.scope
        is_of_root = (
            record.is_node and scope is not None and scope.is_root and (scope.continues_thread or scope.is_block)
        )
        fields = frozenset(answer_fields(output)) if is_of_root else frozenset()
        if (
            max((len(each.items) for each in record.output_messages), default=0) < 2
        ):  # a schema's call comes with its answer
            return Facts(fields)
        return Facts(fields, structured_response(output), record.is_model_node and is_from_agent(output))

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a root run, a pause, or a handoff."""
        steers = is_interrupt(error) or is_handoff(error)
        kept = None if steers or not self._is_open_top(run_id) else self._kept_error(error, run_id)
        with self._lock:
            record = self._records.ended(run_id)
            if record is None:
                return
            tree = record.tree
            tree.is_paused = tree.is_paused or is_interrupt(error)
            if record.is_node and is_handoff(error):
                record.facts = Facts(frozenset(answer_fields(error.args)))
                tree.ended(record)
            record.inputs = None if record.inputs is None else ()
        self._end(record, kept)

    def _is_open_top(self, run_id: UUID) -> bool:
        record = self._records.get(run_id)
        return record is not None and record.is_top and not record.tree.has_ended

    @_harmless
    def on_interrupt(self, event: Any) -> None:
        """Note that langgraph pauses a run, perhaps before any node has started."""
        with self._lock:
            record = self._records.get(getattr(event, "run_id", None))
            if record is not None:
                record.is_interrupted = record.tree.is_paused = True

    @_harmless
    def on_resume(self, event: Any) -> None:
        """Note that langgraph resumes a thread, perhaps with no node left to run."""
        with self._lock:
            record = self._records.get(getattr(event, "run_id", None))
            if record is not None and not record.is_graph:
                record.note_graph()

    # --- tools ---

    @_harmless
    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a tool, with a copy of the arguments, as the tool may change them."""
        args = args_snapshot(kwargs.get("inputs"), input_str)
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        warnings: list[str] = []
        kept = kept_args(args, self._options, name, warnings)
        with self._lock:
            record = self._records.started("tool", run_id, kwargs)
            if record is not None:
                record.tree.warn(*warnings)
                is_retry = any(tag.startswith(_RETRY_TAG) for tag in kwargs.get("tags") or ())
                record.name, record.tool = name, ToolRun(kept, args, kwargs.get("tool_call_id"), is_retry)

    @_harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record what the tool returned."""
        message = None
        if type(output) is not str:
            record = self._records.get(run_id)
            call_id = None if record is None or record.tool is None else record.tool.call_id
            message = tool_message_of(output, call_id)
        self._end_tool(run_id, output_outcome(output, message), None if message is None else message.tool_call_id)

    @_harmless
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a tool, or that it waits for somebody."""
        if is_interrupt(error):
            outcome = Outcome("pending", "")
        elif is_handoff(error):
            outcome = Outcome("success", output_text(error.args[0] if error.args else None))
        else:
            outcome = Outcome("error", error_text(error))
        self._end_tool(run_id, outcome, fails_root=outcome.status == "error")

    def _end_tool(
        self, run_id: UUID, outcome: Outcome, answer_id: str | None = None, *, fails_root: bool = False
    ) -> None:
        """End a run of a tool or retriever; ``redact``, which is not ours, is called without the lock."""
        record = self._records.get(run_id)
        tool = None if record is None else record.tool
        kept = None
        if record is not None and tool is not None and not (record.is_retriever and record.is_inside_step):
            kept = kept_outcome(outcome, self._options, record.name or "", tool.retrievals)
        root_error = None
        if fails_root and self._is_open_top(run_id):
            root_error = self._kept_error(outcome.text, run_id) if kept is None else kept.text or _UNKNOWN_ERROR
        with self._lock:
            record = self._records.ended(run_id)
            if record is None:
                return
            if tool is not None and kept is not None:
                tool.end(kept, answer_id)
                record.tree.warn(*kept.warnings)
                record.tree.is_paused = record.tree.is_paused or kept.status == "pending"
            record.tree.ended(record)
        self._end(record, root_error)

    # --- retrievers ---

    @_harmless
    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a retriever; it is a step, unless a tool or another retriever called it."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        k = asked_k(kwargs.get("metadata"))
        args = {"query": query} if k is None else {"query": query, "k": k}
        warnings: list[str] = []
        kept = kept_args(args, self._options, name, warnings)
        with self._lock:
            record = self._records.started("retriever", run_id, kwargs)
            if record is None:
                return
            record.name, record.tool = name, ToolRun(kept, args)
            around = record.outer
            if not record.is_inside_step:
                record.tree.warn(*warnings)
            elif around is not None and around.tool is not None and not record.is_retriever:
                record.tool.retrieval = Retrieval(k)
                if self._options.wants_documents(around.name or ""):
                    around.tool.retrievals = (*around.tool.retrievals, record.tool.retrieval)
            record.is_retriever = True

    @_harmless
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        """Record a retriever's documents as a JSON array of ``{id, text}``."""
        values = [document_value(document) for document in documents]
        record = self._records.get(run_id)
        is_step = record is not None and not record.is_inside_step
        if record is not None and record.tool is not None and record.tool.retrieval is not None:
            record.tool.retrieval.documents = values
        self._end_tool(run_id, Outcome("success", json_text(values) if is_step else ""))

    @_harmless
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a retriever."""
        self._end_tool(run_id, Outcome("error", error_text(error)), fails_root=True)

    # --- models ---

    @_harmless
    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Record the start of a model call, with the end of its prompt."""
        params, prompts, metadata = (kwargs.get(key) for key in ("invocation_params", "prompts", "metadata"))
        with self._lock:
            record = self._records.started("model", run_id, kwargs)
            if record is None:
                return
            tree = record.tree
            if record.is_top and tree.question is None:
                tree.question = question_in(messages[0]) if messages else next(iter(prompts or ()), None)
            model = record.model = ModelRun(
                model_name(params, metadata), unanswered_tool(params, kwargs.get("options"))
            )
            model.prompt = tree.prompt_end(messages[0]) if messages else ()
            if metadata is not None:
                model.node = metadata.get("langgraph_node")
                model.namespace = metadata.get("langgraph_checkpoint_ns")
                model.agent = record.graph_name() or metadata.get("lc_agent_name")
        if tree.kept is not None:  # without the lock, as redact is not ours
            warnings: list[str] = []
            prompt = messages[0] if messages else (prompts or ())[:1]
            model.input_messages = ranges(tree.kept.indices(prompt, warnings))
            model.tools = ranges(tree.kept.tool_indices(params, warnings))
            self._warn(run_id, *warnings)

    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **kwargs: Any) -> None:
        """Record the start of a call of a plain language model."""
        self.on_chat_model_start(serialized, [], prompts=prompts, **kwargs)

    @_harmless
    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token: text, reasoning or a part of a tool call, not an empty first chunk."""
        record = self._records.get(run_id)  # without the lock: tokens are many, and only the first one matters
        model = None if record is None else record.model
        if model is not None and model.first_token is None and (token or has_content(chunk)):
            model.first_token = perf_counter()

    @_harmless
    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token of a model that streams content blocks."""
        record = self._records.get(run_id)
        model = None if record is None else record.model
        if model is not None and model.first_token is None and event.get("event") == "content-block-delta":
            model.first_token = perf_counter()

    @_harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Record a model's result; ``redact``, which is not ours, is called without the lock."""
        warnings: list[str] = []
        reason = finish_reason(response)
        problems = answer_problems(response, reason, self._options, warnings)
        output = self._kept_output(run_id, response) if self._options.keep_messages else None
        message = generated_message(response)
        with self._lock:
            record = self._records.ended(run_id)
            if record is None:
                return
            tree, model = record.tree, record.model
            tree.warn(*warnings)
            if model is not None:
                model.problems, model.is_cache_hit = problems, is_cache_hit(message)
                model.call = model_call(response, model, reason=reason)
                model.message = message
                model.output_message = output
                if message is not None and message.tool_calls:
                    model.calls = [{**call, "args": to_plain(call["args"])} for call in message.tool_calls]
                if message is not None and message.id is not None:
                    model.is_known = message.id in self._records.reported_ids
                    self._records.reported_ids.add(message.id)
            if record.is_top:
                record.output = response
            tree.ended(record)
        self._end(record, None)

    def _kept_output(self, run_id: UUID, result: object) -> int | None:
        """Return the index of a model call's kept output: its first message, or a plain language model's text."""
        record = self._records.get(run_id)
        kept = None if record is None or record.model is None else record.tree.kept
        generation = first_generation(result) if isinstance(result, LLMResult) else None
        if kept is None or generation is None:
            return None
        message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
        warnings: list[str] = []
        (index,) = kept.indices([message], warnings)
        self._warn(run_id, *warnings)
        return index

    @_harmless
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a model call, with the tokens that were reported until then."""
        kept = self._kept_error(error, run_id)
        result = kwargs.get("response")
        output = self._kept_output(run_id, result) if self._options.keep_messages else None
        with self._lock:
            record = self._records.ended(run_id)
            if record is None:
                return
            model = record.model
            if model is not None:
                model.call = model_call(result if isinstance(result, LLMResult) else None, model, error=kept)
                model.output_message = output
            record.tree.ended(record)
        self._end(record, kept)
