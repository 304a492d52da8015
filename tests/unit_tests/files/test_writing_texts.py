from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_eval_lc.files.writing import json_line, yaml_pieces, yaml_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_json_line_is_one_line(value: Any) -> None:
    line = json_line(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


def test_yaml_text_keeps_order_and_uses_no_aliases() -> None:
    part = {"mean": 1.0}
    text = yaml_text({"b": part, "a": part})
    assert text == "b:\n  mean: 1.0\na:\n  mean: 1.0\n"


def test_yaml_text_escapes_lone_surrogates() -> None:
    value = {"per_template": {"t\ud83d": {"mean": 1.0}}, "query": "a\nb\ud83d"}
    text = yaml_text(value)
    text.encode("utf-8")
    assert yaml.safe_load(text) == value


MANY = {"many": {f"n{number}": number for number in range(100)}}  # a small document would be a single piece
odd_texts = st.text(alphabet="a \n\r\t:#-'|>?{[\x85\u2028.%&*!", max_size=6)


@given(st.dictionaries(st.text() | odd_texts, json_values | st.dictionaries(odd_texts, odd_texts), max_size=4))
@example({"per_template": {"t\n": {"n": 1}, "t\n\u2028": {"n": 1}, "u": {}}})
def test_yaml_pieces_round_trip(value: dict[str, Any]) -> None:
    value = MANY | value
    assert yaml.safe_load("".join(yaml_pieces(value))) == yaml.safe_load(yaml_text(value)) == value


TEXTS = ["two\nlines\n", "  \n a\n", "\x85 \u2028", "#", "- a", "? b", "", "a: b", "\ud800", "n" * 300]


@pytest.mark.parametrize("text", TEXTS)
def test_yaml_pieces_add_up_to_the_whole_text(text: str) -> None:
    value = {"per_template": {text: {text: [text, 1.5]}, "t": {}}, "micro": {"a": {text: None}}, text: text, "none": {}}
    assert "".join(yaml_pieces(value)) == yaml_text(value)
    value = MANY | value
    assert "".join(yaml_pieces(value)) == yaml_text(value)
