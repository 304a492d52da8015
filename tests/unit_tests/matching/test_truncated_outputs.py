"""Truncated outputs are undecided, whatever is compared, if the remainder does not settle the comparison."""

import pytest

from graphrag_eval_lc.matching.outputs import cut_json, cut_mark


@pytest.mark.parametrize(
    "text", ['"', '"a', "[", "{", '{"a', '{"a":', '{"a":-', '{"a":1e', '{"a":tr', '{"a":"\\u1', "[1,"]
)
def test_truncated_json_is_recognised(text: str) -> None:
    assert cut_json(text) is not None


@pytest.mark.parametrize(
    "text", ["", "x", "1", "[1}", "[1] 2", '["a" "b', "[tru e", '{"a":1,}', "{'a': 1", '["\\x', "[01"]
)
def test_other_texts_are_not_truncated(text: str) -> None:
    assert cut_json(text) is None


@pytest.mark.parametrize(
    "text",
    ["a [truncated]", "a\n... (1234 more characters)", "a … 90 more rows", "a\n[output truncated]\n", "x (3 more rows)",
     "a <response truncated>", "a\nOutput truncated to 4000 characters.", "a...(truncated)"],
)  # fmt: skip
def test_truncation_marks_of_tools_are_recognised(text: str) -> None:
    assert cut_mark(text) is not None


@pytest.mark.parametrize(
    "text", ["", "a...", "see 3 more rows here", "truncated cones", "a [1]", "the list was cut. End"]
)
def test_other_endings_are_not_truncation_marks(text: str) -> None:
    assert cut_mark(text) is None
