import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.markdown_rendering import rendered as shown

from graphrag_eval_lc.report.markdown_summary import Block, fitted, md_code, md_table, md_text
from graphrag_eval_lc.texts import one_line

# Each has a meaning somewhere, with letters and digits around it.
TROUBLE = st.text(alphabet=st.sampled_from("ab1 |`<>&*_[]()#@!~$\\:/.-+={}\"'\n\r\t\x00\u2028"), max_size=40)
ATTACKS = [
    "a | b \\| c \\",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "&lt;b&gt; &amp; &#64;all <!-- hidden",
    "`code` ``` ~~~ ~~gone~~",
    "[click](https://evil.example) ![img](//evil.example/x) <https://evil.example>",
    "@octocat @org/team user@host.example",
    "line\n\n# heading\n- item\n> quote\n---",
    "*bold* **more** _so_ __this__ snake_case_name",
    "$x$ :tada: www.evil.example \x00\x1b[31m \u202e",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_text_is_rendered_literally_in_paragraphs_and_cells(text: str) -> None:
    expected = one_line(text, 300).strip()
    tags, text_shown = shown(f"So: {md_text(text)}")
    assert tags == ["p"]
    assert text_shown.replace("\u200b", "").strip() == f"So: {expected}".strip()
    head, rows = md_table(("One", "Two"), [(md_text(text), md_code(text))])
    tags, text_shown = shown("\n".join([*head, *rows]))
    assert tags == ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td", "code"]
    cells = [line for line in text_shown.replace("\u200b", "").split("\n") if line]
    assert [cell.strip() for cell in cells[2:]] == [expected, one_line(text, 120).strip()]


@given(TROUBLE, TROUBLE)
def test_any_text_is_rendered_literally(one: str, other: str) -> None:
    head, rows = md_table(("A", "B"), [(f"x{md_text(one)}x", f"{md_code(f'y{other}y')}x")])
    tags, text_shown = shown("\n".join([*head, *rows]))
    assert tags == ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td", "code"]
    cells = [line for line in text_shown.replace("\u200b", "").split("\n") if line]
    assert cells[2:] == [f"x{one_line(one, 300)}x", f"{one_line(f'y{other}y', 120)}x"]


@given(st.text(max_size=60))
def test_any_text_is_one_line(text: str) -> None:
    assert len(md_text(text).splitlines()) <= 1
    assert len(md_code(text).splitlines()) == 1


@pytest.mark.parametrize("text", ["@octocat", "see @org/team", "a@b.example", "#12", "fixes !34"])
def test_text_creates_no_mentions_or_links(text: str) -> None:
    _, text_shown = shown(md_text(text))
    assert not re.search(r"@[\w-]|[#!]\d", text_shown)
    assert "@" not in md_text(text)


@pytest.mark.parametrize("text", ["https://evil.example", "FTP://evil.example", "www.evil.example", "WWW.evil.example"])
def test_urls_are_not_linked(text: str) -> None:
    assert not re.search(r"://|www\.", md_text(text), flags=re.IGNORECASE)
    assert shown(md_text(text)) == (["p"], f"{text}\n")


def test_text_at_the_end_of_a_heading_is_complete() -> None:
    assert shown(f"## So: {md_text('C# ##')}") == (["h2"], "So: C# ##\n")


def test_names_stay_readable_in_the_source() -> None:
    assert md_text("steps_score of my-metric.v2") == "steps_score of my-metric.v2"


def test_long_texts_are_truncated() -> None:
    assert md_text("x" * 400) == "x" * 300 + "…"
    assert md_code("x" * 400) == f"<code>{'x' * 120}…</code>"


@given(
    st.lists(st.tuples(st.integers(1, 40), st.lists(st.integers(0, 300), max_size=20)), min_size=1, max_size=6),
    st.integers(500, 3_000),
)
def test_document_stays_within_its_size_and_reports_what_is_omitted(
    sizes: list[tuple[int, list[int]]], max_bytes: int
) -> None:
    blocks = [Block(["é" * head, ""], ["- ß" + "x" * row for row in rows]) for head, rows in sizes]
    text = fitted(blocks, max_bytes)
    assert len(text.encode()) <= max_bytes
    rows_shown = text.count("\n- ß") + text.startswith("- ß")
    number = sum(len(rows) for _, rows in sizes)
    assert ("Shortened" in text) is (rows_shown < number or text.count("é\n") < len(sizes))


def test_block_and_row_that_just_fit_are_kept() -> None:
    block = Block(["title"], ["- row"])
    whole, reserved = "title\n- row\n", 400  # reserved for the note, in addition to a line break after each block
    assert fitted([block], reserved + len(whole) + 1) == whole
    assert fitted([block], reserved + len(whole)).startswith("title\n\n_Shortened: 1 line is")
    assert fitted([block], reserved + len("title\n") + 1).startswith("title\n\n_Shortened: 1 line is")
    assert fitted([block], reserved + len("title\n")).startswith("_Shortened: 2 lines are")


def test_truncated_table_is_still_a_table() -> None:
    head, rows = md_table(("A", "B"), [("x" * 50, "y")] * 100)
    text = fitted([Block(["Title", "", *head], rows, ["", "</details>"])], 2_000)
    tags, text_shown = shown(text)
    assert tags.count("table") == 1
    assert 1 < tags.count("tr") < 101
    assert re.search(r"Shortened: \d+ lines are left out here\.", text_shown)
    assert "</details>" in text
