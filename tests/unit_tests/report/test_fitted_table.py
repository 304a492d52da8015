"""Tables that fit the terminal's width."""

import pytest
from rich.cells import cell_len
from support.report_samples import console_text

from graphrag_eval_lc.report.fitted_table import Column, FittedTable, same_in_all, shortened_id

COLUMNS = (
    Column("Questions", 1),
    Column("Errors", 2),
    Column("steps_score"),
    Column("Cost", 3, nothing=frozenset({"", "$0.00"})),
    Column("Label", 4, longest=8),
)
ROWS = [
    ("transformers_in_substation", ["4", "", "0.500", "$0.00", "the first of the runs"]),
    ("見出しがとても長いテンプレート", ["1,200", "", "1.000", "$0.00", "nightly"]),
]


def printed(width: int, rows: list[tuple[str, list[str]]] = ROWS) -> list[str]:
    return console_text(FittedTable("Template", COLUMNS, rows, "Scores"), width).splitlines()


@pytest.mark.parametrize("width", [200, 80, 60, 50, 40, 30, 20, 12])
def test_each_row_is_one_line_within_the_width(width: int) -> None:
    lines = printed(width)
    assert max(map(cell_len, lines)) <= width
    assert len([line for line in lines if "│" in line and "━" not in line]) == len(ROWS)
    assert all(score in "".join(lines) for score in ("0.500", "1.000"))


@pytest.mark.parametrize(
    ("width", "shown", "left_out"),
    [
        (120, ["Questions", "steps_score", "Label", "the first of the runs"], []),
        (60, ["Questions", "the"], []),
        (48, ["Questions"], ["Label"]),
        (36, [], ["Questions", "Label"]),
    ],
)
def test_least_important_columns_are_dropped_and_named(width: int, shown: list[str], left_out: list[str]) -> None:
    table, _, named = " ".join(" ".join(printed(width)).split()).partition("Not enough room for: ")
    assert named == ", ".join(left_out)
    assert [text for text in shown if text not in table] == []
    assert "Errors" not in table
    assert "Cost" not in table


def test_table_that_just_fits_is_shown_in_full() -> None:
    wide = printed(200)[1:]  # without the title
    width = max(cell_len(line.rstrip()) for line in wide)
    assert [line.rstrip() for line in printed(width)[1:]] == [line.rstrip() for line in wide]
    assert printed(width - 1)[1:] != wide


def test_column_is_shown_if_any_cell_has_a_value() -> None:
    assert "Errors" in "".join(printed(120, [*ROWS, ("b", ["1", "2", "–", "$0.00", ""])]))


def test_heading_is_not_shortened_if_ids_are_shorter() -> None:
    assert all("Template" in "".join(printed(width, [("d", ROWS[0][1])])) for width in (80, 60, 50, 40))


@pytest.mark.parametrize("width", range(1, 30))
def test_shortened_id_keeps_both_ends(width: int) -> None:
    for text, _ in ROWS:
        short = shortened_id(text, width)
        assert cell_len(short) <= width
        assert short == text or "…" in short
        if 6 < width < cell_len(text):
            assert (short[0], short[-1]) == (text[0], text[-1])


def test_constant_columns_are_dropped_only_with_two_rows() -> None:
    columns = [Column("Commit"), Column("Errors"), Column("Score")]
    assert same_in_all(columns, [["a", "", "1"], ["a", "", "2"]]) == {"Commit": "a"}
    assert same_in_all(columns, [["a", "", "1"]]) == {}
