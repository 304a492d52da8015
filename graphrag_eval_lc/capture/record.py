"""Records what callbacks report: a tree for each root run or block of code, with a small record for each run inside.

Recording decides only which tree a run belongs to and which paused run it resumes; ``interpret`` does the rest. It
copies only what others may change later: arguments, outputs, and the new part of each list of messages.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.types import Command

from graphrag_eval_lc.capture.llm_calls import GivenMessage
from graphrag_eval_lc.capture.messages import (
    end_of,
    id_of,
    is_interrupted,
    loose_calls,
    message_lists,
    question_in,
    role_and_content,
)
from graphrag_eval_lc.capture.values import CaptureOptions, Outcome, kept_config
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.texts import text_of

_NODE_TAG = "graph:step:"
_ENTRYPOINT = ("__start__",)  # what triggers the one node of an @entrypoint
_NO_GRAPHS = "Runnable"  # LangChain's own chains have names that begin so
_STATE_UPDATE = "UpdateState"  # graph.update_state makes runs whose names end in this
_FIRST_STEPS = ("graph:step:0", "graph:step:1")  # the first on a new thread: of the functional API, and of a graph

RunKind = Literal["block", "chain", "tool", "retriever", "model"]


class MessageList(NamedTuple):
    """The new messages of one list; ``before`` is the known message that precedes them, if any."""

    items: Sequence[Any]
    before: Any = None


@dataclass(slots=True, eq=False, repr=False)
class ToolRun:
    """What is recorded about the run of a tool or retriever."""

    args: dict[str, Any]
    call_id: str | None = None
    is_retry: bool = False  # whether with_retry retries it
    k: int | None = None  # the number of documents requested from a retriever
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    outcome: Outcome | None = None
    ended: float = 0.0
    answer_id: str | None = None  # the call id of the message in its output
    documents: list[dict[str, Any]] | None = None  # those of a retriever, or of a tool's artifact
    retrievers: "list[ToolRun]" = field(default_factory=list)  # those that this tool runs

    def retrieved(self) -> tuple[list[dict[str, Any]] | None, int | None]:
        """Return the documents of a tool's retrievers or of its artifact, and the ``k`` of a single retriever."""
        found = [each for each in self.retrievers if each.documents is not None]
        documents = [document for each in found for document in each.documents or ()]
        return documents if found else self.documents, found[0].k if len(found) == 1 else None


@dataclass(slots=True, eq=False, repr=False)
class ModelRun:
    """What is recorded about a model call."""

    call: ModelCall  # its entry in the response's llm_calls
    is_structured: bool = False  # whether its tool calls are structured output, which no tool answers
    prompt: Sequence[BaseMessage] = ()  # the end of its prompt
    started: float = field(default_factory=perf_counter)
    first_token: float | None = None  # the perf_counter at the first token of a stream
    has_ended: bool = False
    result: LLMResult | None = None
    error: str | None = None
    message: AIMessage | None = None
    calls: Sequence[ToolCall] = ()  # a copy of the tool calls in its message
    given: Sequence[GivenMessage] | None = None  # the prompt, if messages are kept
    gave: Sequence[GivenMessage] = ()  # the output, if messages are kept
    tools: Sequence[Any] = ()  # the definitions of tools, if messages are kept
    # Whether no callback reported it: only its message shows it, which had an id, unlike one that a node's code made.
    is_from_elsewhere: bool = False


class Record:
    """One run. Defaults are attributes of the class, as a record is made at each start and must be cheap."""

    outer: "Record | None" = None  # the nearest tool or retriever around it that is a step
    name: Any = None
    is_node = False
    is_inside_step = False  # whether a tool or retriever called it, with no graph in between
    is_retriever = False  # whether it is a retriever, or runs inside one
    path: Any = None  # langgraph's path of the task in which it runs
    graph_step: Any = None  # langgraph's step number of that task
    has_input = True  # False if its input is None or a Command, which resume a thread
    input_messages: Sequence[MessageList] = ()  # the lists of messages in its input
    output_messages: Sequence[MessageList] = ()  # the lists of messages in its output
    output: Any = None  # kept for roots, runs that a block calls directly, and nodes
    is_graph = False  # whether it is a graph
    continues_thread = False  # whether it is a graph that resumes or continues a thread
    has_nodes: bool | None = None  # whether it is a graph with a state; None while none of its nodes has started
    is_interrupted = False  # whether it is a paused graph
    is_unchanged = False  # whether it resumes a graph whose state nobody changed during the pause
    may_be_graph = False  # whether it may be a nested graph none of whose nodes has started
    input: Any = None  # kept for nested graphs
    is_graph_run = False  # whether its metadata say that it is a graph, or inside one
    loose_calls: Sequence[ToolCall] = ()  # the tool calls in its input without their message
    tool: ToolRun | None = None
    model: ModelRun | None = None
    step_id: UUID | None = None  # of a node that is recorded as a step: the id of that step's record

    def __init__(
        self, run_id: UUID, kind: RunKind, parent: "Record | None", question_id: str | None, options: CaptureOptions
    ) -> None:
        self.run_id, self.kind, self.parent = run_id, kind, parent
        self.tree: Tree = Tree(run_id, question_id, options) if parent is None else parent.tree
        # Whether it is a root, or a run that a block calls directly.
        self.is_top = parent is None or (parent.kind == "block" and kind != "block")
        # The graph run around it, and the node, or the root, in which it runs.
        self.scope: Record | None = self if parent is None else parent.scope
        self.node: Record | None = self if parent is None else parent.node

    def add_place(self, parent: "Record", tags: Sequence[str], metadata: Mapping[str, Any]) -> None:
        """Note the graph, node and step in which this run is, from its parent, tags and metadata."""
        self.outer = parent if parent.tool is not None and not parent.is_inside_step else parent.outer
        self.path, self.graph_step = metadata.get("langgraph_path"), metadata.get("langgraph_step")
        for tag in tags if self.kind == "chain" else ():
            if tag.startswith(_NODE_TAG):
                self.is_node = True
                parent.has_nodes = parent.has_nodes or metadata.get("langgraph_triggers") != _ENTRYPOINT
                # The nodes of a run that a block calls directly are those of the block.
                self.scope, self.node = parent.scope if parent.is_top else parent, self
                if not parent.is_graph:
                    parent.note_graph(tag)
                return
        parent.may_be_graph = False
        if not parent.is_graph:
            parent.input = None
        self.is_inside_step = parent.is_inside_step or parent.tool is not None
        self.is_retriever = parent.is_retriever

    def note_graph(self, step: str | None = None) -> None:
        """Note that this is a graph; ``step`` is the tag of its first node, None if it is resumed or from the cache."""
        self.is_graph = True
        self.continues_thread = step not in _FIRST_STEPS or not self.has_input
        if self.input is not None and self.has_input:  # it may hold messages that no callback reported
            self.input_messages = self.tree.read(self.input)

    def chain_started(self, inputs: Any, metadata: Mapping[str, Any], *, has_type: bool) -> None:
        """Record the input of a chain; ``has_type`` is whether it reports a type of run, which no graph does."""
        tree = self.tree
        self.has_input = inputs is not None and not isinstance(inputs, Command)
        if self.is_top:
            self.is_graph_run = "ls_integration" in metadata
            tree.question = question_in(inputs) if tree.question is None else tree.question
        if self.is_top or self.is_node:
            self.input_messages, self.loose_calls = tree.read(inputs), loose_calls(inputs)
        elif not has_type and not str(self.name).startswith(_NO_GRAPHS):
            self.input, self.may_be_graph = inputs, True
        if not self.is_node and (thread_id := metadata.get("thread_id")) is not None:
            tree.thread_ids |= {text_of(thread_id)}

    def chain_ended(self, outputs: Any) -> None:
        """Record the output of a chain."""
        tree = self.tree
        if self.is_top or self.is_node:
            tree.is_paused = tree.is_paused or (self.is_top and is_interrupted(outputs))
            self.output, self.output_messages = outputs, tree.read(outputs)
        elif self.is_graph or (self.may_be_graph and isinstance(outputs, Mapping)):
            if self.is_graph and self.scope is not None and self.scope.parent is None and not self.scope.is_graph:
                tree.is_paused = self.is_interrupted
            # With answers from langgraph's cache, if it has any.
            if lists := tree.read(outputs, inputs=self.input):
                if not self.is_graph:
                    self.note_graph()
                self.output_messages, self.scope = lists, self
        else:  # a function that is not a node, such as a @task, may answer calls
            given = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
            if messages := [message for message in given if isinstance(message, ToolMessage)]:
                for message in messages:
                    tree.note(message)
                self.output_messages = [MessageList(messages)]
        if self.is_top or self.is_node or self.output_messages:
            tree.events.append((self, True, time()))
        self.input = None


class Thread(NamedTuple):
    """What a run passes on to the next one on its thread, which reads it and passes on its own."""

    ends: Sequence[str] = ()  # the ids of the last messages of its outputs
    message_ids: Mapping[str, None] = {}  # if it is paused: the ids of its last messages, with those of runs before it
    waiting: Sequence[Any] = ()  # its unanswered calls


NOTHING_LEFT = Thread()


@dataclass(slots=True, eq=False, repr=False)
class Tree:
    """The records of one root run or block, in the order of their events. A tree that has ended does not change."""

    root_id: UUID
    question_id: str | None  # from the root's metadata, or of the block
    options: CaptureOptions
    # (record, is_end, seconds since 1970): one event for each start, one for each end
    events: list[tuple[Record, bool, float]] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    question: str | None = None
    error: str | None = None
    is_paused: bool = False
    has_ended: bool = False
    thread_ids: frozenset[str] = frozenset()
    resumes: "Tree | None" = None  # the tree of the paused run that it resumes
    run_ids: list[UUID] = field(default_factory=list)  # LangChain's ids of the root, or of the runs that a block calls
    trace_ids: dict[str, str] = field(default_factory=dict)  # the ids that other tracers have for the run
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    elapsed_sec: float | None = None
    paused_at: str | None = None  # the id of langgraph's checkpoint at the pause
    thread: Thread = NOTHING_LEFT  # what it leaves, once it is interpreted
    known: dict[Any, Any] = field(default_factory=dict)  # the messages read so far, by id and by object
    # Ids of messages when first read, as langgraph adds ids later; of tools' also what an agent may clear or change.
    first_seen: dict[int, tuple[Any, Any, Any]] = field(default_factory=dict)

    @property
    def earlier(self) -> Thread:
        """What the paused run that this one resumes has left."""
        return NOTHING_LEFT if self.resumes is None else self.resumes.thread

    def read(self, value: Any, *, inputs: Any = None) -> Sequence[MessageList]:
        """Return each list of messages in a node's input or output, without the messages that were read before.

        Each list is read from its end up to the first known message. With the ``inputs`` of a nested graph, ``value``
        is its state: only the lists that continue those inputs are read, up to their end.
        """
        lists: list[MessageList] = []
        lasts = [messages[-1] for messages in message_lists(inputs)]
        ids, contents = {*map(id_of, lasts)} - {None}, list(map(role_and_content, lasts))
        for messages in message_lists(value):
            first = 0
            if inputs is not None:
                first = end_of(messages, lambda item: id_of(item) in ids or role_and_content(item) in contents) or 0
                if not first:
                    continue
            items: list[Any] = []
            before = messages[first - 1] if first else None
            for item in reversed(messages[first:]):
                known = item if self.known.get(id(item)) is item else self.known.get(id_of(item))
                if known is not None and is_same_version(known, item):
                    before = item
                    break
                items.append(item)
            items.reverse()
            for item in items:
                self.known[id(item)] = item
                if (identifier := self.note(item)) is not None:
                    self.known[identifier] = item
            lists.append(MessageList(items, before))
        return lists

    def note(self, message: Any) -> str | None:
        """Remember the present id, content and status of a message that is read for the first time; return its id."""
        identifier = id_of(message)
        if id(message) not in self.first_seen:
            said = (message.content, message.status) if isinstance(message, ToolMessage) else (None, None)
            self.first_seen[id(message)] = identifier, *said
        return identifier

    def had_id(self, item: Any) -> bool:
        """Return whether a message had an id when it was first read."""
        return self.first_seen.get(id(item), (id_of(item),))[0] is not None

    def as_read(self, message: ToolMessage) -> ToolMessage:
        """Return a tool message as it was when it was first read."""
        _, content, status = self.first_seen.get(id(message), (None, message.content, message.status))
        if content is message.content and status == message.status:
            return message
        return message.model_copy(update={"content": content, "status": status})

    def close(self, error: str | None = None) -> None:
        """End the run, unless it has ended."""
        if not self.has_ended:
            self.error, self.elapsed_sec, self.has_ended = error, perf_counter() - self.started, True


class Records:
    """The trees of one handler; finds the tree of each run. Its methods must be called under the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.trees: list[Tree] = []  # in start order; a block appears when its first run starts
        self.block_id: UUID | None = None  # the handler's own open block, to which runs without a known parent belong
        self.reported_ids: set[str] = set()  # the ids of all messages in the callbacks of models
        self.ends: set[str] = set()  # the ids of the last messages of all ended runs
        self.open: dict[UUID | None, Record] = {}  # the runs under way
        # Runs whose events are ignored. True for ended roots, which are remembered; False for runs that are forgotten
        # as soon as they end.
        self.closed: dict[UUID | None, bool] = {}
        self._paused: list[Tree] = []  # the last paused run on each thread, and each paused run without a thread

    def started(self, kind: RunKind, run_id: UUID, event: Mapping[str, Any], name: Any) -> Record | None:
        """Return the record of a run that starts, or None if it is not to be recorded.

        That is the case if the run is known already because the handler is registered twice, if its tree has ended, or
        if it is a call of ``graph.update_state``, which does not run the agent. ``event`` is the callback's keywords.
        """
        if run_id in self.open or (self.closed and run_id in self.closed):
            return None
        parent_id, tags, metadata = event.get("parent_run_id"), event.get("tags") or [], event.get("metadata") or {}
        parent, question_id = self.open.get(parent_id), metadata.get("question_id")
        if parent is None:
            is_graph = parent_id is not None or metadata.get("ls_integration") == "langgraph"
            if parent_id in self.closed or (not is_graph and str(name).endswith(_STATE_UPDATE)):
                self.closed[run_id] = False
                return None
        if question_id is not None and type(question_id) is not str:
            question_id = text_of(question_id)
        parent = parent or self._calling_record(question_id)
        record = self.open[run_id] = Record(run_id, kind, parent, question_id, self._options)
        record.name, tree, events = name, record.tree, record.tree.events
        if record.is_top:
            if not events:
                tree.tags, tree.metadata = kept_config(tags, metadata)
                self.trees.append(tree)
            tree.run_ids.append(run_id)
            if question_id not in (None, tree.question_id):
                warning = f"a run of question {question_id} was called for question {tree.question_id} and counts there"
                tree.warnings[warning] = None
        elif parent is not None:
            record.add_place(parent, tags, metadata)
        if len(events) < _MOST_LOOKS:
            look_for_traces(tree)
        events.append((record, False, time()))
        return record

    def _calling_record(self, question_id: str | None) -> Record | None:
        """Return the parent of a run that reports none: the run whose code called it, otherwise the open block.

        A calling run of another question does not count. A run reports no known parent if the handler is passed again
        inside a tool, or if it is a model of ``with_fallbacks``.
        """
        caller = self.open.get(calling_run_id())
        if caller is not None and question_id in (None, caller.tree.question_id):
            return caller
        return self.open.get(self.block_id)

    def resumed(self, record: Record, *, is_command: bool) -> None:
        """Find the paused run that a run resumes: one on its thread, otherwise the last one of its question."""
        tree = record.tree
        if record.is_top:
            tree.is_paused = False
        # An input of None may mean something else; a Command is for graphs only.
        is_sure = is_command or (record.is_top and tree.question_id is not None)
        for paused in reversed(self._paused) if tree.resumes is None else ():
            if paused.thread_ids and tree.thread_ids:
                questions = {paused.question_id, tree.question_id} - {None}
                is_resumed = len(questions) < 2 and not paused.thread_ids.isdisjoint(tree.thread_ids)
            else:
                is_resumed = is_sure and paused.question_id == tree.question_id
            if is_resumed:
                tree.resumes = paused
                self._forget_paused(paused)
                return

    def _forget_paused(self, tree: Tree) -> None:
        self._paused = [each for each in self._paused if each is not tree and not each.thread_ids & tree.thread_ids]

    def ended(self, run_id: UUID) -> Record | None:
        """Return the record of a run that ends; None if its tree has ended."""
        record = self.open.get(run_id)
        if record is None:
            if self.closed.get(run_id) is False:
                del self.closed[run_id]
            return None
        if record.is_top and record.kind != "block":  # a tracer that is called after this handler knows its span now
            look_for_traces(record.tree)
        if record.parent is not None:  # a root stays until its tree has ended
            del self.open[run_id]
        return record

    def root_ended(self, tree: Tree) -> None:
        """Stop recording a tree that has ended; if it is paused, remember it as the run to resume on its threads."""
        if self.open.pop(tree.root_id, None) is not None:  # the handler was not cleared meanwhile
            self.closed[tree.root_id] = True
        for run_id in [run_id for run_id, record in self.open.items() if record.tree is tree]:
            del self.open[run_id]
            self.closed[run_id] = False
        if self._paused:
            self._forget_paused(tree)
        if tree.is_paused:
            self._paused.append(tree)

    def block_started(self, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Record a block of code, whose runs form one tree; inside a known run they belong to that run's tree."""
        parent = self.open.get(parent_run_id) or self._calling_record(None)
        if parent is None or parent.kind == "block":
            self.open[run_id] = Record(run_id, "block", parent, question_id, self._options)
        else:
            self.started("chain", run_id, {"parent_run_id": parent.run_id}, None)

    def of_ended_runs(self) -> "Records":
        """Return a copy without the runs under way."""
        copied = Records(self._options)
        copied.trees, copied._paused = [tree for tree in self.trees if tree.has_ended], list(self._paused)
        copied.reported_ids, copied.ends = set(self.reported_ids), set(self.ends)
        return copied

    def clear(self) -> None:
        """Forget all trees. Runs under way continue unrecorded; their ids are forgotten as they end."""
        begun = {tree for tree in self.trees if not tree.has_ended}
        self.closed = {run_id: False for run_id, record in self.open.items() if record.tree in begun}
        for tree in self.trees:
            tree.close()
        self.open = {run_id: record for run_id, record in self.open.items() if record.tree not in begun}
        self.trees, self._paused, self.reported_ids, self.ends = [], [], set(), set()


def calling_run_id() -> UUID | None:
    """Return the id of the run whose code is being executed, from LangChain's context."""
    config = var_child_runnable_config.get()
    return None if config is None else getattr(config.get("callbacks"), "parent_run_id", None)


def is_same_version(known: Any, item: Any) -> bool:
    """Return whether two messages with one id have the same content and calls.

    A dict and a message object count as the same version, as states turn dicts into messages.
    """
    if known is item or isinstance(known, BaseMessage) is not isinstance(item, BaseMessage):
        return True
    if isinstance(known, BaseMessage):
        calls, known_calls = getattr(item, "tool_calls", None), getattr(known, "tool_calls", None)
        return bool(known.content == item.content and calls == known_calls)
    return bool(known == item)


# --- the ids that other tracers have for a run; only tracers that the process has already imported are queried ---

_MOST_LOOKS = 2  # at the first events, and at the end: a tracer may be called after this handler
_LANGSMITH, _OPENTELEMETRY, _MLFLOW = "langsmith.utils", "opentelemetry.trace", "mlflow.tracing.fluent"


def look_for_traces(tree: Tree) -> None:
    """Note the ids that other tracers have for a run by now; an id found earlier is kept.

    The keys are ``langsmith`` (the run), ``opentelemetry`` and ``opentelemetry_span`` (trace and span, in hexadecimal
    digits), ``langfuse`` and ``mlflow`` (the traces).
    """
    for name, ids_in in _TRACERS if tree.run_ids else ():
        if name in sys.modules and (name != _LANGSMITH or not tree.events):  # LangSmith decides at the start
            try:
                if found := ids_in(tree.run_ids[0]):
                    tree.trace_ids = found | tree.trace_ids
            except Exception:
                continue  # faster than contextlib.suppress


def _langsmith(run_id: UUID) -> dict[str, str]:
    return {"langsmith": str(run_id)} if sys.modules[_LANGSMITH].tracing_is_enabled() is True else {}


def _opentelemetry(run_id: UUID) -> dict[str, str]:
    instrumentor = getattr(sys.modules.get("openinference.instrumentation.langchain"), "LangChainInstrumentor", None)
    span = None if instrumentor is None else instrumentor().get_span(run_id)  # not in the context
    span = sys.modules[_OPENTELEMETRY].get_current_span() if span is None else span
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    found = {"opentelemetry": f"{context.trace_id:032x}", "opentelemetry_span": f"{context.span_id:016x}"}
    scope = getattr(span, "instrumentation_scope", None)
    return {**found, "langfuse": found["opentelemetry"]} if "langfuse" in str(getattr(scope, "name", "")) else found


def _mlflow(_: UUID) -> dict[str, str]:
    span = sys.modules[_MLFLOW].get_current_active_span()
    return {} if span is None else {"mlflow": str(span.trace_id)}


_TRACERS: Sequence[tuple[str, Callable[[UUID], dict[str, str]]]] = (  # with the module that is loaded
    (_LANGSMITH, _langsmith),
    (_OPENTELEMETRY, _opentelemetry),
    (_MLFLOW, _mlflow),
)
