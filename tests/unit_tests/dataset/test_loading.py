import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS, load_dataset, load_responses, questions_of, read_responses
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.errors import DatasetError, ResponsesError
from graphrag_eval_lc.matching import BUILT_IN
from graphrag_eval_lc.records import ReferenceStepModel

TEMPLATE: dict[str, Any] = {
    "template_id": "transformers",
    "description": "kept",
    "questions": [
        {
            "id": "q1",
            "question_text": "Which transformers are in OSLO?",
            "parameter_bindings": {"substation": "OSLO"},
            "reference_steps": [[{"name": "sparql_query", "output": "{}", "required_columns": None}]],
        }
    ],
}
YAML = """\
- template_id: transformers
  description: kept
  questions:
  - id: q1
    question_text: Which transformers are in OSLO?
    parameter_bindings: {substation: OSLO}
    reference_steps:
    - - name: sparql_query
        output: '{}'
        required_columns: null
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qa.yaml", YAML),
        ("qa.yml", YAML),
        ("qa.json", json.dumps([TEMPLATE])),
        ("qa.jsonl", json.dumps(TEMPLATE) + "\n\n"),
    ],
)
def test_every_format_loads_the_same_templates_with_unknown_keys(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert load_dataset(tmp_path / name) == [TEMPLATE]


@pytest.mark.parametrize("text", [YAML, json.dumps([TEMPLATE]), json.dumps(TEMPLATE)])
def test_format_of_an_open_file_is_detected_by_its_first_character(text: str) -> None:
    assert load_dataset(io.StringIO(text)) == [TEMPLATE]
    assert load_dataset(io.BytesIO(text.encode())) == [TEMPLATE]


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(YAML, encoding="utf-8-sig")
    assert load_dataset(tmp_path / "qa.yaml") == [TEMPLATE]


@pytest.mark.parametrize("questions", ["", "\n  questions:", "\n  questions: []"])
def test_template_may_have_no_questions(questions: str) -> None:
    assert list(questions_of(load_dataset(io.StringIO(f"- template_id: t{questions}")))) == []


def test_numeric_ids_become_strings() -> None:
    dataset = load_dataset(io.StringIO("- template_id: 7\n  questions: [{id: 12, question_text: x}]"))
    assert [(template["template_id"], question["id"]) for template, question in questions_of(dataset)] == [("7", "12")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1", "a list is needed at the top, not dict"),
        ("- templat_id: t", "line 1, key [0].template_id: the key template_id is missing"),
        ("- template_id: t\n  questions:\n  - id: q\n", "line 3, question q, key [0].questions[0].question_text"),
        ("- template_id: t\n  questions:\n  - {id: q, question_text: 5}\n", "question q"),
        (
            "- template_id: t\n  questions:\n  - id: q\n    question_text: x\n    reference_steps: [{name: a}]\n",
            "Groups of reference steps are a list of lists",
        ),
        ("- template_id:\n  questions: 3\n", "(1 more mistake of the format)"),
        ("- x: [", "not valid YAML"),
    ],
)
def test_error_names_the_location_and_the_fix(text: str, complaint: str) -> None:
    with pytest.raises(DatasetError) as caught:
        load_dataset(io.StringIO(text))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        ("- template_id: Ålesund".encode("utf-16"), "not UTF-8"),
        (b"- template_id: t\n- template_id: \xe5\n", "line 2"),
    ],
)
def test_empty_or_wrongly_encoded_file_is_one_clear_error(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "qa.yaml"
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["qa.csv", "qa.TSV", "qa.parquet"])
def test_table_is_refused_with_the_command_that_imports_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("question;answer\nWhat: x?;1\n", encoding="utf-8-sig")
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    assert f"{name}: this is a table, not a reference dataset. Import it: graphrag-eval-lc dataset import" in str(
        caught.value
    )


def test_source_must_be_a_path_or_a_file() -> None:
    with pytest.raises(DatasetError, match="a list is needed at the top, not NoneType"):
        load_dataset(None)  # type: ignore[arg-type]


def test_every_format_of_responses_loads_by_question_id(tmp_path: Path) -> None:
    response = {"question_id": "q1", "actual_answer": "T1", "extra": [1]}
    for name, text in {
        "r.jsonl": json.dumps(response) + "\n",
        "r.json": json.dumps([response]),
        "map.json": json.dumps({"q1": {"actual_answer": "T1", "extra": [1]}}),
        "r.yaml": "- {question_id: q1, actual_answer: T1, extra: [1]}",
    }.items():
        (tmp_path / name).write_text(text)
        assert load_responses(tmp_path / name) == {"q1": response}


def test_question_id_of_a_response_takes_precedence_over_its_key() -> None:
    assert read_responses({"a": {"question_id": "q1"}}).records == [{"question_id": "q1"}]


def test_last_line_of_a_question_wins() -> None:
    lines = '{"question_id": "q", "actual_answer": "old"}\n{"question_id": "q", "actual_answer": "new"}\n'
    assert load_responses(io.StringIO(lines))["q"]["actual_answer"] == "new"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"question_id": "a"}\n{"actual_answer": 1}', "line 2, key [1].question_id: the key question_id is missing"),
        ('{"question_id": "a"}\n{"question_id": "b", "actual_st', "line 2: the file of responses is not valid JSON"),
        ('{"question_id": "a", "input_tokens": -5}\n', "question a, key [0].input_tokens: -5 is not allowed here"),
    ],
)
def test_error_in_responses_names_the_line(text: str, complaint: str) -> None:
    with pytest.raises(ResponsesError) as caught:
        load_responses(io.StringIO(text))
    assert complaint in str(caught.value)


def test_schema_of_a_reference_step_describes_the_keys_of_step_kinds() -> None:
    texts = {key: str(field.description) for key, field in ReferenceStepModel.model_fields.items()}
    rows, json = (
        [media_type for name, media_type in kind.serves if name is None and media_type]
        for kind in BUILT_IN
        if kind.key in ("rows", "json")
    )
    with_key = [each.key for kind in BUILT_IN for each in kind.serves_where if each.media_type == json[0] and each.key]
    compared_by_args = [name for kind in BUILT_IN if kind.reads == "args" for name in kind.names]
    assert texts["output_media_type"] == (
        f"{', '.join(rows)}: rows; {json[0]}: JSON values, with {with_key[0]} or of queries rows; "
        "none: rows of queries, else texts."
    )
    assert (len(json), len(with_key)) == (1, 1)
    assert texts["args"].startswith(f"The arguments. They are compared for {' and '.join(compared_by_args)};")
    names = {name for kind in BUILT_IN for name in kind.names}
    assert all(name in names for name in re.findall(r"\w+_\w+|retrieval", texts["name"] + texts["output"]))


def test_demo_dataset_conforms_to_the_schema() -> None:
    schema = json.loads(SCHEMA_PATHS["dataset"].read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load(DATASET_PATH.read_text(encoding="utf-8")), schema)


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("dataset", [{"template": "t"}]),
        ("dataset", [{"template_id": "t", "questions": [{"id": "q"}]}]),
        (
            "dataset",
            [{"template_id": "t", "questions": [{"id": 1, "question_text": "", "reference_steps": [{"name": "s"}]}]}],
        ),
        ("responses", [{"actual_steps": []}]),
        (
            "dataset",
            [
                {
                    "template_id": "t",
                    "questions": [
                        {"id": 1, "question_text": "", "reference_steps": [[{"name": "s", "strict": "maybe"}]]}
                    ],
                }
            ],
        ),
        ("responses", [{"question_id": "q", "input_tokens": -1}]),
        ("responses", [{"question_id": "q", "input_tokens": True}]),
    ],
)
def test_invalid_records_violate_the_schema(name: str, records: object) -> None:
    schema = json.loads(SCHEMA_PATHS[name].read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(records, schema)


@pytest.mark.parametrize(
    ("relevant_ids", "fits"),
    [
        (["a", 1], True),
        ([["a"], ["b"]], True),
        ({"a": 0.5}, True),
        (None, True),
        ([], False),
        ({"a": -1}, False),
        ("a", False),
    ],
)
def test_relevant_ids_may_be_ids_groups_or_gains(relevant_ids: object, fits: bool) -> None:
    schema = json.loads(SCHEMA_PATHS["dataset"].read_text(encoding="utf-8"))
    steps = [[{"name": "retrieval", "relevant_ids": relevant_ids}]]
    records = [{"template_id": "t", "questions": [{"id": "q", "question_text": "", "reference_steps": steps}]}]
    assert jsonschema.Draft202012Validator(schema).is_valid(records) is fits
