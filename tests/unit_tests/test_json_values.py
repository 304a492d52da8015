import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.json_values import document_text, json_text, parse_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


class _WithoutText:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@given(json_values)
def test_json_text_is_utf_8_and_round_trips(value: Any) -> None:
    text = json_text(value)
    assert "\n" not in text
    assert json.loads(text.encode("utf-8")) == parse_json(text) == value


def test_json_text_converts_values_without_a_json_type() -> None:
    value = {"nan": float("nan"), "inf": [float("inf"), float("-inf")], "surrogate": "\ud800", "other": Path("x")}
    text = json_text(value).encode("utf-8")
    assert json.loads(text) == {"nan": "NaN", "inf": ["Infinity", "-Infinity"], "surrogate": "\ud800", "other": "x"}


def test_json_text_converts_keys_that_are_not_strings() -> None:
    assert json.loads(json_text({(1, 2): 3})) == {"(1, 2)": 3}


def test_json_text_marks_circular_references() -> None:
    value: dict[str, Any] = {"name": "a"}
    value["twins"] = [value, value]
    again = "<dict that holds itself>"
    assert json.loads(json_text(value)) == {"name": "a", "twins": [again, again]}


def test_json_text_writes_shared_values_twice() -> None:
    part = [float("nan")]
    assert json.loads(json_text([part, part])) == [["NaN"], ["NaN"]]


@pytest.mark.parametrize("depth", [150, 100_000])
def test_json_text_of_any_depth_round_trips(depth: int) -> None:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    read = json.loads(json_text({"value": value}))["value"]
    while isinstance(read, list):
        read = read[0]
    assert read == ("core" if depth == 150 else "<list nested too deeply>")


def test_json_text_of_unprintable_values_keeps_their_surroundings() -> None:
    assert json.loads(json_text({"a": 1, "b": _WithoutText()})) == {"a": 1, "b": "<_WithoutText without a text>"}


def test_json_text_writes_huge_integers_as_hexadecimal() -> None:
    assert json.loads(json_text({"n": 16**5000})) == {"n": "0x1" + "0" * 5000}


class _Changing(dict[str, int]):
    """A dict that grows while it is read, like a state that another thread writes to."""

    def items(self) -> Any:
        def pairs() -> Iterator[tuple[str, int]]:
            yield from super(_Changing, self).items()
            raise RuntimeError("dictionary changed size during iteration")

        return pairs()


def test_json_text_uses_to_plain_for_values_without_a_json_type() -> None:
    value = {"when": datetime.date(2026, 1, 2)}
    assert json_text(value, to_plain=datetime.date.isoformat) == '{"when": "2026-01-02"}'


def test_json_text_uses_to_plain_for_values_that_cannot_be_iterated() -> None:
    assert json_text(_Changing(a=1), to_plain=list) == '["a"]'


def test_json_text_can_be_compact() -> None:
    assert json_text({"a": [1, float("nan")]}, is_compact=True) == '{"a":[1,"NaN"]}'


def test_nan_and_infinity_can_be_read_back_with_float() -> None:
    for number in (float("inf"), float("-inf")):
        assert float(parse_json(json_text(number))) == number


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_strict_parse_json_rejects_nan(constant: str) -> None:
    assert isinstance(parse_json(constant), float)
    with pytest.raises(ValueError, match=r"is not a JSON value"):
        parse_json(constant, allow_nan=False)


def test_parse_json_accepts_lone_surrogates() -> None:
    assert parse_json(r'"\ud800"') == parse_json('"\ud800"') == "\ud800"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"text": "a", "page_content": "b"}, "a"),
        ({"text": " ", "page_content": "b"}, "b"),
        ({"page_content": "b", "metadata": {}, "type": "Document"}, "b"),
        ({"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"page_content": "c", "metadata": {}}}, "c"),
        ({"text": ""}, ""),
        ({"text": 3}, None),
        ({"kwargs": None}, None),
        ("a", None),
    ],
)
def test_text_of_a_document_is_its_text_or_page_content(document: object, text: str | None) -> None:
    assert document_text(document) == text
