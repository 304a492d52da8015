"""Execution of samples: retries, usage, and early stops."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import arun_benchmark, load_responses
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.run_manifest import begun_record
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.runner import Runner
from graphrag_eval_lc.dataset.loading import questions_of, read_dataset
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.retrying import RetryPolicy


class RateLimitError(Exception):
    retry_after: float | None = None


class Session:
    """A session over the questions q0, q1, …, which keeps all events. Retries have no delay."""

    def __init__(self, agent: Any, first_wait: float = 0.0, **options: Any) -> None:
        self.agent = agent
        self.events: list[RunEvent] = []
        checked = CheckedOptions(**{"progress": "off", "on_event": self.note, **options})
        self.options = checked.replaced(retry=RetryPolicy(checked.retry.max_retries, first_wait=first_wait))
        self.stop = StopSignal()
        self.responses: dict[tuple[str, int], dict[str, Any]] = {}

    def note(self, event: RunEvent) -> None:
        self.events.append(event)

    async def run(self, number: int = 1) -> int:
        """Run this number of questions, and return how many were skipped."""
        agent = await aload_agent(self.agent)
        templates = read_dataset(
            [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": f"q{n}"} for n in range(number)]}]
        ).templates
        questions = list(questions_of(templates))
        with RunOutput(None) as output:
            output.prepare(self.options)
            output.observers = [self.note]
            output.resume(begun_record("agent", templates, templates, questions, self.options, None), self.options, {})
            runner = Runner(self.options, output, self.stop, templates, questions)
            run = await asyncio.wait_for(runner.arun(agent), 60)
        self.responses = {
            (response["question_id"], response.get("repeat", 1)): dict(response) for response in run.responses
        }
        return 0 if run.stopped is None else run.stopped["left_out"]

    def kinds(self, question_id: str) -> list[str]:
        return [
            event.kind
            for event in self.events
            if event.fields.get("question_id") == question_id and event.kind != "result_scored"
        ]

    def fields(self, kind: str) -> list[dict[str, Any]]:
        return [dict(event.fields) for event in self.events if event.kind == kind]


def failing(times: int, error: Callable[[], BaseException] = ConnectionError) -> Any:
    """Return an agent that fails this number of times per question before it answers."""
    asked: dict[str, int] = {}

    async def agent(question: str) -> str:
        asked[question] = asked.get(question, 0) + 1
        if asked[question] <= times:
            raise error()
        return "yes"

    return agent


# --- retries ---------------------------------------------------------------------------------------------------------


async def test_failed_attempts_are_kept_in_the_final_response() -> None:
    session = Session(failing(2))
    assert await session.run() == 0
    response = session.responses["q0", 1]
    assert (response["status"], response["actual_answer"]) == ("success", "yes")
    assert [attempt["error"] for attempt in response["failed_attempts"]] == ["ConnectionError"] * 2
    assert all(attempt["elapsed_sec"] >= 0 for attempt in response["failed_attempts"])
    assert session.kinds("q0") == ["attempt_started", "attempt_failed"] * 2 + ["attempt_started", "response_ended"]
    assert [fields["attempt"] for fields in session.fields("attempt_started")] == [1, 2, 3]
    assert session.fields("response_ended")[0]["attempts"] == 3


async def test_response_of_the_last_attempt_has_its_error() -> None:
    session = Session(failing(5))
    await session.run()
    response = session.responses["q0", 1]
    assert (response["status"], response["error"]) == ("error", "ConnectionError")
    assert len(response["failed_attempts"]) == 2
    assert [fields["retry_in_sec"] for fields in session.fields("attempt_failed")] == [0.0, 0.0, None]
    assert "interrupted" not in response


# --- rate limits -----------------------------------------------------------------------------------------------------


async def test_rate_limit_halves_concurrency_and_successes_restore_it() -> None:
    limited: list[str] = []

    async def agent(question: str) -> str:
        await asyncio.sleep(0.01)
        if len(limited) < 4:
            limited.append(question)
            raise RateLimitError
        return "yes"

    session = Session(agent, max_concurrency=4)
    assert await session.run(30) == 0
    assert [fields["limit"] for fields in session.fields("limit_changed")] == [2, 3, 4]
    assert [response["status"] for response in session.responses.values()] == ["success"] * 30


async def test_no_request_is_sent_before_the_servers_retry_after() -> None:
    starts: list[float] = []

    async def agent(question: str) -> str:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 1:
            error = RateLimitError()
            error.retry_after = 0.5
            raise error
        return "yes"

    assert await Session(agent, max_concurrency=1).run(3) == 0
    assert all(start - starts[0] >= 0.45 for start in starts[1:])


async def test_wait_too_long_for_a_retry_does_not_block_other_questions() -> None:
    async def agent(question: str) -> str:
        if question == "q0":
            error = RateLimitError()
            error.retry_after = 3600.0
            raise error
        return "yes"

    session = Session(agent, max_concurrency=1)
    assert await session.run(2) == 0
    assert [response["status"] for response in session.responses.values()] == ["error", "success"]


# --- early stops -----------------------------------------------------------------------------------------------------


async def test_stop_skips_waiting_questions_and_lets_the_others_finish() -> None:
    async def agent(question: str) -> str:
        session.stop.request("max_failures", "enough")
        await asyncio.sleep(0.05)
        return "yes"

    session = Session(agent, max_concurrency=2)
    assert await session.run(10) == 8
    assert [response["status"] for response in session.responses.values()] == ["success"] * 2
    [stopping] = session.fields("run_stopping")
    assert (stopping["reason"], stopping["in_flight"]) == ("max_failures", 2)
    assert "enough" in stopping["message"]


async def test_question_that_exceeds_the_grace_period_is_interrupted() -> None:
    async def agent(question: str) -> str:
        session.stop.request("interrupted", "Ctrl-C")
        return await asyncio.Event().wait() or ""

    session = Session(agent, max_concurrency=1, grace=0.1)
    assert await session.run(3) == 2
    response = session.responses["q0", 1]
    assert (response["status"], response["interrupted"]) == ("error", True)
    assert response["error"].startswith("RunInterruptedError")


async def test_sample_waiting_for_a_retry_is_interrupted_by_a_stop() -> None:
    async def agent(question: str) -> str:
        asyncio.get_running_loop().call_later(0.1, session.stop.request, "interrupted", "Ctrl-C")
        raise ConnectionError("reset")

    session = Session(agent, first_wait=3600)
    assert await session.run() == 0
    response = session.responses["q0", 1]
    assert (response["error"], response["interrupted"]) == ("ConnectionError: reset", True)
    assert "failed_attempts" not in response


async def test_time_limit_cancels_questions_in_flight() -> None:
    async def hangs(question: str) -> None:
        await asyncio.Event().wait()

    session = Session(hangs, max_concurrency=2, max_time=0.5)
    assert await session.run(5) == 3
    assert session.stop.reason == "max_time"
    assert [response["interrupted"] for response in session.responses.values()] == [True, True]


# --- budgets ---------------------------------------------------------------------------------------------------------


def spending(tokens: int) -> Any:
    """Return an agent whose model uses this number of tokens."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    async def agent(question: str) -> str:
        usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
        model = GenericFakeChatModel(messages=iter([AIMessage("yes", usage_metadata=usage)]))
        return str((await model.ainvoke(question)).content)

    return agent


@pytest.mark.parametrize(("max_concurrency", "asked"), [(1, 4), (4, 8)])
async def test_budget_is_exceeded_only_by_questions_in_flight(max_concurrency: int, asked: int) -> None:
    session = Session(spending(30), max_tokens=100, max_concurrency=max_concurrency)
    assert 12 - await session.run(12) <= asked
    assert session.stop.reason == "max_tokens"
    assert session.stop.message.startswith("the budget of 100 tokens is spent: ")
    assert 100 <= sum(response["total_tokens"] for response in session.responses.values()) <= 30 * asked


async def test_no_retry_once_the_budget_is_exhausted() -> None:
    async def agent(question: str) -> str:
        await spending(100)(question)
        raise ConnectionError("reset")

    session = Session(agent, max_tokens=100, max_concurrency=1)
    assert await session.run(2) == 1
    assert (session.responses["q0", 1]["interrupted"], len(session.fields("attempt_started"))) == (True, 1)


async def test_budget_requires_reported_tokens() -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    session = Session(FakeListChatModel(responses=["yes"]), max_tokens=100, max_concurrency=1)
    assert await session.run(3) == 2
    assert "does not report all its tokens" in session.stop.message


async def test_observer_that_fails_during_a_stop_causes_no_deadlock() -> None:
    async def agent(question: str) -> str:
        session.stop.request("interrupted", "Ctrl-C")
        return await asyncio.Event().wait() or ""

    class Failing(Session):
        def note(self, event: RunEvent) -> None:
            super().note(event)
            if event.kind == "run_stopping":
                raise LookupError("mine")

    session = Failing(agent, max_concurrency=2, requests_per_minute=1, grace=0.1)
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context["exception"]))
    assert await session.run(5) == 4
    assert [type(problem) for problem in problems] == [LookupError]


async def test_questions_in_flight_are_kept_if_a_callback_fails(tmp_path: Path) -> None:
    async def agent(question: str) -> str:
        await asyncio.sleep(0.01 if question == "q0" else 0.3)
        return question

    def fails_on_q0(response: Any) -> None:
        if response["question_id"] == "q0":
            raise ValueError("no room")

    questions = [{"id": f"q{number}", "question_text": f"q{number}"} for number in range(8)]
    dataset: Any = [{"template_id": "t", "questions": questions}]
    options: dict[str, Any] = {"output_dir": tmp_path, "max_concurrency": 4, "progress": "off"}
    with pytest.raises(ValueError, match="no room"):
        await arun_benchmark(agent, dataset, on_response=fails_on_q0, **options)
    assert sorted(load_responses(tmp_path / "responses.jsonl")) == ["q0", "q1", "q2", "q3"]
