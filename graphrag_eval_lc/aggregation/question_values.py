"""Each question's values for gates and comparisons, where failed questions count as the worst score."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import fsum

from graphrag_eval_lc.aggregation.sample_values import Metrics, Sample, metrics_of, number, steps_of, with_upper_bounds
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metric_spec import Need
from graphrag_eval_lc.registry.metrics import (
    RETRIEVAL_MISSING,
    RETRIEVAL_TEXT_MISSING,
    STEPS_SCORE,
    UPPER_BOUNDS,
    metric_spec,
)


@dataclass(slots=True)
class QuestionValues:
    """The values of one question, summed over its samples.

    Attributes:
        question_id: The question.
        template_id: Its template.
        text_digest: A digest of its text but for white space; None where the text is not known.
        samples: The number of its samples.
        errors: The number of those that failed.
        sums: The sum and the number of the values of each metric.
        failures: For each failed sample which of the metrics' needs it meets.
    """

    question_id: str
    template_id: str
    text_digest: bytes | None = None
    samples: int = 0
    errors: int = 0
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)
    failures: list[frozenset[Need]] = field(default_factory=list)

    def score(self, metric: str, *, has_elsewhere: bool = False) -> float | None:
        """Return the mean of a score over the question's samples; None where it has none.

        Failed samples count as 0; where less is better, as the greatest value, or not at all if there is none.

        Args:
            metric: The score.
            has_elsewhere: Whether the question has this score in another run, so that a failed sample would have had
                it too.
        """
        total, count = self.sums.get(metric, (0.0, 0))
        has_score = count > 0 or has_elsewhere
        spec = metric_spec(metric) if self.failures else None
        if spec is not None and spec.value_of_failure is not None:
            failed = sum(1 for has in self.failures if has_score or spec.needs is None or spec.needs in has)
            total += failed * spec.value_of_failure
            count += failed
        return total / count if count else None

    def spent(self, metric: str) -> float | None:
        """Return the mean of what the samples spent, failed ones included; None where it is not known."""
        total, count = self.sums.get(metric, (0.0, 0))
        return total / count if count else None


class RunValues:
    """The values of a run's questions; results are added one at a time, and only their values are kept.

    Args:
        config: The run's configuration, for the names of its tools and custom evaluations.
        metrics: More keys of the results that are metrics.

    Attributes:
        questions: The questions by id, in the order of the results.

    Example:
        >>> values = RunValues()
        >>> values.add({"template_id": "t", "question_id": "q1", "steps_score": 1.0})
        >>> values.add({"template_id": "t", "question_id": "q2", "steps_score": 0.5, "error": "away"})
        >>> [question.score("steps_score") for question in values.questions.values()]
        [1.0, 0.0]
    """

    def __init__(self, config: EvaluationConfig | None = None, metrics: Iterable[str] = ()) -> None:
        known = metrics_of(config or EvaluationConfig())
        more = [metric for metric in metrics if metric not in known.of_samples]
        self._metrics: Metrics = replace(known, of_samples=(*known.of_samples, *more), found={})
        self._measured: dict[str, None] = {}
        self._failures: dict[frozenset[Need], frozenset[Need]] = {}
        self.questions: dict[str, QuestionValues] = {}

    def add(self, result: Sample) -> None:
        """Add a result, which has ``question_id`` and ``template_id``."""
        identifier = str(result["question_id"])
        question = self.questions.get(identifier)
        if question is None:
            question = self.questions[identifier] = QuestionValues(
                identifier, str(result.get("template_id")), _text_digest(result.get("question_text"))
            )
        question.samples += 1
        if is_error(result):
            question.errors += 1
            question.failures.append(self._failure(result))
        values_by_metric = self._values(result)
        self._measured.update(dict.fromkeys(values_by_metric))
        bounds = with_upper_bounds({metric: sum(values) for metric, values in values_by_metric.items()})
        values_by_metric |= {metric: [bounds[metric]] for metric in UPPER_BOUNDS if metric in bounds}
        for metric, values in values_by_metric.items():
            if not is_error(result) or metric_spec(metric).kind != "score":
                total, count = question.sums.get(metric, (0.0, 0))
                question.sums[metric] = (total + sum(values) / len(values), count + 1)

    def measured(self) -> Sequence[str]:
        """Return the metrics that some sample has, the first seen first."""
        return list(self._measured)

    def has(self, metric: str) -> bool:
        """Return whether the questions have a metric: some sample has it, or what it is the upper bound of."""
        return metric in self._measured or UPPER_BOUNDS.get(metric) in self._measured

    def mean_of_upper_bound(self, metric: str) -> float | None:
        """Return the mean of a score's upper bound over the questions, failed ones as the score's; None without one."""
        upper = next((key for key, bounded in UPPER_BOUNDS.items() if bounded == metric and key in self._measured), "")
        scores = [score for question in self.questions.values() if (score := question.score(upper)) is not None]
        return fsum(scores) / len(scores) if upper and scores else None

    def _values(self, result: Sample) -> dict[str, list[float]]:
        values: dict[str, list[float]] = {}
        for metric, value in self._metrics.sample_values(result):
            values.setdefault(metric, []).append(value)
        return values | self._metrics.step_values_by_metric(result)

    def _failure(self, result: Sample) -> frozenset[Need]:
        """Return which of the metrics' needs a failed sample meets."""
        groups = result.get("reference_steps") or ()
        steps = [*(step for group in groups for step in group), *steps_of(result)]
        had: dict[Need, bool] = {
            "reference_steps": bool(groups) or number(result.get(STEPS_SCORE)) is not None,
            "reference_answer": result.get("reference_answer") is not None,
            "retrieval_steps": any(step.get("name") in self._metrics.retrieval_names for step in steps),
            "relevant_ids": RETRIEVAL_MISSING in result,
            "relevant_texts": RETRIEVAL_TEXT_MISSING in result,
        }
        has = frozenset(need for need, is_there in had.items() if is_there)
        return self._failures.setdefault(has, has)  # one for all that have the same


def _text_digest(text: object) -> bytes | None:
    if text is None:
        return None
    return blake2b(" ".join(str(text).split()).encode("utf-8", "surrogatepass"), digest_size=16).digest()
