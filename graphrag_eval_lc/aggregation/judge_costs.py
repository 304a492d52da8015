"""What the judges of a result cost."""

from collections.abc import Iterable, Mapping

from graphrag_eval_lc.aggregation.sample_values import Sample, number, steps_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import Over
from graphrag_eval_lc.registry.metrics import BUILT_IN

# The key of each cost, and what stands beside it where a model was asked.
Judges = Mapping[str, tuple[str, ...]]


def _judges(over: Over) -> Judges:
    """Give the costs of the package's judges, but for those that are sums of others."""
    judges: dict[str, tuple[str, ...]] = {}
    for spec in BUILT_IN:
        if spec.over == over and spec.cost_key is not None and not _is_sum(spec):
            beside = (key for key in spec.keys if key != spec.cost_key)
            judges[spec.cost_key] = (*judges.get(spec.cost_key, ()), *beside)
    return judges


def _is_sum(spec: MetricSpec) -> bool:
    """Tell whether a metric's cost is the sum of what its parts cost, as that of F1 of contexts."""
    return any(part.part_of == spec.key and part.cost_key != spec.cost_key for part in BUILT_IN)


_SAMPLE_JUDGES = _judges("questions")
_STEP_JUDGES = _judges("steps")


class JudgeCosts:
    """Finds in results what their judges cost.

    Args:
        config: The configuration, for the names of its custom evaluations.

    Example:
        >>> costs = JudgeCosts(EvaluationConfig())
        >>> list(costs.of({"answer_f1": 0.5, "answer_correctness_cost": 0.01, "answer_relevance": 0.9}))
        [0.01, None]
    """

    def __init__(self, config: EvaluationConfig) -> None:
        custom = {f"{each.name}_cost": tuple(each.outputs) for each in config.custom_evaluations or ()}
        # A custom evaluation may fail for want of its inputs, and then says nothing of a cost.
        self._sample_judges = {**_SAMPLE_JUDGES, **custom}

    def of(self, sample: Sample) -> Iterable[float | None]:
        """Give the USD of each judge that was asked, None where they are not known.

        A judge that failed says with its error what was paid for it, which may be 0; without that nobody knows it.
        """
        yield from _costs(sample, self._sample_judges)
        for step in steps_of(sample):
            yield from _costs(step, _STEP_JUDGES)


def _costs(record: Sample, judges: Judges) -> Iterable[float | None]:
    for key, judged in judges.items():
        cost = number(record.get(key))
        if cost is not None or any(record.get(metric) is not None for metric in judged):
            yield cost
