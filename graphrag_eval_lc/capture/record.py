"""The record of runs: a tree of small records for each root run or block, and to which tree a run belongs.

Nothing is interpreted here. Only what others may change is copied: arguments, outputs, and lists of messages, of which
a tree keeps what it has not read before.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables.config import var_child_runnable_config

from graphrag_eval_lc.capture.kept_messages import KeptMessages, Ranges
from graphrag_eval_lc.capture.messages import message_lists, role_and_content
from graphrag_eval_lc.capture.outputs import is_command
from graphrag_eval_lc.capture.redaction import CaptureOptions, KeptOutcome, Retrieval, kept_metadata, kept_tags
from graphrag_eval_lc.records import ModelCall
from graphrag_eval_lc.texts import text_of

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.interpret import Part

NODE_TAG = "graph:step:"
_FIRST_STEPS = ("graph:step:0", "graph:step:1")  # of the functional API, and of a graph, where its thread is new
_SECOND_STEP = "graph:step:2"  # the first one of which callbacks tell where the node before it was cached
_ENTRYPOINT = ("__start__",)  # what triggers the one node of an @entrypoint
_STATE_UPDATE = "UpdateState"  # how the names of the runs end that graph.update_state makes
_MOST_ASKING = 4  # models' messages with calls that are read from the end of a prompt
_MOST_PASSED = 40  # other messages there


class MessageList(NamedTuple):
    """What a tree had not read before of one list of messages; ``before`` is the message before it."""

    items: tuple[Any, ...]
    before: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Record:
    """One run.

    Attributes:
        scope: The graph run around it.
        node: The node, or the root, in which it runs.
        outer: The tool or retriever around it that is a step.
        is_top: Whether it is a root, or a run that a block calls directly.
        is_block: Whether it is no run, but a block of code whose runs make one tree.
        is_inside_step: Whether a tool or retriever called it, with no graph between.
        is_retriever: Whether it is a retriever or works for one.
        step_tag: Langgraph's tag of the graph step, of a node.
        path: Langgraph's path of the task that begins with it.
        graph_step: Langgraph's number of the step of that task.
        inputs: The input of a chain while it runs; that of a parser, as long as the tree.
        given: The lists of messages in its input.
        gave: The lists of messages in its output.
        facts: What else a node's output tells.
        output: The output of a root, or of a run that a block calls.
        is_graph: Whether it is a graph.
        goes_on: Whether it is a graph that goes on with a thread.
        has_nodes: Whether it is a graph with a state; None while none of its nodes has started.
        is_interrupted: Whether it is a paused graph.
        is_graph_run: Whether its metadata say that it is a graph, or inside of one.
        loose_calls: The tool calls in its input that stand there without their message.
        parsed: The message whose calls this parser takes for its result.
        opens: The graph inside the root run whose first node it is, where that graph goes on with a thread.
    """

    run_id: UUID
    kind: Literal["chain", "tool", "retriever", "model"]
    tree: "Tree"
    parent: "Record | None"
    scope: "Record | None" = None
    node: "Record | None" = None
    outer: "Record | None" = None
    name: str | None = None
    is_root: bool = False
    is_top: bool = False
    is_block: bool = False
    is_node: bool = False
    is_model_node: bool = False
    is_inside_step: bool = False
    is_retriever: bool = False
    step_tag: str | None = None
    path: Any = None
    graph_step: Any = None
    inputs: Any = None
    given: Sequence[MessageList] = ()
    gave: Sequence[MessageList] = ()
    facts: "Facts | None" = None
    output: Any = None
    error: str | None = None
    is_graph: bool = False
    goes_on: bool = False
    has_nodes: bool | None = None
    is_interrupted: bool = False
    is_graph_run: bool = False
    loose_calls: Sequence[ToolCall] = ()
    parsed: AIMessage | None = None
    opens: "Record | None" = None
    tool: "ToolRun | None" = None
    model: "ModelRun | None" = None

    def note_graph(self, step: str | None = None) -> None:
        """Note that this is a graph; ``step`` is the tag of its first node, None where it is resumed."""
        self.is_graph = True
        is_new = step in _FIRST_STEPS or (step == _SECOND_STEP and self.is_top and not self.tree.thread_ids)
        self.goes_on = not is_new or self.inputs is None or is_command(self.inputs)

    def graph_name(self) -> str | None:
        """Return the name that a person gave the nested graph around a run; it is often an agent's."""
        graph = self.scope
        return None if graph is None or graph.is_root or graph.name == "LangGraph" else graph.name


@dataclass(slots=True, eq=False, repr=False)
class ToolRun:
    """What is recorded of a tool's or retriever's run.

    Attributes:
        args: The arguments as they are kept.
        asked_args: The arguments by which the model's call is found.
        answer_id: The call id of the message in its output.
        is_retry: Whether ``with_retry`` runs it again.
        retrieval: What a retriever inside a tool gave, where that is wanted.
        retrievals: Those of the retrievers inside this tool.
    """

    args: dict[str, Any]
    asked_args: dict[str, Any]
    call_id: str | None = None
    is_retry: bool = False
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    kept: KeptOutcome | None = None
    ended: float | None = None
    answer_id: str | None = None
    retrieval: Retrieval | None = None
    retrievals: Sequence[Retrieval] = ()

    def end(self, kept: KeptOutcome, answer_id: str | None) -> None:
        """Take the outcome."""
        self.kept, self.answer_id, self.retrievals = kept, answer_id, ()
        self.ended = perf_counter() if kept.ended is None else kept.ended


@dataclass(slots=True, eq=False, repr=False)
class ModelRun:
    """What is recorded of a model call.

    Attributes:
        asked_name: The model's name as it was asked for.
        unanswered_tool: A schema that the model must call as a tool, which nobody answers; "" stands for any tool.
        prompt: The end of its prompt.
        message: Its message, and ``calls`` the tool calls in it, copied.
        call: What the response says of it; None while it runs.
        problems: What is wrong with its answer.
        is_cache_hit: Whether LangChain's cache answered.
        is_known: Whether another callback of a model has told of its message.
        first_token: The ``perf_counter`` at the first token, where it was streamed.
        namespace: The ``checkpoint_ns`` of its node's graph.
        input_messages, output_message, tools: Places among the kept messages.
    """

    asked_name: str | None
    unanswered_tool: str | None = None
    prompt: tuple[BaseMessage, ...] = ()
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    message: AIMessage | None = None
    calls: Sequence[ToolCall] = ()
    call: ModelCall | None = None
    problems: Sequence[str] = ()
    is_cache_hit: bool = False
    is_known: bool = False
    first_token: float | None = None
    node: str | None = None
    namespace: str | None = None
    agent: str | None = None
    input_messages: Ranges | None = None
    output_message: int | None = None
    tools: Ranges | None = None


class Facts(NamedTuple):
    """What a node's output tells beside its messages.

    Attributes:
        fields: The names of the answer fields that it sets.
        response: The ``structured_response`` in it.
        is_from_agent: Whether the node of ``create_agent`` that asks the model made it.
    """

    fields: frozenset[str] = frozenset()
    response: Any = None
    is_from_agent: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Tree:
    """The records of one root run or block, in the order of their events. It does not change after its end.

    Attributes:
        events: Each record at its start, and once more, with True, at its end.
        question_id: The metadata ``question_id`` of the root.
        run_ids: The LangChain ids of the root, or of the runs of a block.
        resumes: The tree of the paused run that it resumes.
        open: The records under way.
        nameless: The messages that had no id when they were read, which langgraph gives later.
        part: What the records mean, once the run has ended.
    """

    root_id: UUID
    question_id: str | None
    options: CaptureOptions
    events: list[tuple[Record, bool, float]] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    open: dict[UUID, Record] = field(default_factory=dict)
    question: str | None = None
    error: str | None = None
    is_paused: bool = False
    has_ended: bool = False
    has_begun: bool = True  # a block only once something runs in it
    thread_ids: frozenset[str] = frozenset()
    resumes: "Tree | None" = None
    run_ids: list[UUID] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)
    started_at: float = field(default_factory=time)
    elapsed_sec: float | None = None
    kept: KeptMessages | None = None
    part: "Part | None" = None
    has_models: bool = False
    nameless: set[int] = field(default_factory=set)
    _known: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.options.keep_messages:
            self.kept = KeptMessages(self.options)

    def warn(self, *warnings: str) -> None:
        """Add warnings, each text once."""
        (self.warnings if self.part is None else self.part.warnings).update(dict.fromkeys(warnings))

    def ended(self, record: Record) -> None:
        """Note the end of a record."""
        self.events.append((record, True, time()))

    def read(self, value: Any) -> Sequence[MessageList]:
        """Return what was not read before of the lists of messages in a node's input or output."""
        return [self._new_in(messages) for messages in message_lists(value)]

    def _new_in(self, messages: Sequence[Any]) -> MessageList:
        """Read a list from its end up to a known message; known tool messages are passed over, as others follow."""
        items: list[Any] = []
        before = None
        for item in reversed(messages):
            if not self._knows(item):
                items.append(item)
            elif role_and_content(item)[0] != "tool":
                before = item
                break
        items.reverse()
        if before is None and len(items) < len(messages):
            items = list(messages)
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

    def prompt_end(self, prompt: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
        """Return the end of a prompt: up to messages that were read before, or the whole of a run's first prompt."""
        if not self.has_models:
            return tuple(prompt)
        items: list[BaseMessage] = []
        asking = passed = 0
        for message in reversed(prompt):
            items.append(message)
            if isinstance(message, AIMessage) and message.tool_calls:
                asking += 1
            elif not isinstance(message, ToolMessage):
                passed += 1
            if asking == _MOST_ASKING or passed == _MOST_PASSED:
                break
        items.reverse()
        return tuple(items)

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

    def start_earlier(self, seconds: float) -> None:
        """Move the start back: the run had begun before it was known."""
        self.started -= seconds
        self.started_at -= seconds

    def ended_now(self, error: str) -> "Tree":
        """Return the tree as if it ended now, with this error."""
        ended = copy(self)
        ended.kept = None if self.kept is None else self.kept.snapshot()
        ended.close(error)
        return ended

    def let_go(self) -> None:
        """Let go of all records: only what they mean is kept."""
        for record, *_ in self.events:
            record.parent = record.scope = record.node = record.outer = record.opens = None
            record.output = record.parsed = record.facts = record.inputs = None
            record.given = record.gave = record.loose_calls = ()
            if record.model is not None:
                record.model.prompt, record.model.message, record.model.calls = (), None, ()
        self.events, self.open, self._known, self.nameless = [], {}, {}, set()
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


class Records:
    """The trees of one handler, and which of them a run belongs to. Its methods are called under the handler's lock.

    Attributes:
        trees: Those of the roots and blocks, in start order. A block without any run has none.
        block_id: The handler's own open block, to which runs without a known parent belong.
        told_ids: The ids of all messages in the callbacks of models.
        ends: The ids of the last messages of all runs.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.trees: list[Tree] = []
        self.block_id: UUID | None = None
        self.told_ids: set[str] = set()
        self.ends: set[str] = set()
        self._records: dict[UUID, Record] = {}
        self._roots: set[UUID] = set()  # those that have ended
        self._passed_over: set[UUID] = set()  # what is under way and not recorded
        self._paused: dict[str, Tree] = {}  # the last one on each thread
        self._paused_without_thread: list[Tree] = []

    def get(self, run_id: UUID | None) -> Record | None:
        """Return a run that is under way."""
        return None if run_id is None else self._records.get(run_id)

    def started(
        self,
        kind: Literal["chain", "tool", "retriever", "model"],
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        tags: list[str] | None = None,
    ) -> Record | None:
        """Return the record of a run that starts.

        None where its tree has ended, or where it is known: the handler is registered twice.
        """
        if run_id in self._records or run_id in self._roots or run_id in self._passed_over:
            return None
        parent = None if parent_run_id is None else self._records.get(parent_run_id)
        if parent is None:
            if parent_run_id in self._roots or parent_run_id in self._passed_over:
                self.pass_over(run_id)
                return None
            parent = self._calling(metadata)
        if parent is None:
            record = self._root(kind, run_id, metadata, tags)
        else:
            record = Record(run_id, kind, parent.tree, parent)
            if parent.is_block:
                self._add_top(record, parent, metadata, tags)
            else:
                self._add_inner(record, parent, metadata, tags)
        tree = record.tree
        self._records[run_id] = tree.open[run_id] = record
        tree.events.append((record, False, time()))
        return record

    def pass_over(self, run_id: UUID) -> None:
        """Leave out a run, and what is inside it."""
        self._passed_over.add(run_id)

    def _calling(self, metadata: Mapping[str, Any] | None) -> Record | None:
        """Return the parent of a run without a known one.

        It is the run whose code calls, by LangChain's context: a handler that is passed once more inside a tool has no
        parent, nor have the models of ``with_fallbacks``. A run of another question is a root.
        """
        caller = self.get(calling_run_id())
        if caller is not None:
            question_id = _question_id(metadata)
            if question_id is None or question_id == caller.tree.question_id:
                return caller
        return self.get(self.block_id)

    def _root(
        self,
        kind: Literal["chain", "tool", "retriever", "model"],
        run_id: UUID,
        metadata: Mapping[str, Any] | None,
        tags: list[str] | None,
    ) -> Record:
        tree = Tree(run_id, _question_id(metadata), self._options)
        tree.run_ids.append(run_id)
        tree.tags, tree.metadata = kept_tags(tags), kept_metadata(metadata)
        self.trees.append(tree)
        record = Record(run_id, kind, tree, None, is_root=True, is_top=True)
        record.scope = record.node = record
        return record

    def _add_top(
        self, record: Record, block: Record, metadata: Mapping[str, Any] | None, tags: list[str] | None
    ) -> None:
        """Complete the record of a run that a block calls directly."""
        tree = block.tree
        if not tree.has_begun:
            tree.has_begun = True
            tree.tags, tree.metadata = kept_tags(tags), kept_metadata(metadata)
            self.trees.append(tree)
        tree.run_ids.append(record.run_id)
        question_id = _question_id(metadata)
        if question_id not in (None, tree.question_id):
            tree.warn(f"a run of question {question_id} was called for question {tree.question_id} and counts there")
        record.is_top = True
        record.scope, record.node = block.scope, block.node

    @staticmethod
    def _add_inner(record: Record, parent: Record, metadata: Mapping[str, Any] | None, tags: list[str] | None) -> None:
        """Complete the record of a run inside another one."""
        record.scope, record.node = parent.scope, parent.node
        record.outer = parent if parent.tool is not None and not parent.is_inside_step else parent.outer
        step = next((tag for tag in tags if tag.startswith(NODE_TAG)), None) if tags else None
        if step is not None and record.kind == "chain":
            record.is_node, record.step_tag = True, step
            if not parent.has_nodes:
                parent.has_nodes = metadata is None or metadata.get("langgraph_triggers") != _ENTRYPOINT
            # A run that a block calls directly stands for the block.
            record.scope, record.node = parent.scope if parent.is_top else parent, record
            if not parent.is_graph:
                parent.note_graph(step)
                if parent.goes_on and not parent.is_top:
                    record.opens = parent
                    parent.given = [MessageList(tuple(messages)) for messages in message_lists(parent.inputs)]
        else:
            record.is_inside_step = parent.is_inside_step or parent.tool is not None
            record.is_retriever = parent.is_retriever
        if metadata is not None:
            record.path, record.graph_step = metadata.get("langgraph_path"), metadata.get("langgraph_step")

    def ended(self, run_id: UUID) -> Record | None:
        """Return the record of a run that ends; None where its tree has ended."""
        record = self._records.get(run_id)
        if record is None:
            self._passed_over.discard(run_id)
            return None
        if not record.is_root:
            del self._records[run_id]
            record.tree.open.pop(run_id, None)
        return record

    def root_ended(self, tree: Tree) -> None:
        """Let go of a tree's records, and note a paused run as the one to be resumed on its threads."""
        for run_id in tree.open:
            self._records.pop(run_id, None)
            self._passed_over.add(run_id)
        self._passed_over.discard(tree.root_id)
        self._roots.add(tree.root_id)
        for thread_id in tree.thread_ids:
            if tree.is_paused:
                self._paused[thread_id] = tree
            else:
                self._paused.pop(thread_id, None)
        if tree.is_paused and not tree.thread_ids:
            self._paused_without_thread.append(tree)

    # --- blocks of code ---

    def block_started(self, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Note that a block of code begins, whose runs make one tree; inside a known run they belong to that one's."""
        parent = self.get(parent_run_id) or self._calling(None)
        if parent is None:
            tree = Tree(run_id, question_id, self._options, has_begun=False)
            record = Record(run_id, "chain", tree, None, is_root=True, is_top=True, is_block=True)
            record.scope = record.node = record
        elif parent.is_block:
            record = Record(run_id, "chain", parent.tree, parent, parent.scope, parent.node, is_block=True)
        else:
            self.started("chain", run_id, parent.run_id, None)
            return
        self._records[run_id] = record.tree.open[run_id] = record

    def block_ended(self, run_id: UUID) -> Record | None:
        """Return the record of a block that ends."""
        if self.block_id == run_id:
            self.block_id = None
        return self.ended(run_id)

    # --- pauses ---

    def chain_given(self, record: Record, inputs: Any, metadata: Mapping[str, Any] | None) -> None:
        """Note the thread of a graph, and the paused run that it resumes."""
        tree = record.tree
        if metadata is not None and (thread_id := metadata.get("thread_id")) is not None:
            tree.thread_ids |= {thread_id if type(thread_id) is str else text_of(thread_id)}
        if inputs is not None and not (type(inputs).__name__ == "Command" and is_command(inputs)):
            return
        if tree.is_paused and record.is_top:
            tree.is_paused = False
        # An input of None may mean something else; a Command is for graphs only.
        is_sure = inputs is not None or (record.is_top and tree.question_id is not None)
        paused = None if tree.resumes is not None else self._paused_run_of(tree, by_question=is_sure)
        if paused is not None:
            tree.resumes = paused
            for thread_id in paused.thread_ids:
                self._paused.pop(thread_id, None)
            if paused in self._paused_without_thread:
                self._paused_without_thread.remove(paused)

    def _paused_run_of(self, tree: Tree, *, by_question: bool) -> Tree | None:
        """Return the paused run that a run resumes: that of its thread, else perhaps the last of its question."""
        for thread_id in tree.thread_ids:
            paused = self._paused.get(thread_id)
            if paused is not None and paused.is_resumed_by(tree):
                return paused
        if not by_question:
            return None
        others = [*self._paused_without_thread, *(() if tree.thread_ids else self._paused.values())]
        return next((paused for paused in reversed(others) if paused.is_resumed_by(tree)), None)

    @property
    def earlier(self) -> tuple[set[str], set[str]]:
        """The ids of all messages in the callbacks of models, and those of the last messages of all runs."""
        return self.told_ids, self.ends

    def snapshot(self, parts: "Mapping[Tree, Part]") -> "Records":
        """Return a copy for a copy of the handler: only what the records mean, as of now."""
        copied = Records(self._options)
        copied.told_ids, copied.ends = set(self.told_ids), set(self.ends)
        trees = {tree: copy(tree) for tree in self.trees}
        for tree, own in trees.items():
            own.part, own.resumes = parts[tree], None if tree.resumes is None else trees.get(tree.resumes)
            own.warnings, own.run_ids, own.kept = {}, list(tree.run_ids), None
            own.events, own.open, own._known, own.nameless = [], {}, {}, set()
        copied.trees = list(trees.values())
        copied._paused = {thread_id: trees[tree] for thread_id, tree in self._paused.items() if tree in trees}
        copied._paused_without_thread = [trees[tree] for tree in self._paused_without_thread if tree in trees]
        return copied

    def clear(self) -> None:
        """Forget all trees. Runs under way go on unrecorded; their ids are forgotten as they end."""
        begun = {tree for tree in self.trees if not tree.has_ended}
        self._roots, self._passed_over = set(), {run_id for tree in begun for run_id in tree.open}
        for tree in begun:
            tree.close()
        self._records = {run_id: record for run_id, record in self._records.items() if record.tree not in begun}
        self.trees = []
        self._paused, self._paused_without_thread = {}, []
        self.told_ids, self.ends = set(), set()


def is_state_update(name: object) -> bool:
    """Return whether a run is none of an agent, but what ``graph.update_state`` makes of a human's update."""
    return isinstance(name, str) and name.endswith(_STATE_UPDATE)


def _question_id(metadata: Mapping[str, Any] | None) -> str | None:
    question_id = None if metadata is None else metadata.get("question_id")
    return None if question_id is None else text_of(question_id)


def calling_run_id() -> UUID | None:
    """Return the id of the run whose code this is, by LangChain's context."""
    config = var_child_runnable_config.get()
    return None if config is None else getattr(config.get("callbacks"), "parent_run_id", None)


@cache
def with_graph_events(handler_class: type) -> type:
    """Return a subclass that langgraph sends ``on_interrupt`` to; the class itself where langgraph has no such event.

    Langgraph sends it to subclasses of its ``GraphCallbackHandler`` only, and it is the only sign of a static
    ``interrupt_before``. The import takes a third of a second, so it waits for the first handler.
    """
    try:
        from langgraph.callbacks import GraphCallbackHandler
    except ImportError:
        return handler_class
    if issubclass(handler_class, GraphCallbackHandler):
        return handler_class
    names = {
        "__module__": handler_class.__module__,
        "__qualname__": handler_class.__qualname__,
        "_written_as": handler_class,
    }
    return type(handler_class.__name__, (handler_class, GraphCallbackHandler), names)


def is_interrupt(error: object) -> bool:
    """Return whether an exception pauses the run."""
    return _is_langgraph_error(error, "GraphInterrupt")


def is_handoff(error: object) -> bool:
    """Return whether an exception hands over to another agent of the parent graph."""
    return _is_langgraph_error(error, "ParentCommand")


def _is_langgraph_error(error: object, name: str) -> bool:
    """Compare by name, so that langgraph is not imported for runs without it."""
    return any(base.__name__ == name and base.__module__.startswith("langgraph") for base in type(error).__mro__)


def tool_messages_of(output: Any) -> Iterator[ToolMessage]:
    """Yield the tool messages that a function which is no node returns, such as a ``@task``."""
    for message in output if isinstance(output, (list, tuple)) else (output,):
        if isinstance(message, ToolMessage):
            yield message
