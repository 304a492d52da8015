import json
import re

import jsonschema
import pytest
import yaml

from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.matching import BUILT_IN
from graphrag_eval_lc.records import ReferenceStepModel


def test_descriptions_of_a_reference_step_name_what_the_step_kinds_declare() -> None:
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


def test_demos_dataset_fits_its_schema() -> None:
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
def test_mistakes_do_not_fit(name: str, records: object) -> None:
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
def test_relevant_ids_are_ids_groups_or_gains(relevant_ids: object, fits: bool) -> None:
    schema = json.loads(SCHEMA_PATHS["dataset"].read_text(encoding="utf-8"))
    steps = [[{"name": "retrieval", "relevant_ids": relevant_ids}]]
    records = [{"template_id": "t", "questions": [{"id": "q", "question_text": "", "reference_steps": steps}]}]
    assert jsonschema.Draft202012Validator(schema).is_valid(records) is fits
