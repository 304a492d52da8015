"""The values of the metrics in one result, and why its question failed or scored less than in full."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, RetrievalConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    COUNTED,
    STEPS_PRECISION,
    STEPS_SCORE,
    UPPER_BOUNDS,
    aggregated_metrics,
    metric_spec,
)
from graphrag_eval_lc.texts import shortened

Sample = Mapping[str, Any]


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


def with_upper_bounds(values: Mapping[str, float]) -> dict[str, float]:
    """Return a sample's values with the upper bounds that it lacks: what is not uncertain bounds itself.

    Example:
        >>> with_upper_bounds({"steps_score": 0.5})
        {'steps_score': 0.5, 'steps_score_upper': 0.5}
    """
    bounds = {metric: values[bounded] for metric, bounded in UPPER_BOUNDS.items() if bounded in values}
    return {**values, **bounds, **{metric: values[metric] for metric in bounds if metric in values}}


def _counted(metric: str, value: object, has_failed: bool) -> float | None:
    """Return a metric's value, of a failed question what it counts as then; None where nothing was measured."""
    measured = number(value)
    if measured is None or not has_failed:
        return measured
    return metric_spec(metric).value_in_failure(measured)


# Where results count the missing reference steps, by the beginning of the metrics' names.
_MISSING_KEYS = {spec.key: spec.missing_key for spec in BUILT_IN if spec.is_family and spec.missing_key is not None}


def _family_of(metric: str) -> str | None:
    return next((prefix for prefix in _MISSING_KEYS if metric.startswith(prefix)), None)


class RetrievalMetrics:
    """The retrieval metrics that need no language model; which there are depends on the config and the results.

    Args:
        config: The section on retrieval.

    Attributes:
        missing_keys: The keys of results that count the reference steps that nothing fulfilled.
    """

    missing_keys = tuple(_MISSING_KEYS.values())

    def __init__(self, config: RetrievalConfig) -> None:
        self._is_missing_zero = config.missing == "zero"
        self._config = config
        self._found: dict[str, dict[str, None]] = {prefix: {} for prefix in _MISSING_KEYS}

    def values(self, sample: Sample) -> Iterator[tuple[str, float]]:
        """Yield the number of missing reference steps under its key, then each metric of each step.

        It is called with the results that have one of ``missing_keys``: in others nothing is measured.
        """
        has_failed = is_error(sample)
        for key in self.missing_keys:
            if isinstance(count := sample.get(key), int) and count >= 0:
                yield key, count
        for step in sample.get("actual_steps") or ():
            for key in step:
                prefix = _family_of(key)
                value = None if prefix is None else _counted(key, step[key], has_failed)
                if prefix is not None and value is not None:
                    self._found[prefix][key] = None
                    yield key, value

    def names(self, missing: Set[str]) -> Iterable[str]:
        """Yield the metrics that have values.

        Args:
            missing: The keys of ``missing_keys`` that are above 0 in some result.
        """
        for prefix, found in self._found.items():
            # Where nothing at all was fulfilled, the config says which metrics would have been measured.
            is_zero = self._is_missing_zero and _MISSING_KEYS[prefix] in missing
            yield from found or (self._config.metric_keys()[prefix] if is_zero else ())

    def zeros_key(self, metric: str) -> str | None:
        """Return the key of results that says how often a metric counts as 0 in addition; None for never."""
        prefix = _family_of(metric) if self._is_missing_zero else None
        return None if prefix is None else _MISSING_KEYS[prefix]


_OF_STEPS = tuple(spec.key for spec in aggregated_metrics("steps"))


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics that are aggregated with a config.

    Attributes:
        of_samples: Those of a result, the outputs and costs of custom evaluations included.
        retrieval_names: The names of the steps whose documents are judged.
        retrieval: The retrieval metrics that need no language model.
        found: Those that results name under ``custom_metrics``: registered ones, and those of a caller's functions.
        wanted: The only metrics that are read; None for all.
    """

    of_samples: tuple[str, ...]
    retrieval_names: frozenset[str]
    retrieval: RetrievalMetrics
    found: dict[str, None] = field(default_factory=dict)
    wanted: frozenset[str] | None = None

    def only(self, metrics: Iterable[str]) -> "Metrics":
        """Return the metrics without all others, so that no time is spent on what nobody asks for."""
        wanted = dict.fromkeys(metrics)
        of_samples = tuple(metric for metric in wanted if metric not in _OF_STEPS and _family_of(metric) is None)
        return replace(self, of_samples=of_samples, found={}, wanted=frozenset(wanted))

    def names(self) -> tuple[str, ...]:
        """Return the metrics of results, with those that were found so far."""
        return (*self.of_samples, *self.found)

    def step_names(self) -> tuple[str, ...]:
        """Return the judged metrics of retrieval steps."""
        return _OF_STEPS

    def sample_values(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Yield the metrics of a result with their values; those of a failed question as they count."""
        has_failed = is_error(sample)
        custom = sample.get("custom_metrics") if self.wanted is None else None
        for metric in custom if isinstance(custom, list) else ():
            if isinstance(metric, str) and metric not in self.of_samples:
                self.found[metric] = None
        for metric in chain(self.of_samples, self.found):
            given = sample.get(metric)  # of most metrics a result has none
            if given is not None and (value := _counted(metric, given, has_failed)) is not None:
                yield metric, value

    def values_by_metric(self, sample: Sample) -> dict[str, list[float]]:
        """Return all values of a result by metric: one of each metric of results, several of a metric of steps."""
        values = {metric: [value] for metric, value in self.sample_values(sample)}
        if self.wanted is None:
            return values | self.step_values_by_metric(sample)
        if len(self.wanted) > len(self.of_samples):
            of_steps = self.step_values_by_metric(sample)
            values |= {metric: of_steps[metric] for metric in of_steps.keys() & self.wanted}
        return values

    def step_values(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Yield the metrics of each retrieval step with their values; those of a failed question as they count."""
        steps = sample.get("actual_steps") or ()
        has_failed = bool(steps) and is_error(sample)
        for step in steps:
            for metric in _OF_STEPS if step.get("name") in self.retrieval_names else ():
                given = step.get(metric)
                if given is not None and (value := _counted(metric, given, has_failed)) is not None:
                    yield metric, value
        if any(key in sample for key in self.retrieval.missing_keys):
            yield from self.retrieval.values(sample)

    def step_values_by_metric(self, sample: Sample) -> dict[str, list[float]]:
        """Return the values of each metric of retrieval steps; missing steps are zeros where the config says so."""
        values: dict[str, list[float]] = {}
        for metric, value in self.step_values(sample):
            values.setdefault(metric, []).append(value)
        # How many are missing is no metric of a step.
        missing = {key: int(sum(values.pop(key, ()))) for key in self.retrieval.missing_keys}
        if missing_keys := {key for key, count in missing.items() if count}:
            for metric in self.retrieval.names(missing_keys):
                if zeros := missing.get(self.retrieval.zeros_key(metric) or "", 0):
                    values.setdefault(metric, []).extend([0.0] * zeros)
        return values


def metrics_of(config: EvaluationConfig) -> Metrics:
    """Return the metrics that are aggregated with a config.

    Example:
        >>> metrics_of(EvaluationConfig()).names()[:2]
        ('answer_recall', 'answer_precision')
    """
    custom = config.custom_evaluations or ()
    retrieving = config.retrieval.document_step_names(config.steps.names)
    return Metrics(
        of_samples=(
            *(spec.key for spec in aggregated_metrics("questions")),
            *(key for evaluation in custom for key in evaluation.outputs),
            *(evaluation.cost_key for evaluation in custom),
        ),
        retrieval_names=retrieving.union(tool for tool, name in config.steps.names.items() if name in retrieving),
        retrieval=RetrievalMetrics(config.retrieval),
    )


_SHOWN_REASON = 270


def reason_of(result: Mapping[str, Any]) -> str:
    """Say in one line why a question did not score in full.

    That is its error, else the diagnosis of the first unfulfilled reference step of the last group that has one, else,
    where steps are graded, that there were more calls than it takes.

    Example:
        >>> reason_of({"status": "error", "error": "TimeoutError: no answer in 600 s"})
        'TimeoutError: no answer in 600 s'
        >>> reason_of({"status": "success", "steps_score": 0.5, "steps_precision": 1 / 3, "steps_diagnosis": []})
        'all is fulfilled, by more calls than it takes: steps_precision is 0.33'
    """
    if is_error(result):
        return shortened(str(result.get("error") or "failed without a message"), _SHOWN_REASON)
    for group, diagnoses in reversed(list(enumerate(result.get("steps_diagnosis", ())))):
        for index, diagnosis in enumerate(diagnoses):
            if diagnosis["matched"] and diagnosis["score"] == 1.0:
                continue
            name = result["reference_steps"][group][index]["name"]
            about = [f"nearest: {diagnosis['nearest']}"] if "nearest" in diagnosis else []
            about += ["undecided"] if diagnosis.get("outcome") == "undecided" else []
            told = f" ({', '.join(about)})" if about else ""
            return shortened(f"{name}{told}: {diagnosis['reason']}", _SHOWN_REASON)
    score, precision = number(result.get(STEPS_SCORE)), number(result.get(STEPS_PRECISION))
    if score is not None and score < 1 and precision is not None and precision < 1:  # only where steps are graded
        return f"all is fulfilled, by more calls than it takes: {STEPS_PRECISION} is {precision:.2f}"
    return ""
