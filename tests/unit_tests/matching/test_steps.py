from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import Scoring
from graphrag_eval_lc.matching import match_steps


def ref(name: str, output: Any = "ok") -> dict[str, Any]:
    return {"name": name, "args": {}, "output": output}


def act(name: str, output: Any = "ok", status: str = "success", **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "id": f"call_{name}", "status": status, "output": output, **more}


def scored(
    reference_steps: list[list[dict[str, Any]]], actual_steps: list[dict[str, Any]], scoring: Scoring = "last_group"
) -> tuple[float | None, list[tuple[int, int, int]]]:
    match = match_steps(reference_steps, actual_steps, scoring=scoring)
    return match.steps_score, [(one.group, one.reference, one.actual) for one in match.matches]


names = st.sampled_from("ab")
groups = st.lists(st.lists(names.map(ref), max_size=3), max_size=3)
actual_lists = st.lists(names.map(act), max_size=5)


@given(groups, actual_lists, st.sampled_from(["last_group", "all_groups"]))
def test_score_is_between_0_and_1_and_every_match_is_diagnosed(
    reference: list[list[dict[str, Any]]], actual: list[dict[str, Any]], scoring: Scoring
) -> None:
    match = match_steps(reference, actual, scoring=scoring)
    assert match.steps_score is None or 0.0 <= match.steps_score <= 1.0
    assert [len(group) for group in match.diagnosis] == [len(group) for group in reference]
    diagnosed = {
        (group, index, step.nearest)
        for group, steps in enumerate(match.diagnosis)
        for index, step in enumerate(steps)
        if step.matched
    }
    assert diagnosed == {(one.group, one.reference, one.actual) for one in match.matches}


@given(st.permutations([ref("a"), ref("b"), ref("b", "other")]), actual_lists)
def test_order_inside_a_group_does_not_matter(group: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    assert scored([group], actual)[0] == scored([[ref("a"), ref("b"), ref("b", "other")]], actual)[0]
