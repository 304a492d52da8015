"""Which workers ask or compare: those of this process, processes of this machine, or those of a Ray cluster.

Scoring loads no agent, so nothing of agents and their workers is imported before it is needed.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.score_options import RAY, ScoringOptions
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.pipeline import Comparer

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.attempts import Asking
    from graphrag_eval_lc.benchmark.concurrency_limit import ConcurrencyLimit
    from graphrag_eval_lc.benchmark.run_options import CheckedOptions
    from graphrag_eval_lc.evaluation.stop_signal import StopSignal


@asynccontextmanager
async def workers_of(
    agent: Any, options: "CheckedOptions", output: RunOutput, stop: "StopSignal", slots: "ConcurrencyLimit"
) -> AsyncGenerator["Asking", None]:
    """Give the workers of a run, which end with the context.

    Args:
        agent: The agent, as it was given; workers load it for themselves.
        options: The options of the run.
        output: The output of the run, resumed.
        stop: Ends the waiting for a cluster.
        slots: The limit of requests, which each keeps to once a process is ready.

    Raises:
        GraphRAGEvalError: The workers cannot be started, or the agent cannot be sent to them.
    """
    from graphrag_eval_lc.benchmark.workers.worker import Job

    job = Job(
        agent=agent,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
        input_fn=options.input_fn,
        answer_fn=options.answer_fn,
        capture=options.capture,
        timeout=options.timeout,
        retry=options.retry,
    )
    workers: Any
    if options.engine == RAY:
        from graphrag_eval_lc.benchmark.workers.ray_workers import RayWorkers

        places = options.max_concurrency
        workers = RayWorkers(job, workers=options.workers, address=options.ray_address, places=places, slots=slots)
        _tell_of_start(output, options.ray_address)
    else:
        from graphrag_eval_lc.benchmark.workers.processes import IsolatedWorkers

        workers = IsolatedWorkers(job, slots, output.warn)
    is_whole = False
    try:
        if options.engine == RAY:
            await workers.aopen(stop)
        yield workers
        is_whole = True
    finally:
        await workers.aclose(waits=is_whole)


@contextmanager
def comparer_of(given: ScoringOptions, config: EvaluationConfig, output: RunOutput) -> Iterator[Comparer | None]:
    """Give what compares responses elsewhere, until the end of the context; None if this process does.

    Args:
        given: The options of the scoring.
        config: The configuration.
        output: Whose observers hear of the start.

    Raises:
        OptionError: Ray is not installed, its cluster cannot be reached, or a matcher cannot be sent.
    """
    if given.engine != RAY:
        yield None
        return
    from graphrag_eval_lc.benchmark.workers.ray_scoring import ray_comparer

    _tell_of_start(output, given.ray_address)
    with ray_comparer(config, workers=given.workers, address=given.ray_address) as comparer:
        yield comparer


def _tell_of_start(output: RunOutput, address: str | None) -> None:
    """Report that workers of a cluster are started, which takes some seconds."""
    where = "a Ray cluster" if address is None else f"the Ray cluster {address}"
    output.event("workers_starting", message=f"Starting workers on {where}.")
