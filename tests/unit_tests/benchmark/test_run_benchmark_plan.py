"""The plan of a run: what it would run, without running it."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.errors import AgentError, DatasetError, OptionError, RunFolderError
from graphrag_eval_lc.run_folder import RunFolder

TEXTS = ("a", "fail", "c")
DATASET: list[Any] = [
    {"template_id": "t", "questions": [{"id": f"q{n}", "question_text": text} for n, text in enumerate(TEXTS)]}
]


async def agent(question: str) -> str:
    if question == "fail":
        raise ValueError("no")
    return "yes"


def never(question: str) -> str:
    raise AssertionError("it was asked")


def to_ask(*arguments: Any, **options: Any) -> list[tuple[str, int]]:
    return [sample.key for sample in plan_benchmark(*arguments, **options).to_ask]


def test_new_run_plans_everything_and_creates_no_folder(tmp_path: Path) -> None:
    asked = to_ask(never, DATASET, output_dir=tmp_path / "run", repeats=2)
    assert asked == [(f"q{n}", repeat) for repeat in (1, 2) for n in range(3)]
    assert not (tmp_path / "run").exists()


def test_resumed_run_plans_missing_questions(tmp_path: Path) -> None:
    run_benchmark(agent, DATASET, output_dir=tmp_path, progress="off")
    plan = plan_benchmark(agent, DATASET, output_dir=tmp_path)
    assert (plan.to_ask, plan.errors, plan.total) == ([], 1, 3)
    assert to_ask(agent, DATASET, output_dir=tmp_path, retry_errors=True) == [("q1", 1)]
    assert to_ask(agent, DATASET, output_dir=tmp_path, repeats=2) == [(f"q{n}", 2) for n in range(3)]
    assert len(to_ask(agent, DATASET, output_dir=tmp_path, overwrite=True)) == 3


def test_folder_is_unchanged(tmp_path: Path) -> None:
    run_benchmark(agent, DATASET, output_dir=tmp_path, progress="off")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    plan_benchmark(agent, DATASET, output_dir=tmp_path, repeats=3)
    plan_benchmark(never, DATASET, output_dir=tmp_path, overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_different_run_is_rejected_unless_forced(tmp_path: Path) -> None:
    run_benchmark(agent, DATASET, output_dir=tmp_path, progress="off")
    with pytest.raises(RunFolderError, match="differs"):
        plan_benchmark(never, DATASET, output_dir=tmp_path)
    assert to_ask(never, DATASET, output_dir=tmp_path, force=True) == []


def test_plan_rejects_what_a_run_rejects(tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        plan_benchmark(agent, DATASET, repeats=0)
    with pytest.raises(DatasetError):
        plan_benchmark(agent, DATASET * 2)
    with pytest.raises(AgentError):
        plan_benchmark("absent.py:graph", DATASET)
    run_benchmark(agent, DATASET, output_dir=tmp_path, progress="off")
    with RunFolder(tmp_path).lock(), pytest.raises(RunFolderError, match="works in this folder"):
        plan_benchmark(agent, DATASET, output_dir=tmp_path)
