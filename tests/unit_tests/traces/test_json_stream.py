"""Reading JSON in pieces yields the same values as reading it at once, wherever the pieces end."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.json_stream import JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class SlowFile(io.StringIO):
    """Returns only a few characters at a time, as a pipe may."""

    def __init__(self, text: str, most: int) -> None:
        super().__init__(text)
        self._most = most

    def read(self, size: int | None = -1, /) -> str:
        return super().read(self._most)


def read_value(stream: JsonStream, depth: int) -> Any:
    """Read a value; lists and objects are read item by item down to a depth."""
    first = stream.peek()
    if depth and first == "[":
        return [read_value(stream, depth - 1) for _ in stream.items()]
    if depth and first == "{":
        return {key: read_value(stream, depth - 1) for key in stream.members()}
    return stream.value()


def values_of(text: str, most: int = 1 << 20, depth: int = 0) -> list[Any]:
    stream = JsonStream(SlowFile(text, most), "traces.json")
    return [read_value(stream, depth) for _ in stream.documents()]


@given(st.lists(VALUES, max_size=4), st.integers(1, 9), st.integers(0, 4), st.booleans(), st.sampled_from([None, 0, 2]))
def test_values_equal_those_of_the_json_parser(
    values: list[Any], most: int, depth: int, is_ascii: bool, indent: int | None
) -> None:
    text = " \n".join(json.dumps(value, ensure_ascii=is_ascii, indent=indent) for value in values)
    assert values_of(text, most, depth) == values


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{"a": 1}\n{"a": [1,', 2, "ends in the middle of a value"),
        ('{"a": 1}\n{"a": "b', 2, "ends in the middle of a value"),
        ('[{"a": 1}\n', 2, "ends in the middle of a value"),
        ('[{"a": 1}\n{"a": 2}]', 2, "or ] is missing"),
        ('\n{"a" 1}', 2, ": is missing"),
        ("{1: 2}", 1, "a key in double quotes is missing"),
        ("[tru, 1, 2, 3, 4, 5, 6, 7]", 1, "Expecting value"),
        ("[" + "1" * 5000 + "]", 1, "too many digits"),
    ],
)
@pytest.mark.parametrize("most", [1, 1000])
def test_invalid_json_is_an_error_with_its_line(text: str, line: int, what: str, most: int) -> None:
    with pytest.raises(ResponsesError, match="not valid JSON") as caught:
        values_of(text, most, depth=2)
    assert what in str(caught.value)
    assert caught.value.line == line
    assert caught.value.path == "traces.json"


def test_too_deeply_nested_value_is_an_error() -> None:
    with pytest.raises(ResponsesError, match="nested too deeply"):
        values_of('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", depth=1)


def test_early_mistake_is_reported_before_the_rest_is_read() -> None:
    file = io.StringIO('{"a": nil}' + " " * 50_000_000)
    stream = JsonStream(file, "traces.json")
    with pytest.raises(ResponsesError, match="Expecting value"):
        next(iter(stream.members())) and stream.value()
    assert file.tell() < 3_000_000
