"""Agents for the tests of the runner: real graphs with a scripted answer."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, MessagesState, StateGraph


def graph_that(answer: Callable[[str], str]) -> Runnable[Any, Any]:
    """Give a compiled graph whose one node answers the last message, and may raise."""

    async def respond(state: MessagesState) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"messages": [AIMessage(answer(str(state["messages"][-1].content)))]}

    builder = StateGraph(MessagesState)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    return builder.compile()


@pytest.fixture
def echo_agent() -> Runnable[Any, Any]:
    return graph_that(lambda text: f"echo: {text}")


@pytest.fixture
def failing_agent() -> Runnable[Any, Any]:
    def answer(text: str) -> str:
        if text.startswith("fail"):
            raise RuntimeError("the model is away")
        return "fine"

    return graph_that(answer)


class Counting:
    """An agent that notes how many questions it answers at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.agent = self._compiled()

    def _compiled(self) -> Runnable[Any, Any]:
        async def respond(state: MessagesState) -> dict[str, Any]:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            await asyncio.sleep(0.02)
            with self.lock:
                self.now -= 1
            return {"messages": [AIMessage("done")]}

        builder = StateGraph(MessagesState)
        builder.add_node("respond", respond)
        builder.add_edge(START, "respond")
        builder.add_edge("respond", END)
        return builder.compile()


@pytest.fixture
def counting_agent() -> Counting:
    return Counting()
