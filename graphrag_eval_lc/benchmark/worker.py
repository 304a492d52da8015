"""Workers: local processes, or tasks of a cluster, that run the agent for the driver.

The driver is the process in which the run was started. It alone schedules questions, keeps limits and budgets, writes
files and calls judges. A worker loads the agent, runs the questions that the driver sends, and returns the attempts.
"""

import asyncio
import contextlib
import io
import pickle
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from time import perf_counter, thread_time, time
from typing import Any, Generic, NamedTuple, TypeVar

import cloudpickle
from langchain_core.callbacks import BaseCallbackHandler

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import (
    AgentCall,
    Attempt,
    QuestionTimeoutError,
    RunInterruptedError,
    unheard_attempt,
)
from graphrag_eval_lc.benchmark.limits import ConcurrencyLimit
from graphrag_eval_lc.capture.values import CaptureKeywords
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError
from graphrag_eval_lc.evaluation.stop_signal import StopSignal
from graphrag_eval_lc.event_loop.loop import use_daemon_threads
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.retrying import ForwardedError, RetryPolicy, is_rate_limit, masked_error_text, retry_after_of

Outcome = TypeVar("Outcome")
Handle = TypeVar("Handle")  # the driver's handle of a worker: an executor, or a slot on a cluster

_FREE_SEC = 0.25
_LARGEST_SHARE = 0.2  # of the attempt's time, beyond that: with hundreds of steps each writing goes through all of them
_PARTS = {"agent": "the agent", "retry": "retry_on"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a worker needs to run the agent exactly as the driver would."""

    agent: Any
    agent_config: Mapping[str, Any] = field(default_factory=dict)
    key_variable: str | None = None
    input_fn: Callable[[Question], Any] | None = None
    answer_fn: Callable[[Any], Any] | None = None
    capture: CaptureKeywords = field(default_factory=CaptureKeywords)
    timeout: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Workers(ABC, Generic[Handle]):
    """The driver's side: runs each attempt in a worker. The runner uses it in place of ``AgentCall``."""

    def __init__(self, job: Job, slots: ConcurrencyLimit) -> None:
        self._job = packed(job)
        self._timeout = job.timeout
        self._slots = slots

    async def aopen(self, stop: StopSignal) -> None:
        """Connect to whatever runs the workers, unless the run is stopped first."""

    async def aattempt(self, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]") -> Attempt:
        """Have a worker run a question once; see ``AgentCall.aattempt``.

        Raises:
            AgentError: No worker can be started, or none can load the agent.
        """
        waiting = asyncio.ensure_future(self._free())
        ends: set[asyncio.Future[Any]] = {waiting, abandoned}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        worker = None if waiting.cancel() else waiting.result()
        may_ask = worker is not None and await self._slots.wait_for_pace(abandoned)
        started_at, began = time(), perf_counter()
        if worker is None or not may_ask:
            if worker is not None:
                self._leave(worker)
            error = RunInterruptedError("the run was stopped before the agent was asked")
            return unheard_attempt(question, error, started_at, 0.0)
        outcome = await self._outcome(worker, question, attempt_id, abandoned)
        if isinstance(outcome, Unusable):
            raise AgentError(outcome.what, hint=outcome.hint)
        if isinstance(outcome, Attempt):
            return outcome
        return unheard_attempt(question, outcome, started_at, perf_counter() - began)

    @abstractmethod
    async def aclose(self, *, waits: bool) -> None:
        """End the workers; with ``waits``, agents have time to close."""

    @abstractmethod
    async def _free(self) -> Handle:
        """Wait for a worker that has loaded the agent."""

    @abstractmethod
    def _leave(self, worker: Handle) -> None:
        """Release a worker for other questions."""

    @abstractmethod
    async def _outcome(
        self, worker: Handle, question: Question, attempt_id: str, abandoned: "asyncio.Future[None]"
    ) -> "Attempt | Unusable | BaseException":
        """Return a worker's attempt at a question, or why there is none; release the worker, or end it."""


def packed(job: Job) -> bytes:
    """Return a job as bytes, for ``pickle.loads`` in a process that has the same modules.

    Functions and classes of modules are sent by name, and so is an agent that is a module's attribute. Everything that
    exists only in the running program is sent by value.
    """
    if not isinstance(job.agent, str) and not hasattr(job.agent, "__qualname__") and (name := _name_of(job.agent)):
        job = replace(job, agent=":".join(name))
    try:
        return pickled(job)
    except Exception as whole:
        part, problem = "the agent", whole
        for each in fields(job):
            try:
                pickled(getattr(job, each.name))
            except Exception as own:
                part, problem = _PARTS.get(each.name, each.name), own
                break
        what = f"{part} cannot be sent to another process ({str(problem).rstrip('.')})"
        hint = "Put it into a file, and give its spec (my_agent.py:agent), or a function that makes it."
        raise AgentError(what, hint=hint) from problem


def pickled(value: Any) -> bytes:
    """Return a value as bytes, for ``pickle.loads`` in a process that has the same modules.

    Example:
        >>> pickle.loads(pickled({"a": 1.5}))
        {'a': 1.5}
    """
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(value)
    return data.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Sends a module's sentinel (``SKIP = object()``) by its name: LangGraph compares with its own by ``is``."""

    def reducer_override(self, value: Any) -> Any:
        name = _name_of(value) if type(value) is object else None
        return super().reducer_override(value) if name is None else (_named, name)


def _name_of(wanted: object) -> tuple[str, str] | None:
    """Return the module and attribute of an object; None if another process could not import it."""
    running = sys.modules.get("__main__")  # which is __mp_main__ too, once multiprocessing is imported
    for name, module in list(sys.modules.items()):
        if module is None or module is running or getattr(module, "__file__", None) is None:
            continue
        for attribute, value in list(vars(module).items()):
            if value is wanted:
                return name, attribute
    return None


def _named(module: str, attribute: str) -> Any:
    return getattr(import_module(module), attribute)


# --- in the worker ---------------------------------------------------------------------------------------------------


class Unusable(NamedTuple):
    """Why an agent cannot be loaded in a worker, and a hint."""

    what: str
    hint: str | None


class Worker:
    """Runs attempts in the worker's process, in one event loop that lasts, as clients of models need one."""

    def __init__(self, job: bytes) -> None:
        self.job = job
        self._retry = RetryPolicy()
        self._call: AgentCall | None = None
        self._loop = asyncio.new_event_loop()
        use_daemon_threads(self._loop)
        self._never = self._loop.create_future()
        threading.Thread(target=self._run, daemon=True).start()

    def load(self) -> Unusable | None:
        """Load the agent, unless it is loaded; return the reason if it cannot be loaded, or None."""
        return None if self._call is not None else self._in_loop(self._aload())

    def attempt(self, question: Question, attempt_id: str, so_far: Path | None = None) -> Attempt:
        """Run a question once; see ``AgentCall.aattempt``. The attempt can be pickled."""
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
        """Run the loop, and restart it if an agent raised SystemExit in it."""
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
    """Saves the attempt so far whenever a tool or model call starts or ends, in case the process is lost."""

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
