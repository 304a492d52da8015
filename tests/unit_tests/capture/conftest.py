"""A deterministic chat model and small agents for the tests of the capture."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


class ScriptedChatModel(BaseChatModel):
    """Answers with the messages of its script, at the index of the turns in the prompt.

    An exception in the script is raised. Without ``by_turn``, the messages are returned in order.
    """

    script: list[Any]
    by_turn: bool = True
    llm_output: dict[str, Any] | None = None
    delay: float = 0.0
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(**{key: value for key, value in kwargs.items() if key == "stop"})

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        turn = sum(isinstance(message, AIMessage) for message in messages) if self.by_turn else self.calls
        self.calls += 1
        entry = self.script[turn]
        if isinstance(entry, BaseException):
            raise entry
        return entry.model_copy(deep=True)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))], llm_output=self.llm_output)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(self.delay)
        return self._generate(messages, stop)

    def _chunks(self, messages: list[BaseMessage]) -> list[ChatGenerationChunk]:
        message = self._next(messages)
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": place}
            for place, call in enumerate(message.tool_calls)
        ]
        words = [AIMessageChunk(content=word) for word in re.findall(r"\S+\s*", message.content)]
        last = AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=message.usage_metadata)
        return [ChatGenerationChunk(message=chunk) for chunk in [*words, last]]

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from self._chunks(messages)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        await asyncio.sleep(self.delay)
        for chunk in self._chunks(messages):
            yield chunk


def _message(content: Any = "", *calls: tuple[str, dict[str, Any], str], usage: Any = USAGE) -> AIMessage:
    tool_calls = [{"name": name, "args": args, "id": call_id} for name, args, call_id in calls]
    return AIMessage(content=content, tool_calls=tool_calls, usage_metadata=usage)


@pytest.fixture
def ai() -> Callable[..., AIMessage]:
    """``ai("text")`` or ``ai("", ("search", {"query": "a"}, "call_1"))``, with token usage."""
    return _message


@pytest.fixture
def chat_model() -> type[ScriptedChatModel]:
    return ScriptedChatModel


@pytest.fixture
def handler() -> GraphRAGEvalCallbackHandler:
    return GraphRAGEvalCallbackHandler()


@pytest.fixture
def search() -> BaseTool:
    @tool
    def search(query: str) -> str:
        """Search."""
        return f"found {query}"

    return search


@pytest.fixture
def make_agent() -> Callable[..., Any]:
    """``make_agent(script, tools, ...)``: a StateGraph agent loop with a ToolNode."""

    def make(script: list[Any], tools: list[Any], *, checkpointer: Any = None, model: Any = None, **node: Any) -> Any:
        bound = (model or ScriptedChatModel(script=script)).bind_tools(tools)

        def call_model(state: MessagesState) -> dict[str, Any]:
            return {"messages": [bound.invoke(state["messages"])]}

        async def acall_model(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await bound.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", RunnableLambda(call_model, acall_model))
        graph.add_node("tools", ToolNode(tools, **node))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        return graph.compile(checkpointer=checkpointer)

    return make


@pytest.fixture
def ask(handler: GraphRAGEvalCallbackHandler) -> Callable[..., dict[str, Any]]:
    """``ask(agent)``: the response of one synchronous run, which may fail."""

    def run(agent: Any, inputs: Any = None, **config: Any) -> dict[str, Any]:
        metadata = {"question_id": config.pop("question_id", "q1")}
        config = {"callbacks": [handler], "metadata": metadata, **config}
        with contextlib.suppress(Exception):
            agent.invoke(inputs if inputs is not None else {"messages": [("user", "hi")]}, config=config)
        return handler.response(metadata["question_id"])

    return run
