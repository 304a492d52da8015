"""Which steps count as retrieval, as the config says."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.config.retrieval import RETRIEVAL
from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.registry import names_that_fulfil
from graphrag_eval_lc.matching.relevant_ids import ID_COLUMN
from graphrag_eval_lc.matching.sparql import parse_sparql_results


class RetrievalSteps:
    """The steps that count as retrieval.

    Args:
        config: The section on retrieval.
    """

    def __init__(self, config: RetrievalConfig) -> None:
        self._names = config.document_step_names()
        self._columns = config.columns()

    def view(self, step: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> StepView:
        """Give a step as matchers read it; one that gives SPARQL results says in which column its ids stand."""
        column = self._columns.get(step.get("name", "")) if self._columns else None
        if column is not None:
            step = {**step, ID_COLUMN: column}
        return StepView(step, defaults)

    def includes(self, reference: StepView) -> bool:
        """Tell whether a reference step counts as retrieval: by its name, and with SPARQL results if it has ids."""
        if reference.get(ID_COLUMN) is None:
            return reference.get("name") in self._names
        return (
            reference.get("name") in self._names
            or reference.get("relevant_ids") is not None
            or _has_column(reference, reference[ID_COLUMN])
        )

    def names_that_fulfil(self, name: str) -> frozenset[str]:
        """Give the names of the actual steps that may fulfil a reference step of retrieval of this name."""
        names = names_that_fulfil(name)
        return names | self._names | self._columns.keys() if name == RETRIEVAL else names


def _has_column(step: StepView, column: str) -> bool:
    try:
        return column in step.parsed(parse_sparql_results).columns
    except UnreadableOutput:
        return False
