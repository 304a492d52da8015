"""One attempt: runs one question through an agent within a time limit, and captures what the agent did."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from graphrag_eval_lc.benchmark.limits import AgentCosts
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.handler import without_runs
from graphrag_eval_lc.capture.messages import answer_of, is_interrupted
from graphrag_eval_lc.capture.values import SECRETS, CaptureKeywords, utc_timestamp
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import PAUSED, Question, Response
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.retrying import masked_error_text

_CANCELLING_SEC = 2.0
_STATE_SEC = 5.0
GIVING_UP_SEC = _CANCELLING_SEC + 2 * _STATE_SEC
"""The seconds that an attempt may take beyond its timeout: to cancel it, here or at a server, and to read its state."""
_THREADS = uuid.UUID("5d3a2f0e-6a54-5c1e-9d0b-3f5b0c6f4e21")  # the namespace of the thread ids
_NO_EVENTS = "the agent reported no run, so that its steps, tokens and times are not known"
UNFINISHED = "the worker process was lost"  # a placeholder, which lost_attempt replaces
_ONLY_MESSAGES = "the agent reported no run: what is known of it is from the messages that it returned, without times"


class QuestionTimeoutError(TimeoutError):
    """An agent did not answer in time."""

    is_question_timeout = True  # not worth a retry


class RunInterruptedError(Exception):
    """The run was stopped while an agent was at work."""


class WorkerLostError(Exception):
    """The process or the machine that asked an agent is gone."""


class Spent(NamedTuple):
    """What the budget counted for an attempt: USD and tokens of its model calls, and whether every call had a price."""

    usd: float = 0.0
    tokens: int = 0
    is_priced: bool = True


NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt."""

    response: Response
    error: BaseException | None
    counted: Spent = NOTHING_SPENT


Follow = Callable[[Callable[[], Attempt]], BaseCallbackHandler]
"""Makes a handler, given a function that returns the attempt as if its process were lost at that moment."""


def unheard_attempt(question: Question, error: BaseException, started_at: float, elapsed_sec: float) -> Attempt:
    """Return an attempt that captured nothing: only its error and times are known."""
    response = Response(question_id=str(question["id"]), question_text=question["question_text"], status="error")
    response["actual_steps"] = []
    response[ELAPSED_SEC] = elapsed_sec
    failed = _failed(response, masked_error_text(error))
    failed["started_at"] = utc_timestamp(started_at)
    return Attempt(failed, error)


def lost_attempt(captured: Attempt, error: BaseException, elapsed_sec: float) -> Attempt:
    """Return what was last captured of an attempt whose process was lost, with ``error`` for everything unfinished."""
    text = masked_error_text(error)
    response = _failed(captured.response, text)
    response[ELAPSED_SEC] = elapsed_sec
    for each in (*response["actual_steps"], *(response.get("llm_calls") or ())):
        if each.get("error") == UNFINISHED:
            each["error"] = text
    return Attempt(response, error, captured.counted)


@dataclass(slots=True)
class AgentCall:
    """An agent with the options of each attempt: input, answer, config, capture, timeout and budget."""

    agent: Agent
    input_fn: Callable[[Question], Any] | None = None
    answer_fn: Callable[[Any], Any] | None = None
    agent_config: Mapping[str, Any] = field(default_factory=dict)
    capture: CaptureKeywords = field(default_factory=CaptureKeywords)
    timeout: float | None = None
    costs: Callable[[], AgentCosts] | None = None
    use_threads: bool = False
    _given_up: set["asyncio.Task[Any]"] = field(default_factory=set)
    _handler: GraphRAGEvalCallbackHandler = field(init=False)

    def __post_init__(self) -> None:
        self._handler = GraphRAGEvalCallbackHandler(**self.capture)

    async def aattempt(
        self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]", *, follow: Follow | None = None
    ) -> Attempt:
        """Run a question once. Exceptions of the agent are returned in the attempt, never raised."""
        in_thread = self.use_threads
        attempt = await self._aattempt(question, attempt_id, abandoned, in_thread, follow)
        if in_thread or self.agent.is_function:
            return attempt
        if not isinstance(attempt.error, NotImplementedError) or not _did_nothing(attempt):
            return attempt
        # A graph with a synchronous checkpointer raises this; but so may an agent that cannot answer this question.
        another = await self._aattempt(question, attempt_id, abandoned, True, follow)
        if isinstance(another.error, NotImplementedError | TypeError) and _did_nothing(another):
            return attempt  # its synchronous path does not exist
        self.use_threads |= another.error is None or not _did_nothing(another)
        return another

    async def _aattempt(
        self,
        question: Question,
        attempt_id: str,
        abandoned: "asyncio.Future[None]",
        in_thread: bool,
        follow: Follow | None,
    ) -> Attempt:
        handler = without_runs(self._handler)
        started_at, began = time.time(), time.perf_counter()
        costs = None if self.costs is None else self.costs()
        # The costs come first: a model call that the budget refuses must not be recorded.
        handlers: list[BaseCallbackHandler] = [handler] if costs is None else [costs, handler]
        if follow is not None:

            def ended_now() -> Attempt:
                response = handler.response_ended_now(str(question["id"]), UNFINISHED)
                response["question_text"] = question["question_text"]
                response = _failed(response, UNFINISHED)
                return self._attempt(response, None, None, started_at, time.perf_counter() - began, costs)

            handlers.append(follow(ended_now))
        config = self._config(question, attempt_id, handlers)
        given: Any = None
        output: Any = None
        error: BaseException | None = None
        has_runs = False
        try:
            text = question["question_text"]
            given = self.agent.input_for(text) if self.input_fn is None else self.input_fn(question)
        except (Exception, SystemExit) as problem:
            error = problem
            seconds = time.perf_counter() - began
        else:
            block_id = handler.open_block(str(question["id"]))  # an agent may be several runs
            output, error = await self._output(given, config, abandoned, in_thread)
            has_runs = handler.has_runs
            handler.on_block_end(run_id=block_id, error=error if has_runs else None)
            seconds = time.perf_counter() - began
            if costs is not None and costs.refusal is not None:  # even if the agent caught it
                error = RunInterruptedError(f"a model was not asked: {costs.refusal}")
            if error is not None and not has_runs:
                output = await self._state_left(config, error)
        if has_runs:
            response = self._captured_response(handler, question, output, error)
        else:
            response = self._response_from_output(handler, question, config, given, output, error, seconds)
        if error is None and self.answer_fn is not None:
            try:
                response["actual_answer"] = answer_of(self.answer_fn(output))
            except (Exception, SystemExit) as problem:
                response.pop("actual_answer", None)
                error = problem
        return self._attempt(response, output, error, started_at, seconds, costs)

    def _attempt(
        self,
        response: Response,
        output: Any,
        error: BaseException | None,
        started_at: float,
        seconds: float,
        costs: AgentCosts | None,
    ) -> Attempt:
        """Return an attempt: failed if there is an error, with a warning if no answer was found.

        Its times are measured here, as the handler starts late if the loop is blocked. Secrets in errors and warnings
        are always masked. Everything else is masked as the handler's options say.
        """
        if error is not None:
            response = _failed(response, masked_error_text(error))
        elif response.get("status") == "error" and "error" in response:
            response["error"] = masked_text(response["error"])
        elif response.get("actual_answer") is None and not _waits(response, output):
            given = type(output).__name__
            if isinstance(output, Mapping):
                given = f"{given} with {', '.join(map(str, list(output)[:10])) or 'no keys'}"
            what = (
                f"no answer was found in what the agent returned ({given}); answer_fn (--answer-fn) can make one of it"
            )
            response["capture_warnings"] = [*response.get("capture_warnings", ()), what]
        response["started_at"] = utc_timestamp(started_at)
        response[ELAPSED_SEC] = seconds
        answer = response.get("actual_answer")
        if self.capture.get("redact") == SECRETS and answer is not None:
            response["actual_answer"] = masked_text(answer)  # of an output, or of answer_fn
        for failed in (*response.get("actual_steps", ()), *(response.get("llm_calls") or ())):
            if "error" in failed:
                failed["error"] = masked_text(failed["error"])
        if "capture_warnings" in response:
            response["capture_warnings"] = [masked_text(warning) for warning in response["capture_warnings"]]
        spent = NOTHING_SPENT if costs is None else Spent(costs.cost, costs.tokens, costs.is_priced)
        return Attempt(response, error, spent)

    def _config(self, question: Question, attempt_id: str, handlers: Sequence[BaseCallbackHandler]) -> RunnableConfig:
        config = dict(self.agent_config)
        callbacks = config.get("callbacks")
        if callbacks is None or isinstance(callbacks, list):
            config["callbacks"] = [*(callbacks or ()), *handlers]
        else:  # a callback manager; the one passed in is not modified
            config["callbacks"] = own_callbacks = callbacks.copy()
            for each in handlers:
                own_callbacks.add_handler(each, inherit=True)
        own = {"question_id": question["id"], "attempt_id": attempt_id}
        config["metadata"] = {**(config.get("metadata") or {}), **own}
        thread_id = uuid.uuid5(_THREADS, attempt_id.encode("utf-8", "backslashreplace").decode())
        config["configurable"] = {**(config.get("configurable") or {}), "thread_id": str(thread_id)}
        return cast("RunnableConfig", config)

    async def _output(
        self, given: Any, config: RunnableConfig, abandoned: "asyncio.Future[None]", in_thread: bool
    ) -> tuple[Any, BaseException | None]:
        task = asyncio.create_task(self._invoke(given, config, in_thread))
        try:
            ends: set[asyncio.Future[Any]] = {task, abandoned}
            await asyncio.wait(ends, timeout=self.timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCELLING_SEC)
        if not task.done():
            self._given_up.add(task)
            task.add_done_callback(self._given_up.discard)
        if abandoned.done():
            return None, RunInterruptedError("the run was stopped before the agent answered")
        return None, QuestionTimeoutError(f"no answer within {self.timeout:g} s, the run's timeout")

    async def _invoke(self, given: Any, config: RunnableConfig, in_thread: bool) -> tuple[Any, BaseException | None]:
        """Return the output and the error; nothing is raised, as SystemExit in a task would end the event loop."""
        runnable = self.agent.runnable
        try:
            if in_thread:
                return await run_in_executor(None, runnable.invoke, given, config), None
            return await runnable.ainvoke(given, config), None
        except BaseException as problem:
            return None, problem

    async def _state_left(self, config: RunnableConfig, error: BaseException) -> Any:
        """Return the state that a failed graph left in the attempt's thread, or None.

        A deployed graph calls no callbacks, so only its state shows what it did before the error.
        """
        is_given_up = isinstance(error, QuestionTimeoutError | RunInterruptedError)
        if is_given_up and self.agent.acancel is not None:  # or the server would continue, and others wait
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_STATE_SEC):
                    await self.agent.acancel(config["configurable"]["thread_id"])
        read_state = getattr(self.agent.runnable, "aget_state", None)
        if read_state is None or isinstance(error, RunInterruptedError):
            return None
        try:
            async with asyncio.timeout(_STATE_SEC):
                state = await read_state(config)
        except Exception:  # the server is gone, or has no such thread; the agent's error is reported
            return None
        return getattr(state, "values", None) or None

    def _captured_response(
        self, handler: GraphRAGEvalCallbackHandler, question: Question, output: Any, error: BaseException | None
    ) -> Response:
        """Return the response that the handler captured; if it has no answer, take the answer from the output."""
        response = handler.response(str(question["id"]))
        response["question_text"] = question["question_text"]
        is_unread = response.get("actual_answer") is None or isinstance(output, str)
        if error is None and is_unread and not _waits(response, output):
            # What a function returns is its answer.
            is_answer = self.agent.is_function or isinstance(output, str | bytes | bytearray | memoryview | int | float)
            is_state = isinstance(output, Mapping) and "messages" in output
            answer = answer_of(output) if is_answer and not is_state else None
            if answer is not None:
                response["actual_answer"] = answer
        return response

    def _response_from_output(
        self,
        handler: GraphRAGEvalCallbackHandler,
        question: Question,
        config: RunnableConfig,
        given: Any,
        output: Any,
        error: BaseException | None,
        elapsed_sec: float,
    ) -> Response:
        """Return a response made from the output of an agent that called no callback, such as a deployed graph."""
        identifier = str(question["id"])
        if error is not None and output is None:  # the agent may not have been called
            response = Response(question_id=identifier, question_text=question["question_text"], status="success")
            response["actual_steps"] = []
            return response
        handler.add_run(
            given,
            output,
            question_id=identifier,
            elapsed_sec=elapsed_sec,
            tags=config.get("tags") or (),
            metadata=config.get("metadata"),
        )
        response = handler.response(identifier)
        response["question_text"] = question["question_text"]
        has_messages = bool(response["actual_steps"] or response["llm_calls"])
        warnings = [_ONLY_MESSAGES if has_messages else _NO_EVENTS, *response.get("capture_warnings", ())]
        has_none = _waits(response, output) or (isinstance(output, Mapping) and "messages" in output)
        if response.get("actual_answer") is None and not has_none:
            response["actual_answer"] = answer_of(output)
        response["capture_warnings"] = warnings
        if error is not None:
            response.pop("actual_answer", None)  # the last message of a failed run is a draft
        return response


def _waits(response: Response, output: Any) -> bool:
    """Return whether the agent is paused and waits for a human, so that its output is a draft, not an answer."""
    return is_interrupted(output) or PAUSED in response.get("capture_warnings", ())


def _failed(response: Response, error: str) -> Response:
    """Return a failed response; ``status`` and ``error`` come right after the question, so that people see them."""
    failed: dict[str, Any] = {}
    for key, value in response.items():
        if key not in ("status", "error"):
            failed[key] = value
        if key == "question_text":
            failed |= {"status": "error", "error": error}
    return cast("Response", failed)


def _did_nothing(attempt: Attempt) -> bool:
    """Return whether an agent took no step and called no model."""
    return not attempt.response.get("actual_steps") and not attempt.response.get("llm_calls")
