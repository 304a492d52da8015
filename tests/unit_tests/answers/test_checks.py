"""Answers are checked against what the reference requires: the cases in ``checks.yaml``, and references inferred from
rows.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.dataset import load_dataset
from graphrag_eval_lc.errors import DatasetError

TABLE = yaml.safe_load(Path(__file__).with_name("checks.yaml").read_text(encoding="utf-8"))
STEP = {"id": "c1", "name": "sparql_query", "status": "success", "args": {}, "output": TABLE["output"]}


def evaluated(question: dict[str, Any], answer: str, config: dict[str, Any] | None = None) -> dict[str, Any]:
    question = {"id": "q", "question_text": "Which bays are there?", **question}
    response = {"question_id": "q", "actual_steps": [STEP], "actual_answer": answer}
    return dict(run_evaluation([{"template_id": "t", "questions": [question]}], [response], config)[0])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["what"]) for case in TABLE["cases"]])
def test_keys_match_the_table(case: dict[str, Any]) -> None:
    result = evaluated(case["question"], case["answer"])
    keys = {key.removeprefix("answer_"): value for key, value in result.items() if key.startswith("answer_")}
    reason = keys.pop("exact_reason", None)
    assert {key: value for key, value in keys.items() if value != [] and not key.endswith("_f1")} == case["keys"]
    assert reason == (case.get("reason", "nothing is missing") if case["keys"] else None)


INFERRED = {"answer_checks": {"infer": "required_columns"}}


@pytest.mark.parametrize(
    ("columns", "answer", "exact", "missing"),
    [
        (["bay"], "ASKER 300 B1, OSLO 420 B2 and grid.example/ns#T3", 1.0, []),
        (["bay"], "ASKER 300 B1 and OSLO 420 B2", 0.0, ["https://grid.example/ns#T3"]),
        (["kv"], "300, 420 and 132.5", 1.0, []),
        (["since"], "2 May 2024, 31 January 2021 and 2020-02-29", 1.0, []),
        ([], "There are bays.", None, None),
    ],
)
def test_required_columns_define_the_expected_values(
    columns: list[str], answer: str, exact: float | None, missing: list[str] | None
) -> None:
    step = {"name": "sparql_query", "output": TABLE["output"], "required_columns": columns}
    result = evaluated({"reference_steps": [[step]]}, answer, INFERRED)
    assert result.get("answer_exact") == exact
    assert not missing or result["answer_entities_missing"] == missing


def test_empty_and_boolean_references_are_checked() -> None:
    of_none = {"name": "sparql_query", "output": '{"head": {"vars": ["a"]}, "results": {"bindings": []}}'}
    of_ask = {"name": "sparql_query", "output": '{"head": {}, "boolean": false}'}
    for step, answer, exact in (
        (of_none, "There is none.", 1),
        (of_none, "T3", 0),
        (of_ask, "No.", 1),
        (of_ask, "Yes", 0),
    ):
        assert evaluated({"reference_steps": [[step]]}, answer, INFERRED)["answer_exact"] == exact


def test_boolean_of_one_reference_is_checked_along_with_the_rows_of_another() -> None:
    of_ask = {"name": "sparql_query", "output": '{"head": {}, "boolean": false}'}
    of_rows = {"name": "sparql_query", "output": TABLE["output"], "required_columns": ["kv"]}
    for answer, exact in (("No: 300, 420 and 132.5", 1), ("Yes: 300, 420 and 132.5", 0)):
        assert evaluated({"reference_steps": [[of_ask, of_rows]]}, answer, INFERRED)["answer_exact"] == exact


@pytest.mark.parametrize(("rows", "exact"), [(100, 0.0), (101, None)])
def test_more_than_a_hundred_rows_are_not_used_as_reference(rows: int, exact: float | None) -> None:
    output = json.dumps([{"name": f"bay {number}"} for number in range(rows)])
    step = {"name": "sparql_query", "output": output, "required_columns": ["name"]}
    assert evaluated({"reference_steps": [[step]]}, "There are many.", INFERRED).get("answer_exact") == exact


def test_inference_is_off_by_default_and_question_keys_override_it() -> None:
    step = {"name": "sparql_query", "output": TABLE["output"], "required_columns": ["bay"]}
    question = {"reference_steps": [[step]]}
    assert "answer_exact" not in evaluated(question, "T3")
    assert evaluated({**question, "reference_numbers": [420]}, "420", INFERRED)["answer_exact"] == 1


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("reference_entities", [], "reference_entities"),
        ("reference_entities", "T3", "reference_entities"),
        ("reference_numbers", [{"unit": "kV"}], "value"),
        ("reference_numbers", [True], "reference_numbers"),
        ("reference_boolean", "yes", "reference_boolean"),
        ("reference_order", ["T3"], "reference_order"),
        ("reference_dates", [""], "reference_dates"),
    ],
)
def test_invalid_values_are_rejected_with_their_place(tmp_path: Path, key: str, value: Any, problem: str) -> None:
    question = {"id": "q", "question_text": "?", key: value}
    path = tmp_path / "qa.yaml"
    path.write_text(json.dumps([{"template_id": "t", "questions": [question]}]))
    with pytest.raises(DatasetError, match=problem):
        load_dataset(path)
