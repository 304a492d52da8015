"""Identifying the matching call if ids are missing or duplicated."""

from typing import Any

import pytest

from graphrag_eval_lc.tables.run_tables import fulfilling_steps, has_same_name, named_step


def step(name: str, identifier: Any = "c", status: str = "success") -> dict[str, Any]:
    return {"name": name, "id": identifier, "status": status}


@pytest.mark.parametrize(
    ("steps", "index"),
    [
        ([step("a"), step("b")], 0),
        ([step("a"), step("a"), step("b")], 1),
        ([step("a"), step("a", status="error")], 0),
        ([step("b"), step("x", status="error")], 0),
        ([step("a", "d")], None),
        ([], None),
    ],
)
def test_last_successful_matching_step_with_the_id_is_used(steps: Any, index: int | None) -> None:
    assert named_step("c", {"name": "a"}, steps, has_same_name) == index


def test_step_without_id_is_identified_by_index() -> None:
    assert named_step("1", {"name": "a"}, [step("a", None), step("a", None)], has_same_name) == 1
    assert named_step("0", {"name": "a"}, [step("a"), step("a", 0)], has_same_name) == 1


def test_step_matches_only_one_reference_step() -> None:
    reference = {"name": "a", "matches": "c"}
    result = {"reference_steps": [[reference, reference]], "actual_steps": [step("a"), step("a")]}
    assert fulfilling_steps(result) == {(0, 0): 0, (0, 1): 1}


def test_match_without_a_call_is_ignored() -> None:
    assert fulfilling_steps({"reference_steps": [[{"name": "a", "matches": "c"}, {"name": "b"}]]}) == {}
