"""Runs and scoring reject the same errors as ``validate``, with the same text, before the agent is called."""

import asyncio
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag_eval_lc import arun_benchmark, run_benchmark, score_responses, score_run, validate_dataset
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.errors import DatasetError

ROW = {"t": {"type": "literal", "value": "T1"}}
ROWS = {"name": "sparql_query", "output": json.dumps({"head": {"vars": ["t"]}, "results": {"bindings": [ROW]}})}
SOUND: dict[str, Any] = {**ROWS, "output_media_type": "application/sparql-results+json"}


def dataset(*steps: dict[str, Any]) -> list[Any]:
    question = {"id": "q", "question_text": "Which?", "reference_steps": [list(steps)] if steps else []}
    return [{"template_id": "t", "questions": [question]}]


def agent(question: str) -> str:
    raise AssertionError("asked")


CALLS: dict[str, Callable[[Any, Path], object]] = {
    "run_benchmark": lambda source, folder: run_benchmark(agent, source, output_dir=folder),
    "arun_benchmark": lambda source, folder: asyncio.run(arun_benchmark(agent, source, output_dir=folder)),
    "plan_benchmark": lambda source, folder: plan_benchmark(agent, source, output_dir=folder),
    "score_responses": lambda source, folder: score_responses(source, [], output_dir=folder),
}
REFUSED = {
    "a misspelt key": dataset({**SOUND, "required_column": ["t"]}),
    "a column that there is not": dataset({**SOUND, "required_columns": ["tt"]}),
    "two errors": dataset({**SOUND, "required_columns": ["tt"]}, {"name": "other"}),
    "no question": [{"template_id": "t", "questions": []}],
    "nothing": [],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("is_file", [True, False])
def test_validation_errors_are_rejected(call: str, name: str, is_file: bool, tmp_path: Path) -> None:
    source: Any = REFUSED[name]
    if is_file:
        source = tmp_path / "qa.json"
        source.write_text(json.dumps(REFUSED[name]))
    found = [str(problem) for problem in validate_dataset(source) if problem.severity == "error"]
    with pytest.raises(DatasetError) as refused:
        CALLS[call](source, tmp_path / "run")
    more = f" ({len(found) - 1} more problem: {'graphrag-eval-lc validate ' if is_file else 'validate_dataset'}"
    assert str(refused.value).startswith(found[0] + (more if len(found) > 1 else ""))
    assert len(found) > 1 or str(refused.value) == found[0]
    assert not (tmp_path / "run").exists()


def test_warnings_are_counted_with_the_command_that_lists_them(tmp_path: Path) -> None:
    path, config = tmp_path / "qa.json", tmp_path / "my config.yaml"
    path.write_text(json.dumps(dataset(ROWS, {**SOUND, "output_media_type": "Application/sparql-results+json"})))
    config.write_text("{}")
    run = run_benchmark(lambda question: "yes", path, config=config, output_dir=tmp_path / "run", progress="off")
    listing = f"2 warnings in the dataset: graphrag-eval-lc validate {path}"
    assert run.warnings[0] == f"{listing} --config '{config}' lists them"
    assert score_run(tmp_path / "run").warnings[0] == f"{listing} lists them"
    assert "2 warnings found." in CliRunner().invoke(app, ["validate", str(path), "--config", str(config)]).output
    assert run_benchmark(lambda question: "yes", dataset(ROWS), progress="off").warnings[0] == (
        "1 warning in the dataset: validate_dataset shows it"
    )


@pytest.mark.parametrize("registers", [True, False])
def test_agent_module_may_register_a_step_kind(
    registers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"kind_of_agent_{registers}"
    Path("qa.json").write_text(json.dumps(dataset({"name": name, "output": {"count": 3}})))
    Path(f"{name}.py").write_text(
        textwrap.dedent(f"""
            from graphrag_eval_lc.matching import register_matcher

            def agent(question):
                return "3"

            if {registers}:
                register_matcher(name="{name}")(lambda reference, actual: 1.0)
        """)
    )
    ended = CliRunner().invoke(app, ["run", "qa.json", "--agent", f"{name}.py:agent", "--output", "run"])
    assert isinstance(ended.exception, DatasetError) is not registers, ended.output
    assert Path("run").exists() is registers
