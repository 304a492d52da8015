"""Datasets from templates: the demo's questions, splits without leakage, and errors of templates."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("pyoxigraph")

from graphrag_eval_lc import load_dataset, validate_dataset
from graphrag_eval_lc.demo import DATASET_PATH, GRAPH_PATH, TEMPLATES_PATH
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.graph.generate import Generated, QuestionTemplate, Split, generate_dataset, load_templates
from graphrag_eval_lc.graph.sources import GraphSource

from .conftest import Endpoint

DEMO = GraphSource(file=GRAPH_PATH)
NAMES: dict[str, Any] = {
    "template_id": "kv",
    "id": "kv_{name}",
    "question_texts": ["How many kV has {name}?", "What is the voltage of {name}?"],
    "values": "SELECT ?name ?s { ?s <urn:grid#name> ?name }",
    "reference_answer": "{name}: {rows:{kv} kV}.",
    "reference_steps": [[{"name": "sparql_query", "args": {"query": "SELECT ?kv { <{s}> <urn:grid#kv> ?kv }"}}]],
}


def generated(source: GraphSource, *templates: dict[str, Any], **options: Any) -> Generated:
    return asyncio.run(generate_dataset([QuestionTemplate(**each) for each in templates], source, **options))


def questions_by_id(templates: list[Any]) -> dict[str, Any]:
    return {
        each["id"]: {**each, "template": template["template_id"]}
        for template in templates
        for each in template["questions"]
    }


def test_questions_of_the_demo_are_made_of_its_templates() -> None:
    made = asyncio.run(generate_dataset(load_templates(TEMPLATES_PATH), DEMO))
    assert not validate_dataset(made.templates)  # type: ignore[arg-type]
    demo, found = questions_by_id(load_dataset(DATASET_PATH)), questions_by_id(made.templates)
    with_query = {key for key, each in demo.items() if "sparql_query" in json.dumps(each["reference_steps"])}
    assert found.keys() == with_query
    for key, question in found.items():
        assert question["template"] == demo[key]["template"]
        assert question["reference_answer"] == demo[key]["reference_answer"]
        steps, expected = (
            [step for group in each["reference_steps"] for step in group] for each in (question, demo[key])
        )
        for step, of_demo in zip(steps, expected, strict=True):
            assert step["name"] == of_demo["name"]
            assert step.get("required_columns") == of_demo.get("required_columns")
            if step["name"] == "sparql_query":
                assert json.loads(step["output"]) == json.loads(of_demo["output"])


def test_question(grid: Path) -> None:
    made = generated(GraphSource(file=grid), NAMES)
    (template,) = made.templates
    first, second = template["questions"]
    assert [first["id"], second["id"]] == ["kv_Bergen", "kv_Oslo"]
    assert [first["question_text"], second["question_text"]] == [
        "How many kV has Bergen?",
        "What is the voltage of Oslo?",
    ]
    assert first["reference_answer"] == "Bergen: 300 kV."
    ((step,),) = first["reference_steps"]
    assert step["args"]["query"] == "SELECT ?kv { <urn:grid#bergen> <urn:grid#kv> ?kv }"
    assert step["output_media_type"] == "application/sparql-results+json"
    assert str(made) == "2 questions of 1 template"


def test_what_is_left_out_is_counted(grid: Path, endpoint: Endpoint) -> None:
    empty = {**NAMES, "template_id": "e", "id": "e_{name}"}
    empty["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?x { <{s}> <urn:none> ?x }"}}]]
    many = {**NAMES, "template_id": "m", "id": "m_{name}", "most_rows": 1}
    many["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?x { ?s <urn:grid#kv> ?x }"}}]]
    made = generated(GraphSource(file=grid), empty, many, {**empty, "keep_empty": True, "id": "k_{name}"})
    assert dict(made.left_out) == {"no rows": 2, "more than 1 rows": 2}
    assert made.number_of_questions == 2
    endpoint.fails = lambda query: (500, "out of memory") if "oslo" in query else None
    made = generated(GraphSource(endpoint.url), NAMES)
    assert made.number_of_questions == 1
    assert "out of memory" in next(iter(made.left_out))


def test_answer_of_an_ask(grid: Path) -> None:
    ask = {**NAMES, "reference_answer": {"true": "{name}: yes", "false": "{name}: no"}}
    ask["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "ASK { <{s}> <urn:grid#kv> 420 }"}}]]
    (template,) = generated(GraphSource(file=grid), ask).templates
    assert [each["reference_answer"] for each in template["questions"]] == ["Bergen: no", "Oslo: yes"]


def test_seed_chooses_values_and_ids_stay() -> None:
    one = {**NAMES, "most": 3}
    one["values"] = "SELECT ?name ?s { ?s <https://cim.ucaiug.io/ns#IdentifiedObject.name> ?name } LIMIT 50"
    one["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?p { <{s}> ?p ?o }"}}]]
    made = [questions_by_id(generated(DEMO, one, seed=seed).templates) for seed in (1, 1, 2)]
    assert made[0] == made[1]
    assert len(made[2]) == 3
    assert made[0].keys() != made[2].keys()
    whole = questions_by_id(generated(DEMO, {**one, "most": None}).templates)
    for each in made:
        assert each.keys() <= whole.keys()


@pytest.mark.parametrize("split", ["template", "value"])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_in_both_parts(split: Split, seed: int) -> None:
    templates = load_templates(TEMPLATES_PATH)
    made = asyncio.run(generate_dataset(templates, DEMO, split=split, seed=seed))
    dev, test = made.split("dev"), made.split("test")
    ids = [questions_by_id(part).keys() for part in (dev, test)]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == made.number_of_questions
    assert 0 < len(ids[1]) < len(ids[0])
    if split == "template":
        assert not {each["template_id"] for each in dev} & {each["template_id"] for each in test}
    else:
        entities = [
            {step["output"] for each in questions_by_id(part).values() for step in each["reference_steps"][0]
             if step["name"] == "iri_discovery"}
            for part in (dev, test)
        ]  # fmt: skip
        assert not entities[0] & entities[1]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"question_texts": ["{nmae}?"]}, r"placeholder \{nmae\} has no column.*name, s"),
        ({"values": "SELECT ?name { ?s <urn:none> ?name }"}, "returns no rows"),
        ({"values": "SELECT {"}, "query for values fails"),
        ({"id": "same"}, "several questions have the id same"),
    ],
)
def test_wrong_template(grid: Path, change: dict[str, Any], error: str) -> None:
    with pytest.raises(DatasetError, match=error):
        generated(GraphSource(file=grid), NAMES | change)


def test_file_of_templates_that_breaks_the_form(tmp_path: Path) -> None:
    path = tmp_path / "templates.yaml"
    path.write_text(yaml.safe_dump([NAMES, {**NAMES, "valeus": "x"}]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"templates.yaml, line \d+, key 1.valeus"):
        load_templates(path)


def test_values_with_quotes_and_braces_and_missing_ones(tmp_path: Path) -> None:
    grid = tmp_path / "grid.ttl"
    grid.write_text(
        '@prefix : <urn:grid#> . :a :name "The \\"A\\" {x}" ; :kv 1 . :b :kv 2 . :c :name "C" ; :kv 3 .',
        encoding="utf-8",
    )
    quoted: dict[str, Any] = {
        **NAMES,
        "id": "kv_{kv}",
        "values": "SELECT ?name ?kv { ?s <urn:grid#kv> ?kv OPTIONAL { ?s <urn:grid#name> ?name } }",
        "reference_answer": "{name}: {rows:{name}}.",
        "reference_steps": [
            [
                {
                    "name": "sparql_query",
                    "args": {"query": 'SELECT ?name { ?s <urn:grid#name> ?name FILTER(?name = "{name}") }'},
                }
            ]
        ],
    }
    made = generated(GraphSource(file=grid), quoted)
    found = questions_by_id(made.templates)
    assert dict(made.left_out) == {"a value is missing": 1}
    assert found["kv_1"]["reference_answer"] == 'The "A" {x}: The "A" {x}.'
