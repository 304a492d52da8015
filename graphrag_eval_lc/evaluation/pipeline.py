"""Many questions scored and judged at once: each result goes to disk, and of it only its numbers are kept."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphrag_eval_lc.aggregation import Aggregator, JudgeCosts
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.events import Observer, RunEvent, RunStalls, tell_nobody
from graphrag_eval_lc.evaluation.limits import Budget, Verdict
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.evaluation.workers import Workers
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.custom_functions import has_registered_functions
from graphrag_eval_lc.judges.scores import noted_known_costs
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, lacks_costs, priced_response, unpriced_warning
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


_NOTHING = JudgedCost(0.0, 0.0)


class Pipeline:
    """Prices, scores and judges responses, and keeps their results: the one way of all who evaluate.

    ``add`` and ``add_all`` need no event loop; ``begin``, ``aadd`` and ``aclose`` work beside an agent that is asked.

    Args:
        config: The configuration.
        templates: The dataset.
        repeats: How often each question is asked.
        pricing: The prices of model calls.
        judges: Who judges the results; None: nobody.
        file: Where results go; None keeps them in memory.
        tell: Told each result.
        on_judged: Told once for each response of ``aadd`` what its judges cost in USD, with what was paid in an earlier
            run; 0 where none was asked, None where it is not known.
        stalls: Watches the event loop in which the judges are asked, while somebody enters its ``watch``. None: one of
            its own, whose warnings are among ``warnings``.

    Attributes:
        judges: Who judges the results; None: nobody.
        stalls: Watches the event loop in which the judges are asked.
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
        tell: Observer = tell_nobody,
        on_judged: Callable[[float | None], None] | None = None,
        stalls: RunStalls | None = None,
    ) -> None:
        self._warnings: list[str] = []
        self.judges = judges
        self.stalls = stalls or RunStalls(self._warnings.append, tell, repeats)
        self._config = config
        self._repeats = repeats
        self._pricing = pricing
        self._file = file
        self._tell = tell
        self._on_judged = on_judged
        self._judge_costs = JudgeCosts(config)
        self._judge_failures = JudgeFailures()
        self._unknown_tools = UnknownTools(config, reference_names(templates))
        self._aggregator = Aggregator(config, [str(template["template_id"]) for template in templates])
        self._aggregates: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._kept: dict[int, Result] = {}
        self._workers: Workers[tuple[Sample, Response]] | None = None

    # --- all at once ---

    def add_all(
        self, samples: Iterable[Sample], response_of: Callable[[Sample], Response | None], budget: Budget | None = None
    ) -> int:
        """Score and judge samples; see ``aadd_all``. Without judges no event loop is needed."""
        if self.judges is not None:
            return run_sync(lambda: self.aadd_all(samples, response_of, budget))
        for sample in samples:
            self.add(sample, response_of(sample))
        return 0

    async def aadd_all(
        self, samples: Iterable[Sample], response_of: Callable[[Sample], Response | None], budget: Budget | None = None
    ) -> int:
        """Score and judge samples, many at once; the first problem ends it.

        Args:
            samples: The samples.
            response_of: Gives a sample's response, when its turn comes; None is an error sample.
            budget: What the judges may cost now; answers that were known cost nothing. What it does not allow is scored
                without them.

        Returns:
            The number of samples that were not judged.
        """
        if self.judges is None:
            return self.add_all(samples, response_of)
        in_flight = unjudged = 0
        some_end = asyncio.Event()

        def spend(cost: JudgedCost) -> None:
            if budget is not None and cost.now != 0:
                budget.spend(0, None, cost.now)

        async def score(sample: Sample) -> None:
            nonlocal in_flight, unjudged
            response = response_of(sample)
            while (verdict := Verdict.GO if budget is None else budget.verdict(in_flight)) is Verdict.WAIT:
                some_end.clear()
                await some_end.wait()
            if verdict is Verdict.END:
                unjudged += 1
                await asyncio.to_thread(self.add, sample, response)
                return
            in_flight += 1
            try:
                await self._ascore(sample, response, spend)
            finally:
                in_flight -= 1
                some_end.set()

        try:
            with self.stalls.watch:
                await Workers(score, places=self.judges.places).arun(samples)
        finally:
            await self.judges.aclose()
        return unjudged

    # --- one after the other, as they come ---

    def begin(self, room: int) -> None:
        """Begin to score beside the running event loop what ``aadd`` is given.

        Args:
            room: How many responses may wait; more make ``aadd`` wait, and not the memory grow.
        """
        places = 1 if self.judges is None else self.judges.places
        self._workers = Workers(self._awork, places=places, room=room, goes_on=True)

    async def aadd(self, sample: Sample, response: Response) -> None:
        """Have a response scored and judged soon; wait where too many do so already.

        What fails is told at once, and raised by ``aclose``: responses are paid for, and can be scored again.
        """
        await self._begun().aput((sample, response))

    async def aclose(self) -> None:
        """Wait for the last result, and close the judges.

        Raises:
            Exception: What went wrong in the scoring, such as a results file that cannot be written.
        """
        try:
            await self._begun().aclose()
        finally:
            if self.judges is not None:
                await self.judges.aclose()

    def _begun(self) -> Workers[tuple[Sample, Response]]:
        if self._workers is None:
            raise RuntimeError("begin first")
        return self._workers

    async def _awork(self, added: tuple[Sample, Response]) -> None:
        def spend(cost: JudgedCost) -> None:
            if self._on_judged is not None:
                self._on_judged(cost.total)

        if self._begun().problem is not None:
            spend(_NOTHING)
            return
        try:
            await self._ascore(*added, spend)
        except BaseException as problem:
            self._tell_failed(problem)
            raise

    def _tell_failed(self, problem: BaseException) -> None:
        message = f"The scoring failed: {problem} The asking goes on, and the run can be scored again."
        if self._begun().problem is None:
            with contextlib.suppress(Exception):  # an observer that fails is the problem itself
                self._tell(RunEvent("warning", {"message": message}))

    # --- one response ---

    def add(self, sample: Sample, response: Response | None) -> None:
        """Price and score a sample's response without judges, and keep the result; None is an error sample."""
        self._take(sample, self._unjudged(sample, response))

    async def _ascore(self, sample: Sample, response: Response | None, spend: Callable[[JudgedCost], None]) -> None:
        """Price, score and judge a response, and keep the result; comparisons run in a thread, judges in the loop.

        Their models may share a client with the agent's.

        Args:
            sample: The sample.
            response: Its response; None is an error sample.
            spend: Told once what the judges cost, whatever happens: questions may wait for it.
        """
        cost = _NOTHING
        try:
            result = await asyncio.to_thread(self._unjudged, sample, response)
            if self.judges is not None:
                with self.stalls.judging(sample), noted_known_costs() as known:
                    await self.judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})
                cost = _judged_cost(self._judge_costs.of(result), known)
                self._judge_failures.add(result)
        finally:
            spend(cost)
        await asyncio.to_thread(self._take, sample, result)

    def priced(self, response: Response) -> Response:
        """Return a response with what its model calls cost; one that breaks the format stays as it is."""
        return cast("Response", priced_response(response, self._pricing)) if isinstance(response, Mapping) else response

    def _unjudged(self, sample: Sample, response: Response | None) -> Result:
        priced = None if response is None else self.priced(response)
        repeat = sample.repeat if self._repeats > 1 else None
        return evaluate_question(sample.template, sample.question, priced, self._config, repeat=repeat)

    def _take(self, sample: Sample, result: Result) -> None:
        """Keep a result, and of it the numbers; from any thread."""
        with self._lock:
            if self._file is None:
                self._kept[sample.position] = result
            else:
                self._file.add(sample.position, result)
                self._aggregator.add(result)
            self._unknown_tools.add(result.get("reference_steps"), result)
        fields = {
            "question_id": sample.key[0],
            "repeat": sample.repeat if self._repeats > 1 else None,
            MAIN_METRIC: result.get(MAIN_METRIC),
        }
        self._tell(RunEvent("result_scored", fields))

    # --- the end ---

    def finish(self) -> dict[str, Any]:
        """Put the results in order, and return the aggregates."""
        if self._file is not None:
            self._file.finish()
        for result in self.kept():  # only now, as not everybody wants them
            self._aggregator.add(result)
        self._aggregates = self._aggregator.aggregates()
        return self._aggregates

    def kept(self) -> list[Result]:
        """Return the results in order, where there is no file for them."""
        return [result for _, result in sorted(self._kept.items())]

    def warnings(self, *, wants_costs: bool = False) -> list[str]:
        """Return what is to be known of the results, once all are added.

        That is, in this order: who blocked the event loop, unless others were told; tools whose names no reference step
        has; what could not be judged; a summary of who blocked the event loop; models without a price.

        Args:
            wants_costs: Whether costs matter although no model judges and the config has no prices.
        """
        texts = [
            *self._warnings,
            *map(str, self._unknown_tools.found()),
            self._judge_failures.warning(),
            self.stalls.summary(),
            self._unpriced(wants_costs=wants_costs),
        ]
        return [text for text in texts if text is not None]

    def _unpriced(self, *, wants_costs: bool) -> str | None:
        has_judges = self.judges is not None and self.judges.asks_models
        unpriced = self._pricing.unpriced
        if not unpriced or not (wants_costs or has_judges or self._config.prices):
            return None
        totals = (self._aggregates or self.finish())["totals"]
        return unpriced_warning(unpriced) if lacks_costs(totals, has_judges=has_judges) else None


def _judged_cost(costs: Iterable[float | None], known: Iterable[float]) -> JudgedCost:
    priced = list(costs)
    if None in priced:
        return JudgedCost(None, None)
    total = sum(cost for cost in priced if cost is not None)
    return JudgedCost(total, max(0.0, round(total - sum(known), _DIGITS)))


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
