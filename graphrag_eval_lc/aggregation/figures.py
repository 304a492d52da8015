"""The statistics of one metric, by template and over all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from graphrag_eval_lc.metrics import clustered_standard_error

Statistics = dict[str, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a metric.

    Attributes:
        per_template: Its statistics by template: ``sum``, ``mean``, ``median``, ``min`` and ``max``.
        micro: Its statistics over all values.
        macro: The mean over the templates' means.
        standard_error: That of the mean over all values, clustered by template; None where it is not known.
    """

    per_template: Mapping[str, Statistics]
    micro: Statistics
    macro: float
    standard_error: float | None = None


def figures_of(values: Mapping[str, Sequence[float]], *, with_error: bool) -> Figures:
    """Give the statistics of values by template, of which each has at least one."""
    per_template = {template_id: statistics_of(group) for template_id, group in values.items()}
    return Figures(
        per_template,
        micro=statistics_of([value for group in values.values() for value in group]),
        macro=mean(statistics["mean"] for statistics in per_template.values()),
        standard_error=clustered_standard_error(values.values()) if with_error else None,
    )


def statistics_of(values: Sequence[float]) -> Statistics:
    """Give sum, mean, median, min and max of at least one number."""
    return {
        "sum": exact_sum(values),
        "mean": mean(values),
        "median": median(values),
        "min": min(values),
        "max": max(values),
    }


def exact_sum(values: Sequence[float]) -> float:
    """Add up exactly: whole numbers stay whole, and floats do not depend on their order."""
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)
