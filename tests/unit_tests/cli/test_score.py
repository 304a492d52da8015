"""The command `score`: recorded responses, and a run's folder once more in place."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]
SCORE = ("score", "qa.yaml", "responses.jsonl")


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]


def record() -> dict[str, Any]:
    return dict(json.loads(Path("run/run.json").read_text()))


# --- matchers and evaluators of one's own ----------------------------------------------------------------------------

CHECKS = """
from graphrag_eval_lc.matching import register_matcher


@register_matcher(name="lookup")
def match_ends(reference, actual):
    return float(reference["output"][-4:] == actual["output"][-4:])


def steps_taken(question, response):
    return len(response["actual_steps"])
"""
GIVEN = ("--plugin", "checks.py", "--evaluator", "checks.py:steps_taken")


@pytest.fixture
def checks(files: Path) -> None:
    """Put a module of matchers and evaluators into the current folder, and a response that only its matcher takes."""
    Path("checks.py").write_text(CHECKS)
    Path("responses.jsonl").write_text(Path("responses.jsonl").read_text().replace("urn:oslo", "http://x/oslo"))


def test_what_scored_a_run_is_given_again_or_dropped_on_demand(
    checks: None, exit_code: Command, capsys: pytest.CaptureFixture[str], forget_matchers: Callable[[], None]
) -> None:
    assert exit_code(*SCORE, "-o", "run", *GIVEN) == 0
    assert (results()[0]["steps_score"], results()[0]["steps_taken"]) == (1.0, 1)
    forget_matchers()
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    assert exit_code("score", "run", "--no-report") == 2
    error = capsys.readouterr().err
    assert (
        "the matcher for lookup (checks.py:match_ends) and the evaluator steps_taken (checks.py:steps_taken)" in error
    )
    assert "--plugin checks.py," in error
    assert "--evaluator checks.py:steps_taken (" in error
    assert "--drop-missing (drop_missing=True) to score without." in error
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before
    assert exit_code("score", "run", *GIVEN) == 0
    assert (results()[0]["steps_score"], results()[0]["steps_taken"]) == (1.0, 1)
    forget_matchers()
    capsys.readouterr()
    assert exit_code("score", "run", "--drop-missing") == 0
    assert "Warning: scored without the matcher for lookup (checks.py:match_ends) and the" in capsys.readouterr().err
    assert "steps_taken" not in results()[0]
    assert exit_code("score", "run") == 0


def test_matcher_that_the_agents_module_registered_is_given_by_that_module(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], forget_matchers: Callable[[], None]
) -> None:
    Path("agent.py").write_text(f"{Path('agent.py').read_text()}\n{CHECKS}")
    run = ("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run")
    assert exit_code(*run) == 0
    assert record()["matchers"] == [{"name": "lookup", "function": "agent.py:match_ends"}]
    forget_matchers()
    assert exit_code(*run, "--retry-errors") == 0  # the agent's module is loaded again
    forget_matchers()
    assert exit_code("score", "run") == 2
    assert "is missing now: the matcher for lookup (agent.py:match_ends); without it" in capsys.readouterr().err
    assert exit_code("score", "run", "--plugin", "agent.py") == 0


@pytest.mark.full
def test_processes_of_their_own_share_nothing_but_the_folder(checks: None) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from graphrag_eval_lc.cli import main; main()"
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    assert command(*SCORE, "-o", "run", *GIVEN).returncode == 0
    assert "the matcher for lookup" in command("score", "run").stderr
    assert results()[0]["steps_score"] == 1.0
    assert command("score", "run", *GIVEN).returncode == 0
    assert results()[0]["steps_score"] == 1.0
    assert command("score", "run", "--drop-missing").returncode == 0
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
def test_deep_texts_of_tools_are_scored_and_reported(files: Path, exit_code: Command) -> None:
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
def test_records_that_are_too_deep_themselves_are_one_clear_error(
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
def test_half_a_character_in_an_output_is_escaped_where_it_is_shown(
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
