"""The demo's dataset is valid and agrees with the graph, documents and time series."""

import json
import re
from collections import Counter

import pytest
import yaml

from graphrag_eval_lc.demo import DATASET_PATH, DOCUMENTS_PATH
from graphrag_eval_lc.demo.graph import DocumentIndex
from graphrag_eval_lc.records import TemplateModel

TEMPLATES = yaml.safe_load(DATASET_PATH.read_text(encoding="utf-8"))
QUESTIONS = [question for template in TEMPLATES for question in template["questions"]]

WITH_DATA_POINTS = [
    question for question in QUESTIONS if question["reference_steps"][-1][0]["name"] == "retrieve_data_points"
]
SCORED = ("sparql_query", "retrieval", "autocomplete_search", "retrieve_data_points")


def steps_of(question):
    return [step for group in question["reference_steps"] for step in group]


def steps_named(name):
    return [
        pytest.param(step, id=f"{question['id']}-{index}")
        for question in QUESTIONS
        for index, step in enumerate(steps_of(question))
        if step["name"] == name
    ]


def rows(output):
    """Return the columns and rows of SPARQL JSON results; rows are sorted pairs so that a Counter can hold them."""
    result = json.loads(output)
    return result["head"]["vars"], [json.dumps(row, sort_keys=True) for row in result["results"]["bindings"]]


def test_there_are_enough_templates_and_questions():
    assert len(TEMPLATES) >= 9
    assert len(QUESTIONS) >= 42


def test_each_template_conforms_to_the_dataset_format():
    for template in TEMPLATES:
        TemplateModel.model_validate(template, strict=True)


def test_ids_are_unique():
    ids = [template["template_id"] for template in TEMPLATES] + [question["id"] for question in QUESTIONS]
    assert len(set(ids)) == len(ids)


def test_each_question_has_an_answer_and_ends_with_a_scored_step():
    for question in QUESTIONS:
        assert question["reference_answer"]
        assert question["reference_steps"][-1][0]["name"] in SCORED


def test_every_kind_of_reference_step_occurs():
    steps = [step for question in QUESTIONS for step in steps_of(question)]
    assert {(step["name"], step["output_media_type"]) for step in steps} == {
        ("iri_discovery", "text/uri"),
        ("sparql_query", "application/sparql-results+json"),
        ("retrieval", "application/json"),
        ("retrieve_time_series", "application/json"),
        ("retrieve_data_points", "application/json"),
        ("autocomplete_search", "application/json"),  # compared as any JSON value
        ("now", "text/plain"),  # compared as any text
    }
    queries = [step for step in steps if step["name"] == "sparql_query"]
    assert any("boolean" in json.loads(step["output"]) for step in queries)
    assert any(step.get("ordered") for step in queries)
    assert any(step.get("ignore_duplicates") is False for step in queries)
    assert any(set(step["required_columns"]) < set(json.loads(step["output"])["head"]["vars"]) for step in queries)
    times = {step["args"]["start"][-1] for step in steps if step["name"] == "retrieve_data_points"}
    assert times == {"o", "Z"}, "periods are given relative to now (…-ago) and absolute (…Z)"


@pytest.mark.parametrize("step", steps_named("sparql_query"))
def test_stored_result_matches_the_graph(graph, step):
    actual = graph.query(step["args"]["query"])
    if "boolean" in json.loads(actual):
        assert json.loads(step["output"]) == json.loads(actual)
        return
    (stored_columns, stored_rows), (actual_columns, actual_rows) = rows(step["output"]), rows(actual)
    assert stored_columns == actual_columns
    assert set(step["required_columns"]) <= set(stored_columns)
    assert stored_rows
    if step.get("ordered"):
        assert stored_rows == actual_rows
    else:
        assert Counter(stored_rows) == Counter(actual_rows)


@pytest.mark.parametrize("step", steps_named("iri_discovery"))
def test_iri_is_the_first_search_hit_for_the_name(tools, step):
    found = json.loads(tools["autocomplete_search"].invoke({"query": step["args"]["query"]}))
    assert found["results"]["bindings"][0]["iri"]["value"] == step["output"]


@pytest.mark.parametrize("step", steps_named("retrieval"))
def test_relevant_documents_are_in_the_collection(step):
    documents = [json.loads(line) for line in DOCUMENTS_PATH.read_text(encoding="utf-8").splitlines()]
    collection = {document["id"]: f"{document['title']}. {document['text']}" for document in documents}
    relevant = json.loads(step["output"])
    assert 0 < len(relevant) <= step["args"]["k"]
    assert {document["id"]: document["text"] for document in relevant}.items() <= collection.items()


@pytest.mark.parametrize("step", steps_named("retrieval"))
def test_search_finds_a_relevant_document(step):
    found = DocumentIndex(DOCUMENTS_PATH).search(step["args"]["query"], step["args"]["k"])
    relevant = {document["id"] for document in json.loads(step["output"])}
    assert relevant & {document["id"] for document in found}


@pytest.mark.parametrize("name", ["autocomplete_search", "retrieve_time_series", "retrieve_data_points"])
def test_stored_json_output_matches_the_tools(tools, name):
    steps = [param.values[0] for param in steps_named(name)]
    assert steps
    for step in steps:
        assert json.loads(step["output"]) == json.loads(tools[name].invoke(step["args"]))


@pytest.mark.parametrize("step", steps_named("now"))
def test_stored_now_matches_the_tools(tools, step):
    assert step["output"] == tools["now"].invoke(step["args"])


@pytest.mark.parametrize("question", WITH_DATA_POINTS, ids=lambda question: question["id"])
def test_data_points_belong_to_the_questions_thing_and_appear_in_the_answer(question):
    steps_by_name = {step["name"]: step for step in steps_of(question)}
    [series] = json.loads(steps_by_name["retrieve_time_series"]["output"])
    assert (
        steps_by_name["iri_discovery"]["output"] == f"urn:uuid:{steps_by_name['retrieve_time_series']['args']['mrid']}"
    )
    args = steps_by_name["retrieve_data_points"]["args"]
    assert args["external_id"] == series["external_id"]
    [aggregate] = args["aggregates"]
    points = json.loads(steps_by_name["retrieve_data_points"]["output"])["datapoints"]
    answered = re.findall(r"(-?[\d.]+) MW from (\S+ \S+?)[,.](?: |$)", question["reference_answer"])
    assert [(float(value), time) for value, time in answered] == [
        (point[aggregate], point["timestamp"][:16].replace("T", " ")) for point in points
    ]
