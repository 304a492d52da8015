"""The inside of a worker: it loads the agent, asks it what the driver sends, and sends back what came of it."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable

from graphrag_eval_lc.benchmark.agent_costs import AgentCosts
from graphrag_eval_lc.benchmark.agents import Agent, aload_agent
from graphrag_eval_lc.benchmark.attempts import (
    AgentCall,
    Attempt,
    QuestionTimeoutError,
    RunInterruptedError,
    unheard_attempt,
)
from graphrag_eval_lc.benchmark.workers.messages import (
    Abandon,
    Answered,
    Ask,
    Close,
    Closed,
    Failure,
    FromWorker,
    Job,
    OutOfBudget,
    Ready,
    Spending,
    Told,
    ToWorker,
    Unusable,
)
from graphrag_eval_lc.benchmark.workers.spool import Spool
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.event_loop.loop import run_sync, use_daemon_threads
from graphrag_eval_lc.event_loop.stalls import StallWatch
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.retrying import RetryPolicy, is_rate_limit, masked_error_text, retry_after_of

Send = Callable[[FromWorker], None]


class Worker:
    """Asks the agent in a loop of its own, until it is told to close.

    Args:
        job: What is to be known of agent and run.
        send: Given what the driver is to be told, from several threads.
    """

    def __init__(self, job: Job, send: Send) -> None:
        self._job = job
        self._send = send
        self._budget = Budget(on_spend=lambda cost, tokens: send(Spending(cost, tokens)))
        self._pricing = Pricing(job.prices or {})
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._abandoned: dict[int, asyncio.Future[None]] = {}
        self._spool: Spool | None = None
        self._lock = threading.Lock()
        self._inbox: deque[ToWorker] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._some_came: asyncio.Event | None = None

    def post(self, message: ToWorker) -> None:
        """Take a message of the driver, from any thread."""
        if isinstance(message, OutOfBudget):  # the agent may hold up the loop
            self._budget.end(message.limit, message.message)
            return
        with self._lock:
            self._inbox.append(message)
            if self._loop is not None and self._some_came is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._some_came.set)

    def run(self) -> None:
        """Load the agent and work until the driver says ``Close``; whatever the agent raises."""
        try:
            run_sync(self._arun, survives=lambda _: True)
        except Exception as problem:  # else the driver would wait for ever
            self._send(Unusable(masked_error_text(problem)))
            raise

    async def _arun(self) -> None:
        loop = asyncio.get_running_loop()
        use_daemon_threads(loop)
        some_came = asyncio.Event()
        with self._lock:
            self._loop, self._some_came = loop, some_came
            some_came.set()
        try:
            agent = await self._aload()
        except GraphRAGEvalError as problem:
            self._send(Unusable(masked_text(problem.what), problem.hint))
            return
        watch = StallWatch(lambda text: self._send(Told(warning=text)))
        self._send(Ready())
        self._spool = self._opened_spool()
        with watch if self._job.places > 1 else contextlib.nullcontext():
            await self._awork(self._call_of(agent), some_came)
        if self._spool is not None:
            self._spool.close(is_confirmed=True)
        not_closed = await agent.aclose()
        self._send(Closed(None if not_closed is None else masked_text(not_closed)))

    def _opened_spool(self) -> Spool | None:
        try:
            return Spool(self._job.run_id) if self._job.spool else None
        except GraphRAGEvalError as problem:
            self._send(Told(warning=f"a worker keeps no responses of its own: {problem}"))
            return None

    async def _aload(self) -> Agent:
        job = self._job
        return await aload_agent(
            job.agent,
            has_input_fn=job.input_fn is not None,
            agent_config=job.agent_config,
            key_variable=job.key_variable,
        )

    def _call_of(self, agent: Agent) -> AgentCall:
        job = self._job
        costs = None if job.prices is None else self._costs
        return AgentCall(agent, job.input_fn, job.answer_fn, job.agent_config, job.capture, job.timeout, costs)

    def _costs(self) -> AgentCosts:
        return AgentCosts(self._budget, self._pricing)

    def _tell(self, event: RunEvent) -> None:
        self._send(Told(event))

    async def _awork(self, call: AgentCall, some_came: asyncio.Event) -> None:
        while True:
            await some_came.wait()
            some_came.clear()
            while self._inbox:
                message = self._inbox.popleft()
                if isinstance(message, Close):
                    for task in self._asking.values():
                        task.cancel()
                    return
                self._take(message, call)

    def _take(self, message: ToWorker, call: AgentCall) -> None:
        if isinstance(message, Ask):
            self._abandoned[message.number] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._aask(message, call))
            self._asking[message.number] = task
        elif isinstance(message, Abandon):
            abandoned = self._abandoned.get(message.number)
            if abandoned is not None and not abandoned.done():
                abandoned.set_result(None)

    async def _aask(self, ask: Ask, call: AgentCall) -> None:
        try:
            attempt = await call.aattempt(ask.question, ask.attempt_id, self._abandoned[ask.number])
            failure = None if attempt.error is None else failure_of(attempt, self._job.retry)
            if failure is None:
                self._keep(ask, attempt)
            self._send(Answered(ask.number, attempt.response, failure, attempt.counted))
        except Exception as problem:  # else the driver would wait for ever
            failed = unheard_attempt(ask.question, problem, time.time(), 0.0)
            self._send(Answered(ask.number, failed.response, failure_of(failed, self._job.retry)))
        finally:
            self._asking.pop(ask.number, None)
            self._abandoned.pop(ask.number, None)

    def _keep(self, ask: Ask, attempt: Attempt) -> None:
        """Keep a response on this machine's disk; where that cannot be done, the run goes on without."""
        if self._spool is not None:
            try:
                self._spool.add(ask.attempt_id, attempt.response)
            except GraphRAGEvalError as problem:
                self._spool = None
                self._send(Told(warning=f"a worker keeps no responses of its own any more: {problem}"))


def failure_of(attempt: Attempt, retry: RetryPolicy) -> Failure:
    """Return what the driver is told of the error of an attempt that failed."""
    error = attempt.error
    assert error is not None
    return Failure(
        masked_error_text(error),
        is_interrupted=isinstance(error, RunInterruptedError),
        is_timeout=isinstance(error, QuestionTimeoutError),
        is_rate_limit=is_rate_limit(error),
        retry_after=retry_after_of(error),
        is_worth_a_retry=not isinstance(error, RunInterruptedError) and retry.wait_before_retry(1, error) is not None,
    )
