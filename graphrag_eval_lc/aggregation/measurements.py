"""Which figures of a result are summed up, and what counts as a measurement."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from graphrag_eval_lc.aggregation.retrieval_figures import MISSING_KEYS, RetrievalFigures
from graphrag_eval_lc.aggregation.sample_values import Sample, is_error, number, steps_of
from graphrag_eval_lc.config import EvaluationConfig

# In graphrag-eval's order, then what it has not.
SAMPLE_METRICS = (
    "answer_recall",
    "answer_precision",
    "answer_relevance",
    "answer_f1",
    "steps_score",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "elapsed_sec",
    "agent_cost",
    "answer_correctness_cost",
    "answer_relevance_cost",
)
JUDGED_STEP_METRICS = (
    "retrieval_answer_precision",
    "retrieval_answer_recall",
    "retrieval_answer_f1",
    "retrieval_context_recall",
    "retrieval_context_precision",
    "retrieval_context_f1",
    "retrieval_utilization",
)
STEP_METRICS = (*JUDGED_STEP_METRICS, *(f"{metric}_cost" for metric in JUDGED_STEP_METRICS))
SPENT_METRICS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "elapsed_sec",
    "agent_cost",
    "answer_correctness_cost",
    "answer_relevance_cost",
)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures that are summed up with a config.

    Attributes:
        of_samples: Those of a result, the outputs and costs of custom evaluations included.
        spent: Those of them that say what was spent.
        retrieval_names: What the steps are called whose documents are judged.
        retrieval: Finds what is measured of retrieval without a language model.
        found: Those that results name themselves, under ``custom_metrics``, as functions of a caller gave them.
    """

    of_samples: tuple[str, ...]
    spent: frozenset[str]
    retrieval_names: frozenset[str]
    retrieval: RetrievalFigures
    found: dict[str, None] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Give the figures of results, those included that were found so far."""
        return (*self.of_samples, *self.found)

    def sample_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Give each metric that was measured; a failed question's scores are 0, what it spent is what it spent."""
        has_failed = is_error(sample)
        custom = sample.get("custom_metrics")
        if isinstance(custom, list):
            self.found.update({metric: None for metric in custom if metric not in self.of_samples})
        for metric in self.names():
            value = number(sample.get(metric))
            if value is not None:
                yield metric, 0.0 if has_failed and metric not in self.spent else value

    def step_numbers(self, sample: Sample) -> Iterable[tuple[str, float]]:
        """Give each metric that was measured for a retrieval step."""
        for step in steps_of(sample):
            if step.get("name") in self.retrieval_names:
                for metric in STEP_METRICS:
                    value = number(step.get(metric))
                    if value is not None:
                        yield metric, value
        yield from self.retrieval.numbers(sample)

    def step_scores(self, sample: Sample) -> dict[str, list[float]]:
        """Give the values of each metric of retrieval steps, with the zeros of missing ones where they count as 0."""
        values: dict[str, list[float]] = {}
        for metric, value in self.step_numbers(sample):
            values.setdefault(metric, []).append(value)
        # How many are missing is no score.
        missing = {key: int(sum(values.pop(key, ()))) for key in MISSING_KEYS}
        for metric in self.retrieval.names({key for key, count in missing.items() if count}):
            if zeros := missing.get(self.retrieval.zeros_key(metric) or "", 0):
                values.setdefault(metric, []).extend([0.0] * zeros)
        return values


def metrics_of(config: EvaluationConfig) -> Metrics:
    """Give the figures that are summed up with a config.

    Example:
        >>> metrics_of(EvaluationConfig()).of_samples == SAMPLE_METRICS
        True
    """
    custom = config.custom_evaluations or ()
    costs = [f"{evaluation.name}_cost" for evaluation in custom]
    retrieving = config.retrieval.document_step_names(config.steps.names)
    return Metrics(
        of_samples=(*SAMPLE_METRICS, *(key for evaluation in custom for key in evaluation.outputs), *costs),
        spent=frozenset({*SPENT_METRICS, *costs}),
        retrieval_names=retrieving.union(tool for tool, name in config.steps.names.items() if name in retrieving),
        retrieval=RetrievalFigures(config.retrieval),
    )
