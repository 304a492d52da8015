"""Which tree a run belongs to, and how langgraph pauses, hands over and updates states."""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from time import time
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from graphrag_eval_lc.capture.calls import Part
from graphrag_eval_lc.capture.interpret import interpreted
from graphrag_eval_lc.capture.messages import message_lists
from graphrag_eval_lc.capture.outputs import is_command
from graphrag_eval_lc.capture.record import MessageList, Record, RunKind, Tree
from graphrag_eval_lc.capture.redaction import CaptureOptions, kept_metadata, kept_tags
from graphrag_eval_lc.texts import text_of

_NODE_TAG = "graph:step:"
_ENTRYPOINT = ("__start__",)  # what triggers the one node of an @entrypoint
_STATE_UPDATE = "UpdateState"  # the end of the names of runs by graph.update_state


class Records:
    """The trees of one handler, and which of them a run belongs to. Its methods are called under the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.trees: list[Tree] = []  # those of the roots and blocks, in start order. A block without any run has none
        self.parts: dict[Tree, Part] = {}  # the interpretations of the trees that have ended
        self.block_id: UUID | None = None  # the handler's own open block, to which runs without a known parent belong
        self.reported_ids: set[str] = set()  # the ids of all messages in the callbacks of models
        self.ends: set[str] = set()  # the ids of the last messages of all runs
        self._records: dict[UUID | None, Record] = {}  # those under way
        self._roots: set[UUID] = set()  # those that have ended
        self._ignored: set[UUID] = set()  # runs under way that are not recorded
        self._paused: dict[str, Tree] = {}  # the last one on each thread, and each one without a thread

    def get(self, run_id: UUID | None) -> Record | None:
        """Return a run that is under way."""
        return self._records.get(run_id)

    def started(self, kind: RunKind, run_id: UUID, event: Mapping[str, Any]) -> Record | None:
        """Return the record of a run that starts; ``event`` has its parent's id, metadata and tags.

        None if its tree has ended, or if it is known: the handler is registered twice.
        """
        parent_run_id, metadata, tags = event.get("parent_run_id"), event.get("metadata"), event.get("tags")
        if run_id in self._records or run_id in self._roots or run_id in self._ignored:
            return None
        parent = None if parent_run_id is None else self._records.get(parent_run_id)
        if parent is None:
            if parent_run_id in self._roots or parent_run_id in self._ignored:
                self.ignore(run_id)
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

    def ignore(self, run_id: UUID) -> None:
        """Do not record a run, nor the runs inside it."""
        self._ignored.add(run_id)

    def _calling(self, metadata: Mapping[str, Any] | None) -> Record | None:
        """Return the parent of a run without a known one.

        It is the run whose code calls, by LangChain's context: a handler that is passed once more inside a tool has no
        parent, nor have the models of ``with_fallbacks``. A run of another question is a root.
        """
        caller = self._records.get(calling_run_id())
        if caller is not None:
            question_id = _question_id(metadata)
            if question_id is None or question_id == caller.tree.question_id:
                return caller
        return self._records.get(self.block_id)

    def _root(
        self,
        kind: RunKind,
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
        if not tree.events:
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
        step = next((tag for tag in tags if tag.startswith(_NODE_TAG)), None) if tags else None
        if step is not None and record.kind == "chain":
            record.is_node = True
            if not parent.has_nodes:
                parent.has_nodes = metadata is None or metadata.get("langgraph_triggers") != _ENTRYPOINT
            # The nodes of a run that a block calls directly are those of the block.
            record.scope, record.node = parent.scope if parent.is_top else parent, record
            if not parent.is_graph:
                parent.note_graph(step)
                if parent.continues_thread and not parent.is_top:
                    parent.input_messages = [MessageList(tuple(messages)) for messages in message_lists(parent.inputs)]
        else:
            record.is_inside_step = parent.is_inside_step or parent.tool is not None
            record.is_retriever = parent.is_retriever
        if metadata is not None:
            record.path, record.graph_step = metadata.get("langgraph_path"), metadata.get("langgraph_step")

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
        self._roots.add(tree.root_id)
        if self._paused:
            self._forget_paused(tree)
        if tree.is_paused:
            self._paused.update(dict.fromkeys(_pause_keys(tree), tree))

    # --- blocks of code ---

    def block_started(self, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Record a block of code, whose runs make one tree; inside a known run they belong to the tree of that run."""
        parent = (self._records.get(parent_run_id) or self._calling(None)) if self._records else None
        if parent is None:
            tree = Tree(run_id, question_id, self._options)
            record = Record(run_id, "chain", tree, None, is_root=True, is_top=True, is_block=True)
            record.scope = record.node = record
        elif parent.is_block:
            record = Record(run_id, "chain", parent.tree, parent, parent.scope, parent.node, is_block=True)
        else:
            self.started("chain", run_id, {"parent_run_id": parent.run_id})
            return
        self._records[run_id] = record.tree.open[run_id] = record

    def block_ended(self, run_id: UUID) -> Record | None:
        """Return the record of a block that ends."""
        if self.block_id == run_id:
            self.block_id = None
        return self.ended(run_id)

    # --- pauses ---

    def note_thread(self, record: Record, inputs: Any, metadata: Mapping[str, Any] | None) -> None:
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
            if tree.kept is not None and paused.kept is not None and not tree.kept.messages.entries:
                tree.kept = paused.kept  # the messages of both, each once
            self._forget_paused(paused)

    def _paused_run_of(self, tree: Tree, *, by_question: bool) -> Tree | None:
        """Return the paused run that a run resumes: that of its thread, else perhaps the last of its question."""
        on_threads = [self._paused[thread_id] for thread_id in tree.thread_ids if thread_id in self._paused]
        others = reversed(self._paused.values()) if by_question else ()
        return next((paused for paused in chain(on_threads, others) if paused.is_resumed_by(tree)), None)

    def _forget_paused(self, tree: Tree) -> None:
        for key in _pause_keys(tree):
            self._paused.pop(key, None)

    def interpreted(self, tree: Tree) -> Part:
        """Return the interpretation of a tree: as of now, while it is open."""
        return interpreted(tree, self.reported_ids, self.ends)

    def part(self, tree: Tree) -> Part:
        """Return the interpretation of a tree, which is kept once the tree has ended."""
        part = self.parts.get(tree)
        if part is None:
            part = self.interpreted(tree)
            if tree.has_ended:
                self.keep(tree, part)
        return part

    def keep(self, tree: Tree, part: Part) -> None:
        """Keep the interpretation of a tree that has ended, and drop its records."""
        if tree not in self.parts and tree.root_id in self._roots:
            self.parts[tree] = part
            self.ends.update(part.ends)
            tree.error, tree.waiting = part.error, part.waiting
            tree.drop_records()

    def snapshot(self) -> "Records":
        """Return a copy for a copy of the handler: only the interpretations, as of now."""
        copied = Records(self._options)
        copied.reported_ids, copied.ends = set(self.reported_ids), set(self.ends)
        for tree in self.trees:
            part = self.part(tree)
            if not tree.has_ended:
                part.tree = tree.without_records()
            copied.trees.append(part.tree)
            copied.parts[part.tree] = part
        copied._paused = dict(self._paused)
        return copied

    def clear(self) -> None:
        """Forget all trees. Runs under way continue unrecorded; their ids are forgotten as they end."""
        begun = {tree for tree in self.trees if not tree.has_ended}
        self._roots, self._ignored = set(), {run_id for tree in begun for run_id in tree.open}
        for tree in self.trees:
            tree.close()
        self._records = {run_id: record for run_id, record in self._records.items() if record.tree not in begun}
        self.trees, self.parts = [], {}
        self._paused = {}
        self.reported_ids, self.ends = set(), set()


def is_state_update(name: object) -> bool:
    """Return whether a run without a parent is an update by ``graph.update_state``, and not a run of an agent."""
    return isinstance(name, str) and name.endswith(_STATE_UPDATE)


def _pause_keys(tree: Tree) -> Iterable[str]:
    return tree.thread_ids or (str(tree.root_id),)


def _question_id(metadata: Mapping[str, Any] | None) -> str | None:
    question_id = None if metadata is None else metadata.get("question_id")
    return None if question_id is None else text_of(question_id)


def calling_run_id() -> UUID | None:
    """Return the id of the run whose code this is, by LangChain's context."""
    config = var_child_runnable_config.get()
    return None if config is None else getattr(config.get("callbacks"), "parent_run_id", None)


@cache
def with_graph_events(handler_class: type) -> type:
    """Return a subclass that langgraph sends ``on_interrupt`` to; the class itself if langgraph has no such event.

    Langgraph sends it to subclasses of its ``GraphCallbackHandler`` only, and it is the only sign of a static
    ``interrupt_before``. The import takes a third of a second, so it waits for the first handler.
    """
    try:
        from langgraph.callbacks import GraphCallbackHandler
    except ImportError:
        return handler_class
    names = {key: getattr(handler_class, key) for key in ("__module__", "__qualname__")}
    return type(handler_class.__name__, (handler_class, GraphCallbackHandler), {**names, "_written_as": handler_class})
