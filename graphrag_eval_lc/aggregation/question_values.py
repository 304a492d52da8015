"""Each question's values for gates and comparisons, where failed questions count as the worst score."""

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import fsum

from graphrag_eval_lc.aggregation.sample_values import Metrics, Sample, metrics_of, number
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


class QuestionValues:
    """The values of one question, summed over its samples: a view of what ``RunValues`` keeps.

    Attributes:
        question_id: The question.
    """

    __slots__ = ("_kept", "_number", "question_id")

    def __init__(self, question_id: str, number: int, kept: "_Kept") -> None:
        self.question_id = question_id
        self._number = number
        self._kept = kept

    @property
    def template_id(self) -> str:
        """Its template."""
        return self._kept.template_ids[self._number]

    @property
    def text_digest(self) -> int | None:
        """A digest of its text but for white space; None where the text is not known."""
        return self._kept.text_digests[self._number] or None

    @property
    def samples(self) -> int:
        """The number of its samples."""
        return self._kept.samples[self._number]

    @property
    def errors(self) -> int:
        """The number of those that failed."""
        return self._kept.errors[self._number]

    def has(self, metric: str) -> bool:
        """Return whether a sample has a metric; of a score, one that did not fail."""
        return self._kept.sum_of(metric, self._number)[1] > 0

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the samples that have it, of a score those that did not fail; else None."""
        total, count = self._kept.sum_of(metric, self._number)
        return total / count if count else None

    def score(self, metric: str, *, has_elsewhere: bool = False) -> float | None:
        """Return the mean of a score over the question's samples; None where it has none.

        Failed samples count as 0; where less is better, as the greatest value, or not at all if there is none.

        Args:
            metric: The score.
            has_elsewhere: Whether the question has this score in another run, so that a failed sample would have had
                it too.
        """
        total, count = self._kept.sum_of(metric, self._number)
        has_score = count > 0 or has_elsewhere
        failures = self._kept.failures.get(self._number)
        spec = metric_spec(metric) if failures else None
        if failures and spec is not None and spec.value_of_failure is not None:
            failed = sum(1 for has in failures if has_score or spec.needs is None or spec.needs in has)
            total += failed * spec.value_of_failure
            count += failed
        return total / count if count else None


class _Kept:
    """What is kept of the questions, by their numbers: in arrays, as there may be many.

    Attributes:
        template_ids: Their templates.
        text_digests: Digests of their texts; 0 where a text is not known.
        samples: The numbers of their samples.
        errors: The numbers of those that failed.
        failures: For each failed sample which of the metrics' needs it meets.
    """

    def __init__(self) -> None:
        self.template_ids: list[str] = []
        self.text_digests = array("Q")
        self.samples = array("I")
        self.errors = array("I")
        self.failures: dict[int, list[frozenset[Need]]] = {}
        self._sums: dict[str, tuple[array[float], array[int]]] = {}

    def add(self, template_id: str, text_digest: int) -> int:
        """Add a question, and return its number."""
        self.template_ids.append(template_id)
        self.text_digests.append(text_digest)
        self.samples.append(0)
        self.errors.append(0)
        return len(self.template_ids) - 1

    def metrics(self) -> Iterable[str]:
        """Return the metrics that have values."""
        return self._sums.keys()

    def add_value(self, metric: str, number: int, value: float, count: int = 1) -> None:
        """Add a sample's value of a metric, or the sum of several."""
        kept = self._sums.get(metric)
        if kept is None:
            kept = self._sums[metric] = (array("d"), array("I"))
        totals, counts = kept
        if number >= len(counts):
            missing = number + 1 - len(counts)
            totals.extend([0.0] * missing)
            counts.extend([0] * missing)
        totals[number] += value
        counts[number] += count

    def sum_of(self, metric: str, number: int) -> tuple[float, int]:
        """Return the sum of a metric's values, and their number."""
        kept = self._sums.get(metric)
        if kept is None or number >= len(kept[1]):
            return 0.0, 0
        return kept[0][number], kept[1][number]


class _Questions(Mapping[str, QuestionValues]):
    """The questions by id, in the order in which they were added."""

    def __init__(self) -> None:
        self.kept = _Kept()
        self._numbers: dict[str, int] = {}

    def __getitem__(self, question_id: str) -> QuestionValues:
        return QuestionValues(question_id, self._numbers[question_id], self.kept)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._numbers

    def number_of(self, question_id: str) -> int | None:
        """Return the number of a question; None for one that is not known."""
        return self._numbers.get(question_id)

    def add(self, question_id: str, template_id: object, text_digest: int) -> int:
        """Add a question, and return its number."""
        number = self._numbers[question_id] = self.kept.add(sys.intern(str(template_id)), text_digest)
        return number


class RunValues:
    """The values of a run's questions; results are added one at a time, and only their values are kept.

    Args:
        config: The run's configuration, for the names of its tools and custom evaluations.
        metrics: More keys of the results that are metrics.
        only: Whether no metrics but these are kept, which is faster.

    Attributes:
        questions: The questions by id, in the order of the results.

    Example:
        >>> values = RunValues()
        >>> values.add({"template_id": "t", "question_id": "q1", "steps_score": 1.0})
        >>> values.add({"template_id": "t", "question_id": "q2", "steps_score": 0.5, "error": "away"})
        >>> [question.score("steps_score") for question in values.questions.values()]
        [1.0, 0.0]
    """

    def __init__(
        self, config: EvaluationConfig | None = None, metrics: Iterable[str] = (), *, only: bool = False
    ) -> None:
        known = metrics_of(config or EvaluationConfig())
        more = dict.fromkeys([*known.of_samples, *metrics])
        self._metrics: Metrics = known.only(metrics) if only else replace(known, of_samples=tuple(more), found={})
        self._measured: dict[str, None] = {}
        self._failures: dict[frozenset[Need], frozenset[Need]] = {}
        self._questions = _Questions()

    @property
    def questions(self) -> Mapping[str, QuestionValues]:
        """The questions by id, in the order of the results."""
        return self._questions

    def add(self, result: Sample, values: "Mapping[str, Sequence[float]] | None" = None) -> None:
        """Add a result, which has ``question_id`` and ``template_id``.

        Args:
            result: The result.
            values: What ``values_by_metric`` of this configuration gave for it; None where that is not known yet.
        """
        kept = self._questions.kept
        question_id = str(result["question_id"])
        number = self._questions.number_of(question_id)
        if number is None:
            digest = _text_digest(result.get("question_text"))
            number = self._questions.add(question_id, result.get("template_id"), digest)
        kept.samples[number] += 1
        has_failed = is_error(result)
        if has_failed:
            kept.errors[number] += 1
            kept.failures.setdefault(number, []).append(self._failure(result))
        by_metric = dict(self._metrics.values_by_metric(result) if values is None else values)
        self._measured.update(dict.fromkeys(by_metric))
        for upper, bounded in UPPER_BOUNDS.items() if self._metrics.wanted is None else ():
            if upper not in by_metric and bounded in by_metric:  # what is not uncertain bounds itself
                by_metric[upper] = [sum(by_metric[bounded])]
        for metric, of_metric in by_metric.items():
            if not has_failed or metric_spec(metric).kind != "score":
                mean = of_metric[0] if len(of_metric) == 1 else sum(of_metric) / len(of_metric)
                kept.add_value(metric, number, mean)

    def add_all(self, other: "RunValues") -> None:
        """Add the values of another run, whose samples count as further repeats of its questions."""
        theirs, kept = other._questions.kept, self._questions.kept
        self._measured.update(other._measured)
        for at, question in enumerate(other.questions.values()):
            number = self._questions.number_of(question.question_id)
            if number is None:
                number = self._questions.add(question.question_id, question.template_id, theirs.text_digests[at])
            kept.samples[number] += question.samples
            kept.errors[number] += question.errors
            if at in theirs.failures:
                kept.failures.setdefault(number, []).extend(theirs.failures[at])
            for metric in theirs.metrics():
                total, count = theirs.sum_of(metric, at)
                if count:
                    kept.add_value(metric, number, total, count)

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

    def _failure(self, result: Sample) -> frozenset[Need]:
        """Return which of the metrics' needs a failed sample meets."""
        groups = result.get("reference_steps") or ()
        steps = [*(step for group in groups for step in group), *(result.get("actual_steps") or ())]
        had: dict[Need, bool] = {
            "reference_steps": bool(groups) or number(result.get(STEPS_SCORE)) is not None,
            "reference_answer": result.get("reference_answer") is not None,
            "retrieval_steps": any(step.get("name") in self._metrics.retrieval_names for step in steps),
            "relevant_ids": RETRIEVAL_MISSING in result,
            "relevant_texts": RETRIEVAL_TEXT_MISSING in result,
        }
        has = frozenset(need for need, is_there in had.items() if is_there)
        return self._failures.setdefault(has, has)  # one for all that have the same


def _text_digest(text: object) -> int:
    if text is None:
        return 0
    digest = blake2b(" ".join(str(text).split()).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1
