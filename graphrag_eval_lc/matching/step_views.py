"""Applies the config to steps: under which names and as which kinds they are compared, and which are retrieval."""

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from graphrag_eval_lc.config import RetrievalConfig, SparqlConfig, StepsConfig
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.retrieval import readable, relevant_ids
from graphrag_eval_lc.records import step_status
from graphrag_eval_lc.registry.step_kinds import (
    RETRIEVAL,
    ShownAs,
    StepKind,
    meant_media_type,
    names_that_fulfil,
    shown_as,
    step_kind_for,
    step_kind_of,
    step_kinds_by_key,
)


class StepViews:
    """Returns steps as matchers read them, with the names, outputs and kinds that the config declares."""

    def __init__(
        self,
        steps: StepsConfig | None = None,
        sparql: SparqlConfig | None = None,
        retrieval: RetrievalConfig | None = None,
    ) -> None:
        steps, retrieval = steps or StepsConfig(), retrieval or RetrievalConfig()
        self.is_graded = steps.grading == "graded"
        self._tools = steps.names
        self._outputs = steps.outputs
        # By the names of reference steps, without kinds of missing plugins. The entry of a step overrides that of a
        # tool that is renamed to it.
        known = step_kinds_by_key() if steps.kinds else {}
        declared = {name: known[key] for name, key in steps.kinds.items() if key in known}
        self._kinds = {steps.names.get(name, name): kind for name, kind in declared.items()} | declared
        self._names = retrieval.document_step_names(steps.names)
        columns = retrieval.columns(steps.names).items()
        self._columns = {name: column for name, column in columns if column is not None}
        self._defaults = (sparql or SparqlConfig()).step_defaults()
        self._rows = steps.rows

    def reference_view(self, step: Mapping[str, Any]) -> StepView:
        """Return a reference step as matchers read it; the config's defaults fill in missing keys."""
        return StepView(step, self._defaults, id_column=self._columns.get(str(step.get("name"))), rows=self._rows)

    def actual_view(self, step: Mapping[str, Any]) -> StepView:
        """Return an actual step as matchers read it, under the name that reference steps use for its tool."""
        tool = str(step.get("name"))
        status = step_status(step.get("status"))
        if status != step.get("status"):
            step = {**step, "status": status}
        if not isinstance(step.get("name"), Hashable):  # such a name fulfils nothing
            step = {**step, "name": tool}
        if tool not in self._tools:
            return StepView(step, id_column=self._columns.get(tool), declared=self._outputs.get(tool))
        name = self._tools[tool]
        declared = self._outputs.get(tool, self._outputs.get(name))
        # A column declared for the tool overrides one declared for the step name.
        column = self._columns.get(tool, None if tool in self._names else self._columns.get(name))
        return StepView({**step, "name": name}, id_column=column, tool=tool, declared=declared)

    def includes(self, reference: StepView) -> bool:
        """Return whether a reference step counts as retrieval, by its name or because its SPARQL results hold ids."""
        if reference.get("name") in self._names:
            return True
        has_ids = reference.get("relevant_ids") is not None
        return reference.id_column is not None and (has_ids or bool(readable(reference, relevant_ids)))

    def compared_by(self, reference: StepView) -> tuple[str, str | None]:
        """Return the name and the media type that decide the kind of a reference step if the config does not."""
        name = RETRIEVAL if self.includes(reference) else str(reference.get("name"))
        return name, media_type_of(reference, name)

    def kind_of(self, reference: StepView) -> StepKind:
        """Return the kind by which a reference step is compared."""
        if self.includes(reference):
            return step_kind_for(*self.compared_by(reference))
        return self.own_kind_of(reference)

    def own_kind_of(self, reference: StepView) -> StepKind:
        """Return the kind of a reference step, ignoring that it may count as retrieval."""
        name = str(reference.get("name"))
        if (declared := self.declared_kind_of(name)) is not None:
            return declared
        return step_kind_of(name, media_type_of(reference, name), reference, reference.is_read_by)

    def declared_kind_of(self, name: str) -> StepKind | None:
        """Return the kind that ``steps.kinds`` declares for reference steps of a name, or None."""
        return self._kinds.get(name)

    def shown_as_of(self, name: str, kind: StepKind) -> ShownAs:
        """Return how reports show reference steps of this name and kind: as queries with rows, as IRIs, or as texts."""
        return kind.shown_as if name in self._kinds else shown_as(name, kind)

    def names_that_fulfil(self, name: str) -> frozenset[str]:
        """Return the names of the actual steps that may fulfil a reference step of this name."""
        names = names_that_fulfil(name)
        return names | self._names | self._columns.keys() if name == RETRIEVAL else names

    def tools_called(self, names: Collection[str]) -> list[str]:
        """Return the tools that ``steps.names`` renames to these names, and the names without such a tool, sorted."""
        tools = [tool for tool, name in self._tools.items() if name in names]
        return sorted({*tools, *names} - {self._tools[tool] for tool in tools if tool not in names})

    def may_fulfil(self, tool: str, name: str) -> bool:
        """Return whether steps of a tool may fulfil reference steps of a name; only the names are looked at."""
        names = self.names_that_fulfil(name)
        is_retrieval = name in self._names or name in self._columns
        return self._tools.get(tool, tool) in names or (is_retrieval and tool in names)


def media_type_of(reference: StepView, name: str | None = None) -> str | None:
    """Return the media type of a reference step: the declared one, else the one that its (or another) name implies."""
    given = reference.get("output_media_type")
    name = str(reference.get("name")) if name is None else name
    return meant_media_type(name, given, reference.is_read_by) if given is None or isinstance(given, str) else None
