"""Importing QALD's JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.dataset.import_fields import Columns
from graphrag_eval_lc.dataset.import_questions import SourceDataset, SourceQuestion, read_questions, unique_ids
from graphrag_eval_lc.errors import DatasetError

GOLD = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:oslo"}}]}}
OTHER = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:bergen"}}]}}
NO_ROWS = {"head": {}, "results": {}}


def question(number: Any = 1, **keys: Any) -> dict[str, Any]:
    texts = [{"language": "en", "string": "Which capital?"}]
    return {"id": number, "question": texts, "query": {"sparql": "SELECT ?x {}"}, "answers": [GOLD], **keys}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read_value(value: Any, languages: tuple[str, ...] = ()) -> SourceDataset:
    Path("qald.json").write_text(json.dumps(value))
    return read_questions("qald.json", Columns(), languages)


def read(*questions: Any, languages: tuple[str, ...] = ()) -> SourceDataset:
    return read_value({"dataset": {"id": "qald"}, "questions": list(questions)}, languages)


@pytest.mark.parametrize(
    ("raw", "expected"), [(7, "7"), ("7", "7"), ("012", "012"), (0, "0"), (None, "1"), (" ", "1"), ([], "1")]
)
def test_ids_become_strings(raw: Any, expected: str) -> None:
    assert [each.id for each in read(question(raw)).questions] == [expected]


TEXTS = [
    {"language": "pt_BR", "string": "Qual no Brasil?"},
    {"language": "pt", "string": "Qual?"},
    {"language": "zh-cn", "string": " 哪\n个 ? "},
    {"language": "en", "string": " "},
    {"language": "en", "string": "Which?"},
    {"language": "en", "string": "Which else?"},
]


@pytest.mark.parametrize(
    ("languages", "text"),
    [
        (("en",), "Which?"),
        (("EN",), "Which?"),
        (("pt",), "Qual?"),
        (("pt-BR",), "Qual no Brasil?"),
        (("zh",), "哪 个 ?"),
        (("fr", "pt"), "Qual?"),
    ],
)
def test_first_text_in_the_language_or_a_regional_variant_is_used(languages: tuple[str, ...], text: str) -> None:
    assert [each.text for each in read(question(question=TEXTS), languages=languages).questions] == [text]


def test_questions_without_the_language_are_reported_and_skipped() -> None:
    found = read(question(1), question(2, question=TEXTS), languages=("fr", "pt"))
    assert [each.id for each in found.questions] == ["2"]
    assert found.sentences() == [
        "No text in fr, and imported in another of the languages (1 question): 2.",
        "No text in fr, pt, and left out (1 question): 1. The languages of the dataset are en, pt, pt_BR, zh-cn; "
        "--language names others.",
    ]
    assert found.problems == []


def test_question_given_as_a_string_is_in_english() -> None:
    assert [each.text for each in read(question(question="Which?")).questions] == ["Which?"]


@pytest.mark.parametrize("answers", [[], None, [{}], "absent"])
def test_without_answers_there_is_no_gold(answers: Any) -> None:
    record = question(answers=answers)
    if answers == "absent":
        del record["answers"]
    [found] = read(record).questions
    assert found.gold is None
    assert found.query == "SELECT ?x {}"
    assert found.template_id == "other"


def test_answers_without_rows_are_an_empty_gold_result() -> None:
    [found] = read(question(answers=[NO_ROWS])).questions
    assert found.gold is not None
    assert found.gold.is_empty


def test_answers_with_the_same_columns_become_one_table() -> None:
    [found] = read(question(answers=[GOLD, NO_ROWS, OTHER])).questions
    assert found.gold is not None
    assert found.gold.columns == ("x",)
    assert "oslo" in found.gold.output
    assert "bergen" in found.gold.output


@pytest.mark.parametrize("query", [None, {}, {"sparql": ""}, {"sparql": None}])
def test_question_without_a_query_has_none(query: Any) -> None:
    assert [each.query for each in read(question(query=query)).questions] == [None]


def test_template_is_the_answer_type_from_qald_or_the_gold() -> None:
    found = read(question(answertype="date", onlydbo=True, hybrid="false"), question(2))
    assert [each.template_id for each in found.questions] == ["date", "resource"]
    assert found.questions[0].kept == {"answertype": "date", "onlydbo": True, "hybrid": "false"}


@pytest.mark.parametrize(
    ("record", "text", "left"),
    [
        ("what", 'qald.json, question 1, key questions[0]: no question can be read from "what".', ["2"]),
        (question(question=[]), "qald.json, question 1: the question has no text in any language.", ["2"]),
        (question(question=None), "qald.json, question 1: the question has no text in any language.", ["2"]),
        (
            question(answers=[{"results": {"bindings": 1}}]),
            "qald.json, question 1: the results are broken: bindings",
            ["1", "2"],
        ),
        (question(answers=[{"boolean": "x"}]), "qald.json, question 1: the results are broken: boolean", ["1", "2"]),
        (
            question(answers=[GOLD, {"boolean": True}]),
            "qald.json, question 1: the results are broken: there are 2",
            ["1", "2"],
        ),
    ],
)
def test_broken_question_is_one_problem_and_the_rest_are_imported(record: Any, text: str, left: list[str]) -> None:
    found = read(record, question(2))
    assert [str(problem).startswith(text) for problem in found.problems] == [True]
    assert [each.id for each in found.questions] == left
    assert all(each.gold is None for each in found.questions[:-1])


def test_questions_must_be_a_list() -> None:
    with pytest.raises(DatasetError, match="questions is not a list"):
        read_value({"questions": {}})


@given(st.lists(st.sampled_from(["7", "7-2", "7-3", "7-2-2", "8"]), max_size=12))
def test_duplicate_ids_are_renumbered_except_the_first(ids: list[str]) -> None:
    found = list(unique_ids([SourceQuestion(each, f"{place}?") for place, each in enumerate(ids)]))
    assert [question.text for _, question in found] == [f"{place}?" for place in range(len(ids))]
    new = [identifier for identifier, _ in found]
    assert len(set(new)) == len(new)
    assert [new[ids.index(each)] for each in ids] == ids
