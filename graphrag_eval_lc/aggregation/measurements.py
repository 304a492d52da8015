"""Which figures of a result are summed up, and what counts as a measurement."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from graphrag_eval_lc.aggregation.retrieval_figures import RetrievalFigures
from graphrag_eval_lc.aggregation.sample_values import Sample, is_error, number, steps_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry.metrics import metric_spec, summed_up

_OF_STEPS = tuple(spec.key for spec in summed_up("steps"))
# For those who do not ask the registry yet.
SAMPLE_METRICS = tuple(spec.key for spec in summed_up("questions"))
STEP_METRICS = _OF_STEPS


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures that are summed up with a config.

    Attributes:
        of_samples: Those of a result, the outputs and costs of custom evaluations included.
        retrieval_names: What the steps are called whose documents are judged.
        retrieval: Finds what is measured of retrieval without a language model.
        found: Those of results that results name themselves, under ``custom_metrics``: registered metrics, and what
            functions of a caller gave.
        found_of_steps: Likewise those of steps.
    """

    of_samples: tuple[str, ...]
    retrieval_names: frozenset[str]
    retrieval: RetrievalFigures
    found: dict[str, None] = field(default_factory=dict)
    found_of_steps: dict[str, None] = field(default_factory=dict)

    @property
    def spent(self) -> frozenset[str]:
        """Those of results that say what was spent, for those who do not ask the registry yet."""
        return frozenset(metric for metric in self.names() if metric_spec(metric).is_spent)

    def names(self) -> tuple[str, ...]:
        """Give the figures of results, those included that were found so far."""
        return (*self.of_samples, *self.found)

    def step_names(self) -> tuple[str, ...]:
        """Give the figures of steps, those included that were found so far, but for those of ``retrieval``."""
        return (*_OF_STEPS, *self.found_of_steps)

    def sample_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Give each metric that was measured; of a failed question what it counts as."""
        has_failed = is_error(sample)
        custom = sample.get("custom_metrics")
        for metric in custom if isinstance(custom, list) else ():
            if isinstance(metric, str) and metric not in self.found and metric not in self.of_samples:
                is_of_steps = metric_spec(metric).over == "steps"
                (self.found_of_steps if is_of_steps else self.found)[metric] = None
        for metric in self.names():
            value = number(sample.get(metric))
            if value is not None and has_failed:
                value = metric_spec(metric).value_in_failure(value)
            if value is not None:
                yield metric, value

    def step_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Give each metric that was measured for a step, those of judges for retrieval steps alone."""
        has_failed = is_error(sample)
        for step in steps_of(sample):
            is_retrieval = step.get("name") in self.retrieval_names
            for metric in self.step_names() if is_retrieval else self.found_of_steps:
                value = number(step.get(metric))
                if value is not None and has_failed:
                    value = metric_spec(metric).value_in_failure(value)
                if value is not None:
                    yield metric, value
        yield from self.retrieval.numbers(sample)

    def step_scores(self, sample: Sample) -> dict[str, list[float]]:
        """Give the values of each metric of retrieval steps, with the zeros of missing ones where they count as 0."""
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
    """Give the figures that are summed up with a config.

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
