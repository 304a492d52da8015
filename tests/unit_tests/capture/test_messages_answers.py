"""Which answers and questions are read of agents as people write them."""

import json
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel


class Verdict(BaseModel):
    name: str
    value: float


@dataclass
class Fact:
    name: str
    value: float


class Row(TypedDict):
    name: str
    value: float


class State(TypedDict, total=False):
    question: str
    rows: list[Any]
    answer: Any
    output: Any
    result: Any
    response: Any


TEXT = '{"name": "a", "value": 1.5}'
VALUES = [Verdict(name="a", value=1.5), Fact("a", 1.5), Row(name="a", value=1.5)]


def graph_that_gives(**update: Any) -> Any:
    return StateGraph(State).add_node("node", lambda state: update).add_edge(START, "node").compile()


@pytest.mark.parametrize("key", ["answer", "output", "result", "response"])
@pytest.mark.parametrize(("value", "answer"), [*((value, TEXT) for value in VALUES), (42, "42"), ("text", "text")])
def test_the_answer_of_a_graph_stands_in_its_state(key, value, answer, ask) -> None:
    response = ask(graph_that_gives(**{key: value}), {"question": "why?"})
    assert (response["question_text"], response["actual_answer"]) == ("why?", answer)


def test_a_state_without_an_answer_is_none(ask) -> None:
    assert "actual_answer" not in ask(graph_that_gives(rows=[1, 2]), {"question": "why?"})


@pytest.mark.parametrize(
    ("value", "answer"), [*((value, TEXT) for value in VALUES), (42, "42"), ([1, "a"], '[1, "a"]')]
)
@pytest.mark.parametrize("kind", ["function", "entrypoint"])
def test_what_a_function_gives_is_its_answer(kind, value, answer, ask) -> None:
    agent = RunnableLambda(lambda inputs: value) if kind == "function" else entrypoint()(lambda inputs: value)
    response = ask(agent, {"input": "why?"})
    assert (response["question_text"], response["actual_answer"]) == ("why?", answer)


def test_what_waits_for_somebody_is_no_answer(ask) -> None:
    agent = entrypoint(checkpointer=InMemorySaver())(lambda inputs: {"sure": interrupt("sure?")})
    assert "actual_answer" not in ask(agent, {"input": "why?"}, configurable={"thread_id": "1"})


PROMPT = ChatPromptTemplate.from_template("{query}")


@pytest.mark.parametrize(
    ("parser", "text", "answer"),
    [
        (StrOutputParser(), "so", "so"),
        (JsonOutputParser(), TEXT, TEXT),
        (CommaSeparatedListOutputParser(), "a, b", '["a", "b"]'),
        (RunnableLambda(lambda message: json.loads(message.content)), "3", "3"),
    ],
)
def test_the_answer_of_a_chain_is_what_its_parser_gives(parser, text, answer, ai, ask, chat_model) -> None:
    response = ask(PROMPT | chat_model(script=[ai(text)]) | parser, {"query": "why?"})
    assert (response["question_text"], response["actual_answer"]) == ("why?", answer)


def test_the_answer_of_a_chain_that_passes_on_its_context_is_under_its_key(ai, ask, chat_model) -> None:
    retrieve = RunnableLambda(lambda inputs: [Document("text")])
    chain = RunnablePassthrough.assign(context=retrieve) | RunnablePassthrough.assign(
        answer=RunnableLambda(lambda inputs: {"query": inputs["question"]}) | PROMPT | chat_model(script=[ai("so")])
    )
    response = ask(chain, {"question": "why?"})
    assert (response["question_text"], response["actual_answer"]) == ("why?", "so")


def test_documents_and_prompts_are_no_answer(ask) -> None:
    assert "actual_answer" not in ask(RunnableLambda(lambda text: [Document(text)]), "why?", question_id="a")
    assert "actual_answer" not in ask(PROMPT, {"query": "why?"}, question_id="b")
    assert (
        ask(RunnableParallel(a=lambda text: text, b=lambda text: 1), "why?", question_id="c")["actual_answer"]
        == '{"a": "why?", "b": 1}'
    )


def test_the_texts_of_a_question_with_a_picture_are_read(ai, ask, make_agent) -> None:
    blocks: list[Any] = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    response = ask(make_agent([ai("a map")], []), {"messages": [HumanMessage(blocks)]})
    assert (response["question_text"], response["actual_answer"]) == ("What is it?", "a map")
