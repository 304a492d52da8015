"""Each question's numbers, with failed questions counted as the worst score, as gates and comparisons take them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from graphrag_eval_lc.aggregation.measurements import Metrics, Sample, is_error, metrics_of, number, steps_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry.metric_spec import Need
from graphrag_eval_lc.registry.metrics import RETRIEVAL_MISSING, RETRIEVAL_TEXT_MISSING, STEPS_SCORE, metric_spec


@dataclass(slots=True)
class QuestionNumbers:
    """The numbers of the samples of one question.

    Attributes:
        question_id: The question.
        template_id: Its template.
        text_digest: A digest of its text, in which white space does not matter; None where its text is not known.
        samples: How many samples it has.
        errors: How many of them failed.
        sums: By metric the sum and the number of its values.
        failures: The failed samples, each as what it has of what metrics need.
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

        Failed samples count as 0, of a score of which less is better as its greatest value, and not at all where that
        has none.

        Args:
            metric: The score.
            has_elsewhere: Whether the same question is known to have this score elsewhere, so that a failed sample
                would have had it too.
        """
        total, count = self.sums.get(metric, (0.0, 0))
        # The questions of which some samples are measured are those that have this score.
        has_score = count > 0 or has_elsewhere
        spec = metric_spec(metric) if self.failures else None
        if spec is not None and spec.value_of_failure is not None:
            failed = sum(1 for has in self.failures if has_score or spec.needs is None or spec.needs in has)
            total += failed * spec.value_of_failure
            count += failed
        return total / count if count else None

    def spent(self, metric: str) -> float | None:
        """Return the mean of what the samples spent, failed ones as it was measured; None where it is not known."""
        total, count = self.sums.get(metric, (0.0, 0))
        return total / count if count else None


class RunNumbers:
    """The numbers of a run's questions; the results come one at a time, and nothing else of them is kept.

    Args:
        config: The configuration of the run, for the names of its tools and custom evaluations.
        metrics: More metrics, of which nothing else tells that they are some: keys of the results.

    Attributes:
        questions: The questions by their ids, in the order of the results.

    Example:
        >>> numbers = RunNumbers()
        >>> numbers.add({"template_id": "t", "question_id": "q1", "steps_score": 1.0})
        >>> numbers.add({"template_id": "t", "question_id": "q2", "steps_score": 0.5, "error": "away"})
        >>> [question.score("steps_score") for question in numbers.questions.values()]
        [1.0, 0.0]
    """

    def __init__(self, config: EvaluationConfig | None = None, metrics: Iterable[str] = ()) -> None:
        known = metrics_of(config or EvaluationConfig())
        more = [metric for metric in metrics if metric not in known.of_samples]
        self._metrics: Metrics = replace(known, of_samples=(*known.of_samples, *more), found={})
        self._measured: dict[str, None] = {}
        self._failures: dict[frozenset[Need], frozenset[Need]] = {}
        self.questions: dict[str, QuestionNumbers] = {}

    def add(self, result: Sample) -> None:
        """Take up a result, which has ``question_id`` and ``template_id``."""
        identifier = str(result["question_id"])
        question = self.questions.get(identifier)
        if question is None:
            question = self.questions[identifier] = QuestionNumbers(
                identifier, str(result.get("template_id")), _text_digest(result.get("question_text"))
            )
        question.samples += 1
        if is_error(result):
            question.errors += 1
            question.failures.append(self._failure(result))
        for metric, values in self._values(result).items():
            self._measured[metric] = None
            if not is_error(result) or metric_spec(metric).kind != "score":
                total, count = question.sums.get(metric, (0.0, 0))
                question.sums[metric] = (total + sum(values) / len(values), count + 1)

    def measured(self) -> Sequence[str]:
        """Return the metrics that some sample has, the first seen first."""
        return list(self._measured)

    def is_spent(self, metric: str) -> bool:
        """Return whether a metric says what was spent, so that a failed question's value is what was measured."""
        return metric_spec(metric).is_spent

    def lower_is_better(self, metric: str) -> bool:
        """Return whether less of a metric is better, as of all that is spent."""
        return metric_spec(metric).lower_is_better

    def _values(self, result: Sample) -> Mapping[str, list[float]]:
        values: dict[str, list[float]] = {}
        for metric, value in self._metrics.sample_numbers(result):
            values.setdefault(metric, []).append(value)
        return values | self._metrics.step_scores(result)

    def _failure(self, result: Sample) -> frozenset[Need]:
        """Return what a failed sample has of what metrics need."""
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
