"""How the diagnosis of a result explains failed queries."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")

from graphrag_eval_lc import run_benchmark, run_evaluation
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.graph import explained
from graphrag_eval_lc.graph.query_difference import Difference
from graphrag_eval_lc.graph.sources import GraphFile
from graphrag_eval_lc.graph.vocabulary import read_vocabulary, save_vocabulary

from .conftest import results

REFERENCE = "PREFIX : <urn:grid#> SELECT ?name ?kv { ?s a :Substation ; :name ?name ; :kv ?kv }"


def diagnosis(query: str, *, config: dict[str, Any] | None = None, **step: Any) -> dict[str, Any]:
    reference = {"name": "sparql_query", "args": {"query": REFERENCE}, "output": results({"name": "Oslo", "kv": "420"})}
    question = {"id": "q", "question_text": "Q", "reference_steps": [[reference]]}
    actual = {"name": "sparql_query", "id": "c", "args": {"query": query}, "status": "success", "output": results()}
    response = {"question_id": "q", "actual_steps": [actual | step]}
    (result,) = run_evaluation([{"template_id": "t", "questions": [question]}], {"q": response}, config)
    ((found,),) = result["steps_diagnosis"]
    return dict(found)


def test_difference_is_in_the_diagnosis() -> None:
    found = diagnosis(REFERENCE.replace(":kv", ":voltage"))
    assert found["query"]["cause"] == "property"
    assert found["query"]["sentence"] == "The query uses :voltage instead of :kv."
    assert found["query"]["differences"] == [
        {
            "kind": "property",
            "sentence": "uses :voltage instead of :kv",
            "expected": ":kv",
            "actual": ":voltage",
            "column": "kv",
        }
    ]
    assert found["reason"].startswith(f"{found['query']['sentence']} The actual results have no rows")


def test_unknown_terms_are_reported_first(grid: Path, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    config = {"graph": {"vocabulary": str(path)}}
    query = REFERENCE.replace(":Substation", ":SubStation")
    assert diagnosis(query, config=config)["query"]["cause"] == "class"  # the file does not exist yet
    save_vocabulary(asyncio.run(read_vocabulary(GraphFile(grid))), path)
    found = diagnosis(query, config=config)["query"]
    assert found["cause"] == "unknown_class"
    assert found["sentence"].startswith(":SubStation is not a class of this graph (nearest: :Substation).")


def test_query_that_is_too_large_is_reported() -> None:
    chain = " ".join(f"?a{n} <urn:p> ?a{n + 1} ." for n in range(90))
    found = diagnosis(f"SELECT ?name ?kv {{ ?s <urn:name> ?name ; <urn:kv> ?kv . {chain} }}")
    assert found["query"] == {"sentence": "The query, or the reference query, is too large to be compared."}
    assert found["reason"].startswith(found["query"]["sentence"])


def test_failed_query() -> None:
    found = diagnosis("SELECT ?name { ?s :name ?name ", status="error", error="400 Bad Request", output=None)
    assert found["query"]["cause"] in ("syntax", "undeclared_prefix")


def test_failed_comparison_does_not_stop_the_evaluation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def parse(*_: object, **__: object) -> list[Difference]:
        raise KeyError("a defect of the parser")

    monkeypatch.setattr(explained, "query_differences", parse)
    with caplog.at_level("DEBUG", logger=explained.__name__):
        found = diagnosis(REFERENCE.replace(":kv", ":voltage"))
    assert found["outcome"] == "mismatch"
    assert "query" not in found
    assert "a defect of the parser" in caplog.text


@pytest.mark.parametrize(
    ("name", "reference", "query", "sentence"),
    [
        (
            "cypher_query",
            "MATCH (l:Line) RETURN l.kv",
            "MATCH (x:Cable) RETURN x.kv",
            "uses the label Cable instead of Line",
        ),
        ("sql_db_query", "SELECT kv FROM lines", "SELECT km FROM lines", "returns km instead of kv"),
    ],
)
def test_other_languages(name: str, reference: str, query: str, sentence: str) -> None:
    pytest.importorskip("sqlglot")
    step = {"name": name, "args": {"query": reference}, "output": '[{"kv": 300}]'}
    question = {"id": "q", "question_text": "Q", "reference_steps": [[step]]}
    actual = {"name": name, "id": "c", "args": {"query": query}, "status": "success", "output": '[{"kv": 1}]'}
    response = {"question_id": "q", "actual_steps": [actual]}
    (result,) = run_evaluation([{"template_id": "t", "questions": [question]}], {"q": response})
    assert result["steps_diagnosis"][0][0]["query"]["sentence"] == f"The query {sentence}."


@pytest.mark.parametrize(
    ("query", "step", "config"),
    [
        (REFERENCE.replace(":kv", ":voltage"), {"output": results({"name": "Oslo", "kv": "420"})}, None),  # correct
        (REFERENCE.replace(":kv", ":voltage"), {}, {"graph": {"explain": False}}),
        ("MATCH (s:Substation) RETURN s.name", {}, None),
        (REFERENCE, {}, None),  # the same query on another graph
        ("SELECT ?name { ?s own:name ?name", {}, None),  # the endpoint answered it, so the prefix exists
    ],
)
def test_nothing_to_explain(query: str, step: dict[str, Any], config: dict[str, Any] | None) -> None:
    assert "query" not in diagnosis(query, config=config, **step)


def test_unreadable_vocabulary_is_an_error_before_the_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vocabulary.json").write_text('{"format": 9}', encoding="utf-8")
    questions_sent: list[str] = []
    questions = [{"id": "q", "question_text": "Q"}]
    with pytest.raises(ConfigError, match="not a vocabulary"):
        run_benchmark(
            questions_sent.append,
            [{"template_id": "t", "questions": questions}],
            config={"graph": {"vocabulary": "vocabulary.json"}},
            progress="off",
        )
    assert questions_sent == []


def test_vocabulary_is_found_after_the_agent_changes_directory(
    grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_vocabulary(asyncio.run(read_vocabulary(GraphFile(grid))), Path("vocabulary.json"))

    @tool
    def sparql_query(query: str) -> str:
        """Ask the graph."""
        return results()

    def agent(question: str) -> str:
        os.chdir("/")
        return str(sparql_query.invoke({"query": REFERENCE.replace(":Substation", ":SubStation")}))

    reference = {"name": "sparql_query", "args": {"query": REFERENCE}, "output": results({"name": "Oslo", "kv": "420"})}
    question = {"id": "q", "question_text": "Q", "reference_steps": [[reference]]}
    run = run_benchmark(
        agent,
        [{"template_id": "t", "questions": [question]}],
        config={"graph": {"vocabulary": "vocabulary.json"}},
        progress="off",
    )
    assert run.results[0]["steps_diagnosis"][0][0]["query"]["cause"] == "unknown_class"
