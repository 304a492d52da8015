"""What the judges of a result cost."""

from collections.abc import Iterable, Mapping

from graphrag_eval_lc.aggregation.measurements import JUDGED_STEP_METRICS
from graphrag_eval_lc.aggregation.sample_values import Sample, number, steps_of
from graphrag_eval_lc.config import EvaluationConfig

# The key of each cost, and what stands beside it where a model was asked.
Judges = Mapping[str, tuple[str, ...]]

_SAMPLE_JUDGES: Judges = {
    "answer_correctness_cost": (
        "answer_correctness_reason",
        "answer_recall",
        "answer_precision",
        "answer_f1",
        "answer_correctness_error",
    ),
    "answer_relevance_cost": ("answer_relevance", "answer_relevance_error"),
}
# The cost of an f1 is that of its two parts.
_STEP_JUDGES: Judges = {
    f"{metric}_cost": (metric, f"{metric}_error") for metric in JUDGED_STEP_METRICS if not metric.endswith("_f1")
}


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
