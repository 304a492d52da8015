"""Scoring samples as they come: each result goes to disk, and of it only its numbers are kept."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphrag_eval_lc.aggregation import Aggregator, JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation import evaluate_question
from graphrag_eval_lc.event_loop import run_sync
from graphrag_eval_lc.judges.known_costs import noted_known_costs
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, priced_response
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.run_folder import ResultsFile
from graphrag_eval_lc.runner.events import Observer, RunEvent
from graphrag_eval_lc.runner.judge_failures import JudgeFailures
from graphrag_eval_lc.runner.samples import Sample

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges


# The same costs, added up in another order, differ less than this.
_DIGITS = 12


class JudgedCost(NamedTuple):
    """What the judges of one result cost in USD, 0 where none was asked; None: not known.

    Attributes:
        total: With what was paid in an earlier run.
        now: Without it.
    """

    total: float | None
    now: float | None


class Scores:
    """The results of a run and their aggregates.

    Args:
        config: The configuration.
        templates: The dataset.
        repeats: How often each question is asked.
        file: Where results go; None keeps them in memory.
        tell: Told each score.
        pricing: The prices of the agent's model calls.
        judges: Who judges the results; None: nobody.
        on_judged: Told what the judges of each result cost.

    Attributes:
        judges: Who judges the results; None: nobody.
        places: How many results may be judged at once.
        judge_failures: What could not be judged.
        unknown_tools: The tools whose names no reference step has.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        templates: Sequence[Template],
        *,
        repeats: int,
        file: ResultsFile | None,
        tell: Observer,
        pricing: Pricing,
        judges: "Judges | None" = None,
        on_judged: Callable[[JudgedCost], None] | None = None,
    ) -> None:
        self.judges = judges
        self.places = config.judges.max_concurrency
        self.judge_failures = JudgeFailures()
        self._config = config
        self._repeats = repeats
        self._file = file
        self._tell = tell
        self._pricing = pricing
        self._on_judged = on_judged
        self._judge_costs = JudgeCosts(config)
        self._kept: dict[int, Result] = {}
        self.unknown_tools = UnknownTools(config, reference_names(templates))
        self._aggregator = Aggregator(config, [str(template["template_id"]) for template in templates])

    def score(self, sample: Sample, response: Response | None) -> None:
        """Score a sample's response without judges; None is an error sample."""
        self._take(sample, self._result(sample, response))

    async def ascore(self, sample: Sample, response: Response | None) -> None:
        """Score and judge a sample's response; None is an error sample."""
        cost = JudgedCost(0.0, 0.0)
        try:
            result = self._result(sample, response)
            if self.judges is not None:
                with noted_known_costs() as known:
                    await self.judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})
                cost = _judged_cost(self._judge_costs.of(result), known)
                self.judge_failures.add(result)
        finally:
            self._tell_judged(cost)
        self._take(sample, result)

    def pass_over(self) -> None:
        """Leave a response unscored, whose judges then cost nothing."""
        self._tell_judged(JudgedCost(0.0, 0.0))

    def _tell_judged(self, cost: JudgedCost) -> None:
        if self._on_judged is not None:
            self._on_judged(cost)

    def _result(self, sample: Sample, response: Response | None) -> Result:
        if isinstance(response, Mapping):
            response = cast("Response", priced_response(response, self._pricing))
        result = evaluate_question(sample.template, sample.question, response, self._config)
        return cast("Result", {**result, "repeat": sample.repeat}) if self._repeats > 1 else result

    def _take(self, sample: Sample, result: Result) -> None:
        if self._file is None:
            self._kept[sample.position] = result
        else:
            self._file.add(sample.position, result)
        self._aggregator.add(result)
        self.unknown_tools.add(result.get("reference_steps"), result)
        fields = {
            "question_id": sample.key[0],
            "repeat": sample.repeat if self._repeats > 1 else None,
            "steps_score": result.get("steps_score"),
        }
        self._tell(RunEvent("result_scored", fields))

    def tell_failed(self, problem: Exception) -> None:
        """Tell that nothing can be scored any more."""
        message = f"The scoring failed: {problem} The asking goes on, and the run can be scored again."
        self._tell(RunEvent("warning", {"message": message}))

    def finish(self) -> dict[str, Any]:
        """Put the results in order, and give the aggregates."""
        if self._file is not None:
            self._file.finish()
        return self._aggregator.aggregates()

    def kept(self) -> list[Result]:
        """Give the results in order, where there is no file for them."""
        return [result for _, result in sorted(self._kept.items())]


class ScoringThread:
    """Scores beside the running event loop, so that a large comparison holds up no agent.

    Args:
        scores: Where the samples are scored.
        room: How many responses may wait; more make the asking wait, and not the memory grow.

    Attributes:
        problem: What ended the scoring; the asking goes on, as responses are paid for and can be scored again.
    """

    def __init__(self, scores: Scores, room: int) -> None:
        self.problem: Exception | None = None
        self._scores = scores
        self._room = room
        self._waiting: queue.SimpleQueue[tuple[Sample, Response] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._has_room = asyncio.Event()
        self._is_awaited = False
        self._thread = threading.Thread(target=self._run, name="graphrag-eval-lc-scoring", daemon=True)
        self._thread.start()

    async def aadd(self, sample: Sample, response: Response) -> None:
        """Have a response scored soon; wait where too many do so already."""
        self._waiting.put((sample, response))
        while self._waiting.qsize() > self._room:
            self._has_room.clear()
            self._is_awaited = True
            if self._waiting.qsize() > self._room:
                await self._has_room.wait()

    def close(self) -> None:
        """Wait for the last score.

        Raises:
            Exception: What went wrong in the scoring, such as a results file that cannot be written.
        """
        self._waiting.put(None)
        self._thread.join()
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        if self._scores.judges is not None:
            try:
                run_sync(lambda: self._ajudge(self._scores.places))
            except BaseException as problem:  # else whoever waits for room or for costs would wait for ever
                self._failed(problem if isinstance(problem, Exception) else RuntimeError(f"{problem!r} ended it"))
                self._make_room()
            return
        for sample, response in iter(self._waiting.get, None):
            if self.problem is None:
                try:
                    self._scores.score(sample, response)
                except Exception as problem:
                    self._failed(problem)
            self._make_room()

    async def _ajudge(self, most: int) -> None:
        """Score in an event loop of this thread, where the judges' models wait for their answers."""
        loop, places = asyncio.get_running_loop(), asyncio.Semaphore(most)
        tasks: set[asyncio.Task[None]] = set()
        while True:
            await places.acquire()
            waiting = await loop.run_in_executor(None, self._waiting.get)
            if waiting is None:
                break
            task = loop.create_task(self._ascore(*waiting, places))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        if self._scores.judges is not None:
            await self._scores.judges.aclose()

    async def _ascore(self, sample: Sample, response: Response, places: asyncio.Semaphore) -> None:
        try:
            if self.problem is None:
                await self._scores.ascore(sample, response)
            else:
                self._scores.pass_over()
        except (Exception, asyncio.CancelledError) as problem:
            self._failed(problem if isinstance(problem, Exception) else RuntimeError(f"{problem!r} ended it"))
        finally:
            places.release()
            self._make_room()

    def _failed(self, problem: Exception) -> None:
        self.problem = problem
        with contextlib.suppress(Exception):  # an observer that fails is the problem itself
            self._scores.tell_failed(problem)

    def _make_room(self) -> None:
        if self._is_awaited and self._waiting.qsize() <= self._room:
            self._is_awaited = False
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._has_room.set)


def _judged_cost(costs: Iterable[float | None], known: Iterable[float]) -> JudgedCost:
    priced = list(costs)
    if None in priced:
        return JudgedCost(None, None)
    total = sum(cost for cost in priced if cost is not None)
    return JudgedCost(total, max(0.0, round(total - sum(known), _DIGITS)))
