"""The output of `--json` and its schema."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphrag_eval_lc import load_run, run_benchmark
from graphrag_eval_lc.report.machine_files import DOCUMENT_SCHEMA_PATHS

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
AGENT = """
def answer(question):
    print("I think about", question)
    if "fails" in question:
        raise ValueError("no")
    return "yes"
"""
DATASET = """\
- template_id: where
  questions:
  - {id: q1, question_text: "Where?", reference_steps: [[{name: lookup, output: x}]]}
- template_id: who
  questions:
  - {id: q2, question_text: "Who runs?"}
  - {id: q3, question_text: "Who fails?", reference_steps: [[{name: lookup, output: x}]]}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("agent.py").write_text(AGENT)
    tmp_path.joinpath("qa.yaml").write_text(DATASET)


def printed(name: str, output: Output) -> Any:
    """Return the single document on standard output after validating it against its schema."""
    document = json.loads(output.readouterr().out)
    schema = json.loads(DOCUMENT_SCHEMA_PATHS[name].read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["kind"] == name
    return document


def run(exit_code: Command, *options: str) -> int:
    return exit_code("run", "qa.yaml", "-a", "agent.py:answer", "-o", "runs/first", "--json", *options)


def test_run_prints_one_document_whatever_the_agent_prints(exit_code: Command, capsys: Output) -> None:
    assert run(exit_code) == 0
    document = printed("run", capsys)
    assert (document["questions"], document["answered"], document["errors"]) == (3, 2, 1)
    assert document["scores"]["steps_score"]["questions"] == 2
    assert sum(document["states"].values()) == 3
    assert [group["count"] for group in document["failures"]] == [1] * len(document["failures"]) != []
    who = document["templates"]["who"]
    assert (who["questions"], who["errors"], who["scores"]["steps_score"]) == (2, 1, 0.0)
    assert document["path"] == "runs/first"
    assert document["files"] == ["run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", "report.html"]
    assert document["passed"] is True
    assert document["totals"] == load_run("runs/first").aggregates["totals"]


def test_failed_gate_is_in_the_document_and_the_exit_code(exit_code: Command, capsys: Output) -> None:
    assert run(exit_code, "--fail-under", "steps_score=0.5", "--fail-over", "elapsed_sec.max=100") == 1
    document = printed("run", capsys)
    assert document["passed"] is False
    assert [gate["state"] for gate in document["gates"]] == ["failed", "passed"]
    assert document["gates"][0]["metric"] == "steps_score"
    assert document["gates"][0]["text"].startswith("steps_score 0.000 < 0.5")


def test_score_prints_the_same_document_as_run(exit_code: Command, capsys: Output) -> None:
    run(exit_code)
    first = printed("run", capsys)
    assert exit_code("score", "runs/first", "--json") == 0
    assert printed("run", capsys) == first
    assert exit_code("score", "qa.yaml", "runs/first/responses.jsonl", "-o", "again", "--json", "--no-report") == 0
    again = printed("run", capsys)
    assert again["scores"] == first["scores"]
    assert "report.html" not in again["files"]


def test_json_and_dry_run_are_mutually_exclusive(exit_code: Command, capsys: Output) -> None:
    assert run(exit_code, "--dry-run") == 2
    assert (
        "Error: --json and --dry-run exclude each other: --json prints a run, and --dry-run does not run anything."
        in capsys.readouterr().err
    )


def test_compare_prints_one_document_with_its_gates(exit_code: Command, capsys: Output) -> None:
    steps = [[{"name": "s", "output": "1"}]]
    dataset: list[Any] = [
        {
            "template_id": f"t{index}",
            "questions": [{"id": f"q{index}", "question_text": f"{index}?", "reference_steps": steps}],
        }
        for index in range(3)
    ]
    for name in ("a", "b"):
        run_benchmark(lambda question: "1", dataset, output_dir=f"runs/{name}", progress="off")
    path = Path("runs/a/results.jsonl")
    right = [{**json.loads(line), "steps_score": 1.0} for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in right))
    arguments = ("compare", "--baseline", "runs/a", "runs/b", "--json", "--max-drop", "0.1", "--max-lost", "9")
    assert exit_code(*arguments, "--fail-on-regression", "--html", "page.html") == 1
    document = printed("comparison", capsys)
    assert [each["label"] for each in document["runs"]] == ["a", "b"]
    (pair,) = document["pairs"]
    assert pair["metrics"][0]["metric"] == "steps_score"
    assert [flip["direction"] for flip in pair["flips"]] == ["broken"] * 3
    assert [(gate["run"], gate["metric"], gate["state"]) for gate in document["gates"]] == [
        ("B", "steps_score", "passed"),
        ("B", "steps_score", "failed"),
    ]
    assert document["passed"] is False
    assert Path("page.html").is_file()


def test_validate_prints_one_document(exit_code: Command, capsys: Output) -> None:
    Path("qa.yaml").write_text(DATASET.replace("question_text", "question_txt", 1))
    assert exit_code("validate", "qa.yaml", "--json") == 1
    document = printed("validation", capsys)
    assert document["errors"] == len(document["problems"]) > 0
    problem = next(each for each in document["problems"] if "question_txt" in (each["key"] or ""))
    assert (problem["path"], problem["line"], problem["severity"]) == ("qa.yaml", 3, "error")


def test_validate_without_problems_prints_one_document(exit_code: Command, capsys: Output) -> None:
    assert exit_code("validate", "qa.yaml", "--json") == 0
    assert printed("validation", capsys)["problems"] == []


def test_error_leaves_standard_output_empty(exit_code: Command, capsys: Output) -> None:
    assert exit_code("score", "absent", "--json") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("Error: ")
