"""Calls by which a model gives structured output: no steps, whether they parsed or not."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from graphrag_eval_lc.capture.calls_without_tools import is_class_name, schema_names

UNPARSED = "structured output of a model that did not parse: "
UNANSWERED = "asked for by a model and never answered, so that what they gave is not known: "
SEARCH = ("search", {"query": "a"}, "s1")
BAD, GOOD = ("City", {"name": "Bern"}, "c1"), ("City", {"name": "Bern", "people": 5}, "c2")
BAD_RIVER = ("River", {"name": "Aare"}, "r1")


class City(BaseModel):
    name: str
    people: int


class River(BaseModel):
    name: str
    length: float = Field(alias="lengthKm")


def names(response: dict[str, Any]) -> list[str]:
    return [step["name"] for step in response["actual_steps"]]


@pytest.mark.parametrize("handle_errors", [True, "Once more, please.", lambda error: "No.", ValueError])
def test_output_that_did_not_parse_is_no_step_and_is_warned_of(handle_errors, ai, ask, search, chat_model) -> None:
    model = chat_model(script=[ai("", SEARCH), ai("", BAD), ai("", GOOD)])
    schema = ToolStrategy(City, handle_errors=handle_errors)
    response = ask(create_agent(model, [search], response_format=schema))
    assert names(response) == ["search"]
    if handle_errors is ValueError:
        assert response["error"].startswith("StructuredOutputValidationError: ")
        assert "capture_warnings" not in response
    else:
        assert (response["status"], response["actual_answer"]) == ("success", '{"name": "Bern", "people": 5}')
        assert response["capture_warnings"] == [UNPARSED + "City (c1)"]


def test_each_of_several_schemas_is_no_step(ai, ask, search, chat_model) -> None:
    several = [("River", {"name": "Aare", "lengthKm": 288.0}, "r2"), ("City", GOOD[1], "c3")]
    model = chat_model(script=[ai("", BAD_RIVER), ai("", BAD), ai("", *several), ai("", GOOD)])
    response = ask(create_agent(model, [search], response_format=ToolStrategy(City | River)))
    assert names(response) == []
    assert response["capture_warnings"] == [UNPARSED + "River (r1), City (c1), River (r2), City (c3)"]
    assert response["actual_answer"] == '{"name": "Bern", "people": 5}'


def test_a_tool_that_the_same_message_asks_for_is_a_step(ai, ask, search, chat_model) -> None:
    for call in (BAD, GOOD):
        model = chat_model(script=[ai("", SEARCH, call)])
        response = ask(create_agent(model, [search], response_format=ToolStrategy(City)), question_id=call[2])
        assert names(response) == ["search"]
        assert response.get("capture_warnings", []) == ([UNPARSED + "City (c1)"] if call is BAD else [])


def test_output_that_never_parses_is_no_step(ai, ask, search, chat_model) -> None:
    model = chat_model(script=[ai("", ("City", {}, f"c{turn}")) for turn in range(9)])
    response = ask(create_agent(model, [search], response_format=ToolStrategy(City)), recursion_limit=4)
    assert response["error"].startswith("GraphRecursionError")
    assert names(response) == []
    assert response["capture_warnings"] == [UNPARSED + "City (c0), City (c1), City (c2), City (c3)"]


@pytest.mark.parametrize("gives", ["the state", "the messages"])
@pytest.mark.parametrize("is_retried", [True, False])
def test_an_agent_out_of_sight_has_the_same_steps(gives, is_retried, ai, ask, search, chat_model) -> None:
    """No callback tells of it, as of a deployed graph: its messages do."""
    script = [ai("", SEARCH), *[ai("", BAD)] * is_retried, ai("", ("search", {"query": "b"}, "s2"), GOOD)]
    agent = create_agent(chat_model(script=script), [search], response_format=ToolStrategy(City))

    def out_of_sight(state: dict[str, Any]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(agent.invoke, {"messages": list(state["messages"])}).result()
        return found if gives == "the state" else {"messages": found["messages"]}

    response = ask(RunnableLambda(out_of_sight))
    assert [step["id"] for step in response["actual_steps"]] == ["s1", "s2"]
    unparsed = [warning for warning in response["capture_warnings"] if warning.startswith(UNPARSED)]
    assert unparsed == [UNPARSED + "City (c1)"] * is_retried


def test_steps_of_an_agent_out_of_sight_stand_beside_output_of_its_own_wording(ai, ask, search, chat_model) -> None:
    schema = ToolStrategy(City, tool_message_content="Noted.")
    agent = create_agent(chat_model(script=[ai("", SEARCH), ai("", GOOD)]), [search], response_format=schema)

    def out_of_sight(state: dict[str, Any]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(agent.invoke, {"messages": list(state["messages"])}).result()

    assert names(ask(RunnableLambda(out_of_sight))) == ["search"]


def test_steps_of_a_node_of_ones_own_that_is_named_as_the_agents_are_kept(ai, ask, chat_model) -> None:
    model = chat_model(script=[ai("", SEARCH)])

    def node(state: MessagesState) -> dict[str, Any]:
        answer = model.invoke(state["messages"])
        return {"messages": [answer, ToolMessage("found", tool_call_id="s1")]}

    assert names(ask(StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile())) == [
        "search"
    ]


def test_steps_of_a_node_that_sets_a_structured_response_itself_are_kept(ai, ask, chat_model) -> None:
    class State(MessagesState):
        structured_response: Any

    model = chat_model(script=[ai("", SEARCH), ai("", ("lookup", {"query": "b"}, "s2")), ai("done")])

    def node(state: State) -> dict[str, Any]:
        messages = list(state["messages"])
        while (answer := model.invoke(messages)).tool_calls:
            messages += [answer, *(ToolMessage("found", tool_call_id=call["id"]) for call in answer.tool_calls)]
        return {"messages": [*messages[1:], answer], "structured_response": {"query": "b"}}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    assert names(ask(graph)) == ["search", "lookup"]


# --- nodes that read the arguments themselves ---


class GradeDocument(BaseModel):
    """Whether a document helps."""

    helps: bool


GRADE = ("GradeDocument", {"helps": True}, "g1")


def grader(model: Any, *, shows: str = "nothing") -> Any:
    """A node that asks a model for a schema's arguments, without making it call it, and another that answers."""

    def grade(state: MessagesState) -> dict[str, Any]:
        asked = model.bind_tools([GradeDocument]).invoke("Does it help?")
        word = "yes" if asked.tool_calls[0]["args"].get("helps") else "no"
        if shows == "the model":
            word = model.invoke([*state["messages"], asked, ("user", "and?")]).content
        return {"messages": [AIMessage(word), *[asked] * (shows == "the state")]}

    return StateGraph(MessagesState).add_node("grade", grade).add_edge(START, "grade").compile()


def test_nobody_waits_for_a_schema_that_the_node_reads_itself(ai, ask, chat_model) -> None:
    response = ask(grader(chat_model(script=[ai("", GRADE)])))
    assert (response["actual_answer"], response["actual_steps"]) == ("yes", [])
    assert "capture_warnings" not in response


@pytest.mark.parametrize("shows", ["the model", "the state"])
def test_a_call_that_stays_in_the_conversation_is_waited_for(shows, ai, ask, chat_model) -> None:
    model = chat_model(script=[ai("", GRADE), ai("done")], by_turn=False)
    response = ask(grader(model, shows=shows))
    assert response["capture_warnings"] == [UNANSWERED + "GradeDocument (g1)"]


def test_a_call_of_a_tool_that_ran_before_is_waited_for(ai, ask, chat_model, make_agent, search) -> None:
    run = search.model_copy(update={"name": "GradeDocument"})
    script = [ai("", ("GradeDocument", {"query": "a"}, "g0")), ai("", GRADE)]
    model = chat_model(script=script, by_turn=False)

    def twice(text: str) -> str:
        run.invoke(model.invoke(text).tool_calls[0])
        return str(model.invoke(text).tool_calls[0]["args"])

    response = ask(RunnableLambda(twice), "hi")
    assert names(response) == ["GradeDocument"]
    assert response["capture_warnings"] == [UNANSWERED + "GradeDocument (g1)"]


@pytest.mark.parametrize("name", ["City", "GradeDocument", "RouteQuery2"])
def test_classes_have_names_of_their_own(name: str) -> None:
    assert is_class_name(name)
    assert not any(map(is_class_name, [name.lower(), name.upper(), f"_{name}", f"{name}_tool", ""]))


def test_langchains_own_texts_name_the_schema() -> None:
    call: Any = {"name": "City", "args": {}, "id": "c1"}
    for text in (
        "Error: Failed to parse structured output for tool 'City': no.\n Please fix your mistakes.",
        "Error: Model incorrectly returned multiple structured responses (City, River) when only one is expected.",
        "Returning structured response: name='Bern'",
    ):
        messages = [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id="c1", name="City")]
        assert "City" in set(schema_names(messages))
    answered = [AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id="c1", name="City")]
    assert set(schema_names(answered)) == set()
    assert set(schema_names(answered, is_of_model_node=True)) == {"City"}


@pytest.mark.parametrize(
    ("executed", "args", "output"),
    [
        ({"arguments": '{"query": "x"}', "output": "", "search_results": {"results": [1]}}, {"query": "x"}, "results"),
        ({"arguments": "{no json", "output": "found"}, {"input": "{no json"}, "found"),
        ({"arguments": '["x"]', "output": "found"}, {"input": '["x"]'}, "found"),
    ],
)
def test_groqs_tools_that_langchain_does_not_translate(
    ask: Any, ai: Any, chat_model: Any, make_agent: Any, executed: Any, args: Any, output: str
) -> None:
    message = ai("done").model_copy(
        update={
            "additional_kwargs": {"executed_tools": [{"type": "search", "index": 0, **executed}]},
            "response_metadata": {"model_provider": "groq"},
        }
    )
    (step,) = ask(make_agent([message], []))["actual_steps"]
    assert (step["name"], step["args"]) == ("web_search", args)
    assert output in step["output"]


def test_an_image_of_openai_is_a_step(ask: Any, ai: Any, make_agent: Any) -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "eA=="}
    failed = {**image, "id": "ig_2", "status": "failed", "revised_prompt": "a fjord"}
    message = ai([image, failed, {"type": "text", "text": "done"}])
    message.response_metadata = {"model_provider": "openai"}
    made, not_made = ask(make_agent([message], []))["actual_steps"]
    assert (made["name"], made["args"], made["output"]) == ("image_generation", {}, "")
    assert (not_made["args"], not_made["error"]) == ({"prompt": "a fjord"}, "error without a message")
