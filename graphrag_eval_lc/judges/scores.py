"""What a judged metric gives back, or raises, with what it cost altogether."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.judge_problems import UnusableAnswerError


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """The score of one judged metric.

    Attributes:
        value: The score; None where the metric does not apply.
        reason: Why, in the model's words or, where nothing was asked, in ours.
        cost: USD of the requests; 0.0 where none was needed, None where one cannot be priced.
        details: What the score was computed from, by the metric's own keys.

    Example:
        >>> JudgeScore(0.5, "One of two statements is covered.", 0.0).value
        0.5
    """

    value: float | None
    reason: str | None
    cost: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Give the sum of costs, None where one of them is not known.

    Example:
        >>> total_cost([0.5, 0.25]), total_cost([0.5, None]), total_cost([])
        (0.75, None, 0.0)
    """
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def paid_error(error: JudgeError, costs: Iterable[float | None]) -> UnusableAnswerError:
    """Give an error with what the metric paid for in vain: what the error tells itself, and more costs.

    Example:
        >>> paid_error(JudgeError("refused"), [0.5]).cost
        0.5
    """
    cost = total_cost([cost_of(error), *costs])
    return UnusableAnswerError(error.what, mend=error.mend, cost=cost, usages=getattr(error, "usages", ()))


def cost_of(error: BaseException) -> float | None:
    """Give what an error tells was paid for it; 0.0 where it tells nothing."""
    return error.cost if isinstance(error, UnusableAnswerError) else 0.0
