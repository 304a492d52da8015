"""Small tables, and a progress that records its calls."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.judges.answer_tables import table_lines

HEADER = ["Question", "Reference answer", "Actual answer"]


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a table to a file."""

    def write(rows: Sequence[Sequence[str]], name: str = "in.tsv", header: Sequence[str] = HEADER) -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(table_lines([header, *rows])))
        return path

    return write


class RecordedProgress:
    """Records the calls of its methods."""

    def __init__(self) -> None:
        self.noted: list[Any] = []

    def started(self, total: int, done: int) -> None:
        self.noted.append((total, done))

    def judged(self, error: str) -> None:
        self.noted.append(error)


@pytest.fixture
def progress() -> RecordedProgress:
    return RecordedProgress()
