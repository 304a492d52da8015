"""What one result says: whether and why it failed, and which metrics were measured."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, RetrievalConfig
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import BUILT_IN, metric_spec, summed_up
from graphrag_eval_lc.texts import shortened

Sample = Mapping[str, Any]


def is_error(sample: Sample) -> bool:
    """Return whether a result is of a question that failed."""
    return sample.get("status") == "error" or sample.get("error") is not None


def number(value: object) -> float | None:
    """Return a measured number; NaN, infinities and numbers beyond all sense measure nothing."""
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def steps_of(sample: Sample) -> Iterable[Mapping[str, Any]]:
    """Return the actual steps of a result."""
    return sample.get("actual_steps") or ()


# By what the names of the measures begin with.
_MISSING_KEYS = {spec.key: spec.missing_key for spec in BUILT_IN if spec.is_family and spec.missing_key is not None}


class RetrievalFigures:
    """Finds in results what was measured of retrieval without a language model.

    Args:
        config: The section on retrieval.

    Attributes:
        missing_keys: Under which results say how many reference steps nothing fulfilled.
    """

    missing_keys = tuple(_MISSING_KEYS.values())

    def __init__(self, config: RetrievalConfig) -> None:
        self._is_missing_zero = config.missing == "zero"
        self._expected = config.metric_keys()
        self._found: dict[str, dict[str, None]] = {prefix: {} for prefix in _MISSING_KEYS}

    def numbers(self, sample: Sample) -> Iterator[tuple[str, float]]:
        """Yield each measure of each step, and how many reference steps are missing under a key of its own.

        The measures of a failed question are 0.
        """
        has_failed = is_error(sample)
        keys = [key for key in self.missing_keys if key in sample]
        for key in keys:
            if isinstance(count := sample[key], int) and count >= 0:
                yield key, count
        for step in steps_of(sample) if keys else ():  # without such reference steps nothing is measured
            for key in step:
                prefix = next((prefix for prefix in _MISSING_KEYS if key.startswith(prefix)), None)
                value = None if prefix is None else number(step[key])
                if value is not None and has_failed:
                    value = metric_spec(key).value_in_failure(value)
                if prefix is not None and value is not None:
                    self._found[prefix][key] = None
                    yield key, value

    def names(self, missing: Set[str]) -> Iterable[str]:
        """Yield the measures that have figures.

        Args:
            missing: The keys under which results said that something is missing.
        """
        for prefix, found in self._found.items():
            # Where nothing at all was fulfilled there are zeros of what would have been measured.
            is_zero = self._is_missing_zero and _MISSING_KEYS[prefix] in missing
            yield from found or (self._expected[prefix] if is_zero else ())

    def zeros_key(self, metric: str) -> str | None:
        """Return the key under which results say how many zeros a metric has more; None where that is none."""
        if not self._is_missing_zero:
            return None
        return next((key for prefix, key in _MISSING_KEYS.items() if metric.startswith(prefix)), None)


_OF_STEPS = tuple(spec.key for spec in summed_up("steps"))


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures that are summed up with a config.

    Attributes:
        of_samples: Those of a result, the outputs and costs of custom evaluations included.
        retrieval_names: What the steps are called whose documents are judged.
        retrieval: Finds what is measured of retrieval without a language model.
        found: Those that results name themselves, under ``custom_metrics``: registered metrics, and what functions of
            a caller gave.
    """

    of_samples: tuple[str, ...]
    retrieval_names: frozenset[str]
    retrieval: RetrievalFigures
    found: dict[str, None] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the figures of results, those included that were found so far."""
        return (*self.of_samples, *self.found)

    def step_names(self) -> tuple[str, ...]:
        """Return the figures of retrieval steps that judges give."""
        return _OF_STEPS

    def sample_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Yield each metric that was measured; of a failed question what it counts as."""
        has_failed = is_error(sample)
        custom = sample.get("custom_metrics")
        for metric in custom if isinstance(custom, list) else ():
            if isinstance(metric, str) and metric not in self.of_samples:
                self.found[metric] = None
        for metric in self.names():
            value = number(sample.get(metric))
            if value is not None and has_failed:
                value = metric_spec(metric).value_in_failure(value)
            if value is not None:
                yield metric, value

    def step_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Yield each metric that was measured for a retrieval step; of a failed question what it counts as."""
        has_failed = is_error(sample)
        for step in steps_of(sample):
            for metric in _OF_STEPS if step.get("name") in self.retrieval_names else ():
                value = number(step.get(metric))
                if value is not None and has_failed:
                    value = metric_spec(metric).value_in_failure(value)
                if value is not None:
                    yield metric, value
        yield from self.retrieval.numbers(sample)

    def step_scores(self, sample: Sample) -> dict[str, list[float]]:
        """Return the values of each metric of retrieval steps, with the zeros of missing ones where they count as 0."""
        values: dict[str, list[float]] = {}
        for metric, value in self.step_numbers(sample):
            values.setdefault(metric, []).append(value)
        # How many are missing is no score.
        missing = {key: int(sum(values.pop(key, ()))) for key in self.retrieval.missing_keys}
        for metric in self.retrieval.names({key for key, count in missing.items() if count}):
            if zeros := missing.get(self.retrieval.zeros_key(metric) or "", 0):
                values.setdefault(metric, []).extend([0.0] * zeros)
        return values


def metrics_of(config: EvaluationConfig) -> Metrics:
    """Return the figures that are summed up with a config.

    Example:
        >>> metrics_of(EvaluationConfig()).names()[:2]
        ('answer_recall', 'answer_precision')
    """
    custom = config.custom_evaluations or ()
    costs = [f"{evaluation.name}_cost" for evaluation in custom]
    retrieving = config.retrieval.document_step_names(config.steps.names)
    return Metrics(
        of_samples=(
            *(spec.key for spec in summed_up("questions")),
            *(key for evaluation in custom for key in evaluation.outputs),
            *costs,
        ),
        retrieval_names=retrieving.union(tool for tool, name in config.steps.names.items() if name in retrieving),
        retrieval=RetrievalFigures(config.retrieval),
    )


_SHOWN_REASON = 270


def reason_of(result: Mapping[str, Any]) -> str:
    """Say in one line why a question did not score in full.

    That is its error, else the diagnosis of the first reference step of the last groups that nothing fulfils.

    Example:
        >>> reason_of({"status": "error", "error": "TimeoutError: no answer in 600 s"})
        'TimeoutError: no answer in 600 s'
    """
    if is_error(result):
        return shortened(str(result.get("error") or "failed without a message"), _SHOWN_REASON)
    for group, diagnoses in reversed(list(enumerate(result.get("steps_diagnosis", ())))):
        for index, diagnosis in enumerate(diagnoses):
            if diagnosis["matched"] and diagnosis["score"] == 1.0:
                continue
            name = result["reference_steps"][group][index]["name"]
            nearest = f" (nearest: {diagnosis['nearest']})" if "nearest" in diagnosis else ""
            return shortened(f"{name}{nearest}: {diagnosis['reason']}", _SHOWN_REASON)
    return ""
