"""Cost budgets and refusals with unusual models, endpoints and model classes, over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from support.judged_runs import config_of, judged_dataset, judged_responses, judgement
from support.openai_stub import Fault, Json, OpenAIStub, StubRequest, finish_reason, http_error, refusal

from graphrag_eval_lc import run_benchmark, score_responses, score_run

PRICES = {"gpt-4o-mini": {"input": 2.0, "output": 8.0}, "text-embedding-3-small": {"input": 0.5, "output": 0}}
QUESTIONS = 5


class Bill:
    """What the stub charges: the bytes of the prompt, and the request's maximum for its answers."""

    def __init__(self, stub: OpenAIStub, answer_tokens: int | None = None) -> None:
        self.usd = self.dearest = 0.0
        self._stub = stub
        self._answer_tokens = answer_tokens
        stub.answer = self._answer
        stub.latency_sec = 0.01

    def _answer(self, request: StubRequest) -> Json:
        prompt = sum(len(str(message["content"]).encode()) for message in request.body["messages"])
        choices = request.body.get("n") or 1
        bound = request.body.get("max_completion_tokens") or request.body["max_tokens"]
        tokens = self._answer_tokens or choices * bound
        self._stub.usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        cost = (prompt * 2.0 + tokens * 8.0) / 1e6
        self.usd += cost / choices  # called once per choice
        self.dearest = max(cost, self.dearest)
        return judgement(request)


def scored(stub: OpenAIStub, config: Json | None = None, **options: Any) -> Any:
    return score_responses(
        judged_dataset(QUESTIONS),
        judged_responses(QUESTIONS),
        config=config or config_of(stub, prices=PRICES),
        **options,
    )


def errors_of(run: Any) -> list[str]:
    records = [record for result in run.results for record in (result, *result["actual_steps"])]
    return [str(text) for record in records for key, text in record.items() if key.endswith("_error")]


def chat_openai(stub: OpenAIStub, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", base_url=stub.base_url, api_key="k", **options)  # type: ignore[arg-type]


def test_lost_answers_count_towards_the_budget_of_later_sessions(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    bill = Bill(openai_stub)
    config = config_of(openai_stub, prices=PRICES, judges={"max_retries": 1, "max_concurrency": 1})
    del config["llm"]["embedding"]
    for _ in range(3):
        openai_stub.chat_faults.extend([Fault(is_cut=True), None] * 50)
        run = run_benchmark(
            lambda question: "Paris.",
            judged_dataset(20),
            output_dir=tmp_path,
            config=config,
            max_cost=0.5,
            progress="off",
        )
        assert run.stopped is not None
        assert bill.usd <= 0.5 + bill.dearest


@pytest.mark.full
def test_cached_answers_of_unknown_cost_do_not_stop_the_judging(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.lacks.add("usage")
    openai_stub.answer = judgement
    config = config_of(openai_stub, prices=PRICES, judges={"max_concurrency": 1})
    assert scored(openai_stub, config, output_dir=tmp_path, max_cost=0.9).stopped["reason"] == "max_cost"
    assert score_run(tmp_path, dataset=judged_dataset(QUESTIONS), config=config, max_cost=3.0).stopped is None


@pytest.mark.parametrize("answer", [finish_reason("content_filter"), refusal(), finish_reason("length")])
def test_unusable_answer_resets_the_count_of_refusals(openai_stub: OpenAIStub, answer: Fault) -> None:
    openai_stub.answer = judgement
    openai_stub.chat_faults.extend([http_error(403), answer] * 100)
    config = config_of(openai_stub, judges={"max_concurrency": 1})
    config["llm"]["generation"]["max_tokens"] = 500
    assert scored(openai_stub, config).stopped is None


def test_concurrent_requests_learn_unsupported_parameters(openai_stub: OpenAIStub) -> None:
    openai_stub.answer = judgement
    openai_stub.latency_sec = 0.01
    message = "Invalid parameter: response_format json_schema for model gpt-4o-mini is not supported"
    openai_stub.chat_faults.extend([http_error(400, message)] * 40)
    config = config_of(openai_stub, judges={"max_concurrency": 64})
    assert scored(openai_stub, config).stopped is None


class Window:
    """A model with a small window for prompt and answer. Its answers have 600 tokens; a token is four bytes."""

    def __init__(self, stub: OpenAIStub, tokens: int) -> None:
        self._tokens = tokens
        stub.answer = judgement
        stub._refusal_of = self._refusal_of  # type: ignore[method-assign]

    def _refusal_of(self, request: StubRequest) -> Fault | None:
        if not request.is_chat:
            return None
        prompt = sum(len(str(message["content"]).encode()) for message in request.body["messages"]) // 4
        answer = request.body.get("max_tokens") or request.body["max_completion_tokens"]
        if prompt + answer > self._tokens:
            text = (
                f"maximum context length is {self._tokens} tokens, {prompt} in the messages, {answer} in the completion"
            )
            return http_error(400, text, code="context_length_exceeded")
        return finish_reason("length") if answer < 600 else None


@pytest.mark.full
@pytest.mark.parametrize("is_langchain", [False, True])
@pytest.mark.parametrize("tokens", [3000, 8192])
def test_too_long_context_does_not_truncate_answers_about_others(
    openai_stub: OpenAIStub, is_langchain: bool, tokens: int
) -> None:
    Window(openai_stub, tokens)
    responses = judged_responses(QUESTIONS)
    long = json.dumps([{"id": "d1", "text": "The tower is in Paris. " * 3000}])
    responses[0]["actual_steps"] = [{**responses[0]["actual_steps"][0], "output": long}]
    config = config_of(openai_stub, judges={"max_concurrency": 2})
    llm = chat_openai(openai_stub) if is_langchain else None
    run = score_responses(judged_dataset(QUESTIONS), responses, config=config, llm=llm)
    assert errors_of(run)
    assert all("the texts are too long for" in error for error in errors_of(run))
    assert all("_error" not in key for result in run.results[1:] for key in result)


def test_concurrent_refusals_stop_the_run_too(openai_stub: OpenAIStub) -> None:
    openai_stub.latency_sec = 0.05
    openai_stub.chat_faults.extend([http_error(401, "Incorrect API key provided")] * 100)
    config = config_of(openai_stub, judges={"metrics": ["answer_correctness"]})
    stopped = scored(openai_stub, config).stopped
    assert stopped["reason"] == "judges"
    assert "Incorrect API key provided" in stopped["message"]  # each version of openai words it differently
    assert stopped["message"].endswith("(check the API key)")
