"""Scoring an imported dataset with responses built from its own gold results."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.qald_samples import in_language, qald

from graphrag_eval_lc import import_dataset, load_dataset, run_evaluation, validate_dataset
from graphrag_eval_lc.run_folder import write_data

QUESTIONS = 394
Results = dict[str, Any]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qald")
    (folder / "qald.json").write_text(json.dumps(qald(QUESTIONS)), encoding="utf-8")
    write_data(folder / "qa.yaml", import_dataset(folder / "qald.json"))
    return folder / "qa.yaml"


def shuffled_with_an_extra_column(results: Results, chance: random.Random) -> Results:
    if "boolean" in results:
        return results
    names = {name: f"v{index}" for index, name in enumerate(results["head"]["vars"])}
    rows = [{names[name]: cell for name, cell in row.items()} for row in results["results"]["bindings"]]
    for index, row in enumerate(rows):
        row["note"] = in_language(f"note {index % 3}", "en")
    chance.shuffle(rows)
    columns = [*names.values(), "note"]
    chance.shuffle(columns)
    return {"head": {"vars": columns}, "results": {"bindings": rows}}


def without_a_row(results: Results, chance: random.Random) -> Results:
    if "boolean" not in results:
        rows = results["results"]["bindings"]
        del rows[chance.randrange(len(rows))]
    return results


def scores(dataset: Path, change: Callable[[Results, random.Random], Results]) -> dict[str, tuple[bool, float]]:
    """Return, for each question, whether it is a yes/no question and its score."""
    chance, responses, is_yes_no = random.Random(3), [], {}
    templates = load_dataset(dataset)
    for template in templates:
        for question in template["questions"]:
            [[step]] = question["reference_steps"]
            results = json.loads(step["output"])
            is_yes_no[question["id"]] = "boolean" in results
            output = json.dumps(change(copy.deepcopy(results), chance))
            actual = {"name": step["name"], "args": step["args"], "id": "c", "status": "success", "output": output}
            responses.append({"question_id": question["id"], "actual_steps": [actual]})
    found = run_evaluation(templates, responses)
    return {result["question_id"]: (is_yes_no[result["question_id"]], result["steps_score"]) for result in found}


def test_renamed_columns_shuffled_rows_and_an_extra_column_score_1(dataset: Path) -> None:
    found = scores(dataset, shuffled_with_an_extra_column)
    assert len(found) == QUESTIONS
    assert [name for name, (_, score) in found.items() if score != 1.0] == []


@pytest.mark.full
def test_with_a_row_removed_only_yes_no_questions_score_1(dataset: Path) -> None:
    found = scores(dataset, without_a_row)
    assert len(found) == QUESTIONS
    assert {score for is_ask, score in found.values() if is_ask} == {1.0}
    assert {score for is_ask, score in found.values() if not is_ask} == {0.0}


def test_imported_dataset_validates_cleanly(dataset: Path) -> None:
    assert validate_dataset(dataset) == []


def test_questions_are_grouped_into_templates_by_answer_type(dataset: Path) -> None:
    counts = {template["template_id"]: len(template["questions"]) for template in load_dataset(dataset)}
    assert counts.keys() == {"resource", "boolean", "number", "table", "string", "date"}
    assert sum(counts.values()) == QUESTIONS
