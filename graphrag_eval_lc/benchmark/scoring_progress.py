"""The progress of scoring without an agent, shown as that of a run: a result is an answer of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphrag_eval_lc.benchmark.option_fields import ProgressMode
from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.registry.metrics import TOTAL_TOKENS


@contextmanager
def scoring_shown(output: RunOutput, mode: Any) -> Iterator[None]:
    """Show how far the scoring is, and its warnings as they come.

    Args:
        output: The run that is scored.
        mode: Such as ``progress_display`` takes; "off" shows nothing.
    """
    checked: ProgressMode = mode
    if checked == "off":  # nothing is told either, which is quicker
        yield
        return
    with progress_display(checked) as display:
        output.observers = [_AsARun(display)]
        yield


class _AsARun:
    """Tells a display of each result that an answer ended.

    Args:
        display: The display.
    """

    def __init__(self, display: Observer) -> None:
        self._display = display

    def __call__(self, event: RunEvent) -> None:
        """Take up one event; from any thread."""
        if event.kind == "result_scored":
            of_answer = {name: event.fields[name] for name in ("question_id", "repeat", "status")}
            self._display(RunEvent("response_ended", {**of_answer, TOTAL_TOKENS: None}))
        self._display(event)
