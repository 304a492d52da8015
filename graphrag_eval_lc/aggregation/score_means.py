"""The values of questions go in; the means of scores, over all and over the answered questions, come out."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

from graphrag_eval_lc.aggregation.question_values import QuestionValues, RunValues
from graphrag_eval_lc.registry.metrics import UPPER_BOUNDS, metric_spec


class ScoreMean(NamedTuple):
    """The mean of a score.

    Attributes:
        every: Over all questions that have the score, a failed one as what it counts as (mostly 0): the mean that
            gates and comparisons take. None if no question has it.
        answered: Over those that were answered; None if there is none.
    """

    every: float | None
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
    """The values of a score, one for each question: with repeats the question's mean.

    Attributes:
        answered: By template the values of the questions that were answered.
        every: By template the values of all questions; a failed one has what it counts as.
        upper: The same as if all undecided steps fitted; empty if none is undecided, or that says nothing of it.

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
        return [value for values in self.every.values() for value in values]

    def answered_values(self) -> list[float]:
        """Return the values of the questions that were answered."""
        return [value for values in self.answered.values() for value in values]

    def mean(self) -> ScoreMean:
        """Return the means over the questions."""
        return ScoreMean(mean_of(self.all_values()), mean_of(self.answered_values()))

    def mean_of_templates(self) -> ScoreMean:
        """Return the mean of the template means, over all questions and over the answered ones."""
        return ScoreMean(*(mean_of([fmean(group) for group in by.values()]) for by in (self.every, self.answered)))

    def of_template(self, template_id: str) -> "ScoreValues":
        """Return the values of a template's questions."""
        answered, every, upper = (
            {template_id: by[template_id]} if template_id in by else {}
            for by in (self.answered, self.every, self.upper)
        )
        return ScoreValues(answered, every, upper)


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean; None without values."""
    return fmean(values) if values else None


def score_values(numbers: RunValues) -> dict[str, ScoreValues]:
    """Return the values of each score that was measured, the first seen first; its upper bound is with it."""
    questions = numbers.questions.values()
    measured = numbers.measured()
    uppers = {UPPER_BOUNDS[metric]: metric for metric in measured if metric in UPPER_BOUNDS}
    return {
        metric: replace(
            _values(metric, questions), upper=_values(uppers[metric], questions).every if metric in uppers else {}
        )
        for metric in measured
        if not metric_spec(metric).is_spent and metric not in UPPER_BOUNDS
    }


def _values(metric: str, questions: Iterable[QuestionValues]) -> ScoreValues:
    answered: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    every: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    for question in questions:
        value = question.mean(metric)
        if value is not None:
            answered[question.template_id].append(value)
        if question.errors:
            value = question.score(metric)
        if value is not None:
            every[question.template_id].append(value)
    return ScoreValues(dict(answered), dict(every))
