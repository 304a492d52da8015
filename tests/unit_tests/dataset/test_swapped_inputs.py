"""Passing responses where a dataset is expected, or the reverse, is recognised by every reader."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_dataset, load_responses, run_evaluation, score_responses, validate_dataset
from graphrag_eval_lc.dataset.loading import mistaken_for_dataset, mistaken_for_responses
from graphrag_eval_lc.errors import DatasetError, ResponsesError

DATASET: Any = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?"}]}]
RESPONSE: Any = {"question_id": "q", "actual_answer": "2"}
ORDER = "the dataset comes first: score DATASET RESPONSES."


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.json").write_text(json.dumps(DATASET))
    Path("responses.jsonl").write_text(json.dumps(RESPONSE))


@pytest.mark.parametrize(
    "swapped",
    [
        lambda: run_evaluation([RESPONSE], DATASET),
        lambda: run_evaluation({"q": {"actual_answer": "2"}}, DATASET),  # type: ignore[arg-type]
        lambda: score_responses("responses.jsonl", "qa.json"),
        lambda: score_responses([RESPONSE], DATASET),
        lambda: load_dataset("responses.jsonl"),
    ],
)
@pytest.mark.usefixtures("files")
def test_responses_passed_as_a_dataset_are_recognised(swapped: Callable[[], object]) -> None:
    with pytest.raises(DatasetError, match="these are responses, not a reference dataset") as caught:
        swapped()
    assert str(caught.value).endswith(ORDER)


@pytest.mark.parametrize("read", [lambda: run_evaluation(DATASET, DATASET), lambda: load_responses("qa.json")])
@pytest.mark.usefixtures("files")
def test_dataset_passed_as_responses_is_recognised(read: Callable[[], object]) -> None:
    with pytest.raises(ResponsesError, match="this is a reference dataset, not responses") as caught:
        read()
    assert str(caught.value).endswith(ORDER)


@pytest.mark.usefixtures("files")
def test_validate_reports_only_the_mix_up() -> None:
    (dataset_problems,) = validate_dataset("responses.jsonl")
    (responses_problems,) = validate_dataset("qa.json", "qa.json")
    assert dataset_problems.what == "these are responses, not a reference dataset"
    assert responses_problems.what == "this is a reference dataset, not responses"


def test_results_passed_as_a_dataset_are_recognised() -> None:
    found = mistaken_for_dataset([{"template_id": "t", "question_id": "q", "status": "success"}])
    assert found is not None
    assert found.what == "these are results, not a reference dataset"


def test_older_keys_are_recognised_with_their_current_names() -> None:
    question = {"id": "q", "nl_question": "1 + 1?", "expected_steps": []}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    hint = "Rename nl_question to question_text, expected_steps to reference_steps, in the whole file."
    with pytest.raises(DatasetError) as caught:
        run_evaluation(dataset, [])
    assert caught.value.hint == hint
    assert [problem.hint for problem in validate_dataset(dataset) if problem.key is None] == [hint]
    assert mistaken_for_dataset([{"nl_question": "1 + 1?", "sparql": "ASK {}"}]) is None  # records to import


@pytest.mark.parametrize("values", [DATASET, [], {}, None, "qa.yaml", [None], [{"template_id": "t"}], DATASET[0]])
def test_datasets_and_unknown_records_are_left_to_the_format_check(values: Any) -> None:
    assert mistaken_for_dataset(values) is None


@pytest.mark.parametrize("values", [[RESPONSE], [], {}, None, [3], [{"question_id": "q", "template_id": "t"}]])
def test_responses_and_unknown_records_are_left_to_the_format_check(values: Any) -> None:
    assert mistaken_for_responses(values) is None


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ({"question": "Why?"}, "Rename question to question_text."),
        ({"text": "Why?"}, "Rename text to question_text."),
        ({"questiontext": "Why?"}, "Rename questiontext to question_text."),
        ({"reference_answer": "So."}, "Add question_text."),
    ],
)
def test_common_other_name_of_a_key_is_recognised(question: dict[str, str], hint: str) -> None:
    with pytest.raises(DatasetError) as caught:
        run_evaluation([{"template_id": "t", "questions": [{"id": "q7", **question}]}], {})  # type: ignore[list-item]
    assert (caught.value.question_id, caught.value.hint) == ("q7", hint)
