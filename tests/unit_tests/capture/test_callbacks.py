"""What the callbacks make of the runs of real agents."""

import asyncio
import dataclasses
import operator
import threading
import time
import warnings
from datetime import datetime
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langchain_core.tools.retriever import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime, tools_condition
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, Send
from pydantic import BaseModel

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

HI = {"messages": [("user", "hi")]}


# --- tools ---


def test_one_tool_call_is_one_step(make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("The answer.")], [search]))
    (step,) = response["actual_steps"]
    assert list(response) == [
        "question_id", "question_text", "status", "actual_answer", "actual_steps", "input_tokens", "output_tokens",
        "total_tokens", "elapsed_sec", "started_at", "run_id", "tags", "metadata", "llm_calls",
    ]  # fmt: skip
    assert {key: step[key] for key in ("name", "args", "id", "status", "output")} == {
        "name": "search", "args": {"query": "a"}, "id": "call_1", "status": "success", "output": "found a",
    }  # fmt: skip
    assert step["execution_timestamp"].endswith("Z")
    assert 0 <= step["elapsed_sec"] <= response["elapsed_sec"]
    assert (response["status"], response["actual_answer"]) == ("success", "The answer.")
    assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (20, 4, 24)


async def test_parallel_calls_stand_as_the_message_lists_them(make_agent, ai, handler) -> None:
    @tool
    async def wait(seconds: float) -> str:
        """Wait."""
        await asyncio.sleep(seconds)
        return str(seconds)

    calls = [("wait", {"seconds": seconds}, f"call_{place}") for place, seconds in enumerate((0.06, 0.03, 0.0))]
    await make_agent([ai("", *calls), ai("done")], [wait]).ainvoke(HI, config={"callbacks": [handler]})
    assert [step["id"] for step in handler.response()["actual_steps"]] == ["call_0", "call_1", "call_2"]


@pytest.mark.parametrize("kind", ["handle_tool_error", "own_message", "tool_node", "validation"])
def test_a_handled_error_is_an_error_step(kind, make_agent, ai, ask) -> None:
    @tool
    def fail(number: int, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Fail."""
        if kind == "own_message":
            return ToolMessage("it broke", tool_call_id=call_id, status="error")
        raise ToolException("it broke")

    fail.handle_tool_error = kind == "handle_tool_error"
    args = {"number": "it broke" if kind == "validation" else 1}
    agent = make_agent([ai("", ("fail", args, "call_1")), ai("sorry")], [fail], handle_tool_errors=True)
    response = ask(agent)
    (step,) = response["actual_steps"]
    assert step["status"] == "error"
    assert "it broke" in step["error"]
    assert "output" not in step
    assert response["status"] == "success"


def test_a_call_of_an_unknown_tool_is_an_error_step(make_agent, ai, ask, search) -> None:
    calls = [("nothing", {"x": 1}, "call_1"), ("search", {"query": "a"}, "call_2")]
    response = ask(make_agent([ai("", *calls), ai("done")], [search]))
    first, second = response["actual_steps"]
    assert (first["name"], first["args"], first["id"], first["status"]) == ("nothing", {"x": 1}, "call_1", "error")
    assert "nothing is not a valid tool" in first["error"]
    assert second["status"] == "success"
    assert response["capture_warnings"] == [
        "taken from messages only, as no callback told of them (they never ran, or ran out of sight): nothing (call_1)"
    ]


class Size(BaseModel):
    size: int


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ({"é": [1]}, '{"é": [1]}'),
        ([1, "a"], '[1, "a"]'),
        (None, "null"),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
    ],
)
def test_outputs_are_strings(value, output, make_agent, ai, ask) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    (step,) = ask(make_agent([ai("", ("give", {}, "call_1")), ai("done")], [give]))["actual_steps"]
    assert step["output"] == output


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (Size(size=1), '{"size": 1}'),
        (Point(2), '{"x": 2}'),
        (b"ab", "ab"),
        ([Document("t", id="u")], '[{"id": "u", "text": "t"}]'),
    ],
)
def test_raw_outputs_without_a_call_id_are_json(value, output, ask, handler) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    give.invoke({}, config={"callbacks": [handler]})
    (step,) = handler.response()["actual_steps"]
    assert step["output"] == output


def test_the_artifact_is_kept_beside_the_content(make_agent, ai, ask) -> None:
    @tool(response_format="content_and_artifact")
    def give() -> Any:
        """Give."""
        return "text", {"rows": (1, 2)}

    (step,) = ask(make_agent([ai("", ("give", {}, "call_1")), ai("done")], [give]))["actual_steps"]
    assert (step["output"], step["artifact"]) == ("text", {"rows": [1, 2]})


@pytest.mark.parametrize("as_list", [False, True])
def test_a_command_gives_the_message_of_its_call(as_list, make_agent, ai, ask) -> None:
    @tool
    def move(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Move."""
        message = ToolMessage("moved", tool_call_id=call_id)
        return [Command(update={}), message] if as_list else Command(update={"messages": [message]})

    (step,) = ask(make_agent([ai("", ("move", {}, "call_1")), ai("done")], [move]))["actual_steps"]
    assert (step["id"], step["output"], step["args"]) == ("call_1", "moved", {})


def test_args_are_those_at_the_start(make_agent, ai, ask) -> None:
    @tool
    def change(filters: dict[str, Any]) -> str:
        """Change."""
        filters["inner"].append("changed")
        filters.clear()
        return "ok"

    args = {"filters": {"inner": ["a"]}}
    (step,) = ask(make_agent([ai("", ("change", args, "call_1")), ai("done")], [change]))["actual_steps"]
    assert step["args"] == {"filters": {"inner": ["a"]}}


def test_injected_arguments_are_no_args(ai, ask, chat_model) -> None:
    @tool
    def look(
        query: str,
        state: Annotated[dict, InjectedState],
        store: Annotated[Any, InjectedStore()],
        runtime: ToolRuntime,
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Look."""
        assert (store, call_id) == (runtime.store, runtime.tool_call_id)
        return f"{query} {len(state['messages'])} {call_id}"

    model = chat_model(script=[ai("", ("look", {"query": "a"}, "call_1")), ai("done")])
    (step,) = ask(create_agent(model, [look], store=InMemoryStore()))["actual_steps"]
    assert (step["args"], step["output"]) == ({"query": "a"}, "a 2 call_1")


def test_ids_that_come_again_in_every_turn_are_steps_of_their_own(make_agent, ai, ask, search) -> None:
    script = [ai("", ("search", {"query": word}, "call_1")) for word in "ab"] + [
        ai("", ("nothing", {}, "call_1")),
        ai("done"),
    ]
    steps = ask(make_agent(script, [search]))["actual_steps"]
    assert [(step["name"], step["status"]) for step in steps] == [
        ("search", "success"), ("search", "success"), ("nothing", "error"),
    ]  # fmt: skip
    assert [step["args"] for step in steps] == [{"query": "a"}, {"query": "b"}, {}]
    assert all("attempts" not in step for step in steps)


@pytest.mark.parametrize("same_args", [True, False])
def test_a_tool_run_by_hand_in_a_node_is_one_step(same_args, ai, ask, search) -> None:
    def run_tools(state: MessagesState) -> dict[str, Any]:
        messages = []
        for call in state["messages"][-1].tool_calls:
            output = search.invoke(call["args"] if same_args else {"query": call["args"]["query"] + "!"})
            messages.append(ToolMessage(output, tool_call_id=call["id"]))
        return {"messages": messages}

    graph = StateGraph(MessagesState)
    calls = [("search", {"query": word}, f"call_{word}") for word in "ab"]
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]})
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "model").add_edge("model", "tools")
    steps = ask(graph.compile())["actual_steps"]
    end = "" if same_args else "!"
    assert [(step["id"], step["args"]["query"]) for step in steps] == [("call_a", "a" + end), ("call_b", "b" + end)]


def test_a_tool_run_by_hand_that_no_model_asked_for_has_its_run_id(ask, search) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", lambda state: {"messages": [HumanMessage(search.invoke({"query": "a"}))]})
    graph.add_edge(START, "tools")
    (step,) = ask(graph.compile())["actual_steps"]
    assert len(step["id"]) == 36


def test_steps_out_of_sight_are_taken_from_the_messages(ai, ask) -> None:
    def remote(state: MessagesState) -> dict[str, Any]:
        known = [{"type": "human", "content": m.content, "id": m.id} for m in state["messages"]]
        call = {"name": "search", "args": {"query": "a"}, "id": "call_1", "type": "tool_call"}
        return {
            "messages": [
                *known,
                {"type": "ai", "content": "", "tool_calls": [call], "id": "m1"},
                {"type": "tool", "content": "found a", "tool_call_id": "call_1", "id": "m2"},
                {"type": "ai", "content": "done", "id": "m3"},
            ]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("remote", remote)
    graph.add_edge(START, "remote")
    response = ask(graph.compile())
    (step,) = response["actual_steps"]
    assert (step["name"], step["args"], step["output"]) == ("search", {"query": "a"}, "found a")
    assert response["actual_answer"] == "done"
    assert "input_tokens" not in response


def test_a_tool_in_a_bare_thread_is_taken_from_the_messages(ai, ask, search) -> None:
    def in_thread(state: MessagesState) -> dict[str, Any]:
        outputs: list[Any] = []
        thread = threading.Thread(target=lambda: outputs.append(search.invoke(state["messages"][-1].tool_calls[0])))
        thread.start()
        thread.join()
        return {"messages": outputs}

    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [ai("", ("search", {"query": "a"}, "call_1"))]})
    graph.add_node("tools", in_thread)
    (step,) = ask(graph.add_edge(START, "model").add_edge("model", "tools").compile())["actual_steps"]
    assert (step["id"], step["output"]) == ("call_1", "found a")


@pytest.mark.parametrize("status", ["success", "error"])
def test_tools_that_the_provider_runs_are_steps(status, ai, ask, chat_model) -> None:
    blocks = [
        {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "args": {"query": "x"}},
        {"type": "server_tool_result", "tool_call_id": "ws_1", "status": status, "output": [{"url": "u"}]},
        {"type": "text", "text": "done"},
    ]
    response = ask(create_agent(chat_model(script=[ai(blocks)]), []))
    (step,) = response["actual_steps"]
    assert (step["name"], step["id"], step["args"], step["status"]) == ("web_search", "ws_1", {"query": "x"}, status)
    assert step.get("output", step.get("error")) == '[{"url": "u"}]'
    assert response["actual_answer"] == "done"


def test_an_answer_that_a_nested_graph_has_read_is_still_the_answer(ai, ask) -> None:
    critic = StateGraph(MessagesState).add_node("read", lambda state: {}).add_edge(START, "read").compile()

    def answer(state: MessagesState) -> dict[str, Any]:
        message = AIMessage("the answer", id="m1")
        critic.invoke({"messages": [*state["messages"], message]})
        return {"messages": [message]}

    assert ask(StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile())["actual_answer"] == (
        "the answer"
    )


def test_history_is_not_taken_for_new_steps(make_agent, ai, ask, search) -> None:
    script = [
        ai("", ("search", {"query": "a"}, "call_1")),
        ai("one"),
        ai("", ("search", {"query": "b"}, "call_1")),
        ai("two"),
    ]
    agent = make_agent(script, [search], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    first, second = (ask(agent, question_id=question, **thread) for question in ("q1", "q2"))
    assert [step["args"]["query"] for step in first["actual_steps"]] == ["a"]
    assert [step["args"]["query"] for step in second["actual_steps"]] == ["b"]
    assert (first["actual_answer"], second["actual_answer"]) == ("one", "two")


def test_a_node_that_gives_back_its_whole_state_repeats_no_step(ai, ask, search) -> None:
    history = [
        HumanMessage("x"),
        ai("", ("search", {"query": "old"}, "call_1")),
        ToolMessage("old", tool_call_id="call_1"),
    ]

    def whole(state: MessagesState) -> dict[str, Any]:
        return {"messages": [*state["messages"], ai("", ("search", {"query": "new"}, "call_1"))]}

    def again(state: MessagesState) -> dict[str, Any]:
        return {"messages": state["messages"]}

    graph = StateGraph(MessagesState)
    graph.add_node("whole", whole).add_node("tools", ToolNode([search])).add_node("again", again)
    graph.add_edge(START, "whole").add_edge("whole", "tools").add_edge("tools", "again")
    steps = ask(graph.compile(), {"messages": history})["actual_steps"]
    assert [step["args"]["query"] for step in steps] == ["new"]


def copies_without_ids(left: list[BaseMessage] | None, right: list[BaseMessage]) -> list[BaseMessage]:
    return [message.model_copy(update={"id": None}) for message in (left or []) + right]


class AddedState(TypedDict):
    messages: Annotated[list[Any], operator.add]


class CopiedState(TypedDict):
    messages: Annotated[list[Any], copies_without_ids]


class ModelState(BaseModel):
    messages: Annotated[list[Any], operator.add]


@dataclasses.dataclass
class DataclassState:
    messages: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("state", [AddedState, CopiedState, ModelState, DataclassState])
def test_states_of_all_kinds_give_each_step_once(state, ask, search) -> None:
    """The messages have no ids, the calls have the same ids in each turn, and no model callback tells of them."""

    def model(state: Any) -> dict[str, Any]:
        messages = state["messages"] if isinstance(state, dict) else state.messages
        turn = sum(isinstance(message, AIMessage) for message in messages)
        calls = [{"name": name, "args": {"query": str(turn)}, "id": name} for name in ("search", "nothing")]
        return {"messages": [AIMessage("done") if turn == 2 else AIMessage("", tool_calls=calls)]}

    graph = StateGraph(state).add_node("model", model).add_node("tools", ToolNode([search])).add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    response = ask(graph.compile(), {"messages": [HumanMessage("hi")]})
    assert [(step["name"], step["args"]["query"], step["status"]) for step in response["actual_steps"]] == [
        ("search", "0", "success"),
        ("nothing", "0", "error"),
        ("search", "1", "success"),
        ("nothing", "1", "error"),
    ]
    assert response["actual_answer"] == "done"


def test_few_shot_messages_of_a_prompt_are_no_steps(ai, ask, chat_model) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [ai("", ("search", {"query": "a"}, "call_1")), ToolMessage("x", tool_call_id="call_1"), ("user", "{question}")]
    )
    chain = prompt | chat_model(script=[ai("done")], by_turn=False)
    response = ask(chain, {"question": "hi"})
    assert (response["actual_steps"], response["actual_answer"]) == ([], "done")


# --- nesting ---


@pytest.mark.parametrize("as_tool", [True, False])
def test_nested_agents_are_a_flat_list(as_tool, make_agent, ai, ask, search) -> None:
    inner = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("inner answer")], [search])

    @tool
    def expert(question: str) -> str:
        """Ask the expert."""
        return inner.invoke({"messages": [("user", question)]})["messages"][-1].content

    if as_tool:
        calls = [("expert", {"question": "x"}, "call_1"), ("expert", {"question": "y"}, "call_2")]
        agent = make_agent([ai("", *calls), ai("done")], [expert])
    else:
        graph = StateGraph(MessagesState).add_node("inner", inner)
        agent = graph.add_edge(START, "inner").compile()
    response = ask(agent)
    steps = [(step["name"], step["id"], step.get("parent_id")) for step in response["actual_steps"]]
    if as_tool:
        assert steps == [
            ("expert", "call_1", None), ("search", "call_1", "call_1"),
            ("expert", "call_2", None), ("search", "call_1", "call_2"),
        ]  # fmt: skip
        assert response["input_tokens"] == 60
    else:
        assert steps == [("search", "call_1", None)]
        assert response["actual_answer"] == "inner answer"


def test_parallel_subgraphs_with_the_same_ids_do_not_mix(make_agent, ai, ask, search) -> None:
    graph = StateGraph(MessagesState)
    for word in "ab":
        agent = make_agent(
            [ai("", ("search", {"query": word}, "call_1"), ("nothing", {"n": word}, "call_2")), ai(word)], [search]
        )
        graph.add_node(word, agent)
        graph.add_edge(START, word)
    steps = ask(graph.compile())["actual_steps"]
    assert sorted((step["name"], *step["args"].values(), step["status"]) for step in steps) == [
        ("nothing", "a", "error"), ("nothing", "b", "error"), ("search", "a", "success"), ("search", "b", "success"),
    ]  # fmt: skip


def test_a_handoff_is_no_failure(make_agent, ai, ask, chat_model) -> None:
    @tool
    def to_writer(call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand over."""
        message = ToolMessage("handed over", tool_call_id=call_id)
        return Command(goto="writer", graph=Command.PARENT, update={"messages": [message]})

    agent = make_agent([ai("", ("to_writer", {}, "call_1"))], [to_writer])
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent, destinations=("writer",))
    graph.add_node("writer", lambda state: {"messages": [ai("written")]})
    graph.add_edge(START, "agent")
    response = ask(graph.compile())
    assert (response["status"], response["actual_answer"]) == ("success", "written")
    assert [(step["name"], step["status"], step["output"]) for step in response["actual_steps"]] == [
        ("to_writer", "success", "handed over")
    ]


@pytest.mark.parametrize("history", [True, False])
def test_parallel_handoffs_have_their_own_text_each(history, make_agent, ai, ask) -> None:
    """ToolNode makes one Command of both; the copies of the model's message ask for nothing."""

    def handoff(name: str) -> Any:
        @tool(f"to_{name}")
        def hand_over(call_id: Annotated[str, InjectedToolCallId], state: Annotated[Any, InjectedState]) -> Command:
            """Hand over."""
            message = ToolMessage(f"handed to {name}", tool_call_id=call_id)
            calls = [call for call in state["messages"][-1].tool_calls if call["id"] == call_id]
            copy = AIMessage("", tool_calls=calls, id=f"copy_{name}")
            sent = [*state["messages"][:-1], copy, message] if history else [message]
            return Command(graph=Command.PARENT, goto=[Send(name, {"messages": sent})])

        return hand_over

    agent = make_agent([ai("", ("to_a", {}, "call_1"), ("to_b", {}, "call_2"))], [handoff("a"), handoff("b")])
    graph = StateGraph(MessagesState).add_node("agent", agent, destinations=("a", "b")).add_edge(START, "agent")
    for name in "ab":
        graph.add_node(name, lambda state, name=name: {"messages": [*state["messages"], AIMessage(f"{name} says")]})
    response = ask(graph.compile())
    assert [(step["name"], step["output"]) for step in response["actual_steps"]] == [
        ("to_a", "handed to a"), ("to_b", "handed to b"),
    ]  # fmt: skip
    assert response["actual_answer"] == "b says"
    assert "capture_warnings" not in response


@pytest.mark.parametrize("at_once", [True, False])
def test_the_last_message_that_answers_a_call_counts(at_once, ai, ask) -> None:
    call = {"name": "far", "args": {}, "id": "call_1"}
    first, last = ToolMessage("wait", tool_call_id="call_1"), ToolMessage("there", tool_call_id="call_1")
    graph = StateGraph(MessagesState)
    given = [AIMessage("", tool_calls=[call], id="m1"), first, *([last] if at_once else [])]
    graph.add_node("far", lambda state: {"messages": given})
    graph.add_node("after", lambda state: {"messages": [] if at_once else [last]})
    graph.add_edge(START, "far").add_edge("far", "after")
    assert [step["output"] for step in ask(graph.compile())["actual_steps"]] == ["there"]


def test_tasks_of_the_functional_api_are_nodes(ai, ask, search, chat_model) -> None:
    model = chat_model(
        script=[ai("", ("search", {"query": "a"}, "call_1"), ("search", {"query": "b"}, "call_2")), ai("done")]
    )

    @task
    def call_model(messages: list[BaseMessage]) -> BaseMessage:
        return model.invoke(messages)

    @task
    def call_tool(call: dict[str, Any]) -> ToolMessage:
        return search.invoke(call)

    @entrypoint()
    def agent(messages: list[BaseMessage]) -> BaseMessage:
        while (answer := call_model(messages).result()).tool_calls:
            results = [future.result() for future in [call_tool(call) for call in answer.tool_calls]]
            messages = [*messages, answer, *results]
        return answer

    response = ask(agent, [HumanMessage("hi")])
    assert [step["id"] for step in response["actual_steps"]] == ["call_1", "call_2"]
    assert response["actual_answer"] == "done"


def test_tool_calls_that_are_sent_one_by_one(ai, ask, search) -> None:
    def send(state: MessagesState) -> list[Send]:
        return [Send("tools", [{**call, "type": "tool_call"}]) for call in state["messages"][-1].tool_calls]

    graph = StateGraph(MessagesState)
    calls = [("search", {"query": "a"}, "call_1"), ("nothing", {}, "call_2"), ("search", {"query": "b"}, "call_3")]
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]}).add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model").add_conditional_edges("model", send, ["tools"])
    assert [step["id"] for step in ask(graph.compile())["actual_steps"]] == ["call_1", "call_2", "call_3"]


# --- retrievers ---


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if query == "fail":
            raise ValueError("no index")
        return [Document("text a", id="a", metadata={"score": 1}), Document("text b")]


def test_a_retriever_outside_of_tools_is_a_step(ask, ai) -> None:
    retriever = Retriever(metadata={"k": 2})
    graph = StateGraph(MessagesState)
    graph.add_node("retrieve", lambda state: {"messages": [ai(str(len(retriever.invoke("x"))))]})
    graph.add_edge(START, "retrieve")
    (step,) = ask(graph.compile())["actual_steps"]
    assert (step["name"], step["args"]) == ("Retriever", {"query": "x", "k": 2})
    assert step["output"] == '[{"id": "a", "text": "text a"}, {"text": "text b"}]'


def test_a_failing_retriever_is_an_error_step(ask) -> None:
    response = ask(Retriever(), "fail")
    assert [step["error"] for step in response["actual_steps"]] == ["ValueError: no index"]
    assert response["error"] == "ValueError: no index"


def test_a_retriever_tool_is_one_step(make_agent, ai, ask) -> None:
    tools = [create_retriever_tool(Retriever(), "lookup", "Look up.", response_format="content_and_artifact")]
    (step,) = ask(make_agent([ai("", ("lookup", {"query": "x"}, "call_1")), ai("done")], tools))["actual_steps"]
    assert (step["name"], step["output"]) == ("lookup", "text a\n\ntext b")
    assert step["artifact"] == [{"id": "a", "text": "text a"}, {"text": "text b"}]


# --- models and tokens ---


def test_unknown_usage_leaves_the_sums_out(make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done", usage=None)], [search]))
    assert not {"input_tokens", "output_tokens", "total_tokens"} & set(response)
    assert "1 of 2 model calls" in response["capture_warnings"][0]
    assert [call.get("input_tokens") for call in response["llm_calls"]] == [10, None]


def test_usage_in_llm_output_counts(make_agent, ai, ask, search, chat_model) -> None:
    usage = {"token_usage": {"prompt_tokens": 5, "completion_tokens": 1}, "model_name": "m"}
    response = ask(chat_model(script=[ai("done", usage=None)], llm_output=usage), "hi")
    assert (response["input_tokens"], response["total_tokens"]) == (5, 6)
    assert response["llm_calls"][0]["model"] == "m"


def test_a_model_inside_a_tool_counts_once(make_agent, ai, ask, chat_model) -> None:
    inner = chat_model(script=[ai("x")], by_turn=False)

    @tool
    def think() -> str:
        """Think."""
        return inner.invoke("x").content

    response = ask(make_agent([ai("", ("think", {}, "call_1")), ai("done")], [think]))
    assert (response["input_tokens"], len(response["llm_calls"])) == (30, 3)


def test_cache_hits_are_not_counted(ask, ai, chat_model, handler) -> None:
    model = chat_model(script=[ai("done")], cache=InMemoryCache())
    paid, free = ask(model, "hi", question_id="q1"), ask(model, "hi", question_id="q2")
    assert (paid["input_tokens"], len(paid["llm_calls"])) == (10, 1)
    assert (free["input_tokens"], free["llm_calls"], free["actual_answer"]) == (0, [], "done")
    assert "cache answered 1 model call" in free["capture_warnings"][0]


def test_failed_model_calls_are_recorded(ask, ai, chat_model) -> None:
    model = chat_model(script=[ValueError("busy")]).with_fallbacks([chat_model(script=[ai("done")])])
    response = ask(model, "hi")
    assert response["llm_calls"][0]["error"] == "ValueError: busy"
    assert (response["status"], response["input_tokens"]) == ("success", 10)
    assert "1 of 2 model calls failed" in response["capture_warnings"][0]


def test_each_try_of_a_model_is_a_call_of_its_own(ask, ai, chat_model) -> None:
    model = chat_model(script=[ValueError("busy"), ai("done")], by_turn=False)
    response = ask(model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False), "hi")
    assert [call.get("error") for call in response["llm_calls"]] == ["ValueError: busy", None]
    assert (response["actual_answer"], response["input_tokens"]) == ("done", 10)


def test_bare_models_chains_and_tools_are_runs(ask, ai, chat_model, search) -> None:
    assert ask(chat_model(script=[ai("done")]), "hi", question_id="model")["actual_answer"] == "done"
    assert ask(FakeListLLM(responses=["plain"]), "hi", question_id="llm")["actual_answer"] == "plain"
    assert ask(RunnableLambda(str.upper), "hi", question_id="chain")["actual_answer"] == "HI"
    assert ask(search, {"query": "a"}, question_id="tool")["actual_steps"][0]["output"] == "found a"
    failing = ask(chat_model(script=[ValueError()]), "hi", question_id="failing")
    assert (failing["status"], failing["error"]) == ("error", "ValueError")


def test_answers_of_content_blocks_are_joined(ask, ai, chat_model) -> None:
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert ask(chat_model(script=[ai(blocks)]), "hi")["actual_answer"] == "ab"


# --- ways of running ---


async def stream(agent, config) -> None:
    for _ in agent.stream(HI, config, stream_mode="messages"):
        pass


async def astream(agent, config) -> None:
    async for _ in agent.astream(HI, config, stream_mode=["updates", "messages"]):
        pass


async def astream_events(agent, config, version="v2") -> None:
    async for _ in agent.astream_events(HI, config, version=version):
        pass


async def astream_events_v1(agent, config) -> None:
    await astream_events(agent, config, "v1")


async def astream_events_v3(agent, config) -> None:
    run = await agent.astream_events(HI, config, version="v3")
    async for _ in run:
        pass


async def invoke(agent, config) -> None:
    agent.invoke(HI, config)


async def ainvoke(agent, config) -> None:
    await agent.ainvoke(HI, config)


@pytest.mark.parametrize(
    "way", [invoke, ainvoke, stream, astream, astream_events, astream_events_v1, astream_events_v3]
)
async def test_each_way_of_running_gives_the_same_record(way, make_agent, ai, search, handler) -> None:
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("It is done.")], [search])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await way(agent, {"callbacks": [handler]})
    response = handler.response()
    assert (response["status"], response["actual_answer"]) == ("success", "It is done.")
    assert [(step["id"], step["output"]) for step in response["actual_steps"]] == [("call_1", "found a")]
    assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (20, 4, 24)
    assert len(response["llm_calls"]) == 2


# --- attempts ---


def test_a_node_that_is_tried_again_gives_one_step_with_attempts(make_agent, ai, ask) -> None:
    failures = [ValueError("first"), ValueError("second")]

    @tool
    def shaky(x: int) -> str:
        """Fail at first."""
        if failures:
            raise failures.pop(0)
        return "ok"

    @tool
    def steady() -> str:
        """Work."""
        return "steady"

    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=ValueError)
    graph.add_node(
        "model", lambda state: {"messages": [ai("", ("shaky", {"x": 1}, "call_1"), ("steady", {}, "call_2"))]}
    )
    graph.add_node("tools", ToolNode([shaky, steady], handle_tool_errors=False), retry_policy=policy)
    graph.add_edge(START, "model").add_edge("model", "tools").add_edge("tools", END)
    shaky_step, steady_step = ask(graph.compile())["actual_steps"]
    assert (shaky_step["status"], shaky_step["output"], shaky_step["attempts"]) == ("success", "ok", 3)
    assert (steady_step["id"], steady_step["output"]) == ("call_2", "steady")


# --- never in the agent's way ---


def test_a_failure_of_the_handler_never_reaches_the_agent(
    ask, handler, monkeypatch, make_agent, ai, search, caplog
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken record")

    monkeypatch.setattr("graphrag_eval_lc.capture.record.ToolRun.end", broken)
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    assert response["actual_answer"] == "done"
    assert response["capture_warnings"] == [
        "capture failed in on_tool_end: RuntimeError: broken record",
        "had not ended when the run did, and were closed as errors: search (call_1)",
    ]
    assert caplog.records == []


def test_hostile_outputs_become_their_type_name(handler) -> None:
    class Thing:
        def __str__(self) -> str:
            raise RuntimeError("hostile")

    @tool
    def give() -> Any:
        """Give."""
        return Thing()

    give.invoke({}, config={"callbacks": [handler]})
    assert handler.response()["actual_steps"][0]["output"] == '"<Thing>"'


def test_timestamps_are_starts(make_agent, ai, ask, search) -> None:
    before = time.time()
    response = ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    stamp = datetime.fromisoformat(response["actual_steps"][0]["execution_timestamp"]).timestamp()
    assert before - 0.01 <= stamp <= time.time()


def test_handlers_are_of_the_public_class(handler) -> None:
    assert isinstance(handler, GraphRAGEvalCallbackHandler)
    assert type(handler).__name__ == "GraphRAGEvalCallbackHandler"
