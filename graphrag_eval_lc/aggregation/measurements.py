"""Which figures of a result are summed up, and what counts as a measurement."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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

# Sums and squares of numbers up to here are floats too, however many there are.
_LARGEST = 1e100

Sample = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures that are summed up with a config.

    Attributes:
        of_samples: Those of a result, the outputs and costs of custom evaluations included.
        spent: Those of them that say what was spent.
        retrieval_names: What retrieval steps are called.
        found: Those that results name themselves, under ``custom_metrics``, as functions of a caller gave them.
    """

    of_samples: tuple[str, ...]
    spent: frozenset[str]
    retrieval_names: frozenset[str]
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


def metrics_of(config: EvaluationConfig) -> Metrics:
    """Give the figures that are summed up with a config.

    Example:
        >>> metrics_of(EvaluationConfig()).of_samples == SAMPLE_METRICS
        True
    """
    custom = config.custom_evaluations or ()
    costs = [f"{evaluation.name}_cost" for evaluation in custom]
    return Metrics(
        of_samples=(*SAMPLE_METRICS, *(key for evaluation in custom for key in evaluation.outputs), *costs),
        spent=frozenset({*SPENT_METRICS, *costs}),
        retrieval_names=frozenset(
            {"retrieval", *(tool for tool, name in config.steps.names.items() if name == "retrieval")}
        ),
    )


def is_error(sample: Sample) -> bool:
    """Tell whether a result is of a question that failed."""
    return sample.get("status") == "error" or sample.get("error") is not None


def number(value: object) -> float | None:
    """Give a measured number; NaN, infinities and numbers beyond all sense measure nothing."""
    if not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def steps_of(sample: Sample) -> Iterable[Mapping[str, Any]]:
    """Give the actual steps of a result."""
    return sample.get("actual_steps") or ()
