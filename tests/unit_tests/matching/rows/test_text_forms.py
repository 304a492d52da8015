"""Laws of texts: what is written in a form is read back, and a changed text is read or refused."""

import csv
import io
from collections.abc import Callable
from contextlib import suppress
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.rows import text_forms

Rows = list[list[str]]
NAMES = ["name", "count(*)", "voltage [kV]"]
LETTERS = st.characters(codec="utf-8", categories=("L", "N", "P", "S"), exclude_characters="…·|\\`")
WORDS = (
    st.text(LETTERS, max_size=8)
    .filter(lambda text: text[:1] not in {"<", '"', "_", "#"})
    .map(lambda text: text and f"x{text}")
)
TABLES = st.lists(st.lists(WORDS, min_size=3, max_size=3).filter(any), min_size=1, max_size=5)


def separated(sign: str) -> Callable[[Rows], str]:
    def write(rows: Rows) -> str:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=sign).writerows([NAMES, *rows])
        return text.getvalue()

    return write


def tsv(rows: Rows) -> str:
    quoted = [["" if not cell else '"' + cell.replace('"', '\\"') + '"' for cell in row] for row in rows]
    return "".join("\t".join(row) + "\n" for row in [["?a", "?b", "?c"], *quoted])


def markdown(rows: Rows) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [NAMES, *rows]]
    return "\n".join([lines[0], "|---|:-:|--:|", *lines[1:]]) + "\n"


def drawn(left: str, middle: str, right: str, bar: str, dash: str) -> Callable[[Rows], str]:
    def write(rows: Rows) -> str:
        widths = [max(len(row[at]) for row in [NAMES, *rows]) for at in range(3)]
        lines = [
            bar + bar.join(f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True)) + bar
            for row in [NAMES, *rows]
        ]
        top, rule, end = (
            left[at] + middle[at].join(dash * (width + 2) for width in widths) + right[at] for at in range(3)
        )
        return "\n".join([top, lines[0], rule, *lines[1:], end])

    return write


def xml(rows: Rows) -> str:
    names = "".join(f'<variable name="{name}"/>' for name in "abc")
    results = "".join(
        "<result>"
        + "".join(
            f'<binding name="{name}"><literal>{escape(cell)}</literal></binding>'
            for name, cell in zip("abc", row, strict=True)
            if cell
        )
        + "</result>"
        for row in rows
    )
    head = f'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>{names}</head>'
    return f"{head}<results>{results}</results></sparql>"


FORMS = {
    "CSV": (separated(","), text_forms.looks_like_csv, text_forms.read_csv),
    "CSV with semicolons": (separated(";"), text_forms.looks_like_csv, text_forms.read_csv),
    "quoted TSV": (separated("\t"), text_forms.looks_like_tsv, text_forms.read_tsv),
    "W3C TSV": (tsv, text_forms.looks_like_tsv, text_forms.read_tsv),
    "Markdown": (markdown, text_forms.looks_like_table, text_forms.read_table),
    "MySQL": (drawn("+++", "+++", "+++", "|", "-"), text_forms.looks_like_table, text_forms.read_table),
    "box": (drawn("┌├└", "┬┼┴", "┐┤┘", "│", "─"), text_forms.looks_like_table, text_forms.read_table),
    "XML": (xml, text_forms.looks_like_xml, text_forms.read_xml),
}


@pytest.mark.parametrize("form", FORMS)
@given(rows=TABLES)
def test_what_is_written_in_a_form_is_read_back(form: str, rows: Rows) -> None:
    write, looks_like, read = FORMS[form]
    text = write(rows)
    assert looks_like(text)
    columns = list(read(text).columns.values())
    assert [[column.texts[at] for column in columns] for at in range(len(rows))] == rows


@pytest.mark.parametrize("form", FORMS)
@given(rows=TABLES, data=st.data())
def test_a_changed_text_is_read_or_refused(form: str, rows: Rows, data: st.DataObject) -> None:
    text = FORMS[form][0](rows)
    at, to = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    piece = data.draw(st.sampled_from(["", "\n", "\t", "|", '"', "+---+\n", "---\n", "\ud800", "```\n", text]))
    text = text[:at] + piece + text[to:]
    for _, looks_like, read in FORMS.values():
        looks_like(text)
        with suppress(UnreadableOutput):
            results = read(text)
            assert all(len(column.texts) == results.row_count for column in results.columns.values())


@pytest.mark.parametrize("form", ["MySQL", "box", "XML"])
@given(rows=TABLES, data=st.data())
def test_the_beginning_of_a_form_with_an_end_never_lacks_rows(form: str, rows: Rows, data: st.DataObject) -> None:
    write, _, read = FORMS[form]
    text = write(rows)
    with suppress(UnreadableOutput):
        assert read(text[: data.draw(st.integers(0, len(text) - 1))]).row_count == len(rows)


def test_a_data_frame_of_pandas_is_read_or_cut() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["Hasle", None], "net load": [-1.5, 300.25], "kv": [420, -1]})
    for text in (repr(frame), frame.to_string(), frame.to_string().strip()):
        columns = text_forms.read_table(text).columns
        assert {name: column.texts for name, column in columns.items()} == {
            "name": ["Hasle", ""],
            "net load": ["-1.50", "300.25"],
            "kv": ["420", "-1"],
        }
    for long in ({"n": range(70)}, {f"column {at}": [10**9] for at in range(20)}, {"text": ["abc " * 30]}):
        with pytest.raises(UnreadableOutput):
            text_forms.read_table(repr(pandas.DataFrame(long)))
