"""Scoring some of the questions: by template, by id, or only those with a response."""

from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.errors import DatasetError

STEP = {"name": "s", "args": {}, "id": "c", "status": "success", "output": "1"}


def template(template_id: str, *ids: str) -> dict[str, Any]:
    step = {"name": "s", "output": "1"}
    questions = [{"id": each, "question_text": f"{each}?", "reference_steps": [[step]]} for each in ids]
    return {"template_id": template_id, "questions": questions}


DATASET: list[Any] = [template("lines", "l1", "l2", "l3"), template("nodes", "n1", "n2")]


def responses_to(*ids: str, **keys: Any) -> list[Any]:
    return [{"question_id": each, "actual_steps": [STEP], **keys} for each in ids]


def ids_of(run: Any) -> list[str]:
    return [result["question_id"] for result in run.results]


# --- external responses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ids", "selection"),
    [
        ({}, ["l1", "l2", "l3", "n1", "n2"], None),
        ({"answered_only": False}, ["l1", "l2", "l3", "n1", "n2"], None),
        ({"template_ids": ["nodes"]}, ["n1", "n2"], {"template_ids": ["nodes"]}),
        ({"question_ids": "l3"}, ["l3"], {"question_ids": ["l3"]}),
        ({"answered_only": True}, ["l1", "n2"], {"answered_only": True}),
        (
            {"template_ids": ["nodes"], "answered_only": True},
            ["n2"],
            {"template_ids": ["nodes"], "answered_only": True},
        ),
    ],
)
def test_only_selected_questions_are_scored_aggregated_and_recorded(
    tmp_path: Path, options: dict[str, Any], ids: list[str], selection: dict[str, Any] | None
) -> None:
    run = score_responses(DATASET, responses_to("l1", "n2"), output_dir=tmp_path / "run", **options)
    assert ids_of(run) == ids
    assert run.aggregates["totals"]["number_of_samples"] == len(ids)
    assert record_in(tmp_path / "run").get("selection") == selection
    assert list(record_in(tmp_path / "run")["questions"]) == ids
    assert ids_of(score_responses(DATASET, responses_to("l1", "n2"), **options)) == ids


def test_number_of_questions_with_a_response_is_reported() -> None:
    run = score_responses(DATASET, responses_to("l1", "n2"), answered_only=True)
    assert list(run.notes) == ["2 of 5 questions have a response; only these are scored"]
    assert run.aggregates["micro"]["number_of_error_samples"] == 0
    assert "2 of 5 questions have a response; only these are scored" in run._repr_html_()
    in_template = score_responses(DATASET, responses_to("l1", "n2"), template_ids="lines", answered_only=True)
    assert list(in_template.notes) == ["1 of 3 questions has a response; only it is scored"]
    assert list(score_responses(DATASET, responses_to("l1")).notes) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template_ids": ["node"]}, "unknown template node. Did you mean nodes?"),
        ({"question_ids": ["l4", "zz"]}, r"unknown question l4 \(and 1 more that were named\). Did you mean l3"),
        ({"template_ids": ["nodes"], "question_ids": ["l1"]}, "no question is left by the selection"),
        ({"template_ids": ["nodes"], "answered_only": True}, "none of 2 questions has a response. Check that the"),
    ],
)
def test_empty_selection_is_one_error_and_writes_nothing(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        score_responses(DATASET, responses_to("l1"), output_dir=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


# --- most questions without a response -------------------------------------------------------------------------------

MANY: list[Any] = [template(f"t{number}", f"q{number}") for number in range(24)]


def test_many_questions_without_a_response_are_one_warning_with_a_hint() -> None:
    assert list(score_responses(MANY, responses_to("q0", "q3")).warnings) == [
        "22 of 24 questions have no response and count as failed: q1, q2, q4 and 19 more; "
        "--answered-only (answered_only=True) scores only the others"
    ]
    assert list(score_responses(MANY, responses_to("q0", "q3"), answered_only=True).warnings) == []


# --- a run's folder --------------------------------------------------------------------------------------------------


def test_rescored_folder_keeps_its_selection(tmp_path: Path) -> None:
    score_responses(DATASET, responses_to("l1", "n2"), output_dir=tmp_path / "run", answered_only=True)
    more: list[Any] = [*DATASET, template("new", "x")]
    for _ in range(2):
        run = score_run(tmp_path / "run", dataset=more)
        assert ids_of(run) == ["l1", "n2"]
        record = record_in(tmp_path / "run")
        assert (record["selection"], "scored_selection" in record) == ({"answered_only": True}, False)


def test_selection_of_a_rescoring_applies_to_it_only(tmp_path: Path) -> None:
    score_responses(DATASET, responses_to("l1", "n2"), output_dir=tmp_path / "run")
    run = score_run(tmp_path / "run", dataset=DATASET, template_ids=["nodes"])
    assert ids_of(run) == ["n1", "n2"]
    assert record_in(tmp_path / "run")["scored_selection"] == {"template_ids": ["nodes"]}
    assert list(run.notes) == [
        "2 questions are scored of the 5 of the run, and its results, aggregates and report are of these alone; "
        "score it without a selection for all of them"
    ]
    again = score_run(tmp_path / "run", dataset=DATASET)
    assert (len(again.results), list(again.notes)) == (5, [])
    assert "scored_selection" not in record_in(tmp_path / "run")


def test_only_answered_questions_of_a_folder_are_scored_on_request(tmp_path: Path) -> None:
    score_responses(DATASET, responses_to("l1", "n2"), output_dir=tmp_path / "run")
    run = score_run(tmp_path / "run", dataset=DATASET, answered_only=True)
    assert ids_of(run) == ["l1", "n2"]
    assert list(run.notes) == ["2 of 5 questions have a response; only these are scored"]


def test_partly_rescored_run_keeps_its_questions(tmp_path: Path) -> None:
    run_benchmark(lambda question: "1", DATASET, output_dir=tmp_path / "run", template_ids=["lines"], limit=2)
    asked = record_in(tmp_path / "run")
    run = score_run(tmp_path / "run", dataset=DATASET, question_ids=["l2", "l3"])
    assert ids_of(run) == ["l2"]
    record = record_in(tmp_path / "run")
    assert (record["selection"], record["questions"]) == (asked["selection"], asked["questions"])
    assert not [text for text in run.warnings if "no longer in the dataset" in text]
    assert ids_of(score_run(tmp_path / "run", dataset=DATASET)) == ["l1", "l2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question_ids": ["n1"]}, "the run has none of the selected questions"),
        ({"question_ids": ["l9"]}, "unknown question l9. Did you mean l"),
    ],
)
def test_questions_outside_the_run_cannot_be_scored(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    run_benchmark(lambda question: "1", DATASET, output_dir=tmp_path / "run", template_ids=["lines"])
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.name != ".lock"}
    with pytest.raises(DatasetError, match=message):
        score_run(tmp_path / "run", dataset=DATASET, **options)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.name != ".lock"} == before
