"""The callbacks of the handler, which write each event of LangChain and LangGraph into the record of its run."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, time
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langgraph.callbacks import GraphCallbackHandler
from langgraph.errors import GraphInterrupt, ParentCommand

from graphrag_eval_lc.capture import llm_calls, values
from graphrag_eval_lc.capture.interpret import interpreted
from graphrag_eval_lc.capture.messages import question_in
from graphrag_eval_lc.capture.record import ModelRun, Record, Records, ToolRun, Tree, calling_run_id
from graphrag_eval_lc.capture.responses import Part
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import error_text

_LAST_OF_PROMPT = 100  # the number of messages at a prompt's end in which answers to tool calls are searched
_RETRY_TAG = "retry:attempt:"  # with_retry tags its retries

_Callback = TypeVar("_Callback", bound=Callable[..., None])


def _harmless(callback: _Callback) -> _Callback:
    """Turn a failure of our callback into a capture warning, and pass the event on to the enclosing block's handler."""
    name = callback.__name__

    @functools.wraps(callback)
    def harmless(self: "RunCallbacks", *args: Any, **kwargs: Any) -> None:
        try:
            callback(self, *args, **kwargs)
        except Exception as error:
            warnings: list[str] = []
            text = self._options.kept_text(error_text(error), "error", warnings)
            with self._lock:
                record = self._records.open.get(kwargs.get("run_id"))
                for tree in [record.tree] if record is not None else self._records.trees[-1:]:
                    tree.warnings |= dict.fromkeys([f"capture failed in {name}: {text}", *warnings])
        if self._enclosing is not None:
            if self._records.block_id is not None and kwargs.get("parent_run_id", "") is None:
                caller_id = calling_run_id()
                with self._lock:
                    is_known = self._records.open.get(caller_id) is not None
                    kwargs["parent_run_id"] = caller_id if is_known else self._records.block_id
            getattr(self._enclosing, name)(*args, **kwargs)

    return cast("_Callback", harmless)


class RunCallbacks(GraphCallbackHandler):
    """Records the runs of agents, in any number of threads. Never raises into the agent.

    ``run_inline`` has async agents call it in their own thread, too.
    """

    run_inline = True
    raise_error = False

    def __init__(self, options: values.CaptureOptions) -> None:
        super().__init__()
        self._options = options
        self._lock = threading.RLock()
        self._records = Records(options)
        self._parts: dict[Tree, Part] = {}  # the interpretations of the trees that have ended
        self._enclosing: RunCallbacks | None = None  # the handler of the capture_run() block around this one

    def _end(self, run_id: UUID, note: Callable[[Record], None], error: str | None = None) -> None:
        """Record the end of a run: call ``note`` with its record, and end its tree if the run is a root.

        A run that a block calls does not end its tree, but its error becomes the block's. A tree is interpreted at
        once, as an agent may change its messages later. A single tool call has no messages, so it is interpreted when
        its response is read.
        """
        record = None
        try:
            with self._lock:
                record = self._records.ended(run_id)
                if record is not None:
                    note(record)
        finally:
            if record is not None and record.is_top and not record.tree.has_ended:
                tree = record.tree
                if record.kind != "block":
                    tree.error = error
                if record.parent is None:
                    with self._lock:
                        tree.close(tree.error if error is None else error)
                        self._records.root_ended(tree)
                    if record.tool is None or len(tree.events) > 2 or self._options.redact is not None:
                        self._part(tree)  # without the lock, as redact is not ours; the tree changes no more

    def _part(self, tree: Tree) -> Part:
        """Return the interpretation of a tree; once the tree has ended, it is kept in place of the records."""
        part = self._parts.get(tree) or interpreted(tree, self._records.reported_ids, self._records.ends)
        with self._lock:
            if tree not in self._parts and tree.has_ended and self._records.closed.get(tree.root_id):
                self._parts[tree] = part
                tree.error, tree.thread = part.error, part.thread
                self._records.ends.update(part.thread.ends)
                for record, _, _ in tree.events:
                    record.scope = record.node = None  # breaks cycles, which would wait for garbage collection
                tree.events, tree.known, tree.first_seen = [], {}, {}
            return self._parts.get(tree, part)

    # --- blocks of code: all runs in a block form one response ---

    def open_block(self, question_id: str) -> UUID:
        """Begin a block, to which runs without a known parent belong, and return its id."""
        block_id = uuid4()
        self.on_block_start(run_id=block_id, parent_run_id=calling_run_id(), question_id=question_id)
        with self._lock:
            self._records.block_id = block_id
        return block_id

    @_harmless
    def on_block_start(self, *, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Record the start of a block of this handler, or of a handler whose block is inside this one's."""
        with self._lock:
            self._records.block_started(run_id, parent_run_id, question_id)

    @_harmless
    def on_block_end(self, *, run_id: UUID, error: BaseException | None) -> None:
        """End the tree of a block; one without a run is a response only if an exception left it."""

        def note(record: Record) -> None:
            if error is not None and not record.tree.events:
                self._records.trees.append(record.tree)

        with self._lock:
            if self._records.block_id == run_id:
                self._records.block_id = None
        self._end(run_id, note, None if error is None else error_text(error))

    # --- chains, graphs and their nodes ---

    @_harmless
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a root run, a graph, a node or another chain."""
        with self._lock:
            record = self._records.started("chain", run_id, kwargs, kwargs.get("name"))
            if record is not None:
                record.chain_started(inputs, kwargs.get("metadata") or {}, has_type="run_type" in kwargs)
                if not record.has_input and not record.is_node:
                    self._records.resumed(record, is_command=inputs is not None)
        node = self._options.nodes.get(record.name) if record is not None and record.is_node else None
        if record is not None and node is not None:
            record.step_id, args = uuid4(), values.node_args(node, inputs)
            self.on_tool_start({"name": record.name}, "", run_id=record.step_id, parent_run_id=run_id, inputs=args)

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the output of a root run, or the messages of a node."""
        try:
            if (record := self._records.open.get(run_id)) is not None and record.step_id is not None:
                self.on_tool_end(values.node_output(self._options.nodes[record.name], outputs), run_id=record.step_id)
        finally:  # a property of what the node returned may raise
            self._end(run_id, lambda record: record.chain_ended(outputs))

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a root run, a pause, or a handoff."""

        def note(record: Record) -> None:
            if isinstance(error, GraphInterrupt):
                record.tree.is_paused = True
            elif isinstance(error, ParentCommand) and record.is_node:
                record.chain_ended(error.args)

        if (record := self._records.open.get(run_id)) is not None and record.step_id is not None:
            self.on_tool_error(error, run_id=record.step_id)
        is_error = not isinstance(error, (GraphInterrupt, ParentCommand))
        self._end(run_id, note, error_text(error) if is_error else None)

    @_harmless
    def on_interrupt(self, event: Any) -> None:
        """Note that langgraph pauses a run; this may happen before any node has started."""
        with self._lock:
            record = self._records.open.get(getattr(event, "run_id", None))
            if record is not None:
                record.is_interrupted = record.tree.is_paused = True
                if record.is_top:
                    record.tree.paused_at = getattr(event, "checkpoint_id", None)

    @_harmless
    def on_resume(self, event: Any) -> None:
        """Note that langgraph resumes a thread; no node may be left to run."""
        with self._lock:
            record = self._records.open.get(getattr(event, "run_id", None))
            if record is not None and record.is_top:
                paused = record.tree.resumes or record.tree
                checkpoint = getattr(event, "checkpoint_id", None)
                record.is_unchanged = checkpoint is not None and checkpoint == paused.paused_at
            if record is not None and not record.is_graph:
                record.note_graph()

    # --- tools and retrievers ---

    @_harmless
    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a tool, with a copy of the arguments, as the tool may change them."""
        is_retry = any(tag.startswith(_RETRY_TAG) for tag in kwargs.get("tags") or ())
        tool = ToolRun(values.args_snapshot(kwargs.get("inputs"), input_str), kwargs.get("tool_call_id"), is_retry)
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        with self._lock:
            record = self._records.started("tool", run_id, kwargs, name)
            if record is not None:
                record.tool = tool

    @_harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record what the tool returned."""
        if type(output) is str:
            self._end_tool(run_id, values.Outcome("success", output))
            return
        record = self._records.open.get(run_id)
        call_id = None if record is None or record.tool is None else record.tool.call_id
        message = values.tool_message_of(output, call_id)
        if message is not None:
            self._end_tool(run_id, values.message_outcome(message), answer_id=message.tool_call_id)
        else:
            text = values.mcp_text(output) if type(output) is list else None
            self._end_tool(run_id, values.Outcome("success", values.output_text(output) if text is None else text))

    @_harmless
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a tool, a pause inside it, or a handoff."""
        if isinstance(error, GraphInterrupt):
            self._end_tool(run_id, values.Outcome("pending", ""))
        elif isinstance(error, ParentCommand):
            self._end_tool(run_id, values.Outcome("success", values.output_text(error.args[0] if error.args else None)))
        else:
            self._end_tool(run_id, values.Outcome("error", error_text(error)))

    @_harmless
    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a retriever; it is a step, unless a tool or another retriever called it."""
        k = (kwargs.get("metadata") or {}).get("k")
        k = k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else None
        args = {"query": values.to_plain(query)}
        tool = ToolRun(args if k is None else {**args, "k": k}, k=k)
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        with self._lock:
            record = self._records.started("retriever", run_id, kwargs, name)
            if record is not None:
                record.tool = tool
                around = record.outer.tool if record.outer is not None and record.is_inside_step else None
                if around is not None and not record.is_retriever:
                    around.retrievers.append(tool)
                record.is_retriever = True

    @_harmless
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        """Record a retriever's documents as a JSON array of ``{id, text}``."""
        found = list(map(values.document_value, documents))
        record = self._records.open.get(run_id)
        is_step = record is not None and not record.is_inside_step
        self._end_tool(run_id, values.Outcome("success", json_text(found) if is_step else ""), documents=found)

    @_harmless
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a retriever."""
        self._end_tool(run_id, values.Outcome("error", error_text(error)))

    def _end_tool(
        self, run_id: UUID, outcome: values.Outcome, *, answer_id: str | None = None, documents: Any = None
    ) -> None:
        """Record the end of a tool or retriever, with a copy of its artifact, as the agent may change it later."""
        if (artifact := outcome.artifact) is not None:
            documents = values.documents_in(artifact)
            outcome = outcome._replace(artifact=values.to_plain(artifact) if self._options.keep_artifacts else None)

        def note(record: Record) -> None:
            if record.tool is not None:
                record.tool.outcome, record.tool.ended = outcome, perf_counter()
                record.tool.answer_id, record.tool.documents = answer_id, documents
            record.tree.is_paused = record.tree.is_paused or outcome.status == "pending"
            record.tree.events.append((record, True, time()))

        self._end(run_id, note, outcome.text if outcome.status == "error" and answer_id is None else None)

    # --- models ---

    @_harmless
    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Record the start of a model call, with the end of its prompt."""
        params, metadata = kwargs.get("invocation_params"), kwargs.get("metadata") or {}
        prompt: Sequence[Any] = messages[0] if messages else (kwargs.get("prompts") or ())[:1]
        call: ModelCall = {"started_at": values.utc_timestamp(time())}
        if (name := llm_calls.model_name(params, metadata)) is not None:
            call["model"] = name
        if (node := metadata.get("langgraph_node")) is not None:
            call["node"] = node
        if "|" in (namespace := metadata.get("langgraph_checkpoint_ns") or ""):
            nodes = [part.rpartition(":")[0] or part for part in namespace.split("|") if not part.isdigit()]
            if len(nodes) > 1:
                call["node_path"] = nodes
        is_structured = bool((kwargs.get("options") or {}).get("ls_structured_output_format"))
        model = ModelRun(call, is_structured, prompt[-_LAST_OF_PROMPT:] if messages else ())
        if self._options.keep_messages:
            model.given, tools = (
                llm_calls.given_messages(prompt),
                params.get("tools") if isinstance(params, Mapping) else (),
            )
            model.tools = tools if isinstance(tools, (list, tuple)) else ()
        with self._lock:
            record = self._records.started("model", run_id, kwargs, None)
            if record is None:
                return
            record.model = model
            graph = record.scope  # the nested graph around it, often an agent's, has LangGraph's name by default
            is_named = graph is not None and graph.parent is not None and graph.name != "LangGraph"
            agent = graph.name if graph is not None and is_named else None
            if (agent := agent or metadata.get("lc_agent_name")) is not None:
                call["agent"] = agent
            if record.is_top and prompt and record.tree.question is None:
                record.tree.question = question_in(prompt)

    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **kwargs: Any) -> None:
        """Record the start of a call of a plain language model."""
        self.on_chat_model_start(serialized, [], prompts=prompts, **kwargs)

    @_harmless
    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token: text, reasoning or a part of a tool call, not an empty first chunk."""
        message = getattr(chunk, "message", None)
        calls = getattr(message, "tool_call_chunks", None)
        if token or (message is not None and (message.content or calls or message.additional_kwargs)):
            self._note_token(run_id)

    @_harmless
    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the time of the first token of a model that streams content blocks."""
        if event.get("event") == "content-block-delta":
            self._note_token(run_id)

    def _note_token(self, run_id: UUID) -> None:
        record = self._records.open.get(run_id)  # without the lock: tokens are many, and only the first one matters
        if record is not None and record.model is not None and record.model.first_token is None:
            record.model.first_token = perf_counter()

    @_harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Record a model's result."""
        self._end_model(run_id, response)

    @_harmless
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a model call, with what was generated until then."""
        self._end_model(run_id, kwargs.get("response"), error_text(error))

    def _end_model(self, run_id: UUID, response: object, error: str | None = None) -> None:
        result = response if isinstance(response, LLMResult) else None

        def note(record: Record) -> None:
            if (model := record.model) is not None:
                first, message = llm_calls.generated(result)
                model.result, model.error, model.has_ended = result, error, True
                model.call |= llm_calls.model_call(result, has_ended=error is None)
                model.call[ELAPSED_SEC] = perf_counter() - model.started
                if first is not None and model.given is not None:
                    model.gave = llm_calls.given_messages([message or AIMessage(first.text)])
                if message is not None and error is None:
                    model.message = message
                    model.calls = [{**call, "args": values.to_plain(call["args"])} for call in message.tool_calls]
                    if message.id is not None:
                        self._records.reported_ids.add(message.id)
            if record.is_top and error is None:
                record.output = result
            record.tree.events.append((record, True, time()))

        self._end(run_id, note, error)
