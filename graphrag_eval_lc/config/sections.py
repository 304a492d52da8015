"""The sections on steps, SPARQL results, aggregates and repeats."""

from typing import Any, Literal

from pydantic import Field

from graphrag_eval_lc.config.section import Section
from graphrag_eval_lc.records import RelativeTolerance
from graphrag_eval_lc.registry.metrics import MAIN_METRIC

Scoring = Literal["last_group", "all_groups"]


class StepsConfig(Section):
    """How the steps of a question become its ``steps_score``.

    Attributes:
        scoring: ``last_group``: the last group of reference steps counts alone. ``all_groups``: the mean over the
            groups, walking back from the last and stopping after a group that is not matched in full.
        names: Step names by tool name, for tools that are called otherwise than the reference steps:
            ``{search_docs: retrieval}``.
    """

    scoring: Scoring = "last_group"
    names: dict[str, str] = Field(default_factory=dict)


class ToleranceConfig(Section):
    """The share of the larger one by which two numbers may differ and still be equal, by XSD datatype; 0 to below 1.

    Of two datatypes the larger share counts. Decimals among themselves have none, and integers are exact beside all.

    Attributes:
        float: That of xsd:float.
        double: That of xsd:double, and of numbers that have no datatype and are not whole.
    """

    float: RelativeTolerance = 1e-5
    double: RelativeTolerance = 1e-12


class SparqlConfig(Section):
    """How SPARQL results are compared where a reference step does not say so itself.

    Attributes:
        ordered: Compare the rows in their order, duplicates too.
        ignore_duplicates: Compare unordered rows as a set; false compares them as a bag.
        strict: Compare RDF terms with kind, datatype and language tag; false compares values.
        tolerance: By how much numbers may differ, where values are compared; 1e-8 is always allowed.
    """

    ordered: bool = False
    ignore_duplicates: bool = True
    strict: bool = False
    tolerance: ToleranceConfig = Field(default_factory=ToleranceConfig)

    def step_defaults(self) -> dict[str, Any]:
        """Give what counts for the keys that a reference step lacks."""
        return self.model_dump()


class AggregatesConfig(Section):
    """What the statistics are taken over.

    Attributes:
        errors: ``exclude`` leaves failed questions out of the statistics; ``include`` counts their scores as 0, or as
            the greatest value of a score of which less is better.
    """

    errors: Literal["exclude", "include"] = "exclude"


class RepeatsConfig(Section):
    """When a sample passes, for pass@k and pass^k of questions that were asked several times.

    Attributes:
        metric: The score that decides: one of this package, a registered one, or one that a custom evaluation gives.
            Of a score of steps it is the mean over the sample's steps.
        threshold: The least score that passes; where less is better, the greatest. It lies in the score's range.
    """

    metric: str = MAIN_METRIC
    threshold: float = Field(default=1.0, allow_inf_nan=False)
