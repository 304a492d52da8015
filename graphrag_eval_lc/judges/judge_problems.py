"""What goes wrong between a judge and its model."""

from collections.abc import Sequence

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.model import Usage


class BrokenAnswerError(Exception):
    """A server answered with something that is no answer, which may pass when it is asked again."""


class UnusableAnswerError(JudgeError):
    """A model's answer cannot be used, and may have been paid for nevertheless.

    Attributes:
        cost: USD of what was paid in vain: 0.0 where nothing was, None where it cannot be priced.
        usages: What each of these requests reported.
    """

    def __init__(
        self, what: str, *, mend: str | None = None, cost: float | None = 0.0, usages: Sequence[Usage] = ()
    ) -> None:
        super().__init__(what, mend=mend)
        self.cost = cost
        self.usages = tuple(usages)
