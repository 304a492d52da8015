"""What of a response becomes the references of its question."""

import json
from typing import Any

from graphrag_eval_lc import draft_dataset, run_evaluation, validate_dataset


def rows(*values: str, kind: str = "uri") -> str:
    bindings = [{"x": {"type": kind, "value": value}} for value in values]
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": bindings}})


def step(name: str, output: Any, status: str = "success", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}-{len(str(output))}", "status": status, "output": output}


def drafted(*steps: dict[str, Any], config: Any = None, **more: Any) -> dict[str, Any]:
    responses: Any = [{"question_id": "q", "actual_steps": list(steps), **more}]
    template = draft_dataset(responses, config=config)[0]
    return dict(template["questions"][0])  # type: ignore[index]


def test_question_answer_and_mark() -> None:
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


def test_iri_is_used_only_where_it_stands_as_a_whole() -> None:
    question = drafted(
        step("autocomplete_search", rows("http://x/1", "http://x/12"), query="x"),
        step("sparql_query", rows("urn:c"), query="SELECT * { <http://x/12> ?p ?a }"),
    )
    assert question["reference_steps"][0][0]["output"] == "http://x/12"


def test_iri_is_found_in_arguments_of_any_form_and_script() -> None:
    question = drafted(
        step("autocomplete_search", rows("urn:Ås"), query="x"),
        step("retrieve_data_points", "[]", instances=[{"id": "urn:Ås"}]),
    )
    assert question["reference_steps"][0][0]["output"] == "urn:Ås"


def test_other_outputs_are_json_documents_or_text() -> None:
    question = drafted(
        step("retrieval", '[{"id": "d"}]', k=5),
        step("weather", '{"wind": 3}'),
        step("note", "calm"),
        step("nothing", None),
        step("retrieve_data_points", "[]", external_id="e"),
    )
    media_types = {group[0]["name"]: group[0].get("output_media_type") for group in question["reference_steps"]}
    assert media_types == {
        "retrieval": None,
        "weather": "application/json",
        "note": None,
        "retrieve_data_points": None,
    }


def test_sparql_results_are_told_by_their_form_whatever_the_tool_is_called() -> None:
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


def test_steps_have_the_names_that_the_config_gives_their_tools() -> None:
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


def test_draft_is_sound_and_the_run_that_it_comes_from_scores_1() -> None:
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
