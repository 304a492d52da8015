"""A run that is killed or stopped at any moment loses nothing and resumes where it was."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.full

# Some questions fail, and some answers are long enough to be torn in the middle of a line.
ANSWERING = """
@tool
async def look_up(number: str) -> str:
    "Look a value up."
    await asyncio.sleep(0.01)
    return f"value of {number}"

async def answer(state, config: RunnableConfig):
    note(config)
    number = state["messages"][-1].content.split()[-1].strip("?")
    text = await look_up.ainvoke({"number": number})
    if int(number[1:]) % 20 == 7:
        raise ValueError(f"nothing is known of {number}")
    return {"messages": [AIMessage(text * (10_000 if int(number[1:]) % 20 == 3 else 1))]}

graph = graph_of(answer)
"""
KILLED_RUNS = int(os.environ.get("GRAPHRAG_EVAL_LC_KILLED_RUNS", "4"))  # `make test-kills` uses 50
QUESTIONS = 200
FAILING = QUESTIONS // 20

# Its first session never ends.
HANGING = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

def model():
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return GenericFakeChatModel(messages=iter([AIMessage("fine", usage_metadata=usage)]))

async def answer(state, config: RunnableConfig):
    note(config)
    reply = await model().ainvoke(state["messages"])
    if config["metadata"]["attempt_id"].split("/")[1] == "1":
        await asyncio.Event().wait()
    return {"messages": [reply]}

graph = graph_of(answer)
"""

SLOW = """
async def answer(state, config: RunnableConfig):
    note(config)
    await asyncio.sleep(0.2)
    return {"messages": [AIMessage("fine")]}

graph = graph_of(answer)
"""


def kill_and_resume(run, options: list[str], moments: list[str], draw: random.Random, samples: int) -> int:
    """Kill the run at the given moments, resume it until it is complete, and return the number of successful kills."""
    kills = 0
    for moment in [*moments, "never"]:
        known, attempts_before = run.answered(), run.attempt_count
        process = run.start(run.command(*options))
        if moment == "start-up":
            time.sleep(draw.uniform(0.0, 1.5))
        elif moment == "asking":
            wanted = min(attempts_before + draw.randint(1, 100), samples - 1)
            run.wait(process, lambda wanted=wanted: run.attempt_count >= wanted)
            time.sleep(draw.uniform(0.0, 0.02))
        elif moment == "end":
            run.wait(process, lambda: run.response_count >= samples)
            time.sleep(draw.uniform(0.0, 0.2))
        if moment == "never":
            _, stderr = process.communicate(timeout=90)
            assert process.returncode == 0, stderr
        else:
            kills += run.kill(process)
        assert not known & set(run.attempts()[attempts_before:])
    return kills


@pytest.mark.parametrize("seed", range(KILLED_RUNS))
def test_repeatedly_killed_run_runs_and_scores_every_question_once(run_on_disk, seed: int) -> None:
    draw = random.Random(seed)
    run = run_on_disk(ANSWERING, QUESTIONS)
    moments = [draw.choice(["start-up", "asking", "asking"]), draw.choice(["asking", "end"])]
    options = ["-j", "6", "--isolate"] if seed % 3 == 0 else ["-j", "16"]
    assert kill_and_resume(run, options, moments, draw, QUESTIONS) >= 1
    run.check_complete(errors=FAILING)


def test_killed_run_resumes_within_the_same_repeat(run_on_disk) -> None:
    draw = random.Random(3)
    run = run_on_disk(ANSWERING, 60)
    kill_and_resume(run, ["-j", "8", "--repeats", "2"], ["asking", "asking"], draw, 120)
    run.check_complete(repeats=2, errors=6)
    assert run.attempts()[:8] == [(identifier, 1) for identifier in run.ids[:8]]


def test_line_torn_by_a_machine_crash_is_reported_and_rerun(run_on_disk) -> None:
    run = run_on_disk(ANSWERING, 40)
    process = run.start(run.command())
    run.wait(process, lambda: run.response_count >= 10)
    run.kill(process)
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole[:-9])
    torn = len(whole[:-9]) - (whole[:-9].rindex(b"\n") + 1)
    known, attempts_before = run.answered(), run.attempt_count
    outcome = run.run(run.command())
    assert outcome.returncode == 0
    assert f"({torn:,} bytes) was cut off while it was written" in outcome.stderr
    assert not known & set(run.attempts()[attempts_before:])
    run.check_complete(errors=2)


def run_printed_command(run, stderr: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in the message."""
    arguments = shlex.split(stderr.rstrip().splitlines()[-1])
    assert arguments[0] == "graphrag-eval-lc"
    return run.run(arguments[1:])


def logged(run, kind: str) -> Callable[[], bool]:
    """Return a function that returns whether such an event was logged."""
    log = run.folder / "log.jsonl"
    return lambda: log.exists() and f'"{kind}"' in log.read_text(encoding="utf-8")


def test_first_signal_finishes_questions_in_flight_and_prints_how_to_resume(run_on_disk) -> None:
    run = run_on_disk(SLOW, 40)
    process = run.start(run.command("-j", "4"))
    run.wait(process, lambda: run.attempt_count >= 6)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143, stderr
    assert 6 <= len(run.answered()) < 40
    assert run.answered() == set(run.attempts())
    assert len(run.results()) == len(run.answered())
    record = json.loads((run.output / "run.json").read_bytes())
    assert record["stopped"]["left_out"] == 40 - len(run.answered())
    assert f"{record['stopped']['left_out']} were not asked" in stderr
    assert run_printed_command(run, stderr).returncode == 0
    run.check_complete()
    assert max(Counter(run.attempts()).values()) == 1


def test_second_signal_ends_the_run_immediately(run_on_disk) -> None:
    run = run_on_disk(HANGING, 10)
    process = run.start(run.command("-j", "4", "--log-file", str(run.folder / "log.jsonl")))
    run.wait(process, lambda: run.attempt_count >= 4)
    process.send_signal(signal.SIGINT)
    run.wait(process, logged(run, "run_stopping"))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)  # the grace period is 30 s
    assert process.returncode == 130, stderr
    assert "Stopped at once" in stderr
    assert run_printed_command(run, stderr).returncode == 0
    run.check_complete()


def test_question_that_exceeds_the_grace_period_is_rerun_and_its_usage_kept(run_on_disk) -> None:
    run = run_on_disk(HANGING, 10)
    process = run.start(run.command("-j", "4", "--grace", "0.5"))
    run.wait(process, lambda: run.attempt_count >= 4)
    time.sleep(0.2)  # the model has answered
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    cut_off = {key for key, record in run.responses().items() if record.get("interrupted")}
    assert cut_off == set(run.attempts())
    assert {record["total_tokens"] for record in run.responses().values()} == {7}
    assert run_printed_command(run, stderr).returncode == 0
    run.check_complete()
    for key, record in run.responses().items():
        spent = [attempt["total_tokens"] for attempt in record.get("failed_attempts", ())]
        assert spent == ([7] if key in cut_off else [])
        assert "interrupted" not in record
    totals = json.loads((run.output / "run.json").read_bytes())["totals"]
    assert totals["total_tokens"] == 7 * (10 + len(cut_off))


def test_ctrl_c_in_a_terminal_lets_isolated_questions_finish(run_on_disk) -> None:
    run = run_on_disk(ANSWERING.replace("asyncio.sleep(0.01)", "asyncio.sleep(0.5)"), 24)
    process = subprocess.Popen(
        [sys.executable, "-c", "from graphrag_eval_lc.cli import main; main()", *run.command("-j", "4", "--isolate")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=run.folder,
        env={**os.environ, "ASKED_FILE": str(run.folder / "asked.txt")},
        start_new_session=True,
    )
    run.wait(process, lambda: run.attempt_count >= 6)
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, which also signals the workers
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert set(run.attempts()) == run.answered()
    outcome = run.run(run.command("-j", "4", "--isolate"))
    assert outcome.returncode == 0, outcome.stderr
    run.check_complete(errors=1)
    assert len(run.attempts()) == len(set(run.attempts()))
