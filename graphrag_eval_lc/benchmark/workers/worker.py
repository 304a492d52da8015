"""The inside of a worker: it loads the agent once, and makes the attempts that the driver sends."""

import asyncio
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import (
    AgentCall,
    Attempt,
    Follow,
    QuestionTimeoutError,
    RunInterruptedError,
)
from graphrag_eval_lc.capture.handler import CaptureKeywords
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.event_loop.loop import use_daemon_threads
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import RetryPolicy, ToldError, is_rate_limit, masked_error_text, retry_after_of

Unusable = tuple[str, str | None]
"""Why an agent cannot be loaded in a worker, and a hint."""


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


class Worker:
    """Makes attempts in another process than the driver's.

    Args:
        job: The ``Job``, packed.
    """

    def __init__(self, job: bytes) -> None:
        self._packed = job
        self._job = Job(agent=None)
        self._call: AgentCall | None = None
        self._abandoned: asyncio.Future[None]

    async def aload(self) -> Unusable | None:
        """Load the agent, unless it is loaded; return why it cannot be loaded, and None if it can."""
        if self._call is not None:
            return None
        loop = asyncio.get_running_loop()
        use_daemon_threads(loop)
        self._abandoned = loop.create_future()
        try:
            self._job = job = pickle.loads(self._packed)
        except Exception as problem:  # a module cannot be imported here
            return masked_error_text(problem), "Give the agent's spec, such as my_agent.py:agent."
        try:
            agent = await aload_agent(
                job.agent,
                has_input_fn=job.input_fn is not None,
                agent_config=job.agent_config,
                key_variable=job.key_variable,
            )
        except GraphRAGEvalError as problem:
            return masked_text(problem.what), problem.hint
        except Exception as problem:
            return masked_error_text(problem), None
        self._call = AgentCall(agent, job.input_fn, job.answer_fn, job.agent_config, job.capture, job.timeout)
        return None

    async def aattempt(self, question: Question, attempt_id: str, *, follow: Follow | None = None) -> Attempt:
        """Ask the agent a question once; see ``AgentCall.aattempt``. The attempt can be pickled.

        Raises:
            RuntimeError: The agent cannot be loaded.
        """
        unusable = await self.aload()
        if self._call is None or unusable is not None:
            raise RuntimeError(f"the agent cannot be loaded: {unusable}")
        attempt = await self._call.aattempt(question, attempt_id, self._abandoned, follow=follow)
        error = attempt.error
        if error is None or isinstance(error, QuestionTimeoutError | RunInterruptedError):
            return attempt
        return replace(attempt, error=_sendable(error, self._job.retry))

    async def aabandon(self) -> None:
        """Give up all attempts, which return what they did so far."""
        if self._call is not None and not self._abandoned.done():
            self._abandoned.set_result(None)

    async def aclose(self) -> str | None:
        """Close the agent; return what went wrong."""
        problem = None if self._call is None else await self._call.agent.aclose()
        return None if problem is None else masked_text(problem)


def _sendable(error: BaseException, retry: RetryPolicy) -> ToldError:
    """Return what the driver asks of an error, as the error itself may not be pickled."""
    sendable = ToldError(masked_error_text(error))
    sendable.is_rate_limit = is_rate_limit(error)
    sendable.asked_wait = retry_after_of(error)
    sendable.is_worth_a_retry = retry.wait_before_retry(1, error) is not None
    return sendable
