"""The command `import`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
QUESTION = {"id": "q1", "question_text": "Where?", "reference_steps": [[{"name": "find", "output": "Oslo"}]]}


def run(identifier: str, question: str) -> list[dict[str, Any]]:
    times = {"start_time": "2026-01-31T12:00:00", "end_time": "2026-01-31T12:00:01", "trace_id": identifier}
    return [
        {
            "id": identifier,
            "run_type": "chain",
            "name": "a",
            "inputs": {"input": question},
            "outputs": {"output": "Oslo"},
            **times,
        },
        {
            "id": f"{identifier}1",
            "parent_run_id": identifier,
            "run_type": "tool",
            "name": "find",
            "inputs": {},
            "outputs": {"output": "Oslo"},
            **times,
        },
    ]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.json").write_text(json.dumps([{"template_id": "t", "questions": [QUESTION]}]))
    Path("runs.json").write_text(json.dumps([*run("a", "Where?"), *run("b", "Why?")]))


def test_traces_become_responses_that_can_be_scored(exit_code: Command, capsys: Output) -> None:
    assert exit_code("import-traces", "runs.json", "--dataset", "qa.json", "-o", "responses.jsonl") == 0
    output = capsys.readouterr()
    assert output.out == (
        "Wrote 1 response with 1 tool call to responses.jsonl, of 2 traces.\n"
        "To score them: graphrag-eval-lc score qa.json responses.jsonl --answered-only -o runs/traced\n"
    )
    assert "Warning: 1 trace is of no question of the dataset and left out: “Why?”." in output.err
    assert exit_code("score", "qa.json", "responses.jsonl", "--answered-only", "-o", "scored") == 0
    (result,) = map(json.loads, Path("scored/results.jsonl").read_text().splitlines())
    assert result["steps_score"] == 1.0


def test_file_that_is_there_stays_unless_it_is_to_be_replaced(exit_code: Command, capsys: Output) -> None:
    Path("out.jsonl").write_text("mine")
    assert exit_code("import-traces", "runs.json", "--dataset", "qa.json", "-o", "out.jsonl") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert exit_code("import-traces", "qa.json", "-o", "out.jsonl", "--overwrite") == 2
    assert Path("out.jsonl").read_text() == "mine"
    assert exit_code("import-traces", "runs.json", "--dataset", "qa.json", "-o", "out.jsonl", "--overwrite") == 0
    assert Path("out.jsonl").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["absent.json", "-o", "x"], "Error: absent.json: the traces cannot be read (there is no such file)"),
        (["qa.json", "-o", "x"], "Error: qa.json: the file has no traces in a known format"),
        (["runs.json", "-o", "x"], "none of 2 traces answers a question that is known: 2 traces tell no question id"),
        (["runs.json", "-o", "no/folder/x"], "no/folder"),
    ],
)
def test_wrong_input_is_told(exit_code: Command, capsys: Output, arguments: list[str], told: str) -> None:
    assert exit_code("import-traces", *arguments) == 2
    output = capsys.readouterr()
    assert told in output.err
    assert output.out == ""
    assert not Path("x").exists()
