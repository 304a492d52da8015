import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool

from graphrag_eval_lc.capture import capture_run
from graphrag_eval_lc.errors import CaptureError

UPPER = RunnableLambda(lambda text: text.upper())


def test_blocks_in_threads_do_not_mix() -> None:
    def one(word: str) -> str:
        with capture_run() as handler:
            UPPER.invoke(word)
            return handler.response()["actual_answer"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, "abcdef")) == list("ABCDEF")


def test_exception_ends_the_block() -> None:
    with pytest.raises(ValueError, match="stop"), capture_run() as handler:
        raise ValueError("stop")
    UPPER.invoke("a")
    with pytest.raises(CaptureError):
        handler.response()


# --- a block with a question id: everything in it is one response ---


@pytest.fixture
def script(ai) -> list[Any]:
    """Two turns, with parallel calls in the first one, and an answer."""
    return [
        ai("", ("search", {"query": "a"}, "call_1"), ("search", {"query": "b"}, "call_2")),
        ai("", ("search", {"query": "c"}, "call_1")),
        ai("It is done."),
    ]


def question() -> list[BaseMessage]:
    return [SystemMessage("Be short."), HumanMessage("why?")]


def loop(model: Any, tools: list[BaseTool], messages: list[BaseMessage] | None = None) -> str:
    """The loop from LangChain's documentation."""
    messages = question() if messages is None else messages
    by_name = {each.name: each for each in tools}
    messages.append(answer := model.invoke(messages))
    while answer.tool_calls:
        for call in answer.tool_calls:
            messages.append(by_name[call["name"]].invoke(call))
        messages.append(answer := model.invoke(messages))
    return str(answer.content)


async def aloop(model: Any, tools: list[BaseTool]) -> None:
    messages = question()
    by_name = {each.name: each for each in tools}
    messages.append(answer := await model.ainvoke(messages))
    while answer.tool_calls:
        messages += await asyncio.gather(*(by_name[call["name"]].ainvoke(call) for call in answer.tool_calls))
        messages.append(answer := await model.ainvoke(messages))


STEPS = [("call_1", "found a"), ("call_2", "found b"), ("call_1", "found c")]


def check_loop(response: Any) -> None:
    assert [(step["id"], step["output"]) for step in response["actual_steps"]] == STEPS
    assert (response["status"], response["actual_answer"]) == ("success", "It is done.")
    assert (response["question_id"], response["question_text"]) == ("q1", "why?")
    assert (response["input_tokens"], response["output_tokens"], len(response["llm_calls"])) == (30, 6, 3)


@pytest.mark.parametrize("run", [loop, aloop])
async def test_loop_is_one_response(run, script, chat_model, search) -> None:
    with capture_run(question_id="q1") as handler:
        await asyncio.sleep(0.02)
        pending = run(chat_model(script=script), [search])
        if asyncio.iscoroutine(pending):
            await pending
        await asyncio.sleep(0.02)
    (response,) = handler.responses()
    check_loop(response)
    assert "capture_warnings" not in response
    assert 0.04 <= response["elapsed_sec"] < 2
    assert handler.response() == handler.response("q1") == response


def test_exception_in_the_block_is_its_error(ai, chat_model, search) -> None:
    model = chat_model(script=[ai("", ("gone", {}, "call_1"))])
    with pytest.raises(KeyError), capture_run(question_id="q1") as handler:
        loop(model, [search], [HumanMessage("hi")])
    response = handler.response("q1")
    assert (response["status"], response["error"], response["question_text"]) == ("error", "KeyError: 'gone'", "hi")


def test_block_that_fails_before_any_run_is_an_error_response() -> None:
    with pytest.raises(KeyError), capture_run(question_id=7, redact=lambda value: "***") as handler:
        raise KeyError("secret")
    assert (handler.response("7")["status"], handler.response("7")["error"]) == ("error", "***")


def test_block_without_runs_has_no_response() -> None:
    with capture_run(question_id="q1") as handler:
        pass
    assert handler.responses() == []
    with pytest.raises(CaptureError, match="question q1: No run was recorded"):
        handler.response("q1")


@pytest.mark.full
def test_passed_on_conversation_counts_once(make_agent, ai, chat_model, search) -> None:
    first = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("draft")], [search])
    second = make_agent([], [search], model=chat_model(script=[ai("final")], by_turn=False))
    with capture_run(question_id="q1") as handler:
        second.invoke(first.invoke({"messages": [("user", "why?")]}))
    response = handler.response()
    assert (len(response["actual_steps"]), response["input_tokens"], response["actual_answer"]) == (1, 30, "final")


async def test_blocks_with_ids_in_tasks_do_not_mix(script, chat_model, search) -> None:
    async def one(question_id: str) -> None:
        with capture_run(question_id=question_id) as handler:
            await aloop(chat_model(script=script, delay=0.002), [search])
        assert handler.response()["question_id"] == question_id

    with capture_run() as outer:
        await asyncio.gather(*(one(f"q{number}") for number in range(20)))
    assert sorted(response["question_id"] for response in outer.responses()) == sorted(f"q{n}" for n in range(20))
    for response in outer.responses():
        check_loop({**response, "question_id": "q1"})


def test_block_in_a_generator_closed_in_another_context() -> None:
    handlers = []

    def answers() -> Iterator[str]:
        with capture_run(question_id="q1") as handler:
            handlers.append(handler)
            yield UPPER.invoke("a")

    generator = answers()
    assert contextvars.copy_context().run(next, generator) == "A"
    contextvars.copy_context().run(generator.close)
    assert handlers[0].response()["actual_answer"] == "A"


@pytest.mark.parametrize("question_id", ["", True, 1.5, ["q1"]])
def test_invalid_question_id_is_rejected(question_id) -> None:
    with pytest.raises(CaptureError, match="question_id"), capture_run(question_id=question_id):
        pass
