"""Which steps count as retrieval, as the config says."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.relevant_ids import relevant_ids
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, names_that_fulfil


class RetrievalSteps:
    """The steps that count as retrieval.

    Args:
        config: The section on retrieval.
        names: Step names by tool name.
    """

    def __init__(self, config: RetrievalConfig, names: Mapping[str, str]) -> None:
        self._tools = names
        self._names = config.document_step_names(names)
        self._columns = config.columns(names)

    def reference_view(self, step: Mapping[str, Any], defaults: Mapping[str, Any]) -> StepView:
        """Give a reference step as matchers read it."""
        return StepView(step, defaults, id_column=self._columns.get(str(step.get("name"))))

    def actual_view(self, step: Mapping[str, Any]) -> StepView:
        """Give an actual step as matchers read it, with the name that its tool has among the reference steps."""
        tool = str(step.get("name"))
        if tool not in self._tools:
            return StepView(step, id_column=self._columns.get(tool))
        name = self._tools[tool]
        # What is said of the tool goes before what is said of all steps of that name.
        column = self._columns.get(tool, None if tool in self._names else self._columns.get(name))
        return StepView({**step, "name": name}, id_column=column, tool=tool)

    def includes(self, reference: StepView) -> bool:
        """Tell whether a reference step counts as retrieval: by its name, and with SPARQL results if it has ids."""
        return reference.get("name") in self._names or (reference.id_column is not None and _has_ids(reference))

    def compared_by(self, reference: StepView) -> tuple[str, str | None]:
        """Give the name and the media type by which the kind of a reference step is found."""
        name = RETRIEVAL if self.includes(reference) else str(reference.get("name"))
        return name, reference.get("output_media_type")

    def names_that_fulfil(self, name: str) -> frozenset[str]:
        """Give the names of the actual steps that may fulfil a reference step of retrieval of this name."""
        names = names_that_fulfil(name)
        return names | self._names | self._columns.keys() if name == RETRIEVAL else names

    def may_fulfil(self, tool: str, name: str) -> bool:
        """Tell whether steps of a tool may fulfil reference steps of a name, as far as the names say it."""
        names = self.names_that_fulfil(name)
        is_retrieval = name in self._names or name in self._columns
        return self._tools.get(tool, tool) in names or (is_retrieval and tool in names)


def _has_ids(reference: StepView) -> bool:
    if reference.get("relevant_ids") is not None:
        return True
    try:
        return bool(relevant_ids(reference))
    except UnreadableOutput:
        return False
