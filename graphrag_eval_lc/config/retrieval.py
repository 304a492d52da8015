"""The section on retrieval: which steps count as retrieval, and how they are measured without a language model."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from graphrag_eval_lc.config.section import Section, mistake
from graphrag_eval_lc.metrics import DEFAULT_MEASURES, Distance, Measure, parse_measure
from graphrag_eval_lc.registry.metrics import RETRIEVAL_IDS, RETRIEVAL_TEXT
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

# What stands on a measured step, before the measure's own key.
IDS_PREFIX = RETRIEVAL_IDS
TEXT_PREFIX = RETRIEVAL_TEXT
_TEXT_MEASURES = ("precision", "recall", "f1")


def _known_measure(text: str) -> str:
    try:
        parse_measure(text)
    except ValueError as problem:
        what, _, mend = str(problem).partition(": ")
        raise mistake(what, _sentence(mend)) from None
    return text


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) or not text else '.'}"


def _without_mark(column: Any) -> Any:
    return column.removeprefix("?") if isinstance(column, str) else column


class RetrievalStepConfig(Section):
    """A tool whose steps count as retrieval; in a file its name alone will do.

    Attributes:
        name: The name of the tool, or that of its steps where ``steps.names`` gives them another.
        column: The column of its SPARQL results that holds the ids, with or without a question mark; None for tools
            that give documents.

    Example:
        >>> RetrievalStepConfig.model_validate("search_docs").name
        'search_docs'
    """

    name: str = Field(min_length=1)
    column: Annotated[Annotated[str, Field(min_length=1)] | None, BeforeValidator(_without_mark)] = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, values: Any) -> Any:
        return {"name": values} if isinstance(values, str) else values


class TextSimilarityConfig(Section):
    """How retrieved texts are compared with those of the reference step; on where both have texts.

    Attributes:
        enabled: Whether they are compared.
        threshold: The least similarity of two texts that are taken for the same, 0 to 1.
        distance: What the similarity is made of.
    """

    enabled: bool = True
    threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    distance: Distance = "levenshtein"


class RetrievalConfig(Section):
    """Which steps count as retrieval, and how they are measured without a language model.

    Attributes:
        measures: What is measured of the retrieved ids, such as ``P@5`` and ``nDCG@10``; None for precision, recall,
            F1, RR, AP, nDCG, Success and Rprec, each without a cut-off; an empty list for nothing.
        steps: The tools that count as retrieval beside ``retrieval``: ``[search_docs]``, or for SPARQL results
            ``[{name: sparql_query, column: document}]``.
        missing: ``absent`` leaves reference steps that no step fulfilled out of the figures; ``zero`` counts them as 0.
        text: How texts are compared.

    Example:
        >>> RetrievalConfig(steps=["search_docs", {"name": "sparql_query", "column": "document"}]).columns()
        {'sparql_query': 'document'}
    """

    measures: list[Annotated[str, AfterValidator(_known_measure)]] | None = None
    steps: list[RetrievalStepConfig] = Field(default_factory=list)
    missing: Literal["absent", "zero"] = "absent"
    text: TextSimilarityConfig = Field(default_factory=TextSimilarityConfig)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        seen: set[str] = set()
        for index, step in enumerate(self.steps):
            if step.name in seen:
                raise mistake(f"the name {step.name} stands twice", "Remove one of them.", "steps", str(index), "name")
            seen.add(step.name)
        return self

    def parsed_measures(self) -> Sequence[Measure]:
        """Give the measures."""
        return DEFAULT_MEASURES if self.measures is None else _parsed(tuple(self.measures))

    def metric_keys(self) -> dict[str, tuple[str, ...]]:
        """Give the metrics that are measured, by the family to which they belong.

        Example:
            >>> RetrievalConfig(measures=["P@5"], text=TextSimilarityConfig(enabled=False)).metric_keys()
            {'retrieval_ids_': ('retrieval_ids_precision@5',), 'retrieval_text_': ()}
        """
        of_texts = _TEXT_MEASURES if self.text.enabled else ()
        return {
            RETRIEVAL_IDS: tuple(f"{RETRIEVAL_IDS}{measure.key}" for measure in self.parsed_measures()),
            RETRIEVAL_TEXT: tuple(f"{RETRIEVAL_TEXT}{measure}" for measure in of_texts),
        }

    def document_step_names(self, names: Mapping[str, str] | None = None) -> frozenset[str]:
        """Give the names of the steps that give documents.

        Args:
            names: ``steps.names``: the names of the tools' steps count too.
        """
        return frozenset(
            {RETRIEVAL, *(name for name, column in self._columns_by_name(names or {}).items() if column is None)}
        )

    def columns(self, names: Mapping[str, str] | None = None) -> dict[str, str]:
        """Give the columns that hold the ids, by the name of the steps that give SPARQL results.

        Args:
            names: ``steps.names``: the names of the tools' steps count too.
        """
        return {name: column for name, column in self._columns_by_name(names or {}).items() if column is not None}

    def _columns_by_name(self, names: Mapping[str, str]) -> dict[str, str | None]:
        columns: dict[str, str | None] = {step.name: step.column for step in self.steps}
        for step in self.steps:
            # What is said of a name itself goes before what is said of a tool that is called so.
            name = names.get(step.name, RETRIEVAL)
            if name != RETRIEVAL:
                columns.setdefault(name, step.column)
        return columns


@lru_cache(maxsize=64)
def _parsed(measures: tuple[str, ...]) -> tuple[Measure, ...]:
    return tuple(parse_measure(text) for text in measures)
