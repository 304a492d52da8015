"""Sessions with several processes, with some of the questions, and interrupted sessions."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.judged_runs import judged_dataset, judgement
from support.openai_stub import OpenAIStub
from support.pytest_projects import command, environment, run_in, write_project

from graphrag_eval_lc import BenchmarkRun, load_run, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

pytestmark = pytest.mark.full

# Six questions; variables set where the process dies, the test fails, and how long the agent takes.
SIX = """\
import os
import time
import pytest

QUESTIONS = [
    {"id": f"q{n}", "question_text": f"Q{n}?", "reference_steps": [[{"name": "lookup", "output": "x"}]]}
    for n in range(6)
]


def agent(question):
    if question == os.environ.get("DIES_AT"):
        os._exit(3)
    time.sleep(float(os.environ.get("TAKES", 0)))
    if question == os.environ.get("FAILS_ONCE_AT") and not os.path.exists("failed"):
        open("failed", "w").close()
        raise RuntimeError("for once")
    return "fine"


@pytest.mark.graphrag_dataset([{"template_id": "t", "questions": QUESTIONS}])
def test_six(graphrag_question, graphrag_ask):
    result = graphrag_ask(agent)
    assert result["status"] == "success"
    assert graphrag_question["question_text"] != os.environ.get("WRONG_AT")
"""
OUTPUT = "--graphrag-output=run"


@pytest.fixture
def six(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", SIX)


def record_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run" / "run.json").read_text()))


def scored(folder: Path) -> dict[str, str]:
    return {result["question_id"]: result["status"] for result in load_run(folder / "run").results}


def summary_lines(text: str) -> list[str]:
    """Return the lines of the summary, which contain no times."""
    lines = text.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.strip("= ") == "graphrag-eval-lc") : -1]


@pytest.mark.parametrize("distribution", ["load", "each"])
def test_two_processes_produce_the_same_run_as_one(tmp_path: Path, distribution: str) -> None:
    single_process, two_processes = (write_project(tmp_path / name) for name in ("alone", "together"))
    gate = "--graphrag-fail-under=steps_score=0.3"
    one = run_in(single_process, OUTPUT, gate, "--tb=no", "-p", "no:xdist", "-rN")
    arguments = ("--dist", "each", "--tx", "2*popen") if distribution == "each" else ("-n2", "--dist", distribution)
    two = run_in(two_processes, OUTPUT, gate, "--tb=no", *arguments, "-rN")
    assert summary_lines(one.stdout) == summary_lines(two.stdout)
    assert "Gate passed: steps_score 0.333 ≥ 0.3" in two.stdout
    compared_keys = ("question_id", "status", "steps_score", "actual_answer", "error")
    results = [
        [{key: result.get(key) for key in compared_keys} for result in load_run(folder / "run").results]
        for folder in (single_process, two_processes)
    ]
    assert results[0] == results[1]
    assert {path.name for path in (single_process / "run").iterdir()} == {
        path.name for path in (two_processes / "run").iterdir()
    }


def test_crashed_worker_loses_no_answers_and_fails_its_question(six: Path) -> None:
    ended = run_in(six, "-n2", OUTPUT, "--graphrag-fail-under=steps_score=1", DIES_AT="Q2?")
    assert ended.returncode == 1
    assert scored(six) == {f"q{n}": "error" if n == 2 else "success" for n in range(6)}
    assert load_run(six / "run").result("q2")["error"] == "the process of the test ended while the agent was asked"
    assert "(1 failed sample counts as 0)" in ended.stdout


def test_deselected_questions_are_not_missing(six: Path) -> None:
    ended = run_in(six, "-n2", OUTPUT, "-k", "q1 or q4", "--graphrag-fail-over=elapsed_sec.max=9")
    assert ended.returncode == 0
    assert scored(six) == {"q1": "success", "q4": "success"}
    assert "2 of 6 questions have a response; only these are scored." in ended.stdout
    record = record_of(six)
    assert record["selection"] == {"answered_only": True}
    assert "stopped" not in record
    assert list(record["questions"]) == ["q1", "q4"]


def test_last_failed_runs_only_failures_and_exitfirst_stops_the_run(six: Path) -> None:
    first = run_in(six, "-x", OUTPUT, WRONG_AT="Q1?")
    assert first.returncode == 1
    assert scored(six) == {"q0": "success", "q1": "success"}
    assert record_of(six)["stopped"] == {
        "reason": "max_failures",
        "message": "stopping after 1 failures",
        "left_out": 4,
    }
    second = run_in(six, "--lf", OUTPUT, "--graphrag-overwrite")
    assert second.returncode == 0
    assert scored(six) == {"q1": "success"}


def test_last_answer_of_a_rerun_test_counts(six: Path) -> None:
    rerun = """\
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            if any(report.failed for report in reports):
                item._initrequest()
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            return True
    """
    (six / "conftest.py").write_text("\n".join(line[8:] for line in rerun.splitlines()))
    ended = run_in(six, "-n2", OUTPUT, "--junitxml=junit.xml", FAILS_ONCE_AT="Q3?")
    assert (six / "failed").exists()
    assert "6 passed" in ended.stdout
    assert set(scored(six).values()) == {"success"}
    assert (six / "junit.xml").read_text().count('name="steps_score"') == 6


@pytest.mark.parametrize("processes", [(), ("-n2",)])
def test_ctrl_c_keeps_finished_answers(six: Path, processes: tuple[str, ...]) -> None:
    session = subprocess.Popen(
        command(OUTPUT, *processes),
        cwd=six,
        env=environment(TAKES="1"),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 60
    while time.monotonic() < end and answers_in(six) < 2:
        time.sleep(0.05)
    os.killpg(session.pid, signal.SIGINT)
    output, _ = session.communicate(timeout=60)
    assert session.returncode == 2
    assert 2 <= len(scored(six)) < 6
    assert set(scored(six).values()) == {"success"}
    stopped = record_of(six)["stopped"]
    assert (stopped["reason"], stopped["left_out"]) == ("interrupted", 6 - len(scored(six)))
    assert "Written to run" in output


def answers_in(folder: Path) -> int:
    journals = (folder / "run").glob(".pytest-parts/*/*.jsonl")
    return sum(line.count('"response"') for path in journals for line in path.read_text().splitlines())


def killed(folder: Path, *arguments: str, by: signal.Signals = signal.SIGKILL, whole_group: bool = True) -> int:
    """Kill a session and its processes after at least two answers; return the number of answers left."""
    session = subprocess.Popen(
        command(OUTPUT, *arguments),
        cwd=folder,
        env=environment(TAKES="1"),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 120
    while time.monotonic() < end and answers_in(folder) < 2:
        time.sleep(0.05)
    if whole_group:
        os.killpg(session.pid, by)
    else:
        session.send_signal(by)
    session.wait(timeout=60)
    if not whole_group:  # the workers finish their current questions first
        time.sleep(3)
    number = answers_in(folder)
    assert number >= 2
    return number


def stdout_of(command: str, *arguments: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "graphrag_eval_lc", command, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == (1 if command == "score" else 0), ended.stderr  # the run was interrupted
    return ended.stdout


@pytest.mark.parametrize(
    ("by", "processes", "whole_group"),
    [
        (signal.SIGKILL, ("-n2",), True),
        (signal.SIGTERM, ("-n2",), False),  # its workers notice
    ],
)
def test_next_session_moves_the_answers_of_a_killed_one(
    six: Path, by: signal.Signals, processes: tuple[str, ...], whole_group: bool
) -> None:
    number = killed(six, *processes, by=by, whole_group=whole_group)
    ended = run_in(six, OUTPUT)
    assert ended.returncode == 0
    assert len(scored(six)) == 6
    assert not (six / "run" / ".pytest-parts").exists()
    (apart,) = (six / "run").glob("killed-*")
    assert f"A session of pytest that was killed left {number} answers, now in {apart}." in ended.stdout
    run = load_run(apart)
    assert [result["status"] for result in run.results] == ["success"] * number
    assert run.stopped is not None
    assert (run.stopped["message"], run.stopped["left_out"]) == ("the session of pytest was killed", 6 - number)
    assert (apart / "report.html").exists()
    # Kill another session, in a folder that now holds a run.
    number = killed(six, "--graphrag-overwrite")
    assert f"left {number} answers" in run_in(six, OUTPUT, "--graphrag-overwrite").stdout
    assert len(list((six / "run").glob("killed-*/results.jsonl"))) == 2
    refused = run_in(six, OUTPUT)
    assert refused.returncode == 4
    assert "--graphrag-overwrite replaces that run, its answers included" in refused.stderr


def test_answers_of_a_killed_session_can_be_scored_and_reported(tmp_path: Path) -> None:
    test = SIX.replace('[{"template_id": "t", "questions": QUESTIONS}]', '"qa.json"')
    folder = write_project(tmp_path / "project", test)
    questions = [
        {"id": f"q{n}", "question_text": f"Q{n}?", "reference_steps": [[{"name": "x", "output": "x"}]]}
        for n in range(6)
    ]
    (folder / "qa.json").write_text(json.dumps([{"template_id": "t", "questions": questions}]))
    number = killed(folder)
    output = stdout_of("report", "run", folder=folder)
    assert output.startswith(f"A session of pytest that was killed left {number} answers, now in run.\n")
    assert len(scored(folder)) == number
    assert "A session" not in stdout_of("score", "run", folder=folder)
    # The answers are kept even if the dataset is gone.
    number = killed(folder, "--graphrag-overwrite")
    (folder / "qa.json").rename(folder / "other.json")
    test_file = folder / "test_agent.py"
    test_file.write_text(test_file.read_text().replace("qa.json", "other.json"))
    ended = run_in(folder, OUTPUT, "--graphrag-overwrite")
    assert ended.returncode == 0
    assert "qa.json: the reference dataset cannot be read (the file does not exist)" in ended.stdout
    (apart,) = (folder / "run").glob("killed-*")
    (folder / "other.json").rename(folder / "qa.json")
    output = stdout_of("score", f"run/{apart.name}", folder=folder)
    assert output.startswith(f"A session of pytest that was killed left {number} answers, now in run/{apart.name}.\n")


def test_folder_of_a_running_session_is_rejected(six: Path) -> None:
    session = subprocess.Popen(command(OUTPUT), cwd=six, env=environment(TAKES="2"), stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while time.monotonic() < end and answers_in(six) < 1:
        time.sleep(0.05)
    meanwhile = run_in(six, OUTPUT)
    session.kill()
    session.wait()
    assert meanwhile.returncode == 4
    assert "works in this folder. Wait for it to end, or use another folder." in meanwhile.stderr


JUDGED = """\
import pytest


@pytest.mark.graphrag_dataset("judged.json", config="config.json")
def test_judged(graphrag_ask):
    assert graphrag_ask(lambda question: "In Paris.")["answer_f1"] > 2
"""


def test_answers_are_judged_once_and_the_key_is_not_written(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project", JUDGED)
    (folder / "judged.json").write_text(json.dumps(judged_dataset(3)))
    secret = "sk-5f2a99c1d0b7e4a8"
    with OpenAIStub() as stub:
        stub.answer = judgement
        endpoint = {"base_url": stub.base_url, "api_key": secret}
        config = {"llm": {"generation": endpoint}, "judges": {"metrics": ["answer_correctness"]}}
        (folder / "config.json").write_text(json.dumps(config))
        ended = run_in(folder, "-n2", OUTPUT, "--graphrag-fail-under=answer_f1=0.1")
        assert len(stub.requests) == 3
    run = load_run(folder / "run")
    assert run.judges is not None
    assert all(0 < result.get("answer_f1", 0) <= 1 for result in run.results)
    assert "Gate passed: answer_f1" in ended.stdout
    assert "answer_f1: " in ended.stdout
    written = "".join(path.read_text() for path in (folder / "run").iterdir()) + ended.stdout
    assert secret not in written


DEMO = """\
import pytest
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent


@pytest.fixture(scope="session")
def agent():
    return create_demo_agent()


@pytest.mark.graphrag_dataset(DATASET_PATH)
def test_demo(graphrag_ask, agent):
    graphrag_ask(agent)
"""
# Keys that differ between runs.
TIMES = ("elapsed_sec", "started_at", "run_id", "run_ids", "metadata", "llm_calls", "actual_steps")


def test_results_equal_those_of_run_benchmark(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project", DEMO)
    run_in(folder, "-n2", OUTPUT)
    run = run_benchmark(create_demo_agent, DATASET_PATH, progress="off")

    def results(of: BenchmarkRun) -> list[dict[str, Any]]:
        return [{key: value for key, value in result.items() if key not in TIMES} for result in of.iter_results()]

    asked_run = load_run(folder / "run")
    assert results(asked_run) == results(run)
    assert asked_run.aggregates["micro"]["steps_score"] == run.aggregates["micro"]["steps_score"]
    assert asked_run.aggregates["totals"]["total_tokens"] == run.aggregates["totals"]["total_tokens"]
