"""Drafting reference steps from a response."""

import json
from typing import Any

import pytest

from graphrag_eval_lc import draft_dataset, run_evaluation, validate_dataset
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching import StepKind, UnreadableOutput, register_matcher, register_step_kind


def rows(*values: str, kind: str = "uri") -> str:
    bindings = [{"x": {"type": kind, "value": value}} for value in values]
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}})


def step(name: str, output: Any, status: str = "success", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}-{len(str(output))}", "status": status, "output": output}


def drafted(*steps: dict[str, Any], config: Any = None, **more: Any) -> dict[str, Any]:
    responses: Any = [{"question_id": "q", "actual_steps": list(steps), **more}]
    template = draft_dataset(responses, config=config)[0]
    return dict(template["questions"][0])  # type: ignore[index]


def test_draft_has_question_answer_and_draft_mark() -> None:
    assert drafted(question_text="Why?", actual_answer="So.") == {
        "id": "q",
        "question_text": "Why?",
        "draft": True,
        "reference_answer": "So.",
    }
    assert drafted()["question_text"] == "(write the question of q)"


def test_last_successful_step_of_each_tool_becomes_a_group_with_its_columns() -> None:
    question = drafted(
        step("sparql_query", rows("urn:old"), query="a"),
        step("sparql_query", rows("urn:new"), query="b"),
        step("sparql_query", rows(), query="empty"),
        step("sparql_query", "timeout", status="error", query="c"),
        step("sparql_query", "@prefix : <urn:> .", query="DESCRIBE"),
    )
    [[reference]] = question["reference_steps"]
    assert reference["args"] == {"query": "b"}
    assert reference["required_columns"] == ["x"]
    assert reference["output_media_type"] == "application/sparql-results+json"


def test_calls_that_one_message_of_the_model_requests_are_one_group() -> None:
    seconds = {"old": 1, "no": 4, "se": 4, "again": 5}  # when each query ran; the model was called at 0, 3 and 6
    queries = [
        {**step("sparql_query", rows(f"urn:{name}"), query=name), "execution_timestamp": f"2026-01-01T00:00:0{second}Z"}
        for name, second in seconds.items()
    ]
    calls = [{"started_at": f"2026-01-01T00:00:0{second}Z"} for second in (0, 3, 6)]
    [group] = drafted(*queries, queries[-1], llm_calls=calls)["reference_steps"]
    assert [reference["args"]["query"] for reference in group] == ["no", "se", "again"]


def test_search_whose_hit_is_used_becomes_iri_discovery() -> None:
    question = drafted(
        step("autocomplete_search", rows("urn:a", "urn:b"), query="OSLO"),
        step("autocomplete_search", rows("urn:unused"), query="ASKER"),
        step("sparql_query", rows("urn:c"), query="SELECT ?x { <urn:b> ?p ?x }"),
    )
    assert [[reference["name"] for reference in group] for group in question["reference_steps"]] == [
        ["iri_discovery"],
        ["sparql_query"],
    ]
    assert question["reference_steps"][0][0]["output"] == "urn:b"


def test_iri_counts_as_used_only_as_a_whole_word() -> None:
    question = drafted(
        step("autocomplete_search", rows("http://x/1", "http://x/12"), query="x"),
        step("sparql_query", rows("urn:c"), query="SELECT * { <http://x/12> ?p ?a }"),
    )
    assert question["reference_steps"][0][0]["output"] == "http://x/12"


def test_other_outputs_are_json_documents_or_text() -> None:
    question = drafted(
        step("retrieval", '[{"id": "d"}]', k=5),
        step("weather", '{"wind": 3}'),
        step("note", "calm"),
        step("nothing", None),
        step("retrieve_data_points", "[]", external_id="e"),
    )
    media_types = {group[0]["name"]: group[0].get("output_media_type") for group in question["reference_steps"]}
    assert media_types == {"retrieval": None, "weather": "application/json", "note": None, "retrieve_data_points": None}


def test_sparql_results_are_recognised_by_their_format_under_any_tool_name() -> None:
    question = drafted(
        step("run_sparql", rows("urn:a"), query="a"),
        step("ask", '{"head": {}, "boolean": true}'),
        step("find_all", rows()),
        step("stats", '{"head": {"vars": ["x"]}}'),
    )
    assert [(group[0]["name"], group[0]["output_media_type"]) for group in question["reference_steps"]] == [
        ("run_sparql", "application/sparql-results+json"),
        ("ask", "application/sparql-results+json"),
        ("stats", "application/json"),
    ]
    assert question["reference_steps"][0][0]["required_columns"] == ["x"]


def test_steps_are_named_as_the_config_maps_their_tools() -> None:
    config = {
        "steps": {"names": {"find": "autocomplete_search", "run_sparql": "sparql_query", "look": "retrieval"}},
        "retrieval": {"steps": ["search_docs"]},
    }
    question = drafted(
        step("find", rows("urn:a"), query="OSLO"),
        step("run_sparql", rows("urn:b"), query="<urn:a>"),
        step("run_sparql", "@prefix : <urn:> .", query="DESCRIBE"),
        step("look", '[{"id": "d"}]', k=5),
        step("search_docs", "[]", k=5),
        config=config,
    )
    assert [group[0]["name"] for group in question["reference_steps"]] == ["iri_discovery", "sparql_query", "retrieval"]


def test_failed_responses_are_left_out() -> None:
    responses: Any = [{"question_id": "q", "error": "x"}, {"question_id": "r", "status": "error"}]
    assert draft_dataset(responses)[0]["questions"] == []


def test_draft_is_valid_and_its_own_run_scores_1() -> None:
    responses: Any = [
        {
            "question_id": "q",
            "question_text": "Why?",
            "actual_steps": [
                step("autocomplete_search", rows("urn:a"), query="OSLO"),
                step("sparql_query", rows("urn:c"), query="<urn:a>"),
                step("retrieval", '[{"id": "d"}]', k=1),
            ],
        }
    ]
    draft = draft_dataset(responses)
    assert validate_dataset(draft, responses) == []
    assert run_evaluation(draft, responses, {"steps": {"scoring": "all_groups"}})[0]["steps_score"] == 1.0


# --- registered step kinds -------------------------------------------------------------------------------------------


def register_kind(*serves: Any, **more: Any) -> None:
    register_step_kind(StepKind(key="own", serves=serves, matcher=lambda reference, actual: 1.0, **more))


def references(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [group[0] for group in drafted(*steps).get("reference_steps") or ()]


def parse_table(output: Any) -> list[str]:
    if not isinstance(output, str) or not output.startswith("id,"):
        raise UnreadableOutput("no table")
    return output.split(",")


def test_step_compared_by_args_is_drafted_without_output() -> None:
    register_matcher(name="set_alarm", reads="args")(lambda reference, actual: 1.0)
    assert references(step("set_alarm", None, at="7:00")) == [{"name": "set_alarm", "args": {"at": "7:00"}}]


def test_output_in_a_registered_format_is_drafted_with_its_media_type() -> None:
    register_kind((None, "text/csv"), parse=parse_table)
    assert references(step("query", "id,a"), step("note", "calm"), step("find", rows("urn:a"))) == [
        {"name": "query", "args": {}, "output": "id,a", "output_media_type": "text/csv"},
        {"name": "note", "args": {}, "output": "calm"},
        {
            "name": "find",
            "args": {},
            "output": rows("urn:a"),
            "output_media_type": "application/sparql-results+json",
            "required_columns": ["x"],
        },
    ]


def test_registered_kind_controls_the_draft_of_its_steps() -> None:
    def draft(found: Any, later: Any) -> Any:
        return {"name": "find", "args": found["args"], "output": found["output"], "used": len(later)}

    register_kind(("find", None), draft=draft, drafted_from=("search",), drafts_each=True, fulfilled_by=("search",))
    search = step("search", "a", q="x")
    assert references(search, step("search", "b"), step("search", None, status="error"), search) == [
        {"name": "find", "args": {"q": "x"}, "output": "a", "used": 0},
        {"name": "find", "args": {}, "output": "b", "used": 1},
    ]
    assert references(step("find", "calm")) == [{"name": "find", "args": {}, "output": "calm"}]


@pytest.mark.parametrize(
    ("draft", "text"),
    [
        (lambda found, later: {}["x"], "the draft of own failed with KeyError: 'x'"),
        (lambda found, later: {"output": "a"}, "the draft of own returned {'output': 'a'}"),
    ],
)
def test_invalid_draft_from_a_registered_kind_is_reported(draft: Any, text: str) -> None:
    register_kind(("find", None), draft=draft)
    with pytest.raises(MatcherError) as problem:
        references(step("find", "a"))
    assert text in str(problem.value)
