"""Killing the judging of a table loses no paid judgement: the next run resumes where it was."""

import os
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.forked_commands import COMMAND_LIBRARIES, ForkedProcess
from support.openai_stub import OpenAIStub, StubRequest

from graphrag_eval_lc.judges.answer_tables import read_table, table_lines

pytestmark = pytest.mark.full
_LONGEST_SEC = 90.0
ROWS = 150


def claims_of(request: StubRequest) -> dict[str, Any]:
    number = number_in(request)
    claims = {"true_positives": "it is", "false_positives": "answer", "false_negatives": "reference"}
    lists = {name: [f"{text} {number}\n\t"] for name, text in claims.items()}
    return {"reason": f'reason "{number}"\nand more', **lists}


def number_in(request: StubRequest) -> int:
    return int(re.findall(r"^answer (\d+)", request.user, re.MULTILINE)[-1])


class Judging:
    """The command in separate processes, with a server in this one."""

    def __init__(self, folder: Path, stub: OpenAIStub) -> None:
        self.folder, self.stub = folder, stub
        self.output, self.partial = folder / "out.tsv", folder / "out.tsv.partial"
        rows = [[f"question {number}", "reference", f"answer {number}"] for number in range(ROWS)]
        header = ["Question", "Reference answer", "Actual answer"]
        (folder / "in.tsv").write_bytes(b"".join(table_lines([header, *rows])))
        generation = f"{{base_url: '{stub.base_url}', api_key: k}}"
        (folder / "config.yaml").write_text(f"llm: {{generation: {generation}}}\njudges: {{max_concurrency: 4}}\n")

    def start(self) -> ForkedProcess:
        return ForkedProcess(
            "graphrag_eval_lc",
            ["answer-correctness", "-i", "in.tsv", "-o", "out.tsv", "-c", "config.yaml"],
            libraries=COMMAND_LIBRARIES,
            environment={**os.environ, "PYTHONWARNINGS": "ignore"},
            folder=self.folder,
        )

    @property
    def kept(self) -> int:
        return self.partial.read_bytes().count(b"\n") if self.partial.exists() else 0

    def wait(self, process: ForkedProcess, is_reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _LONGEST_SEC
        while process.poll() is None and not is_reached():
            assert time.monotonic() < deadline
            time.sleep(0.004)

    def check_complete(self) -> None:
        table = read_table(self.output)
        assert [row[2] for row in table.rows] == [f"answer {number}" for number in range(ROWS)]
        place = table.columns.index("Reasoning")
        assert [row[place] for row in table.rows] == [f'reason "{number}"\nand more' for number in range(ROWS)]
        assert not self.partial.exists()


@pytest.fixture
def judging(tmp_path: Path) -> Any:
    with OpenAIStub() as stub:
        stub.answer = claims_of
        stub.latency_sec = 0.02
        yield Judging(tmp_path, stub)


def test_saved_judgements_are_not_requested_again_after_a_kill(judging: Judging) -> None:
    draw = random.Random(1)
    most_lost = 0
    for _ in range(2):
        process = judging.start()
        wanted = judging.kept + draw.randint(5, 40)
        judging.wait(process, lambda wanted=wanted: judging.kept >= wanted)
        time.sleep(draw.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=_LONGEST_SEC)
        assert process.returncode == -signal.SIGKILL
        assert not judging.output.exists()
        most_lost += 4  # requests in flight
    process = judging.start()
    stdout, stderr = process.communicate(timeout=_LONGEST_SEC)
    assert process.returncode == 0, stderr
    assert f"Wrote {ROWS} rows to out.tsv." in stdout
    judging.check_complete()
    asked = [number_in(request) for request in judging.stub.requests]
    assert set(asked) == set(range(ROWS))
    assert len(asked) <= ROWS + most_lost


def test_interrupted_command_says_how_to_resume(judging: Judging) -> None:
    process = judging.start()
    judging.wait(process, lambda: judging.kept >= 10)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=_LONGEST_SEC)
    assert process.returncode == 130, stderr
    assert "Stopped. Judged answers are kept. Run the same command to resume." in stderr
    assert "Traceback" not in stderr
    kept = judging.kept
    process = judging.start()
    stdout, stderr = process.communicate(timeout=_LONGEST_SEC)
    assert process.returncode == 0, stderr
    assert f"({ROWS - kept} answers judged now)" in stdout
    judging.check_complete()
