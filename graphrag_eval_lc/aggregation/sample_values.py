"""What one result holds: the values of its metrics, and its counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import COUNTED, FAMILIES, UPPER_BOUNDS, aggregated_metrics, metric_spec

Sample = Mapping[str, Any]
Values = Mapping[str, Sequence[float]]

# The retrieval metrics that need no language model, by the beginning of their names: where results count the reference
# steps that nothing fulfilled.
MISSING_KEYS = {spec.key: spec.missing_key for spec in FAMILIES.values() if spec.missing_key is not None}
# The judged metrics of retrieval steps, and their costs.
OF_STEPS = tuple(spec.key for spec in aggregated_metrics("steps"))


def number(value: object) -> float | None:
    """Return a number as it is and a boolean as 0 or 1; None for NaN, infinities, huge numbers and anything else."""
    if type(value) is float:  # as most are
        return value if abs(value) <= LARGEST else None
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def counts_of(sample: Sample) -> Iterator[tuple[str, int]]:
    """Yield the counts in a mapping of a result, such as the undecided steps, with their keys.

    Example:
        >>> list(counts_of({"steps_counts": {"extra": 2, "undecided": 1}}))
        [('undecided', 1)]
    """
    for spec in COUNTED:
        counts = sample.get(str(spec.counted_in))
        count = counts.get(spec.key) if isinstance(counts, Mapping) else None
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            yield spec.key, count


def missing_in(sample: Sample) -> dict[str, int]:
    """Return how many reference steps of retrieval nothing fulfilled, by the keys that a result has for them.

    Example:
        >>> missing_in({"retrieval_missing": 2, "steps_score": 0.5})
        {'retrieval_missing': 2}
    """
    counts = {key: sample.get(key) for key in MISSING_KEYS.values()}
    return {key: count for key, count in counts.items() if isinstance(count, int) and count >= 0}


class Metrics:
    """Reads the values of metrics in results.

    Args:
        config: The configuration, for the names of its tools and custom evaluations.
        more: More keys of results that are metrics.
        only: Whether no metrics but these are read, so that no time is spent on others.

    Attributes:
        of_samples: The metrics of a result, the outputs and costs of custom evaluations included.
        retrieval_names: The names of the steps whose documents are judged.
        found: Those that results name under ``custom_metrics``: registered ones, and those of a caller's functions.

    Example:
        >>> Metrics(EvaluationConfig()).values({"steps_score": 0.5, "total_tokens": 7, "error": "away"})
        {'steps_score': [0.0], 'total_tokens': [7]}
    """

    def __init__(self, config: EvaluationConfig, more: Iterable[str] = (), *, only: bool = False) -> None:
        custom = config.custom_evaluations or ()
        names, retrieving = config.steps.names, config.retrieval.document_step_names(config.steps.names)
        of_config = (
            *(spec.key for spec in aggregated_metrics("questions")),
            *(key for evaluation in custom for key in evaluation.outputs),
            *(evaluation.cost_key for evaluation in custom),
        )
        more = dict.fromkeys(more)
        self._wanted = frozenset(more) if only else None
        self.of_samples = tuple(dict.fromkeys((*(() if only else of_config), *more)))
        self.retrieval_names = retrieving.union(tool for tool, name in names.items() if name in retrieving)
        self.found: dict[str, None] = {}
        self._reads_steps = not only or any(key in OF_STEPS or key.startswith(tuple(FAMILIES)) for key in more)
        self._zeros = config.retrieval.metric_keys() if config.retrieval.missing == "zero" else {}

    def names(self) -> tuple[str, ...]:
        """Return the metrics of results, with those that were found so far."""
        return (*self.of_samples, *self.found)

    def values(self, sample: Sample) -> dict[str, list[float]]:
        """Return all values of a result by metric, of a failed question as they count.

        A metric of results has one value, a metric of steps one for each step; reference steps of retrieval that
        nothing fulfilled are zeros if the config says so.
        """
        has_failed = is_error(sample)
        custom = sample.get("custom_metrics") if self._wanted is None else None
        for metric in custom if isinstance(custom, list) else ():
            if isinstance(metric, str) and metric not in self.of_samples:
                self.found[metric] = None
        values: dict[str, list[float]] = {}
        for metric in chain(self.of_samples, self.found):
            given = sample.get(metric)  # of most metrics a result has none
            if given is not None and (value := _counted(metric, given, has_failed)) is not None:
                values[metric] = [value]
        if self._reads_steps:
            self._add_steps(values, sample, has_failed)
        if self._wanted is not None:
            return {metric: of_metric for metric, of_metric in values.items() if metric in self._wanted}
        return values

    def _add_steps(self, values: dict[str, list[float]], sample: Sample, has_failed: bool) -> None:
        missing = missing_in(sample)
        for step in sample.get("actual_steps") or ():
            judged = OF_STEPS if step.get("name") in self.retrieval_names else ()
            measured = [key for key in step if key.startswith(tuple(FAMILIES))] if missing else ()
            for metric in (*judged, *measured):
                given = step.get(metric)
                if given is not None and (value := _counted(metric, given, has_failed)) is not None:
                    values.setdefault(metric, []).append(value)
        for family, keys in self._zeros.items():
            if zeros := missing.get(MISSING_KEYS[family], 0):
                for metric in keys:
                    values.setdefault(metric, []).extend([0.0] * zeros)


def with_bounds(values: Values) -> Values:
    """Return the values of a result with the upper bounds that it lacks: what is not uncertain bounds itself.

    Example:
        >>> with_bounds({"steps_score": [0.5]})
        {'steps_score': [0.5], 'steps_score_upper': [0.5]}
    """
    lacking = {upper: values[key] for upper, key in UPPER_BOUNDS.items() if key in values and upper not in values}
    return {**values, **lacking} if lacking else values


def _counted(metric: str, value: object, has_failed: bool) -> float | None:
    """Return a metric's value, of a failed question what it counts as then; None if nothing was measured."""
    measured = number(value)
    if measured is None or not has_failed:
        return measured
    spec = metric_spec(metric)
    return spec.value_of_failure if spec.kind == "score" else measured
