"""Which run belongs to which root run: a map of run ids, and the records of the roots in start order."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from graphrag_eval_lc.capture.keeping import Retrieval
from graphrag_eval_lc.capture.options import CaptureOptions
from graphrag_eval_lc.capture.outputs import text_of
from graphrag_eval_lc.capture.root_config import kept_metadata, kept_tags
from graphrag_eval_lc.capture.run_record import OpenModelCall, RunRecord
from graphrag_eval_lc.capture.steps import Step

_NODE_TAG = "graph:step:"
_UNNAMED_GRAPH = "LangGraph"


class Run:
    """A run that is under way: where it stands, and the step or model call that it is.

    Attributes:
        record: The record of its root run.
        scope: The id of the graph run around it.
        node_id: The id of the node, or of the root, in which it runs.
        outer_step: The step inside which it runs.
        step: The step that it is itself.
        model_call: The model call that it is itself.
        name: The name of a chain, a graph or a node.
        is_root: Whether its parent is unknown.
        is_node: Whether it is a node of a graph.
        is_inside_step: Whether a tool or retriever called it directly, with no graph between.
        is_retriever: Whether it is a retriever or works for one.
        retrieval: What it retrieves for the tool that called it, where that is wanted.
    """

    __slots__ = (
        "is_inside_step",
        "is_node",
        "is_retriever",
        "is_root",
        "model_call",
        "name",
        "node_id",
        "outer_step",
        "record",
        "retrieval",
        "scope",
        "step",
    )

    def __init__(
        self, record: RunRecord, scope: UUID, node_id: UUID, outer_step: Step | None, *, is_root: bool
    ) -> None:
        self.record = record
        self.scope = scope
        self.node_id = node_id
        self.outer_step = outer_step
        self.name: str | None = None
        self.step: Step | None = None
        self.model_call: OpenModelCall | None = None
        self.is_root = is_root
        self.is_node = False
        self.is_inside_step = False
        self.is_retriever = False
        self.retrieval: Retrieval | None = None


class Runs:
    """The runs of one handler. Its methods are called under the handler's lock."""

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self.records: list[RunRecord] = []
        self._runs: dict[UUID, Run] = {}
        self._told_ids: set[str] = set()

    def started(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        tags: list[str] | None = None,
        *,
        root_tags: list[str] | None = None,
    ) -> Run | None:
        """Give the run that starts, or None where it was told of before (the handler is registered twice).

        ``tags`` are those of a chain, which say whether it is a node; those of others matter for roots only.
        """
        if run_id in self._runs:
            return None
        parent = None if parent_run_id is None else self._runs.get(parent_run_id)
        if parent is None or parent_run_id is None:
            run = self._root(run_id, metadata, tags or root_tags)
        else:
            run = Run(parent.record, parent.scope, parent.node_id, parent.step or parent.outer_step, is_root=False)
            run.is_node = bool(tags) and any(tag.startswith(_NODE_TAG) for tag in tags or ())
            if run.is_node:
                run.scope, run.node_id = parent_run_id, run_id
            else:
                run.is_inside_step = parent.is_inside_step or parent.step is not None
                run.is_retriever = parent.is_retriever
        self._runs[run_id] = run
        return run

    def _root(self, run_id: UUID, metadata: Mapping[str, Any] | None, tags: list[str] | None) -> Run:
        question_id = None if metadata is None else metadata.get("question_id")
        record = RunRecord(run_id, None if question_id is None else text_of(question_id), self._options, self._told_ids)
        record.tags, record.metadata = kept_tags(tags), kept_metadata(metadata)
        self.records.append(record)
        return Run(record, run_id, run_id, None, is_root=True)

    def get(self, run_id: UUID | None) -> Run | None:
        """Give a run that is under way, or a root that has ended."""
        return None if run_id is None else self._runs.get(run_id)

    def graph_name(self, run: Run) -> str | None:
        """Give the name of the nested graph in which a run is, where a person named it; it is often an agent's."""
        if run.scope == run.record.root_id:
            return None
        graph = self._runs.get(run.scope)
        return None if graph is None or graph.name == _UNNAMED_GRAPH else graph.name

    def ended(self, run_id: UUID) -> Run | None:
        """Give the run that ends, once. Ended roots stay known, so that what comes late is no root of its own."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        if not run.is_root or run.record.is_forgotten:
            del self._runs[run_id]
        return None if run.is_root and run.record.has_ended else run

    def clear(self) -> None:
        """Forget all records. Runs that are under way go on unrecorded, and their ids are forgotten as they end."""
        for record in self.records:
            record.is_forgotten = not record.has_ended
            record.close()
        self._runs = {run_id: run for run_id, run in self._runs.items() if run.record.is_forgotten}
        self.records = []
        self._told_ids = set()
