"""Rows with named columns, as data frames and files."""

import csv
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.errors import MissingExtraError, RunFolderError
from graphrag_eval_lc.tables import Table

ROWS: list[dict[str, Any]] = [
    {"id": "a", "score": 1.0},
    {"id": "b", "note": "x", "score": None},
    {"id": "c", "tokens": 3},
]


def test_columns_are_in_order_of_first_appearance() -> None:
    assert Table.of(ROWS).columns == ("id", "score", "note", "tokens")
    assert Table.of(ROWS, first=["tokens", "else"]).columns == ("tokens", "else", "id", "score", "note")


def test_texts_come_after_numbers_except_for_the_first_columns() -> None:
    assert Table.of(ROWS).with_texts_last(["id"]).columns == ("id", "score", "tokens", "note")


def test_frame_has_missing_values_for_absent_cells() -> None:
    frame = Table.of(iter(ROWS)).to_pandas()
    assert list(frame.columns) == ["id", "score", "note", "tokens"]
    assert frame["score"].isna().tolist() == [False, True, True]
    assert Table.of([]).to_pandas().empty


def test_frame_without_rows_has_columns() -> None:
    assert list(Table.of([], first=["id"]).to_pandas().columns) == ["id"]


def test_file_has_the_rows(tmp_path: Path) -> None:
    text = 'a "quoted", line\nbroken, ø, \u202e and =1+1'
    path = Table.of([{"id": "q", "text": text, "none": None}, {"id": "r"}]).to_csv(tmp_path / "t.csv")
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["id", "text", "none"], ["q", text, ""], ["r", "", ""]]


@pytest.mark.parametrize(
    "text", ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " \ufeff=1", "＝1", "＋x", "－x", "＠x"]
)
def test_spreadsheet_formulas_are_escaped(text: str, tmp_path: Path) -> None:
    path = Table.of([{text: text}]).to_csv(tmp_path / "t.csv")
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[f"'{text}"], [f"'{text}"]]


def test_numbers_are_unchanged(tmp_path: Path) -> None:
    path = Table.of([{"a": -1.5, "b": "-1.5", "c": "+2e3"}]).to_csv(tmp_path / "t.csv")
    assert path.read_text(encoding="utf-8").splitlines() == ["a,b,c", "-1.5,-1.5,+2e3"]


def test_lone_surrogate_is_escaped(tmp_path: Path) -> None:
    path = Table.of([{"id": "\ud800"}]).to_csv(tmp_path / "t.csv")
    assert path.read_text(encoding="utf-8").split() == ["id", "\\ud800"]


def test_unwritable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be written"):
        Table.of(ROWS).to_csv(tmp_path / "absent" / "t.csv")


def test_missing_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"needs the package pandas.*graphrag-eval-lc\[notebook\]"):
        Table.of(ROWS).to_pandas()
