import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.dataset.drafting import draft_dataset
from graphrag_eval_lc.dataset.validation import validate_dataset
from graphrag_eval_lc.onboarding.project import Proposal
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding, tool_findings, tools_in

SELECT = "SELECT ?name WHERE { ?s <urn:name> ?name }"
JSON_ROWS = json.dumps(
    {"head": {"vars": ["n"]}, "results": {"bindings": [{"n": {"type": "literal", "value": "Oslo"}}]}}
)
JSON_IRIS = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}})
NO_ROWS = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": []}})
DOCUMENTS = json.dumps([{"id": "d1", "text": "Oslo is a city."}])


def finding(args: dict[str, Any], *outputs: str, tool: str = "my_tool") -> ToolFinding:
    steps = [{"name": tool, "args": args, "status": "success", "output": output} for output in outputs]
    [found] = tool_findings([{"question_id": "q", "actual_steps": steps}])
    return found


def test_tool_with_sparql_arguments_is_a_query_tool() -> None:
    found = finding({"query": SELECT}, JSON_ROWS, JSON_ROWS)
    assert (found.reference_name, found.gives, found.calls, found.declared) == ("sparql_query", "rows", 2, None)
    assert found.about == "2 calls: SPARQL, rows as SPARQL JSON"


@pytest.mark.parametrize(
    ("output", "form"), [("n\r\nOslo\r\n", "W3C CSV"), ("| n |\n|---|\n| Oslo |", "a Markdown table")]
)
def test_detected_format_need_not_be_declared(output: str, form: str) -> None:
    found = finding({"query": SELECT}, output)
    assert (found.form, found.declared) == (form, None)


def test_cypher_and_sql_are_recognised_by_keywords() -> None:
    rows = '[{"name": "Oslo"}]'
    assert finding({"q": "MATCH (n:City) RETURN n.name AS name"}, rows).reference_name == "cypher_query"
    sql = finding({"q": "SELECT name FROM cities"}, rows)
    assert (sql.language, sql.gives, sql.reference_name) == ("SQL", "rows", None)


def test_path_to_rows_is_declared_if_it_is_ambiguous() -> None:
    output = json.dumps({"data": {"hits": [{"name": "Oslo"}], "related": [{"name": "Bergen"}]}})
    found = finding({"query": SELECT}, output)
    assert found.gives == "rows"
    assert found.declared == {"path": "data.hits"}


def test_search_that_returns_iris_is_an_entity_search() -> None:
    found = finding({"name": "Oslo"}, JSON_IRIS, NO_ROWS)
    assert (found.gives, found.reference_name) == ("entities", "autocomplete_search")


@pytest.mark.parametrize(
    "output",
    [
        '["https://ex.org/a", "https://ex.org/b"]',
        '{"iri": "https:\\/\\/ex.org\\/a"}',
        '[{"iri": "urn:a", "label": "Oslo"}]',
        "https://ex.org/a",
        "<urn:a>",
        "The IRI is urn:a.",
        "['urn:a', 'urn:b']",
        "urn:a\nurn:b\n",
        "- Oslo: urn:a\n- Bergen: urn:b",
        "iri,label\nurn:a,Oslo\n",
    ],
)
def test_lookup_is_recognised_and_drafted_in_any_iri_format(output: str) -> None:
    query = {"q": "SELECT ?name { <urn:a> ?p ?name . <https://ex.org/a> ?p ?name }"}
    steps = [
        {"name": "lookup", "args": {"label": "Oslo"}, "id": "a", "status": "success", "output": output},
        {"name": "ask", "args": query, "id": "b", "status": "success", "output": '[{"name": "Oslo"}]'},
    ]
    response: Any = {"question_id": "q", "question_text": "Who?", "status": "success", "actual_steps": steps}
    proposal = Proposal("my_agent.py:agent", tool_findings([response]))
    assert proposal.sections()["steps"]["names"] == {"lookup": "autocomplete_search", "ask": "sparql_query"}
    drafted = draft_dataset([response], config=proposal.sections())
    names = [group[0]["name"] for group in drafted[0]["questions"][0]["reference_steps"]]
    assert names == ["iri_discovery", "sparql_query"]
    assert validate_dataset(drafted, config=proposal.sections()) == []
    assert run_evaluation(drafted, [response], proposal.sections())[0]["steps_score"] == 1.0


@pytest.mark.parametrize(
    "output", ["[['Oslo', 5]]", "| n | m |\n|---|---|\n| Oslo | 5 |", '[{"n": "Oslo"}]', "n,m\nOslo,5\n", JSON_ROWS]
)
@pytest.mark.parametrize("tool", ["ask", "sparql_query"])
def test_drafted_rows_in_any_format_have_no_warnings(tool: str, output: str) -> None:
    step = {"name": tool, "args": {"q": SELECT}, "id": "a", "status": "success", "output": output}
    response: Any = {"question_id": "q", "question_text": "Who?", "status": "success", "actual_steps": [step]}
    config = Proposal("my_agent.py:agent", tool_findings([response])).sections()
    drafted = draft_dataset([response], config=config)
    assert validate_dataset(drafted, config=config) == []
    assert run_evaluation(drafted, [response], config)[0]["steps_score"] == 1.0


def test_lookup_error_that_quotes_an_iri_is_not_drafted() -> None:
    steps = [
        {"name": "autocomplete_search", "args": {}, "id": "a", "status": "success", "output": "Error: no <urn:a>"},
        {
            "name": "sparql_query",
            "args": {"q": "{ <urn:a> ?p ?o }"},
            "id": "b",
            "status": "success",
            "output": JSON_ROWS,
        },
    ]
    drafted = draft_dataset([{"question_id": "q", "question_text": "Who?", "actual_steps": steps}])
    assert [group[0]["name"] for group in drafted[0]["questions"][0]["reference_steps"]] == ["sparql_query"]


def test_text_with_a_link_among_other_lines_is_not_a_lookup() -> None:
    assert finding({"city": "Oslo"}, "Sunny.\nSee https://ex.org/weather for more.").gives != "entities"
    assert finding({"city": "Oslo"}, "urn:a", "Nothing found.").gives == "entities"


def test_search_without_results_is_not_an_entity_search() -> None:
    assert finding({"name": "Oslo"}, NO_ROWS).gives == "rows"


def test_documents_are_recognised_by_ids_and_texts() -> None:
    found = finding({"query": "Oslo"}, DOCUMENTS)
    assert (found.gives, found.reference_name) == ("documents", "retrieval")


def test_plain_text_is_text() -> None:
    found = finding({"city": "Oslo"}, "Sunny, 12 degrees.")
    assert (found.gives, found.reference_name, found.note) == ("text", None, "")


@pytest.mark.parametrize("output", ["3", "true", '["Hasle", "Nea"]', '{"celsius": 5}'])
def test_single_values_are_rows_only_if_a_query_returned_them(output: str) -> None:
    assert finding({"city": "Oslo"}, output).about == "1 call: text"
    assert finding({"query": SELECT}, output).gives == "rows"


def test_unreadable_query_output_is_noted() -> None:
    assert "steps.outputs" in finding({"query": SELECT}, "I found Oslo, Bergen and some more.").note


def test_known_names_need_no_mapping() -> None:
    found = finding({"query": SELECT}, JSON_ROWS, tool="sparql_query")
    assert found.is_known
    assert found.reference_name is None


def test_failed_calls_and_responses_are_ignored() -> None:
    failed = {"name": "a", "args": {}, "status": "error", "error": "refused"}
    done = {"name": "b", "args": {}, "status": "success", "output": "text"}
    responses = [
        {"question_id": "q1", "actual_steps": [failed]},
        {"question_id": "q2", "status": "error", "error": "x", "actual_steps": [done]},
    ]
    assert tool_findings(responses) == []


def test_uncalled_tools_are_classified_by_their_descriptions() -> None:
    tools = {"ask": "Run a SPARQL query.", "cypher_search": "Look something up.", "clock": "Tell the time."}
    found = tool_findings([], tools)
    assert [each.reference_name for each in found] == ["sparql_query", "cypher_query", None]
    assert found[0].about == "not called yet; its description mentions SPARQL"
    assert found[2].about == "not called yet"


@pytest.mark.parametrize("output", [None, 5, {"a": [1]}, [], "", "[" * 5000, "{}", "[]", {"a": {"b": {}}}])
def test_unusual_outputs_do_not_raise(output: Any) -> None:
    assert finding({"query": SELECT}, output).tool == "my_tool"
    assert finding({}, output).tool == "my_tool"


@tool
def run_query(query: str) -> str:
    """Run a SPARQL query."""
    return query


@tool
def clock() -> str:
    """Tell the time."""
    return "12:00"


class Model(FakeListChatModel):
    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


def agent() -> Any:
    return create_agent(Model(responses=["42"]), [run_query, clock])


def test_tools_of_an_agent_are_found_with_their_descriptions() -> None:
    found = tools_in(agent())
    assert {name: each.description for name, each in found.items()} == {
        "run_query": "Run a SPARQL query.",
        "clock": "Tell the time.",
    }


def test_tools_of_subgraphs_and_configured_agents_are_found() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("inner", agent())
    graph.add_edge(START, "inner")
    graph.add_edge("inner", END)
    assert set(tools_in(graph.compile())) == {"run_query", "clock"}
    assert set(tools_in(agent().with_config(recursion_limit=9))) == {"run_query", "clock"}


def test_plain_function_has_no_visible_tools() -> None:
    assert tools_in(lambda question: question) == {}
    assert tools_in(None) == {}
