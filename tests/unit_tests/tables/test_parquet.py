"""Writing tables as Parquet keeps the column types."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.tables import Table
from graphrag_eval_lc.tables.table import write_parquet


def written(tmp_path: Path, *values: Any) -> tuple[str, list[Any]]:
    """Return the type and the cells of a column after writing and reading it."""
    rows = [{"row": index} if value is None else {"row": index, "x": value} for index, value in enumerate(values)]
    column = parquet.read_table(write_parquet(Table.of(rows), tmp_path / "x.parquet")).column("x")
    return str(column.type), column.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "cells"),
    [
        ([1, None, 3], "int64", [1, None, 3]),
        ([1, 0.5], "double", [1.0, 0.5]),
        ([True, None, False], "bool", [True, None, False]),
        (["a", None], "string", ["a", None]),
        ([1, "a", True, None], "string", ["1", "a", "true", None]),
        ([2**63, 1], "double", [2.0**63, 1.0]),
        ([10**400, -(10**400), 0.5], "double", [math.inf, -math.inf, 0.5]),
        ([[1], {"a": 1}], "string", ["[1]", '{"a": 1}']),
        (["\ud800"], "string", ["\\ud800"]),
    ],
)
def test_column_has_the_type_of_its_cells(tmp_path: Path, values: list[Any], kind: str, cells: list[Any]) -> None:
    assert written(tmp_path, *values) == (kind, cells)


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.booleans(), st.text()), min_size=1))
def test_any_cells_can_be_written(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    rows = [{"x": value} for value in values]
    path = write_parquet(Table.of(rows, first=["x"]), tmp_path_factory.getbasetemp() / "any.parquet")
    cells = parquet.read_table(path).column("x").to_pylist()
    assert [cell is None for cell in cells] == [value is None for value in values]


def test_frame_of_a_run_round_trips(tmp_path: Path) -> None:
    dataset: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?"}]}]
    run = run_benchmark(lambda question: "2", dataset, progress="off")
    paths = run.to_parquet(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["questions.parquet", "steps.parquet", "aggregates.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet(paths[0]), run.to_pandas(), check_dtype=False)
    aggregates = pd.read_parquet(paths[2])
    assert len(aggregates) == len(run.to_pandas("aggregates"))


def test_unwritable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").mkdir()
    with pytest.raises(RunFolderError, match=r"x\.parquet"):
        write_parquet(Table.of([{"x": 1}]), tmp_path / "x.parquet")
