import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_responses, run_benchmark, score_responses, validate_dataset
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.errors import DatasetError, MatcherError, ResponsesError, RunFolderError
from graphrag_eval_lc.matching import Finding, StepKind, UnreadableOutput, register_matcher, register_step_kind
from graphrag_eval_lc.registry import registered_only_here

ROWS = '{"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"type": "literal", "value": "x"}}]}}'
SPARQL = {"name": "sparql_query", "output": ROWS, "output_media_type": "application/sparql-results+json"}


def dataset(*steps: dict[str, Any]) -> list[Any]:
    question = {"id": "q", "question_text": "Why?", "reference_steps": [list(steps)]}
    return [{"template_id": "t", "questions": [question]}]


def descriptions(*arguments: Any) -> list[str]:
    return [problem.what for problem in validate_dataset(*arguments)]


@pytest.mark.parametrize(
    "step",
    [
        SPARQL,
        SPARQL | {"required_columns": None},
        SPARQL | {"required_columns": ["n"]},
        SPARQL | {"output": '{"head": {}, "boolean": true}', "required_columns": []},
        {"name": "retrieval", "output": [{"id": "d"}]},
        {"name": "iri_discovery", "output": "urn:a", "output_media_type": "text/uri", "required_columns": ["uri"]},
        {"name": "retrieve_data_points", "args": {}, "output": None, "output_media_type": "application/json"},
        {"name": "other", "output": [1], "output_media_type": "application/json"},
        {"name": "other", "output": "text"},
        {"name": "retrieval", "relevant_ids": ["a"]},
        {"name": "retrieval", "relevant_ids": [["a", "b"], ["c"]], "output": '[{"text": "no id"}]'},
        {"name": "retrieval", "relevant_ids": {"a": 2, "b": 0}},
        {"name": "search_docs", "relevant_ids": ["a"]},
        {"name": "sparql_query", "relevant_ids": ["urn:a"], "output_media_type": "application/sparql-results+json"},
        {"name": "retrieval", "relevant_ids": None, "output": [{"id": "d"}]},
        *({"name": "count", "output": "5", "tolerance": tolerance} for tolerance in (1e-6, "1e-6", 0, None)),
    ],
)
def test_valid_steps_have_no_problems(step: dict[str, Any]) -> None:
    assert descriptions(dataset(step)) == []


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (SPARQL | {"output": "SELECT"}, "the output cannot be read as SPARQL results: a text without results"),
        (SPARQL | {"output": None}, "the output cannot be read as SPARQL results: nothing instead of"),
        (SPARQL | {"required_columns": ["m"]}, "the output has no column m"),
        ({"name": "retrieval", "output": "[]"}, "no relevant documents"),
        ({"name": "retrieval", "output": '[{"text": "x"}]'}, "the output cannot be read as documents: document 1"),
        ({"name": "iri_discovery"}, "an iri_discovery step needs the IRI as its output"),
        ({"name": "iri_discovery", "output": "<urn:a>"}, "the IRI has angle brackets, spaces or a line break around"),
        ({"name": "iri_discovery", "output": "urn:a\n"}, "the IRI has angle brackets, spaces or a line break around"),
        ({"name": "retrieve_time_series", "output": []}, "a retrieve_time_series step is compared by its args"),
        ({"name": "x", "output": "{", "output_media_type": "application/json"}, "the output cannot be read as JSON"),
        ({"name": "x"}, "no output to compare with"),
    ],
)
def test_step_that_nothing_can_match_is_a_problem(step: dict[str, Any], what: str) -> None:
    [found] = descriptions(dataset(step))
    assert found.startswith(what)


def test_empty_group_is_a_problem() -> None:
    assert descriptions(dataset()) == ["an empty group of reference steps"]


def test_every_problem_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "qa.yaml"
    path.write_text(
        "- template_id: t\n"
        "  questions:\n"
        "  - id: q1\n"
        "    question_text: Why?\n"
        "    question_text: How?\n"
        "  - id: q1\n"
        "    question_text: Who?\n"
        "- template_id: t\n"
        "  questions:\n"
        "  - id: q2\n"
        "    question_text: 'who? '\n"
        "  - id: q3\n"
    )
    assert [(problem.line, problem.question_id, problem.what) for problem in validate_dataset(path)] == [
        (12, "q3", "the key question_text is missing"),
        (5, None, "the key question_text is repeated, and only the last counts"),
        (6, "q1", "two questions have the id q1"),
        (8, None, "two templates have the id t"),
        (11, "q2", "the same question is in another template, at [0].questions[1]"),
    ]


def test_problem_names_the_location_and_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "qa.json"
    path.write_text(json.dumps(dataset(SPARQL | {"required_columns": ["m"]}), indent=1))
    [problem] = validate_dataset(path)
    assert str(problem) == (
        f"{path}, line 15, question q, key [0].questions[0].reference_steps[0][0].required_columns[0]: "
        "the output has no column m. It has: n."
    )


def test_responses_must_match_the_questions() -> None:
    lines = '{"question_id": "z"}\n\n{"question_id": "q"}\n{"question_id": "q", "elapsed_sec": -1}\n'
    problems = validate_dataset(dataset(SPARQL), io.StringIO(lines))
    assert [(problem.line, problem.what) for problem in problems] == [
        (4, "-1 is not allowed here"),
        (1, "a response to a question that the dataset does not have"),
        (4, "two responses to the question q; the last one counts"),
    ]
    assert descriptions(dataset(SPARQL), {}) == ["the question has no response"]
    assert descriptions(dataset(SPARQL), [{"question_id": "q"}]) == []


@pytest.mark.parametrize("values", [3, {"a": 1}, [3], [{"questions": [3]}], [{"template_id": "t", "questions": {}}]])
def test_input_that_is_not_a_dataset_is_reported_without_raising(values: Any) -> None:
    assert descriptions(io.StringIO(json.dumps(values)))


def test_demos_dataset_has_no_problems() -> None:
    assert validate_dataset(DATASET_PATH) == []


@pytest.mark.parametrize("run", ["substations", "timeseries"])
def test_recorded_runs_have_no_problems(conformance_dir: Path, run: str) -> None:
    folder = conformance_dir / "real_runs" / run
    assert validate_dataset(folder / "reference.yaml", folder / "responses.jsonl") == []


@pytest.mark.parametrize(
    ("relevant_ids", "what"),
    [
        ([], "relevant_ids is empty"),
        (["a", ["b"]], "relevant_ids mixes ids and groups"),
        ([["a"], []], "relevant_ids has a group without ids"),
        ({"a": -1}, "relevant_ids has the gain -1 for 'a', not a number from 0"),
        ({"a": "3"}, "relevant_ids has the gain '3' for 'a', not a number from 0"),
        ([{"id": "a"}], "relevant_ids has {'id': 'a'}, which is not an id"),
        ("a", "'a' is not allowed here"),
    ],
)
def test_invalid_relevant_ids_are_reported_once(relevant_ids: Any, what: str) -> None:
    (problem,) = validate_dataset(dataset({"name": "retrieval", "relevant_ids": relevant_ids}))
    assert (problem.what, problem.key) == (what, "[0].questions[0].reference_steps[0][0].relevant_ids")


@pytest.mark.parametrize("tolerance", [1, -1e-6, "5%", True, [1e-6], float("nan"), float("inf"), 10**400])
def test_invalid_tolerance_is_reported(tolerance: Any) -> None:
    (problem,) = validate_dataset(dataset({"name": "count", "output": "5", "tolerance": tolerance}))
    assert problem.key == "[0].questions[0].reference_steps[0][0].tolerance"
    assert problem.hint == "Give a share from 0 to below 1, such as 1e-6 for a millionth."


def test_unmapped_tools_are_reported_if_reference_steps_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    steps = [{"name": "think", "output": "ok"}, {"name": "run_sparql", "status": "success", "output": ROWS}]
    path.write_text(json.dumps({"question_id": "q", "actual_steps": steps}))
    [problem] = validate_dataset(dataset(SPARQL), path)
    assert str(problem) == (
        f"{path}, line 1, question q, key [0].actual_steps[1].name: run_sparql is called in 1 of 1 response and no "
        "reference step has that name. Perhaps `steps: {names: {run_sparql: sparql_query}}` in the config."
    )
    assert validate_dataset(dataset(SPARQL), path, {"steps": {"names": {"run_sparql": "sparql_query"}}}) == []


def test_called_tools_are_taken_from_the_last_response() -> None:
    first = {"question_id": "q", "actual_steps": [{"name": "run_sparql", "output": ROWS}]}
    last = {"question_id": "q", "actual_steps": [{"name": "sparql_query", "output": ROWS}]}
    assert descriptions(dataset(SPARQL), [first, last]) == ["two responses to the question q; the last one counts"]


def test_repeats_are_not_duplicates() -> None:
    repeats = [{"question_id": "q", "repeat": repeat} for repeat in (1, 2, 2)]
    assert descriptions(dataset(SPARQL), repeats) == ["two responses to the question q (repeat 2); the last one counts"]


# --- config and registered kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {"retrieval": {"steps": ["search_docs"]}},
        {"retrieval": {"steps": ["find"]}, "steps": {"names": {"find": "search_docs"}}},
    ],
)
def test_step_configured_as_retrieval_needs_documents(config: dict[str, Any]) -> None:
    unreadable, sound = {"name": "search_docs", "output": "doc-1"}, {"name": "search_docs", "output": '[{"id": "d"}]'}
    assert descriptions(dataset(unreadable)) == []
    [what] = descriptions(dataset(unreadable), None, config)
    assert what == "the output cannot be read as documents: the output is not JSON: doc-1"
    assert descriptions(dataset(sound), None, config) == []
    assert descriptions(dataset({**sound, "output": []}), None, config) == ["no relevant documents"]
    assert descriptions(dataset({"name": "search_docs", "relevant_ids": ["d"]}), None, config) == []


def test_step_with_a_matcher_that_reads_only_args_needs_no_output() -> None:
    register_matcher(name="set_alarm", reads="args")(lambda reference, actual: 1.0)
    assert descriptions(dataset({"name": "set_alarm", "args": {"at": "7:00"}})) == []
    assert descriptions(dataset({"name": "set_alarm"})) == ["a set_alarm step is compared by its args, and has none"]


def check_rows(step: Any) -> Iterator[Finding]:
    if not step["output"].startswith("id,"):
        raise UnreadableOutput("it has no column id")
    for index, row in enumerate(step.get("rows") or ()):
        if row not in step["output"]:
            yield Finding(f"the output has no row {row}", "Mend it.", ("rows", index))
    if not step.get("args"):
        yield Finding("the query is missing", "Add args.", ("args", "query"))


def register_table(check: Any) -> None:
    kind = StepKind(
        key="table", title="a table", serves=((None, "text/csv"),), matcher=lambda reference, actual: 1.0, check=check
    )
    register_step_kind(kind)


def test_registered_kind_checks_its_own_steps(tmp_path: Path) -> None:
    register_table(check_rows)
    step = {"name": "query", "output_media_type": "text/csv", "output": "id,a", "args": {"query": "x"}}
    assert descriptions(dataset(step)) == []
    path = tmp_path / "qa.json"
    path.write_text(json.dumps(dataset(step | {"rows": ["b"]}, {key: step[key] for key in step if key != "args"})))
    place = f"{path}, line 1, question q, key [0].questions[0].reference_steps[0]"
    assert [str(problem) for problem in validate_dataset(path)] == [
        f"{place}[0].rows[0]: the output has no row b. Mend it.",
        f"{place}[1]: the query is missing. Add args.",
    ]
    [what] = descriptions(dataset(step | {"output": "a"}))
    assert what == "the output cannot be read as a table: it has no column id"
    [what] = descriptions(dataset(step | {"output": None}))
    assert what.startswith("the check of table failed with AttributeError: ")


def test_check_that_returns_something_else_than_findings_is_reported() -> None:
    register_table(lambda step: ["the output is wrong"])
    with pytest.raises(MatcherError, match="the check of table returned 'the output is wrong'"):
        descriptions(dataset({"name": "query", "output_media_type": "text/csv", "output": "id,a"}))


# --- run folders -----------------------------------------------------------------------------------------------------

ASKED: Any = [{"template_id": "t", "questions": [{"id": name, "question_text": f"{name}?"} for name in "ab"]}]


def failing(question: str) -> str:
    if question == "b?":
        raise ValueError("away")
    return "yes"


def run_twice(folder: Path) -> Path:
    """Run both questions twice; one fails at first and is retried."""
    run_benchmark(failing, ASKED, output_dir=folder, repeats=2, progress=False)
    run_benchmark(lambda question: "yes", ASKED, output_dir=folder, repeats=2, retry_errors=True, force=True)
    return folder / "responses.jsonl"


def test_responses_written_by_a_run_are_valid(tmp_path: Path) -> None:
    journal = run_twice(tmp_path / "run")
    assert len(journal.read_text().splitlines()) == 6
    assert descriptions(ASKED, journal) == descriptions(ASKED, journal.parent) == []
    copy = tmp_path / "copy.jsonl"
    copy.write_text(journal.read_text())
    assert descriptions(ASKED, copy) == []


def test_response_to_an_earlier_question_text_is_valid(tmp_path: Path) -> None:
    journal = run_twice(tmp_path / "run")
    changed: Any = [{"template_id": "t", "questions": [{"id": "a", "question_text": "A?"}, ASKED[0]["questions"][1]]}]
    run_benchmark(lambda question: "yes", changed, output_dir=journal.parent, repeats=2, force=True)
    assert len(journal.read_text().splitlines()) > 6
    assert descriptions(changed, journal.parent) == []
    (tmp_path / "copy.jsonl").write_text(journal.read_text())
    assert descriptions(changed, tmp_path / "copy.jsonl") == []


def test_line_truncated_by_a_kill_is_accepted(tmp_path: Path) -> None:
    journal = run_twice(tmp_path / "run")
    with journal.open("a") as file:
        file.write('{"question_id": "a", "repe')
    assert descriptions(ASKED, journal) == descriptions(ASKED, journal.parent) == []


def test_line_that_no_run_would_write_is_reported(tmp_path: Path) -> None:
    journal = run_twice(tmp_path / "run")
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], '{"question_id"', *lines[1:]]) + "\n")
    with pytest.raises(ResponsesError, match="line 2: the file of responses is not valid JSON"):
        descriptions(ASKED, journal.parent)


def test_only_the_last_response_to_a_question_is_checked(tmp_path: Path) -> None:
    journal = run_twice(tmp_path / "run")
    last = json.loads(journal.read_text().splitlines()[-1]) | {"elapsed_sec": -1}
    with journal.open("a") as file:
        file.write(f"{json.dumps(last)}\n")
    [problem] = validate_dataset(ASKED, journal.parent)
    assert (problem.path, problem.line, problem.question_id) == (str(journal), 7, "b")


def test_questions_outside_the_runs_selection_need_no_response(tmp_path: Path) -> None:
    run_benchmark(failing, ASKED, output_dir=tmp_path, limit=1)
    assert descriptions(ASKED, tmp_path) == []
    journal = tmp_path / "responses.jsonl"
    journal.write_text("")
    assert [problem.question_id for problem in validate_dataset(ASKED, tmp_path)] == ["a"]


def test_folder_without_responses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"the folder holds no responses\.jsonl"):
        descriptions(ASKED, tmp_path)


def test_recorded_config_is_used_unless_another_is_passed(tmp_path: Path) -> None:
    step = {"name": "add", "args": {}, "id": "c", "status": "success", "output": "3"}
    responses: Any = [{"question_id": "q", "actual_answer": "3", "actual_steps": [{**step, "name": "plus"}]}]
    adding = dataset({"name": "add", "output": "3"})
    with registered_only_here():
        register_step_kind(StepKind(key="own", serves=(("own", None),), matcher=lambda *_: 1.0))
        config = {"steps": {"names": {"plus": "add"}, "kinds": {"later": "own"}}}
        score_responses(adding, responses, output_dir=tmp_path, config=config)
    assert descriptions(adding, tmp_path) == descriptions(adding, tmp_path / "responses.jsonl") == []
    (unknown,) = descriptions(adding, tmp_path, {})
    assert unknown.startswith("plus is called in 1 of 1 response and no reference step has that name")


def test_folder_passed_as_a_file_is_an_error(tmp_path: Path) -> None:
    score_responses(dataset({"name": "add", "output": "3"}), [], output_dir=tmp_path / "run")
    with pytest.raises(
        DatasetError, match=r"run: this is a folder, not a reference dataset\. It is a run folder: name the dataset"
    ):
        descriptions(tmp_path / "run")
    with pytest.raises(ResponsesError, match=r"The responses of this run are in .*run/responses\.jsonl\."):
        score_responses(dataset({"name": "add", "output": "3"}), tmp_path / "run", output_dir=tmp_path / "again")
    with pytest.raises(ResponsesError, match=r"a file of responses\. Give a file\."):
        load_responses(tmp_path)
