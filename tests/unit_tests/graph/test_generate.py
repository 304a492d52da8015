"""Generating datasets from templates: the demo's questions, splits without leakage, and template errors."""

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


def test_demo_questions_can_be_generated_from_its_templates() -> None:
    result = asyncio.run(generate_dataset(load_templates(TEMPLATES_PATH), DEMO))
    assert not validate_dataset(result.templates)  # type: ignore[arg-type]
    demo, found = questions_by_id(load_dataset(DATASET_PATH)), questions_by_id(result.templates)
    with_query = {key for key, each in demo.items() if "sparql_query" in json.dumps(each["reference_steps"])}
    assert found.keys() == with_query
    for key, question in found.items():
        assert question["template"] == demo[key]["template"]
        assert question["reference_answer"] == demo[key]["reference_answer"]
        steps, expected = (
            [step for group in each["reference_steps"] for step in group] for each in (question, demo[key])
        )
        for step, demo_step in zip(steps, expected, strict=True):
            assert step["name"] == demo_step["name"]
            assert step.get("required_columns") == demo_step.get("required_columns")
            if step["name"] == "sparql_query":
                assert json.loads(step["output"]) == json.loads(demo_step["output"])


def test_question(grid: Path) -> None:
    result = generated(GraphSource(file=grid), NAMES)
    (template,) = result.templates
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
    assert str(result) == "2 questions of 1 template"


def test_skipped_questions_are_counted(grid: Path, endpoint: Endpoint) -> None:
    empty = {**NAMES, "template_id": "e", "id": "e_{name}"}
    empty["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?x { <{s}> <urn:none> ?x }"}}]]
    many = {**NAMES, "template_id": "m", "id": "m_{name}", "most_rows": 1}
    many["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?x { ?s <urn:grid#kv> ?x }"}}]]
    result = generated(GraphSource(file=grid), empty, many, {**empty, "keep_empty": True, "id": "k_{name}"})
    assert dict(result.left_out) == {"no rows": 2, "more than 1 rows": 2}
    assert result.number_of_questions == 2
    endpoint.fails = lambda query: (500, "out of memory") if "oslo" in query else None
    result = generated(GraphSource(endpoint.url), NAMES)
    assert result.number_of_questions == 1
    assert "out of memory" in next(iter(result.left_out))


def test_answer_of_an_ask(grid: Path) -> None:
    ask = {**NAMES, "reference_answer": {"true": "{name}: yes", "false": "{name}: no"}}
    ask["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "ASK { <{s}> <urn:grid#kv> 420 }"}}]]
    (template,) = generated(GraphSource(file=grid), ask).templates
    assert [each["reference_answer"] for each in template["questions"]] == ["Bergen: no", "Oslo: yes"]


def test_seed_selects_values_and_ids_are_stable() -> None:
    template = {**NAMES, "most": 3}
    template["values"] = "SELECT ?name ?s { ?s <https://cim.ucaiug.io/ns#IdentifiedObject.name> ?name } LIMIT 50"
    template["reference_steps"] = [[{"name": "sparql_query", "args": {"query": "SELECT ?p { <{s}> ?p ?o }"}}]]
    result = [questions_by_id(generated(DEMO, template, seed=seed).templates) for seed in (1, 1, 2)]
    assert result[0] == result[1]
    assert len(result[2]) == 3
    assert result[0].keys() != result[2].keys()
    whole = questions_by_id(generated(DEMO, {**template, "most": None}).templates)
    for each in result:
        assert each.keys() <= whole.keys()


@pytest.mark.parametrize("split", ["template", "value"])
@pytest.mark.parametrize("seed", range(5))
def test_splits_do_not_overlap(split: Split, seed: int) -> None:
    templates = load_templates(TEMPLATES_PATH)
    result = asyncio.run(generate_dataset(templates, DEMO, split=split, seed=seed))
    dev, test = result.split("dev"), result.split("test")
    ids = [questions_by_id(part).keys() for part in (dev, test)]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == result.number_of_questions
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
def test_invalid_template_is_an_error(grid: Path, change: dict[str, Any], error: str) -> None:
    with pytest.raises(DatasetError, match=error):
        generated(GraphSource(file=grid), NAMES | change)


def test_invalid_template_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "templates.yaml"
    path.write_text(yaml.safe_dump([NAMES, {**NAMES, "valeus": "x"}]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"templates.yaml, line \d+, key 1.valeus"):
        load_templates(path)


def test_values_may_have_quotes_and_braces_and_may_be_missing(tmp_path: Path) -> None:
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
    result = generated(GraphSource(file=grid), quoted)
    found = questions_by_id(result.templates)
    assert dict(result.left_out) == {"a value is missing": 1}
    assert found["kv_1"]["reference_answer"] == 'The "A" {x}: The "A" {x}.'
