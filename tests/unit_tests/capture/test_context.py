import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import context as tracer_context

from graphrag_eval_lc.capture import capture_run
from graphrag_eval_lc.errors import CaptureError

UPPER = RunnableLambda(lambda text: text.upper())


def test_a_block_records_without_a_config(make_agent, ai, search) -> None:
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    with capture_run() as handler:
        agent.invoke({"messages": [("user", "hi")]})
    agent.invoke({"messages": [("user", "hi")]})
    (response,) = handler.responses()
    assert [step["id"] for step in response["actual_steps"]] == ["call_1"]
    assert response["input_tokens"] == 20


def test_nested_blocks_record_into_both() -> None:
    with capture_run() as outer:
        UPPER.invoke("a")
        with capture_run() as inner:
            UPPER.invoke("b")
        UPPER.invoke("c")
    assert [response["actual_answer"] for response in outer.responses()] == ["A", "B", "C"]
    assert [response["actual_answer"] for response in inner.responses()] == ["B"]


def test_a_block_inside_a_recorded_run_records_each_call_once(make_agent, ai, search) -> None:
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])

    def run(text: str) -> str:
        with capture_run() as inner:
            inners.append(inner)
            return str(agent.invoke({"messages": [("user", text)]})["messages"][-1].content)

    inners = []
    with capture_run() as outer:
        RunnableLambda(run).invoke("hi")
    for handler in (outer, *inners):
        response = handler.response()
        assert len(response["actual_steps"]) == 1
        assert response["input_tokens"] == 20


async def test_blocks_in_tasks_do_not_mix() -> None:
    async def one(word: str) -> str:
        with capture_run() as handler:
            await asyncio.sleep(0.001)
            await UPPER.ainvoke(word)
            await asyncio.sleep(0.001)
            return handler.response()["actual_answer"]

    assert await asyncio.gather(*(one(word) for word in "abcdef")) == list("ABCDEF")


def test_blocks_in_threads_do_not_mix() -> None:
    def one(word: str) -> str:
        with capture_run() as handler:
            UPPER.invoke(word)
            return handler.response()["actual_answer"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, "abcdef")) == list("ABCDEF")


def test_an_exception_ends_the_block() -> None:
    with pytest.raises(ValueError, match="stop"), capture_run() as handler:
        raise ValueError("stop")
    UPPER.invoke("a")
    with pytest.raises(CaptureError):
        handler.response()


def test_blocks_register_no_further_hooks() -> None:
    before = len(tracer_context._configure_hooks)
    for _ in range(3):
        with capture_run():
            pass
    assert len(tracer_context._configure_hooks) == before
