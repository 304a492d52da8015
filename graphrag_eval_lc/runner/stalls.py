"""What is told of code that blocks the event loop of a run: who it is, once, while it does."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from graphrag_eval_lc.event_loop.stalls import UNBLOCK_HINT, Span, Stall, StallWatch
from graphrag_eval_lc.runner.events import Observer, RunEvent
from graphrag_eval_lc.runner.samples import Sample
from graphrag_eval_lc.texts import listed

_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class _Doing:
    """What is done for a sample.

    Attributes:
        sample: The sample.
        text: What it is, in words.
    """

    sample: Sample
    text: str


class RunStalls:
    """Tells of what blocks the event loop of a run.

    Each question is an event, `loop_stalled`. The first three are warnings too, with what helps, and ``summary`` says
    how many there were.

    Args:
        warn: Told the warnings, in a thread of the watch.
        tell: Told the events, in the same thread.
        repeats: How often each question is asked.

    Attributes:
        watch: Watches the loop, while its context lasts.
    """

    def __init__(self, warn: Callable[[str], None], tell: Observer, repeats: int) -> None:
        self.watch = StallWatch(self._stalled)
        self._warn = warn
        self._tell = tell
        self._repeats = repeats
        self._lock = threading.Lock()
        self._blocking: dict[str, list[Span]] = {}

    def asking(self, sample: Sample) -> AbstractContextManager[Span]:
        """Take what is run inside of this context as asking a sample."""
        return self.watch.span(_Doing(sample, self._name(sample)))

    def judging(self, sample: Sample) -> AbstractContextManager[Span]:
        """Take what is run inside of this context as judging a sample."""
        return self.watch.span(_Doing(sample, f"judging {self._name(sample)}"))

    def summary(self) -> str | None:
        """Say who blocked the loop, and for how long; None where all of them were told by warnings."""
        with self._lock:
            blocking = {text: list(spans) for text, spans in self._blocking.items()}
        if len(blocking) <= _MOST_TOLD:
            return None
        seconds = sum(span.blocked_sec for spans in blocking.values() for span in spans)
        return f"the event loop was blocked for {seconds:.1f} s in all, by {listed(list(blocking))}: {UNBLOCK_HINT}"

    def _name(self, sample: Sample) -> str:
        repeat = f" (repeat {sample.repeat})" if self._repeats > 1 else ""
        return f"question {sample.key[0]}{repeat}"

    def _stalled(self, stall: Stall) -> None:
        doing = None if stall.span is None else stall.span.subject
        if stall.span is None or not isinstance(doing, _Doing):
            self._told(stall, None, "code that belongs to no question", is_warned=True)
            return
        with self._lock:
            spans = self._blocking.setdefault(doing.text, [])
            spans.append(stall.span)
            is_first, is_warned = len(spans) == 1, len(self._blocking) <= _MOST_TOLD
        if is_first:
            self._told(stall, doing.sample, doing.text, is_warned=is_warned)

    def _told(self, stall: Stall, sample: Sample | None, text: str, *, is_warned: bool) -> None:
        message = stall.text(text)
        fields = {
            "question_id": None if sample is None else sample.key[0],
            "repeat": sample.repeat if sample is not None and self._repeats > 1 else None,
            "where": stall.where,
            "blocked_sec": round(stall.seconds, 3),
            "message": message,
        }
        self._tell(RunEvent("loop_stalled", fields))
        if is_warned:
            self._warn(message)
