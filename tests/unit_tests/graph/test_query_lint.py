"""Linting queries: a table of cases, and no false alarms on the demo's references."""

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")

from graphrag_eval_lc import load_dataset
from graphrag_eval_lc.demo import DATASET_PATH, GRAPH_PATH, VOCABULARY_PATH
from graphrag_eval_lc.graph import query_lint
from graphrag_eval_lc.graph.query_lint import lint_query
from graphrag_eval_lc.graph.sources import GraphFile
from graphrag_eval_lc.graph.vocabulary import Vocabulary, load_vocabulary, read_vocabulary

from .conftest import Endpoint

CASES = yaml.safe_load((Path(__file__).parent / "vectors/query_lint.yaml").read_text(encoding="utf-8"))
LINES = Vocabulary(
    source="test",
    classes={"urn:c#DCLineSegment": 2, "urn:c#Substation": 3},
    properties={"urn:c#name": 5, "urn:c#length": 2},
    uses={"urn:c#DCLineSegment": ["urn:c#length", "urn:c#name"], "urn:c#Substation": ["urn:c#name"]},
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_findings(case: dict[str, Any]) -> None:
    query = case["query"] if case.get("plain") else f"PREFIX c: <urn:c#>\n{case['query']}"
    options = {"was_answered": case.get("answered", False), "needs_limit": case.get("needs_limit", False)}
    found = [f"{each.rule}: {each}" for each in lint_query(query, LINES, **options)]
    assert len(found) == len(case["findings"]), found
    for each, expected in zip(found, case["findings"], strict=True):
        assert each.startswith(expected)


@pytest.mark.parametrize(("was_answered", "rules"), [(False, ["syntax"]), (True, [])])
def test_without_the_fast_parser_only_unanswered_queries_have_syntax_findings(
    monkeypatch: pytest.MonkeyPatch, was_answered: bool, rules: list[str]
) -> None:
    monkeypatch.setattr(query_lint, "_store", lambda: None)  # as if pyoxigraph were not installed
    assert [each.rule for each in lint_query("SELECT ?l { ?l", was_answered=was_answered)] == rules


def test_without_a_complete_vocabulary_no_term_is_unknown() -> None:
    query = "SELECT ?l { ?l a <urn:c#Never> ; <urn:c#nowhere> 1 }"
    for vocabulary in (None, LINES.model_copy(update={"complete": False}), Vocabulary(source="empty")):
        assert lint_query(query, vocabulary) == []


@pytest.mark.parametrize("form", ["ASK", "SELECT *", "CONSTRUCT { ?s ?p ?o } WHERE"])
@pytest.mark.parametrize("call", ["SERVICE", "service silent"])
def test_service_clause_is_never_executed(endpoint: Endpoint, form: str, call: str) -> None:
    assert lint_query(f"{form} {{ {call} <{endpoint.url}> {{ ?s ?p ?o }} }}", LINES) == []
    (found,) = lint_query(f"ASK {{ {call} <{endpoint.url}> {{ ?s ?p }} }}")
    assert (found.rule, found.line) == ("syntax", 1)
    assert endpoint.queries == []


def test_invalid_literals_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert lint_query("ASK { ?x ?p 'soon'^^<http://www.w3.org/2001/XMLSchema#dateTime> }") == []
    assert not caplog.records


async def test_demo_references_have_no_findings() -> None:
    grid = await read_vocabulary(GraphFile(GRAPH_PATH))
    queries = [
        step["args"]["query"]
        for template in load_dataset(DATASET_PATH)
        for question in template["questions"]
        for group in question["reference_steps"]
        for step in group
        if step["name"] == "sparql_query"
    ]
    assert len(queries) == 29
    assert load_vocabulary(VOCABULARY_PATH).digest == grid.digest
    assert [(query, found) for query in queries if (found := lint_query(query, grid))] == []


def test_prefixes_of_the_endpoint_need_no_declaration() -> None:
    assert lint_query("SELECT ?l { ?l a own:Line }", prefixes={"own": "urn:own#"}) == []
