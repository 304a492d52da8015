"""The record of a root run or block: a tree of small records, one for each run inside it.

Nothing is interpreted here. Only what others may change is copied: arguments, outputs, and the new part of each list of
messages.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import LLMResult

from graphrag_eval_lc.capture.kept_messages import KeptMessages, Ranges
from graphrag_eval_lc.capture.llm_calls import generated_message, is_cache_hit, model_call
from graphrag_eval_lc.capture.messages import message_lists, role_and_content
from graphrag_eval_lc.capture.outputs import Outcome, to_plain
from graphrag_eval_lc.capture.redaction import CaptureOptions
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC

AGENTS_MODEL_NODE = "model"  # the name of the node of create_agent that asks the model
_FIRST_STEPS = ("graph:step:0", "graph:step:1")  # of the functional API, and of a graph, if its thread is new

RunKind = Literal["chain", "tool", "retriever", "model"]


class MessageList(NamedTuple):
    """The new messages of one list; ``before`` is the message before them."""

    items: tuple[Any, ...]
    before: Any = None


class WaitingCall(NamedTuple):
    """A call that a paused run left open, for the run that resumes it; its arguments are the kept ones."""

    message_id: str
    call_id: str | None
    name: str
    args: dict[str, Any]
    place: int
    asked_at: float


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
    is_root: bool = False
    is_top: bool = False  # whether it is a root, or a run that a block calls directly
    is_block: bool = False  # whether it is a block of code, whose runs make one tree
    is_node: bool = False
    is_model_node: bool = False
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
    tool: "ToolRun | None" = None
    model: "ModelRun | None" = None

    def note_graph(self, step: str | None = None) -> None:
        """Note that this is a graph; ``step`` is the tag of its first node, None if it is resumed."""
        self.is_graph = True
        self.continues_thread = step not in _FIRST_STEPS or not self.has_input

    def graph_name(self) -> str | None:
        """Return the name of the nested graph around a run, often an agent's, if it is not LangGraph's default."""
        graph = self.scope
        return None if graph is None or graph.is_root or graph.name == "LangGraph" else graph.name


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

    def end(self, outcome: Outcome, answer_id: str | None, documents: list[dict[str, Any]] | None) -> None:
        """Set the outcome."""
        self.outcome, self.answer_id, self.documents, self.ended = outcome, answer_id, documents, perf_counter()

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
    input_messages: Ranges | None = None  # indices of kept messages
    output_message: int | None = None  # index of a kept message
    tools: Ranges | None = None  # indices of kept tools

    def end(self, result: LLMResult | None, error: str | None) -> None:
        """Set the result, or the error, with what was generated until then."""
        self.result, self.error = result, error
        self.message = None if result is None or error is not None else generated_message(result)
        self.is_cache_hit = is_cache_hit(self.message)
        self.call = model_call(result, self.asked_name, has_ended=error is None)
        self.call[ELAPSED_SEC] = perf_counter() - self.started
        if self.message is not None and self.message.tool_calls:
            self.calls = [{**call, "args": to_plain(call["args"])} for call in self.message.tool_calls]


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
    kept: KeptMessages | None = None
    waiting: "Sequence[WaitingCall]" = ()  # the calls that it left open, for the run that resumes it
    # the messages that had no id when they were read, which langgraph gives later
    nameless: set[int] = field(default_factory=set)
    # content and status of tool messages when they were read, as an agent may clear them later
    tool_texts: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _known: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.options.keep_messages:
            self.kept = KeptMessages(self.options)

    def warn(self, *warnings: str) -> None:
        """Add warnings, each text once."""
        self.warnings.update(dict.fromkeys(warnings))

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
            self._known[id(item)] = item
            if (identifier := id_of(item)) is not None:
                self._known[identifier] = item
            else:
                self.nameless.add(id(item))
        return MessageList(tuple(items), before)

    def _knows(self, item: Any) -> bool:
        if self._known.get(id(item)) is item:
            return True
        identifier = id_of(item)
        known = None if identifier is None else self._known.get(identifier)
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

    def close(self, error: str | None = None) -> None:
        """End the run, with its error as it is kept."""
        if not self.has_ended:
            self.error = error
            self.elapsed_sec = perf_counter() - self.started
            self.has_ended = True

    def ended_now(self, error: str) -> "Tree":
        """Return the tree as if it ended now, with this error."""
        ended = copy(self)
        ended.close(error)
        return ended

    def without_records(self) -> "Tree":
        """Return a copy that has no records."""
        copied = copy(self)
        copied.events, copied.open, copied._known, copied.nameless, copied.tool_texts = [], {}, {}, set(), {}
        return copied

    def drop_records(self) -> None:
        """Drop all records; only their interpretation is kept."""
        for record, _, _ in self.events:
            record.scope = record.node = None  # perhaps the record itself, a cycle that would wait for the collector
            if record.model is not None:
                record.model.prompt, record.model.message, record.model.calls = (), None, ()
                record.model.result = record.model.error = None
        self.events, self.open, self._known, self.nameless, self.tool_texts = [], {}, {}, set(), {}
        if self.kept is not None:
            self.kept.close()


def id_of(item: Any) -> str | None:
    """Return a message's id, in any form of a message."""
    identifier = item.id if isinstance(item, BaseMessage) else item.get("id") if isinstance(item, Mapping) else None
    return identifier if isinstance(identifier, str) else None


def is_same_version(known: Any, item: Any) -> bool:
    """Return whether two messages with one id have the same content and calls; states make messages of dicts."""
    if known is item or isinstance(known, BaseMessage) is not isinstance(item, BaseMessage):
        return True
    if isinstance(known, BaseMessage):
        calls, known_calls = getattr(item, "tool_calls", None), getattr(known, "tool_calls", None)
        return bool(known.content == item.content and calls == known_calls)
    return bool(known == item)
