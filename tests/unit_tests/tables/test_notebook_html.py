"""HTML for notebooks: data is escaped, the size is bounded, and colours follow the theme."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machine_speed import processor_seconds

from graphrag_eval_lc.tables.notebook_html import (
    LONGEST_TEXT,
    Column,
    Marked,
    Share,
    facts_html,
    never_raising,
    page_html,
    paragraphs_html,
    rows_html,
    short_html,
)

ATTACK = "</td></table><script>alert(1)</script><img src=x onerror='alert(2)'>\" onclick=\"alert(3)"


def tags_in(html: str) -> set[str]:
    """Return the names of the tags in a string."""
    return {name.lower() for name in re.findall(r"</?([A-Za-z]+)", html)}


def test_names_values_and_caption_are_escaped() -> None:
    html = facts_html("<i>", [("<script>alert(1)</script>", 'a & "b"</td>')])
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "a &amp; &quot;b&quot;&lt;/td&gt;" in html


def test_cells_headings_and_notes_are_escaped() -> None:
    columns = [Column(ATTACK), Column(ATTACK, is_number=True), Column(ATTACK, longest=LONGEST_TEXT)]
    html = rows_html(ATTACK, columns, [[ATTACK, ATTACK, Marked(ATTACK, ATTACK)]], more=ATTACK)
    html += paragraphs_html([ATTACK])
    assert tags_in(html) == {"table", "caption", "thead", "tbody", "tr", "th", "td", "div", "p"}
    assert re.findall(r"<[^>]*\bon\w+=", html) == []


@given(st.text(), st.integers(1, 50))
def test_any_text_is_escaped_and_on_one_line(text: str, longest: int) -> None:
    html = short_html(text, longest)
    assert not {"<", ">", '"', "'", "\n"} & {*html}
    assert len(html) <= 10 * longest + 1


def test_long_texts_are_truncated_and_hidden_characters_shown() -> None:
    assert short_html("a" * 10, 4) == "aaaa…"
    assert short_html(" " * 10**6 + "a", 4) == "…"
    assert short_html("one\n  two\r\nthree") == "one two three"
    assert short_html("\x1b[2J\u202e\ud800") == "␛[2J⟨U+202E⟩⟨U+D800⟩"


def test_ten_megabytes_of_text_are_truncated_quickly() -> None:
    text = "\x1b<" * 5_000_000
    with processor_seconds(0.1):
        assert len(short_html(text)) < 10 * LONGEST_TEXT


@pytest.mark.parametrize(
    ("value", "width"), [(0.5, "50%"), (-3.0, "0%"), (7.0, "100%"), (float("nan"), "0%"), (float("inf"), "0%")]
)
def test_bar_stays_within_its_track(value: float, width: str) -> None:
    assert f"width: {width}" in rows_html("", [Column("")], [[Share(value)]])


def test_texts_have_the_themes_colours() -> None:
    html = rows_html("a", [Column("b"), Column("c")], [["text", Marked("better", "better")]]) + facts_html(
        "d", [("e", "f")]
    )
    assert re.findall(r"(?<![-\w])(?:color|background)", html) == []


def test_dollar_signs_do_not_start_formulas() -> None:
    assert page_html("<p>$1 to $2</p>").startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_display_error_is_shown_as_text() -> None:
    class Broken:
        @never_raising
        def _repr_html_(self) -> str:
            raise ValueError("<script>")

    assert "This Broken cannot be shown: ValueError: &lt;script&gt;" in Broken()._repr_html_()
