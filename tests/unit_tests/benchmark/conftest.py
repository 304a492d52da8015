"""Partial runs over a small dataset."""

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
            {"id": f"q{number}", "question_text": f"{number}?", "reference_answer": f"{number}"}
            for number in range(template * 6, template * 6 + 6)
        ],
    }
    for template in range(2)
]
Part = Callable[..., Path]


def answer(question: str) -> str:
    """Answer a question; two questions fail."""
    if question in ("3?", "8?"):
        raise ValueError("away")
    return question.removesuffix("?")


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    """Return a function that runs some of the questions into a folder, and returns the folder."""
    monkeypatch.chdir(tmp_path)
    Path("qa.json").write_text(json.dumps(DATASET))

    def run(name: str, agent: Any = answer, **options: Any) -> Path:
        run_benchmark(agent, "qa.json", output_dir=name, **{"progress": "off", "report": False, **options})
        return Path(name)

    return run


@pytest.fixture
def shards(part: Part) -> Callable[..., list[Path]]:
    """Return a function that runs all shards."""

    def run(of: int = 3, **options: Any) -> list[Path]:
        return [part(f"night-{number}-of-{of}", shard=f"{number}/{of}", **options) for number in range(1, of + 1)]

    return run
