"""The inside of a worker process: it loads the agent once, and makes the attempts that the driver sends."""

import asyncio
import contextlib
import pickle
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, NamedTuple, TypeVar

from langchain_core.callbacks import BaseCallbackHandler

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import AgentCall, Attempt, QuestionTimeoutError, RunInterruptedError
from graphrag_eval_lc.capture.values import CaptureKeywords
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.event_loop.loop import use_daemon_threads
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import ForwardedError, RetryPolicy, is_rate_limit, masked_error_text, retry_after_of

Outcome = TypeVar("Outcome")

_FREE_SEC = 0.25
_LARGEST_SHARE = 0.2  # of the attempt's time, beyond that: with hundreds of steps each writing goes through all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker needs to know to ask the agent as the driver would.

    Attributes:
        agent: The agent, as it was given: a spec, a Runnable or a function.
        agent_config: More of LangChain's config.
        key_variable: The environment variable with the key of the agent's server; None for its default.
        input_fn: Makes the agent's input from a question; None for its default.
        answer_fn: Makes the answer from its output; None for the default.
        capture: The options of the handler.
        timeout: Seconds for an attempt; None for no limit.
        retry: What is worth another attempt.
    """

    agent: Any
    agent_config: Mapping[str, Any] = field(default_factory=dict)
    key_variable: str | None = None
    input_fn: Callable[[Question], Any] | None = None
    answer_fn: Callable[[Any], Any] | None = None
    capture: CaptureKeywords = field(default_factory=CaptureKeywords)
    timeout: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)


async def unless_abandoned(waiting: Awaitable[Outcome], abandoned: "asyncio.Future[None]") -> Outcome | None:
    """Wait for a process that is ready, and return it; None if the run is abandoned before."""
    getting = asyncio.ensure_future(waiting)
    ends: set[asyncio.Future[Any]] = {getting, abandoned}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    return None if getting.cancel() else getting.result()


class Unusable(NamedTuple):
    """Why an agent cannot be loaded in a worker, and a hint."""

    what: str
    hint: str | None


class Worker:
    """Makes attempts in another process than the driver's, in a loop that lasts: clients of models need one.

    Args:
        job: The ``Job``, packed.
    """

    def __init__(self, job: bytes) -> None:
        self.job = job
        self._retry = RetryPolicy()
        self._call: AgentCall | None = None
        self._loop = asyncio.new_event_loop()
        use_daemon_threads(self._loop)
        self._never = self._loop.create_future()
        threading.Thread(target=self._run, daemon=True).start()

    def load(self) -> Unusable | None:
        """Load the agent, unless it is loaded; return why it cannot be loaded, and None if it can."""
        return None if self._call is not None else self._in_loop(self._aload())

    def attempt(self, question: Question, attempt_id: str, so_far: Path | None = None) -> Attempt:
        """Ask the agent a question once; see ``AgentCall.aattempt``. The attempt can be pickled.

        Args:
            question: The question.
            attempt_id: See ``AgentCall.aattempt``.
            so_far: The file for what the attempt has done so far, as a crash leaves no time to return it.

        Raises:
            RuntimeError: The agent is not loaded.
        """
        if self._call is None:
            raise RuntimeError("the agent is not loaded")
        follow = None if so_far is None else lambda attempt: _SoFarWriter(attempt, so_far)
        attempt = self._in_loop(self._call.aattempt(question, attempt_id, self._never, follow=follow))
        error = attempt.error
        if error is None or isinstance(error, QuestionTimeoutError | RunInterruptedError):
            return attempt
        forwarded = ForwardedError(masked_error_text(error))  # the error itself may not be pickled
        forwarded.is_rate_limit, forwarded.asked_wait = is_rate_limit(error), retry_after_of(error)
        forwarded.is_worth_a_retry = self._retry.wait_before_retry(1, error) is not None
        return replace(attempt, error=forwarded)

    def close(self) -> str | None:
        """Close the agent; return what went wrong."""
        problem = None if self._call is None else self._in_loop(self._call.agent.aclose())
        return None if problem is None else masked_text(problem)

    def _run(self) -> None:
        """Run the loop, also after an agent has raised SystemExit in it."""
        while True:
            with contextlib.suppress(BaseException):
                self._loop.run_forever()

    def _in_loop(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _aload(self) -> Unusable | None:
        try:
            job: Job = pickle.loads(self.job)
        except Exception as problem:  # a module cannot be imported here
            return Unusable(masked_error_text(problem), "Give the agent's spec, such as my_agent.py:agent.")
        try:
            agent = await aload_agent(
                job.agent,
                has_input_fn=job.input_fn is not None,
                agent_config=job.agent_config,
                key_variable=job.key_variable,
            )
        except GraphRAGEvalError as problem:
            return Unusable(masked_text(problem.what), problem.hint)
        except Exception as problem:
            return Unusable(masked_error_text(problem), None)
        self._retry = job.retry
        self._call = AgentCall(agent, job.input_fn, job.answer_fn, job.agent_config, job.capture, job.timeout)
        return None


class _SoFarWriter(BaseCallbackHandler):
    """Writes what an attempt would be if its process were lost, whenever a call of a tool or model begins or ends.

    Args:
        attempt: Returns it.
        path: The file, which is replaced each time.
    """

    run_inline = True
    raise_error = False

    def __init__(self, attempt: Callable[[], Attempt], path: Path) -> None:
        super().__init__()
        self._attempt = attempt
        self._path = path
        self._lock = threading.Lock()  # tools run in threads
        self._began = perf_counter()
        self._spent_sec = 0.0

    def _write(self, *_: object, **__: object) -> None:
        with self._lock:
            began = thread_time()
            if self._spent_sec <= _FREE_SEC + _LARGEST_SHARE * (perf_counter() - self._began):
                new = self._path.with_suffix(".new")
                new.write_bytes(pickle.dumps(self._attempt().response, pickle.HIGHEST_PROTOCOL))
                new.replace(self._path)
                self._spent_sec += thread_time() - began

    on_tool_start = on_tool_end = on_tool_error = _write
    on_retriever_start = on_retriever_end = on_retriever_error = _write
    on_chat_model_start = on_llm_start = on_llm_end = on_llm_error = _write
