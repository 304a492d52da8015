"""Which workers a run has: processes of this machine, or actors of a Ray cluster."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from graphrag_eval_lc.benchmark.agents import Agent
from graphrag_eval_lc.benchmark.attempts import Asking
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.score_options import RAY
from graphrag_eval_lc.benchmark.workers.messages import Job
from graphrag_eval_lc.benchmark.workers.pool import WorkerPool
from graphrag_eval_lc.benchmark.workers.scoring_engine import tell_of_start
from graphrag_eval_lc.benchmark.workers.shipping import packed
from graphrag_eval_lc.evaluation.stop_signal import StopSignal


@asynccontextmanager
async def workers_of(
    agent: Agent, options: CheckedOptions, output: RunOutput, stop: StopSignal
) -> AsyncGenerator[Asking, None]:
    """Give the workers of a run, which end with the context.

    Args:
        agent: The agent, as it was loaded here; workers load it from what it was given as.
        options: The options of the run.
        output: Where the run goes, resumed.
        stop: Ends the waiting for a cluster.

    Raises:
        GraphRAGEvalError: The workers cannot be started, or the agent cannot be sent to them.
    """
    job = job_of(agent, options, output.record["run_id"])
    pool: Any
    if options.engine == RAY:
        # Ray is an optional extra.
        from graphrag_eval_lc.benchmark.workers.ray_actors import RayTransport

        tell_of_start(output, options.ray_address)
        pool = WorkerPool(
            RayTransport(job, workers=options.workers, address=options.ray_address),
            timeout=options.timeout,
            budget=output.budget,
            tell=output.tell,
            warn=output.warn,
        )
    else:
        # Most runs do without loky.
        from graphrag_eval_lc.benchmark.workers.processes import IsolatedWorkers

        pool = IsolatedWorkers(packed(job), options.timeout, output.warn)
    is_whole = False
    try:
        if isinstance(pool, WorkerPool):
            await pool.aopen(stop)
        yield pool
        is_whole = True
    finally:
        await pool.aclose(waits=is_whole)


def job_of(agent: Agent, options: CheckedOptions, run_id: str) -> Job:
    """Return the job of the workers of a run."""
    is_elsewhere = options.engine is not None
    is_limited = options.max_cost is not None or options.max_tokens is not None
    return Job(
        agent=agent.given,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
        input_fn=options.input_fn,
        answer_fn=options.answer_fn,
        capture=options.capture,
        timeout=options.timeout,
        retry=options.retry,
        prices=options.config.prices if is_limited and is_elsewhere else None,
        places=options.max_concurrency if is_elsewhere else 1,
        repeats=options.repeats,
        run_id=run_id,
        spool=is_elsewhere,
        tells_so_far=False,
    )
