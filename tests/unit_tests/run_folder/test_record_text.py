import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.run_folder.record_text import json_line, json_text, yaml_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


class _WithoutText:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@given(json_values)
def test_json_text_is_utf_8_and_reads_back(value: Any) -> None:
    text = json_text(value)
    assert "\n" not in text
    assert json.loads(text.encode("utf-8")) == value


@given(json_values)
def test_json_line_is_one_line(value: Any) -> None:
    line = json_line(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


def test_json_text_takes_what_json_does_not() -> None:
    value = {"nan": float("nan"), "inf": [float("inf"), float("-inf")], "surrogate": "\ud800", "other": Path("x")}
    text = json_text(value).encode("utf-8")
    assert json.loads(text) == {"nan": "NaN", "inf": ["Infinity", "-Infinity"], "surrogate": "\ud800", "other": "x"}


def test_json_text_takes_keys_that_are_no_texts() -> None:
    assert json.loads(json_text({(1, 2): 3})) == {"(1, 2)": 3}


def test_json_text_says_where_a_value_holds_itself() -> None:
    value: dict[str, Any] = {"name": "a"}
    value["twins"] = [value, value]
    again = "<dict that holds itself>"
    assert json.loads(json_text(value)) == {"name": "a", "twins": [again, again]}


def test_json_text_writes_a_part_twice_that_stands_in_two_places() -> None:
    part = [float("nan")]
    assert json.loads(json_text([part, part])) == [["NaN"], ["NaN"]]


@pytest.mark.parametrize("depth", [150, 100_000])
def test_json_text_of_any_depth_reads_back(depth: int) -> None:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    read = json.loads(json_text({"value": value}))["value"]
    while isinstance(read, list):
        read = read[0]
    assert read == ("core" if depth == 150 else "<list nested too deeply>")


def test_json_text_of_what_has_no_text_keeps_what_is_around_it() -> None:
    assert json.loads(json_text({"a": 1, "b": _WithoutText()})) == {"a": 1, "b": "<_WithoutText without a text>"}


def test_json_text_writes_a_number_with_too_many_digits_as_hexadecimal() -> None:
    assert json.loads(json_text({"n": 16**5000})) == {"n": "0x1" + "0" * 5000}


def test_yaml_text_keeps_order_and_writes_equal_parts_out() -> None:
    part = {"mean": 1.0}
    text = yaml_text({"b": part, "a": part})
    assert text == "b:\n  mean: 1.0\na:\n  mean: 1.0\n"


def test_yaml_text_escapes_lone_surrogates_and_reads_back() -> None:
    value = {"per_template": {"t\ud83d": {"mean": 1.0}}, "query": "a\nb\ud83d"}
    text = yaml_text(value)
    text.encode("utf-8")
    assert yaml.safe_load(text) == value
