"""How questions, queries, gold results and model answers are laid out in published datasets."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import load_responses, validate_dataset
from graphrag_eval_lc.dataset.importing import Import, ImportOptions, imported, write_responses
from graphrag_eval_lc.errors import DatasetError, RunFolderError

SHAPES = yaml.safe_load(Path(__file__).with_name("import_shapes.yaml").read_text())
QUERY = "SELECT ?x { ?x a :T }"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(value: Any, suffix: str = "json", **options: Any) -> Import:
    path = Path(f"file.{suffix}")
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return imported(path, ImportOptions(**options))


def flat(found: Import) -> list[dict[str, Any]]:
    """Return each question as a flat dict with its one reference step, its text and the model's answer."""
    responses = {each["question_id"]: each["actual_answer"] for each in found.responses}
    questions = []
    for question in (dict(each) for template in found.templates for each in template["questions"] or ()):
        whole = {"text": question.pop("question_text"), "response": responses.get(question["id"])}
        for [step] in question.pop("reference_steps", ()):
            whole |= {"step": step["name"], "query": step["args"].get("query"), "gold": step.get("output")}
        questions.append({key: each for key, each in {**question, **whole}.items() if each is not None})
    return questions


@pytest.mark.parametrize(("suffix", "value", "expected"), [pytest.param(*each[1:], id=each[0]) for each in SHAPES])
def test_published_shape_is_imported(suffix: str, value: Any, expected: dict[str, Any]) -> None:
    found = flat(read(value, suffix))
    assert found
    for each in found:
        assert {"text": "Who?", **expected}.items() <= each.items()
        assert each.keys() - expected.keys() <= {"text", "id", "step", "query", "answertype"}
        assert ("query" in each) <= ("gold" in each)


@pytest.mark.parametrize(
    ("value", "key", "example"),
    [
        ([{"question": {"tokens": ["Who"]}, "answer": "A"}], "[0].question", '{"tokens": ["Who"]}'),
        ([{"question": '{"tokens": ["Who"]}', "answer": "A"}], "[0].question", '{"tokens": ["Who"]}'),
        ([{"question": '{"tokens": ["Wh', "answer": "A"}], "[0].question", "tokens"),
        ([{"user_input": [{"type": "human", "content": "a"}, {"type": "human", "content": "b"}], "reference": "A"}],
         "[0].user_input", '[{"type": "human"'),
        ([{"question": ["Who", "is", "it"], "answer": "A"}], "[0].question", '["Who", "is"'),
        ([{"question": "Who?", "query": {"select": ["t"]}}], "[0].query", '{"select": ["t"]}'),
        ([{"question": "Who?", "query": [QUERY, QUERY]}], "[0].query", "SELECT"),
        ([{"question": "Who?", "query": {"sparql": {"a": 1}}}], "[0].query", '{"a": 1}'),
        ([{"question": "Who?", "sql": {"sel": 1, "conds": []}}], "[0].sql", '{"sel": 1'),
        ([{"question": "Who?", "answer": {"grid": 1}}], "[0].answer", '{"grid": 1}'),
        ([{"question": "Who?", "answer": [{"grid": 1}]}], "[0].answer", '{"grid": 1}'),
        ([{"question": "Who?", "answer": '{"grid": 1}'}], "[0].answer", '{"grid": 1}'),
        ([{"question": "Who?", "ground_truth": {"grid": 1}, "answer": "A"}], "[0].ground_truth", '{"grid": 1}'),
        ({"questions": [{"question": {"words": 1}, "query": QUERY}]}, "questions[0].question", '{"words": 1}'),
        ({"rows": [{"row": {"question": "Who?", "answer": "A, B, …"}, "truncated_cells": ["answer"]}]},
         "rows[0].answer", '{"truncated": "A, B, …"}'),
        ([{"inputs": {"a": 1, "b": 2}, "outputs": {"answer": "A"}}], "[0].inputs", '{"a": 1, "b": 2}'),
        ([{"inputs": {"question": "Who?"}, "outputs": {"a": 1, "b": 2}}], "[0].outputs", '{"a": 1, "b": 2}'),
        (["Who?", 7], "[0]", '"Who?"'),
    ],
)  # fmt: skip
def test_unknown_shape_is_rejected_with_its_path_and_an_example(value: Any, key: str, example: str) -> None:
    names = {"question_column": "question"} if value == ["Who?", 7] else {}
    if names:
        value.append({"question": "Why?", "answer": "A"})
    found = read(value)
    assert [flat(found), len(found.problems)] == [flat(found)[:1] if names else [], 1]
    problem = found.problems[0]
    assert (problem.path, problem.key, problem.question_id) == ("file.json", key, "1")
    assert example in problem.what.replace('\\"', '"')


@pytest.mark.parametrize("suffix", ["json", "csv"])
@pytest.mark.parametrize(
    "name",
    ["ref_answer", "gt", "groundtruth", "true_answer", "Reference Response", "answer_gold", "idealOutput", "truth"],
)
def test_answer_next_to_any_gold_key_is_the_models(name: str, suffix: str) -> None:
    value = (
        [{"question": "Who?", "answer": "M", name: "G"}] if suffix == "json" else f"question,answer,{name}\nWho?,M,G\n"
    )
    [found] = flat(read(value, suffix))
    assert (found["reference_answer"], found["response"]) == ("G", "M")


def test_parquet_null_numbers_are_blank_and_bytes_are_rejected() -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"question": b"Who?", "answer": 1.0}, {"question": b"Why?", "answer": float("nan")}]
    parquet.write_table(arrow.Table.from_pylist(rows), "file.parquet")
    assert "no question can be read from" in imported("file.parquet", ImportOptions()).problems[0].what
    parquet.write_table(arrow.Table.from_pylist([row | {"question": "Who?"} for row in rows]), "file.parquet")
    assert [each.get("reference_answer") for each in flat(imported("file.parquet", ImportOptions()))] == ["1.0", None]


def test_questions_of_the_same_unknown_shape_are_one_problem() -> None:
    found = read([{"id": f"q{n}", "question": {"tokens": [n]}, "answer": "A"} for n in range(500)])
    [problem] = found.problems
    assert "Left out (500 questions): q0, q1" in problem.hint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><dataset><question id="1"/></dataset>', "document type"),
        ('<!DOCTYPE d SYSTEM "file:///etc/hostname"><dataset/>', "document type"),
        ("<sparql/>", "<sparql>"),
        ("<dataset><question></dataset>", "line 1: the dataset to import is not valid XML: mismatched tag"),
        ("<dataset>&x;</dataset>", "not valid XML: undefined entity"),
    ],
)
def test_xml_that_is_not_qald_or_not_safe_is_one_error(text: str, complaint: str) -> None:
    with pytest.raises(DatasetError, match=complaint):
        read(text, "xml")


def test_unused_gold_and_model_answers_are_noted() -> None:
    [one, two, three] = read(
        [{"question": "Who?", "target": "T", "ground_truth": "G", "answer": "M", "response": "N"}]
    ).notes
    assert one == "`target` is not imported, as `ground_truth` says more clearly that it is gold (1 question): 1."
    assert two == "`response` is the answer of a model, and is not imported as a reference (1 question): 1."
    assert three == "`answer` is not imported, as `response` is the answer of the model (1 question): 1."


@pytest.mark.parametrize("name", ["new.jsonl", "new.json", "new.yaml"])
def test_responses_refer_to_the_new_question_ids(name: str) -> None:
    found = read([{"id": "q", "question": f"{n}?", "ideal": "G", "answer": f"M{n}"} for n in (1, 2)])
    write_responses(Path(name), found)
    loaded = load_responses(name)
    assert {key: each["actual_answer"] for key, each in loaded.items()} == {"q": "M1", "q-2": "M2"}
    with pytest.raises(RunFolderError, match="exists already"):
        write_responses(Path(name), found)


def test_query_in_an_unknown_language_is_reported_unless_the_step_is_named() -> None:
    record = {"question": "Who?", "query": "g.V().values('name')", "results": [{"name": "Nea"}]}
    found = read([record])
    assert flat(found) == [{"id": "1", "text": "Who?"}]
    assert found.notes[0].startswith("The language of the query is unknown, so the query and its results")
    [named] = flat(read([record], step_name="gremlin"))
    assert (named["step"], named["query"]) == ("gremlin", record["query"])


def test_relevant_ids_become_a_reference_step_if_it_is_named() -> None:
    record = {"qid": "p", "query": "Who?", "retrieval_gt": [["d1"], ["d2", "d3"]], "generation_gt": ["G"]}
    found = read([record])
    assert flat(found) == [{"id": "p", "text": "Who?", "reference_answer": "G"}]
    assert "--retrieval-step retrieval" in found.notes[0]
    [template] = read([record], retrieval_step="retrieval").templates
    assert validate_dataset([template]) == []
    assert template["questions"][0]["reference_steps"] == [
        [{"name": "retrieval", "relevant_ids": [["d1"], ["d2", "d3"]]}]
    ]


def test_languages_of_translations_and_labels() -> None:
    answer = {"answerType": "entity", "answer": [{"name": "Q1", "label": {"en": "Grid", "de": "Netz"}}]}
    record = {"question": "Who?", "translations": {"de": "Wer?"}, "answer": answer}
    [found] = flat(read([record], languages=("de", "en")))
    assert (found["text"], found["reference_answer"]) == ("Wer?", "Netz")
    assert read([record], languages=("fr",)).notes[0].startswith("No text in fr, and left out (1 question): 1.")
    found = read([{"question": [{"language": "de", "string": "Wer?"}], "answer": "A"}])
    assert flat(found)[0]["text"] == "Wer?"
    assert found.notes == ("No text in en, and imported in another language (1 question): 1.",)
