"""One run and the baseline: what is known of both, their questions with both values, and the flips."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_eval_lc.compare.flips import Flip
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, is_same


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One of the runs.

    Attributes:
        letter: What it is called in the comparison; A is the baseline.
        label: Its given name, else that of its folder, else its letter.
        path: Its folder; None if the results were given.
        number_of_questions: How many questions it has.
        number_of_samples: How many results it has, which is more with repeats.
        number_of_errors: How many of these failed.
    """

    letter: str
    label: str
    path: str | None
    number_of_questions: int
    number_of_samples: int
    number_of_errors: int


@dataclass(frozen=True, slots=True)
class ComparedQuestion:
    """One question of both runs.

    Attributes:
        question_id: Its id.
        template_id: Its template, as A has it.
        values: By metric its values in A and in the other run, each the mean over repeats.
    """

    question_id: str
    template_id: str
    values: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """A run compared with the baseline A.

    Attributes:
        run: The run that is compared with A.
        number_of_questions: How many questions both have; no others are compared.
        number_of_templates: How many templates these have.
        errors_a: How many samples of these questions failed in A.
        errors_b: How many in the other run. A failed sample's scores count as 0, or if less is better as the greatest
            value that there can be.
        left_out_a: How many questions only A has.
        left_out_b: How many only the other run has.
        metrics: The metrics that both runs have, scores before what was spent.
        flips: The questions of which the comparison's ``metric`` changed: first those that are wrong now, then those
            that are right now, then the others, the largest change first. Empty if it says what was spent.
        questions: The common questions with their values.
    """

    run: RunSummary
    number_of_questions: int
    number_of_templates: int
    errors_a: int
    errors_b: int
    left_out_a: int
    left_out_b: int
    metrics: tuple[MetricComparison, ...]
    flips: tuple[Flip, ...]
    questions: tuple[ComparedQuestion, ...]

    @property
    def fixed(self) -> tuple[Flip, ...]:
        """The flips that are right now and were wrong in A."""
        return tuple(flip for flip in self.flips if flip.direction == "now right")

    @property
    def broken(self) -> tuple[Flip, ...]:
        """The flips that are wrong now and were right in A."""
        return tuple(flip for flip in self.flips if flip.direction == "now wrong")

    def metric(self, name: str) -> MetricComparison | None:
        """Return the comparison in one metric; None if it was not compared."""
        return next((metric for metric in self.metrics if metric.metric == name), None)


def verdict_word(metric: MetricComparison) -> str:
    """Return the verdict as tables show it: ``better``, ``worse``, ``the same``, ``no evidence`` or ``cannot tell``.

    ``no evidence`` of ``MetricComparison.verdict`` is ``the same`` if no question differs, and ``cannot tell`` if the
    test could not decide.
    """
    if is_same(metric):
        return "the same"
    return "cannot tell" if metric.verdict == "no evidence" and not metric.can_tell else metric.verdict
