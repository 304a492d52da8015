"""Tools whose names no reference step has: when it is told, and which name is suggested."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import matchers as registry
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, name_similarity, reference_names

RESULTS = "application/sparql-results+json"


def rows(*values: str, name: str = "x") -> str:
    bindings = [{name: {"type": "uri", "value": value}} for value in values]
    return json.dumps({"head": {"vars": [name]}, "results": {"bindings": bindings}})


def reference(name: str, output: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "output": output, **more}


QUERY = reference("sparql_query", rows("urn:a"), output_media_type=RESULTS)
DOCUMENTS = reference("retrieval", '[{"id": "d1"}]')


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


# --- when it is told -------------------------------------------------------------------------------------------------


def test_tools_that_are_called_as_often_are_told_by_their_names_in_each_process() -> None:
    names = tuple(f"tool_{letter}" for letter in "hcfabged")
    pairs = [([[reference("add", "1")]], response(*map(call, names)))] * 3
    assert tools(*pairs).found()[-1].tools == tuple(sorted(names))


def test_tool_is_told_with_how_often_it_is_called_and_the_setting_that_names_it() -> None:
    pairs = [([[QUERY]], response(call("run_sparql", rows("urn:a")), call("run_sparql", rows())))] * 10
    [tool] = tools(*pairs).found()
    assert str(tool) == (
        "run_sparql is called in 10 of 10 responses and no reference step has that name; "
        "perhaps `steps: {names: {run_sparql: sparql_query}}` in the config"
    )


def test_names_of_the_config_are_known() -> None:
    pair = ([[QUERY]], response(call("run_sparql", rows("urn:a"))))
    assert suggested(pair, config={"steps": {"names": {"run_sparql": "sparql_query"}}}) == {}


def test_name_of_the_config_that_no_reference_step_has_is_told_with_both_names() -> None:
    pair = ([[QUERY]], response(call("run_sparql", rows("urn:a"))))
    [tool] = tools(pair, config={"steps": {"names": {"run_sparql": "sparq_query"}}}).found()
    assert tool.what.startswith("run_sparql (sparq_query in steps.names) is called in 1 of 1 response ")
    assert tool.suggestion == "sparql_query"


def test_nothing_is_told_where_all_reference_names_are_called() -> None:
    answer = response(call("now"), call("sparql_query", rows("urn:b")))
    assert suggested(([[QUERY]], answer), ([[QUERY]], response(call("run_sparql", rows("urn:a"))))) == {}


def test_nothing_is_told_of_a_reference_that_no_tool_is_called_for() -> None:
    assert suggested(([[QUERY]], response()), ([[DOCUMENTS]], response(call("retrieval", "[]"), call("now")))) == {}


def test_only_tools_of_responses_that_miss_the_step_count() -> None:
    pairs = [([[QUERY]], response()), ([[reference("add", "3")]], response(call("now"), call("add", "3")))]
    assert suggested(*pairs) == {}


def test_group_that_is_not_scored_loses_nothing() -> None:
    groups = [[reference("lookup", "urn:a")], [QUERY]]
    answer = response(call("look_up", "urn:a"), call("sparql_query", rows("urn:a")))
    assert suggested((groups, answer)) == {}
    assert suggested((groups, answer), config={"steps": {"scoring": "all_groups"}}) == {("look_up",): "lookup"}
    assert suggested((groups, answer), config={"steps": {"grading": "graded"}}) == {("look_up",): "lookup"}


def test_names_of_questions_that_were_not_asked_are_known() -> None:
    pairs = [([[reference("add", "3")]], response(call("lookup", "urn:a")))] * 3
    assert suggested(*pairs) == {("lookup",): None}
    assert suggested(*pairs, names=["add", "lookup"]) == {}


def test_response_that_failed_before_its_first_step_is_not_counted() -> None:
    pair = ([[QUERY]], response(call("run_sparql", rows("urn:a"))))
    [tool] = tools(pair, ([[QUERY]], response(status="error", error="away"))).found()
    assert "1 of 1 response " in tool.what


def test_iri_discovery_is_fulfilled_by_the_names_that_its_matcher_takes() -> None:
    groups = [[reference("iri_discovery", "urn:a")]]
    assert suggested((groups, response(call("now"), call("sparql_query", rows("urn:b"))))) == {}
    for output in (rows("urn:a"), '["urn:a"]', "It is urn:a."):
        assert suggested((groups, response(call("find_entity", output)))) == {("find_entity",): "autocomplete_search"}


def test_tools_that_count_as_retrieval_are_known() -> None:
    pair = ([[DOCUMENTS]], response(call("search_docs", '[{"id": "d1"}]')))
    assert suggested(pair) == {("search_docs",): "retrieval"}
    assert suggested(pair, config={"retrieval": {"steps": ["search_docs"]}}) == {}


# --- which name is suggested -----------------------------------------------------------------------------------------


def test_tool_whose_outputs_fit_goes_before_one_that_only_has_their_form() -> None:
    answer = response(call("search", rows("urn:z")), call("ask_graph", rows("urn:a", name="y")), call("think"))
    assert suggested(([[QUERY]], answer)) == {("ask_graph",): "sparql_query"}


def test_name_decides_between_tools_whose_outputs_say_the_same() -> None:
    answer = response(call("list_all", rows("urn:z")), call("query", rows("urn:y")))
    assert suggested(([[QUERY]], answer)) == {("query",): "sparql_query"}


def test_each_tool_has_the_reference_name_that_fits_it_best() -> None:
    answer = response(
        call("find_entity", rows("urn:a", "urn:c")), call("run_sparql", rows("urn:b")), call("docs", '[{"id": 7}]')
    )
    groups = [[reference("iri_discovery", "urn:a"), QUERY, DOCUMENTS]]
    assert suggested((groups, answer)) == {
        ("find_entity",): "autocomplete_search",
        ("run_sparql",): "sparql_query",
        ("docs",): "retrieval",
    }


def test_arguments_tell_the_steps_that_are_compared_by_them() -> None:
    groups = [[reference("retrieve_data_points", args={"external_id": "e", "start": "1d-ago"})]]
    answer = response(call("values", "[]", external_id="f", start="2d-ago", end="now"), call("think", thought="hm"))
    assert suggested((groups, answer)) == {("values",): "retrieve_data_points"}


@pytest.mark.parametrize("output", ["no rows", None])
def test_name_alone_is_enough_where_the_output_says_nothing(output: Any) -> None:
    assert suggested(([[QUERY]], response(call("run_sparql", output)))) == {("run_sparql",): "sparql_query"}
    assert suggested(([[QUERY]], response(call("run_sparql", output, status="error")))) == {
        ("run_sparql",): "sparql_query"
    }


def test_name_alone_is_not_enough_where_the_output_has_another_form() -> None:
    pair = ([[QUERY]], response(call("query_docs", '[{"id": "d1"}]')))
    assert suggested(pair, pair, pair) == {("query_docs",): None}


def test_name_with_a_meaning_of_its_own_is_never_taken_for_another() -> None:
    assert suggested(([[QUERY]], response(call("autocomplete_search", rows("urn:a"))))) == {}


def test_tools_that_fit_nothing_are_told_together_without_a_suggestion() -> None:
    thinks, both = response(call("think")), response(call("now"), call("think"))
    [tool] = tools(([[QUERY]], thinks), ([[QUERY]], both), ([[QUERY]], both)).found()
    assert tool.tools == ("think", "now")
    assert str(tool) == (
        "none of 3 responses calls sparql_query, as 3 should, while no reference step has the names of think (in 3) "
        "and now (in 2), which are called; where they are the same, say so with `steps: {names: …}` in the config"
    )
    [alone] = tools(*[([[QUERY]], thinks)] * 4).found()
    assert alone.what.endswith("no reference step has that name, while none calls sparql_query, as 4 should")
    [named] = tools(*[([[QUERY]], thinks)] * 4, config={"steps": {"names": {"ask": "sparql_query"}}}).found()
    assert named.what.endswith("while none calls ask, as 4 should")


def test_step_that_is_missed_in_a_response_or_two_says_nothing_of_names() -> None:
    assert suggested(*[([[QUERY]], response(call("think")))] * 2) == {}


def test_other_tools_are_not_told_where_a_suggestion_explains_what_is_missed() -> None:
    answer = response(call("think"), call("run_sparql", rows("urn:a")))
    assert suggested(([[QUERY]], answer)) == {("run_sparql",): "sparql_query"}


def test_setting_is_yaml_whatever_the_tool_is_called() -> None:
    [tool] = tools(([[reference("add: up", "3")]], response(call("a: {b}", "3")))).found()
    assert "`steps: {names: {'a: {b}': 'add: up'}}`" in tool.hint


@pytest.mark.usefixtures("forget_matchers")
def test_matcher_that_was_not_made_for_these_steps_ends_nothing() -> None:
    registry.register_matcher(name="count_rows")(lambda reference, actual: 7)
    assert suggested(([[reference("count_rows", "3")]], response(call("count", "3")))) == {("count",): "count_rows"}


# --- what is none ----------------------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "output", "args", "status", "questions"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(groups=ANYTHING, steps=ANYTHING)
def test_what_breaks_the_format_is_passed_over(groups: Any, steps: Any) -> None:
    unknown = tools((groups, {"actual_steps": steps}))
    assert all(str(tool) for tool in unknown.found())
    reference_names(groups)


@given(pairs=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", "c", "d"])), max_size=6))
def test_order_of_the_responses_does_not_matter(pairs: list[tuple[str, str]]) -> None:
    taken: list[Any] = [([[reference(name, "1")]], response(call(tool, "1"))) for name, tool in pairs]
    assert suggested(*taken) == suggested(*reversed(taken))


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
def test_names_are_alike_by_their_words(one: str, other: str, is_alike: bool) -> None:
    assert (name_similarity(one, other) >= 0.6) is is_alike
    assert name_similarity(one, other) == name_similarity(other, one)


def test_tool_that_gives_rows_as_csv_is_suggested_and_one_that_gives_prose_is_not() -> None:
    wanted = [[QUERY]]
    for output in ("x\r\nurn:a\r\n", "x,n\nurn:a,1\n", "x,n\nurn:b,1\n"):
        assert suggested((wanted, response(call("ask_store", output)))) == {("ask_store",): "sparql_query"}
    for output in ("I found x, y and z.\nAll are cities.", "# Notes\n\nnone, so far", '[{"id": 1}]'):
        assert suggested((wanted, response(call("ask_store", output)))) == {}


@pytest.mark.parametrize(("tool", "name"), [("read_neo4j_cypher", "cypher_query"), ("ask", "sql_db_query")])
def test_a_tool_that_gives_such_rows_is_suggested_though_both_names_may_be_known(tool: str, name: str) -> None:
    tools = UnknownTools(EvaluationConfig())
    for city in ("Oslo", "Bergen"):
        reference = {"name": name, "output": f'[{{"name": "{city}"}}]'}
        call = {"name": tool, "args": {}, "id": "c", "status": "success", "output": '[{"n": "Narvik"}]'}
        tools.add([[reference]], {"question_id": city, "actual_steps": [call]})
    assert [each.suggestion for each in tools.found()] == [name]
