"""Where scoring compares responses with their references: in this process, or by actors of a Ray cluster.

Scoring loads no agent, so nothing of agents and their workers is imported here.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.benchmark.score_options import RAY, ScoringOptions
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.comparing import Comparer


def tell_of_start(output: RunOutput, address: str | None) -> None:
    """Tell the observers that workers of a cluster are started, which takes some seconds."""
    where = "a Ray cluster" if address is None else f"the Ray cluster {address}"
    output.event("workers_starting", message=f"Starting workers on {where}.")


@contextmanager
def comparer_of(given: ScoringOptions, config: EvaluationConfig, output: RunOutput) -> Iterator[Comparer | None]:
    """Give what compares responses elsewhere, until the end of the context; None where this process does.

    Args:
        given: The options of the scoring.
        config: The configuration.
        output: What is told of the start, and of lost workers.

    Raises:
        OptionError: Ray is not installed, its cluster cannot be reached, or a matcher cannot be sent.
    """
    if given.engine != RAY:
        yield None
        return
    # Ray is an optional extra.
    from graphrag_eval_lc.benchmark.workers.ray_scoring import ray_comparer

    tell_of_start(output, given.ray_address)
    with ray_comparer(config, workers=given.workers, address=given.ray_address, warn=output.warn) as comparer:
        yield comparer
