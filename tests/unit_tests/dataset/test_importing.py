"""Importing a dataset: the files written, the notes printed, and the options that go with each kind of file."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.qald_samples import qald
from support.sparql_stub import Answer, answering

from graphrag_eval_lc import GraphRAGEvalWarning, import_dataset, load_dataset, validate_dataset
from graphrag_eval_lc.dataset import sparql_endpoint
from graphrag_eval_lc.dataset.import_fields import Columns
from graphrag_eval_lc.dataset.importing import Import, ImportOptions, imported
from graphrag_eval_lc.dataset.rules import RULES
from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.retrying import RetryPolicy
from graphrag_eval_lc.run_folder import write_data

URI = {"type": "uri", "value": "urn:oslo"}
GOLD = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": URI}]}}
EMPTY = {"head": {"vars": ["x"]}, "results": {"bindings": []}}
UNBOUND = {"head": {"vars": ["x"]}, "results": {"bindings": [{}]}}
FOUND = {"head": {"vars": ["y"]}, "results": {"bindings": [{"y": URI}]}}


def question(number: Any, *answers: Any, query: str | None = "SELECT ?x {}") -> dict[str, Any]:
    texts = [{"language": "en", "string": f"Which is {number}?"}]
    return {"id": number, "question": texts, "query": {"sparql": query}, "answers": list(answers)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def import_qald(*questions: Any, progress: Any = None, **options: Any) -> Import:
    Path("qald.json").write_text(json.dumps({"dataset": {"id": "grid"}, "questions": questions}))
    return imported("qald.json", ImportOptions(**options), progress)


def questions_in(found: Import) -> dict[str, dict[str, Any]]:
    return {each["id"]: dict(each) for template in found.templates for each in template["questions"]}


def test_gold_is_a_reference_step_with_the_query(folder: Path) -> None:
    found = import_qald(question(1, GOLD, query="\nSELECT ?x  \nWHERE {} \r\n"))
    assert found.templates == [
        {
            "template_id": "resource",
            "questions": [
                {
                    "id": "1",
                    "question_text": "Which is 1?",
                    "reference_steps": [
                        [
                            {
                                "name": "sparql_query",
                                "args": {"query": "SELECT ?x\nWHERE {}"},
                                "output": json.dumps(GOLD, separators=(",", ":")),
                                "output_media_type": "application/sparql-results+json",
                                "required_columns": ["x"],
                            }
                        ]
                    ],
                }
            ],
        }
    ]
    assert (found.problems, found.notes) == ((), ())


def test_step_and_template_names_can_be_set(folder: Path) -> None:
    found = import_qald(
        question(1, GOLD), question(2, {"boolean": True}), step_name="run_sparql", template_id="all of them"
    )
    assert [template["template_id"] for template in found.templates] == ["all of them"]
    assert {each["reference_steps"][0][0]["name"] for each in questions_in(found).values()} == {"run_sparql"}


def test_empty_gold_is_reported_and_is_not_a_reference(folder: Path) -> None:
    found = import_qald(
        question(1, EMPTY), question(2, UNBOUND), question(3), question(4, GOLD), question(5, query=None)
    )
    written = questions_in(found)
    assert [identifier for identifier, each in written.items() if "reference_steps" in each] == ["4"]
    assert {each.get("reference_query") for name, each in written.items() if name in "123"} == {"SELECT ?x {}"}
    assert [note.partition(":")[0] for note in found.notes] == [
        "The gold is empty, so that no step is scored; the SPARQL query is in reference_query (2 questions)",
        "Without gold, so that no step is scored; the SPARQL query is in reference_query (1 question)",
        "Without a query (1 question)",
    ]
    assert "--endpoint URL" in found.notes[1]
    assert ": 1, 2. " in found.notes[0]
    assert found.problems == ()
    assert (found.number_of_questions, found.number_with_steps) == (5, 1)


def test_empty_gold_can_be_kept(folder: Path) -> None:
    found = import_qald(question(1, EMPTY), question(2, UNBOUND), keep_empty=True)
    assert found.number_with_steps == 2
    assert found.notes == ("The gold is empty, and any query without rows fits it (2 questions): 1, 2.",)
    assert {problem.severity for problem in validate_dataset(found.templates)} == {"warning"}


def test_duplicate_ids_get_an_unused_number(folder: Path) -> None:
    found = import_qald(*(question(number, GOLD) for number in (7, "7", "7-2", 7)))
    assert list(questions_in(found)) == ["7", "7-3", "7-2", "7-4"]
    assert found.notes == ("Several questions have the same id (1 id): 7. The first keeps it, the others are "
                           "called 7-2 and so on.",)  # fmt: skip


def test_questions_with_the_same_text_share_a_template(folder: Path) -> None:
    twice = {**question(2, {"boolean": True}), "question": [{"language": "en", "string": "which IS 1?"}]}
    found = import_qald(question(1, GOLD), twice, question(3, {"boolean": True}))
    ids = {each["template_id"]: [one["id"] for one in each["questions"]] for each in found.templates}
    assert ids == {"resource": ["1", "2"], "boolean": ["3"]}
    assert found.notes[0].startswith("The same text as an earlier question")
    assert found.notes[0].endswith("(1 question): 2.")
    assert validate_dataset(found.templates) == []


@pytest.mark.parametrize("name", ["qa.yaml", "qa.json"])
def test_written_dataset_loads_unchanged(folder: Path, name: str) -> None:
    import_qald(*qald(60)["questions"], question("0123", GOLD), question("12:30:45", GOLD), question("1_000", GOLD))
    found = imported("qald.json", ImportOptions())
    write_data(folder / name, found.templates)
    assert load_dataset(folder / name) == found.templates
    assert validate_dataset(folder / name) == []


def test_multiline_queries_are_yaml_blocks(folder: Path) -> None:
    found = import_qald(question(1, GOLD, query="SELECT ?x \t\nWHERE {\n  ?x :p 'å'  \n}"))
    write_data(folder / "qa.yaml", found.templates)
    assert (
        "query: |-\n            SELECT ?x\n            WHERE {\n              ?x :p 'å'\n"
        in Path("qa.yaml").read_text()
    )


def test_multiline_strings_inside_a_query_are_preserved(folder: Path) -> None:
    query = 'SELECT ?x { ?x :p """a \n b""" }'
    [found] = questions_in(import_qald(question(1, GOLD, query=query))).values()
    assert found["reference_steps"][0][0]["args"] == {"query": query}


def test_cypher_with_results_is_json_with_columns(folder: Path) -> None:
    rows = json.dumps([{"n.name": "OSLO"}]).replace('"', '""')
    Path("text2cypher.csv").write_text(
        f'question,cypher,results\nWhich?,MATCH (n) RETURN n.name,"{rows}"\nWhy?,RETURN 1,\n'
    )
    found = imported("text2cypher.csv", ImportOptions())
    assert [template["template_id"] for template in found.templates] == ["text2cypher"]
    first, second = questions_in(found).values()
    assert first["reference_steps"] == [
        [
            {
                "name": "cypher_query",
                "args": {"query": "MATCH (n) RETURN n.name"},
                "output": '[{"n.name": "OSLO"}]',
                "output_media_type": "application/json",
                "required_columns": ["n.name"],
            }
        ]
    ]
    assert second == {"id": "2", "question_text": "Why?", "reference_query": "RETURN 1"}
    assert found.notes[0].endswith("(1 question): 2. Add a column with the results.")
    assert validate_dataset(found.templates) == []


def test_gold_not_compared_as_rows_is_reported_with_the_fix(folder: Path) -> None:
    Path("a.csv").write_text('question,sql,results\nOne?,SELECT 1,"[(1,)]"\nTwo?,SELECT 2,two\nThree?,SELECT 3,3\n')
    other = "The gold cannot be read as rows, and is compared as a text or JSON (1 question): 2. Store rows, as in"
    expected = "The gold is compared as a text or JSON, as no step kind serves my_sql (2 questions): 1, 3."
    expected = f"{expected} Have its rows compared:"
    assert [note[: len(other)] for note in imported("a.csv", ImportOptions()).notes] == [other]
    notes = imported("a.csv", ImportOptions(step_name="my_sql")).notes
    assert notes[1].startswith(other)
    assert notes[0] == f"{expected} steps: {{kinds: {{my_sql: rows}}}} in the config."
    Path("a.csv").write_text('question,sql,results\nOne?,SELECT 1,"[{""n"": 1}]"\n')
    assert imported("a.csv", ImportOptions(step_name="my_sql")).notes == ()


@pytest.mark.parametrize(
    ("name", "text", "options", "complaint"),
    [
        ("absent.json", None, {}, "absent.json: the dataset to import cannot be read"),
        ("qald.json", "", {}, "qald.json: the dataset to import is empty"),
        ("qald.json", '{"questions": ', {}, "qald.json, line 1: the dataset to import is not valid JSON"),
        ("qald.json", "{}", {}, "qald.json: this is not QALD's JSON or a list of records."),
        ("lines.jsonl", '{"question": "a"}\n{', {}, "lines.jsonl, line 2: the dataset to import is not valid JSON"),
        ("qa.yaml", "- template_id: t", {}, "qa.yaml: YAML is not imported."),
        (
            "a.csv",
            "question,query\na,b\n",
            {"languages": ("de",)},
            "the questions of this file are in no named language.",
        ),
        ("a.csv", "question,cypher\na,b\n", {"endpoint": "http://localhost/"}, "an endpoint answers SPARQL"),
        ("a.csv", "question,query\na,b\n", {"refresh": True}, "--refresh needs an endpoint."),
        (
            "a.csv",
            "question,query,kind\na,b,c\n",
            {"template_id": "t", "columns": Columns(template="kind")},
            "one template id is that of all questions, and a template column has one for each.",
        ),
    ],
)
def test_incompatible_options_are_one_error(
    folder: Path, name: str, text: str | None, options: dict[str, Any], complaint: str
) -> None:
    if text is not None:
        Path(name).write_text(text)
    with pytest.raises((DatasetError, OptionError)) as caught:
        imported(name, ImportOptions(**options))
    assert str(caught.value).startswith(complaint)


def test_columns_cannot_be_combined_with_qald(folder: Path) -> None:
    Path("qald.json").write_text(json.dumps({"questions": [question(1, GOLD)]}))
    with pytest.raises(OptionError, match="QALD's JSON has no columns, so that the query column cannot be named"):
        import_dataset("qald.json", query_column="sparql")


def test_python_api_warns_instead_of_printing(folder: Path) -> None:
    import_qald(question(1, GOLD), "what", question(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import_dataset("qald.json")
    assert [each.category for each in caught] == [GraphRAGEvalWarning] * 2
    assert [Path(each.filename).name for each in caught] == [Path(__file__).name] * 2


def test_missing_gold_is_fetched_from_the_endpoint(folder: Path) -> None:
    queries_sent, seen = [], []

    def answer(query: str) -> Answer:
        queries_sent.append(query)
        return (400, "no such thing", {}) if "broken" in query else (200, json.dumps(FOUND), {})

    questions = [
        question(1, GOLD, query="one"),
        question(2, EMPTY, query="two"),
        question(3, query="three"),
        question(4, query="broken"),
        question(5, query=None),
    ]
    with answering(answer) as url:
        found = import_qald(*questions, endpoint=url, progress=lambda *args: seen.append(args))
        assert sorted(queries_sent) == ["broken", "three", "two"]
        assert seen == [(1, 3), (2, 3), (3, 3)]
        steps = {name: each.get("reference_steps") for name, each in questions_in(found).items()}
        assert steps["1"][0][0]["required_columns"] == ["x"]
        assert steps["2"][0][0]["required_columns"] == steps["3"][0][0]["required_columns"] == ["y"]
        assert steps["4"] is steps["5"] is None
        assert [str(problem) for problem in found.problems] == [
            f"qald.json, question 4: {url} returns no results: status 400: no such thing. Fix the query, or ask later. "
            "It has no reference steps."
        ]
        refreshed = import_qald(*questions, endpoint=url, refresh=True)
    assert sorted(queries_sent[3:]) == ["broken", "one", "three", "two"]
    assert questions_in(refreshed)["1"]["reference_steps"][0][0]["required_columns"] == ["y"]


@pytest.mark.parametrize("rows", [[{"__ASK_RETVAL": {"type": "typed-literal", "value": "1"}}], []])
def test_ask_that_a_store_answers_with_a_row_is_gold(folder: Path, rows: list[Any]) -> None:
    reply = json.dumps({"head": {"vars": ["__ASK_RETVAL"] * len(rows)}, "results": {"bindings": rows}})
    with answering(lambda _: (200, reply, {})) as url:
        found = import_qald(question(1, EMPTY, query="ASK { ?s ?p ?o }"), endpoint=url)
    [[step]] = questions_in(found)["1"]["reference_steps"]
    assert json.loads(step["output"]) == {"head": {}, "boolean": bool(rows)}
    assert not any("empty" in note for note in found.notes)


def test_interrupted_import_resumes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql_endpoint, "_RETRIES", RetryPolicy(first_wait=0))
    queries_sent: list[str] = []

    def answer(query: str) -> Answer:
        queries_sent.append(query)
        return (500, "", {}) if query == "two" and len(queries_sent) < 5 else (200, json.dumps(FOUND), {})

    questions = [question(number, query=query) for number, query in enumerate(("one", "two", "one"))]
    options = {"state": folder / "qa.yaml.refresh.jsonl"}
    with answering(answer) as url:
        first = import_qald(*questions, endpoint=url, **options)
        second = import_qald(*questions, endpoint=url, **options)
    assert [len(each.problems) for each in (first, second)] == [1, 0]
    assert queries_sent.count("one") == 1


def test_results_fetched_before_the_endpoint_fails_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql_endpoint, "_RETRIES", RetryPolicy(first_wait=0))
    replies: list[Any] = []

    def answer(_: str) -> Answer:
        replies.append(1)
        return (200, json.dumps(FOUND), {}) if len(replies) == 1 else (307, "", {"Location": "http://127.0.0.1:1/"})

    with answering(answer) as url:
        questions = (question(number, query=f"what {number}") for number in range(60))
        found = import_qald(*questions, endpoint=url, follow_redirects=True)
    assert ["reference_steps" in each for each in questions_in(found).values()].count(True) == 1
    assert found.unanswered == 59
    assert len(replies) < 60  # nothing else is sent
    [problem] = found.problems
    assert "no longer answers" in problem.what
    assert problem.what.endswith("59 queries have no results")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["", "en", "x", "uri", "urn:x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "language", "string", "sparql", "head", "vars", "results", "bindings", "boolean", "x",
                         "type", "value", "datatype"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
RECORDS = st.fixed_dictionaries(
    {}, optional={"id": JSON, "question": JSON, "query": JSON, "answers": JSON, "answertype": JSON, "results": JSON}
)
TEXTS = st.just([{"language": "en", "string": "Who?"}])
ROWS = st.lists(st.dictionaries(st.sampled_from("xy"), st.just(URI) | JSON, max_size=2), max_size=3)
ANSWERS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"head": JSON, "results": st.fixed_dictionaries({"bindings": ROWS}), "boolean": JSON}
    ),
    max_size=2,
)
NEARLY = st.fixed_dictionaries({"id": JSON, "question": TEXTS, "query": JSON, "answers": ANSWERS})


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(questions=st.lists(RECORDS | NEARLY | JSON, max_size=4), is_qald=st.booleans())
def test_any_file_imports_as_a_usable_dataset_or_fails_with_one_error(
    tmp_path_factory: pytest.TempPathFactory, questions: list[Any], is_qald: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"questions": questions} if is_qald else questions))
    try:
        found = imported(path, ImportOptions(keep_empty=True))
    except DatasetError:
        assert not is_qald
        return
    problems = validate_dataset(found.templates)
    assert [str(problem) for problem in problems if problem.severity == "error"] == (
        [] if found.templates else [f"{RULES['no_question'].what}. {RULES['no_question'].hint}"]
    )
