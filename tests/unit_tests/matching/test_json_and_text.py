"""JSON values are compared by value at any depth, texts exactly; reasons name the first difference."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching import StepView, match_steps
from graphrag_eval_lc.matching.json_and_text import first_difference, match_json_steps

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from([0.0, 1.0, 0.5, math.nan])
    | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=8,
)


def compared(reference: Any, actual: Any) -> tuple[float, str]:
    comparison = match_json_steps(StepView({"output": reference}), StepView({"output": actual}))
    return comparison.score, comparison.reason()


def are_equal_by_definition(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal_by_definition(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal_by_definition, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


@given(VALUES, VALUES)
def test_equality_and_first_difference_agree_with_the_definition(found: Any, expected: Any) -> None:
    is_equal = are_equal_by_definition(found, expected)
    one, other = json.dumps(found), json.dumps(expected)
    assert {compared(one, other)[0], compared(other, one)[0]} == {float(is_equal)}
    difference = first_difference(found, expected)
    assert (difference is None) == is_equal
    assert difference is None or not are_equal_by_definition(*difference[1:])


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ({"b": 1, "a": 2}, {"a": 1, "b": 2}, ("a", 2, 1)),
        ({"a": [1]}, {"a": [1, {"x": 2}]}, ("a[1]", "nothing", {"x": 2})),
        ([[1, 2], 3], [[1, 2, 4], 5], ("[0][2]", "nothing", 4)),
        ({"{}": {"x": 1}}, {"{}": {"x": [1]}}, ("{}.x", 1, [1])),
        ([1], {"a": 1}, ("", [1], {"a": 1})),
        ((1,), (1, 2), ("", (1,), (1, 2))),
    ],
)
def test_first_difference_follows_the_references_order(found: Any, expected: Any, difference: Any) -> None:
    assert first_difference(found, expected) == difference


def text_of_depth(depth: int, leaf: str = "1") -> str:
    return '{"a": [' * (depth // 2) + leaf + "]}" * (depth // 2)


@pytest.mark.parametrize("depth", [150, 500])
def test_deep_outputs_are_compared(depth: int) -> None:
    reference = text_of_depth(depth)
    assert compared(reference, reference.replace(" ", ""))[0] == 1.0
    score, reason = compared(reference, text_of_depth(depth, "2"))
    assert (score, len(reason) < 300) == (0.0, True)
    assert reason.endswith(f"a[0] ({depth:,} levels deep): 2 instead of 1")
    for one, other in ((reference, "[]"), ("[]", reference)):
        score, reason = compared(one, other)
        assert (score, len(reason) < 300) == (0.0, True)
    tower: Any = 1
    for _ in range(depth):
        tower = [tower]
    assert compared(tower, "[" * depth + "1" + "]" * depth)[0] == 1.0
    calls = [{"name": "fetch", "args": {"tower": tower}, "status": "success", "output": ""}] * 2
    assert match_steps([], calls).repeated in ([1], [])  # a tower that is too deep is skipped


def test_too_deeply_nested_output_is_unreadable() -> None:
    deep = text_of_depth(1_000_000)
    score, reason = compared("[]", deep)
    assert (score, "nested too deeply" in reason) == (0.0, True)
    assert compared(deep, deep)[0] == 1.0  # the same text
