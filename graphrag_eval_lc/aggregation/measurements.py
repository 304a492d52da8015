"""Which figures of a result are summed up, and what counts as a measurement."""

from collections.abc import Iterable, Mapping
from typing import Any

# In graphrag-eval's order.
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
)
STEP_METRICS = (
    "retrieval_answer_precision",
    "retrieval_answer_recall",
    "retrieval_answer_f1",
    "retrieval_context_recall",
    "retrieval_context_precision",
    "retrieval_context_f1",
)
SPENT_METRICS = ("input_tokens", "output_tokens", "total_tokens", "elapsed_sec")

# Sums and squares of numbers up to here are floats too, however many there are.
_LARGEST = 1e100

Sample = Mapping[str, Any]


def is_error(sample: Sample) -> bool:
    """Tell whether a result is of a question that failed."""
    return sample.get("status") == "error" or sample.get("error") is not None


def number(value: object) -> float | None:
    """Give a measured number; NaN, infinities and numbers beyond all sense measure nothing."""
    if not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def sample_numbers(sample: Sample) -> Iterable[tuple[str, float]]:
    """Give each metric that was measured; a failed question's scores are 0, what it spent is what it spent."""
    has_failed = is_error(sample)
    for metric in SAMPLE_METRICS:
        value = number(sample.get(metric))
        if value is not None:
            yield metric, 0.0 if has_failed and metric not in SPENT_METRICS else value


def step_numbers(sample: Sample) -> Iterable[tuple[str, float]]:
    """Give each metric that was measured for a retrieval step."""
    for step in steps_of(sample):
        if step.get("name") == "retrieval":
            for metric in STEP_METRICS:
                value = number(step.get(metric))
                if value is not None:
                    yield metric, value


def steps_of(sample: Sample) -> Iterable[Mapping[str, Any]]:
    """Give the actual steps of a result."""
    return sample.get("actual_steps") or ()
