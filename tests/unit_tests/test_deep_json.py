import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.deep_json import read_json
from graphrag_eval_lc.json_values import parse_deep_json, parse_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def outcome(read: Any, text: str) -> Any:
    try:
        return repr(read(text))
    except ValueError:
        return "no JSON"


@given(json_values, st.sampled_from([None, 1, "\t"]))
def test_what_json_writes_is_read_back(value: Any, indent: Any) -> None:
    assert read_json(json.dumps(value, indent=indent)) == value


@given(json_values, st.data())
def test_damaged_texts_are_read_or_refused_as_by_json_itself(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    damage = data.draw(
        st.sampled_from(["", ",", "]", "}", "[", "{", ":", '"', "1", "NaN", "-", " ", "\ufeff", "\u00a0"])
    )
    damaged = text[:at] + damage + text[at + data.draw(st.integers(0, 2)) :]
    assert outcome(read_json, damaged) == outcome(json.loads, damaged)


@given(st.text(alphabet='[]{},:"1a \\-', max_size=12))
def test_any_text_is_read_or_refused_as_by_json_itself(text: str) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[NaN, -Infinity, 1e400, -0]", '"\\ud800"', " \n[\r] ", "[1,]", '{"a" 1}']
)
def test_edges_are_as_in_json_itself(text: str) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)


@pytest.mark.full
def test_what_ends_too_early_at_any_depth_is_refused_with_its_place() -> None:
    with pytest.raises(json.JSONDecodeError) as refused:
        parse_deep_json("[\n" * 100_000)
    assert (refused.value.lineno, refused.value.pos) == (100_001, 200_000)


def test_deep_texts_are_read_where_the_parsers_give_up() -> None:
    text = '{"a": [' * 50_000 + "null" + "]}" * 50_000
    with pytest.raises(RecursionError):
        parse_json(text)
    value, depth = parse_deep_json(text), 0
    while value is not None:
        value, depth = value["a"][0], depth + 2
    assert depth == 100_000


@pytest.mark.full
def test_time_grows_with_the_length_alone() -> None:
    def seconds(depth: int) -> float:
        started = time.process_time()
        read_json("[" * depth + "]" * depth)
        return time.process_time() - started

    few = min(seconds(10_000) for _ in range(3))
    assert min(seconds(100_000) for _ in range(3)) < 50 * few  # 100 times if each level cost what is above it
