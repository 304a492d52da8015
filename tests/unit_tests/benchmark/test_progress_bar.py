"""The bar in a terminal."""

import io
import re

import pytest

from graphrag_eval_lc.benchmark.progress import TerminalBar, UnfailingStream
from graphrag_eval_lc.evaluation.events import RunEvent

CODE = re.compile(r"\x1b\[[?\d;]*[A-Za-z]|\r")
EVENTS = (
    RunEvent("run_started", {"total": 2000, "done": 500, "errors": 2, "max_concurrency": 8}),
    RunEvent("attempt_started", {"question_id": "a", "repeat": None, "attempt": 1}),
    RunEvent("attempt_failed", {"question_id": "a", "repeat": None, "attempt": 1, "retry_in_sec": 1.0}),
    RunEvent("response_ended", {"question_id": "b", "repeat": None, "status": "error", "total_tokens": 1_234_567}),
    RunEvent("result_scored", {"question_id": "b", "repeat": None, "steps_score": 0.712}),
)


def shown(width: int, events: tuple[RunEvent, ...] = EVENTS) -> list[str]:
    """Return the lines of the bar in a terminal of this width."""
    file = io.StringIO()
    bar = TerminalBar(UnfailingStream(file))
    for event in events:
        bar(event)
    bar.console.width = width
    bar.console.print(bar.get_renderable())
    return CODE.sub("", file.getvalue()).splitlines()


def test_bar_with_all_values() -> None:
    bar, values = shown(160)
    assert re.fullmatch(r"501 of 2,000 done [━╸╺]+ +25% 0:00:00 \S+ *", bar)
    assert values.rstrip() == "3 errors  steps_score 0.712  1 in flight  1,234,567 tokens  1 retry"


def test_nothing_is_shown_before_the_run_starts() -> None:
    assert shown(100, events=()) == []


def test_messages_are_complete_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    message = "[red]No markup[/red], " + "and never cut or broken," * 3
    file = io.StringIO()
    with TerminalBar(UnfailingStream(file)) as bar:
        for event in EVENTS:
            bar(event)
        bar(RunEvent("warning", {"message": message}))
    assert f"Warning: {message}\n" in CODE.sub("", file.getvalue())


def test_nothing_is_printed_after_the_end() -> None:
    file = io.StringIO()
    with TerminalBar(UnfailingStream(file)) as bar:
        bar(EVENTS[0])
    before = file.getvalue()
    bar(RunEvent("warning", {"message": "late"}))
    assert file.getvalue() == before


def test_messages_contain_no_terminal_commands() -> None:
    file = io.StringIO()
    with TerminalBar(UnfailingStream(file)) as bar:
        bar(EVENTS[0])
        bar(RunEvent("warning", {"message": "of \x1b[2J\x9b :smile: [red]"}))
        bar.console.print("of \x1b[3J")
    assert "Warning: of ␛[2J⟨U+009B⟩ :smile: [red]\n" in CODE.sub("", file.getvalue())
    assert "of ␛[3J" in file.getvalue()
