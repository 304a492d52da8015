import functools
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import StructuredTool

from graphrag_eval_lc import capture_run, run_benchmark
from graphrag_eval_lc.benchmark.ready_agents import FunctionRunnable


async def asynchronous(question: str) -> str:
    return question.upper()


def synchronous(question: str) -> str:
    return question.upper()


def awaitable(question: str) -> Any:
    return asynchronous(question)


async def streamed(question: str) -> AsyncIterator[str]:
    for letter in question:
        yield letter.upper()


def streamed_in_a_thread(question: str) -> Iterator[str]:
    yield from question.upper()


class Callable:
    async def __call__(self, question: str) -> str:
        return question.upper()


@pytest.mark.parametrize(
    "function",
    [asynchronous, synchronous, awaitable, streamed, streamed_in_a_thread, Callable(), functools.partial(asynchronous)],
)
async def test_every_kind_of_function_returns_its_answer_and_is_a_run(function: Any) -> None:
    with capture_run() as handler:
        assert await FunctionRunnable(function).ainvoke("why?") == "WHY?"
    assert handler.response()["actual_answer"] == "WHY?"


async def test_nested_runs_in_the_loop_and_in_threads_reach_the_callbacks() -> None:
    inner = RunnableLambda(lambda question: question.upper(), name="inner")

    async def calls_asynchronously(question: str) -> str:
        return await inner.ainvoke(question)

    def calls_in_a_thread(question: str) -> str:
        return inner.invoke(question)

    for function in (calls_asynchronously, calls_in_a_thread):
        with capture_run() as handler:
            await FunctionRunnable(function).ainvoke("why?")
        assert len(handler.responses()) == 1  # the inner run is part of the outer one


def test_function_can_be_invoked_without_a_loop() -> None:
    assert FunctionRunnable(asynchronous).invoke("why?") == "WHY?"


# --- a config in addition to the question ----------------------------------------------------------------------------

LOOKUP = StructuredTool.from_function(lambda name: f"found {name}", name="lookup", description="Look up.")


def in_a_new_thread(question: str, config: RunnableConfig) -> str:
    """Call a tool without a context variable that provides the callbacks."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(LOOKUP.invoke({"name": question}, config)))
    thread.start()
    thread.join()
    return f"{found[0]} {config['metadata']['question_id']}"


class Configured:
    def ask(self, question: str, config: Any = None) -> str:
        return in_a_new_thread(question, config)

    async def aask(self, question: str, *, settings: RunnableConfig) -> str:
        return f"{await LOOKUP.ainvoke({'name': question}, settings)} {settings['metadata']['question_id']}"

    def __call__(self, question: str, config) -> str:  # type: ignore[no-untyped-def]
        return in_a_new_thread(question, config)


@pytest.mark.parametrize(
    "agent", [in_a_new_thread, Configured().ask, Configured().aask, Configured(), functools.partial(Configured().ask)]
)
def test_function_may_accept_the_config(agent: Any) -> None:
    questions: list[Any] = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "OSLO"}]}]
    [response] = run_benchmark(agent, questions, progress="off").responses
    assert response.get("actual_answer") == "found OSLO q1"
    assert [step["name"] for step in response["actual_steps"]] == ["lookup"]


def default(question: str, config: Any = "its own") -> Any:
    return config


def of_another_type(question: str, config: Configured | None = None) -> Any:
    return config or "its own"


def of_another_name(question: str, settings: Any = None) -> Any:
    return settings or "its own"


PARTIAL = functools.partial(lambda question, config: config, config="its own")


@pytest.mark.parametrize("agent", [default, of_another_type, of_another_name, PARTIAL])
async def test_unrelated_parameter_keeps_its_default(agent: Any) -> None:
    assert await FunctionRunnable(agent).ainvoke("why?") == "its own"
