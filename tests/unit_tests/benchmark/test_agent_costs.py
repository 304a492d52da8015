"""The agent's own model calls respect the cost budget, as far as callbacks report them."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from support.judged_runs import judgement
from support.openai_stub import OpenAIStub, StubRequest

from graphrag_eval_lc import run_benchmark

PRICES = {"gpt-4o-mini": {"input": 2.0, "output": 8.0}}


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        yield server


class Provider:
    """Bills each answer by the bytes it receives and a random length."""

    def __init__(self, stub: OpenAIStub, chance: random.Random) -> None:
        self.billed = self.dearest = 0.0
        self._stub, self._chance = stub, chance
        stub.answer = self._answer

    def _answer(self, request: StubRequest) -> str:
        prompt = max(1, int(len(request.user.encode()) / self._chance.uniform(1, 5)))
        bound = request.body.get("max_tokens") or request.body["max_completion_tokens"]
        answer = self._chance.randint(1, bound)
        self._stub.usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
        cost = (prompt * 2.0 + answer * 8.0) / 1e6
        self.billed += cost
        self.dearest = max(cost, self.dearest)
        return json.dumps(judgement(request)) if request.schema else "Paris."


def agent_of(stub: OpenAIStub, calls: int = 1, *, in_threads: bool = False, **options: Any) -> Any:
    model = ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="k", max_retries=0, **options)  # type: ignore[arg-type]

    async def answer(state: MessagesState) -> Any:
        messages = state["messages"]
        for _ in range(calls):
            messages = [*messages, await model.ainvoke(messages)]
        return {"messages": messages}

    def answer_in_thread(state: MessagesState) -> Any:
        messages = state["messages"]
        for _ in range(calls):
            messages = [*messages, model.invoke(messages)]
        return {"messages": messages}

    node: Any = answer_in_thread if in_threads else answer
    return StateGraph(MessagesState).add_node("answer", node).add_edge(START, "answer").compile()


def dataset_of(questions: int, words: int = 1) -> list[Any]:
    asked = [
        {"id": f"q{number}", "question_text": f"Where is tower {number}? " * words, "reference_answer": "In Paris."}
        for number in range(questions)
    ]
    return [{"template_id": "t", "questions": asked}]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 20))])
def test_budget_is_exceeded_only_by_requests_in_flight(stub: OpenAIStub, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    provider = Provider(stub, chance)
    stub.latency_sec = 0.002
    most = 10 ** chance.uniform(-3.5, -1.5)
    dataset = dataset_of(chance.randint(1, 20), chance.choice([1, 200]))
    in_threads = chance.random() < 0.5
    agent = agent_of(stub, calls=chance.randint(1, 4), in_threads=in_threads, max_tokens=chance.choice([50, 500]))
    config: dict[str, Any] = {"prices": PRICES}
    if chance.random() < 0.5:
        generation = {"base_url": stub.base_url, "api_key": "k", "max_tokens": 200}
        config |= {"llm": {"generation": generation}, "judges": {"max_retries": 1, "max_concurrency": 4}}
    for _ in range(2):
        concurrency = chance.choice([1, 8])
        run = run_benchmark(
            agent,
            dataset,
            output_dir=tmp_path,
            config=config,
            max_cost=most,
            max_retries=0,
            max_concurrency=concurrency,
            progress="off",
        )
        assert provider.billed <= most + (concurrency + 4) * provider.dearest
        assert run.stopped is None or run.stopped["reason"] == "max_cost"
        most = 2 * max(most, provider.billed)


def test_question_with_an_unsent_call_is_rerun_with_a_higher_budget(stub: OpenAIStub, tmp_path: Path) -> None:
    options: dict[str, Any] = {"config": {"prices": PRICES}, "progress": "off", "output_dir": tmp_path}
    agent, dataset = agent_of(stub, calls=2), dataset_of(3)  # 0.0028 USD per call
    run = run_benchmark(agent, dataset, max_cost=0.001, max_failures=0, max_concurrency=1, **options)
    assert len(stub.requests) == 1
    assert run.stopped is not None
    assert run.stopped["reason"] == "max_cost"
    assert run.stopped["message"].startswith("the budget of $0.0010 is spent: $0.0028")
    assert ["interrupted" in response for response in run.responses] == [True]
    assert len(run.responses[0]["llm_calls"]) == 1  # the unsent call is not counted
    run = run_benchmark(agent, dataset, max_cost=1.0, **options)
    assert run.stopped is None
    assert [response["status"] for response in run.responses] == ["success"] * 3


def test_agent_that_catches_the_budget_error_has_not_answered(stub: OpenAIStub) -> None:
    model = ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="k")  # type: ignore[arg-type]

    async def answer(question: str) -> str:
        try:
            return str([(await model.ainvoke(question)).text for _ in range(2)])
        except Exception:
            return "I do not know."

    run = run_benchmark(answer, dataset_of(1), config={"prices": PRICES}, max_cost=0.0005, progress="off")
    assert len(stub.requests) == 1
    assert all(response["status"] == "error" and "interrupted" in response for response in run.responses)


def test_costs_are_counted_once(stub: OpenAIStub) -> None:
    agent = agent_of(stub, max_tokens=100)  # 0.0028 USD per question
    run = run_benchmark(
        agent, dataset_of(5), config={"prices": PRICES}, max_cost=0.02, max_concurrency=1, progress="off"
    )
    assert run.stopped is None
    assert run.aggregates["totals"]["agent_cost"] == pytest.approx(5 * 0.0028)


def test_cost_budget_stops_if_one_of_two_models_has_no_price(stub: OpenAIStub) -> None:
    stub.usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    stub.answer = lambda request: "Paris."
    priced, other = (
        ChatOpenAI(model=name, base_url=stub.base_url, api_key="k")  # type: ignore[arg-type]
        for name in ("gpt-4o-mini", "no-price-known")
    )

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await priced.ainvoke(state["messages"]), await other.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    questions = [{"id": f"q{number}", "question_text": "Where?"} for number in range(5)]
    options: dict[str, Any] = {"config": {"prices": PRICES}, "max_cost": 1.0, "max_concurrency": 1}
    run = run_benchmark(graph, [{"template_id": "t", "questions": questions}], progress="off", **options)
    assert run.stopped is not None
    assert "no price is known for no-price-known" in run.stopped["message"]
    assert len(run.responses) == 1


def test_no_price_is_needed_without_a_budget(stub: OpenAIStub) -> None:
    run = run_benchmark(agent_of(stub), dataset_of(2), config={"prices": PRICES}, progress="off")
    assert run.aggregates["totals"]["agent_cost"] == pytest.approx(2 * 0.0028)


def test_call_that_blocks_the_event_loop_is_counted(stub: OpenAIStub) -> None:
    model = ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="k", max_tokens=400)  # type: ignore[arg-type]

    async def answer(question: str) -> str:
        return str(model.invoke(question).text)

    run = run_benchmark(answer, dataset_of(5), config={"prices": PRICES}, max_cost=0.1, progress="off")
    assert run.stopped is None
    assert run.aggregates["totals"]["agent_cost"] == pytest.approx(5 * 0.0028)
