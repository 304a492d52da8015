"""The inside of a worker process: it loads the agent once, and makes the attempts that the driver sends."""

import asyncio
import pickle
from dataclasses import replace

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import AgentCall, Attempt, Follow, QuestionTimeoutError
from graphrag_eval_lc.benchmark.workers.messages import Job
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import RetryPolicy, ToldError, is_rate_limit, masked_error_text, retry_after_of

Unusable = tuple[str, str | None]
"""Why an agent cannot be loaded in a worker, and a hint."""


class AgentWorker:
    """Makes attempts in another process than the driver's.

    Args:
        job: The ``Job``, packed.
    """

    def __init__(self, job: bytes) -> None:
        self._packed = job
        self._job = Job(agent=None)
        self._call: AgentCall | None = None

    async def aload(self) -> Unusable | None:
        """Load the agent, unless it is loaded; return why it cannot be loaded, and None if it can."""
        if self._call is not None:
            return None
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
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        attempt = await self._call.aattempt(question, attempt_id, never, follow=follow)
        error = attempt.error
        if error is None or isinstance(error, QuestionTimeoutError):
            return attempt
        return replace(attempt, error=_sendable(error, self._job.retry))

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
