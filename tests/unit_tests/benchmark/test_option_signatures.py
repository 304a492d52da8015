"""Public functions expose their options to type checkers, editors and help()."""

import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphrag_eval_lc
from graphrag_eval_lc import arun_benchmark, run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.benchmark.run_options import RunOptions
from graphrag_eval_lc.benchmark.score_options import ScoreOptions, ScoreRunOptions

FUNCTIONS = [
    (run_benchmark, ["agent", "dataset"], RunOptions),
    (arun_benchmark, ["agent", "dataset"], RunOptions),
    (plan_benchmark, ["agent", "dataset"], RunOptions),
    (score_responses, ["dataset", "responses"], ScoreOptions),
    (score_run, ["run_dir"], ScoreRunOptions),
]


@pytest.mark.parametrize(("function", "own", "model"), FUNCTIONS)
def test_signature_shows_each_option_with_its_default(function: Any, own: list[str], model: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert list(parameters) == [*own, *model.model_fields]
    for name, field in model.model_fields.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert (parameters[name].default, parameters[name].annotation) == (field.default, field.annotation)


@pytest.mark.parametrize("function", [run_benchmark, score_responses, score_run])
def test_help_describes_each_option(function: Any) -> None:
    text = pydoc.plain(pydoc.render_doc(function))
    options = list(inspect.signature(function).parameters.values())
    for option in options:
        if option.kind is inspect.Parameter.KEYWORD_ONLY:
            assert f"- ``{option.name}``" in text


USE = """
from graphrag_eval_lc import arun_benchmark, run_benchmark, score_responses, score_run

run_benchmark(agent=print, dataset="qa.yaml", max_concurrency=3, output_dir="run", max_failures="5%", max_time=60)
run_benchmark(print, "qa.yaml", max_concurency=3)  # wrong
run_benchmark(print, "qa.yaml", max_concurrency="3")  # wrong
run_benchmark(print)  # wrong
run_benchmark(print, "qa.yaml").aggregate  # wrong
score_responses("qa.yaml", "responses.jsonl", label="night", config={"steps": {}})
score_responses("qa.yaml", "responses.jsonl", tags=3)  # wrong
score_run("run", dataset="qa.yaml", drop_missing=True)
score_run("run", label="night")  # wrong


async def ask() -> None:
    run = await arun_benchmark(print, "qa.yaml", retry_on=(ValueError,), capture={"keep_messages": True})
    print(run.stopped)
    await arun_benchmark(print, "qa.yaml", capture={"keep_message": True})  # wrong
"""


@pytest.mark.full
def test_type_checkers_find_invalid_options(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    path = tmp_path / "use.py"
    path.write_text(USE)
    package = Path(graphrag_eval_lc.__file__).parent
    command = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--strict"]
    # Without pydantic's mypy plugin, as for most users.
    result = subprocess.run(
        [*command, "--ignore-missing-imports", str(path)], cwd=package.parent, capture_output=True, text=True
    )
    complaints = [line for line in result.stdout.splitlines() if "use.py:" in line and ": error:" in line]
    wrong = [number for number, line in enumerate(USE.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({int(line.split("use.py:")[1].split(":")[0]) for line in complaints}) == wrong, result.stdout
