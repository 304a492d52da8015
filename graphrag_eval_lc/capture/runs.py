"""Which root run or block a run belongs to, and how langgraph pauses, hands over and orders runs."""

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from graphrag_eval_lc.capture.llm_calls import OpenModelCall
from graphrag_eval_lc.capture.outputs import is_command
from graphrag_eval_lc.capture.redaction import CaptureOptions, Retrieval, kept_metadata, kept_tags
from graphrag_eval_lc.capture.steps import Order, Step
from graphrag_eval_lc.capture.trace import Trace
from graphrag_eval_lc.texts import text_of

_NODE_TAG = "graph:step:"
_ENTRYPOINT = ("__start__",)  # what triggers the one node of an @entrypoint
_UNNAMED_GRAPH = "LangGraph"
_FIRST_STEPS = ("graph:step:0", "graph:step:1")  # of the functional API, and of a graph, where its thread is new


@dataclass(slots=True, eq=False, repr=False)
class Run:
    """A run that is under way.

    Attributes:
        trace: The trace of its root run.
        scope: The id of the graph run around it.
        node_id: The id of the node, or of the root, in which it runs.
        outer_step: The step inside which it runs.
        step: Its own step, where it is one.
        model_call: Its own model call, where it is one.
        name: The name of a chain, a graph or a node.
        is_root: Whether its parent is unknown, so that the trace is its own.
        is_top: Whether it is a root, or a run that a block calls directly.
        is_block: Whether it is no run, but a block of code whose runs make one trace.
        is_node: Whether it is a node of a graph.
        has_nodes: Whether it is a graph with a state; None while none of its nodes has started.
        is_model_node: Whether it has the name of the node of ``create_agent`` that asks the model.
        is_inside_step: Whether a tool or retriever called it, with no graph between.
        is_retriever: Whether it is a retriever or works for one.
        retrieval: What it retrieves for the tool that called it, where that is wanted.
        task_path: Langgraph's path of the task around it.
        branch: The place of that task among parallel ones.
        tasks: Order and rank of the tasks that have begun directly in it, in its present graph step.
        tasks_step: That graph step.
        inputs: Its input, unless it is a root or a node.
        is_graph: Whether it is a graph.
        goes_on: Whether it is a graph that goes on with a thread.
        is_interrupted: Whether it is a paused graph.
        opens: The graph inside the root run whose first node it is, where that graph goes on with a thread.
    """

    trace: Trace
    scope: UUID
    node_id: UUID
    outer_step: Step | None
    is_root: bool
    name: str | None = None
    step: Step | None = None
    model_call: OpenModelCall | None = None
    is_top: bool = False
    is_block: bool = False
    is_node: bool = False
    has_nodes: bool | None = None
    is_model_node: bool = False
    is_inside_step: bool = False
    is_retriever: bool = False
    retrieval: Retrieval | None = None
    task_path: Any = None
    branch: Order = ()
    tasks_step: Any = None
    tasks: list[tuple[str, int]] = field(init=False)
    inputs: Any = None
    is_graph: bool = False
    goes_on: bool = False
    is_interrupted: bool = False
    opens: "Run | None" = None

    def note_graph(self, step: str | None = None) -> None:
        """Note that this is a graph; ``step`` is the tag of its first node, None where it is resumed."""
        self.is_graph = True
        self.goes_on = step not in _FIRST_STEPS or self.inputs is None or is_command(self.inputs)
        if self.is_top:
            self.trace.is_graph = True
            self.trace.goes_on = self.trace.goes_on or step not in _FIRST_STEPS


class Runs:
    """The runs of one handler. Its methods are called under the handler's lock.

    Attributes:
        traces: Those of the roots and blocks, in start order. A block without any run has none.
        block_id: The handler's own open block, to which runs without a known parent belong.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.traces: list[Trace] = []
        self.block_id: UUID | None = None
        self._runs: dict[UUID, Run] = {}
        self._told_ids: set[str] = set()
        self._paused: dict[str, Trace] = {}  # the last one on each thread
        self._paused_without_thread: list[Trace] = []
        self._ends: set[str] = set()

    def started(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        tags: list[str] | None = None,
        *,
        root_tags: list[str] | None = None,
    ) -> Run | None:
        """Return the run that starts; None where its trace has ended, or it is known: the handler is registered twice.

        ``tags`` are those of a chain, which tell nodes; ``root_tags`` those of other runs, kept for roots only.
        """
        if run_id in self._runs:
            return None
        parent_run_id, parent = self._parent(parent_run_id, metadata)
        if parent is None or parent_run_id is None:
            run = self._root(run_id, metadata, tags or root_tags)
        elif parent.is_block:
            run = self._top(run_id, parent, metadata, tags or root_tags)
        else:
            run = Run(parent.trace, parent.scope, parent.node_id, parent.step or parent.outer_step, is_root=False)
            step = next((tag for tag in tags if tag.startswith(_NODE_TAG)), None) if tags else None
            run.is_node = step is not None
            if run.is_node:
                if not parent.has_nodes:
                    parent.has_nodes = metadata is None or metadata.get("langgraph_triggers") != _ENTRYPOINT
                # A run that a block calls directly stands for the block.
                run.scope, run.node_id = parent.scope if parent.is_top else parent_run_id, run_id
                if not parent.is_graph:
                    parent.note_graph(step)
                    run.opens = parent if parent.goes_on and not parent.is_top else None
            else:
                run.is_inside_step = parent.is_inside_step or parent.step is not None
                run.is_retriever = parent.is_retriever
            run.task_path, run.branch = parent.task_path, parent.branch
            path = None if metadata is None else metadata.get("langgraph_path")
            if metadata is not None and path is not None and (run.is_node or path != run.task_path):
                self._begin_task(run, parent, path, metadata.get("langgraph_step"))
        self._runs[run_id] = run
        run.trace.steps.calls.branch = run.branch
        return None if run.trace.has_ended else run

    def _parent(self, parent_run_id: UUID | None, metadata: Mapping[str, Any] | None) -> tuple[UUID | None, Run | None]:
        """Return the parent of a run that starts.

        Without a known parent it is the run whose code calls, by LangChain's context: a handler that is passed once
        more inside a tool has no parent, nor have the models of ``with_fallbacks``. A run of another question, or one
        that starts after its caller's end, is a root.
        """
        parent = None if parent_run_id is None else self._runs.get(parent_run_id)
        if parent is not None:
            return parent_run_id, parent
        caller_id = calling_run_id()
        caller = None if caller_id is None else self._runs.get(caller_id)
        if caller is not None and not caller.trace.has_ended:
            question_id = _question_id(metadata)
            if question_id is None or question_id == caller.trace.question_id:
                return caller_id, caller
        return self.block_id, None if self.block_id is None else self._runs.get(self.block_id)

    def _root(self, run_id: UUID, metadata: Mapping[str, Any] | None, tags: list[str] | None) -> Run:
        trace = Trace(run_id, _question_id(metadata), self._options, self._told_ids, self._ends)
        trace.run_ids.append(run_id)
        trace.tags, trace.metadata = kept_tags(tags), kept_metadata(metadata)
        self.traces.append(trace)
        return Run(trace, run_id, run_id, None, is_root=True, is_top=True)

    def _top(self, run_id: UUID, block: Run, metadata: Mapping[str, Any] | None, tags: list[str] | None) -> Run:
        """Return a run that a block calls directly."""
        trace = block.trace
        if not trace.has_begun:
            trace.has_begun = True
            trace.tags, trace.metadata = kept_tags(tags), kept_metadata(metadata)
            self.traces.append(trace)
        if not trace.has_ended:
            trace.run_ids.append(run_id)
        question_id = _question_id(metadata)
        if question_id not in (None, trace.question_id):
            trace.warn(f"a run of question {question_id} was called for question {trace.question_id} and counts there")
        run = Run(trace, block.scope, block.node_id, None, is_root=False)
        run.is_top = True
        run.branch = (trace.steps.calls.next_rank(), "")
        return run

    @staticmethod
    def _begin_task(run: Run, parent: Run, path: Any, graph_step: Any) -> None:
        """Note the place of a run that begins a task, among the parallel tasks of its graph step."""
        if parent.tasks_step != graph_step:
            parent.tasks_step, parent.tasks = graph_step, []
        tasks, order = parent.tasks, task_order(path if isinstance(path, tuple) else str(path))
        place = bisect(tasks, order, key=itemgetter(0)) if tasks else 0
        rank = tasks[place][1] if place < len(tasks) else run.trace.steps.calls.next_rank()
        tasks.insert(place, (order, rank))
        run.task_path, run.branch = path, (*parent.branch, rank, order)

    # --- blocks ---

    def block_started(self, run_id: UUID, parent_run_id: UUID | None, question_id: str) -> None:
        """Note that a block of code begins, whose runs make one trace; inside a known run they belong to that one's."""
        parent_run_id, parent = self._parent(parent_run_id, None)
        if parent is None:
            trace = Trace(run_id, question_id, self._options, self._told_ids, self._ends)
            trace.has_begun = False
            run = self._runs[run_id] = Run(trace, run_id, run_id, None, is_root=True, is_top=True)
            run.is_block = True
        elif parent.is_block:
            run = self._runs[run_id] = Run(parent.trace, parent.scope, parent.node_id, None, is_root=False)
            run.is_block = True
        else:
            self.started(run_id, parent_run_id, None)

    def block_ended(self, run_id: UUID, error: str | None) -> None:
        """Note that a block ended; one without any run is kept where it failed."""
        if self.block_id == run_id:
            self.block_id = None
        run = self.ended(run_id)
        if run is None or not run.is_root:
            return
        if error is not None and not run.trace.has_begun:
            self.traces.append(run.trace)
        run.trace.close(error or run.trace.error)
        self.root_ended(run.trace)
        if error is None and not run.trace.has_begun:
            del self._runs[run_id]

    # --- pauses ---

    def chain_given(self, run: Run, inputs: Any, metadata: Mapping[str, Any] | None) -> None:
        """Note the thread of a graph, and the paused run that it resumes."""
        trace = run.trace
        if metadata is not None and (thread_id := metadata.get("thread_id")) is not None:
            trace.thread_ids |= {thread_id if type(thread_id) is str else text_of(thread_id)}
        if inputs is not None and not (type(inputs).__name__ == "Command" and is_command(inputs)):
            return
        if trace.is_paused and run.is_top:
            trace.is_paused = False
        # An input of None may mean something else; a Command is for graphs only.
        is_sure = inputs is not None or (run.is_top and trace.question_id is not None)
        paused = None if trace.resumes is not None else self._paused_run_of(trace, by_question=is_sure)
        if paused is not None:
            trace.resumes = paused
            self._forget_pause(paused)

    def _paused_run_of(self, trace: Trace, *, by_question: bool) -> Trace | None:
        """Return the paused run that a run resumes: that of its thread, else perhaps the last of its question."""
        for thread_id in trace.thread_ids:
            paused = self._paused.get(thread_id)
            if paused is not None and paused.is_resumed_by(trace):
                return paused
        if not by_question:
            return None
        others = [*self._paused_without_thread, *(() if trace.thread_ids else self._paused.values())]
        return next((paused for paused in reversed(others) if paused.is_resumed_by(trace)), None)

    def _forget_pause(self, paused: Trace) -> None:
        for thread_id in paused.thread_ids:
            self._paused.pop(thread_id, None)
        if paused in self._paused_without_thread:
            self._paused_without_thread.remove(paused)

    def root_ended(self, trace: Trace) -> None:
        """Note a paused run as the one to be resumed on its threads; another run's end clears its threads."""
        for thread_id in trace.thread_ids:
            if trace.is_paused:
                self._paused[thread_id] = trace
            else:
                self._paused.pop(thread_id, None)
        if trace.is_paused and not trace.thread_ids:
            self._paused_without_thread.append(trace)

    def get(self, run_id: UUID | None) -> Run | None:
        """Return a run that is under way, or a root that has ended."""
        return None if run_id is None else self._runs.get(run_id)

    def graph_name(self, run: Run) -> str | None:
        """Return the name that a person gave the nested graph around a run; it is often an agent's."""
        if run.scope == run.trace.root_id:
            return None
        graph = self._runs.get(run.scope)
        return None if graph is None or graph.name == _UNNAMED_GRAPH else graph.name

    def ended(self, run_id: UUID) -> Run | None:
        """Return the run that ends, None where its trace has ended. Ended roots stay known: none begins anew."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        if not run.is_root or run.trace.is_forgotten:
            del self._runs[run_id]
        run.trace.steps.calls.branch = run.branch
        return None if run.trace.has_ended else run

    def snapshot(self) -> "Runs":
        """Return a copy for a copy of the handler, with the runs under way as they are now."""
        copied = Runs(self._options)
        copied._told_ids.update(self._told_ids)
        copied._ends.update(self._ends)
        traces = {trace: trace.snapshot() for trace in self.traces}
        for trace in traces.values():
            trace.resumes = None if trace.resumes is None else traces.get(trace.resumes)
        copied.traces = list(traces.values())
        copied._paused = {thread_id: traces[trace] for thread_id, trace in self._paused.items() if trace in traces}
        copied._paused_without_thread = [traces[trace] for trace in self._paused_without_thread if trace in traces]
        return copied

    def clear(self) -> None:
        """Forget all traces. Runs under way go on unrecorded; their ids are forgotten as they end."""
        for trace in self.traces:
            trace.is_forgotten = not trace.has_ended
            trace.close()
        self._runs = {
            run_id: run
            for run_id, run in self._runs.items()
            if run.trace.is_forgotten or not (run.trace.has_begun or run.trace.has_ended)
        }
        self.traces = []
        self._paused = {}
        self._paused_without_thread = []
        self._told_ids, self._ends = set(), set()


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


@lru_cache(maxsize=1024)
def task_order(path: object) -> str:
    """Return langgraph's path of a task as a text that sorts parallel tasks as in the state.

    Example:
        >>> task_order(("__pregel_push", 2, False)) < task_order(("__pregel_push", 10, False))
        True
    """
    if isinstance(path, list | tuple):
        return ",".join(map(task_order, path))
    return f"{path:010d}" if isinstance(path, int) else str(path)


def is_interrupt(error: object) -> bool:
    """Return whether an exception pauses the run."""
    return _is_langgraph_error(error, "GraphInterrupt")


def is_handoff(error: object) -> bool:
    """Return whether an exception hands over to another agent of the parent graph."""
    return _is_langgraph_error(error, "ParentCommand")


def _is_langgraph_error(error: object, name: str) -> bool:
    """Compare by name, so that langgraph is not imported for runs without it."""
    return any(base.__name__ == name and base.__module__.startswith("langgraph") for base in type(error).__mro__)
