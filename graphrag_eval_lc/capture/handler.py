"""The callback handler, which records each event in the tree of its run, and its context manager ``capture_run``."""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from time import perf_counter, time
from typing import Any, TypeVar, Unpack, cast
from uuid import UUID, uuid4

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.callbacks import GraphCallbackHandler
from langgraph.errors import GraphInterrupt, ParentCommand

from graphrag_eval_lc.capture import llm_calls, values
from graphrag_eval_lc.capture.interpret import interpreted
from graphrag_eval_lc.capture.messages import question_in
from graphrag_eval_lc.capture.record import ModelRun, Record, Records, RunKind, ToolRun, Tree, calling_run_id
from graphrag_eval_lc.capture.responses import Part, response_from, runs_of, runs_of_responses
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.records import ModelCall, Response
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import error_text

_LAST_OF_PROMPT = 100  # messages, in which calls may be answered
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

    Being ``run_inline``, it is called in the agent's own thread, by async agents too.
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

    def _start(
        self, kind: RunKind, run_id: UUID, event: Mapping[str, Any], name: Any, run: ToolRun | ModelRun | None = None
    ) -> Record | None:
        """Record the start of a run; ``event`` has its parent's id, metadata and tags."""
        parent_id, tags, metadata = event.get("parent_run_id"), event.get("tags") or (), event.get("metadata") or {}
        with self._lock:
            record = self._records.started(kind, run_id, parent_id, name, tags, metadata)
            if isinstance(run, ToolRun) and record is not None:
                record.tool = run
            elif isinstance(run, ModelRun) and record is not None:
                record.model = run
            return record

    def _end(self, run_id: UUID, note: Callable[[Record], None], error: str | None = None) -> None:
        """Record the end of a run: what ``note`` writes into its record, and perhaps the end of its tree."""
        record = None
        try:
            with self._lock:
                record = self._records.ended(run_id)
                if record is not None:
                    note(record)
        finally:
            if record is not None and record.is_top:
                self._end_tree(record, error)

    def _end_tree(self, record: Record, error: str | None) -> None:
        """End the tree of a root. A run that a block calls ends no tree: the block failed if its last run did.

        A tree is interpreted at once, as an agent may change its messages later. A tool alone has none: it is
        interpreted when its response is read.
        """
        tree = record.tree
        if tree.has_ended:
            return
        if record.parent is not None:
            tree.error = error if record.is_top else tree.error
            return
        with self._lock:
            tree.close(error)
            self._records.root_ended(tree)
        if record.tool is None or len(tree.events) > 2 or self._options.redact is not None:
            self._part(tree)  # without the lock, as redact is not ours; the tree changes no more

    def _part(self, tree: Tree) -> Part:
        """Return the interpretation of a tree, which is kept once the tree has ended, in place of its records."""
        part = self._parts.get(tree) or interpreted(tree, self._records.reported_ids, self._records.ends)
        with self._lock:
            if tree not in self._parts and self._records.has_ended(tree):
                self._parts[tree] = part
                tree.error, tree.waiting = part.error, part.waiting
                self._records.ends.update(part.ends)
                tree.drop_records()
            return self._parts.get(tree, part)

    # --- blocks of code, all runs of which make one response ---

    def open_block(self, question_id: str) -> UUID:
        """Begin a block, to which runs without a known parent belong, and return its id."""
        block_id = uuid4()
        self.on_block_start(run_id=block_id, parent_run_id=calling_run_id(), question_id=question_id)
        with self._lock:
            self._records.block_id = block_id
        return block_id

    @_harmless
    def on_block_start(self, *, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Note that a block begins, of this handler or of one inside its own."""
        with self._lock:
            self._records.block_started(run_id, parent_run_id, question_id)

    @_harmless
    def on_block_end(self, *, run_id: UUID, error: BaseException | None) -> None:
        """End the tree of a block."""
        with self._lock:
            if self._records.block_id == run_id:
                self._records.block_id = None
            record = self._records.ended(run_id)
            if record is not None and error is not None and not record.tree.events:
                self._records.trees.append(record.tree)
        if record is not None:
            self._end_tree(record, record.tree.error if error is None else error_text(error))

    # --- chains, graphs and their nodes ---

    @_harmless
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a root run, a graph, a node or another chain."""
        with self._lock:
            record = self._start("chain", run_id, kwargs, kwargs.get("name"))
            if record is not None:
                record.chain_started(inputs, kwargs.get("metadata") or {})
                if not record.has_input and not record.is_node:
                    self._records.resumed(record, is_command=inputs is not None)

    @_harmless
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the output of a root run, or the messages of a node."""
        self._end(run_id, lambda record: record.chain_ended(outputs))

    @_harmless
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the error of a root run, a pause, or a handoff."""

        def note(record: Record) -> None:
            if isinstance(error, GraphInterrupt):
                record.tree.is_paused = True
            elif isinstance(error, ParentCommand) and record.is_node:
                record.output = error.args
                record.tree.ended(record)

        is_error = not isinstance(error, (GraphInterrupt, ParentCommand))
        self._end(run_id, note, error_text(error) if is_error else None)

    @_harmless
    def on_interrupt(self, event: Any) -> None:
        """Note that langgraph pauses a run, perhaps before any node has started."""
        with self._lock:
            record = self._records.open.get(getattr(event, "run_id", None))
            if record is not None:
                record.is_interrupted = record.tree.is_paused = True

    @_harmless
    def on_resume(self, event: Any) -> None:
        """Note that langgraph resumes a thread, perhaps with no node left to run."""
        with self._lock:
            record = self._records.open.get(getattr(event, "run_id", None))
            if record is not None and not record.is_graph:
                record.note_graph()

    # --- tools and retrievers ---

    @_harmless
    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the start of a tool, with a copy of the arguments, as the tool may change them."""
        is_retry = any(tag.startswith(_RETRY_TAG) for tag in kwargs.get("tags") or ())
        tool = ToolRun(values.args_snapshot(kwargs.get("inputs"), input_str), kwargs.get("tool_call_id"), is_retry)
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        self._start("tool", run_id, kwargs, name, tool)

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
        """Record the error of a tool, or that it waits for somebody."""
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
        tool = ToolRun({"query": query} if k is None else {"query": query, "k": k}, k=k)
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        record = self._start("retriever", run_id, kwargs, name, tool)
        if record is not None:
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

    on_retriever_error = on_tool_error

    def _end_tool(
        self, run_id: UUID, outcome: values.Outcome, *, answer_id: str | None = None, documents: Any = None
    ) -> None:
        """Record the end of a tool or retriever, with a copy of its artifact, as others may change it."""
        if (artifact := outcome.artifact) is not None:
            documents = values.documents_in(artifact)
            outcome = outcome._replace(artifact=values.to_plain(artifact) if self._options.keep_artifacts else None)

        def note(record: Record) -> None:
            if record.tool is not None:
                record.tool.outcome, record.tool.ended = outcome, perf_counter()
                record.tool.answer_id, record.tool.documents = answer_id, documents
            record.tree.is_paused = record.tree.is_paused or outcome.status == "pending"
            record.tree.ended(record)

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
            record = self._start("model", run_id, kwargs, None, model)
            if record is None:
                return
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
                message = llm_calls.generated_message(result)
                model.result, model.error, model.has_ended = result, error, True
                model.call |= llm_calls.model_call(result, has_ended=error is None)
                model.call[ELAPSED_SEC] = perf_counter() - model.started
                first = None if result is None or model.given is None else llm_calls.first_generation(result)
                model.gave = [] if first is None else llm_calls.given_messages([message or AIMessage(first.text)])
                if message is not None and error is None:
                    model.message = message
                    model.calls = [{**call, "args": values.to_plain(call["args"])} for call in message.tool_calls]
                    if message.id is not None:
                        self._records.reported_ids.add(message.id)
            if record.is_top and error is None:
                record.output = result
            record.tree.ended(record)

        self._end(run_id, note, error)


class GraphRAGEvalCallbackHandler(RunCallbacks):
    """Records the runs of agents as graphrag-eval responses.

    One handler records any number of runs, one after the other or at the same time. It never raises into the agent;
    what it could not record is listed in the response's ``capture_warnings``.

    Args:
        step_names: The steps' names in ``actual_steps`` by tool name; other tools keep their names.
        retrieval_documents: Whether a successful step's output is the documents that its tool retrieved, as a JSON
            array of ``{"id", "text"}``, which retrieval matching needs: True for all tools, or the names of some. The
            documents are those of the retrievers that the tool ran, else its artifact if that is a list of
            documents. ``args.k`` is taken from a single retriever's metadata (``metadata={"k": 5}``), unless the tool
            has such an argument; an unknown ``k`` is left out. Off by default: the output is what the model read.
        max_output_chars: The number of characters to which outputs and errors of steps are cut, with a warning; the
            step has the length of the whole as ``full_length``. What was cut scores 0 when rows, documents or JSON are
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
        """Return the state for a copy, which has the runs that have ended."""
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
        """Return the response that a question's runs would have if they ended now; they continue.

        Args:
            question_id: The question.
            error: The error with which they would end, and whatever is under way in them.

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
    """Return a handler with the same options and no runs; the options need no further check."""
    new: GraphRAGEvalCallbackHandler = object.__new__(type(handler))
    RunCallbacks.__init__(new, handler._options)
    return new


_current: ContextVar[GraphRAGEvalCallbackHandler | None] = ContextVar("graphrag_eval_lc_capture", default=None)
register_configure_hook(_current, inheritable=True)  # once: each registration stays for good


@contextmanager
def capture_run(
    *, question_id: str | int | None = None, **options: Unpack[values.CaptureKeywords]
) -> Iterator[GraphRAGEvalCallbackHandler]:
    """Record every run that starts inside the ``with`` block, in this thread or task.

    With a question id the whole block is one response: a hand-written loop around ``model.invoke`` and
    ``tool.invoke``, chains, and agents, whatever ids their metadata has. Its question is that of the first input that
    has one, its answer that of the last model, chain or agent, its time the block's. An exception that leaves the
    block is the response's error, and so is that of its last run. Without a question id each root run is a separate
    response.

    A block inside another one records into both, each with its own options. There too, a block with a question id is
    one response; inside another block with a question id it is a part of that one.

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
