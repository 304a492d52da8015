"""Many questions scored and judged at once: each result goes to disk, and of it only its numbers are kept."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from graphrag_eval_lc.aggregation import Aggregator, JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.events import Observer, RunEvent, RunStalls
from graphrag_eval_lc.evaluation.limits import Budget, Verdict
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.judges.custom_functions import has_registered_functions
from graphrag_eval_lc.judges.scores import noted_known_costs
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, priced_response
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.registry.metrics import JUDGES, MAIN_METRIC
from graphrag_eval_lc.run_folder import ResultsFile
from graphrag_eval_lc.texts import shortened

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges


# Older names for other keys, and what a comparison without judges says.
_NOT_COUNTED = {*(judge.older_error_key for judge in JUDGES), "comparison_error"}
_LONGEST_TEXT = 300


class JudgeFailures:
    """Counts the results with a judge or a function that failed, and keeps what the first one said.

    Example:
        >>> failures = JudgeFailures()
        >>> failures.add({"question_id": "q1", "tone_error": "the model refused to answer"})
        >>> failures.add({"question_id": "q2", "tone_score": 0.5})
        >>> failures.warning()
        'not all could be judged in 1 of 2 results; the first is q1, tone_error: the model refused to answer'
    """

    def __init__(self) -> None:
        self._number_of_results = 0
        self._number_of_failures = 0
        self._first = ""

    def add(self, result: Mapping[str, Any]) -> None:
        """Take up a judged result."""
        self._number_of_results += 1
        key, text = next(_errors_in(result), (None, ""))
        if key is None:
            return
        self._number_of_failures += 1
        if not self._first:
            short = shortened(text, _LONGEST_TEXT, keeps_lines=True)
            self._first = f"{result.get('question_id')}, {key}: {short}"

    def warning(self) -> str | None:
        """Return the sentence; None where nothing failed."""
        if not self._number_of_failures:
            return None
        counted = f"{self._number_of_failures:,} of {self._number_of_results:,} results"
        return f"not all could be judged in {counted}; the first is {self._first}"


def _errors_in(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    steps = result.get("actual_steps")
    records = [result, *(steps if isinstance(steps, list) else ())]
    for record in records:
        for key, text in record.items() if isinstance(record, Mapping) else ():
            if str(key).endswith("_error") and key not in _NOT_COUNTED and isinstance(text, str):
                yield key, text


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
        stalls: Watches the event loop in which the judges are asked; None: nobody does.

    Attributes:
        judges: Who judges the results; None: nobody.
        stalls: Watches the event loop in which the judges are asked.
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
        stalls: RunStalls | None = None,
    ) -> None:
        self.judges = judges
        self.stalls = stalls or RunStalls(lambda message: None, tell, repeats)
        self.places = config.judges.max_concurrency
        self.judge_failures = JudgeFailures()
        self._config = config
        self._repeats = repeats
        self._file = file
        self._tell = tell
        self._pricing = pricing
        self._on_judged = on_judged
        self._judge_costs = JudgeCosts(config)
        self._lock = threading.Lock()
        self._kept: dict[int, Result] = {}
        self.unknown_tools = UnknownTools(config, reference_names(templates))
        self._aggregator = Aggregator(config, [str(template["template_id"]) for template in templates])

    def score(self, sample: Sample, response: Response | None) -> None:
        """Score a sample's response without judges; None is an error sample."""
        self.take(sample, self.unjudged(sample, response))

    async def ascore(self, sample: Sample, response: Response | None) -> None:
        """Score and judge a sample's response; None is an error sample."""
        try:
            result = self.unjudged(sample, response)
        except BaseException:
            self.pass_over()
            raise
        await self.ajudge(sample, response, result)
        self.take(sample, result)

    async def ajudge(self, sample: Sample, response: Response | None, result: Result) -> None:
        """Add what the judges say to a result."""
        cost = JudgedCost(0.0, 0.0)
        try:
            if self.judges is not None:
                with self.stalls.judging(sample), noted_known_costs() as known:
                    await self.judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})
                cost = _judged_cost(self._judge_costs.of(result), known)
                self.judge_failures.add(result)
        finally:
            self._tell_judged(cost)

    def pass_over(self) -> None:
        """Leave a response unscored, whose judges then cost nothing."""
        self._tell_judged(JudgedCost(0.0, 0.0))

    def _tell_judged(self, cost: JudgedCost) -> None:
        if self._on_judged is not None:
            self._on_judged(cost)

    def unjudged(self, sample: Sample, response: Response | None) -> Result:
        """Return the result of a sample's response before anybody judges it."""
        if isinstance(response, Mapping):
            response = cast("Response", priced_response(response, self._pricing))
        repeat = sample.repeat if self._repeats > 1 else None
        return evaluate_question(sample.template, sample.question, response, self._config, repeat=repeat)

    def take(self, sample: Sample, result: Result) -> None:
        """Keep a result, and of it the numbers; from any thread."""
        with self._lock:
            if self._file is None:
                self._kept[sample.position] = result
            else:
                self._file.add(sample.position, result)
            self._aggregator.add(result)
            self.unknown_tools.add(result.get("reference_steps"), result)
        fields = {
            "question_id": sample.key[0],
            "repeat": sample.repeat if self._repeats > 1 else None,
            MAIN_METRIC: result.get(MAIN_METRIC),
        }
        self._tell(RunEvent("result_scored", fields))

    def tell_failed(self, problem: Exception) -> None:
        """Tell that nothing can be scored any more."""
        message = f"The scoring failed: {problem} The asking goes on, and the run can be scored again."
        with contextlib.suppress(Exception):  # an observer that fails is the problem itself
            self._tell(RunEvent("warning", {"message": message}))

    def finish(self) -> dict[str, Any]:
        """Put the results in order, and give the aggregates."""
        if self._file is not None:
            self._file.finish()
        return self._aggregator.aggregates()

    def kept(self) -> list[Result]:
        """Return the results in order, where there is no file for them."""
        return [result for _, result in sorted(self._kept.items())]


class Scoring(Protocol):
    """Scoring that goes on beside the asking.

    Attributes:
        problem: What ended it; the asking goes on, as responses are paid for and can be scored again.
    """

    problem: Exception | None

    async def aadd(self, sample: Sample, response: Response) -> None:
        """Have a response scored soon; wait where too many do so already."""

    async def aclose(self) -> None:
        """Wait for the last score.

        Raises:
            Exception: What went wrong in the scoring, such as a results file that cannot be written.
        """


def begun_scoring(scores: Scores, room: int) -> Scoring:
    """Return scoring beside the running event loop.

    Args:
        scores: Where the samples are scored.
        room: How many responses may wait; more make the asking wait, and not the memory grow.
    """
    return ScoringThread(scores, room) if scores.judges is None else ScoringTasks(scores, room)


class ScoringThread:
    """Scores in a thread, so that a large comparison holds up no agent."""

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

    async def aclose(self) -> None:
        """Wait for the last score."""
        self._waiting.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        for sample, response in iter(self._waiting.get, None):
            if self.problem is None:
                try:
                    self._scores.score(sample, response)
                except Exception as problem:
                    self.problem = problem
                    self._scores.tell_failed(problem)
            if self._is_awaited and self._waiting.qsize() <= self._room:
                self._is_awaited = False
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._has_room.set)


class ScoringTasks:
    """Scores in threads, and asks the judges in the running loop: their models may share a client with the agent's."""

    def __init__(self, scores: Scores, room: int) -> None:
        self.problem: Exception | None = None
        self._scores = scores
        self._most = room + scores.places
        self._places = asyncio.Semaphore(scores.places)
        self._tasks: set[asyncio.Task[None]] = set()

    async def aadd(self, sample: Sample, response: Response) -> None:
        """Have a response scored soon; wait where too many do so already."""
        task = asyncio.create_task(self._ascore(sample, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        while len(self._tasks) > self._most:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def aclose(self) -> None:
        """Wait for the last score."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._scores.judges is not None:
            await self._scores.judges.aclose()
        if self.problem is not None:
            raise self.problem

    async def _ascore(self, sample: Sample, response: Response) -> None:
        async with self._places:
            try:
                if self.problem is None:
                    await self._ajudged(sample, response)
                else:
                    self._scores.pass_over()
            except BaseException as problem:  # else whoever waits for room or for costs would wait for ever
                self.problem = problem if isinstance(problem, Exception) else RuntimeError(f"{problem!r} ended it")
                self._scores.tell_failed(self.problem)

    async def _ajudged(self, sample: Sample, response: Response) -> None:
        loop = asyncio.get_running_loop()
        try:
            result = await loop.run_in_executor(None, self._scores.unjudged, sample, response)
        except BaseException:
            self._scores.pass_over()
            raise
        await self._scores.ajudge(sample, response, result)
        await loop.run_in_executor(None, self._scores.take, sample, result)


def _judged_cost(costs: Iterable[float | None], known: Iterable[float]) -> JudgedCost:
    priced = list(costs)
    if None in priced:
        return JudgedCost(None, None)
    total = sum(cost for cost in priced if cost is not None)
    return JudgedCost(total, max(0.0, round(total - sum(known), _DIGITS)))


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


def judges_of(
    config: EvaluationConfig,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
    cache: Any = None,
    pricing: Pricing | None = None,
) -> "Judges | None":
    """Return the judges that a config, a caller and registered functions ask for; None where nothing is judged.

    Raises:
        ConfigError: Something needs a model that is not there.
        OptionError: A function cannot be an evaluator.
        MissingExtraError: The package that a model needs is not installed.
    """
    if config.llm is None and llm is None and not evaluators and not has_registered_functions():
        return None
    # Imported here, as a run without judges needs nothing of it.
    from graphrag_eval_lc.judges.judging import Judges

    return Judges.from_config(
        config, llm=llm, embeddings=embeddings, functions=evaluators, cache=cache, pricing=pricing
    )
