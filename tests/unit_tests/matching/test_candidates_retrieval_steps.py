"""Steps of other names that count as retrieval, in matching."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.matching import StepsMatch, match_steps

CONFIG = RetrievalConfig(steps=["search_docs", {"name": "sparql_query", "column": "doc"}])
MEDIA_TYPE = "application/sparql-results+json"


def documents(*ids: str) -> str:
    return json.dumps([{"id": identifier} for identifier in ids])


def results(name: str, *values: str) -> str:
    bindings = [{name: {"type": "uri", "value": value}} for value in values]
    return json.dumps({"head": {"vars": [name]}, "results": {"bindings": bindings}})


def step(name: str, output: str | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "id": "c1", "status": "success", "output": output, **more}


def matched(reference: dict[str, Any], *actual: dict[str, Any], **options: Any) -> StepsMatch:
    return match_steps([[reference]], actual, retrieval=CONFIG, **options)


def test_step_of_a_named_tool_is_compared_by_its_ids() -> None:
    reference, actual = step("search_docs", documents("a", "b")), step("search_docs", documents("x", "a"))
    assert matched(reference, actual).steps_score == 0.5
    assert match_steps([[reference]], [actual]).steps_score == 0.0


def test_reference_named_retrieval_is_fulfilled_by_any_step_that_counts_as_retrieval() -> None:
    reference = step("retrieval", documents("urn:a"))
    assert matched(reference, step("search_docs", documents("urn:a"))).steps_score == 1.0
    assert matched(reference, step("sparql_query", results("d", "urn:a"))).steps_score == 1.0
    assert matched(reference, step("other", documents("urn:a"))).steps_score == 0.0


def test_reference_of_another_name_is_fulfilled_by_that_name_alone() -> None:
    reference = step("search_docs", documents("a"))
    assert matched(reference, step("retrieval", documents("a"))).steps_score == 0.0
    renamed = matched(reference, step("find", documents("a")), names={"find": "search_docs"})
    assert renamed.steps_score == 1.0


def test_sparql_step_with_the_column_is_compared_by_recall() -> None:
    reference = step("sparql_query", results("doc", "urn:a", "urn:b"), output_media_type=MEDIA_TYPE)
    actual = step("sparql_query", results("d", "urn:a", "urn:c"))
    assert matched(reference, actual).steps_score == 0.5
    assert match_steps([[reference]], [actual]).steps_score == 0.0


def test_sparql_step_without_the_column_stays_a_sparql_step() -> None:
    reference = step("sparql_query", results("line", "urn:a", "urn:b"), output_media_type=MEDIA_TYPE)
    match = matched(reference, step("sparql_query", results("l", "urn:a")))
    assert (match.steps_score, list(match.retrieval_pairs())) == (0.0, [])
    assert matched(reference, step("sparql_query", results("l", "urn:b", "urn:a"))).steps_score == 1.0


@pytest.mark.parametrize(
    "bindings",
    [[], [{"n": {"type": "literal", "value": "5"}}], [{"doc": {"type": "bnode", "value": "b0"}}]],
)
def test_sparql_step_without_an_id_in_the_column_stays_a_sparql_step(bindings: list[Any]) -> None:
    output = json.dumps({"head": {"vars": ["doc", "n"]}, "results": {"bindings": bindings}})
    match = matched(step("sparql_query", output, output_media_type=MEDIA_TYPE), step("sparql_query", output))
    assert (match.steps_score, list(match.retrieval_pairs())) == (1.0, [])


@pytest.mark.parametrize("key", ["id_column", "tool"])
def test_keys_of_a_step_are_its_own(key: str) -> None:
    reference, actual = step("retrieval", documents("a")), step("retrieval", documents("a"))
    assert matched(reference | {key: "x"}, actual | {key: "x"}).steps_score == 1.0


def test_tool_that_steps_names_renames_may_be_named_by_its_own_name() -> None:
    names = {"search_docs": "retrieval", "find": "retrieval"}
    actual = step("search_docs", documents("a"))
    for name in ("search_docs", "retrieval"):
        assert matched(step(name, documents("a")), actual, names=names).steps_score == 1.0
    assert matched(step("search_docs", documents("a")), step("find", documents("a")), names=names).steps_score == 0.0


def test_column_of_a_tool_is_that_of_its_steps() -> None:
    config = RetrievalConfig.model_validate({"steps": [{"name": "run_sparql", "column": "doc"}]})
    actual = step("run_sparql", results("doc", "urn:a", "urn:b"))
    for name in ("sparql_query", "run_sparql"):
        reference = step(name, results("doc", "urn:a"), output_media_type=MEDIA_TYPE)
        match = match_steps([[reference]], [actual], retrieval=config, names={"run_sparql": "sparql_query"})
        assert (match.steps_score, len(list(match.retrieval_pairs()))) == (1.0, 1)


def test_column_of_a_tool_goes_before_that_of_its_steps() -> None:
    columns = [{"name": "run_sparql", "column": "iri"}, {"name": "sparql_query", "column": "doc"}]
    config = RetrievalConfig.model_validate({"steps": columns})
    reference = step("sparql_query", results("doc", "urn:a"), output_media_type=MEDIA_TYPE)
    bindings = [{"doc": {"type": "uri", "value": "urn:x"}, "iri": {"type": "uri", "value": "urn:a"}}]
    output = json.dumps({"head": {"vars": ["doc", "iri"]}, "results": {"bindings": bindings}})
    names = {"run_sparql": "sparql_query", "query": "sparql_query"}
    for tool, score in (("run_sparql", 1.0), ("query", 0.0)):
        match = match_steps([[reference]], [step(tool, output)], retrieval=config, names=names)
        assert match.steps_score == score


def test_tool_that_steps_names_renames_is_told_where_no_step_counts_as_it() -> None:
    actual = [step("calc", "5")]
    match = match_steps([[step("calc", "5")]], actual, names={"calc": "add"})
    assert match.diagnosis[0][0].reason == "the agent called calc, but steps.names has it as add"


@pytest.mark.parametrize("name", ["other", "sparql_query"])
def test_relevant_ids_that_do_not_count_are_told(name: str) -> None:
    reference = step(name, None, relevant_ids=["a"])
    hint = "relevant_ids count only on steps called retrieval or named in retrieval.steps"
    match = match_steps([[reference]], [step(name, documents("a"))])
    assert match.steps_score == 0.0
    assert match.diagnosis[0][0].reason.endswith(f"; {hint}")
    with_output = match_steps([[reference | {"output": "x"}]], [step(name, documents("a"))])
    assert hint not in with_output.diagnosis[0][0].reason


def test_sparql_step_with_relevant_ids_needs_no_output() -> None:
    reference = step("sparql_query", None, relevant_ids=[["urn:a", "urn:b"], ["urn:c"]])
    assert matched(reference, step("sparql_query", results("d", "urn:b"))).steps_score == 0.5


def test_iri_discovery_is_still_fulfilled_by_a_query() -> None:
    reference = step("iri_discovery", "urn:a")
    assert matched(reference, step("sparql_query", results("doc", "urn:a"))).steps_score == 1.0


def test_query_that_was_no_search_is_no_failed_search() -> None:
    actual = [step("sparql_query", "@prefix : <urn:> ."), step("search_docs", "nothing found")]
    match = matched(step("retrieval", documents("a")), *actual)
    assert list(match.unreadable) == [1]


@pytest.mark.parametrize(("scoring", "pairs"), [("last_group", [None]), ("all_groups", [0, None])])
def test_pairs_are_those_of_the_groups_that_count(scoring: Any, pairs: list[int | None]) -> None:
    first, last = step("retrieval", documents("a")), step("search_docs", documents("b"))
    actual = [step("retrieval", documents("a"))]
    groups = [[first], [step("other", "x"), last], []]
    match = match_steps(groups, actual, scoring=scoring, retrieval=CONFIG)
    # The walk back ends at the last group, which nothing fulfils.
    assert [pair.position for pair in match.retrieval_pairs()] == [None] * len(pairs)
    complete = [*actual, step("other", "x"), step("search_docs", documents("b"))]
    match = match_steps(groups, complete, scoring=scoring, retrieval=CONFIG)
    assert [pair.position for pair in match.retrieval_pairs()] == [0, 2][-len(pairs) :]
