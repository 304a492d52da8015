"""Drafting a dataset in the original's order, from responses and from run folders."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import draft_dataset, run_benchmark, run_evaluation, score_responses, validate_dataset
from graphrag_eval_lc.dataset.drafting import draft
from graphrag_eval_lc.errors import ConfigError, DatasetError, ResponsesError, RunFolderError

DATASET: list[Any] = [
    {
        "template_id": "where",
        "level": 1,
        "questions": [
            {"id": "b", "question_text": "Where is B?", "zone": "NO1", "reference_answer": "There."},
            {"id": "a", "question_text": "Where is A?"},
        ],
    },
    {"template_id": "who", "questions": [{"id": "c", "question_text": "Who runs C?"}]},
]


def response(identifier: str, answer: str = "Here.", **more: Any) -> dict[str, Any]:
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "urn:a"}
    return {"question_id": identifier, "status": "success", "actual_answer": answer, "actual_steps": [step], **more}


def shape(templates: Any) -> dict[str, list[str]]:
    return {template["template_id"]: [question["id"] for question in template["questions"]] for template in templates}


def write_lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def run_folder(path: Path, dataset: Any = DATASET, **options: Any) -> Path:
    run_benchmark(lambda question: f"answer to {question}", dataset, output_dir=path, progress="off", **options)
    return path


# --- the original dataset --------------------------------------------------------------------------------------------


def test_templates_questions_and_their_keys_keep_their_order() -> None:
    responses: Any = [response("c"), response("a"), response("b")]
    drafted: Any = draft_dataset(responses, DATASET)
    assert shape(drafted) == {"where": ["b", "a"], "who": ["c"]}
    assert (drafted[0]["level"], drafted[0]["draft"]) == (1, True)
    question = drafted[0]["questions"][0]
    assert list(question) == ["id", "question_text", "draft", "zone", "reference_answer", "reference_steps"]
    assert question["reference_answer"] == "Here."


def test_existing_references_can_be_kept() -> None:
    responses: Any = [response("b"), response("a")]
    drafted: Any = draft_dataset(responses, DATASET, keep_references=True)
    assert shape(drafted) == {"where": ["b", "a"], "who": ["c"]}
    assert drafted[0]["questions"][0]["reference_answer"] == "There."
    assert [question.get("draft") for question in drafted[0]["questions"]] == [True, True]
    whole = {key: value for key, value in drafted[0]["questions"][0].items() if key != "draft"}
    complete: Any = [{"template_id": "t", "questions": [whole]}]
    assert draft_dataset(responses[:1], complete, keep_references=True) == complete


def test_references_found_only_in_results_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "qa.json"
    steps = [[{"name": "add", "output": "3"}]]
    question = {"id": "q", "question_text": "?", "reference_answer": "There.", "reference_steps": steps}
    path.write_text(json.dumps([{"template_id": "t", "questions": [question]}]))
    folder = run_folder(tmp_path / "run", path)
    path.unlink()
    [drafted] = draft_dataset(folder, keep_references=True)[0]["questions"]
    assert (drafted["reference_answer"], drafted["reference_steps"]) == ("There.", steps)


def test_keeping_references_needs_a_dataset() -> None:
    with pytest.raises(DatasetError, match="the dataset whose references should be kept is missing"):
        draft_dataset([response("a")], keep_references=True)  # type: ignore[list-item]


def test_questions_left_out_are_noted() -> None:
    responses: Any = [
        response("a", status="error", error="away"),
        response("c", question_text="Who  runs\nC?"),
        response("b", question_text="Where was B?"),
        response("z", question_text="Z?"),
    ]
    drafted: Any = draft(responses, DATASET)
    assert shape(drafted.templates) == {"where": ["b"], "who": ["c"], "draft": ["z"]}
    assert drafted.templates[0]["questions"][0]["question_text"] == "Where was B?"
    assert drafted.notes == (
        "Asked with another text than the dataset has now, which the draft has (1 question): b.",
        "Failed, and left out (1 question): a.",
        "Not in the dataset, and now in the template draft (1 question): z.",
    )
    assert draft(responses[1:2], DATASET).notes == ("Without a response, and left out (2 questions): b, a.",)


def test_arguments_are_not_modified() -> None:
    before = json.dumps(DATASET)
    responses: Any = [response("a")]
    for keep in (False, True):
        draft_dataset(responses, DATASET, keep_references=keep)
    assert json.dumps(DATASET) == before


def test_draft_can_be_drafted_again() -> None:
    responses: Any = [response("a", question_text="A?")]
    draft = draft_dataset(responses)
    assert draft_dataset([*responses, response("z")], draft)[0]["questions"][-1]["id"] == "z"  # type: ignore[index]


# --- one response for each question ----------------------------------------------------------------------------------


def test_last_line_per_key_and_first_successful_repeat_are_used(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "responses.jsonl",
        response("a", "of the third", repeat=3),
        response("a", "cut off", repeat=2),
        response("a", status="error", repeat=1),
        response("a", "of the second", repeat=2),
        response("b", "first"),
        response("b", "last"),
    )
    drafted: Any = draft_dataset(path)
    answers = {question["id"]: question["reference_answer"] for question in drafted[0]["questions"]}
    assert answers == {"a": "of the second", "b": "last"}


# --- run folders -----------------------------------------------------------------------------------------------------


def test_dataset_and_config_come_from_the_run(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(yaml.safe_dump(DATASET, sort_keys=False))
    config = {"steps": {"names": {"lookup": "find"}}}
    responses: Any = [response(identifier) for identifier in "cab"]
    score_responses(tmp_path / "qa.yaml", responses, output_dir=tmp_path / "run", config=config)
    drafted: Any = draft(tmp_path / "run")
    assert drafted.notes == ()
    assert shape(drafted.templates) == {"where": ["b", "a"], "who": ["c"]}
    assert drafted.templates[0]["questions"][0]["reference_steps"][0][0]["name"] == "find"
    other: Any = draft_dataset(tmp_path / "run", config={})
    assert other[0]["questions"][0]["reference_steps"][0][0]["name"] == "lookup"


def test_repeats_of_a_run_are_one_question(tmp_path: Path) -> None:
    assert shape(draft_dataset(run_folder(tmp_path / "run", repeats=2))) == {"where": ["b", "a"], "who": ["c"]}


@pytest.mark.parametrize("is_named", [True, False])
def test_templates_come_from_results_if_the_dataset_is_lost(tmp_path: Path, is_named: bool) -> None:
    path = tmp_path / "qa.json"
    path.write_text(json.dumps(DATASET))
    folder = run_folder(tmp_path / "run", path if is_named else DATASET)
    path.unlink()
    drafted = draft(folder)
    assert shape(drafted.templates) == {"where": ["b", "a"], "who": ["c"]}
    [note] = drafted.notes
    assert note.endswith("the templates and their order are those of its results. --dataset FILE names another.")
    (folder / "results.jsonl").unlink()
    drafted = draft(folder)
    assert list(shape(drafted.templates)) == ["draft"]
    assert drafted.notes[0].endswith("all questions are in one template. --dataset FILE names it.")
    assert shape(draft_dataset(folder, DATASET)) == {"where": ["b", "a"], "who": ["c"]}


def test_unfinished_run_is_drafted_as_far_as_it_got(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    record = json.loads((folder / "run.json").read_text())
    del record["times"]["finished"]
    (folder / "run.json").write_text(json.dumps(record))
    lines = (folder / "responses.jsonl").read_text().splitlines(keepends=True)
    (folder / "responses.jsonl").write_text(lines[0] + lines[1][:40])
    before = (folder / "responses.jsonl").read_bytes()
    drafted = draft(folder, DATASET)
    assert drafted.number_of_questions == 1
    assert drafted.notes[0] == "The run has not ended, or was killed: 1 of its 3 questions have a response."
    assert (folder / "responses.jsonl").read_bytes() == before


def test_folder_without_responses_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"the folder holds no responses\.jsonl"):
        draft_dataset(tmp_path)
    folder = run_folder(tmp_path / "run")
    (folder / "responses.jsonl").unlink()
    with pytest.raises(RunFolderError, match=r"the folder holds no responses\.jsonl"):
        draft_dataset(folder)


def test_invalid_input_is_reported_with_its_location(tmp_path: Path) -> None:
    with pytest.raises(ResponsesError, match="cannot be read"):
        draft_dataset(tmp_path / "absent")
    folder = run_folder(tmp_path / "run")
    write_lines(folder / "responses.jsonl", response("a", elapsed_sec=-1))
    with pytest.raises(ResponsesError, match=r"responses\.jsonl, line 1, question a, key .*elapsed_sec: -1 is"):
        draft_dataset(folder)
    with pytest.raises(ConfigError, match="unknown key stepps"):
        draft_dataset([], config={"stepps": {}})


ROWS = '{"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"type": "literal", "value": "a"}}]}}'


@pytest.mark.parametrize(
    ("output", "media_type", "columns"),
    [
        ('[{"name": "Oslo", "n": 5}]', "application/json", ["name", "n"]),
        ("[{'name': 'Oslo', 'n': 5}]", None, ["name", "n"]),
        ("name,n\nOslo,5\nBergen,3\n", "text/csv", ["name", "n"]),
        ("name\tn\nOslo\t5\n", "text/tab-separated-values", ["name", "n"]),
        ("| name | n |\n|---|---|\n| Oslo | 5 |\n", None, ["name", "n"]),
    ],
)
@pytest.mark.parametrize("tool", ["cypher_query", "read_neo4j_cypher", "sql_db_query", "ask_graph", "sparql_query"])
def test_rows_are_drafted_with_the_media_type_of_their_format(
    tool: str, output: str, media_type: str | None, columns: list[str]
) -> None:
    config = {"steps": {"kinds": {"ask_graph": "rows", "sparql_query": "rows"}}}
    call = {"name": tool, "args": {"query": "x"}, "id": "c1", "status": "success", "output": output}
    responses: Any = [{"question_id": "q", "question_text": "Where?", "actual_steps": [call]}]
    drafted = draft_dataset(responses, config=config)
    [[step]] = drafted[0]["questions"][0]["reference_steps"]
    assert (step.get("output_media_type"), step["required_columns"]) == (media_type, columns)
    assert validate_dataset(drafted, config=config) == []
    assert run_evaluation(drafted, responses, config)[0]["steps_score"] == 1.0
