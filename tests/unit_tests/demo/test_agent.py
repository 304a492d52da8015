"""The demo's agent, its rule-based planner and its tools."""

import asyncio
import json
import sys

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphRecursionError

from graphrag_eval_lc.demo.agent import INTENTS, RuleBasedPlannerChatModel, create_demo_agent
from graphrag_eval_lc.demo.plans import SLIPS, Slip
from graphrag_eval_lc.errors import AgentError, MissingExtraError


class ScriptedChatModel(FakeMessagesListChatModel):
    """Returns scripted messages, and accepts tools as real models do."""

    def bind_tools(self, tools, **kwargs):
        return self


def ask(agent, question):
    return agent.invoke({"messages": [("user", question)]})["messages"]


def tool_calls(messages):
    return [(message.name, message.status) for message in messages if isinstance(message, ToolMessage)]


FIND = ("autocomplete_search", "success")
QUERY = ("sparql_query", "success")
NOW = ("now", "success")
LOOK_UP = ("retrieve_time_series", "success")
FAILED_LOOK_UP = ("retrieve_time_series", "error")
READ = ("retrieve_data_points", "success")
FAILED_QUERY = ("sparql_query", "error")


@pytest.mark.parametrize(
    ("question", "calls", "answer"),
    [
        ("Which transformers are in MOLDE?", [FIND, QUERY], "MOLDE has 1 transformer: MOLDE T1 (250 MVA)."),
        ("Which substations are in SE2?", [FIND, QUERY], "SE2 has 2 substations: OSTERSUND, SUNDSVALL."),
        ("Where do AC lines from ALTA lead?", [FIND, QUERY], "By AC lines ALTA has 1 neighbour: TROMSO."),
        ("How much wind capacity is in NO4?", [FIND, QUERY], "The wind generating capacity of NO4 is 527 MW."),
        ("Is there a DC link between SE3 and FI?", [FIND, FIND, QUERY], "Yes, a DC link joins SE3 and FI."),
        ("What are the 2 longest AC lines?", [QUERY], "400 LULEA-HELSINKI (655.4 km), 400 LULEA-SUNDSVALL"),
        ("What do the notes say about pot lines?", [("retrieval", "success")], "Pot line disconnected at Sunndal."),
        ("What are the voltages of the AC lines of ALTA?", [FIND, QUERY], "ALTA has 2 AC lines: 132 kV, 420 kV."),
        ("What does the search for TISTA find?", [FIND], "The search for TISTA finds 3 things: TISTA (HydroGen"),
        (
            "What was the highest production of AURA in the last 40 minutes, in steps of 20 minutes?",
            [FIND, LOOK_UP, READ],
            " MW from 2025-11-12 08:50, ",
        ),
        (
            "What was the lowest flow on DC KVILLDAL-BLYTH 1 yesterday in steps of 12 hours?",
            [FIND, NOW, LOOK_UP, READ],
            " MW from 2025-11-11 00:00, ",
        ),
        (
            "What was the average production of OSLO in the last 2 hours, in steps of 1 hour?",
            [FIND, LOOK_UP],
            "The average production of OSLO is not in the time series.",
        ),
        (
            "What was the average production of ATLANTIS in the last 2 hours, in steps of 1 hour?",
            [FIND],
            "I found no generating unit named ATLANTIS.",
        ),
        (
            "What was the average flow on DC OSLO-ATLANTIS 1 yesterday in steps of 1 hour?",
            [FIND, NOW],
            "I found no DC line named DC OSLO-ATLANTIS 1.",
        ),
        ("Which transformers are in ATLANTIS?", [FIND], "I found no substation named ATLANTIS."),
    ],
)  # fmt: skip
def test_agent_answers_a_question_of_each_kind(agent, question, calls, answer):
    messages = ask(agent, question)
    assert tool_calls(messages) == calls
    assert answer in messages[-1].text


@pytest.mark.parametrize(
    ("question", "calls", "answer"),
    [
        ("Which transformers are in STAVANGER?", [FIND, FAILED_QUERY, QUERY], "STAVANGER T3 (200 MVA)"),
        ("Which transformers are in Tromsø?", [FIND, FIND, QUERY], "TROMSO T1 (250 MVA)"),
        ("Which substations are in NO5?", [FIND, FIND, QUERY], "NO5 has 4 substations"),
        ("Which substations are in SE3?", [FIND], "I found no bidding zone named SE3"),
        (
            "What was the average flow on DC TONSTAD-WILSTER 1 yesterday in steps of 1 day?",
            [FIND, NOW, FAILED_LOOK_UP, LOOK_UP, READ],
            "MW from 2025-11-11 00:00.",
        ),
    ],
)
def test_agent_makes_typical_model_mistakes_and_reads_tool_errors(agent, question, calls, answer):
    messages = ask(agent, question)
    assert tool_calls(messages) == calls
    assert answer in messages[-1].text


def test_circular_plan_ends_at_the_recursion_limit(agent):
    with pytest.raises(GraphRecursionError):
        ask(agent, "What are the 4 longest DC lines?")


async def test_concurrent_questions_get_the_same_answers(agent):
    questions = [f"Which substations are in NO{number}?" for number in (1, 2, 3, 4)] * 4
    states = await asyncio.gather(*(agent.ainvoke({"messages": [("user", each)]}) for each in questions))
    assert [state["messages"][-1].text for state in states] == [ask(agent, each)[-1].text for each in questions]


async def test_agent_streams_its_steps(agent):
    question = {"messages": [("user", "Which substations are in SE2?")]}
    updates = [update async for update in agent.astream(question, stream_mode="updates")]
    assert [node for update in updates for node in update] == ["model", "tools", "model", "tools", "model"]


def test_chat_model_can_replace_the_planner_and_reads_tool_errors():
    call = {"name": "sparql_query", "args": {"query": "CLEAR ALL"}, "id": "a"}
    model = ScriptedChatModel(responses=[AIMessage("", tool_calls=[call]), AIMessage("It only reads.")])
    messages = ask(create_demo_agent(model), "Clear the graph.")
    assert tool_calls(messages) == [FAILED_QUERY]
    assert messages[-1].text == "It only reads."


@pytest.mark.parametrize("model", ["nobody:nothing", "gpt-4o-mini", ""])
def test_unknown_model_name_is_one_clear_error(model):
    with pytest.raises(AgentError, match=rf"^the model '{model}' .*\. Give it as provider:name"):
        create_demo_agent(model)


def test_missing_integration_package_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_mistralai", None)
    with pytest.raises(AgentError, match=r"mistralai:small.*not installed.*Install the integration package"):
        create_demo_agent("mistralai:small")


@pytest.mark.parametrize("package", ["pyoxigraph", "langchain"])
def test_missing_extra_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"The demo needs the package {package}.*\[demo\]"):
        create_demo_agent()


def test_every_kind_of_slip_occurs():
    assert set(SLIPS.values()) == set(Slip)


# --- the planner -----------------------------------------------------------------------------------------------------

MODEL = RuleBasedPlannerChatModel()
QUESTION = HumanMessage("Is there a DC link between the bidding zones NO2 and DK1?")


def wording(question):
    return next(found for intent in INTENTS if (found := intent.wording.search(question)))


@pytest.mark.parametrize(
    ("question", "groups"),
    [
        ("Which transformers are in Tromsø?", {"name": "Tromsø"}),
        ("Is there a DC link from NO2 to DE-LU?", {"zone": "NO2", "other_zone": "DE-LU"}),
        ("What are the 3 longest 300 kV AC lines?", {"count": "3", "kilovolts": "300", "zone": None}),
        ("Give the 7 longest AC lines with an end in SE2.", {"count": "7", "kilovolts": None, "zone": "SE2"}),
        (
            "What was the lowest production of RANA G1 over the last 3 days, in steps of 30 minutes?",
            {"name": "RANA G1", "count": "3", "period": "day", "step": "30", "step_unit": "minute"},
        ),
        (
            "Give the average flow on DC FEDA-EEMSHAVEN 1 the day before yesterday in steps of 1 hour.",
            {"aggregate": "average", "name": "DC FEDA-EEMSHAVEN 1", "day": "the day before yesterday", "step": "1"},
        ),
        ("How much WIND capacity is in FI?", {"kind": "WIND", "zone": "FI"}),
    ],
)
def test_wording_is_parsed_into_intent_and_names(question, groups):
    assert {name: wording(question)[name] for name in groups} == groups


@pytest.mark.parametrize(
    ("messages", "calls", "text"),
    [
        ([QUESTION], ["NO2 call_1", "DK1 call_2"], ""),  # independent of each other
        ([SystemMessage("…")], [], "Please ask a question."),
        ([HumanMessage("Who painted the Mona Lisa?")], [], "planner with fixed rules"),
    ],
)
def test_planner_replies_with_the_calls_of_its_plan_or_the_answer(messages, calls, text):
    reply = MODEL.invoke(messages)
    assert [f"{call['args']['query']} {call['id']}" for call in reply.tool_calls] == calls
    assert text in reply.text


def test_planner_answers_from_tool_messages_and_continues_call_ids():
    first_call = MODEL.invoke([QUESTION])
    failed = [ToolMessage("no graph", tool_call_id=call["id"], status="error") for call in first_call.tool_calls]
    assert MODEL.invoke([QUESTION, first_call, *failed]).text == "I did not find both bidding zones, NO2 and DK1."
    reply = MODEL.invoke([QUESTION, first_call, AIMessage("Yes."), HumanMessage("What do the notes say about icing?")])
    assert [(call["name"], call["id"]) for call in reply.tool_calls] == [("retrieval", "call_3")]


def test_planner_reports_its_model_name_and_estimated_token_counts(tools):
    params = MODEL._get_ls_params()
    assert MODEL._llm_type == params["ls_provider"] == params["ls_model_name"] == "rule-based-planner"
    reply = MODEL.invoke([HumanMessage("x" * 39)])
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (
        10,
        -(-len(reply.text) // 4),
    )
    assert reply.response_metadata["model_name"] == "rule-based-planner"
    assert "estimated" in reply.response_metadata["token_counts"]
    bound = MODEL.bind_tools(list(tools.values()))
    plain, described = (each.invoke([QUESTION]).usage_metadata["input_tokens"] for each in (MODEL, bound))
    assert described > plain + 100


async def test_sync_async_and_streamed_calls_return_the_same():
    message = MODEL.invoke([QUESTION])
    streamed = [chunk async for chunk in MODEL.astream([QUESTION])]
    for other in (await MODEL.ainvoke([QUESTION]), *streamed):
        assert (other.text, other.tool_calls) == (message.text, message.tool_calls)
        assert other.usage_metadata == message.usage_metadata


# --- the tools -------------------------------------------------------------------------------------------------------

FEDA_EEMSHAVEN = "33493c83-6d76-5b77-8648-005e165add0c"


def test_tools_are_described_for_the_model(tools):
    assert sorted(tools) == [
        "autocomplete_search",
        "now",
        "retrieval",
        "retrieve_data_points",
        "retrieve_time_series",
        "sparql_query",
    ]
    for tool in tools.values():
        assert "Args:" not in tool.description
        assert all(argument.get("description") for argument in tool.args.values())


def test_autocomplete_search_returns_sparql_json_results_with_a_typed_rank(tools):
    result = json.loads(tools["autocomplete_search"].invoke({"query": "OSLO", "result_class": "cim:Substation"}))
    assert result["head"]["vars"] == ["iri", "name", "class", "rank"]
    [row] = result["results"]["bindings"]
    assert row["iri"] == {"type": "uri", "value": "urn:uuid:e09642e5-8ea7-5990-a973-ac4a1fe2a7c8"}
    assert row["rank"] == {"type": "literal", "value": "1.0", "datatype": "http://www.w3.org/2001/XMLSchema#double"}


def test_retrieval_returns_a_json_array_of_id_and_text(tools):
    found = json.loads(tools["retrieval"].invoke({"query": "icing patrols look for ice", "k": 3}))
    assert [sorted(document) for document in found] == [["id", "text"]] * 3
    assert found[0]["id"] == "https://example.org/grid/doc/procedure-icing"


def test_retrieve_time_series_returns_a_json_array_of_the_things_series(tools):
    found = json.loads(tools["retrieve_time_series"].invoke({"mrid": FEDA_EEMSHAVEN}))
    assert [sorted(series) for series in found] == [["external_id", "mrid", "name", "unit"]]
    assert (found[0]["external_id"], found[0]["mrid"]) == ("flow-2001", FEDA_EEMSHAVEN)


@pytest.mark.parametrize("aggregates", ["max", ["max"]])
def test_retrieve_data_points_accepts_one_aggregate_or_several(tools, aggregates):
    args = {"external_id": "flow-2001", "start": "2h-ago", "end": "now", "aggregates": aggregates, "granularity": "1h"}
    reply = json.loads(tools["retrieve_data_points"].invoke(args))
    assert (reply["externalId"], reply["unit"]) == ("flow-2001", "MW")
    assert [sorted(point) for point in reply["datapoints"]] == [["max", "timestamp"]] * 2


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("sparql_query", {"query": "INSERT DATA { <urn:a> <urn:b> 1 }"}, "The query is not valid SPARQL"),
        ("sparql_query", {"query": "SELECT * { SERVICE <urn:a> { ?s ?p ?o } }"}, "SERVICE is not allowed"),
        ("sparql_query", {"query": "SELECT"}, "not valid SPARQL"),
        ("sparql_query", {}, "validation error"),
        ("autocomplete_search", {"query": "OSLO", "limit": 0}, "limit is 0, but must be from 1 to 50"),
        ("retrieve_time_series", {"mrid": f"urn:uuid:{FEDA_EEMSHAVEN}"}, "without urn:uuid: before it"),
        ("retrieve_time_series", {"mrid": "FEDA"}, "mrid is 'FEDA', but must be a UUID"),
        ("retrieve_data_points", {"external_id": "x", "start": "2h-ago", "end": "now"}, "Unknown time series 'x'"),
        ("retrieve_data_points", {"external_id": "flow-2001", "start": "now", "end": "now"}, "is not before end"),
        ("retrieve_data_points", {"external_id": "flow-2001", "start": "2h-ago"}, "validation error"),
        ("retrieval", {"query": "ice", "k": 51}, "k is 51, but must be from 1 to 50"),
    ],
)
def test_failed_tool_returns_a_message_with_status_error(tools, name, args, message):
    reply = tools[name].invoke({"type": "tool_call", "id": "call_1", "name": name, "args": args})
    assert isinstance(reply, ToolMessage)
    assert reply.status == "error"
    assert message in reply.text
