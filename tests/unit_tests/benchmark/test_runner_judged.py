"""Runs with judges, over HTTP: their metrics and costs, and that no judgement is lost or paid for twice."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.judged_runs import (
    ERRORS,
    REQUESTS,
    STEP_ERRORS,
    agent,
    asking_agent,
    config_of,
    judged_dataset,
    judged_responses,
    judgement,
)
from support.openai_stub import Fault, OpenAIStub, StubRequest
from support.scored_runs import record_in
from support.signalling import send_signal

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.errors import ConfigError

TONE = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Rate.", "outputs": {"tone_score": "0 to 1"}}
CORRECTNESS = {"metrics": ["answer_correctness"]}
PRICES = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}, "text-embedding-3-small": {"input": 1.0, "output": 0}}
CALL_COST = 0.002  # per chat request of the stub at these prices
AGENTS_PRICES = {"agents-own": {"input": 8.0, "output": 20.0}}
QUESTION_COST = 0.01  # per question to the agent that calls a model


def run_of(stub: OpenAIStub, folder: Path | None = None, questions: int = 2, asked: Any = agent, **options: Any) -> Any:
    config = {**config_of(stub), **options.pop("config", {})}
    return run_benchmark(
        asked, judged_dataset(questions), output_dir=folder, config=config, **{"progress": "off", **options}
    )


def kinds_of(requests: list[StubRequest]) -> Counter[str]:
    kinds = {"true_positives": "correctness", "noncommittal": "relevance", "statements": "recall", "verdict": "context"}
    names = []
    for request in requests:
        properties = (request.schema or {}).get("properties", {}) if request.is_chat else {}
        names.append(next((name for key, name in kinds.items() if key in properties), "other"))
    return Counter(names)


# --- metrics ---------------------------------------------------------------------------------------------------------


def check_judged(run: BenchmarkRun, samples: int = 2) -> None:
    assert len(run.results) == samples
    for result in map(dict, run.results):
        assert result["answer_f1"] == pytest.approx(2 / 3)
        assert result["answer_correctness_reason"] == "so"
        assert 0 < result["answer_relevance"] <= 1
        assert result["tone_score"] == 0.5
        (step,) = result["actual_steps"]
        assert step["retrieval_answer_f1"] == step["retrieval_context_f1"] == pytest.approx(2 / 3)
        assert step["retrieval_utilization"] == 1.0
        costs = {key: value for key, value in {**result, **step}.items() if key.endswith("_cost")}
        assert len(costs) == 10
        assert all(cost >= 0 for cost in costs.values())  # duplicate requests are paid for once
    micro, totals = run.aggregates["micro"], run.aggregates["totals"]
    assert micro["answer_f1"]["mean"] == pytest.approx(2 / 3)
    assert micro["tone_score"]["mean"] == 0.5
    assert micro["retrieval_answer_f1"]["mean"] == pytest.approx(2 / 3)
    assert run.aggregates["per_template"]["t"]["answer_relevance"]["mean"] > 0
    paid = sum(
        value
        for result in map(dict, run.results)
        for record in (result, *result["actual_steps"])
        for key, value in record.items()
        if key.endswith("_cost") and not key.endswith("_f1_cost")
    )
    assert totals["judges_cost"] == pytest.approx(paid)


@pytest.mark.full
def test_run_has_judged_keys_in_its_results_and_aggregates(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path, config={"custom_evaluations": [TONE]})
    check_judged(run)
    assert len(judge.requests) == 2 * (REQUESTS + 1)
    assert record_in(tmp_path)["totals"] == run.aggregates["totals"]


@pytest.mark.parametrize("has_folder", [True, False])
def test_recorded_responses_are_judged(judge: OpenAIStub, tmp_path: Path, has_folder: bool) -> None:
    config = {**config_of(judge), "custom_evaluations": [TONE]}
    folder = tmp_path / "run" if has_folder else None
    run = score_responses(judged_dataset(), judged_responses(), output_dir=folder, config=config)
    check_judged(run)
    if folder is not None:
        assert record_in(folder)["judges"]["custom_evaluations"] == ["tone"]


# --- functions -------------------------------------------------------------------------------------------------------


def raises(question: dict[str, Any], response: dict[str, Any]) -> float:
    raise ValueError("nothing to see")


# --- models given in Python ------------------------------------------------------------------------------------------


class NotingChat:
    """Creates a LangChain chat model that answers each metric without a network."""

    def __init__(self) -> None:
        self.asked = 0

    def model(self) -> Any:
        from langchain_core.language_models.chat_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        owner = self

        class Model(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "noting"

            def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
                owner.asked += 1
                text = '{"reason": "so", "true_positives": ["a"], "false_positives": [], "false_negatives": ["b"]}'
                return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

        return Model()


def test_langchain_chat_model_judges_without_an_llm_section(tmp_path: Path) -> None:
    chat, dataset = NotingChat(), judged_dataset()
    config = {"judges": CORRECTNESS}
    run = run_benchmark(agent, dataset, output_dir=tmp_path, config=config, llm=chat.model(), progress="off")
    assert [dict(result)["answer_f1"] for result in run.results] == [pytest.approx(2 / 3)] * 2
    assert record_in(tmp_path)["judges"]["metrics"] == ["answer_correctness"]
    asked = chat.asked
    again = score_run(tmp_path, dataset=dataset, llm=chat.model())
    assert chat.asked == asked
    assert again.results == run.results
    with pytest.raises(ConfigError, match=r"key judges\.metrics: a model is needed for this"):
        score_run(tmp_path, dataset=dataset)
    responses = score_responses(dataset, judged_responses(), config=config, llm=chat.model())
    assert dict(responses.results[0])["answer_recall"] == 0.5


# --- the cache -------------------------------------------------------------------------------------------------------


def test_rescoring_sends_no_requests_and_has_the_same_results(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path)
    asked = len(judge.requests)
    again = score_run(tmp_path, dataset=judged_dataset(), config=config_of(judge))
    assert len(judge.requests) == asked
    assert again.aggregates == run.aggregates
    assert again.results == run.results


def test_rescoring_sends_only_new_requests(judge: OpenAIStub, tmp_path: Path) -> None:
    run_of(judge, tmp_path)
    dataset = judged_dataset()
    dataset[0]["questions"][1]["reference_answer"] = "Tower 1 is in Paris, in the north."
    judge.requests.clear()
    score_run(tmp_path, dataset=dataset, config=config_of(judge))
    assert kinds_of(judge.requests) == {"correctness": 1, "recall": 1, "context": 2}
    assert all("in the north" in request.user for request in judge.requests)


@pytest.mark.full
def test_run_resumed_with_judges_judges_earlier_answers(judge: OpenAIStub, tmp_path: Path) -> None:
    run_benchmark(agent, judged_dataset(), output_dir=tmp_path, progress="off")
    assert "judges" not in record_in(tmp_path)
    run = run_of(judge, tmp_path)
    assert all("answer_f1" in result for result in run.results)
    assert record_in(tmp_path)["judges"] == run.judges
    without = run_benchmark(agent, judged_dataset(), output_dir=tmp_path, progress="off")
    assert not any("answer_f1" in result for result in without.results)
    assert "judges" not in record_in(tmp_path)
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 2


KILLED = """
import sys
from support.judged_runs import agent, judged_dataset
from graphrag_eval_lc import run_benchmark
endpoint = {"base_url": sys.argv[1], "api_key": "k"}
config = {"llm": {"generation": endpoint, "embedding": endpoint}, "judges": {"max_concurrency": 2}}
run_benchmark(agent, judged_dataset(8), output_dir=sys.argv[2], config=config, progress="off")
"""


@pytest.mark.full
def test_killed_run_loses_no_paid_judgement(judge: OpenAIStub, tmp_path: Path) -> None:
    judge.latency_sec = 0.03
    answered: list[str] = []

    def answer(request: StubRequest) -> Any:
        answered.append(request.user)
        return judgement(request)

    judge.answer = answer
    tests = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, judge.base_url, str(tmp_path)], env={**os.environ, "PYTHONPATH": tests}
    )
    deadline = time.monotonic() + 60
    while len(answered) < 30 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    paid = len(judge.requests)
    lines = len((tmp_path / "judge_cache.jsonl").read_bytes().splitlines())
    assert paid - lines <= 4  # of two in flight: those, and answers that are not saved yet
    judge.latency_sec = 0
    run = run_of(judge, tmp_path, questions=8, config=config_of(judge, judges={"max_concurrency": 2, "max_retries": 3}))
    assert len(run.results) == 8
    assert len(judge.requests) - paid == 8 * REQUESTS + 1 - lines  # the dataset's questions are embedded once
    assert all(dict(result)["answer_f1"] == pytest.approx(2 / 3) for result in run.results)


@pytest.mark.full
def test_interrupted_run_judges_existing_answers(judge: OpenAIStub, tmp_path: Path) -> None:
    asked: list[str] = []

    async def interrupting(question: str) -> str:
        asked.append(question)
        if len(asked) == 3:
            send_signal(signal.SIGINT)
        return await agent(question)

    run = run_of(judge, tmp_path, questions=9, asked=interrupting, max_concurrency=1)
    assert run.stopped is not None
    assert (run.stopped["reason"], run.stopped["left_out"]) == ("interrupted", 6)
    assert [dict(result)["answer_f1"] for result in run.results] == [pytest.approx(2 / 3)] * 3
    assert len(judge.requests) == 3 * REQUESTS + 1  # the dataset's questions are embedded once
    run = run_of(judge, tmp_path, questions=9, asked=interrupting, max_concurrency=1)
    assert run.stopped is None
    assert len(judge.requests) == 9 * REQUESTS + 1


@pytest.mark.full
def test_second_interrupt_does_not_wait_for_judges(judge: OpenAIStub, tmp_path: Path) -> None:
    judge.latency_sec = 60
    pid = os.getpid()

    def interrupt() -> None:
        for _ in range(2):
            deadline = time.monotonic() + 30
            while not judge.requests and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(pid, signal.SIGINT)
            time.sleep(0.3)

    thread = threading.Thread(target=interrupt)
    thread.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_of(judge, tmp_path)
    thread.join()
    assert time.monotonic() - started < 30
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 2


# --- costs -----------------------------------------------------------------------------------------------------------


def test_costs_of_agent_and_judges_add_up(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path, asked=asking_agent, config={"judges": CORRECTNESS, "prices": PRICES | AGENTS_PRICES})
    totals = run.aggregates["totals"]
    assert totals["agent_cost"] == pytest.approx(2 * QUESTION_COST)
    assert totals["judges_cost"] == pytest.approx(2 * CALL_COST)
    assert totals["cost"] == pytest.approx(2 * (QUESTION_COST + CALL_COST))
    assert dict(run.responses[0])["llm_calls"][0]["cost"] == pytest.approx(QUESTION_COST)
    assert run.warnings == []


def bounded(stub: OpenAIStub, **sections: Any) -> dict[str, Any]:
    """Return a config whose judge answers with at most 100 tokens, which the stub reports."""
    config = config_of(stub, judges=CORRECTNESS, **sections)
    config["llm"]["generation"]["max_tokens"] = 100
    return config


def test_cost_budget_is_exceeded_only_by_requests_in_flight(judge: OpenAIStub, tmp_path: Path) -> None:
    config = bounded(judge, prices=PRICES | AGENTS_PRICES)
    config["judges"] = {**CORRECTNESS, "max_concurrency": 2}
    options: dict[str, Any] = {"questions": 60, "asked": asking_agent, "config": config, "max_concurrency": 2}
    in_flight = 2 * (QUESTION_COST + CALL_COST)
    run = run_of(judge, tmp_path, max_cost=0.05, **options)
    assert run.stopped is not None
    assert run.stopped["reason"] == "max_cost"
    assert run.stopped["message"].startswith("the budget of $0.050 is spent: $0.05")
    assert 0.05 <= run.aggregates["totals"]["cost"] <= 0.05 + in_flight
    assert run.stopped["left_out"] == 60 - len(run.results)
    assert record_in(tmp_path)["limits"]["max_cost"] == 0.05
    more = run_of(judge, tmp_path, max_cost=0.1, **options)
    assert len(more.results) > len(run.results)
    assert 0.1 <= more.aggregates["totals"]["cost"] <= 0.1 + in_flight


@pytest.mark.full
def test_unanswered_requests_count_with_their_maximum_cost(judge: OpenAIStub) -> None:
    judge.chat_faults += [Fault(is_reset=True)] * 1000
    config = bounded(judge, prices=PRICES)
    config["judges"] = {**CORRECTNESS, "max_concurrency": 1}
    run = score_responses(judged_dataset(9), judged_responses(9), config=config, max_cost=0.0201)
    assert len(judge.requests) * CALL_COST <= 0.0201 + CALL_COST
    assert run.stopped is not None


@pytest.mark.parametrize("priced", [PRICES, AGENTS_PRICES])
def test_cost_budget_requires_all_prices(judge: OpenAIStub, priced: dict[str, Any]) -> None:
    config = {**config_of(judge, judges=CORRECTNESS), "prices": priced}
    config["llm"]["generation"]["model"] = "judges-own" if priced is AGENTS_PRICES else "gpt-4o-mini"
    run = run_of(judge, questions=30, asked=asking_agent, config=config, max_cost=1.0, max_concurrency=1)
    assert run.stopped is not None
    assert run.stopped["reason"] == "max_cost"
    unpriced = "judges-own" if priced is AGENTS_PRICES else "agents-own"
    assert f"no price is known for {unpriced}" in run.stopped["message"]
    assert len(run.results) < 30


def test_scoring_within_a_budget_leaves_the_rest_unjudged(judge: OpenAIStub, tmp_path: Path) -> None:
    config = bounded(judge, prices=PRICES)
    config["judges"] = {**CORRECTNESS, "max_concurrency": 1}
    options: dict[str, Any] = {"output_dir": tmp_path, "config": config, "max_cost": 0.0201}
    run = score_responses(judged_dataset(19), judged_responses(19), **options)
    asked = len(judge.requests)
    assert asked == 11  # one is in flight when the ten affordable requests have exhausted the budget
    assert run.aggregates["totals"]["judges_cost"] == pytest.approx(asked * CALL_COST)
    assert sum("answer_f1" in result for result in run.results) == asked
    assert [result["steps_score"] for result in run.results] == [1.0] * 19
    assert run.stopped is not None
    assert (run.stopped["reason"], run.stopped["left_out"]) == ("max_cost", 0)
    assert run.stopped["message"].endswith(f"; {19 - asked} samples were not judged")
    assert run.warnings == []


# --- run.json --------------------------------------------------------------------------------------------------------


def test_record_names_the_models_the_metrics_and_the_digests_of_the_prompts(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path)
    judges = record_in(tmp_path)["judges"]
    assert judges == run.judges
    assert (judges["engine"], judges["generation"]) == ("native", "openai:gpt-4o-mini")
    assert judges["embedding"] == "openai:text-embedding-3-small"
    assert {"answer_correctness", "answer_relevance", "retrieval_utilization"} <= set(judges["metrics"])
    assert judges["prompts"].keys() >= {"answer_correctness", "context_precision", "context_recall"}
    assert all(len(digest) == 64 for digest in judges["prompts"].values())


def test_key_is_not_in_the_folder_but_its_reference_is(
    judge: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGES_ENDPOINT_KEY", "quite-secret-7")
    config = config_of(judge)
    config["llm"]["generation"]["api_key"] = "${JUDGES_ENDPOINT_KEY}"
    config["llm"]["embedding"]["api_key"] = "plain-secret-8"
    run_of(judge, tmp_path, config=config)
    models = record_in(tmp_path)["config"]["llm"]
    assert models["generation"]["api_key"] == "${JUDGES_ENDPOINT_KEY}"
    assert models["embedding"]["api_key"] == "***"
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"quite-secret-7" not in written
    assert b"plain-secret-8" not in written
    sent = {request.headers["authorization"] for request in judge.requests}
    assert sent == {"Bearer quite-secret-7", "Bearer plain-secret-8"}


def test_environment_key_is_not_sent_to_an_endpoint_with_a_masked_key(
    judge: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(judge, tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    judge.requests.clear()
    with pytest.raises(ConfigError, match="masked"):
        score_run(tmp_path, dataset=judged_dataset(), judge_cache=False)
    assert judge.requests == []


# --- errors ----------------------------------------------------------------------------------------------------------


def check_unjudged(run: BenchmarkRun, text: str) -> None:
    assert run.stopped is None
    for result in map(dict, run.results):
        assert (result["status"], result["steps_score"]) == ("success", 1.0)
        errors = [result[key] for key in ERRORS]
        errors += [step[key] for step in result["actual_steps"] for key in STEP_ERRORS]
        assert all(text in error for error in errors)
        assert "answer_f1" not in result


@pytest.mark.full
def test_unreachable_endpoint_keeps_results_and_responses(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge)
    for model in config["llm"].values():
        model["base_url"] = "http://127.0.0.1:9/v1"
    run = run_of(judge, tmp_path, config=config)
    check_unjudged(run, "could not be asked: APIConnectionError")
    (warning,) = run.warnings
    assert warning.startswith("a judge or a metric failed in 2 of 2 results; the first is q")
    assert "openai:gpt-4o-mini could not be asked: APIConnectionError" in warning
    (again,) = score_run(tmp_path, dataset=judged_dataset(), config=config).warnings
    assert again.startswith("a judge or a metric failed")
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 2
    repaired = score_run(tmp_path, dataset=judged_dataset(), config=config_of(judge))
    assert repaired.warnings == []
    assert all(dict(result)["answer_f1"] for result in repaired.results)
    assert not any(key in result for result in repaired.results for key in ERRORS)


def test_failing_observer_ends_the_run_but_loses_no_judgement(judge: OpenAIStub, tmp_path: Path) -> None:
    def fail(event: Any) -> None:
        if event.kind == "result_scored":
            raise OSError("the screen is full")

    with pytest.raises(OSError, match="the screen is full"):
        run_of(judge, tmp_path, on_event=fail)
    paid = len(judge.requests)
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 2
    run = run_of(judge, tmp_path)
    assert len(judge.requests) == 2 * REQUESTS
    assert paid <= 2 * REQUESTS
    assert "answer_f1" in run.aggregates["micro"]
