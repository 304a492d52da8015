"""A flaky agent in a separate process, whose run is killed while changed questions are rerun."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from support.forked_commands import COMMAND_LIBRARIES, ForkedProcess

AGENT = """
import os, pathlib, random, time
from langchain_core.tools import tool

ASKED = pathlib.Path(os.environ["ASKED"])

@tool
def look(question: str) -> str:
    "Look something up."
    with ASKED.open("a") as file:
        file.write(question + "\\n")
    asked = ASKED.read_text().splitlines()
    if len(asked) == int(os.environ.get("HANGS_AT", 0)):
        time.sleep(600)
    if question.split()[0] in os.environ.get("BROKEN", "").split():
        return "no"
    noise = random.Random(f"{os.environ['SEED']} {question} {asked.count(question)}").random()
    return "no" if noise < 0.15 else "yes"

def agent(question):
    return look.invoke({"question": question})
"""
pytestmark = pytest.mark.full
STEP = {"name": "look", "args": {}, "output": "yes", "status": "success"}


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, folder / "asked.txt"
        (folder / "agent.py").write_text(AGENT)
        questions = [f"t{at // 4} question {at}" for at in range(44)]
        dataset = [
            {
                "template_id": f"t{at}",
                "questions": [
                    {
                        "id": f"q{4 * at + place}",
                        "question_text": questions[4 * at + place],
                        "reference_steps": [[STEP]],
                    }
                    for place in range(4)
                ],
            }
            for at in range(11)
        ]
        (folder / "qa.json").write_text(json.dumps(dataset))

    def start(self, output: str, seed: int, *options: str, **environment: str) -> ForkedProcess:
        run = ["run", "qa.json", "-a", "agent.py:agent", "-o", output, "-j1", "--no-report", "--grace", "0"]
        own = {"ASKED": str(self.asked), "SEED": str(seed), "COLUMNS": "300"}
        return ForkedProcess(
            "graphrag_eval_lc",
            [*run, *options],
            libraries=COMMAND_LIBRARIES,
            environment={**os.environ, **own, **environment},
            folder=self.folder,
            is_merged=True,
        )

    def run(self, output: str, seed: int, *options: str, **environment: str) -> tuple[int, str]:
        process = self.start(output, seed, *options, **environment)
        printed, _ = process.communicate(timeout=120)
        return process.returncode, printed

    def attempt_count(self) -> int:
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0


CONFIRM = ("--baseline", "main", "--fail-on-regression", "--confirm", "2")


@pytest.fixture(scope="module")
def with_baseline(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    code, printed = project.run("main", 1)
    assert code == 0, printed
    project.asked.unlink()
    return project


@pytest.fixture
def project(with_baseline: Project, tmp_path: Path) -> Project:
    return Project(shutil.copytree(with_baseline.folder, tmp_path, dirs_exist_ok=True))


def test_noise_passes_and_a_broken_template_fails(project: Project) -> None:
    code, printed = project.run("broken", 2, *CONFIRM, BROKEN="t1 t5")
    assert code == 1, printed
    assert "Gate failed: compared with main (A), B: steps_score " in printed
    assert "questions run 2 more times; the run alone: " in printed
    assert project.run("same", 3, *CONFIRM)[0] == 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_run_killed_during_reruns_resumes_where_it_was(project: Project, end: signal.Signals) -> None:
    process = project.start("branch", 2, *CONFIRM, BROKEN="t1 t5", HANGS_AT="50")
    deadline = time.monotonic() + 120
    while project.attempt_count() < 50:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(end)
    printed, _ = process.communicate(timeout=120)
    if end == signal.SIGTERM:
        assert process.returncode == 143, printed
        assert "questions were run again. The run was stopped" in " ".join(printed.split())
        assert "; not confirmed, as the run ended while " in printed
        assert "To resume" in printed
    code, printed = project.run("branch", 2, *CONFIRM, BROKEN="t1 t5")
    assert code == 1, printed
    assert "questions run 2 more times" in printed
    lines = (project.folder / "branch" / "confirmation" / "responses.jsonl").read_text().splitlines()
    ended = [each for each in map(json.loads, lines) if not each.get("interrupted")]
    keys = Counter((each["question_id"], each.get("repeat", 1)) for each in ended)
    assert set(keys.values()) == {1}
    assert project.attempt_count() == 44 + len(keys) + 1  # the lost one is rerun
    assert len((project.folder / "branch" / "responses.jsonl").read_text().splitlines()) == 44
