"""What a run may spend, and whether the next question still fits in."""

import time
from collections.abc import Callable
from enum import Enum

from graphrag_eval_lc.runner.stopping import StopReason


class Verdict(Enum):
    """What a budget says to one more question."""

    GO = "it fits"
    WAIT = "it may fit, once those in flight have ended"
    END = "it does not fit"


class Budget:
    """The tokens and the time of a run.

    The next question is taken to cost as much as the dearest so far, and those in flight too. While nothing is known
    one question goes alone.

    Args:
        max_tokens: Tokens for all attempts of the run, earlier sessions included; None for no limit.
        max_time: Seconds for this session; None for no limit.
        clock: Seconds, for tests.
    """

    def __init__(
        self, max_tokens: int | None, max_time: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_tokens = max_tokens
        self._max_time = max_time
        self._clock = clock
        self._started = clock()
        self._tokens = 0
        self._dearest: int | None = None
        self._longest: float | None = None
        self._is_unknown = False
        self.reason: StopReason | None = None
        self.message = ""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time is over; None for no limit."""
        return None if self._max_time is None else max(0.0, self._started + self._max_time - self._clock())

    def spend(self, tokens: int | None, elapsed_sec: float | None) -> None:
        """Take up what one question cost.

        Args:
            tokens: Those of all its attempts; None where they are not known.
            elapsed_sec: Seconds of all its attempts; None for one of an earlier session.
        """
        if tokens is None:
            self._is_unknown = True
        else:
            self._tokens += tokens
            self._dearest = max(tokens, self._dearest or 0)
        if elapsed_sec is not None:
            self._longest = max(elapsed_sec, self._longest or 0.0)

    def verdict(self, in_flight: int) -> Verdict:
        """Tell whether one more question fits; after END ``reason`` and ``message`` say which limit it is."""
        verdicts = [self._time_verdict(), self._token_verdict(in_flight)]
        return next((each for each in (Verdict.END, Verdict.WAIT) if each in verdicts), Verdict.GO)

    def _time_verdict(self) -> Verdict:
        left = self.seconds_left
        if left is None or left > (self._longest or 0.0):
            return Verdict.GO
        return self._end(
            "max_time", f"the time of {self._max_time:g} s is too short for another question ({left:.0f} s are left)"
        )

    def _token_verdict(self, in_flight: int) -> Verdict:
        if self._max_tokens is None:
            return Verdict.GO
        if self._is_unknown:
            return self._end(
                "max_tokens",
                "the agent's model does not report all its tokens, so that a budget of tokens cannot be kept",
            )
        if self._dearest is None:
            return Verdict.WAIT if in_flight else Verdict.GO
        if self._tokens + (in_flight + 1) * self._dearest <= self._max_tokens:
            return Verdict.GO
        if in_flight:
            return Verdict.WAIT
        return self._end(
            "max_tokens",
            f"another question may pass the budget of {self._max_tokens:,} tokens: {self._tokens:,} are spent, and the "
            f"dearest took {self._dearest:,}",
        )

    def _end(self, reason: StopReason, message: str) -> Verdict:
        self.reason, self.message = reason, message
        return Verdict.END
