import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machine_speed import processor_seconds

from graphrag_eval_lc.files.record_file import repeated_json_keys

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}', []),
        ('{"a": 1,\n"a": 2}', [("a", 6)]),
        ('{"b": {\n"a": 1,\n"a": 2, "a": 3}}', [("a", 7), ("a", 7)]),
        ('[{"x": ["a", "a"]},\n{"x": 1, "x"\n: 2}]', [("x", 6)]),
        ('{"a": "\\"a\\": {", "b": "}", "a": 1}', [("a", 5)]),
        ('{"\\u0061": 1, "a": 2}', [("a", 5)]),
        ('{"a": 1, "a": 2', []),
        ("[" * 100_000, []),
        ("3", []),
    ],
)
def test_repeated_keys_are_found_with_their_lines(text: str, found: list[tuple[str, int]]) -> None:
    assert list(repeated_json_keys([(5, text)])) == found


@given(VALUES, st.sampled_from([None, 1]))
def test_serialised_values_have_no_repeated_keys(value: Any, indent: int | None) -> None:
    assert list(repeated_json_keys([(1, json.dumps(value, indent=indent))])) == []


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), st.data())
def test_any_repeated_key_is_found(record: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    text = f"{json.dumps(record, indent=1)[:-1].rstrip()},\n{json.dumps(key)}: 1}}"
    assert list(repeated_json_keys([(1, text)])) == [(key, text.count("\n") + 1)]


def test_ten_thousand_records_are_checked_quickly() -> None:
    line = json.dumps({"question_id": "q", "actual_steps": [{"name": "n", "output": "x" * 500}] * 3})
    with processor_seconds(5):
        assert list(repeated_json_keys([(1, line)] * 10_000)) == []
