"""Values nested to any depth: whether they are equal, and where they differ."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.matching.json_equality import ComparableJson, are_json_equal, deep_text, first_difference

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from([0.0, 1.0, 0.5, math.nan])
    | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=8,
)


def are_equal_by_definition(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal_by_definition(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal_by_definition, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def text_of_depth(depth: int, leaf: str = "1") -> str:
    return '{"a": [' * (depth // 2) + leaf + "]}" * (depth // 2)


@given(values, values)
def test_values_are_equal_as_the_definition_says(left: Any, right: Any) -> None:
    assert are_json_equal(left, right) == are_equal_by_definition(left, right)


@given(values, values)
def test_many_comparisons_of_one_value_say_the_same_as_the_first(left: Any, right: Any) -> None:
    one, other = ComparableJson(left), ComparableJson(right)
    assert {one.equals(other) for _ in range(3)} == {are_equal_by_definition(left, right)}


@given(values, values)
def test_a_difference_is_found_exactly_where_values_differ(found: Any, expected: Any) -> None:
    _, one, other = first_difference(found, expected)
    if are_equal_by_definition(found, expected):
        assert one is found
    else:
        assert not are_equal_by_definition(one, other)


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ({"b": 1, "a": 2}, {"a": 1, "b": 2}, ("a", 2, 1)),
        ({"a": [1]}, {"a": [1, {"x": 2}]}, ("a[1]", "nothing", {"x": 2})),
        ([[1, 2], 3], [[1, 2, 4], 5], ("[0][2]", "nothing", 4)),
        ({"{}": {"x": 1}}, {"{}": {"x": [1]}}, ("{}.x", 1, [1])),
        ([1], {"a": 1}, ("", [1], {"a": 1})),
    ],
)
def test_first_difference_is_in_the_order_of_the_reference(found: Any, expected: Any, difference: Any) -> None:
    assert first_difference(found, expected) == difference


def evaluated(reference: Any, actual: Any, args: Any = None) -> dict[str, Any]:
    step = {"name": "fetch", "args": {}, "output_media_type": "application/json", "output": reference}
    question = {"id": "q", "question_text": "?", "reference_steps": [[step]]}
    taken = {"name": "fetch", "args": args or {}, "id": "call_1", "status": "success", "output": actual}
    response = {"question_id": "q", "actual_answer": "", "actual_steps": [taken]}
    (result,) = run_evaluation([{"template_id": "t", "questions": [question]}], {"q": response})
    return dict(result)


DEEPEST = pytest.param(100_000, marks=pytest.mark.full)


@pytest.mark.full
@pytest.mark.parametrize("depth", [150, 300, 500, 990, 5_000, 12_000, DEEPEST])
def test_tool_outputs_of_any_depth_are_compared(depth: int) -> None:
    reference = text_of_depth(depth)
    assert evaluated(reference, reference.replace(" ", ""))["steps_score"] == 1.0
    other = evaluated(reference, text_of_depth(depth, "2"))
    assert other["steps_score"] == 0.0
    reason = other["steps_diagnosis"][0][0]["reason"]
    assert reason.endswith(f"a[0] ({depth:,} levels deep): 2 instead of 1")
    assert reason.startswith("another JSON value at a[0].a[0].a[0]")
    assert len(reason) < 300


@pytest.mark.full
@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_deep_value_beside_a_flat_one_differs(depth: int) -> None:
    for reference, actual in ((text_of_depth(depth), "[]"), ("[]", text_of_depth(depth))):
        result = evaluated(reference, actual)
        assert result["steps_score"] == 0.0
        assert len(result["steps_diagnosis"][0][0]["reason"]) < 300


@pytest.mark.parametrize("depth", [500, 5_000, DEEPEST])
def test_deep_values_in_python_are_compared_too(depth: int) -> None:
    tower: Any = 1
    for _ in range(depth):
        tower = [tower]
    assert evaluated(tower, "[" * depth + "1" + "]" * depth)["steps_score"] == 1.0
    assert evaluated("[]", "[]", {"tower": tower})["steps_score"] == 1.0


@pytest.mark.parametrize("depth", [20, 500, 5_000])
def test_calls_with_equal_deep_arguments_are_repeated(depth: int) -> None:
    def call(leaf: int) -> dict[str, Any]:
        tower: Any = leaf
        for _ in range(depth):
            tower = {"inner": [tower]}
        return {"name": "fetch", "args": {"tower": tower}, "id": "c", "status": "success", "output": ""}

    assert match_steps([], [call(1), call(2), call(1)]).repeated == [2]


def test_text_of_a_value_that_holds_itself_ends() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    assert deep_text({"b": endless, "a": [2]}) == "{'a':[2,],'b':[1,itself,],},"
