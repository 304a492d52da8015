"""The limits that end a run early: too many failures, or a budget of tokens, time or money."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from graphrag_eval_lc.cost_limit import CostLimit
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.evaluation.stop_signal import StopReason
from graphrag_eval_lc.prices import dollars


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """A number of failures, or a share of all samples of the run.

    Attributes:
        value: The number, or the share from 0 to 1.
        is_share: Whether it is a share.

    Example:
        >>> FailureLimit.read("5%").is_passed(errors=6, total=100)
        True
    """

    value: float
    is_share: bool

    @classmethod
    def read(cls, value: object) -> "FailureLimit":
        """Return the limit that a whole number such as ``20`` or a share such as ``5%`` stands for.

        Raises:
            OptionError: It is neither.
        """
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) if text.endswith("%") else int(text)
        except ValueError:
            number = -1
        is_share = text.endswith("%")
        if isinstance(value, bool) or not (number >= 0 and (number <= 100 or not is_share)):
            raise OptionError(
                f"max_failures cannot be {value!r}",
                key="max_failures",
                hint="Give a number from 0, such as 20, or a share of the questions, such as 5%.",
            )
        return cls(number / 100 if is_share else number, is_share)

    def is_passed(self, *, errors: int, total: int) -> bool:
        """Return whether more questions failed than allowed."""
        return errors > (self.value * total if self.is_share else self.value)

    def in_shard(self, shard: Shard) -> "FailureLimit":
        """Return the limit of one shard: its part of a number; a share stays what it is."""
        return self if self.is_share else FailureLimit(shard.part_of(int(self.value)), is_share=False)

    def __str__(self) -> str:
        return f"{100 * self.value:.10g}%" if self.is_share else str(int(self.value))


class Fit(Enum):
    """Whether one more question fits into a budget."""

    GO = "it fits"
    WAIT = "it may fit once those in flight have ended"
    END = "it does not fit"


class Budget:
    """The tokens, the time and the money of a run.

    Each question that is asked or to be asked is assumed to cost as much as the dearest so far. While nothing is known,
    one question is asked alone.

    Args:
        max_tokens: Tokens for all attempts of the run, earlier sessions included; None for no limit.
        max_time: Seconds for this session; None for no limit.
        cost: The USD for agent and judges, earlier sessions included, which the judges' requests reserve and settle
            themselves; None for no limit.
        unpriced: The models without a price, for the message; it may grow later.
        has_judges: Whether judges cost money beside the agent.
        clock: Seconds, for tests.
    """

    def __init__(
        self,
        max_tokens: int | None,
        max_time: float | None,
        cost: CostLimit | None = None,
        *,
        unpriced: Collection[str] = (),
        has_judges: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_time = max_time
        self._tokens = _Limit(max_tokens)
        self._account = cost or CostLimit()
        self._cost = _Limit(self._account.most, most_more=None if has_judges else 0)
        self._unpriced = unpriced
        self._judging = 0
        self._clock = clock
        self._started = clock()
        self._longest: float | None = None
        self.reason: StopReason | None = None
        self.message = ""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is over; None for no limit."""
        return None if self._max_time is None else max(0.0, self._started + self._max_time - self._clock())

    def spend(
        self, tokens: int | None, elapsed_sec: float | None, cost: float | None = None, counted: float = 0.0
    ) -> None:
        """Count what one question cost, all its attempts together.

        Args:
            tokens: Tokens; None where they are not known.
            elapsed_sec: Seconds; None for a question of an earlier session.
            cost: USD; None where it is not known.
            counted: USD of these that the account has already, as the model calls reserved and settled them.
        """
        if cost is None and counted:
            cost = counted
        self._tokens.spend(tokens)
        self._cost.spend(cost)
        self._account.spend(max(0.0, (cost or 0.0) - counted))
        if elapsed_sec is not None:
            self._longest = max(elapsed_sec, self._longest or 0.0)

    def await_judges(self) -> None:
        """Note that one question is to be judged; ``spend_on_judges`` is told the cost."""
        self._judging += 1

    def spend_on_judges(self, cost: float | None) -> None:
        """Note the USD that the judges of one question cost, which the account has; None where it is not known."""
        self._judging -= 1
        self._cost.expect_more(cost)

    def fit(self, in_flight: int) -> Fit:
        """Return whether one more question fits; after END ``reason`` and ``message`` name the limit."""
        fits = [self._time_fit(), self._token_fit(in_flight), self._cost_fit(in_flight)]
        return next((each for each in (Fit.END, Fit.WAIT) if each in fits), Fit.GO)

    def _time_fit(self) -> Fit:
        left = self.seconds_left
        if left is None or left > (self._longest or 0.0):
            return Fit.GO
        return self._end(
            "max_time", f"the time of {self._max_time:g} s is too short for another question ({left:.0f} s are left)"
        )

    def _token_fit(self, in_flight: int) -> Fit:
        limit = self._tokens
        fit = limit.fit(in_flight)
        if fit is not Fit.END:
            return fit
        if limit.is_unknown:
            return self._end(
                "max_tokens",
                "the agent's model does not report all its tokens, so that a budget of tokens cannot be kept",
            )
        return self._end(
            "max_tokens",
            f"another question may pass the budget of {limit.most:,} tokens: {limit.spent:,} are spent, and the "
            f"dearest took {limit.dearest:,}",
        )

    def _cost_fit(self, in_flight: int) -> Fit:
        limit, account = self._cost, self._account
        if account.message is not None:
            return self._end("max_cost", account.message)
        limit.spent, limit.held = account.spent, account.held
        fit = limit.fit(in_flight, self._judging)
        if fit is not Fit.END:
            return fit
        if limit.is_unknown:
            why = "the cost of some model calls is not known"
            if self._unpriced:
                why = f"no price is known for {', '.join(sorted(self._unpriced))} (prices in the config can give it)"
            return self._end("max_cost", f"a budget of money cannot be kept: {why}")
        return self._end(
            "max_cost",
            f"another question may pass the budget of {dollars(limit.most or 0.0)}: {dollars(limit.spent)} are spent"
            + (f", and the dearest took {dollars(limit.dearest)}" if limit.dearest is not None else ""),
        )

    def _end(self, reason: StopReason, message: str) -> Fit:
        self.reason, self.message = reason, message
        return Fit.END


class _Limit:
    """One limit, and what is spent of it.

    Args:
        most: The limit; None for none.
        most_more: The most that the judges of one question cost; None while it is not known.

    Attributes:
        spent: What is spent of it.
        held: What requests in flight have reserved of it.
    """

    def __init__(self, most: float | None, most_more: float | None = 0) -> None:
        self.most = most
        self.spent: float = 0
        self.held: float = 0
        self.is_unknown = False
        self._dearest: float | None = None
        self._most_more = most_more

    @property
    def dearest(self) -> float | None:
        """What one question may cost with its judges; None while nothing is known."""
        if self._most_more is None or (self._dearest is None and not self._most_more):
            return None
        return (self._dearest or 0) + self._most_more

    def spend(self, amount: float | None) -> None:
        """Count what one question cost; None where it is not known."""
        if amount is None:
            self.is_unknown = True
        else:
            self.spent += amount
            if amount:  # a free one, such as an early failure, says nothing of others
                self._dearest = max(amount, self._dearest or 0)

    def expect_more(self, amount: float | None) -> None:
        """Note what the judges of one question cost; None where it is not known."""
        if amount:
            self._most_more = max(amount, self._most_more or 0)

    def fit(self, in_flight: int, unfinished: int = 0) -> Fit:
        """Return whether one more question fits.

        Args:
            in_flight: The number of questions that are being asked.
            unfinished: The number of questions that are only being judged.
        """
        if self.most is None:
            return Fit.GO
        if self.is_unknown:
            return Fit.END
        is_open = in_flight + unfinished > 0
        if self.dearest is None:
            return Fit.WAIT if is_open else Fit.GO if self.spent < self.most else Fit.END
        if self.spent + self.held + (in_flight + 1) * self.dearest + unfinished * (self._most_more or 0) <= self.most:
            return Fit.GO
        return Fit.WAIT if is_open else Fit.END
