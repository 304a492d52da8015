"""Agents for the tests of the runner: real graphs with a scripted answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, MessagesState, StateGraph


def graph_that(answer: Callable[[str], Awaitable[str]]) -> Runnable[Any, Any]:
    """Give a compiled graph whose one node answers the last message, and may raise."""

    async def respond(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(await answer(str(state["messages"][-1].content)))]}

    builder = StateGraph(MessagesState)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    return builder.compile()


@pytest.fixture
def echo_agent() -> Runnable[Any, Any]:
    async def echo(text: str) -> str:
        return f"echo: {text}"

    return graph_that(echo)


@pytest.fixture
def failing_agent() -> Runnable[Any, Any]:
    async def answer(text: str) -> str:
        if text.startswith("fail"):
            raise RuntimeError("the model is away")
        return "fine"

    return graph_that(answer)


class Counting:
    """An agent that notes how many questions it answers at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.agent = graph_that(self._answer)

    async def _answer(self, text: str) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        return text


@pytest.fixture
def counting_agent() -> Counting:
    return Counting()
