"""Progress as plain lines."""

import io
import re
import time
from itertools import accumulate, islice, pairwise

from graphrag_eval_lc.benchmark.progress import PlainLines, UnfailingStream, line_pauses
from graphrag_eval_lc.evaluation.events import RunEvent

STARTED = RunEvent("run_started", {"total": 4, "done": 1, "errors": 0, "max_concurrency": 2})
ANSWERED = RunEvent("response_ended", {"question_id": "q", "repeat": None, "status": "error", "total_tokens": 12_345})
ENDED = RunEvent("run_ended", {"total": 4, "done": 4, "errors": 0, "elapsed_sec": 0.1, "left_out": 0})


class Often(PlainLines):
    pauses = staticmethod(lambda: [0.05])


def wait_for_text(file: io.StringIO) -> None:
    deadline = time.monotonic() + 30
    while not file.getvalue() and time.monotonic() < deadline:
        time.sleep(0.005)


def test_lines_come_after_10_s_then_each_half_minute_and_later_every_5_minutes() -> None:
    moments = list(accumulate(islice(line_pauses(), 60)))
    assert moments[:4] == [10, 40, 70, 100]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 300


def test_short_run_prints_nothing() -> None:
    file = io.StringIO()
    with PlainLines(UnfailingStream(file)) as lines:
        lines(STARTED)
        lines(ENDED)
    assert file.getvalue() == ""


def test_lines_are_printed_occasionally_and_at_the_end() -> None:
    file = io.StringIO()
    with Often(UnfailingStream(file)) as lines:
        lines(STARTED)
        lines(ANSWERED)
        wait_for_text(file)
        lines(ENDED)
    first, last = file.getvalue().splitlines()
    assert re.fullmatch(r"2 of 4 done, 1 error, 12,345 tokens(, about 0:00:\d\d left)?", first)
    assert last == "2 of 4 done, in 0:00:00, 1 error, 12,345 tokens"


def test_no_line_before_the_run_starts() -> None:
    file = io.StringIO()
    with Often(UnfailingStream(file)):
        time.sleep(0.2)
    assert file.getvalue() == ""


def test_messages_are_printed_immediately_but_not_after_the_end() -> None:
    file = io.StringIO()
    with PlainLines(UnfailingStream(file)) as lines:
        lines(RunEvent("warning", {"message": "The disk is nearly full."}))
        assert file.getvalue() == "Warning: The disk is nearly full.\n"
    lines(RunEvent("warning", {"message": "late"}))
    assert "late" not in file.getvalue()


def test_messages_contain_no_terminal_commands() -> None:
    file = io.StringIO()
    with PlainLines(UnfailingStream(file)) as lines:
        lines(RunEvent("warning", {"message": "of \x1b]52;c;eA==\x07"}))
        lines(RunEvent("run_stopping", {"reason": "interrupted", "message": "stopped by \x9b2J", "in_flight": 1}))
    assert file.getvalue() == "Warning: of ␛]52;c;eA==␇\nstopped by ⟨U+009B⟩2J\n"


def output_of(*events: RunEvent) -> list[str]:
    """Return the output for these events."""
    file = io.StringIO()
    with PlainLines(UnfailingStream(file)) as lines:
        for event in events:
            lines(event)
    return file.getvalue().splitlines()


def sent(name: str, repeat: int | None = None) -> RunEvent:
    return RunEvent("attempt_started", {"question_id": name, "repeat": repeat, "attempt": 1})


def scored(name: str, reason: str | None, repeat: int | None = None) -> RunEvent:
    fields = {"question_id": name, "repeat": repeat, "status": "success", "steps_score": None, "reason": reason}
    return RunEvent("result_scored", fields)


def test_failures_are_printed_immediately_with_id_and_reason() -> None:
    events = (STARTED, sent("a"), sent("b", 2), sent("c"), scored("b", "no\nrows", 2), scored("c", None))
    assert output_of(*events, scored("a", "TimeoutError: \x1b[2J")) == [
        "✗ b (repeat 2): no rows",
        "✗ a: TimeoutError: ␛[2J",
    ]


def test_failures_of_earlier_sessions_are_not_printed_again() -> None:
    assert output_of(STARTED, scored("old", "no rows")) == []


def test_failures_after_the_hundredth_are_summarized() -> None:
    names = [f"q{number}" for number in range(130)]
    lines = output_of(STARTED, *map(sent, names), *(scored(name, "no rows") for name in names))
    assert len(lines) == 101
    assert lines[-1] == "More questions are not right; the report lists them."
