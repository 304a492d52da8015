"""A folder of runs: two finished ones, one after the other, and a killed one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark

DATASET: list[Any] = [
    {
        "template_id": f"t{template}",
        "questions": [
            {
                "id": f"q{template}{number}",
                "question_text": f"{template} and {number}?",
                "reference_output": "1",
                "reference_steps": [[{"name": "s", "output": "1"}]],
            }
            for number in range(2)
        ],
    }
    for template in range(2)
]


def answer(question: str) -> str:
    if question == "0 and 0?":
        raise ValueError("away")
    return "yes"


def right(question: Any, response: Any) -> float:
    return float(response["question_id"] != "q01")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with the finished runs ``a`` and ``nightly/b``, and the run ``killed``."""
    folder = tmp_path / "runs"
    for name in ("a", "nightly/b"):
        run_benchmark(
            answer,
            DATASET,
            output_dir=folder / name,
            evaluators=[right],
            repeats=2 if name == "a" else 1,
            label="the second" if name != "a" else None,
            tags=["x"],
            progress="off",
        )
    (folder / "killed").mkdir()
    record = {**record_of(folder / "a"), "times": {"started": "2020-01-01T00:00:00+00:00"}}
    del record["totals"]
    folder.joinpath("killed", "run.json").write_text(json.dumps(record))
    return folder


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(folder.joinpath("run.json").read_text())
    return record


@pytest.fixture
def change() -> Callable[..., None]:
    """Return a function that changes keys of a run.json."""

    def change(folder: Path, **values: Any) -> None:
        folder.joinpath("run.json").write_text(json.dumps({**record_of(folder), **values}))

    return change
