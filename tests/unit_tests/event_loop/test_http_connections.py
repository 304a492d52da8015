"""A model's HTTP client outlives event loops: each request is sent, answered and charged once."""

import asyncio
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from support.judged_runs import judgement
from support.openai_stub import OpenAIStub

from graphrag_eval_lc import arun_benchmark, run_benchmark
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.event_loop.http_connections import is_of_another_loop
from graphrag_eval_lc.judges import ContextPrecision
from graphrag_eval_lc.retrying import is_worth_a_retry

QUESTIONS = 6
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [{"id": f"q{n}", "question_text": "?", "reference_answer": "yes"} for n in range(QUESTIONS)],
    }
]
CONTEXTS = list("abcde")


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        server.answer = judgement
        yield server


def model_of(stub: OpenAIStub, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="key", max_retries=0, **options)


def agent_of(model: ChatOpenAI) -> Any:
    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()


class RequestCounter:
    """Counts the requests that have reached the server since the last call."""

    def __init__(self, stub: OpenAIStub) -> None:
        self._stub, self._seen = stub, 0

    def new(self) -> int:
        before, self._seen = self._seen, len(self._stub.requests)
        return self._seen - before

    def check_run(self, run: BenchmarkRun) -> None:
        assert [dict(response).get("error") for response in run.responses] == [None] * QUESTIONS
        assert sum(len(dict(response)["llm_calls"]) for response in run.responses) == self.new() == QUESTIONS


# --- several calls in one process ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_new_model", [False, True])
def test_five_benchmarks_in_one_script_all_get_answers(stub: OpenAIStub, is_new_model: bool) -> None:
    count, agent = RequestCounter(stub), agent_of(model_of(stub))
    for _ in range(5):
        count.check_run(run_benchmark(agent_of(model_of(stub)) if is_new_model else agent, DATASET, progress="off"))


async def test_model_can_be_called_from_threads_that_block_its_loop(stub: OpenAIStub) -> None:
    count, model = RequestCounter(stub), model_of(stub)
    judge = ContextPrecision(model)
    await asyncio.gather(*(model.ainvoke("?") for _ in range(4)))
    assert count.new() == 4
    with ThreadPoolExecutor(2) as threads:
        assert [score.cost is not None for score in threads.map(lambda _: judge.score(**judge_inputs()), range(2))]
    assert count.new() == 2 * len(CONTEXTS)


@pytest.mark.full
def test_concurrent_benchmarks_with_one_model_do_not_interfere(stub: OpenAIStub) -> None:
    count, agent = RequestCounter(stub), agent_of(model_of(stub))
    stub.latency_sec = 0.005
    with ThreadPoolExecutor(3) as threads:
        runs = list(threads.map(lambda _: run_benchmark(agent, DATASET, progress="off"), range(9)))
    assert [dict(response).get("error") for run in runs for response in run.responses] == [None] * 9 * QUESTIONS
    assert count.new() == 9 * QUESTIONS


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_opens_new_connections(stub: OpenAIStub) -> None:
    code = f"""
import asyncio, os
from langchain_openai import ChatOpenAI
from graphrag_eval_lc import run_benchmark
model = ChatOpenAI(model="gpt-4o-mini", base_url={stub.base_url!r}, api_key="key", max_retries=0)
dataset = [{{"template_id": "t", "questions": [{{"id": "q", "question_text": "?"}}]}}]
async def agent(question):
    answer = (await model.ainvoke(question)).text
    if not hasattr(agent, "child"):
        agent.child = os.fork()
        if agent.child == 0:  # the parent has an open connection
            os._exit(0 if run_benchmark(agent, dataset, progress="off").response("q").get("error") is None else 1)
        os.waitpid(agent.child, 0)
    return answer
print(run_benchmark(agent, dataset, progress="off").response("q").get("error"))
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


@pytest.mark.full
def test_agent_and_judge_may_share_a_client(stub: OpenAIStub) -> None:
    agent = agent_of(model_of(stub))
    runs = [run_benchmark(agent, DATASET, progress="off", llm=model_of(stub)) for _ in range(2)]
    runs += [asyncio.run(arun_benchmark(agent, DATASET, progress="off", llm=model_of(stub))) for _ in range(2)]
    for run in runs:
        assert [result for result in run.results if "error" in str(sorted(result))] == []
        assert all(dict(result)["answer_correctness_cost"] > 0 for result in run.results)
    assert len(stub.requests) == 4 * 2 * QUESTIONS  # an answer and a judgement each


# --- judges ----------------------------------------------------------------------------------------------------------


def judge_inputs() -> dict[str, Any]:
    return {"user_input": "?", "reference": "yes", "retrieved_contexts": CONTEXTS}


def test_judge_is_charged_for_each_request_it_sends(stub: OpenAIStub) -> None:
    count, costs = RequestCounter(stub), set()
    for _ in range(5):
        costs.add(ContextPrecision(model_of(stub)).score(**judge_inputs()).cost)
        assert count.new() == len(CONTEXTS)
    assert len(costs) == 1


def arrived_requests(stub: OpenAIStub, expected: int) -> int:
    """Return how many requests have arrived; the last may still be in transit when the client gives up."""
    deadline = time.monotonic() + 10
    while len(stub.requests) < expected and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)  # no more arrive
    return len(stub.requests)


# --- streams, and errors across loops ---------------------------------------------------------------------------------


async def test_stream_continues_after_a_synchronous_call(stub: OpenAIStub) -> None:
    model = model_of(stub)
    stub.answers.append("a long answer that comes in parts")
    chunks: list[str] = []
    async for chunk in model.astream("?"):
        chunks.append(str(chunk.content))
        if len(chunks) == 2:
            run_benchmark(agent_of(model), DATASET, progress="off")
    assert "".join(chunks) == "a long answer that comes in parts"


def test_connection_of_another_loop_is_an_error_and_not_sent_twice(stub: OpenAIStub) -> None:
    model = model_of(stub)

    def ask_in_another_loop(state: MessagesState) -> Any:
        return {"messages": [AIMessage(asyncio.run(model.ainvoke("?")).text)]}

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("first", ask_in_another_loop).add_node("then", ask)
    agent = graph.add_edge(START, "first").add_edge("first", "then").compile()
    question: Any = [{"template_id": "t", "questions": [{"id": "q", "question_text": "?"}]}]
    error = dict(run_benchmark(agent, question, progress="off").response("q"))["error"]
    assert "belongs to another event loop" in error
    assert "http_async_client" in error
    assert arrived_requests(stub, 2) == 2


def test_only_requests_that_were_not_sent_are_retried(stub: OpenAIStub) -> None:
    httpx = importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    client = openai.DefaultAsyncHttpxClient(limits=httpx.Limits(keepalive_expiry=0.2))
    model = model_of(stub, http_async_client=client)
    asyncio.run(model.ainvoke("?"))
    time.sleep(0.3)  # the next request closes the expired connection, which belongs to a closed loop
    with pytest.raises((RuntimeError, openai.APIConnectionError)) as unsent:
        asyncio.run(model.ainvoke("?"))
    assert len(stub.requests) == 1
    assert is_worth_a_retry(unsent.value)
    keepalive_model = model_of(stub)
    asyncio.run(keepalive_model.ainvoke("?"))
    with pytest.raises((RuntimeError, openai.APIConnectionError)) as sent:
        asyncio.run(keepalive_model.ainvoke("?"))
    assert arrived_requests(stub, 3) == 3
    assert not is_worth_a_retry(sent.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("Event loop is closed"), True),
        (RuntimeError("<asyncio.locks.Event object> is bound to a different event loop"), True),
        (RuntimeError("Task got Future attached to a different loop"), True),
        (RuntimeError("the loop of the grid is closed"), False),
        (ValueError("Event loop is closed"), False),
    ],
)
def test_errors_across_loops_are_recognised_by_asyncios_message(error: Exception, expected: bool) -> None:
    assert is_of_another_loop(error) is expected
