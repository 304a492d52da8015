import io
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from graphrag_eval_lc import (
    GraphRAGEvalWarning,
    load_dataset,
    load_responses,
    run_evaluation,
    score_responses,
    score_run,
    validate_dataset,
)
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.dataset.ids import nearest_id, unknown_questions_warning
from graphrag_eval_lc.dataset.loading import read_dataset
from graphrag_eval_lc.dataset.validation import check_dataset
from graphrag_eval_lc.errors import DatasetError, ResponsesError

CHANGED = {
    "0123": "83",
    "1_000": "1000",
    "12:30:45": "45045",
    "0x1F": "31",
    "0b11": "3",
    "+5": "5",
    "-0": "0",
    "-012": "-10",
}


def written(folder: Path, *ids: str, template_id: str = "t") -> Path:
    questions = "".join(f"  - {{id: {each}, question_text: Q{number}}}\n" for number, each in enumerate(ids))
    path = folder / "qa.yaml"
    path.write_text(f"- template_id: {template_id}\n  questions:\n{questions}")
    return path


@pytest.mark.parametrize(("identifier", "read"), CHANGED.items())
def test_id_changed_by_yaml_is_reported_with_line_and_quotes(tmp_path: Path, identifier: str, read: str) -> None:
    path = written(tmp_path, "q0", identifier)
    with pytest.warns(GraphRAGEvalWarning) as caught:
        templates = load_dataset(path)
    assert templates[0]["questions"][1]["id"] == read  # type: ignore[index]
    assert [str(warning.message) for warning in caught] == [
        f"{path}: YAML reads the id {identifier} as {read} (line 4). To keep what is written, put it in quotes: "
        f"'{identifier}'."
    ]
    (problem,) = validate_dataset(path)
    assert (problem.severity, problem.line, problem.what) == ("warning", 4, f"YAML reads the id {identifier} as {read}")
    assert problem.hint == f"Put it in quotes: '{identifier}'."


@pytest.mark.parametrize("identifier", ["7", "-5", "1e3", "2024-01-01", "'0123'", '"0123"', "!!str 0123", "0o17", "q"])
def test_id_unchanged_by_yaml_is_not_reported(tmp_path: Path, identifier: str) -> None:
    path = written(tmp_path, identifier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset(path)
    assert validate_dataset(path) == []


def test_id_that_yaml_reads_as_another_type_is_an_error(tmp_path: Path) -> None:
    for identifier, read in {"yes": "True", "on": "True", "null": "None", "~": "None", "1.50": "1.5"}.items():
        with pytest.raises(DatasetError, match=f"YAML reads {identifier} as {read}, which is not a text"):
            load_dataset(written(tmp_path, identifier))


@given(st.from_regex(r"[-+]?[0-9][0-9_:xb]{0,5}", fullmatch=True).filter(lambda text: not text.endswith(":")))
def test_numeric_id_is_reported_exactly_if_yaml_changes_it(identifier: str) -> None:
    text = f"- template_id: t\n  questions:\n  - question_text: Why?\n    id: {identifier}\n"
    try:
        (template,) = yaml.load(text, Loader=yaml.SafeLoader)
    except ValueError:  # PyYAML reads "0b_" as a number
        reject()
    read = template["questions"][0].get("id")
    assume(isinstance(read, int | str))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_dataset(io.StringIO(text))
    assert len(caught) == (str(read) != identifier)


def test_template_id_is_reported_too(tmp_path: Path) -> None:
    (note,) = read_dataset(written(tmp_path, "q", template_id="0123")).notes
    assert "YAML reads the id 0123 as 83 (line 1)" in note


def test_many_ids_share_one_note(tmp_path: Path) -> None:
    (note,) = read_dataset(written(tmp_path, *(f"0{number}" for number in range(10, 18)))).notes
    assert "YAML reads ids 010 as 8 (line 3), 011 as 9 (line 4), 012 as 10 (line 5) and 5 more ids. To keep" in note


def test_ids_that_collide_once_yaml_has_read_them_are_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, "83", "'84'", "0123")
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    assert str(caught.value) == (
        f"{path}, line 5: two questions have the id 83, as YAML reads the id 0123 as 83. Put it in quotes: '0123'."
    )
    assert [(each.severity, each.line) for each in validate_dataset(path)] == [("warning", 5), ("error", 5)]


def test_response_to_the_id_as_written_is_rejected_with_the_fix(tmp_path: Path) -> None:
    path = written(tmp_path, "0123")
    with pytest.raises(DatasetError) as caught:
        score_responses(path, [{"question_id": "0123", "actual_answer": "x"}])
    assert str(caught.value) == (
        f"{path}, line 3: YAML reads the id 0123 as 83, and a response is to the question 0123. "
        "Put it in quotes: '0123'."
    )
    *_, problem, _ = validate_dataset(path, [{"question_id": "0123"}])
    assert problem.hint == "YAML reads that id of the dataset as 83. Put it in quotes: '0123'."


def test_response_to_the_id_as_read_is_scored_with_a_warning(tmp_path: Path) -> None:
    run = score_responses(written(tmp_path, "0123"), [{"question_id": "83", "actual_answer": "x"}])
    assert [result["status"] for result in run.results] == ["success"]
    (warning,) = run.warnings
    assert "YAML reads the id 0123 as 83" in warning


@pytest.mark.parametrize("text", ["- {question_id: 0123, actual_answer: x}\n", "0123: {actual_answer: x}\n"])
def test_response_id_changed_by_yaml_is_rejected_if_the_question_quotes_it(tmp_path: Path, text: str) -> None:
    responses = tmp_path / "responses.yaml"
    responses.write_text(text)
    with pytest.warns(GraphRAGEvalWarning, match="YAML reads the id 0123 as 83"):
        assert list(load_responses(responses)) == ["83"]
    with pytest.raises(ResponsesError) as caught:
        score_responses(written(tmp_path, "'0123'"), responses)
    assert str(caught.value) == (
        f"{responses}, line 1: YAML reads the id 0123 as 83, and the dataset has a question 0123. "
        "Put it in quotes: '0123'."
    )
    both: Any = validate_dataset(written(tmp_path, "'0123'"), responses)
    assert [(each.severity, each.line) for each in both] == [("warning", 1), ("error", 1), ("error", 3)]
    assert both[1].hint == "The dataset has 0123, as it is written here. Check its question_id."


def test_note_counts_all_warnings_of_validate(tmp_path: Path) -> None:
    path = written(tmp_path, "0123")
    path.write_text(path.read_text() + "  - {id: q, question_text: Two?, reference_answer: 2}\n")
    assert [each.severity for each in validate_dataset(path)] == ["warning", "warning"]
    assert check_dataset(path, EvaluationConfig()).loaded.notes[-1].startswith("2 warnings in the dataset: ")


DATASET = [{"template_id": "t", "questions": [{"id": f"q-{n}", "question_text": f"Q{n}?"} for n in (1, 2)]}]
ONE = "1 response is to a question that the dataset does not have, and is not scored: Q-1 (perhaps q-1)"


def test_first_unknown_ids_are_named_and_the_rest_counted() -> None:
    assert unknown_questions_warning([f"x{n}" for n in range(5)], ["a"]) == (
        "5 responses are to questions that the dataset does not have, and are not scored: x0, x1, x2 and 2 more"
    )


@pytest.mark.parametrize(
    ("unknown", "nearest"), [("Q-1", "q-1"), ("q-1 ", "q-1"), ("q_2", None), ("weather", None), ("x" * 10_000, None)]
)
def test_nearest_id_is_suggested_only_if_similar(unknown: str, nearest: str | None) -> None:
    assert nearest_id(unknown, ["q-1", "q-2"]) == nearest


def test_evaluation_warns_of_responses_without_a_question() -> None:
    response = {"question_id": "Q-1", "actual_answer": "x"}
    for responses in ([response], {"Q-1": {"actual_answer": "x"}}):
        with pytest.warns(GraphRAGEvalWarning) as caught:
            results = run_evaluation(DATASET, responses)  # type: ignore[arg-type]
        assert [str(each.message) for each in caught] == [ONE]
        assert [result["status"] for result in results] == ["error", "error"]


def test_scoring_and_rescoring_warn_of_responses_without_a_question(tmp_path: object) -> None:
    run = score_responses(DATASET, [{"question_id": "Q-1"}], output_dir=f"{tmp_path}/run")
    assert run.warnings == [ONE]
    assert score_run(f"{tmp_path}/run", dataset=DATASET).warnings == [ONE]
