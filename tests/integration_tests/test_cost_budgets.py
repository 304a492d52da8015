"""Random cost budgets over random runs: the endpoint bills at most ``max_cost`` plus requests in flight, over all
sessions.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from support.judged_runs import config_of, judgement
from support.openai_stub import Fault, Json, OpenAIStub, StubRequest, http_error

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.judges import model

pytestmark = pytest.mark.full

CHAT_PRICE = {"input": 2.0, "output": 8.0, "cached_input": 1.0}
EMBEDDING_PRICE = {"input": 0.5, "output": 0}
PRICES = {"gpt-4o-mini": CHAT_PRICE, "text-embedding-3-small": EMBEDDING_PRICE}


class Provider:
    """Bills its answers by the bytes it receives. Some requests fail, and answers differ in length."""

    def __init__(self, stub: OpenAIStub, chance: random.Random) -> None:
        self.billed = self.dearest = 0.0
        self._stub = stub
        self._chance = chance
        stub.answer = self._answer
        stub.latency_sec = 0.002

    def plan_faults(self) -> None:
        faults: list[Fault | None] = [
            None,
            http_error(500, "oops"),
            http_error(429, "slow down"),
            Fault(is_reset=True),
            Fault(is_cut=True),
            Fault(change=_cut_off),
        ]
        kinds = self._chance.choices(faults, [30, 1, 1, 1, 1, 1], k=2000)
        self._stub.chat_faults.clear()
        self._stub.chat_faults.extend(kinds)

    def _answer(self, request: StubRequest) -> Json:
        # Called once per choice before the usage is read: the last call counts and bills all choices.
        texts = sum(len(str(message["content"]).encode()) for message in request.body["messages"])
        prompt = max(1, int(texts / self._chance.uniform(1.0, 5.0)))
        choices = request.body.get("n") or 1
        bound = request.body.get("max_tokens") or request.body["max_completion_tokens"]
        longest = choices * bound
        answer = longest if self._chance.random() < 0.05 else self._chance.randint(1, min(200, longest))
        self._stub.usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
        cost = (prompt * CHAT_PRICE["input"] + answer * CHAT_PRICE["output"]) / 1e6
        self.billed += cost / choices if choices > 1 else cost
        self.dearest = max(cost, self.dearest)
        return judgement(request)


def _cut_off(answer: Json) -> None:
    for choice in answer["choices"]:
        choice["finish_reason"] = "length"


def dataset_and_responses(chance: random.Random) -> tuple[list[Any], list[Any]]:
    questions, responses = [], []
    for number in range(chance.randint(1, 12)):
        contexts = [
            {"id": f"d{rank}", "text": "Der Turm ist aus Eisen. " * chance.randint(1, 80)}
            for rank in range(chance.choice([1, 3, 10, 60]))
        ]
        step = {"name": "retrieval", "output": json.dumps(contexts)}
        questions.append(
            {
                "id": f"q{number}",
                "question_text": f"Where is tower {number}?",
                "reference_answer": f"Tower {number} is in Paris. " * chance.randint(1, 30),
                "reference_steps": [[step]],
            }
        )
        actual = {**step, "args": {}, "id": "s", "status": "success"}
        responses.append({"question_id": f"q{number}", "actual_answer": "In Paris.", "actual_steps": [actual]})
    return [{"template_id": "t", "questions": questions}], responses


@pytest.fixture
def openai_stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        yield stub


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "FIRST_WAIT_SEC", 0.001)


def options_of(stub: OpenAIStub, chance: random.Random) -> dict[str, Any]:
    judges = {"max_retries": chance.randint(0, 2), "max_concurrency": chance.choice([1, 4, 16, 64]), "timeout": 5}
    config = config_of(stub, judges=judges, prices=PRICES)
    config["llm"]["generation"]["max_tokens"] = chance.choice([None, 50, 300])
    if chance.random() < 0.5:
        del config["llm"]["embedding"]
    if chance.random() < 0.3:  # called through LangChain
        bound = config["llm"].pop("generation")["max_tokens"]
        key: Any = "k"
        model = ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key=key, max_tokens=bound, max_retries=0)
        config.pop("llm")
        return {"config": config, "llm": model, "max_cost": 10 ** chance.uniform(-2.5, 0.3)}
    return {"config": config, "max_cost": 10 ** chance.uniform(-2.5, 0.3)}


def check(run: Any, provider: Provider, most: float, in_flight: int) -> None:
    assert provider.billed <= most + in_flight * provider.dearest
    if run.stopped is not None and run.stopped["reason"] == "max_cost":
        assert "not judged" in run.stopped["message"] or run.stopped["left_out"]
    else:
        assert run.stopped is None


@pytest.mark.parametrize("seed", range(12))
def test_judges_respect_the_scoring_budget(openai_stub: OpenAIStub, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    provider = Provider(openai_stub, chance)
    provider.plan_faults()
    dataset, responses = dataset_and_responses(chance)
    options = options_of(openai_stub, chance)
    in_flight = options["config"]["judges"]["max_concurrency"]
    run = score_responses(dataset, responses, output_dir=tmp_path, **options)
    check(run, provider, options["max_cost"], in_flight)
    provider.billed = 0.0
    run = score_run(tmp_path, dataset=dataset, **options)
    check(run, provider, options["max_cost"], in_flight)


@pytest.mark.parametrize("seed", range(25, 31))
def test_run_with_several_sessions_respects_its_budget(openai_stub: OpenAIStub, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    provider = Provider(openai_stub, chance)
    provider.plan_faults()
    dataset, responses = dataset_and_responses(chance)
    options = options_of(openai_stub, chance)
    in_flight = options["config"]["judges"]["max_concurrency"]
    answers = {
        question["question_text"]: given for question, given in zip(dataset[0]["questions"], responses, strict=True)
    }
    most = options.pop("max_cost")
    for _ in range(3):
        run = run_benchmark(
            lambda question: answers[question]["actual_answer"],
            dataset,
            output_dir=tmp_path,
            max_cost=most,
            progress="off",
            **options,
        )
        check(run, provider, most, in_flight)
        most = 1.5 * max(most, provider.billed)
