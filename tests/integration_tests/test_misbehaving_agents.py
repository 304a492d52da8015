"""Agents that close or replace standard output or change the directory, and closed terminals: no run data is lost."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.skipif(os.name == "nt", reason="needs POSIX")]

WITH_OUTPUT = "Scores by template"
ANSWER = """
async def answer(state, config: RunnableConfig):
    note(config)
    misbehave()
    return {"messages": [AIMessage("fine")]}

graph = graph_of(answer)
"""
# What agents do when they are loaded or called.
DEEDS = {
    "prints and closes both": "print('from the agent'); sys.stdout.close(); sys.stderr.close()",
    "closes descriptors 0 to 2": "[os.close(each) for each in (0, 1, 2)] if is_first else None",
    "takes descriptor 1": "(os.close(1), os.open(os.devnull, os.O_RDONLY)) if is_first else None",
    "replaces stdout by None": "setattr(sys, 'stdout', None); setattr(sys, 'stderr', None)",
    "replaces stdout by what fails": "setattr(sys, 'stdout', Failing())",
    "points descriptor 1 elsewhere": "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
    "changes the folder": "os.chdir('/')",
    "changes into a removed folder": "gone = tempfile.mkdtemp(); os.chdir(gone); os.rmdir(gone)",
}
DOING = """
import io, sys, tempfile

class Failing:
    def write(self, text): raise RuntimeError("no")
    def flush(self): raise RuntimeError("no")

is_first = True

def misbehave():
    global is_first
    try:
        {deed}
    except ValueError:  # closed already
        pass
    is_first = False
"""
LOADED = "\nmisbehave()\ndef misbehave(): pass\n"


WHILE_LOADED = (
    "prints and closes both",
    "closes descriptors 0 to 2",
    "replaces stdout by what fails",
    "changes into a removed folder",
)
RUNS = [*((deed, False) for deed in DEEDS), *((deed, True) for deed in WHILE_LOADED)]


@pytest.mark.parametrize(("deed", "is_loaded"), RUNS)
def test_run_is_complete_with_the_right_exit_code(run_on_disk, deed: str, is_loaded: bool) -> None:
    run = run_on_disk(DOING.format(deed=DEEDS[deed]) + (LOADED if is_loaded else "") + ANSWER, 5)
    relative = ["run", "dataset.json", "--agent", "agent.py:graph", "--output", "run", "--quiet"]
    summaries = ["--summary", "out/summary.md", "--junit", "out/junit.xml", "--log-file", "log.jsonl"]
    has_report = "folder" in deed  # which takes longer than the run
    ended = run.run([*relative, *summaries, *([] if has_report else ["--no-report"])], is_new=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "bug in graphrag-eval-lc" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert WITH_OUTPUT in ended.stdout
    assert "Written to" in ended.stdout
    if has_report:
        (run.output / "report.html").unlink()
    run.check_complete()
    written = {"summary.md", "junit.xml"}
    assert {path.name for path in (run.folder / "out").iterdir()} == written
    assert '"run_ended"' in (run.folder / "log.jsonl").read_text()
    if deed != "prints and closes both" or is_loaded:
        return
    again = run.run([*relative, "--fail-under", "steps_score=0.5", "--no-report"])  # nothing has a score
    assert again.returncode == 1, again.stdout + again.stderr
    assert "bug in graphrag-eval-lc" not in again.stderr


def test_json_is_printed_even_if_the_agent_closed_stdout(run_on_disk) -> None:
    run = run_on_disk(DOING.format(deed="os.close(1) if is_first else None; sys.stdout.close()") + ANSWER, 3)
    ended = run.run([*run.command(), "--json"], is_new=True)
    assert ended.returncode == 0, ended.stderr
    assert str(run.output) in json.dumps(json.loads(ended.stdout))


def test_command_without_standard_output_ends_normally(run_on_disk) -> None:
    def close() -> None:
        os.close(1)
        os.close(2)

    run = run_on_disk(DOING.format(deed="pass") + ANSWER, 3)
    assert run.run(run.command(), before=close).returncode == 0
    run.check_complete()


SLOW = """
async def answer(state, config: RunnableConfig):
    note(config)
    await asyncio.sleep(0.2)
    return {"messages": [AIMessage("fine")]}

graph = graph_of(answer)
"""


def test_hangup_ends_the_run_cleanly_with_129(run_on_disk) -> None:
    run = run_on_disk(SLOW, 40)
    process = run.start(run.command("-j", "4"))
    run.wait(process, lambda: run.attempt_count >= 6)
    for _ in range(3):  # from a terminal or its shell
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 129, stderr
    assert "The run was stopped: SIGHUP" in stderr
    assert 6 <= len(run.answered()) < 40
    assert run.answered() == set(run.attempts())
    assert len(run.results()) == len(run.answered())
    assert run.run(run.command("-j", "20")).returncode == 0
    run.check_complete()


def test_hangup_is_ignored_under_nohup(run_on_disk) -> None:
    run = run_on_disk(SLOW, 8)
    process = run.start(run.command("-j", "4"), before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.wait(process, lambda: run.attempt_count >= 2)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0
    run.check_complete()


def test_closed_terminal_ends_the_run_cleanly_with_129(run_on_disk) -> None:
    run = run_on_disk(SLOW, 40)
    leader, follower = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    main = "from graphrag_eval_lc.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", main, *run.command("-j", "4")],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=run.folder,
        env={**os.environ, "ASKED_FILE": str(run.folder / "asked.txt")},
        preexec_fn=take_terminal,
    )
    os.close(follower)
    try:
        run.wait(process, lambda: run.attempt_count >= 6)
        os.close(leader)
        assert process.wait(60) == 129
    finally:
        process.kill()
        process.wait()
    assert 6 <= len(run.answered()) < 40
    assert len(run.results()) == len(run.answered())
    record = json.loads((Path(run.output) / "run.json").read_bytes())
    assert record["stopped"]["message"] == "SIGHUP"
