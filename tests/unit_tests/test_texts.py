import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.pregel.remote import RemoteException

from graphrag_eval_lc.texts import (
    counted,
    edit_distance,
    error_text,
    listed,
    plural,
    shortened,
    shown_html,
    visible,
    visible_json,
)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (1000, "1,000 queries")]
)
def test_one_is_singular_and_other_numbers_are_plural(number: int, text: str) -> None:
    assert counted(number, "query", "queries") == text


def test_verbs_agree_with_the_number() -> None:
    assert [plural(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]


def test_lists_name_five_and_count_the_rest() -> None:
    names = [f"q{number}" for number in range(1, 1_007)]
    assert listed(names[:5]) == "q1, q2, q3, q4, q5"
    assert listed(names[:6]) == "q1, q2, q3, q4, q5 and 1 more"
    assert listed(names) == "q1, q2, q3, q4, q5 and 1,001 more"
    assert listed(names, most=1) == "q1 and 1,005 more"
    assert listed([]) == ""


def test_short_text_is_not_truncated() -> None:
    assert shortened("abcde", 5) == "abcde"
    assert shortened("abcdef", 5) == "abcde…"


def test_text_is_joined_into_one_line_before_truncation() -> None:
    assert shortened("  a\n\n  b\t", 3) == "a b"
    assert shortened("a" + 1_000 * " " + "b", 2) == "a …"


def test_text_can_keep_its_lines_and_count_omitted_characters() -> None:
    assert shortened("a\n  b", 3, keeps_lines=True) == "a\n …"
    assert shortened("a" * 11, 10, keeps_lines=True, counts_rest=True) == "aaaaaaaaaa… (1 character left out)"
    assert shortened("a" * 2_010, 10, keeps_lines=True, counts_rest=True).endswith("(2,000 characters left out)")


@given(st.text(st.sampled_from("ab \n\t")), st.integers(1, 8))
def test_early_truncation_equals_truncation_of_the_whole_line(text: str, length: int) -> None:
    line = " ".join(text.split())
    assert shortened(text, length) == (line if len(line) <= length else f"{line[:length]}…")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (TimeoutError(), "TimeoutError"),
        (RemoteException({"error": "ValueError", "message": "no name"}), "RemoteException: ValueError: no name"),
        (RemoteException("gone"), "RemoteException: gone"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        ("text", "text"),
        ("", "str"),
    ],
)
def test_error_text_is_never_empty(error: object, expected: str) -> None:
    assert error_text(error) == expected


WORDS = st.text("abcd", max_size=7)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("", "abc", 3), ("output", "ouput", 1), ("steps", "stpes", 1), ("abc", "xyz", 3), ("ca", "abc", 3)],
)
def test_substitutions_insertions_deletions_and_swaps_are_counted(one: str, other: str, edits: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == edits


@given(WORDS, WORDS)
def test_edits_are_between_the_difference_and_the_maximum_of_lengths(one: str, other: str) -> None:
    edits = edit_distance(one, other)
    assert abs(len(one) - len(other)) <= edits <= max(len(one), len(other))
    assert (edits == 0) == (one == other)


@given(WORDS, st.integers(0, 7), st.sampled_from("abcd"))
def test_one_inserted_letter_is_one_edit(word: str, place: int, letter: str) -> None:
    assert edit_distance(word, word[:place] + letter + word[place:]) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b>Ålesund</b> שלום 👩‍🔬\n\t", "plain <b>Ålesund</b> שלום 👩‍🔬\n\t"),
        ("nul\x00 bell\x07 delete\x7f", "nul␀ bell␇ delete␡"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("next line \x85", "next line ⟨U+0085⟩"),
        ("\u202eevil\u202c \u2066x\u2069 \u200f", "⟨U+202E⟩evil⟨U+202C⟩ ⟨U+2066⟩x⟨U+2069⟩ ⟨U+200F⟩"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("tag \U000e0041", "tag ⟨U+E0041⟩"),
        ("line\u2028paragraph\u2029", "line⟨U+2028⟩paragraph⟨U+2029⟩"),
    ],
)
def test_invisible_characters_are_escaped_and_others_kept(text: str, shown: str) -> None:
    assert visible(text) == shown
    shown.encode("utf-8")


def test_single_line_text_shows_its_line_breaks() -> None:
    assert visible("a\nb\tc\r\nd", keeps_lines=False) == "a␊b␉c␊d"


def test_values_that_are_not_strings_are_converted() -> None:
    assert visible(7) == "7"


@given(st.text())
def test_escaping_is_idempotent(text: str) -> None:
    assert visible(visible(text)) == visible(text)


def test_page_text_is_escaped_and_contains_no_markup() -> None:
    assert shown_html("<b>\x1b\u202e") == "&lt;b&gt;␛⟨U+202E⟩"


@pytest.mark.full
@given(st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner)))
def test_json_escapes_preserve_values(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    assert json.loads(visible_json(text)) == value
    assert json.loads(visible_json(text, only_ascii=True)) == value
    assert visible_json(text, only_ascii=True).isascii()
    assert visible(visible_json(text)) == visible_json(text)


def test_json_keeps_letters_and_escapes_invisible_characters() -> None:
    assert visible_json('"Å \x7f\x9b\u202e\U000e0041"') == '"Å \\u007f\\u009b\\u202e\\udb40\\udc41"'
