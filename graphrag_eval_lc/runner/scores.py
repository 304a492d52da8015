"""Scoring samples as they come: each result goes to disk, and of it only its numbers are kept."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Sequence
from typing import Any, cast

from graphrag_eval_lc.aggregation import Aggregator
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation import evaluate_question
from graphrag_eval_lc.records import Response, Result
from graphrag_eval_lc.run_folder import ResultsFile
from graphrag_eval_lc.runner.events import Observer, RunEvent
from graphrag_eval_lc.runner.samples import Sample


class Scores:
    """The results of a run and their aggregates.

    Args:
        config: The configuration.
        template_ids: The templates in the dataset's order.
        repeats: How often each question is asked.
        file: Where results go; None keeps them in memory.
        tell: Told each score.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        template_ids: Sequence[str],
        *,
        repeats: int,
        file: ResultsFile | None,
        tell: Observer,
    ) -> None:
        self._config = config
        self._repeats = repeats
        self._file = file
        self._tell = tell
        self._kept: dict[int, Result] = {}
        self._aggregator = Aggregator(config, template_ids)

    def score(self, sample: Sample, response: Response | None) -> None:
        """Score a sample's response; None is an error sample."""
        result = evaluate_question(sample.template, sample.question, response, self._config)
        if self._repeats > 1:
            result = cast("Result", {**result, "repeat": sample.repeat})
        if self._file is None:
            self._kept[sample.position] = result
        else:
            self._file.add(sample.position, result)
        self._aggregator.add(result)
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
        for sample, response in iter(self._waiting.get, None):
            if self.problem is None:
                try:
                    self._scores.score(sample, response)
                except Exception as problem:
                    self.problem = problem
                    with contextlib.suppress(Exception):  # an observer that fails is the problem itself
                        self._scores.tell_failed(problem)
            if self._is_awaited and self._waiting.qsize() <= self._room:
                self._is_awaited = False
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._has_room.set)
