"""The pipeline of every evaluation: prices, scores and judges responses concurrently, and stores the results."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

from graphrag_eval_lc.aggregation import Aggregator
from graphrag_eval_lc.aggregation.aggregator import CALIBRATED
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.events import Observer, RunEvent, ignore_event
from graphrag_eval_lc.evaluation.question_result import evaluate_question, with_checked_vocabulary
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.evaluation.stop_signal import StopReason
from graphrag_eval_lc.evaluation.unreadable_outputs import UnreadableOutputs
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.event_loop.stalls import StallWatch
from graphrag_eval_lc.judges.custom_functions import has_registered_functions
from graphrag_eval_lc.judges.model_interface import not_asked
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, lacks_costs, priced_response, unpriced_warning
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, OLDER_CORRECTNESS_ERROR
from graphrag_eval_lc.run_folder import ResultsFile
from graphrag_eval_lc.texts import counted, shortened
from graphrag_eval_lc.view.failures import why
from graphrag_eval_lc.view.samples import FAILED, seen_samples, verdict_of

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

Item = TypeVar("Item")
MaybeResponse = TypeVar("MaybeResponse", Response, Response | None)

_CANCELLING_SEC = 1.0  # how long to wait for cancelled tasks, as a task may refuse to be cancelled


class Compared(NamedTuple):
    """A priced response (or None) with its result, compared with the reference but not yet judged."""

    sample: Sample
    response: Response | None
    result: Result


class Comparer(Protocol):
    """Compares responses outside the pipeline's process."""

    def acompared(
        self, samples: Iterable[tuple[Sample, Response | None]], *, number: int, has_repeats: bool
    ) -> AsyncGenerator[Compared]:
        """Compare responses and yield them in order; only a limited number is taken ahead.

        If ``evaluate_question`` raises for one, the error is raised after all responses before it were yielded.
        """


class Pipeline:
    """Prices, scores and judges responses, and stores their results.

    Recorded responses are added together (``add_all``, ``aadd_all``; with a ``comparer`` they are compared in other
    processes). Responses of a running agent are added one by one (``begin``, ``aadd``, ``aclose``). Without a file the
    results are kept in memory. ``unjudged`` results lack judged scores because no more was asked.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        templates: Sequence[Template],
        *,
        repeats: int,
        pricing: Pricing,
        judges: "Judges | None" = None,
        file: ResultsFile | None = None,
        notify: Observer = ignore_event,
        budget: Budget | None = None,
        comparer: Comparer | None = None,
    ) -> None:
        self.judges = judges
        if judges is not None:
            judges.questions = tuple(
                question["question_text"] for template in templates for question in template.get("questions") or ()
            )
        self._comparer = comparer
        self.unjudged = 0
        self._budget = budget or Budget()
        self._stall_warnings: list[str] = []
        self._config = with_checked_vocabulary(config)
        self._views = StepViews(config.steps, config.sparql, config.retrieval)
        self._repeats = repeats
        self._pricing = pricing
        self._file = file
        self._notify = notify
        self._metrics = Metrics(config)
        self._judge_failures = JudgeFailures()
        self._unknown_tools = UnknownTools(config, reference_names(templates))
        self._unreadable_outputs = UnreadableOutputs()
        self._aggregator = Aggregator(
            config,
            [str(template["template_id"]) for template in templates],
            labels=None if judges is None else judges.labels,
        )
        self._aggregates: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._kept: dict[int, Result] = {}
        self.begin()

    # --- all at once ---

    def add_all(self, samples: Sequence[Sample], response_of: Callable[[Sample], Response | None]) -> None:
        """Score and judge samples from synchronous code; see ``aadd_all``."""
        if self.judges is not None or self._comparer is not None:
            run_sync(lambda: self.aadd_all(samples, response_of))
            return
        for sample in samples:
            self.add(sample, response_of(sample))

    async def aadd_all(self, samples: Sequence[Sample], response_of: Callable[[Sample], Response | None]) -> None:
        """Score and judge samples, many at once; the first failure ends it. None is the response of an error sample."""
        if self.judges is None and self._comparer is None:
            self.add_all(samples, response_of)
            return
        priced = ((sample, self.priced(response_of(sample))) for sample in samples)
        comparing = self._acompared(priced)
        if self._comparer is not None:
            comparing = self._comparer.acompared(priced, number=len(samples), has_repeats=self._repeats > 1)
        async with contextlib.aclosing(comparing) as compared:
            if self.judges is None:
                async for sample, _, result in compared:
                    self._take(sample, result)
                return
            try:
                with StallWatch(self._stall_warnings.append):
                    await Workers(self._ajudge, max_concurrency=self.judges.max_concurrency).arun(compared)
            finally:
                await self.judges.aclose()

    async def _acompared(self, priced: Iterable[tuple[Sample, Response | None]]) -> AsyncGenerator[Compared]:
        """Compare priced responses in a thread of this process."""
        for sample, response in priced:
            yield Compared(sample, response, await asyncio.to_thread(self._unjudged, sample, response))

    # --- one by one ---

    def begin(self, room: int = 0) -> None:
        """Set how many responses may wait to be scored; ``aadd`` waits while there are more."""
        max_concurrency = 1 if self.judges is None else self.judges.max_concurrency
        self._workers = Workers(self._awork, max_concurrency=max_concurrency, room=room, continue_on_error=True)

    async def aadd(self, sample: Sample, response: Response) -> None:
        """Queue a priced response, to be scored and judged outside the event loop; wait if the queue is full.

        A failure is reported at once and raised by ``aclose``. Later responses are not scored, but the run continues:
        responses are paid for and can be re-scored.
        """
        await self._workers.aput((sample, response))

    async def aclose(self) -> None:
        """Wait for the last result, and close the judges; raise the first failure, such as a full disk."""
        try:
            await self._workers.aclose()
        finally:
            if self.judges is not None:
                await self.judges.aclose()

    async def _awork(self, added: tuple[Sample, Response]) -> None:
        if self._workers.problem is not None:
            return
        try:
            if self.judges is None:  # in batches, as a thread switch takes as long as a comparison
                await asyncio.to_thread(self._add_each, [added, *self._workers.take_waiting()])
            else:
                # Judges run in the event loop, as their models may share a client with the agent's.
                result = await asyncio.to_thread(self._unjudged, *added)
                await self._ajudge(Compared(*added, result))
        except Exception as problem:
            message = f"The scoring failed: {problem} The run continues, and can be scored again."
            if self._workers.problem is None:
                with contextlib.suppress(Exception):  # the observer itself may be what failed
                    self._notify(RunEvent("warning", {"message": message}))
            raise

    # --- one response ---

    def add(self, sample: Sample, response: Response | None) -> None:
        """Price and score a response without judges; None counts as an error sample."""
        self._take(sample, self._unjudged(sample, self.priced(response)))

    def keep(self, sample: Sample, result: Result) -> None:
        """Store a result that was scored and judged elsewhere with the same config."""
        self._judge_failures.add(result)
        self._take(sample, result)

    def _add_each(self, added: Iterable[tuple[Sample, Response]]) -> None:
        for sample, response in added:
            self._take(sample, self._unjudged(sample, response))

    async def _ajudge(self, compared: Compared) -> None:
        """Judge a compared response, and store its result."""
        sample, response, result = compared
        if self.judges is not None:
            missing: list[str] = []
            token = not_asked.set(missing)
            try:
                await self.judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})
            finally:
                not_asked.reset(token)
            self.unjudged += bool(missing)
            self._judge_failures.add(result)
        await asyncio.to_thread(self._take, sample, result)

    def priced(self, response: MaybeResponse) -> MaybeResponse:
        """Return a response with the costs of its model calls; a response that breaks the format is unchanged."""
        if not isinstance(response, Mapping):
            return response
        return cast("MaybeResponse", priced_response(response, self._pricing))

    def _unjudged(self, sample: Sample, response: Response | None) -> Result:
        repeat = sample.repeat if self._repeats > 1 else None
        return evaluate_question(
            sample.template, sample.question, response, self._config, repeat=repeat, views=self._views
        )

    def _take(self, sample: Sample, result: Result) -> None:
        """Store a result; may be called from any thread."""
        with self._lock:
            if self._file is None:
                self._kept[sample.position] = result
            else:
                self._file.add(sample.position, result)
                self._aggregator.add(result)
            self._unknown_tools.add(result.get("reference_steps"), result)
            self._unreadable_outputs.add(result)
        if self._notify is ignore_event:
            return
        [seen] = seen_samples([result], self._metrics)
        verdict = verdict_of(seen, self._config.repeats)
        fields = {
            "question_id": sample.key[0],
            "repeat": sample.repeat if self._repeats > 1 else None,
            "status": result.get("status"),
            MAIN_METRIC: result.get(MAIN_METRIC),
            "reason": masked_text(why(result, verdict)) if verdict.state in FAILED else None,
        }
        self._notify(RunEvent("result_scored", fields))

    # --- the end ---

    def stopped(self, asking: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
        """Return why asking or judging ended early, in the form of ``BenchmarkRun.stopped``; None if it did not."""
        given_up = None if self.judges is None else self.judges.given_up
        message = given_up or self._budget.message or None
        if message is None or (given_up is None and not self.unjudged):
            return asking
        if asking is None:
            reason: StopReason = "max_cost" if given_up is None else "judges"
            asking = {"reason": reason, "message": message, "left_out": 0}
        if not self.unjudged:  # all were refused at once
            return asking
        lacking = counted(self.unjudged, "sample was", "samples were")
        return {**asking, "message": f"{asking['message']}; {lacking} not judged"}

    def finish(self) -> dict[str, Any]:
        """Sort the results, and return the aggregates."""
        if self._aggregates is None:
            if self._file is not None:
                self._file.finish()
            for result in self.kept():  # only now, as not every caller needs the aggregates
                self._aggregator.add(result)
            self._aggregates = self._aggregator.aggregates()
            if self.judges is not None:
                self.judges.calibrated = self._aggregates.get(CALIBRATED, {})
        return self._aggregates

    def kept(self) -> list[Result]:
        """Return the results in order; empty if they are in a file."""
        return [result for _, result in sorted(self._kept.items())]

    def warnings(self, *, wants_costs: bool = False) -> list[str]:
        """Return the warnings: what blocked the event loop, unknown tools, failed judges, models without a price.

        With ``wants_costs``, missing prices are reported even if no model judges and the config has no prices.
        """
        texts = [*self._stall_warnings, *map(str, self._unknown_tools.found()), *self._unreadable_outputs.warnings()]
        failures = None if self.judges is not None and self.judges.given_up else self._judge_failures.warning()
        if failures is not None:
            texts.append(failures)
        has_judges = self.judges is not None and self.judges.asks_models
        unpriced = self._pricing.unpriced
        is_asked_for = wants_costs or has_judges or self._config.prices
        if unpriced and is_asked_for and lacks_costs(self.finish()["totals"], has_judges=has_judges):
            texts.append(unpriced_warning(unpriced))
        return texts


def judges_of(
    config: EvaluationConfig,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    **options: Any,
) -> "Judges | None":
    """Return the judges of a config (see ``Judges.from_config``); None if nothing is judged."""
    if config.llm is None and llm is None and not evaluators and not has_registered_functions():
        return None
    # Imported here, as a run without judges does not need it.
    from graphrag_eval_lc.judges.judging import Judges

    return Judges.from_config(config, llm=llm, functions=evaluators, **options)


# --- what judges failed on --------------------------------------------------------------------------------------------

# Not failures of judges: an older name of another key, and the error of a comparison.
_NOT_COUNTED = {OLDER_CORRECTNESS_ERROR, "comparison_error"}
_LONGEST_TEXT = 300


class JudgeFailures:
    """Counts the results for which a judge or a user's function failed, and keeps the first message.

    Example:
        >>> failures = JudgeFailures()
        >>> failures.add({"question_id": "q1", "tone_error": "the model refused to answer"})
        >>> failures.add({"question_id": "q2", "tone_score": 0.5})
        >>> failures.warning()
        'a judge or a metric failed in 1 of 2 results; the first is q1, tone_error: the model refused to answer'
    """

    def __init__(self) -> None:
        self._results = self._failures = 0
        self._first = ""

    def add(self, result: Mapping[str, Any]) -> None:
        """Count a judged result."""
        self._results += 1
        steps = result.get("actual_steps")
        for record in (result, *(steps if isinstance(steps, list) else ())):
            for key, text in record.items() if isinstance(record, Mapping) else ():
                if str(key).endswith("_error") and key not in _NOT_COUNTED and isinstance(text, str):
                    self._failures += 1
                    short = shortened(text, _LONGEST_TEXT, keeps_lines=True)
                    self._first = self._first or f"{result.get('question_id')}, {key}: {short}"
                    return

    def warning(self) -> str | None:
        """Return one sentence on the failures; None if there are none."""
        if not self._failures:
            return None
        number = counted(self._results, "result")
        return f"a judge or a metric failed in {self._failures:,} of {number}; the first is {self._first}"


# --- many at once -----------------------------------------------------------------------------------------------------


class Workers(Generic[Item]):
    """Processes items concurrently in the running event loop; items start in the order in which they were added.

    Args:
        work: Processes one item.
        max_concurrency: The concurrency limit.
        room: How many more items may be queued; ``aput`` waits while there are more.
        continue_on_error: Whether the other items continue after a failure, which ``aclose`` then raises. Otherwise a
            failure cancels them and is raised at once.

    Attributes:
        problem: The first failure, or None.
    """

    def __init__(
        self,
        work: Callable[[Item], Awaitable[None]],
        *,
        max_concurrency: int,
        room: int = 0,
        continue_on_error: bool = False,
    ) -> None:
        self.problem: BaseException | None = None
        self._work = work
        self._max_concurrency = max_concurrency
        self._room = room
        self._continue_on_error = continue_on_error
        self._waiting: deque[Item] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._some_begun = asyncio.Event()

    async def arun(self, items: Iterable[Item] | AsyncIterable[Item]) -> None:
        """Process all items, taking each from ``items`` when there is room for it. Raise the first failure."""
        try:
            if isinstance(items, AsyncIterable):
                async for item in items:
                    await self.aput(item)
            else:
                for item in items:
                    await self.aput(item)
            await self.aclose()
        except BaseException:
            self._cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_CANCELLING_SEC)
            raise

    async def aput(self, item: Item) -> None:
        """Queue an item; wait while the queue is full."""
        self._waiting.append(item)
        if len(self._tasks) < self._max_concurrency:
            task = asyncio.create_task(self._awork())
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        while len(self._waiting) > self._room and self._tasks:
            self._some_begun.clear()
            await self._some_begun.wait()
        if self.problem is not None and not self._continue_on_error:
            raise self.problem

    def take_waiting(self) -> list[Item]:
        """Remove and return up to ``room`` queued items, so that ``work`` can process them together with its item."""
        self._some_begun.set()
        return [self._waiting.popleft() for _ in range(min(self._room, len(self._waiting)))]

    async def aclose(self) -> None:
        """Wait for the last item; raise the first failure."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.problem is not None:
            raise self.problem

    async def _awork(self) -> None:
        """Process queued items one after the other until the queue is empty."""
        while self._waiting and (self._continue_on_error or self.problem is None):
            item = self._waiting.popleft()
            self._some_begun.set()
            try:
                await self._work(item)
            except BaseException as problem:  # otherwise a caller that waits for room would wait forever
                self._note(problem)
        task = asyncio.current_task()
        if task is not None:  # at once, as this task accepts no more items although it is not done yet
            self._tasks.discard(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # before it began
            self._note(asyncio.CancelledError())
        self._some_begun.set()

    def _note(self, problem: BaseException) -> None:
        if self.problem is None:
            is_cancelled = isinstance(problem, asyncio.CancelledError)
            self.problem = RuntimeError(f"{problem!r} ended it") if is_cancelled else problem
            if not self._continue_on_error:
                self._cancel()

    def _cancel(self) -> None:
        self._waiting.clear()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
