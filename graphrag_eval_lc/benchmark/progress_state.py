"""How far a run is, in numbers and in words."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrag_eval_lc.evaluation.events import EventKind, RunEvent
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, TOTAL_TOKENS
from graphrag_eval_lc.texts import counted, visible

# So many rounds of the questions in flight, and at least so many questions, stand for the recent rate.
_RECENT_ROUNDS = 4
_RECENT_SAMPLES = 20


@dataclass(slots=True)
class RunSnapshot:
    """How a run stands at one moment.

    Attributes:
        total: Samples of the run.
        done: Samples that are answered, failed ones and those of earlier sessions included.
        errors: How many of them failed.
        retries: Attempts that failed and were tried again, in this session.
        in_flight: Samples under way, those that wait for another attempt included.
        max_concurrency: How many may be in flight at most; None before the run started.
        limit: How many may be in flight now; None before the run started.
        tokens: What the responses of this session spent, as far as it is known; None while nothing is.
        tokens_unknown: Responses of this session that do not say what they spent.
        steps_score: The mean over what has been scored so far, 0 to 1; None while nothing is.
        elapsed_sec: Seconds since this session started; None before, and standing still once the run has ended.
        per_minute: Samples a minute over this session; None while none is done.
        seconds_left: Estimated from the recent rate; None while unknown, and where the run is stopping or has ended.
        stopping: Why the run is stopping before its end; None where it is not.
        ended: Whether all is over.
    """

    total: int = 0
    done: int = 0
    errors: int = 0
    retries: int = 0
    in_flight: int = 0
    max_concurrency: int | None = None
    limit: int | None = None
    tokens: int | None = None
    tokens_unknown: int = 0
    steps_score: float | None = None
    elapsed_sec: float | None = None
    per_minute: float | None = None
    seconds_left: float | None = None
    stopping: str | None = None
    ended: bool = False


class RunState:
    """An observer that keeps count. It may be told and asked from any thread, and inside a signal handler.

    Args:
        clock: Gives seconds that never run backwards.

    Example:
        >>> state = RunState()
        >>> state(RunEvent("run_started", {"total": 20, "done": 5, "errors": 1, "max_concurrency": 8}))
        >>> state(RunEvent("attempt_started", {"question_id": "q6", "repeat": None, "attempt": 1}))
        >>> snapshot = state.snapshot()
        >>> snapshot.done, snapshot.total, snapshot.in_flight
        (5, 20, 1)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        self._run = RunSnapshot()
        self._in_flight: set[tuple[str, int | None]] = set()
        self._scores = 0
        self._score_sum = 0.0
        self._answered = 0  # in this session
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._recent: deque[float] = deque()  # when the last samples were answered

    def __call__(self, event: RunEvent) -> None:
        """Take up one event."""
        with self._lock:
            self._take(event.kind, event.fields)

    def snapshot(self) -> RunSnapshot:
        """Return how the run stands now."""
        with self._lock:
            now = self._clock() if self._ended_at is None else self._ended_at
            elapsed = None if self._started_at is None else now - self._started_at
            return replace(
                self._run,
                in_flight=len(self._in_flight),
                steps_score=self._score_sum / self._scores if self._scores else None,
                elapsed_sec=elapsed,
                per_minute=60 * self._answered / elapsed if elapsed and self._answered else None,
                seconds_left=self._seconds_left(now),
            )

    def _seconds_left(self, now: float) -> float | None:
        """Estimate from the last rounds. Before the first round is through, only the quick ones have ended."""
        run = self._run
        if run.ended or run.stopping is not None or self._started_at is None:
            return None
        left = run.total - run.done
        if left <= 0:
            return 0.0
        if self._answered < max(1, run.max_concurrency or 1):
            return None
        span = now - self._recent[0]
        return left * span / (len(self._recent) - 1) if span > 0 else None

    def _take(self, kind: EventKind, fields: Mapping[str, Any]) -> None:
        run = self._run
        match kind:
            case "run_started":
                run.total, run.done, run.errors = fields["total"], fields["done"], fields["errors"]
                run.max_concurrency = run.limit = fields["max_concurrency"]
                self._started_at = self._clock()
                kept = max(_RECENT_ROUNDS * fields["max_concurrency"], _RECENT_SAMPLES)
                self._recent = deque([self._started_at], maxlen=kept + 1)
            case "attempt_started":
                self._in_flight.add((fields["question_id"], fields["repeat"]))
            case "attempt_failed":
                run.retries += fields["retry_in_sec"] is not None
            case "response_ended":
                self._in_flight.discard((fields["question_id"], fields["repeat"]))
                run.done += 1
                run.errors += fields["status"] == "error"
                self._answered += 1
                self._recent.append(self._clock())
                if fields[TOTAL_TOKENS] is None:
                    run.tokens_unknown += 1
                else:
                    run.tokens = (run.tokens or 0) + fields[TOTAL_TOKENS]
            case "result_scored" if fields[MAIN_METRIC] is not None:
                self._scores += 1
                self._score_sum += fields[MAIN_METRIC]
            case "limit_changed":
                run.limit = fields["limit"]
            case "run_stopping":
                run.stopping = fields["reason"]
            case "run_ended":
                run.total, run.done, run.errors = fields["total"], fields["done"], fields["errors"]
                run.ended = True
                self._in_flight.clear()
                self._ended_at = self._clock()


_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def progress_line(run: RunSnapshot) -> str:
    """Return how a run stands as one line.

    Example:
        >>> progress_line(RunSnapshot(2000, 120, 3, 5, 8, 8, 8, 1_234_567, 0, 0.7123, 212, 34.0, 3300, None, False))
        '120 of 2,000 done, 3 errors, 5 retries, 8 in flight, 1.2M tokens, 34/min, about 55 min left, steps_score 0.712'
    """
    return ", ".join((f"{run.done:,} of {run.total:,} done", *progress_texts(run).values()))


def progress_texts(run: RunSnapshot) -> dict[str, str]:
    """Return what is known of a run beside how many questions are done, by name, in reading order."""
    left = run.seconds_left
    texts = {
        "errors": counted(run.errors, "error"),
        "retries": counted(run.retries, "retry", "retries") if run.retries else "",
        "in_flight": _in_flight(run),
        "tokens": _tokens(run),
        "rate": "" if run.per_minute is None else f"{rate_text(run.per_minute)}/min",
        "left": "" if not left else f"about {duration_text(left)} left",
        "stopping": f"stopping ({run.stopping})" if run.stopping and not run.ended else "",
        "elapsed": f"in {duration_text(run.elapsed_sec)}" if run.ended and run.elapsed_sec is not None else "",
        MAIN_METRIC: "" if run.steps_score is None else f"{MAIN_METRIC} {run.steps_score:.3f}",
    }
    return {name: text for name, text in texts.items() if text}


def message_of(event: RunEvent) -> str | None:
    """Return what an event tells people at once, visibly; None for those that only change the values."""
    if event.kind == "warning":
        return visible(f"Warning: {event.fields['message']}")
    message = event.fields.get("message") if event.kind in ("run_started", "run_stopping", "workers_starting") else None
    return None if message is None else visible(message)


def amount_text(number: int) -> str:
    """Return a large number in short.

    Example:
        >>> amount_text(950), amount_text(12_345), amount_text(1_234_567), amount_text(2_000_000_000)
        ('950', '12.3k', '1.2M', '2.0B')
    """
    if number < 1000:
        return str(number)
    amount = float(number)
    for unit in "kM":
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f}{unit}"
    return f"{amount / 1000:.1f}B"


def rate_text(per_minute: float) -> str:
    """Return a rate with as many digits as it is worth.

    Example:
        >>> rate_text(0.25), rate_text(3.14), rate_text(1234.5)
        ('0.25', '3.1', '1,234')
    """
    return f"{per_minute:.2g}" if per_minute < 1 else f"{per_minute:.1f}" if per_minute < 10 else f"{per_minute:,.0f}"


def duration_text(seconds: float) -> str:
    """Return a time span in the units that people would say.

    Example:
        >>> duration_text(7.2), duration_text(3300), duration_text(7800), duration_text(200_000)
        ('8 s', '55 min', '2 h 10 min', '2 days 8 h')
    """
    if seconds < 1.5 * _MINUTE:
        return f"{math.ceil(seconds)} s"
    minutes = round(seconds / _MINUTE)
    if minutes < 90:
        return f"{minutes} min"
    if seconds < 2 * _DAY:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / _HOUR)
    return f"{hours // 24:,} days {hours % 24} h"


def _in_flight(run: RunSnapshot) -> str:
    if not run.in_flight:
        return ""
    lowered = run.limit is not None and run.max_concurrency is not None and run.limit < run.max_concurrency
    return f"{run.in_flight:,} in flight" + (f" (limit {run.limit:,})" if lowered else "")


def _tokens(run: RunSnapshot) -> str:
    if not run.tokens:
        return ""
    return ("at least " if run.tokens_unknown else "") + f"{amount_text(run.tokens)} tokens"
