"""The command `score`: recorded responses, and re-scoring a run's folder in place."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]


CHECKS = """
from graphrag_eval_lc.matching import register_matcher


@register_matcher(name="lookup")
def match_ends(reference, actual):
    return float(reference["output"][-4:] == actual["output"][-4:])
"""


@pytest.mark.full
def test_separate_processes_share_only_the_folder(files: Path) -> None:
    Path("checks.py").write_text(CHECKS)
    Path("responses.jsonl").write_text(Path("responses.jsonl").read_text().replace("urn:oslo", "http://x/oslo"))

    def command(*arguments: str) -> str:
        code = "from graphrag_eval_lc.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        return done.stderr

    command("score", "qa.yaml", "responses.jsonl", "-o", "run", "--plugin", "checks.py")
    assert "the matcher for lookup" in command("score", "run")
    assert results()[0]["steps_score"] == 1.0
    command("score", "run", "--drop-missing")
    assert results()[0]["steps_score"] == 0.0


def deep(depth: int) -> str:
    return '{"a": [' * (depth // 2) + "1" + "]}" * (depth // 2)


def deep_files(reference: str, output: str, args: str = "{}") -> None:
    step = f'{{"name": "fetch", "args": {{}}, "output_media_type": "application/json", "output": {reference}}}'
    question = f'{{"id": "q", "question_text": "?", "reference_steps": [[{step}]]}}'
    Path("deep.json").write_text(f'[{{"template_id": "t", "questions": [{question}]}}]')
    taken = f'{{"name": "fetch", "args": {args}, "id": "c", "status": "success", "output": {output}}}'
    Path("deep.jsonl").write_text(f'{{"question_id": "q", "actual_answer": "", "actual_steps": [{taken}]}}\n')


@pytest.mark.full
def test_deeply_nested_tool_outputs_are_scored_and_reported(files: Path, exit_code: Command) -> None:
    deep_files(json.dumps(deep(500)), json.dumps(deep(500).replace(" ", "")))
    assert exit_code("score", "deep.json", "deep.jsonl", "-o", "run") == 0
    assert [result["steps_score"] for result in results()] == [1.0]
    assert Path("run/report.html").exists()


@pytest.mark.parametrize(
    ("reference", "output", "args", "place"),
    [
        (json.dumps(deep(20_000)), '"[]"', "{}", "deep.json, line 1, question q"),
        (deep(100_000), '"[]"', "{}", "deep.json, line 1"),
        ('"[]"', deep(100_000), "{}", "deep.jsonl, line 1"),
        ('"[]"', '"[]"', deep(100_000), "deep.jsonl, line 1"),
    ],
)
def test_too_deeply_nested_records_are_one_clear_error(
    files: Path,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
    reference: str,
    output: str,
    args: str,
    place: str,
) -> None:
    deep_files(reference, output, args)
    assert exit_code("score", "deep.json", "deep.jsonl", "-o", "run") == 2
    message = " ".join(capsys.readouterr().err.split())
    assert place in message
    assert "nested too deeply" in message


@pytest.mark.full
@pytest.mark.full
@pytest.mark.parametrize("handler", ["strict", "surrogateescape"])
def test_lone_surrogate_in_an_output_is_escaped_on_display(
    files: Path, monkeypatch: pytest.MonkeyPatch, handler: str
) -> None:
    step = {"name": "calc", "args": {}, "output": '{"a": 1}', "output_media_type": "application/json"}
    question = {"id": "q", "question_text": "How much?", "reference_steps": [[step]]}
    Path("halves.json").write_text(json.dumps([{"template_id": "t", "questions": [question]}]))
    actual = {"name": "calc", "args": {}, "id": "c", "status": "success", "output": "half \ud800 of it"}
    response = {"question_id": "q", "actual_answer": "1", "actual_steps": [actual]}
    Path("halves.jsonl").write_text(json.dumps(response) + "\n")
    main = "from graphrag_eval_lc.cli import main; main()"
    command = [sys.executable, "-c", main, "score", "halves.json", "halves.jsonl", "-o", "run"]
    monkeypatch.setenv("PYTHONIOENCODING", f"utf-8:{handler}")
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"mistake")) == (0, 0)
    assert "half ⟨U+D800⟩ of it".encode() in done.stdout
