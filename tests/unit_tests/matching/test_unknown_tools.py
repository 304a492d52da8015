"""Tools without a reference step of their name: when they are reported, and which name is suggested."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import matchers as registry
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, name_similarity, reference_names


def reference(name: str, output: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "output": output, **more}


def call(name: str, output: Any = "ok", status: str = "success", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": "c", "status": status, "output": output}


def response(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"question_id": "q", "actual_steps": list(calls), **more}


def tools(*pairs: tuple[Any, dict[str, Any]], config: Any = None, names: Any = ()) -> UnknownTools:
    unknown = UnknownTools(EvaluationConfig.model_validate(config or {}), names)
    for groups, answer in pairs:
        unknown.add(groups, answer)
    return unknown


def suggested(*pairs: tuple[Any, dict[str, Any]], **more: Any) -> dict[tuple[str, ...], str | None]:
    return {tool.tools: tool.suggestion for tool in tools(*pairs, **more).found()}


@pytest.mark.usefixtures("forget_matchers")
def test_matcher_that_cannot_handle_the_steps_does_not_raise() -> None:
    registry.register_matcher(name="count_rows")(lambda reference, actual: 7)
    assert suggested(([[reference("count_rows", "3")]], response(call("count", "3")))) == {("count",): "count_rows"}


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "output", "args", "status", "questions"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(groups=ANYTHING, steps=ANYTHING)
def test_malformed_steps_are_skipped(groups: Any, steps: Any) -> None:
    unknown = tools((groups, {"actual_steps": steps}))
    assert all(str(tool) for tool in unknown.found())
    reference_names(groups)


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ("run_sparql", "sparql_query", True),
        ("getDataPoints", "retrieve_data_points", True),
        ("look_up", "lookup", True),
        ("calc", "calculator", True),
        ("think", "sparql_query", False),
        ("get_weather", "get_time", False),
        ("", "sparql_query", False),
    ],
)
def test_names_are_compared_by_their_words(one: str, other: str, is_alike: bool) -> None:
    assert (name_similarity(one, other) >= 0.6) is is_alike
    assert name_similarity(one, other) == name_similarity(other, one)
