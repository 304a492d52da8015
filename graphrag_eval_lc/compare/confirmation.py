"""A regression that is confirmed before it fails: which questions are asked again, and what that says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from graphrag_eval_lc.compare.drops import ROUNDING
from graphrag_eval_lc.compare.flips import Flip
from graphrag_eval_lc.compare.metric_comparison import change_text, means_text
from graphrag_eval_lc.compare.regression import RegressionGate
from graphrag_eval_lc.stats import permutation_p_value
from graphrag_eval_lc.texts import counted, on_one_line

# Two runs of the same agent differ as much, in one direction or the other, in a quarter of all pairs.
MOST_CHANCE: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedGate:
    """Whether a run is worse than its baseline, confirmed by further answers before it fails.

    The gate passes if ``first`` does, or if ``chance`` is above 0.25, or if ``last`` does. How often each is right is
    counted by benchmarks/confirmation.py.

    Attributes:
        baseline: The baseline, as it was given.
        first: The gate on the run alone.
        chance: How often two runs of the same agent differ as much on these questions (``sign_test``); None if
            ``first`` passed, or nothing is to be confirmed.
        asked: How many questions were asked again, or were to be.
        times: How often.
        last: The gate on the means over all answers, those of the run and the further ones; None if no question was
            asked again, or not all of them as often as they should.
    """

    baseline: str
    first: RegressionGate
    chance: float | None = None
    asked: int = 0
    times: int = 0
    last: RegressionGate | None = None

    @property
    def has_passed(self) -> bool:
        """Whether the run is not worse, or not beyond what the same agent does by chance."""
        if self.first.has_passed or self.is_chance:
            return True
        return self.last is not None and self.last.has_passed

    @property
    def is_chance(self) -> bool:
        """Whether two runs of the same agent differ as much often enough that nothing need be asked again."""
        return self.chance is not None and self.chance > MOST_CHANCE + ROUNDING

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always."""
        return True

    @property
    def metric(self) -> str:
        """The main metric of the run and the baseline."""
        return self.first.metric.metric

    @property
    def name(self) -> str:
        """What the gate is about."""
        return f"{self.metric} compared with {self.baseline}"

    @on_one_line
    def __str__(self) -> str:
        against = f"compared with {self.baseline} (A),"
        metric = self.first.metric
        alone = f"{means_text(metric)} ({change_text(metric.difference, metric.unit)})"
        if self.is_chance:
            assert self.chance is not None
            return (
                f"{against} it is not clear that B is worse in {metric.metric}: {alone}; two runs of the same agent "
                f"differ as much in {100 * self.chance:.0f} of 100 cases, so no question was asked again"
            )
        questions = counted(self.asked, "question")
        if self.last is None:
            ended = f"; not confirmed, as the run ended while {questions} were asked again" if self.asked else ""
            return f"{against} {self.first}{ended}"
        times = "once more" if self.times == 1 else f"{self.times:,} more times"
        return f"{against} {self.last}; confirmed: {questions} asked {times}; the run alone: {alone}"


def sign_test(differences: Iterable[float]) -> float:
    """Return how often two runs of the same agent differ as much on these questions, in one direction or the other.

    Each question counts alone, even if those of a template break together: whether the agent is the same does not
    depend on which other questions there could be. Graded differences count by their size.

    Args:
        differences: The differences of the questions.

    Returns:
        The p-value of a two-sided test that flips signs, above 0 and at most 1.

    Example:
        >>> sign_test([-1.0, -1.0, -1.0, 0.0])
        0.25
    """
    return permutation_p_value([[*differences]])


def changed_questions(flips: Iterable[Flip], gate: RegressionGate) -> list[str]:
    """Return the ids of the questions that changed by more than the gate allows the mean to, in either direction.

    No drop of the mean is above that without such a question, and asking only those that got worse again would bias
    the means.

    Args:
        flips: The questions that changed in the gate's metric.
        gate: The gate.
    """
    metric = gate.metric
    least = gate.max_drop * (1.0 if metric.is_proportion else abs(metric.mean_a))
    return [flip.question_id for flip in flips if abs(flip.score_b - flip.score_a) > least + ROUNDING]
