"""Runs with judges, over HTTP: what they add, what they cost, and that nothing of it is lost or paid twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.judged_runs import (
    CHAT_REQUESTS,
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
from support.signalling import send_signal

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_benchmark import arun_benchmark
from graphrag_eval_lc.errors import ConfigError, OptionError, RunFolderError
from graphrag_eval_lc.judges.cache import PAID_IN_VAIN

TONE = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Rate.", "outputs": {"tone_score": "0 to 1"}}
CORRECTNESS = {"metrics": ["answer_correctness"]}
PRICES = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}, "text-embedding-3-small": {"input": 1.0, "output": 0}}
CALL_COST = 0.002  # of one chat request of the stub at these prices
AGENTS_PRICES = {"agents-own": {"input": 8.0, "output": 20.0}}
QUESTION_COST = 0.01  # of one question to the agent that asks a model


def run_of(stub: OpenAIStub, folder: Path | None = None, questions: int = 2, asked: Any = agent, **options: Any) -> Any:
    config = {**config_of(stub), **options.pop("config", {})}
    return run_benchmark(
        asked, judged_dataset(questions), output_dir=folder, config=config, **{"progress": "off", **options}
    )


def record_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text()))


def kinds_of(requests: list[StubRequest]) -> Counter[str]:
    kinds = {"true_positives": "correctness", "noncommittal": "relevance", "statements": "recall", "verdict": "context"}
    names = []
    for request in requests:
        properties = (request.schema or {}).get("properties", {}) if request.is_chat else {}
        names.append(next((name for key, name in kinds.items() if key in properties), "other"))
    return Counter(names)


# --- what is added ---------------------------------------------------------------------------------------------------


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
        assert all(cost >= 0 for cost in costs.values())  # what is asked twice is paid once
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


def test_run_without_a_folder_is_judged_too(judge: OpenAIStub) -> None:
    check_judged(run_of(judge, config={"custom_evaluations": [TONE]}))


@pytest.mark.full
async def test_run_in_an_event_loop_is_judged(judge: OpenAIStub) -> None:
    config = {**config_of(judge), "custom_evaluations": [TONE]}
    check_judged(await arun_benchmark(agent, judged_dataset(), config=config, progress="off"))
    check_judged(run_benchmark(agent, judged_dataset(), config=config, progress="off"))


@pytest.mark.parametrize("has_folder", [True, False])
def test_recorded_responses_are_judged(judge: OpenAIStub, tmp_path: Path, has_folder: bool) -> None:
    config = {**config_of(judge), "custom_evaluations": [TONE]}
    folder = tmp_path / "run" if has_folder else None
    run = score_responses(judged_dataset(), judged_responses(), output_dir=folder, config=config)
    check_judged(run)
    if folder is not None:
        assert record_in(folder)["judges"]["custom_evaluations"] == ["tone"]


async def test_scoring_inside_a_running_loop_is_judged(judge: OpenAIStub, tmp_path: Path) -> None:
    config = {**config_of(judge), "custom_evaluations": [TONE]}
    score_responses(judged_dataset(), judged_responses(), output_dir=tmp_path)
    check_judged(score_run(tmp_path, dataset=judged_dataset(), config=config))


def test_each_repeat_is_judged(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path, config={"custom_evaluations": [TONE]}, repeats=3)
    check_judged(run, 6)
    assert [dict(result)["repeat"] for result in run.results] == [1, 2, 3, 1, 2, 3]


@pytest.mark.full
def test_config_says_how_many_requests_are_under_way_at_once(judge: OpenAIStub) -> None:
    judge.latency_sec = 0.05
    run_of(judge, questions=6, config={"judges": {"max_concurrency": 3}})
    assert judge.most_in_flight == 3


def test_question_that_failed_costs_no_judges(judge: OpenAIStub) -> None:
    async def fails(question: str) -> str:
        raise ValueError("no")

    run = run_of(judge, asked=fails)
    assert judge.requests == []
    assert "judges_cost" not in run.aggregates["totals"]


def test_response_in_a_broken_format_is_an_error_sample_and_judged_by_nobody(judge: OpenAIStub) -> None:
    broken: Any = [{"question_id": "q0", "actual_steps": "none"}, *judged_responses()[1:]]
    run = score_responses(judged_dataset(), broken, config=config_of(judge))
    assert [result["status"] for result in run.results] == ["error", "success"]
    assert len(judge.requests) == REQUESTS


# --- functions -------------------------------------------------------------------------------------------------------


def answer_length(question: dict[str, Any], response: dict[str, Any]) -> int:
    return len(response["actual_answer"])


async def has_steps(question: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"number_of_calls": len(response["actual_steps"]), "kind": "retrieval"}


def ends_with_answer(*, outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> dict[str, Any]:
    is_so = outputs["messages"][-1]["content"] == outputs["actual_answer"]
    return {"key": "well_formed", "score": is_so, "comment": reference_outputs["reference_answer"]}


def raises(question: dict[str, Any], response: dict[str, Any]) -> float:
    raise ValueError("nothing to see")


EVALUATORS: list[Any] = [answer_length, has_steps, ends_with_answer, raises]


def check_functions(run: BenchmarkRun) -> None:
    for result in map(dict, run.results):
        assert result["answer_length"] == len(result["actual_answer"])
        assert (result["number_of_calls"], result["kind"]) == (1, "retrieval")
        assert result["well_formed"] is True
        assert result["well_formed_reason"].endswith("is in Paris.")
        assert result["raises_error"] == "ValueError: nothing to see"
    micro = run.aggregates["micro"]
    assert micro["number_of_calls"]["mean"] == micro["well_formed"]["mean"] == 1
    assert micro["answer_length"]["mean"] > 0
    assert "judges_cost" not in run.aggregates["totals"]
    (warning,) = run.warnings
    assert "2 of 2 results" in warning
    assert "raises_error: ValueError: nothing to see" in warning
    assert run.judges == {"functions": ["answer_length", "has_steps", "ends_with_answer", "raises"]}


def test_functions_score_a_run_and_recorded_responses_without_a_model(tmp_path: Path) -> None:
    dataset = judged_dataset()
    check_functions(run_benchmark(agent, dataset, output_dir=tmp_path / "a", evaluators=EVALUATORS, progress="off"))
    check_functions(score_run(tmp_path / "a", dataset=dataset, evaluators=EVALUATORS))
    check_functions(score_responses(dataset, judged_responses(), output_dir=tmp_path / "b", evaluators=EVALUATORS))
    check_functions(score_responses(dataset, judged_responses(), evaluators=EVALUATORS))
    assert not list(tmp_path.glob("*/judge_cache.jsonl"))
    assert record_in(tmp_path / "a")["judges"]["functions"][0] == "answer_length"


def test_functions_stand_beside_judged_metrics(judge: OpenAIStub) -> None:
    run = run_of(judge, evaluators=[answer_length])
    assert {"answer_f1", "answer_length"} <= run.aggregates["micro"].keys()


def test_scores_of_functions_go_only_on_demand(tmp_path: Path) -> None:
    dataset = judged_dataset()
    run_benchmark(agent, dataset, output_dir=tmp_path, evaluators=[answer_length], progress="off")
    with pytest.raises(RunFolderError, match="the evaluator answer_length"):
        score_run(tmp_path, dataset=dataset)
    run = score_run(tmp_path, dataset=dataset, drop_missing=True)
    assert "answer_length" not in run.aggregates["micro"]
    assert run.judges is None
    assert "judges" not in record_in(tmp_path)


# --- models given in Python ------------------------------------------------------------------------------------------


class NotingChat:
    """Make a LangChain chat model that answers each metric, without a network."""

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


def test_judged_metrics_of_a_model_given_in_python_go_only_on_demand(tmp_path: Path) -> None:
    chat, dataset = NotingChat(), judged_dataset()
    run_benchmark(agent, dataset, output_dir=tmp_path, llm=chat.model(), progress="off")
    told = r"missing now: the model model:Model \(it judged answer_correctness, .*\); without it .* Add llm=…"
    with pytest.raises(RunFolderError, match=told):
        score_run(tmp_path, dataset=dataset)
    with pytest.raises(RunFolderError, match=r"model:Model.*; or --force"):
        run_benchmark(agent, dataset, output_dir=tmp_path, progress="off")
    run = score_run(tmp_path, dataset=dataset, drop_missing=True)
    assert "answer_f1" not in run.aggregates["micro"]
    assert len(run.warnings) == 1


def test_langchain_embeddings_judge_relevance(judge: OpenAIStub) -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    run = run_of(judge, embeddings=DeterministicFakeEmbedding(size=8))
    assert "answer_relevance" in run.aggregates["micro"]
    assert judge.embedding_requests == []


# --- the cache -------------------------------------------------------------------------------------------------------


def test_scoring_again_asks_nothing_and_gives_the_same(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path)
    asked = len(judge.requests)
    again = score_run(tmp_path, dataset=judged_dataset(), config=config_of(judge))
    assert len(judge.requests) == asked
    assert again.aggregates == run.aggregates
    assert again.results == run.results


def test_judged_metrics_that_another_config_leaves_out_go_with_a_word(judge: OpenAIStub, tmp_path: Path) -> None:
    run_of(judge, tmp_path)
    run = score_run(tmp_path, dataset=judged_dataset(), config={})
    assert "answer_f1" not in run.aggregates["micro"]
    assert run.warnings == [
        "judged before and not any more, as the config does not ask for it: answer_correctness, answer_relevance, "
        "retrieval_answer, retrieval_context, retrieval_utilization"
    ]


def test_scoring_again_asks_only_what_is_new(judge: OpenAIStub, tmp_path: Path) -> None:
    run_of(judge, tmp_path)
    dataset = judged_dataset()
    dataset[0]["questions"][1]["reference_answer"] = "Tower 1 is in Paris, in the north."
    judge.requests.clear()
    score_run(tmp_path, dataset=dataset, config=config_of(judge))
    assert kinds_of(judge.requests) == {"correctness": 1, "recall": 1, "context": 2}
    assert all("in the north" in request.user for request in judge.requests)


@pytest.mark.full
@pytest.mark.parametrize("how", ["option", "config"])
def test_without_the_cache_all_is_asked_again(judge: OpenAIStub, tmp_path: Path, how: str) -> None:
    config = config_of(judge, judges={"cache": False} if how == "config" else {})
    options: dict[str, Any] = {"judge_cache": False} if how == "option" else {}
    run_of(judge, tmp_path, config=config, **options)
    score_run(tmp_path, dataset=judged_dataset(), config=config, **options)
    score_responses(judged_dataset(), judged_responses(), output_dir=tmp_path / "b", config=config, **options)
    assert len(judge.requests) == 3 * 2 * REQUESTS
    assert not list(tmp_path.rglob("judge_cache.jsonl"))


def test_cache_stays_where_a_run_is_overwritten(judge: OpenAIStub, tmp_path: Path) -> None:
    run_of(judge, tmp_path)
    asked = len(judge.requests)
    run_of(judge, tmp_path, overwrite=True)
    assert len(judge.requests) == asked


@pytest.mark.full
def test_resumed_run_judges_what_was_done_from_the_cache(judge: OpenAIStub, tmp_path: Path) -> None:
    run_of(judge, tmp_path, questions=2)
    asked = len(judge.requests)
    run = run_of(judge, tmp_path, questions=3, force=True)
    assert len(judge.requests) == asked + REQUESTS
    assert all(dict(result)["answer_f1"] == pytest.approx(2 / 3) for result in run.results)


@pytest.mark.full
def test_run_that_goes_on_with_judges_judges_what_was_answered_before(judge: OpenAIStub, tmp_path: Path) -> None:
    run_benchmark(agent, judged_dataset(), output_dir=tmp_path, progress="off")
    assert "judges" not in record_in(tmp_path)
    run = run_of(judge, tmp_path)
    assert all("answer_f1" in result for result in run.results)
    assert record_in(tmp_path)["judges"] == run.judges
    without = run_benchmark(agent, judged_dataset(), output_dir=tmp_path, progress="off")
    assert not any("answer_f1" in result for result in without.results)
    assert "judges" not in record_in(tmp_path)
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 2


PRICED_FIRST = """
import sys
from support.judged_runs import agent, config_of, judged_dataset, judgement
from support.openai_stub import OpenAIStub
from graphrag_eval_lc import run_benchmark
known = []
def answer(request):
    known.append("genai_prices" in sys.modules)
    return judgement(request)
with OpenAIStub() as stub:
    stub.answer = answer
    run_benchmark(agent, judged_dataset(2), config=config_of(stub), progress="off")
assert known and all(known), known
"""


def test_prices_are_loaded_before_the_first_request() -> None:
    tests = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", PRICED_FIRST], env={**os.environ, "PYTHONPATH": tests}, check=True)


def test_impossible_record_of_the_cache_lifts_no_limit(judge: OpenAIStub, tmp_path: Path) -> None:
    config = bounded(judge, prices=PRICES)
    config["judges"] = {**CORRECTNESS, "max_concurrency": 1}
    options: dict[str, Any] = {"questions": 40, "config": config}
    run_of(judge, tmp_path, max_cost=0.05, **options)
    with (tmp_path / "judge_cache.jsonl").open("a") as file:
        file.write(json.dumps({"digest": PAID_IN_VAIN, "record": {"cost": -1000}}) + "\n")
        file.write(json.dumps({"digest": PAID_IN_VAIN, "record": {"cost": float("nan")}}) + "\n")
    asked = len(judge.requests)
    run = run_of(judge, tmp_path, max_cost=0.05, **options)
    assert len(judge.requests) == asked
    assert run.stopped["reason"] == "max_cost"


KILLED = """
import sys
from support.judged_runs import agent, judged_dataset
from graphrag_eval_lc import run_benchmark
endpoint = {"base_url": sys.argv[1], "api_key": "k"}
config = {"llm": {"generation": endpoint, "embedding": endpoint}, "judges": {"max_concurrency": 2}}
run_benchmark(agent, judged_dataset(8), output_dir=sys.argv[2], config=config, progress="off")
"""


@pytest.mark.full
@pytest.mark.full
def test_run_that_is_killed_loses_nothing_that_was_paid(judge: OpenAIStub, tmp_path: Path) -> None:
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
    assert paid - lines <= 4  # of two at once: those in flight, and those that were answered and not kept yet
    judge.latency_sec = 0
    run = run_of(judge, tmp_path, questions=8, config=config_of(judge, judges={"max_concurrency": 2, "max_retries": 3}))
    assert len(run.results) == 8
    assert len(judge.requests) - paid == 8 * REQUESTS + 1 - lines  # the dataset's questions are embedded once
    assert all(dict(result)["answer_f1"] == pytest.approx(2 / 3) for result in run.results)


@pytest.mark.full
def test_interrupted_run_judges_what_was_answered(judge: OpenAIStub, tmp_path: Path) -> None:
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


# --- money -----------------------------------------------------------------------------------------------------------


def test_agent_and_judges_are_priced_and_add_up(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path, asked=asking_agent, config={"judges": CORRECTNESS, "prices": PRICES | AGENTS_PRICES})
    totals = run.aggregates["totals"]
    assert totals["agent_cost"] == pytest.approx(2 * QUESTION_COST)
    assert totals["judges_cost"] == pytest.approx(2 * CALL_COST)
    assert totals["cost"] == pytest.approx(2 * (QUESTION_COST + CALL_COST))
    assert dict(run.responses[0])["llm_calls"][0]["cost"] == pytest.approx(QUESTION_COST)
    assert run.warnings == []


def bounded(stub: OpenAIStub, **sections: Any) -> dict[str, Any]:
    """Give a config whose judge answers in 100 tokens at most, as the stub reports."""
    config = config_of(stub, judges=CORRECTNESS, **sections)
    config["llm"]["generation"]["max_tokens"] = 100
    return config


def test_budget_of_money_is_passed_by_what_is_in_flight_alone(judge: OpenAIStub, tmp_path: Path) -> None:
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
def test_requests_without_an_answer_count_with_the_most_that_they_can_have_cost(judge: OpenAIStub) -> None:
    judge.chat_faults += [Fault(is_reset=True)] * 1000
    config = bounded(judge, prices=PRICES)
    config["judges"] = {**CORRECTNESS, "max_concurrency": 1}
    run = score_responses(judged_dataset(9), judged_responses(9), config=config, max_cost=0.0201)
    assert len(judge.requests) * CALL_COST <= 0.0201 + CALL_COST
    assert run.stopped is not None


@pytest.mark.parametrize("priced", [PRICES, AGENTS_PRICES])
def test_budget_of_money_needs_all_prices(judge: OpenAIStub, priced: dict[str, Any]) -> None:
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
    options: dict[str, Any] = {
        "output_dir": tmp_path,
        "config": config,
        "max_cost": 0.0201,
    }
    run = score_responses(judged_dataset(19), judged_responses(19), **options)
    asked = len(judge.requests)
    assert asked == 11  # one is in flight when the ten that fit have spent the budget
    assert run.aggregates["totals"]["judges_cost"] == pytest.approx(asked * CALL_COST)
    assert sum("answer_f1" in result for result in run.results) == asked
    assert [result["steps_score"] for result in run.results] == [1.0] * 19
    assert run.stopped is not None
    assert (run.stopped["reason"], run.stopped["left_out"]) == ("max_cost", 0)
    assert run.stopped["message"].endswith(f"; {19 - asked} samples were not judged")
    assert run.warnings == []


def test_answers_in_the_cache_are_no_part_of_the_budget_of_scoring_again(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge, judges=CORRECTNESS, prices=PRICES)
    score_responses(judged_dataset(9), judged_responses(9), output_dir=tmp_path, config=config)
    run = score_run(tmp_path, dataset=judged_dataset(9), config=config, max_cost=0.001)
    assert len(judge.requests) == 9
    assert run.stopped is None
    assert all("answer_f1" in result for result in run.results)


def test_unpriced_models_are_told_once_and_cost_nothing_known(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["model"] = "judges-own"
    run = run_of(judge, tmp_path, asked=asking_agent, config=config, questions=5)
    assert len(run.warnings) == 1
    assert "no price is known for agents-own, judges-own, so costs are left out" in run.warnings[0]
    assert run.aggregates["totals"].keys().isdisjoint({"agent_cost", "cost"})
    result = dict(run.results[0])
    assert "answer_f1" in result
    assert "answer_correctness_cost" not in result
    again = score_run(tmp_path, dataset=judged_dataset(5), config=config)
    assert list(again.warnings) == list(run.warnings)


def test_unpriced_judges_are_told_where_the_agent_is_priced(judge: OpenAIStub) -> None:
    config = config_of(judge, judges=CORRECTNESS, prices=AGENTS_PRICES)
    config["llm"]["generation"]["model"] = "judges-own"
    run = run_of(judge, asked=asking_agent, config=config)
    assert len(run.warnings) == 1
    assert "no price is known for judges-own" in run.warnings[0]
    assert run.aggregates["totals"]["agent_cost"] == pytest.approx(2 * QUESTION_COST)
    assert "cost" not in run.aggregates["totals"]
    scored = score_responses(judged_dataset(), judged_responses(), config=config)
    assert "no price is known for judges-own" in scored.warnings[0]


# --- what run.json says ----------------------------------------------------------------------------------------------


def test_record_names_the_models_the_metrics_and_the_digests_of_the_prompts(judge: OpenAIStub, tmp_path: Path) -> None:
    run = run_of(judge, tmp_path)
    judges = record_in(tmp_path)["judges"]
    assert judges == run.judges
    assert (judges["engine"], judges["generation"]) == ("native", "openai:gpt-4o-mini")
    assert judges["embedding"] == "openai:text-embedding-3-small"
    assert {"answer_correctness", "answer_relevance", "retrieval_utilization"} <= set(judges["metrics"])
    assert judges["prompts"].keys() >= {"answer_correctness", "context_precision", "context_recall"}
    assert all(len(digest) == 64 for digest in judges["prompts"].values())


def test_key_is_nowhere_in_the_folder_and_its_reference_stays(
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


def test_key_of_the_environment_reaches_no_endpoint_whose_own_key_was_masked(
    judge: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(judge, tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    judge.requests.clear()
    with pytest.raises(ConfigError, match="masked"):
        score_run(tmp_path, dataset=judged_dataset(), judge_cache=False)
    assert judge.requests == []


# --- what goes wrong -------------------------------------------------------------------------------------------------


def check_unjudged(run: BenchmarkRun, text: str) -> None:
    assert run.stopped is None
    for result in map(dict, run.results):
        assert (result["status"], result["steps_score"]) == ("success", 1.0)
        errors = [result[key] for key in ERRORS]
        errors += [step[key] for step in result["actual_steps"] for key in STEP_ERRORS]
        assert all(text in error for error in errors)
        assert "answer_f1" not in result


@pytest.mark.full
def test_endpoint_that_is_gone_leaves_the_results_and_the_responses(judge: OpenAIStub, tmp_path: Path) -> None:
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
    mended = score_run(tmp_path, dataset=judged_dataset(), config=config_of(judge))
    assert mended.warnings == []
    assert all(dict(result)["answer_f1"] for result in mended.results)
    assert not any(key in result for result in mended.results for key in ERRORS)


@pytest.mark.full
def test_wrong_key_is_told_in_the_results_without_the_key(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge)
    for model in config["llm"].values():
        model["api_key"] = "wrong"
    run = run_of(judge, tmp_path, questions=30, config=config)
    assert len(judge.requests) < 30
    assert run.stopped is not None
    assert (run.stopped["reason"], run.stopped["left_out"]) == ("judges", 0)
    assert "refused 3 requests in a row and is asked nothing more" in run.stopped["message"]
    assert "(check the API key); " in run.stopped["message"]
    assert run.stopped["message"].endswith("samples were not judged")
    assert run.warnings == []
    assert not any("answer_f1" in result for result in run.results)
    assert all("heck the API key" in dict(result)[ERRORS[0]] for result in run.results)
    judge.requests.clear()
    mended = run_of(judge, tmp_path, questions=30)
    assert mended.stopped is None
    assert all("answer_f1" in result for result in mended.results)


def test_missing_environment_variable_is_told_before_anything_is_asked(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["api_key"] = "${NOT_SET_ANYWHERE_KEY}"
    asked: list[str] = []
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE_KEY"):
        run_of(judge, tmp_path, asked=lambda question: asked.append(question), config=config)
    assert not asked
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"config": {"llm": {"generation": {"api_key": "${NOT_SET_ANYWHERE_KEY}"}}}}, "NOT_SET_ANYWHERE_KEY"),
        ({"config": {"custom_evaluations": [TONE]}}, "llm"),
        ({"evaluators": [lambda question, response: 1.0]}, "a lambda has no name"),
        ({"evaluators": answer_length}, "evaluators cannot be .*Give a list of functions"),
        ({"evaluators": [3]}, "evaluator"),
        ({"max_cost": 0}, "max_cost cannot be 0"),
        ({"max_cost": "much"}, "max_cost cannot be 'much'"),
        ({"max_cost": True}, "max_cost cannot be True"),
        ({"llm": object()}, "object cannot judge"),
    ],
)
def test_what_judges_cannot_be_made_of_is_told_and_costs_no_earlier_run(
    tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    run_benchmark(agent, judged_dataset(), output_dir=tmp_path, progress="off")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    asked: list[str] = []
    with pytest.raises((ConfigError, OptionError), match=complaint):
        run_benchmark(
            asked.append, judged_dataset(), output_dir=tmp_path, overwrite=True, **{"progress": "off", **options}
        )
    with pytest.raises((ConfigError, OptionError), match=complaint):
        score_responses(judged_dataset(), judged_responses(), output_dir=tmp_path, overwrite=True, **options)
    with pytest.raises((ConfigError, OptionError), match=complaint):
        score_run(tmp_path, dataset=judged_dataset(), **options)
    assert not asked
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_results_file_that_fails_does_not_leave_a_run_with_a_budget_waiting(judge: OpenAIStub, tmp_path: Path) -> None:
    def fail(event: Any) -> None:
        if event.kind == "result_scored":
            raise OSError("the screen is full")

    config = config_of(judge, judges=CORRECTNESS, prices=PRICES)
    with pytest.raises(OSError, match="the screen is full"):
        run_of(judge, tmp_path, questions=20, config=config, max_cost=1.0, on_event=fail, max_concurrency=2)
    assert len((tmp_path / "responses.jsonl").read_text().splitlines()) == 20


def test_answer_that_breaks_the_schema_spoils_only_its_metric(judge: OpenAIStub) -> None:
    def answer(request: StubRequest) -> Any:
        return {"reason": 3} if kinds_of([request])["correctness"] else judgement(request)

    judge.answer = answer
    run = run_of(judge, questions=1)
    result = dict(run.results[0])
    assert "twice returned an answer without the requested form" in result["answer_correctness_error"]
    assert result["answer_correctness_cost"] > 0
    assert "answer_relevance" in result
    assert len(judge.chat_requests) == CHAT_REQUESTS + 1
    assert run.aggregates["totals"]["judges_cost"] > 0


def test_observer_that_fails_ends_the_run_with_its_error_and_loses_no_judgement(
    judge: OpenAIStub, tmp_path: Path
) -> None:
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


def events_of(judge: OpenAIStub, **options: Any) -> list[str]:
    events: list[str] = []
    note: Callable[[Any], None] = lambda event: events.append(event.kind)  # noqa: E731
    run_of(judge, on_event=note, **options)
    return events


def test_each_judged_result_is_told(judge: OpenAIStub) -> None:
    assert events_of(judge, questions=3).count("result_scored") == 3
