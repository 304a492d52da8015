"""The demo's dataset is sound, and what it says is what graph and documents give."""

import json
from collections import Counter

import pytest
import yaml

from graphrag_eval_lc.demo import DATASET_PATH, DOCUMENTS_PATH
from graphrag_eval_lc.demo.documents import DocumentIndex
from graphrag_eval_lc.records import TemplateModel

TEMPLATES = yaml.safe_load(DATASET_PATH.read_text(encoding="utf-8"))
QUESTIONS = [question for template in TEMPLATES for question in template["questions"]]


def steps_named(name):
    return [
        pytest.param(step, id=f"{question['id']}-{step['args']['query'][:12].strip()}")
        for question in QUESTIONS
        for group in question["reference_steps"]
        for step in group
        if step["name"] == name
    ]


def rows(output):
    """Give columns and rows of SPARQL JSON results, the rows as sorted pairs so that they can be counted."""
    result = json.loads(output)
    return result["head"]["vars"], [json.dumps(row, sort_keys=True) for row in result["results"]["bindings"]]


def test_there_are_enough_templates_and_questions():
    assert len(TEMPLATES) >= 6
    assert len(QUESTIONS) >= 24


def test_each_template_has_the_format_of_a_reference_dataset():
    for template in TEMPLATES:
        TemplateModel.model_validate(template, strict=True)


def test_ids_are_unique():
    ids = [template["template_id"] for template in TEMPLATES] + [question["id"] for question in QUESTIONS]
    assert len(set(ids)) == len(ids)


def test_each_question_has_an_answer_and_ends_with_a_step_to_score():
    for question in QUESTIONS:
        assert question["reference_answer"]
        assert question["reference_steps"][-1][0]["name"] in ("sparql_query", "retrieval")


@pytest.mark.parametrize("step", steps_named("sparql_query"))
def test_a_stored_result_is_what_the_graph_gives(graph, step):
    given = graph.query(step["args"]["query"])
    if "boolean" in json.loads(given):
        assert json.loads(step["output"]) == json.loads(given)
        return
    (stored_columns, stored_rows), (given_columns, given_rows) = rows(step["output"]), rows(given)
    assert stored_columns == given_columns
    assert set(step["required_columns"]) <= set(stored_columns)
    assert stored_rows
    if step.get("ordered"):
        assert stored_rows == given_rows
    else:
        assert Counter(stored_rows) == Counter(given_rows)


@pytest.mark.parametrize("step", steps_named("iri_discovery"))
def test_an_iri_is_what_the_search_for_the_name_finds_first(tools, step):
    found = json.loads(tools["autocomplete_search"].invoke({"query": step["args"]["query"]}))
    assert found["results"]["bindings"][0]["iri"]["value"] == step["output"]


@pytest.mark.parametrize("step", steps_named("retrieval"))
def test_relevant_documents_are_documents_of_the_collection(step):
    documents = [json.loads(line) for line in DOCUMENTS_PATH.read_text(encoding="utf-8").splitlines()]
    collection = {document["id"]: f"{document['title']}. {document['text']}" for document in documents}
    relevant = json.loads(step["output"])
    assert 0 < len(relevant) <= step["args"]["k"]
    assert {document["id"]: document["text"] for document in relevant}.items() <= collection.items()


@pytest.mark.parametrize("step", steps_named("retrieval"))
def test_each_notes_question_finds_something_relevant(step):
    found = DocumentIndex(DOCUMENTS_PATH).search(step["args"]["query"], step["args"]["k"])
    relevant = {document["id"] for document in json.loads(step["output"])}
    assert relevant & {document["id"] for document in found}
