import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.judges.answer_tables import read_table, table_lines

cells = st.text(st.one_of(st.sampled_from("\t\n\r\"' ,\x00\ufeff\u2028"), st.characters(exclude_categories=["Cs"])))
CELL = 'Norway\'s grid:\ttwo "areas"\r\nand\rthree\n\nmore'


def table_of(text: str | bytes, folder: Path) -> list[Sequence[str]]:
    path = folder / "table.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table = read_table(path)
    return [table.columns, *table.rows]


@given(st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), max_size=5)))
def test_written_table_is_read_back_exactly(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    width = len(rows[0]) if rows else 2
    header = ("a", "b", "c", "d")[:width]
    folder = tmp_path_factory.mktemp("tables")
    assert table_of(b"".join(table_lines([header, *rows])), folder) == [header, *rows]


def test_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    assert table_of(b"\xef\xbb\xbfa\tb\r\n1\t2\r\n", tmp_path) == [("a", "b"), ["1", "2"]]


def test_tabs_line_breaks_and_quotation_marks_in_cells_survive(tmp_path: Path) -> None:
    quoted = CELL.replace('"', '""')
    assert table_of(f'a\tb\n"{quoted}"\t5" pipe\n', tmp_path) == [("a", "b"), [CELL, '5" pipe']]


def test_huge_cell_is_read_and_the_csv_limit_restored(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    assert table_of("a\tb\n" + "x" * 3_000_000 + "\ty\n", tmp_path)[1] == ["x" * 3_000_000, "y"]
    assert csv.field_size_limit() == limit


def test_line_of_a_row_is_its_first(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text('a\tb\n"1\n1"\t2\n\n3\t4\n')
    assert read_table(path).lines == [2, 5]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a\tb\n1\t2\n3\n", "line 3: the row has 1 cell and the first row 2. Write a cell that holds a tab"),
        ("a\tb\n1\t2\t3\n", "line 2: the row has 3 cells and the first row 2"),
        ('a\tb\n"1\t2\n3\t4\n', "line 2: the row cannot be read: unexpected end of data"),
        ('a\tb\n1\t2\n"Oslo" it is\t4\n', "line 3: the row cannot be read"),
        ("", "the table of answers is empty"),
        (b"a\tb\n\xe5\t1\n", "line 2: the table of answers is not UTF-8: byte 0xe5"),
    ],
)
def test_invalid_table_is_an_error_with_its_line(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    with pytest.raises(ResponsesError) as caught:
        table_of(text, tmp_path)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (
            "Question\tReference answer\tactual answers",
            "no column Actual answer. Rename actual answers, if that is it, to",
        ),
        (
            "Question\tReference answer\tAnswer",
            "no column Actual answer. Rename Answer, if that is it, to Actual answer.",
        ),
        ("Question\tReference answer", "no column Actual answer. The other columns are: none."),
        ("Question\tx\ty", "no column Reference answer and no column Actual answer. The other columns are: x, y."),
        ("Question\tQuestion\tReference answer\tActual answer", "there are 2 columns Question. Rename all but one."),
    ],
)
def test_missing_columns_are_an_error_with_the_nearest_ones(tmp_path: Path, header: str, complaint: str) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(header + "\n")
    with pytest.raises(ResponsesError) as caught:
        read_table(path).places(["Question", "Reference answer", "Actual answer"])
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.tsv", "Question\tReference answer\tActual answer\tLabel, of two people"),
        ("a.csv", "Question,Reference answer,Actual answer,Label"),
        ("a.csv", "id,question_text,reference_answer,actual_answer"),
        ("a.CSV", "question_text;Reference answer;actual_answer;x,y"),
        ("a.txt", "id\tquestion_text\treference_answer\tactual_answer"),
        ("a", "\r\nactual_answer,question_text,reference_answer"),
    ],
)
def test_table_is_csv_or_tsv_with_column_names_of_tables_or_datasets(tmp_path: Path, name: str, header: str) -> None:
    (tmp_path / name).write_text(header)
    columns = read_table(tmp_path / name).columns
    question, reference, actual = read_table(tmp_path / name).places(["Question", "Reference answer", "Actual answer"])
    assert [columns[index].lower().replace("_", " ") for index in (reference, actual)] == [
        "reference answer",
        "actual answer",
    ]
    assert columns[question] in ("Question", "question_text")
