import asyncio
import sys

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphRecursionError

from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.errors import AgentError, MissingExtraError


class ScriptedChatModel(FakeMessagesListChatModel):
    """Gives the messages of a list; takes tools as real models do."""

    def bind_tools(self, tools, **kwargs):
        return self


def ask(agent, question):
    return agent.invoke({"messages": [("user", question)]})["messages"]


def tool_calls(messages):
    """Return tool name and status of each tool call in order."""
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
def test_it_answers_a_question_of_each_kind(agent, question, calls, answer):
    messages = ask(agent, question)
    assert tool_calls(messages) == calls
    assert answer in messages[-1].text


@pytest.mark.parametrize(
    ("question", "calls", "answer"),
    [
        ("Which transformers are in STAVANGER?", [FIND, FAILED_QUERY, QUERY], "STAVANGER T3 (200 MVA)"),
        ("Which transformers are in Tromsø?", [FIND, FIND, QUERY], "TROMSO T1 (250 MVA)"),
        ("Which transformers are in KRISTIANSAND?", [FIND, QUERY], "KRISTIANSAND T1 (300 kV)"),
        ("Which substations are in NO5?", [FIND, FIND, QUERY], "NO5 has 4 substations"),
        ("Which substations are in SE3?", [FIND], "I found no bidding zone named SE3"),
        ("What are the neighbours over AC lines of BERGEN?", [FIND, QUERY], "AURLAND, BERGEN"),
        ("Is there a DC link between NO4 and FI?", [], "I cannot tell"),
        ("What are the voltages of the AC lines of RANA?", [FIND, QUERY], "RANA has 2 AC lines: 300 kV, 420 kV."),
        ("What does the search for STEINS find?", [FIND], "The search for STEINS finds no things"),
        (
            "What was the average production of LIMFJORD in the last 1 hour, in steps of 15 minutes?",
            [FIND, LOOK_UP, READ],
            "MW from 2025-11-12 08:30.",
        ),
        (
            "What was the average production of MARKBYGDEN in the last 2 days, in steps of 1 day?",
            [FIND, LOOK_UP, READ],
            "MW from 2025-11-12 07:30.",
        ),
        (
            "What was the average flow on DC STOCKHOLM-RAUMA 1 yesterday in steps of 1 day?",
            [FIND, LOOK_UP, READ],
            "MW from 2025-05-31 00:00.",
        ),
        (
            "What was the average flow on DC TONSTAD-WILSTER 1 yesterday in steps of 1 day?",
            [FIND, NOW, FAILED_LOOK_UP, LOOK_UP, READ],
            "MW from 2025-11-11 00:00.",
        ),
    ],
)
def test_it_errs_as_language_models_do(agent, question, calls, answer):
    messages = ask(agent, question)
    assert tool_calls(messages) == calls
    assert answer in messages[-1].text


def test_a_plan_that_goes_round_ends_at_the_recursion_limit(agent):
    with pytest.raises(GraphRecursionError):
        ask(agent, "What are the 4 longest DC lines?")


async def test_many_questions_at_once_get_the_answers_that_each_gets_alone(agent):
    questions = [f"Which substations are in NO{number}?" for number in (1, 2, 3, 4)] * 4
    states = await asyncio.gather(*(agent.ainvoke({"messages": [("user", each)]}) for each in questions))
    assert [state["messages"][-1].text for state in states] == [ask(agent, each)[-1].text for each in questions]


async def test_it_streams_its_steps(agent):
    question = {"messages": [("user", "Which substations are in SE2?")]}
    updates = [update async for update in agent.astream(question, stream_mode="updates")]
    assert [node for update in updates for node in update] == ["model", "tools", "model", "tools", "model"]


def test_another_chat_model_takes_the_place_of_the_planner_and_reads_tool_errors():
    call = {"name": "sparql_query", "args": {"query": "CLEAR ALL"}, "id": "a"}
    model = ScriptedChatModel(responses=[AIMessage("", tool_calls=[call]), AIMessage("It only reads.")])
    messages = ask(create_demo_agent(model), "Clear the graph.")
    assert tool_calls(messages) == [FAILED_QUERY]
    assert messages[-1].text == "It only reads."


@pytest.mark.parametrize("model", ["nobody:nothing", "gpt-4o-mini", ""])
def test_an_unknown_model_name_is_one_clear_error(model):
    with pytest.raises(AgentError, match=rf"^the model '{model}' .*\. Give it as provider:name"):
        create_demo_agent(model)


def test_a_missing_integration_package_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_mistralai", None)
    with pytest.raises(AgentError, match=r"mistralai:small.*not installed.*Install the integration package"):
        create_demo_agent("mistralai:small")


@pytest.mark.parametrize("package", ["pyoxigraph", "langchain"])
def test_a_missing_extra_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"The demo needs the package {package}.*\[demo\]"):
        create_demo_agent()
