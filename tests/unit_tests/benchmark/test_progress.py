"""The choice of a progress display, and its appearance in a real terminal."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.benchmark.progress import PlainLines, TerminalBar, progress_display
from graphrag_eval_lc.evaluation.events import RunEvent

pty = pytest.importorskip("pty", reason="needs a system with pseudo-terminals")

STARTED = RunEvent("run_started", {"total": 20, "done": 0, "errors": 0, "max_concurrency": 4})
WARNING = RunEvent("warning", {"message": "The disk is nearly full."})

SCRIPT = """
import sys, time
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.benchmark.progress import progress_display
with progress_display() as observer:
    observer(RunEvent("run_started", {"total": 20, "done": 0, "errors": 0, "max_concurrency": 4}))
    for number in range(20):
        observer(RunEvent("response_ended",
            {"question_id": number, "repeat": None, "status": "success", "total_tokens": 9}))
    time.sleep(0.5)
    print("the agent prints")
    print("the agent complains", file=sys.stderr)
    observer(RunEvent("warning", {"message": "The disk is nearly full."}))
    if "fail" in sys.argv:
        sys.exit("failed on the way")
print("after the run")
"""


def terminal_output(*arguments: str, stdout: int | None = None, term: str = "xterm-256color") -> str:
    """Return the terminal output of the script."""
    terminal, end = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=end,
        stdout=end if stdout is None else stdout,
        stderr=end,
        env={**environment, "TERM": term},
    ):
        os.close(end)
        parts = []
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # Linux reports a closed other end this way
                break
            if not part:
                break
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode().replace("\r\n", "\n")


def after_bar(output: str) -> str:
    """Return the output after the last bar, which must be erased."""
    left = output[output.rindex("20 of 20 done") :]
    assert left.count("\x1b[2K") >= 2
    return left[left.rindex("\x1b[2K") + len("\x1b[2K") :]


@pytest.mark.full
def test_terminal_shows_a_bar_and_erases_it_at_the_end() -> None:
    output = terminal_output()
    assert after_bar(output) == "after the run\n"
    assert "\x1b[?25l" not in output
    for line in ("the agent prints", "the agent complains", "Warning: The disk is nearly full."):
        assert re.search(rf"(^|\n|\x1b\[2K){line}\n", output), line


@pytest.mark.full
def test_exception_leaves_a_clean_terminal() -> None:
    assert after_bar(terminal_output("fail")) == "failed on the way\n"


@pytest.mark.full
def test_redirected_standard_output_is_unaffected(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with path.open("wb") as file:
        output = terminal_output(stdout=file.fileno())
    assert path.read_text() == "the agent prints\nafter the run\n"
    assert "the agent prints" not in output


@pytest.mark.full
def test_dumb_terminal_shows_lines() -> None:
    assert terminal_output(term="dumb") == (
        "the agent prints\nthe agent complains\nWarning: The disk is nearly full.\nafter the run\n"
    )


def test_each_mode_can_be_requested() -> None:
    assert isinstance(progress_display("lines", file=io.StringIO()), PlainLines)
    assert isinstance(progress_display("bar", file=io.StringIO()), TerminalBar)


def test_off_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_display("off") as observer:
        observer(STARTED)
        observer(WARNING)
    assert capfd.readouterr() == ("", "")


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display("auto") as observer:
        observer(WARNING)
    assert capsys.readouterr() == ("", "Warning: The disk is nearly full.\n")


def test_closed_terminal_does_not_end_the_run() -> None:
    terminal, end = pty.openpty()
    file = io.TextIOWrapper(io.FileIO(end, "w"), write_through=True)
    with file, progress_display("auto", file=file) as observer:
        observer(STARTED)
        os.close(terminal)
        with pytest.raises(OSError, match="rror"):
            file.write("this shows that the terminal is lost")
        observer(WARNING)
