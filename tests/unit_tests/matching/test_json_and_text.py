import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching import StepView
from graphrag_eval_lc.matching.json_and_text import match_json_steps, match_texts
from graphrag_eval_lc.matching.json_equality import are_json_equal

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def steps(reference: Any, actual: Any) -> tuple[StepView, StepView]:
    return StepView({"name": "s", "output": reference}), StepView({"name": "s", "output": actual})


@pytest.mark.parametrize(
    ("reference", "actual", "score"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],\n"a":1}', 1.0),
        ("1", "1.0", 1.0),
        ("1", "true", 1.0),
        ("[1, 2]", "[2, 1]", 0.0),
        ("NaN", "NaN", 1.0),
        ('"å"', '"\\u00e5"', 1.0),
        ([{"a": 1}], '[{"a": 1}]', 1.0),
        ("[]", "Sorry, no data.", 0.0),
        ("[" * 100_000, "[]", 0.0),
        ("[]", "[" * 100_000, 0.0),
        (None, "null", 0.0),
    ],
)
def test_json_is_compared_by_value(reference: Any, actual: str, score: float) -> None:
    comparison = match_json_steps(*steps(reference, actual))
    assert comparison.score == score
    assert comparison.reason()


def test_actual_output_that_is_no_json_is_unreadable_and_a_bad_reference_is_blamed() -> None:
    assert match_json_steps(*steps("[]", "Sorry")).unreadable == "the output is not JSON: Sorry"
    bad_reference = match_json_steps(*steps("Sorry", "[]"))
    assert bad_reference.unreadable is None
    assert bad_reference.reason().startswith("the reference cannot be compared")


@pytest.mark.full
@given(values)
def test_every_json_value_equals_itself_after_a_round_trip(value: Any) -> None:
    assert are_json_equal(value, json.loads(json.dumps(value)))


@pytest.mark.parametrize(("reference", "actual", "score"), [("a", "a", 1.0), ("a", "a ", 0.0), (None, "a", 0.0)])
def test_texts_are_compared_to_the_letter(reference: str | None, actual: str, score: float) -> None:
    assert match_texts(*steps(reference, actual)).score == score


def test_long_texts_are_shortened_in_the_reason() -> None:
    assert len(match_texts(*steps("x" * 10_000, "y" * 10_000)).reason()) < 200


@pytest.mark.parametrize(
    ("reference", "actual", "reason"),
    [
        ('{"head": 1, "rows": [{"a": 1}]}', '{"head": 1, "rows": [{"a": 2}]}', "at rows[0].a: 2 instead of 1"),
        ("[1]", "[1, 5]", "at [1]: 5 instead of nothing"),
        ('{"a": 1}', "{}", "at a: nothing instead of 1"),
        ("1", "2", "another JSON value: 2 instead of 1"),
    ],
)
def test_reason_says_where_two_json_values_first_differ(reference: str, actual: str, reason: str) -> None:
    assert reason in match_json_steps(*steps(reference, actual)).reason()


def test_reason_says_where_two_long_texts_first_differ() -> None:
    reason = match_texts(*steps("x" * 100 + "abc", "x" * 100 + "axc")).reason()
    assert reason == "another text from character 102 on: 'xc' instead of 'bc'"
