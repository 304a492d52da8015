"""Importing tables and records of questions, queries and answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.dataset.import_fields import Columns
from graphrag_eval_lc.dataset.import_questions import SourceDataset, read_questions
from graphrag_eval_lc.dataset.query_language import STEP_NAMES
from graphrag_eval_lc.errors import DatasetError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, path: str = "grid.csv", **columns: str) -> SourceDataset:
    Path(path).write_text(text)
    return read_questions(path, Columns(**columns))


def read_records(records: Any, **columns: str) -> SourceDataset:
    return read(json.dumps(records), "grid.json", **columns)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiter_is_detected_in_the_first_row(delimiter: str) -> None:
    text = f'question{delimiter}query\n"Which, which; and\twhich?"{delimiter}"SELECT ?x\nWHERE {{}}"\n\n'
    [found] = read(text).questions
    assert (found.id, found.text, found.query) == ("1", "Which, which; and which?", "SELECT ?x\nWHERE {}")


@pytest.mark.parametrize(
    ("head", "step_name"),
    [
        ("question,query", "sql_db_query"),
        ("Question Text,SPARQL", "sparql_query"),
        ("corrected_question,sparql_query", "sparql_query"),
        ("nl,cypher", "cypher_query"),
        ("text,SQL query", "sql_db_query"),
    ],
)
def test_columns_are_recognised_by_common_names(head: str, step_name: str) -> None:
    found = read(f"{head}\nWhich?,SELECT 1\n")
    assert [(each.text, each.query) for each in found.questions] == [("Which?", "SELECT 1")]
    assert STEP_NAMES[found.questions[0].language or "SPARQL"] == step_name


def test_columns_can_be_named_explicitly() -> None:
    text = 'a,b,c,d,e,f\nq7,Which?,SELECT 1,where,"[{""x"": 1}]",One.\n'
    given = {"id": "a", "question": "b", "query": "c", "template": "d", "results": "e", "answer": "f"}
    [found] = read(text, **given).questions
    assert (found.id, found.text, found.query, found.template_id) == ("q7", "Which?", "SELECT 1", "where")
    assert found.answer == "One."
    assert found.gold is not None
    assert found.gold.columns == ("x",)


@pytest.mark.parametrize(
    ("head", "columns", "text"),
    [
        ("ask,query", {}, "found no column with the question. Name it: --question-column NAME. The columns are: ask"),
        ("question,code", {}, "found no column with the query. Name it: --query-column NAME."),
        ("question,query", {"id": "key"}, "found no column key. The columns are: question, query."),
        ("question,sparql,cypher", {}, "the columns sparql, cypher may all hold the query."),
        ("question,query,query", {}, "two columns are called query. Rename one."),
    ],
)
def test_missing_or_ambiguous_columns_are_an_error(head: str, columns: dict[str, str], text: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(f"{head}\n", **columns)
    assert f"grid.csv, line 1: {text}" in str(caught.value)


def test_naming_the_query_column_resolves_the_ambiguity() -> None:
    assert read("question,sparql,cypher\nWhich?,a,b\n", query="cypher").questions[0].query == "b"


def test_broken_rows_are_reported_with_their_lines_and_the_rest_imported() -> None:
    text = 'id,question,sparql,results\n1,"Which\none?",a,\n2,Which?\n3, ,c,\n'
    text += '4,Who?,d,"{""results"": {""bindings"": 1}}"\n'
    found = read(text)
    assert [(each.id, each.gold) for each in found.questions] == [("1", None), ("4", None)]
    assert [str(problem) for problem in found.problems] == [
        "grid.csv, line 4: the row has 2 cells, and the first row 4. Write a cell that holds a delimiter or a line "
        'break as "…". The row is left out.',
        "grid.csv, line 5, question 3: the question has no text in the column question. Add it. The question is left "
        "out.",
        "grid.csv, line 6, question 4: the results are broken: bindings are not a list of rows, each a JSON object. "
        "Fix them in the source, or ask an endpoint (--endpoint). The question is imported without them.",
    ]


def test_unmatched_quotation_marks_are_an_error() -> None:
    with pytest.raises(DatasetError, match="the row cannot be read"):
        read('question,query\n"Which?,a\n')


def test_cells_may_have_any_length() -> None:
    query = "SELECT " + "?x " * 100_000
    assert read(f"question,query\nWhich?,{query}\n").questions[0].query == query


def test_record_keys_work_like_columns() -> None:
    gold = {"head": {}, "boolean": True}
    record = {"_id": 17, "corrected_question": "Is it?", "sparql_query": "ASK {}", "results": gold}
    found = read_records([record, 7])
    [question] = found.questions
    assert (question.id, question.text, question.query) == ("17", "Is it?", "ASK {}")
    assert question.gold is not None
    assert json.loads(question.gold.output) == gold
    assert [problem.what for problem in found.problems] == ["no question can be read from 7"]


@pytest.mark.parametrize("records", [{"data": []}, 7, "text"])
def test_other_json_is_an_error(records: Any) -> None:
    with pytest.raises(DatasetError, match="not QALD's JSON or a list of records"):
        read_records(records)


def test_columns_of_lc_quad_2_are_recognised() -> None:
    record = {"uid": 7, "question": "Which?", "sparql_wikidata": "SELECT 1", "template_id": 3, "answer": []}
    [found] = read_records([record]).questions
    assert (found.id, found.query, found.template_id, found.answer) == ("7", "SELECT 1", "3", None)


def test_with_several_queries_one_must_be_named() -> None:
    record = {"question": "Which?", "sparql_wikidata": "SELECT 1", "sparql_dbpedia18": "SELECT 2"}
    with pytest.raises(DatasetError, match="--query-column sparql_wikidata"):
        read_records([record])
    [found] = read_records([record], query="sparql_dbpedia18").questions
    assert found.query == "SELECT 2"


def test_query_column_holds_questions_if_most_cells_are_prose() -> None:
    texts = ["Who?", "Why?", "Select a line from the list"]
    found = read_records([{"query": text, "answer": "A"} for text in texts])
    assert [(each.text, each.query) for each in found.questions] == [(text, None) for text in texts]
