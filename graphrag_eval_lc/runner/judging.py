"""Judging recorded responses: several at a time, within a budget."""

import asyncio
from collections.abc import Callable, Sequence

from graphrag_eval_lc.records import Response
from graphrag_eval_lc.runner.budget import Budget, Verdict
from graphrag_eval_lc.runner.samples import Sample
from graphrag_eval_lc.runner.scores import Scores


async def ajudge_all(
    scores: Scores, samples: Sequence[Sample], response_of: Callable[[Sample], Response | None], budget: Budget
) -> int:
    """Score and judge samples; what the budget does not allow is scored without judges.

    Args:
        scores: Where they are scored; it tells the budget what each cost.
        samples: The samples.
        response_of: Gives a sample's response.
        budget: What the judges may cost.

    Returns:
        The number of samples that were not judged.
    """
    places = asyncio.Semaphore(scores.places)
    some_end = asyncio.Event()
    in_flight = unjudged = 0

    async def judge(sample: Sample, response: Response | None) -> None:
        nonlocal in_flight
        try:
            await scores.ascore(sample, response)
        finally:
            in_flight -= 1
            places.release()
            some_end.set()

    async def is_allowed() -> bool:
        while (verdict := budget.verdict(in_flight)) is Verdict.WAIT:
            some_end.clear()
            await some_end.wait()
        return verdict is Verdict.GO

    try:
        with scores.stalls.watch:
            async with asyncio.TaskGroup() as tasks:
                for sample in samples:
                    await places.acquire()
                    response = response_of(sample)
                    if await is_allowed():
                        in_flight += 1
                        tasks.create_task(judge(sample, response))
                    else:
                        unjudged += 1
                        scores.score(sample, response)
                        places.release()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        if scores.judges is not None:
            await scores.judges.aclose()
    return unjudged
