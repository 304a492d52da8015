"""Outputs that end before their end are undecided where what is left does not tell, whatever is compared."""

import pytest

from graphrag_eval_lc.matching.outputs import cut_json, cut_mark


@pytest.mark.parametrize(
    "text", ['"', '"a', "[", "{", '{"a', '{"a":', '{"a":-', '{"a":1e', '{"a":tr', '{"a":"\\u1', "[1,"]
)
def test_beginnings_of_json_break_off(text: str) -> None:
    assert cut_json(text) is not None


@pytest.mark.parametrize(
    "text", ["", "x", "1", "[1}", "[1] 2", '["a" "b', "[tru e", '{"a":1,}', "{'a': 1", '["\\x', "[01"]
)
def test_other_texts_do_not(text: str) -> None:
    assert cut_json(text) is None


@pytest.mark.parametrize(
    "text",
    ["a [truncated]", "a\n... (1234 more characters)", "a … 90 more rows", "a\n[output truncated]\n", "x (3 more rows)",
     "a <response truncated>", "a\nOutput truncated to 4000 characters.", "a...(truncated)"],
)  # fmt: skip
def test_marks_of_tools_are_known(text: str) -> None:
    assert cut_mark(text) is not None


@pytest.mark.parametrize(
    "text", ["", "a...", "see 3 more rows here", "truncated cones", "a [1]", "the list was cut. End"]
)
def test_other_ends_are_no_marks(text: str) -> None:
    assert cut_mark(text) is None
