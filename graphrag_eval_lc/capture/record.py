"""The record of runs: a tree of small records for each root run or block, one for each run inside it.

Nothing is interpreted here, except which tree a run belongs to, and which paused run it resumes. Only what others may
change is copied: arguments, outputs, and the new part of each list of messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter, time
from typing import Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.types import Command

from graphrag_eval_lc.capture.kept import CaptureOptions, GivenMessage, given_messages, kept_metadata, kept_tags
from graphrag_eval_lc.capture.llm_calls import first_generation, generated_message, is_cache_hit, model_call
from graphrag_eval_lc.capture.messages import (
    id_of,
    is_interrupted,
    loose_calls,
    message_lists,
    question_in,
    role_and_content,
)
from graphrag_eval_lc.capture.values import Outcome, to_plain
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.texts import text_of

_NODE_TAG = "graph:step:"
_ENTRYPOINT = ("__start__",)  # what triggers the one node of an @entrypoint
_STATE_UPDATE = "UpdateState"  # the end of the names of runs by graph.update_state
_FIRST_STEPS = ("graph:step:0", "graph:step:1")  # of the functional API, and of a graph, if its thread is new

RunKind = Literal["block", "chain", "tool", "retriever", "model"]


class MessageList(NamedTuple):
    """The new messages of one list; ``before`` is the message before them."""

    items: tuple[Any, ...]
    before: Any = None


@dataclass(slots=True, eq=False, repr=False)
class ToolRun:
    """What is recorded of a tool's or retriever's run."""

    args: dict[str, Any]
    call_id: str | None = None
    is_retry: bool = False  # whether with_retry runs it again
    k: int | None = None  # how many documents a retriever is asked for
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    outcome: Outcome | None = None
    ended: float | None = None
    answer_id: str | None = None  # the call id of the message in its output
    documents: list[dict[str, Any]] | None = None  # those of a retriever, or of a tool's artifact
    retrievers: "list[ToolRun]" = field(default_factory=list)  # those that this tool runs

    def retrieved(self) -> tuple[list[dict[str, Any]] | None, int | None]:
        """Return the documents that a tool retrieved, and the number asked for if one retriever ran.

        A tool that asks a vector store itself has no retriever, but often its documents as the artifact.
        """
        found = [each for each in self.retrievers if each.documents is not None]
        if not found:
            return self.documents, None
        documents = [document for each in found for document in each.documents or ()]
        return documents, found[0].k if len(found) == 1 else None


@dataclass(slots=True, eq=False, repr=False)
class ModelRun:
    """What is recorded of a model call."""

    asked_name: str | None  # the model's name as it was asked for
    is_structured: bool = False  # whether it calls a schema for structured output, which nobody answers
    prompt: tuple[BaseMessage, ...] = ()  # the end of its prompt
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    result: LLMResult | None = None
    error: str | None = None
    call: ModelCall | None = None  # what the response says of it; None while it runs
    is_cache_hit: bool = False  # whether LangChain's cache answered
    message: AIMessage | None = None  # its message, and calls the tool calls in it, copied
    calls: Sequence[ToolCall] = ()
    first_token: float | None = None  # the perf_counter at the first token of a stream
    node: str | None = None
    namespace: str | None = None  # the checkpoint_ns of its node's graph
    agent: str | None = None
    given: Sequence[GivenMessage] | None = None  # the prompt, if messages are kept, and the output
    gave: Sequence[GivenMessage] = ()
    tools: Sequence[Any] = ()  # the definitions of tools, if messages are kept

    def end(self, result: LLMResult | None, error: str | None) -> None:
        """Set the result, or the error, with what was generated until then."""
        self.result, self.error = result, error
        self.message = None if error is not None else generated_message(result)
        self.is_cache_hit = is_cache_hit(self.message)
        self.call = model_call(result, self.asked_name, has_ended=error is None)
        self.call[ELAPSED_SEC] = perf_counter() - self.started
        if self.message is not None and self.message.tool_calls:
            self.calls = [{**call, "args": to_plain(call["args"])} for call in self.message.tool_calls]
        if self.given is not None and result is not None and (generation := first_generation(result)) is not None:
            self.gave = given_messages([generated_message(result) or AIMessage(generation.text)])

    def drop(self) -> None:
        """Drop what only the interpretation needs."""
        self.prompt, self.message, self.calls, self.result, self.error = (), None, (), None, None
        self.given, self.gave, self.tools = None, (), ()


@dataclass(slots=True, eq=False, repr=False)
class Record:
    """One run."""

    run_id: UUID
    kind: RunKind
    tree: "Tree"
    parent: "Record | None"
    scope: "Record | None" = None  # the graph run around it
    node: "Record | None" = None  # the node, or the root, in which it runs
    outer: "Record | None" = None  # the tool or retriever around it that is a step
    name: str | None = None
    is_node: bool = False
    is_inside_step: bool = False  # whether a tool or retriever called it, with no graph between
    is_retriever: bool = False  # whether it is a retriever or works for one
    path: Any = None  # langgraph's path of the task that begins with it
    graph_step: Any = None  # langgraph's number of the step of that task
    inputs: Any = None  # the input of a chain that is no node, while it runs
    has_input: bool = True  # whether its input is one of its own, and not None or a Command, which resume a thread
    input_messages: Sequence[MessageList] = ()  # the lists of messages in its input
    output_messages: Sequence[MessageList] = ()  # the lists of messages in its output
    output: Any = None  # the output of a root, of a run that a block calls, or of a node
    is_graph: bool = False  # whether it is a graph
    continues_thread: bool = False  # whether it is a graph that resumes or continues a thread
    has_nodes: bool | None = None  # whether it is a graph with a state; None while none of its nodes has started
    is_interrupted: bool = False  # whether it is a paused graph
    is_graph_run: bool = False  # whether its metadata say that it is a graph, or inside of one
    loose_calls: Sequence[ToolCall] = ()  # the tool calls in its input without their message
    tool: ToolRun | None = None
    model: ModelRun | None = None

    @property
    def is_root(self) -> bool:
        """Whether its end is that of its tree."""
        return self.parent is None

    @property
    def is_top(self) -> bool:
        """Whether it is a root, or a run that a block calls directly."""
        return self.parent is None or (self.parent.kind == "block" and self.kind != "block")

    def note_graph(self, step: str | None = None) -> None:
        """Note that this is a graph; ``step`` is the tag of its first node, None if it is resumed."""
        self.is_graph = True
        self.continues_thread = step not in _FIRST_STEPS or not self.has_input

    def graph_name(self) -> str | None:
        """Return the name of the nested graph around a run, often an agent's, if it is not LangGraph's default."""
        graph = self.scope
        return None if graph is None or graph.is_root or graph.name == "LangGraph" else graph.name

    def chain_ended(self, outputs: Any) -> None:
        """Record the output of a chain."""
        tree = self.tree
        if self.is_top or self.is_node:
            tree.is_paused = tree.is_paused or (self.is_top and is_interrupted(outputs))
            self.output, self.output_messages = outputs, tree.read(outputs)
            tree.ended(self)
        elif self.is_graph:
            if self.continues_thread:
                self.output_messages = tree.read(outputs)
                tree.ended(self)
            if self.scope is not None and self.scope.is_root and not self.scope.is_graph:
                tree.is_paused = self.is_interrupted
        else:  # a function that is not a node, such as a @task, may answer calls
            given = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
            if messages := tuple(message for message in given if isinstance(message, ToolMessage)):
                tree.note_texts(messages)
                self.output_messages = [MessageList(messages)]
                tree.ended(self)


@dataclass(slots=True, eq=False, repr=False)
class Tree:
    """The records of one root run or block, in the order of their events. It does not change after its end."""

    root_id: UUID
    question_id: str | None  # the metadata question_id of the root
    options: CaptureOptions
    # each record at its start, and once more, with True, at its end
    events: list[tuple[Record, bool, float]] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    open: dict[UUID, Record] = field(default_factory=dict)  # the records under way
    question: str | None = None
    error: str | None = None
    is_paused: bool = False
    has_ended: bool = False
    thread_ids: frozenset[str] = frozenset()
    resumes: "Tree | None" = None  # the tree of the paused run that it resumes
    run_ids: list[UUID] = field(default_factory=list)  # the LangChain ids of the root, or of the runs of a block
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    elapsed_sec: float | None = None
    waiting: Sequence[Any] = ()  # the calls that it left open, for the run that resumes it
    # the messages that had no id when they were read, which langgraph gives later
    nameless: set[int] = field(default_factory=set)
    # content and status of tool messages when they were read, as an agent may clear them later
    tool_texts: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)

    def warn(self, *warnings: str) -> None:
        """Add warnings, each text once."""
        self.warnings.update(dict.fromkeys(warnings))

    def ask(self, inputs: Any) -> None:
        """Take the question from the first input that has one."""
        if self.question is None:
            self.question = question_in(inputs)

    def ended(self, record: Record) -> None:
        """Note the end of a record."""
        self.events.append((record, True, time()))

    def read(self, value: Any) -> Sequence[MessageList]:
        """Return what was not read before of the lists of messages in a node's input or output."""
        if value is None or type(value) is str:
            return ()
        return [self._new_in(messages) for messages in message_lists(value)]

    def _new_in(self, messages: Sequence[Any]) -> MessageList:
        """Read a list from its end up to a known message; it skips known tool messages."""
        items: list[Any] = []
        before = None
        for item in reversed(messages):
            if not self._knows(item):
                items.append(item)
            elif role_and_content(item)[0] != "tool":
                before = item
                break
        items.reverse()
        self.note_texts(items)
        for item in items:
            self.known[id(item)] = item
            if (identifier := id_of(item)) is not None:
                self.known[identifier] = item
            else:
                self.nameless.add(id(item))
        return MessageList(tuple(items), before)

    def _knows(self, item: Any) -> bool:
        if self.known.get(id(item)) is item:
            return True
        identifier = id_of(item)
        known = None if identifier is None else self.known.get(identifier)
        return known is not None and is_same_version(known, item)

    def note_texts(self, messages: Sequence[Any]) -> None:
        """Record the present texts of tool messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                self.tool_texts.setdefault(id(message), (message.content, message.status))

    def as_read(self, message: ToolMessage) -> ToolMessage:
        """Return a tool message as it was when it was read."""
        content, status = self.tool_texts.get(id(message), (message.content, message.status))
        if content is message.content and status == message.status:
            return message
        return message.model_copy(update={"content": content, "status": status})

    def is_resumed_by(self, other: "Tree") -> bool:
        """Return whether another run can be the one that resumes this one, by threads and question."""
        if self.question_id is not None and other.question_id not in (None, self.question_id):
            return False
        if self.thread_ids and other.thread_ids:
            return not self.thread_ids.isdisjoint(other.thread_ids)
        return self.question_id == other.question_id

    @property
    def pause_keys(self) -> Iterable[str]:
        """By what it is found while it is paused."""
        return self.thread_ids or (str(self.root_id),)

    def close(self, error: str | None = None) -> None:
        """End the run, with its error as it is kept."""
        if not self.has_ended:
            self.error = error
            self.elapsed_sec = perf_counter() - self.started
            self.has_ended = True

    def without_records(self) -> "Tree":
        """Return a copy that has no records."""
        return replace(self, events=[], open={}, nameless=set(), tool_texts={}, known={})

    def drop_records(self) -> None:
        """Drop all records; only their interpretation is kept."""
        for record, _, _ in self.events:
            record.scope = record.node = None  # perhaps the record itself, a cycle that would wait for the collector
            if record.model is not None:
                record.model.drop()
        self.events, self.open, self.known, self.nameless, self.tool_texts = [], {}, {}, set(), {}


class Records:
    """The trees of one handler, and which of them a run belongs to. Its methods are called under the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.trees: list[Tree] = []  # those of the roots and blocks, in start order. A block without any run has none
        self.block_id: UUID | None = None  # the handler's own open block, to which runs without a known parent belong
        self.reported_ids: set[str] = set()  # the ids of all messages in the callbacks of models
        self.ends: set[str] = set()  # the ids of the last messages of all runs
        self._records: dict[UUID | None, Record] = {}  # those under way
        self.ended_roots: set[UUID] = set()  # those that have ended
        self._ignored: set[UUID] = set()  # runs under way that are not recorded
        self._paused: dict[str, Tree] = {}  # the last one on each thread, and each one without a thread

    def get(self, run_id: UUID | None) -> Record | None:
        """Return a run that is under way."""
        return self._records.get(run_id)

    def is_state_update(self, run_id: UUID, name: object, event: Mapping[str, Any]) -> bool:
        """Return whether a run is an update by ``graph.update_state``, which is ignored, and not a run of a graph."""
        is_graph = (event.get("metadata") or {}).get("ls_integration") == "langgraph"
        if event.get("parent_run_id") is None and str(name).endswith(_STATE_UPDATE) and not is_graph:
            self._ignored.add(run_id)
            return True
        return False

    def started(self, kind: RunKind, run_id: UUID, event: Mapping[str, Any]) -> Record | None:
        """Return the record of a run that starts; ``event`` has its parent's id, metadata and tags.

        None if its tree has ended, or if it is known: the handler is registered twice.
        """
        parent_run_id = event.get("parent_run_id")
        if run_id in self._records or run_id in self.ended_roots or run_id in self._ignored:
            return None
        parent = None if parent_run_id is None else self._records.get(parent_run_id)
        if parent is None:
            if parent_run_id in self.ended_roots or parent_run_id in self._ignored:
                self._ignored.add(run_id)
                return None
            parent = self._calling(event.get("metadata"))
        if parent is None:
            record = self._root(kind, run_id, _question_id(event.get("metadata")))
        else:
            record = Record(run_id, kind, parent.tree, parent, parent.scope, parent.node)
        if record.is_top:
            self._add_top(record, event)
        elif parent is not None:
            self._add_inner(record, parent, event)
        tree = record.tree
        self._records[run_id] = tree.open[run_id] = record
        tree.events.append((record, False, time()))
        return record

    def _calling(self, metadata: Mapping[str, Any] | None) -> Record | None:
        """Return the parent of a run without a known one.

        It is the run whose code calls, by LangChain's context: a handler that is passed once more inside a tool has no
        parent, nor have the models of ``with_fallbacks``. A run of another question is a root.
        """
        caller = self._records.get(calling_run_id())
        if caller is not None and _question_id(metadata) in (None, caller.tree.question_id):
            return caller
        return self._records.get(self.block_id)

    def _root(self, kind: RunKind, run_id: UUID, question_id: str | None) -> Record:
        record = Record(run_id, kind, Tree(run_id, question_id, self._options), None)
        record.scope = record.node = record
        return record

    def _add_top(self, record: Record, event: Mapping[str, Any]) -> None:
        """Note the id, tags and metadata of a root, or of a run that a block calls directly."""
        tree = record.tree
        if not tree.events:
            tree.tags, tree.metadata = kept_tags(event.get("tags")), kept_metadata(event.get("metadata"))
            self.trees.append(tree)
        tree.run_ids.append(record.run_id)
        question_id = _question_id(event.get("metadata"))
        if question_id not in (None, tree.question_id):
            tree.warn(f"a run of question {question_id} was called for question {tree.question_id} and counts there")

    @staticmethod
    def _add_inner(record: Record, parent: Record, event: Mapping[str, Any]) -> None:
        """Complete the record of a run inside another one."""
        metadata = event.get("metadata") or {}
        record.outer = parent if parent.tool is not None and not parent.is_inside_step else parent.outer
        record.path, record.graph_step = metadata.get("langgraph_path"), metadata.get("langgraph_step")
        step = next((tag for tag in event.get("tags") or () if tag.startswith(_NODE_TAG)), None)
        if step is None or record.kind != "chain":
            record.is_inside_step = parent.is_inside_step or parent.tool is not None
            record.is_retriever = parent.is_retriever
            return
        record.is_node = True
        parent.has_nodes = parent.has_nodes or metadata.get("langgraph_triggers") != _ENTRYPOINT
        # The nodes of a run that a block calls directly are those of the block.
        record.scope, record.node = parent.scope if parent.is_top else parent, record
        if not parent.is_graph:
            parent.note_graph(step)
            if parent.continues_thread and not parent.is_top:
                parent.input_messages = [MessageList(tuple(messages)) for messages in message_lists(parent.inputs)]

    def chain_started(self, record: Record, inputs: Any, metadata: Mapping[str, Any]) -> None:
        """Record the input of a chain."""
        tree = record.tree
        record.has_input = inputs is not None and not isinstance(inputs, Command)
        if not record.is_node:
            self._note_thread(record, inputs, metadata)
        if record.is_top:
            record.is_graph_run = "ls_integration" in metadata
            tree.ask(inputs)
        if record.is_top or record.is_node:
            record.input_messages = tree.read(inputs)
            record.loose_calls = loose_calls(inputs)
        else:
            record.inputs = inputs

    def ended(self, run_id: UUID) -> Record | None:
        """Return the record of a run that ends; None if its tree has ended."""
        record = self._records.get(run_id)
        if record is None:
            self._ignored.discard(run_id)
            return None
        if not record.is_root:
            del self._records[run_id]
            record.tree.open.pop(run_id, None)
        return record

    def root_ended(self, tree: Tree) -> None:
        """Drop the records of a tree that has ended, and note a paused run as the one to resume on its threads."""
        for run_id in tree.open:
            self._records.pop(run_id, None)
            self._ignored.add(run_id)
        self._ignored.discard(tree.root_id)
        self.ended_roots.add(tree.root_id)
        self._forget_paused(tree)
        if tree.is_paused:
            self._paused.update(dict.fromkeys(tree.pause_keys, tree))

    def block_started(self, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Record a block of code, whose runs make one tree; inside a known run they belong to the tree of that run."""
        parent = (self._records.get(parent_run_id) or self._calling(None)) if self._records else None
        if parent is None:
            record = self._root("block", run_id, question_id)
        elif parent.kind == "block":
            record = Record(run_id, "block", parent.tree, parent, parent.scope, parent.node)
        else:
            self.started("chain", run_id, {"parent_run_id": parent.run_id})
            return
        self._records[run_id] = record.tree.open[run_id] = record

    # --- pauses ---

    def _note_thread(self, record: Record, inputs: Any, metadata: Mapping[str, Any]) -> None:
        """Note the thread of a graph, and the paused run that it resumes."""
        tree = record.tree
        if (thread_id := metadata.get("thread_id")) is not None:
            tree.thread_ids |= {text_of(thread_id)}
        if record.has_input:
            return
        if tree.is_paused and record.is_top:
            tree.is_paused = False
        # An input of None may mean something else; a Command is for graphs only.
        is_sure = inputs is not None or (record.is_top and tree.question_id is not None)
        paused = None if tree.resumes is not None else self._paused_run_of(tree, by_question=is_sure)
        if paused is not None:
            tree.resumes = paused
            self._forget_paused(paused)

    def _paused_run_of(self, tree: Tree, *, by_question: bool) -> Tree | None:
        """Return the paused run that a run resumes: that of its thread, else perhaps the last of its question."""
        on_threads = [self._paused[thread_id] for thread_id in tree.thread_ids if thread_id in self._paused]
        others = reversed(self._paused.values()) if by_question else ()
        return next((paused for paused in chain(on_threads, others) if paused.is_resumed_by(tree)), None)

    def _forget_paused(self, tree: Tree) -> None:
        for key in tree.pause_keys if self._paused else ():
            self._paused.pop(key, None)

    def copied(self, trees: list[Tree]) -> "Records":
        """Return a copy for a copy of the handler, with trees in the place of its own."""
        copied = Records(self._options)
        copied.trees, copied.reported_ids, copied.ends = trees, set(self.reported_ids), set(self.ends)
        copied._paused = dict(self._paused)
        return copied

    def clear(self) -> None:
        """Forget all trees. Runs under way continue unrecorded; their ids are forgotten as they end."""
        begun = {tree for tree in self.trees if not tree.has_ended}
        self.ended_roots, self._ignored = set(), {run_id for tree in begun for run_id in tree.open}
        for tree in self.trees:
            tree.close()
        self._records = {run_id: record for run_id, record in self._records.items() if record.tree not in begun}
        self.trees, self._paused = [], {}
        self.reported_ids, self.ends = set(), set()


def _question_id(metadata: Mapping[str, Any] | None) -> str | None:
    question_id = None if metadata is None else metadata.get("question_id")
    return None if question_id is None else text_of(question_id)


def calling_run_id() -> UUID | None:
    """Return the id of the run whose code this is, by LangChain's context."""
    config = var_child_runnable_config.get()
    return None if config is None else getattr(config.get("callbacks"), "parent_run_id", None)


def is_same_version(known: Any, item: Any) -> bool:
    """Return whether two messages with one id have the same content and calls; states make messages of dicts."""
    if known is item or isinstance(known, BaseMessage) is not isinstance(item, BaseMessage):
        return True
    if isinstance(known, BaseMessage):
        calls, known_calls = getattr(item, "tool_calls", None), getattr(known, "tool_calls", None)
        return bool(known.content == item.content and calls == known_calls)
    return bool(known == item)
