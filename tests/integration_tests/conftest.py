"""Runs in separate processes that can be killed: their command line, attempts and files.

Also the environment with ragas, and a browser.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import ragas_environment
from support.forked_commands import COMMAND_LIBRARIES, ForkedProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_MAIN = "from graphrag_eval_lc.cli import main; main()"
_LONGEST_SEC = 90.0

# The agents of these tests first record each attempt: question id, repeat and attempt.
_HEADER = """
import asyncio, os, time
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

def note(config):
    descriptor = os.open(os.environ["ASKED_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, ("/".join(config["metadata"]["attempt_id"].split("/")[2:]) + "\\n").encode())
    os.close(descriptor)

def graph_of(node):
    builder = StateGraph(MessagesState)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()
"""

Key = tuple[str, int]


class RunOnDisk:
    """A run through the real command line: its dataset, agent, folder, and a file of attempts.

    Args:
        folder: An empty folder for all files.
        agent: The Python source of an agent called ``graph``, which may use ``note(config)`` and ``graph_of(node)``.
        questions: The number of questions in the dataset, in templates of 20.
    """

    def __init__(self, folder: Path, agent: str, questions: int) -> None:
        self.folder = folder
        self.output = folder / "run"
        self.journal = self.output / "responses.jsonl"
        self.ids = [f"q{number:03}" for number in range(questions)]
        self._attempts_file = folder / "asked.txt"
        self._agent, self._dataset = folder / "agent.py", folder / "dataset.json"
        self._agent.write_text(_HEADER + agent, encoding="utf-8")
        self._dataset.write_text(json.dumps(_templates(self.ids)), encoding="utf-8")
        self._processes: list[subprocess.Popen[str] | ForkedProcess] = []

    def command(self, *options: str) -> list[str]:
        """Return the arguments of the command."""
        run = ["run", str(self._dataset), "--agent", f"{self._agent}:graph", "--output", str(self.output)]
        return [*run, "--quiet", "--no-report", *options]  # a report takes longer than many of these runs

    def start(
        self,
        arguments: Sequence[str],
        *,
        is_new: bool = False,
        before: Callable[[], None] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> "subprocess.Popen[str] | ForkedProcess":
        """Start a process, which first calls ``before``. Without it or ``is_new`` the process is a fork."""
        environment = {**os.environ, "ASKED_FILE": str(self._attempts_file), "PYTHONWARNINGS": "ignore"}
        process: subprocess.Popen[str] | ForkedProcess
        if is_new or before is not None or stdin != subprocess.DEVNULL:
            process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.folder,
                env=environment,
                preexec_fn=before,
            )
        else:
            process = ForkedProcess(
                None, arguments, code=_MAIN, libraries=COMMAND_LIBRARIES, environment=environment, folder=self.folder
            )
        self._processes.append(process)
        return process

    def run(
        self, arguments: Sequence[str], *, is_new: bool = False, before: Callable[[], None] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a process to its end."""
        process = self.start(arguments, is_new=is_new, before=before)
        stdout, stderr = process.communicate(timeout=_LONGEST_SEC)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def wait(self, process: "subprocess.Popen[str] | ForkedProcess", is_reached: Callable[[], bool]) -> None:
        """Wait until a condition holds or the process has ended."""
        deadline = time.monotonic() + _LONGEST_SEC
        while process.poll() is None and not is_reached():
            assert time.monotonic() < deadline
            time.sleep(0.004)

    def kill(self, process: "subprocess.Popen[str] | ForkedProcess") -> bool:
        """Kill a process and return whether it was still running."""
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=_LONGEST_SEC)
        return process.returncode == -signal.SIGKILL

    def close(self) -> None:
        """Kill all remaining processes."""
        for process in self._processes:
            if process.poll() is None:
                self.kill(process)

    @property
    def attempt_count(self) -> int:
        """The number of attempts so far."""
        return self._attempts_file.read_bytes().count(b"\n") if self._attempts_file.exists() else 0

    @property
    def response_count(self) -> int:
        """The number of lines in the journal."""
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def attempts(self) -> list[Key]:
        """Return the samples of all attempts so far, in order."""
        lines = self._attempts_file.read_text(encoding="utf-8").splitlines() if self._attempts_file.exists() else []
        return [(parts[0], int(parts[1])) for parts in (line.split("/") for line in lines)]

    def responses(self) -> dict[Key, dict[str, Any]]:
        """Return the journal's readable lines."""
        lines = self.journal.read_bytes().splitlines() if self.journal.exists() else []
        readable = [record for record in map(_record_in, lines) if record is not None]
        return {(record["question_id"], record.get("repeat", 1)): record for record in readable}

    def answered(self) -> set[Key]:
        """Return the samples with a response in the journal, without interrupted ones."""
        return {key for key, record in self.responses().items() if not record.get("interrupted")}

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "results.jsonl").read_bytes().splitlines()]

    def check_complete(self, *, repeats: int = 1, errors: int = 0) -> None:
        """Check that the files contain every sample exactly once, in order, and nothing else."""
        results = self.results()
        keys = [(result["question_id"], result.get("repeat", 1)) for result in results]
        assert keys == [(identifier, repeat) for identifier in self.ids for repeat in range(1, repeats + 1)]
        lines = self.journal.read_bytes().splitlines(keepends=True)
        assert all(line.endswith(b"\n") and _record_in(line) for line in lines)
        assert set(self.responses()) == set(keys)
        micro = yaml.safe_load((self.output / "aggregates.yaml").read_text(encoding="utf-8"))["micro"]
        assert micro["number_of_error_samples"] == errors
        assert micro["number_of_success_samples"] == len(keys) - errors
        assert Counter(result["status"] for result in results)["error"] == errors
        record = json.loads((self.output / "run.json").read_bytes())
        assert "stopped" not in record
        files = {path.name for path in self.output.iterdir()} - {".lock"}
        assert files == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml"}


def _record_in(line: bytes) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return record


def _templates(ids: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"template_id": f"t{start // 20:02}", "questions": [_question(each) for each in ids[start : start + 20]]}
        for start in range(0, len(ids), 20)
    ]


def _question(identifier: str) -> dict[str, Any]:
    step = {"name": "look_up", "args": {"number": identifier}, "output": f"value of {identifier}"}
    return {"id": identifier, "question_text": f"What is {identifier}?", "reference_steps": [[step]]}


@pytest.fixture
def run_on_disk(tmp_path: Path) -> Iterator[Callable[..., RunOnDisk]]:
    runs: list[RunOnDisk] = []

    def make(agent: str, questions: int) -> RunOnDisk:
        runs.append(RunOnDisk(tmp_path, agent, questions))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


@pytest.fixture(scope="session")
def ragas_python() -> Path:
    return ragas_environment.ragas_python()


@pytest.fixture(scope="module")  # kept short, as asyncio sees a running loop while it is open
def browser() -> Iterator["Browser"]:
    from support.browsing import started_browser  # installed only with the group `full`

    with started_browser() as browser:
        yield browser
