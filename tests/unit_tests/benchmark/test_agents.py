"""All kinds of agents are loaded and called in the right way."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.errors import AgentError


def graph() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", lambda state: {"messages": [AIMessage(f"graph: {state['messages'][-1].content}")]})
    builder.add_edge(START, "node")
    return builder.compile()


def chat_model() -> Any:
    return FakeListChatModel(responses=["model"])


async def output_of(candidate: Any) -> Any:
    """Return an agent's output for the question `x` with the default input."""
    agent = await aload_agent(candidate)
    return await agent.runnable.ainvoke(agent.input_for("x"))


# --- Runnables -------------------------------------------------------------------------------------------------------


async def test_compiled_graph_gets_a_messages_state() -> None:
    compiled = graph()
    agent = await aload_agent(compiled)
    assert agent.runnable is compiled
    assert agent.takes == "messages"
    assert agent.input_for("x") == {"messages": [{"role": "user", "content": "x"}]}
    assert (await output_of(compiled))["messages"][-1].content == "graph: x"


async def test_runnable_without_a_type_gets_a_messages_state() -> None:
    runnable = RunnableLambda(lambda state: state["messages"][0]["content"])
    assert (await aload_agent(runnable)).runnable is runnable
    assert await output_of(runnable) == "x"


async def test_runnable_with_a_string_input_gets_the_question() -> None:
    def shout(question: str) -> str:
        return question.upper()

    assert await output_of(RunnableLambda(shout)) == "X"


async def test_chain_with_other_keys_needs_an_input_function() -> None:
    chain = ChatPromptTemplate.from_messages([("human", "{question}")]) | chat_model()
    with pytest.raises(AgentError, match=r"takes question, but no messages\. Pass input_fn"):
        await aload_agent(chain)
    assert (await aload_agent(chain, has_input_fn=True)).runnable is chain


async def test_graph_without_messages_in_its_state_is_rejected() -> None:
    class State(TypedDict, total=False):
        question: str

    builder = StateGraph(State)
    builder.add_node("node", lambda state: state)
    builder.add_edge(START, "node")
    with pytest.raises(AgentError, match="takes question, but no messages"):
        await aload_agent(builder.compile())


async def test_uncompiled_graph_is_rejected() -> None:
    with pytest.raises(AgentError, match=r"not compiled. Give graph\.compile\(\)"):
        await aload_agent(StateGraph(MessagesState))


# --- functions -------------------------------------------------------------------------------------------------------


async def async_function(question: str) -> str:
    return f"{question} in {threading.current_thread() is threading.main_thread()}"


def sync_function(question: str) -> str:
    return f"{question} in {threading.current_thread() is threading.main_thread()}"


class AsyncCallable:
    async def __call__(self, question: str) -> str:
        return await async_function(question)


@pytest.mark.parametrize("function", [async_function, AsyncCallable()])
async def test_async_function_runs_in_the_event_loop(function: Any) -> None:
    assert (await aload_agent(function)).takes == "text"
    assert await output_of(function) == "x in True"


async def test_awaitable_results_are_awaited() -> None:
    def returns_a_coroutine(question: str) -> Awaitable[str]:
        return async_function(question)

    assert await output_of(returns_a_coroutine) == "x in True"
    assert await output_of(partial(async_function)) == "x in True"


async def test_function_may_have_more_arguments_with_defaults() -> None:
    def answer(question: str, language: str = "en") -> str:
        return question + language

    assert await output_of(answer) == "xen"


async def test_function_that_requires_more_than_a_question_is_rejected() -> None:
    def needs(question: str, *, store: object) -> str:
        return question

    with pytest.raises(AgentError, match=r"needs\(.*\).* cannot be called with a question or without arguments"):
        await aload_agent(needs)


# --- factories -------------------------------------------------------------------------------------------------------


async def async_factory() -> Any:
    await asyncio.sleep(0)
    return sync_function


class Factory:
    def __call__(self) -> Any:
        return sync_function


class AgentClass:
    """A class whose constructor has no arguments and whose instances answer."""

    async def __call__(self, question: str) -> str:
        return f"object: {question}"


@pytest.mark.parametrize(
    ("factory", "answer"),
    [
        (lambda: sync_function, "x in False"),
        (lambda: async_function, "x in True"),
        (async_factory, "x in False"),
        (Factory(), "x in False"),
        (AgentClass, "object: x"),
        (partial(lambda agent: agent, async_function), "x in True"),
    ],
)
async def test_factory_is_called_for_the_agent(factory: Callable[[], Any], answer: str) -> None:
    assert await output_of(factory) == answer


async def test_factory_may_return_a_graph() -> None:
    assert (await output_of(graph))["messages"][-1].content == "graph: x"
    assert (await aload_agent(graph)).name == "graph()"


def test_graph_of_an_async_factory_is_created_in_the_loop_of_the_run() -> None:
    async def load_and_ask() -> bool:
        loops = []

        async def factory() -> Any:
            loops.append(asyncio.get_running_loop())
            return async_function

        await output_of(factory)
        return loops == [asyncio.get_running_loop()]

    assert asyncio.run(load_and_ask())


@pytest.mark.parametrize("is_called", [False, True])
async def test_context_manager_is_open_until_the_agent_is_closed(is_called: bool) -> None:
    log = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[Any]:
        log.append("opened")
        yield async_function
        log.append("closed")

    agent = await aload_agent(opening() if is_called else opening)
    assert await agent.runnable.ainvoke("x") == "x in True"
    assert log == ["opened"]
    assert await agent.aclose() is None
    assert await agent.aclose() is None
    assert log == ["opened", "closed"]


def fails() -> Any:
    raise ConnectionError("no store")


def ends() -> Any:
    raise SystemExit("no key")


@pytest.mark.parametrize(
    ("candidate", "complaint"),
    [
        (3, "int is int, not an agent"),
        (None, "NoneType is NoneType, not an agent"),
        (lambda: None, r"<lambda>\(\) is NoneType, not an agent"),
        (lambda: fails, "gave function, not an agent"),
        (lambda: StateGraph(MessagesState), "is a graph that is not compiled"),
        (fails, r"fails\(\) failed with ConnectionError: no store"),
        (ends, r"ends\(\) failed with SystemExit: no key"),
    ],
)
async def test_invalid_agent_is_explained(candidate: Any, complaint: str) -> None:
    with pytest.raises(AgentError, match=complaint):
        await aload_agent(candidate)


# --- specs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["answer", "make"])
async def test_spec_names_an_agent_or_its_factory(attribute: str, tmp_path: Path) -> None:
    path = tmp_path / "agent_of_the_test.py"
    path.write_text("def answer(question):\n    return 'spec'\n\n\ndef make():\n    return answer\n")
    assert await output_of(f"{path}:{attribute}") == "spec"
    assert (await aload_agent(f"{path}:answer")).name == f"{path}:answer"
