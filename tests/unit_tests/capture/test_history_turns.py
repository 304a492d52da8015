"""Recording of a single turn on a thread: earlier messages are neither its steps nor its answer."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph, add_messages

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.steps import History


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


class Scripted(GenericFakeChatModel):
    """Returns its messages one after the other."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def scripted(turns: list[list[str]]) -> Scripted:
    """Return a model that searches for the words of each turn, always with the same call id, and then answers."""
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    messages = []
    for number, words in enumerate(turns):
        for word in words:
            call = {"name": "search", "args": {"query": word}, "id": "call_1"}
            messages.append(AIMessage("", tool_calls=[call], usage_metadata=usage))
        messages.append(AIMessage(f"answer {number}", usage_metadata=usage))
    return Scripted(messages=iter(messages))


def agent_on_a_thread(turns: list[list[str]]) -> Any:
    return create_agent(scripted(turns), [search], checkpointer=InMemorySaver())


THREAD: Any = {"configurable": {"thread_id": "1"}}


def own_thread(turns: list[list[str]]) -> Any:
    agent = agent_on_a_thread(turns)
    return RunnableLambda(lambda text: {"messages": [("user", text)]}) | RunnableLambda(
        lambda state, config: agent.invoke(state, config)
    )


def as_root(turns: list[list[str]]) -> Any:
    return agent_on_a_thread(turns)


def in_a_function(turns: list[list[str]]) -> Any:
    agent = agent_on_a_thread(turns)
    return RunnableLambda(lambda text: agent.invoke({"messages": [("user", f"Please: {text}")]}, THREAD))


def in_a_node(turns: list[list[str]]) -> Any:
    graph = StateGraph(MessagesState).add_node("agent", create_agent(scripted(turns), [search]))
    return graph.add_edge(START, "agent").compile(checkpointer=InMemorySaver())


def remote(agent: Any) -> Callable[[Any], Any]:
    """Run an agent as a remote server does: without callbacks, and with messages returned as dicts."""

    def invoke(given: Any) -> Any:
        states: list[Any] = []
        thread = threading.Thread(target=lambda: states.append(agent.invoke(given, THREAD)))
        thread.start()
        thread.join()
        return {"messages": [message.model_dump() for message in states[0]["messages"]]}

    return invoke


def remote_in_a_function(turns: list[list[str]]) -> Any:
    invoke = remote(agent_on_a_thread(turns))
    return RunnableLambda(lambda text: invoke({"messages": [("user", text)]}))


def remote_in_a_node(turns: list[list[str]]) -> Any:
    invoke = remote(agent_on_a_thread(turns))
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: invoke({"messages": [("user", state["messages"][-1].content)]}))
    return graph.add_edge(START, "agent").compile(checkpointer=InMemorySaver())


def functional(turns: list[list[str]], order: Callable[[Any], Any] = list) -> Any:
    model = scripted(turns)

    @entrypoint(checkpointer=InMemorySaver())
    def chat(text: str, *, previous: Any = None) -> Any:
        messages = add_messages(previous or [], [HumanMessage(text)])
        while (answer := model.invoke(messages)).tool_calls:
            results = [search.invoke(call) for call in answer.tool_calls]
            messages = add_messages(messages, [answer, *results])
        messages = add_messages(messages, [answer])
        return entrypoint.final(value=order(messages), save=messages)

    return chat


SHAPES = [
    as_root,
    own_thread,
    in_a_function,
    in_a_node,
    remote_in_a_function,
    remote_in_a_node,
    functional,
]
TAKES_STATE = (as_root, in_a_node, remote_in_a_node)


def ask(shape: Any, agent: Any, question: str, handler: GraphRAGEvalCallbackHandler, question_id: str) -> Any:
    given = {"messages": [("user", question)]} if shape in TAKES_STATE else question
    agent.invoke(given, {"callbacks": [handler], "metadata": {"question_id": question_id}, **THREAD})
    response = handler.response(question_id)
    steps = [(step["id"], step["args"], step["output"]) for step in response["actual_steps"]]
    return steps, response["actual_answer"], response["input_tokens"], len(response["llm_calls"])


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("ab"), max_size=2), min_size=1, max_size=3),
    st.lists(st.sampled_from(["why so?", "and how?"]), min_size=3, max_size=3),
    st.booleans(),
)
def test_every_turn_is_recorded_like_the_first(
    shape: Any, turns: list[list[str]], questions: list[str], shared: bool
) -> None:
    on_thread, handler = shape(turns), GraphRAGEvalCallbackHandler()
    for number, (words, question) in enumerate(zip(turns, questions, strict=False)):
        handler = handler if shared else GraphRAGEvalCallbackHandler()
        recorded = ask(shape, on_thread, question, handler, str(number))
        steps, _, *tokens = ask(shape, shape([words]), question, GraphRAGEvalCallbackHandler(), "alone")
        assert recorded == (steps, f"answer {number}", *tokens)
        assert len(steps) == len(words)


ORDERS: dict[str, Callable[[Any], Any]] = {
    "reversed": lambda messages: messages[::-1],
    "newest turn first": lambda messages: messages[4:] + messages[:4],
    "by kind": lambda messages: sorted(messages, key=lambda message: str(message.type)),
    "answers last": lambda messages: sorted(messages, key=lambda message: message.type == "ai"),
    "of models": lambda messages: [message for message in messages if message.type == "ai"],
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_reordered_history_is_neither_cached_nor_part_of_the_turn(order: str, shared: bool) -> None:
    agent, handler = functional([["a"], ["b"]], ORDERS[order]), GraphRAGEvalCallbackHandler()
    ask(functional, agent, "why so?", handler, "0")
    handler = handler if shared else GraphRAGEvalCallbackHandler()
    recorded = ask(functional, agent, "and how?", handler, "1")
    assert recorded == ([("call_1", {"query": "b"}, "found b")], "answer 1", 20, 2)
    assert "capture_warnings" not in handler.response("1")


def turn(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)], "question": question}


def brief(response: Any) -> tuple[list[str], str | None, int]:
    outputs = [step.get("output", step.get("error")) for step in response["actual_steps"]]
    return outputs, response.get("actual_answer"), len(response["llm_calls"])


def run(agent: Any, *inputs: Any, shared: bool = True) -> list[Any]:
    handler, found = GraphRAGEvalCallbackHandler(), []
    for number, given_input in enumerate(inputs):
        handler = handler if shared else GraphRAGEvalCallbackHandler()
        agent.invoke(given_input, {"callbacks": [handler], "metadata": {"question_id": str(number)}, **THREAD})
        found.append(brief(handler.response(str(number))))
    return found


def test_summarized_history_is_history() -> None:
    summaries = Scripted(messages=iter([AIMessage("so far: …") for _ in range(9)]))
    middleware = SummarizationMiddleware(summaries, trigger=("messages", 4), keep=("messages", 3))
    turns = [["a"], ["a", "a"], ["a"]]
    agent = create_agent(scripted(turns), [search], middleware=[middleware], checkpointer=InMemorySaver())
    found = run(agent, *[turn("hi")] * 3)
    assert [outputs for outputs, _, _ in found] == [["found a"], ["found a", "found a"], ["found a"]]
    assert [answer for _, answer, _ in found] == ["answer 0", "answer 1", "answer 2"]


# --- remote messages before a model call ---


@pytest.mark.parametrize("shape", [as_root, in_a_node])
def test_cost_of_a_turn_does_not_depend_on_earlier_turns(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    find = History.known

    def counting_find(self: History, item: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return find(self, item)

    monkeypatch.setattr(History, "known", counting_find)
    agent, costs = shape([["a"]] * 8), []
    for _ in range(8):
        looked_at = 0
        ask(shape, agent, "why so?", GraphRAGEvalCallbackHandler(), "q1")
        costs.append(looked_at)
    assert costs[1] == costs[-1] < 40
