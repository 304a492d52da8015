"""Each question's values, in which failed ones count as the worst score, and the means of scores over them."""

import sys
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, repeat
from math import fsum
from statistics import fmean
from typing import Any, NamedTuple

from graphrag_eval_lc.aggregation.sample_values import Metrics, Values, number, with_bounds
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


class _Sums:
    """The sums and numbers of one metric's values by question index, in compact arrays: there may be many questions."""

    __slots__ = ("counts", "totals")

    def __init__(self) -> None:
        self.totals, self.counts = array("d"), array("I")

    def add(self, place: int, total: float, count: int) -> None:
        while len(self.counts) <= place:
            self.totals.append(0.0)
            self.counts.append(0)
        self.totals[place] += total
        self.counts[place] += count


class QuestionValues:
    """The values of one question, summed over its samples, of which some failed (``errors``).

    ``text_digest`` is the digest of its text, ignoring whitespace; None if the text is unknown.
    """

    __slots__ = ("_failures", "_place", "_sums", "errors", "question_id", "samples", "template_id", "text_digest")

    def __init__(
        self, question_id: str, template_id: str, text_digest: int | None, place: int, sums: dict[str, _Sums]
    ) -> None:
        self.question_id, self.template_id, self.text_digest = question_id, template_id, text_digest
        self.samples = self.errors = 0
        # For each failed sample, the needs of metrics that it meets.
        self._failures: tuple[frozenset[Need], ...] = ()
        self._place, self._sums = place, sums

    def has(self, metric: str) -> bool:
        """Return whether a sample has a metric; of a score, one that did not fail."""
        return self._sum_of(metric)[1] > 0

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the samples that have it, of a score those that did not fail; else None."""
        total, count = self._sum_of(metric)
        return total / count if count else None

    def score(self, metric: str, *, has_elsewhere: bool = False) -> float | None:
        """Return the mean of a score over the question's samples; None if it has none.

        Failed samples count as 0; if less is better, as the greatest value, or not at all if there is none. If the
        question has the score in another run (``has_elsewhere``), a failed sample would have had it too.
        """
        total, count = self._sum_of(metric)
        has_score = count > 0 or has_elsewhere
        spec = metric_spec(metric) if self._failures else None
        if spec is not None and spec.value_of_failure is not None:
            failed = sum(1 for has in self._failures if has_score or spec.needs is None or spec.needs in has)
            total += failed * spec.value_of_failure
            count += failed
        return total / count if count else None

    def _sum_of(self, metric: str) -> tuple[float, int]:
        sums = self._sums.get(metric)
        if sums is None or self._place >= len(sums.counts):
            return 0.0, 0
        return sums.totals[self._place], sums.counts[self._place]


class RunValues:
    """The values of a run's questions; results are added one at a time, and only their values are kept.

    ``metrics`` reads the values of results. ``questions`` has the questions by id, in the order of the results.

    Example:
        >>> values = RunValues()
        >>> values.add({"template_id": "t", "question_id": "q1", "steps_score": 1.0})
        >>> values.add({"template_id": "t", "question_id": "q2", "steps_score": 0.5, "error": "away"})
        >>> [question.score("steps_score") for question in values.questions.values()]
        [1.0, 0.0]
    """

    def __init__(self, metrics: Metrics | None = None) -> None:
        self.questions: dict[str, QuestionValues] = {}
        self._metrics = metrics or Metrics(EvaluationConfig())
        self._measured: dict[str, None] = {}
        self._sums: defaultdict[str, _Sums] = defaultdict(_Sums)
        self._needs_met: dict[frozenset[Need], frozenset[Need]] = {}

    def add(self, result: Mapping[str, Any], values: Values | None = None) -> None:
        """Add a result, and what ``metrics.values`` returned for it, if that is known."""
        question_id = str(result["question_id"])
        question = self.questions.get(question_id)
        if question is None:
            digest = None
            if (text := result.get("question_text")) is not None:
                plain = " ".join(str(text).split()).encode("utf-8", "surrogatepass")
                digest = int.from_bytes(blake2b(plain, digest_size=8).digest(), "big")
            question = self._new(question_id, str(result.get("template_id")), digest)
        question.samples += 1
        has_failed = is_error(result)
        if has_failed:
            question.errors += 1
            question._failures = (*question._failures, self._needs_of(result))
        if values is None:
            values = self._metrics.values(result, has_failed=has_failed)
        self._measured.update(dict.fromkeys(values))
        for metric, of_metric in with_bounds(values).items():
            if not has_failed or metric_spec(metric).kind != "score":
                mean = of_metric[0] if len(of_metric) == 1 else sum(of_metric) / len(of_metric)
                self._sums[metric].add(question._place, mean, 1)

    def add_all(self, other: "RunValues") -> None:
        """Add the values of another run, whose samples count as further repeats of its questions."""
        self._measured.update(other._measured)
        for theirs in other.questions.values():
            question = self.questions.get(theirs.question_id)
            if question is None:
                question = self._new(theirs.question_id, theirs.template_id, theirs.text_digest)
            question.samples += theirs.samples
            question.errors += theirs.errors
            question._failures = (*question._failures, *theirs._failures)
            for metric in other._sums:
                total, count = theirs._sum_of(metric)
                if count:
                    self._sums[metric].add(question._place, total, count)

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

    def _new(self, question_id: str, template_id: str, text_digest: int | None) -> QuestionValues:
        place = len(self.questions)
        question = QuestionValues(question_id, sys.intern(template_id), text_digest, place, self._sums)
        self.questions[question_id] = question
        return question

    def _needs_of(self, result: Mapping[str, Any]) -> frozenset[Need]:
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
        return self._needs_met.setdefault(has, has)  # one shared object for all that have the same


class ScoreMean(NamedTuple):
    """The mean of a score over all questions that have it, and over those that were answered; None without any."""

    every: float | None  # a failed question as what it counts as, mostly 0; gates and comparisons use this mean
    answered: float | None


def mean_text(mean: ScoreMean) -> str:
    """Return a mean as text, with that of the answered questions if it differs.

    Example:
        >>> mean_text(ScoreMean(0.66, 0.674)), mean_text(ScoreMean(0.5, 0.5))
        ('0.660 (answered: 0.674)', '0.500')
    """
    every, answered = ("–" if value is None else f"{value:.3f}" for value in mean)
    return every if every == answered else f"{every} (answered: {answered})"


@dataclass(frozen=True, slots=True)
class ScoreValues:
    """The values of a score by template, one for each question: with repeats the question's mean.

    ``every`` has all questions, a failed one as what it counts as. ``upper`` is the same as if all undecided steps
    matched; it is empty if none is undecided, or if undecided steps do not affect the score.

    Example:
        >>> values = ScoreValues(answered={"t": [1.0]}, every={"t": [1.0, 0.0]})
        >>> values.mean()
        ScoreMean(every=0.5, answered=1.0)
    """

    answered: Mapping[str, Sequence[float]]
    every: Mapping[str, Sequence[float]]
    upper: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def all_values(self) -> list[float]:
        """Return the values of all questions."""
        return [*chain.from_iterable(self.every.values())]

    def answered_values(self) -> list[float]:
        """Return the values of the questions that were answered."""
        return [*chain.from_iterable(self.answered.values())]

    def mean(self) -> ScoreMean:
        """Return the means over the questions."""
        return ScoreMean(mean_of(self.all_values()), mean_of(self.answered_values()))

    def mean_of_templates(self) -> ScoreMean:
        """Return the mean of the template means, over all questions and over the answered ones."""
        return ScoreMean(*(mean_of([fmean(group) for group in by.values()]) for by in (self.every, self.answered)))

    def of_template(self, template_id: str) -> "ScoreValues":
        """Return the values of a template's questions."""
        parts = (self.answered, self.every, self.upper)
        return ScoreValues(*({key: by[key] for key in (template_id,) if key in by} for by in parts))


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean; None without values."""
    return fmean(values) if values else None


def score_values(numbers: RunValues) -> dict[str, ScoreValues]:
    """Return the values of each score that was measured, in the order of first use, together with its upper bound.

    A score that only failed samples have, to which it does not apply, is left out.
    """
    measured = numbers.measured()
    uppers = {UPPER_BOUNDS[metric]: metric for metric in measured if metric in UPPER_BOUNDS}
    found: dict[str, ScoreValues] = {}
    for metric in measured:
        if metric_spec(metric).is_spent or metric in UPPER_BOUNDS or not (values := _values(metric, numbers)).every:
            continue
        found[metric] = replace(values, upper=_values(uppers[metric], numbers).every if metric in uppers else {})
    return found


def _values(metric: str, numbers: RunValues) -> ScoreValues:
    answered: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    every: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    sums = numbers._sums[metric]
    means = (total / count if count else None for total, count in zip(sums.totals, sums.counts, strict=True))
    for question, value in zip(numbers.questions.values(), chain(means, repeat(None)), strict=False):
        if value is not None:
            answered[question.template_id].append(value)
        score = question.score(metric) if question.errors else value
        if score is not None:
            every[question.template_id].append(score)
    return ScoreValues(dict(answered), dict(every))
