"""Applying readers' notes on a report: to the dataset, and to the judge's agreement."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import load_dataset, run_evaluation
from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.judges.answer_tables import labels_in, read_table
from graphrag_eval_lc.report.question_notes import labels_csv, noted_dataset, notes_summary, read_notes

DATASET = """\
# Made in spring.
- template_id: cities
  questions:
    - id: q1  # the first
      question_text: Which city?
      reference_answer: Oslo
      reference_steps:
        - - name: find
            output: oslo  # by hand
            output_media_type: text/plain
    - id: q2
      question_text: Which rows?
      reference_steps:
        - - name: sparql_query
            args: {query: "SELECT ?c { ?c a ex:City }"}
            output: '{"head":{"vars":["c"]},"results":{"bindings":[{"c":{"type":"uri","value":"urn:a"}}]}}'
"""
ROWS = '{"head": {"vars": ["c"]}, "results": {"bindings": [{"c": {"type": "uri", "value": "urn:b"}}]}}'
STEPS: dict[str, list[dict[str, Any]]] = {
    "q1": [
        {"name": "now", "id": "c1", "status": "success", "output": "today"},
        {"name": "find", "id": "c2", "status": "success", "output": "bergen"},
        {"name": "find", "id": "c3", "status": "error", "error": "away"},
    ],
    "q2": [{"name": "sparql_query", "id": "c4", "args": {"query": "…"}, "status": "success", "output": ROWS}],
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    file = tmp_path / "qa.yaml"
    file.write_text(DATASET)
    return file


@pytest.fixture
def results(dataset: Path) -> list[Any]:
    responses: Any = [
        {"question_id": key, "status": "success", "actual_answer": "Bergen", "actual_steps": steps}
        for key, steps in STEPS.items()
    ]
    return [{**result, "answer_f1": 0.9} for result in run_evaluation(load_dataset(dataset), responses)]


def notes_of(tmp_path: Path, *notes: dict[str, Any], **more: Any) -> Any:
    file = tmp_path / "notes.json"
    keyed = [{"key": note["question_id"], **note} for note in notes]
    file.write_text(json.dumps({"format_version": 1, "kind": "notes", "run_id": "r1", "notes": keyed, **more}))
    return read_notes(file)


def accepted(question: str, actual: int, step: int = 0) -> dict[str, Any]:
    return {"question_id": question, "accepted": [{"group": 0, "step": step, "actual": actual}]}


def test_notes_are_listed_with_dataset_lines(tmp_path: Path, dataset: Path, results: list[Any]) -> None:
    notes = notes_of(
        tmp_path,
        {"question_id": "q2", "judge": "wrong"},
        {"question_id": "q1", "reference": "wrong", "note": "Oslo moved\nsince"},
        {"question_id": "gone", "note": "where?"},
    )
    found = noted_dataset(notes, dataset, results)
    assert [(place.line, place.text) for place in found.places] == [
        (4, "q1: the reference is wrong: Oslo moved since"),
        (11, "q2: the judge is wrong"),
        (None, "gone: the dataset has no such question"),
    ]
    assert notes_summary(found, notes, is_written=False) == "3 notes: 1 reference is wrong, 1 judge's verdict is wrong."


def test_accepted_output_replaces_the_reference_and_keeps_comments(
    tmp_path: Path, dataset: Path, results: list[Any]
) -> None:
    notes = notes_of(tmp_path, {**accepted("q1", 1), "reference": "wrong"}, accepted("q2", 0))
    found = noted_dataset(notes, dataset, results)
    assert [(place.line, place.text) for place in found.places][1::2] == [
        (9, "q1, group 1 step 1: the output of c2 is accepted"),
        (16, "q2, group 1 step 1: the output of c4 is accepted"),
    ]
    text = found.new_text()
    assert "# Made in spring." in text
    assert "id: q1  # the first" in text
    assert 'output: "bergen"  # by hand' in text
    first, second = (question["reference_steps"][0][0] for question in yaml.safe_load(text)[0]["questions"])
    assert (first["output_source"]["run"], first["output_source"]["step"]) == ("r1", "c2")
    assert json.loads(second["output"]) == json.loads(ROWS)
    assert second["output"].count("\n") == 2  # one line per row
    assert notes_summary(found, notes, is_written=True).endswith("; 2 outputs replaced.")


REFUSED = {
    "not replaced: the call has no complete output": (accepted("q1", 2), {}),
    "not replaced: the run has no such step": (accepted("q1", 9), {}),
    "not replaced: the dataset has no output here": (accepted("q1", 1), {"            output: oslo  # by hand\n": ""}),
    "not replaced: the reference changed since the run": (accepted("q1", 1), {"output: oslo": "output: Oslo"}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_output_that_cannot_be_accepted_is_reported_and_unchanged(
    why: str, tmp_path: Path, dataset: Path, results: list[Any]
) -> None:
    note, changes = REFUSED[why]
    for old, new in changes.items():
        dataset.write_text(dataset.read_text().replace(old, new))
    found = noted_dataset(notes_of(tmp_path, note), dataset, results)
    assert found.places[1].text == f"q1, group 1 step 1: {why}"
    assert found.outputs == []
    assert found.new_text() == dataset.read_text()


def test_output_without_a_required_column_is_not_accepted(tmp_path: Path, dataset: Path) -> None:
    step = "        - - name: sparql_query\n"
    dataset.write_text(dataset.read_text().replace(step, f"{step}            required_columns: [c]\n"))
    renamed = [{**STEPS["q2"][0], "output": ROWS.replace('"c"', '"city"')}]
    results = run_evaluation(load_dataset(dataset), [{"question_id": "q2", "actual_steps": renamed}])  # type: ignore[list-item]
    found = noted_dataset(notes_of(tmp_path, accepted("q2", 0)), dataset, results)
    what = "not replaced: the output has no column c, which required_columns names (It has: city)"
    assert (found.places[1].text, found.outputs) == (f"q2, group 1 step 1: {what}", [])


def test_note_on_a_repeat_refers_to_its_steps(tmp_path: Path, dataset: Path, results: list[Any]) -> None:
    second = {**results[0], "repeat": 2, "actual_steps": [{"name": "find", "status": "success", "output": "narvik"}]}
    notes = notes_of(tmp_path, {**accepted("q1", 0), "key": "q1 #2"})
    assert '"narvik"' in noted_dataset(notes, dataset, [*results, second]).new_text()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("narvik", "not replaced: another repeat's output is accepted"),
        ("bergen", "accepted already: another repeat's output is accepted"),
        ("the key is ***", "not replaced: a part of the output is masked"),
    ],
)
def test_only_one_output_per_step_is_accepted(
    output: str, text: str, tmp_path: Path, dataset: Path, results: list[Any]
) -> None:
    second = {**results[0], "repeat": 2, "actual_steps": [{"name": "find", "status": "success", "output": output}]}
    notes = notes_of(tmp_path, accepted("q1", 1), {**accepted("q1", 0), "key": "q1 #2"})
    found = noted_dataset(notes, dataset, [*results, second])
    assert found.places[-1].text == f"q1, group 1 step 1: {text}"
    assert 'output: "bergen"  # by hand' in found.new_text()


@pytest.mark.parametrize("rows", [None, []])
def test_malformed_accepted_rows_are_kept_as_text(rows: Any, tmp_path: Path, dataset: Path, results: list[Any]) -> None:
    output = json.dumps({"head": {"vars": ["c"]}, "results": rows})
    steps = [{"name": "find", "status": "success", "output": output}]
    notes = notes_of(tmp_path, accepted("q1", 0))
    new = noted_dataset(notes, dataset, [{**results[0], "actual_steps": steps}]).new_text()
    assert yaml.safe_load(new)[0]["questions"][0]["reference_steps"][0][0]["output"] == output


def test_labels_are_used_for_the_agreement_with_the_judge(tmp_path: Path, results: list[Any]) -> None:
    notes = notes_of(
        tmp_path,
        {"question_id": "q1", "judge": "wrong", "note": 'not, "so"'},
        {"question_id": "q2", "judge": "right"},
    )
    text, count = labels_csv(notes, [*results, {"question_id": "q3", "answer_f1": 0.2}])
    assert count == 2
    file = tmp_path / "labels.csv"
    file.write_text(text)
    assert labels_in(read_table(file), "Label") == [False, True]
    assert next(csv.DictReader(text.splitlines()))["Note"] == 'not, "so"'
    assert labels_csv(notes, [{"question_id": "q1"}])[1] == 0  # nothing was judged


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "run", "notes": []}', '{"kind": "notes", "notes": [{"key": 1}]}'])
def test_other_file_is_rejected(text: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    file.write_text(text)
    with pytest.raises(OptionError, match="not the notes of a report"):
        read_notes(file)


def test_dataset_in_another_format_is_rejected(tmp_path: Path, results: list[Any]) -> None:
    file = tmp_path / "qa.json"
    file.write_text("{}")
    with pytest.raises(DatasetError, match="not a list of templates"):
        noted_dataset(notes_of(tmp_path), file, results)
