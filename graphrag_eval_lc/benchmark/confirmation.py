"""The regression gate: compares a run with its baseline, and re-runs the questions that changed before it fails."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import GateResult, PairComparison, RunComparison, compare_runs
from graphrag_eval_lc.compare.gate_checks import ROUNDING
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import GraphRAGEvalError, NothingToCompareError
from graphrag_eval_lc.metrics.difference import permutation_p_value
from graphrag_eval_lc.metrics.intervals import scipy_stats
from graphrag_eval_lc.records import Question
from graphrag_eval_lc.registry.metrics import COST, MAIN_METRIC, TOTAL_TOKENS
from graphrag_eval_lc.run_folder import CONFIRMATION
from graphrag_eval_lc.texts import counted, visible

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import CheckedOptions

AskAgain = Callable[["CheckedOptions"], Awaitable[BenchmarkRun]]
_LEAST: Final = 1e-9  # a used-up budget: limits must be above 0, and this stops the run at once
# A drop with a greater p-value may be chance: two runs of the same agent differ as much in a quarter of all pairs.
MOST_CHANCE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _AllAnswers:
    """The results of a run with those of its confirmation, as ``compare_runs`` reads them."""

    run: BenchmarkRun
    again: BenchmarkRun

    @property
    def output_dir(self) -> Path | None:
        return self.run.output_dir

    def iter_results(self) -> Iterator[Any]:
        return itertools.chain(self.run.iter_results(), self.again.iter_results())


def check_baseline(baseline: Path, questions: Iterable[tuple[Any, Question]]) -> None:
    """Refuse a baseline that cannot be read or has none of the questions, before the agent is called."""
    scipy_stats()
    known = {str(result["question_id"]) for result in run_results(baseline)}
    if not any(str(question["id"]) in known for _, question in questions):
        what = "the baseline has none of the questions of this run"
        raise NothingToCompareError(what, path=baseline, hint="Give a run on the same dataset.")


async def aregression_gate(
    run: BenchmarkRun, options: "CheckedOptions", aask_again: AskAgain, *, elapsed_sec: float
) -> GateResult | None:
    """Return the gate result for a run and its baseline; if the run seems worse, re-run the changed questions first.

    The gate passes in three cases: the run alone passes; the drop may be chance, as two runs of the same agent differ
    as much in more than a quarter of all pairs (a two-sided sign-flip test over questions); or the means over all
    answers pass. benchmarks/confirmation.py counts how often each case is right.

    The further answers are a separate run in the subfolder ``confirmation``, which is resumed like any other. They are
    not part of the run's results and aggregates, as their questions were selected. If that run stops early,
    ``run.stopped`` of this run says so. The run is paid for, so no error ends it here.
    """
    baseline: Any = options.baseline
    if run.stopped is not None:
        return None
    wanted = GateConfig(regression=options.max_drop)

    def compared(answers: BenchmarkRun | _AllAnswers) -> tuple[RunComparison, GateResult]:
        comparison = compare_runs(baseline, answers, config=run.config)
        (gate,) = comparison.gate_results([wanted])
        return comparison, _said(gate, f"compared with {baseline} (A), {gate}")

    try:
        comparison, first = await asyncio.to_thread(compared, run)
    except GraphRAGEvalError as problem:  # such as other texts under the same ids
        why = f"compared with {baseline}: {str(problem).rstrip('.')}"
        return GateResult(
            gate=wanted, state="not checked", value=None, bound=options.max_drop, sentence=why, metric=MAIN_METRIC
        )
    flips = comparison.pairs[0].flips
    if first.state != "failed" or not options.confirm or not flips:
        return first
    chance = permutation_p_value([[flip.score_b - flip.score_a for flip in flips]])
    if chance > MOST_CHANCE + ROUNDING:
        often = (
            f"two runs of the same agent differ as much in {100 * chance:.0f} of 100 cases, so nothing was run again"
        )
        return _said(replace(first, state="passed"), f"{first}, which may be chance: {often}")
    changed = _changed_questions(comparison.pairs[0], first)
    if not changed:
        return first
    questions = counted(len(changed), "question")
    ended = _said(first, f"{first}; not confirmed, as the run ended while {questions} were run again")
    try:
        again = await aask_again(_options_again(run, options, changed, elapsed_sec))
    except GraphRAGEvalError as problem:  # such as another process that works in the folder
        run.warnings = [*run.warnings, f"confirmation: {problem}"]
        return ended
    run.warnings = [*run.warnings, *(f"confirmation: {warning}" for warning in again.warnings)]
    if again.stopped is not None:
        run.stopped = again.stopped
        return ended
    _, last = await asyncio.to_thread(compared, _AllAnswers(run, again))
    times = "once more" if options.confirm == 1 else f"{options.confirm:,} more times"
    return _said(last, f"{last}; confirmed: {questions} run {times}; the run alone: {first.sentence}")


def _said(gate: GateResult, sentence: str) -> GateResult:
    return replace(gate, sentence=visible(sentence, keeps_lines=False))


def _changed_questions(pair: PairComparison, gate: GateResult) -> list[str]:
    """Return the ids of the questions whose score changed by more than the gate's limit, in either direction.

    If the mean drops by more than the limit, at least one question does. Re-running only the questions that got worse
    would bias the means.
    """
    metric = pair.metric(gate.metric)
    least = gate.bound * (1.0 if metric is None or metric.is_proportion else abs(metric.mean_a))
    return [flip.question_id for flip in pair.flips if abs(flip.score_b - flip.score_a) > least + ROUNDING]


def _options_again(
    run: BenchmarkRun, options: "CheckedOptions", changed: list[str], elapsed_sec: float
) -> "CheckedOptions":
    """Return the options for re-running the changed questions, with the rest of the budgets."""
    totals = run.aggregates["totals"]
    again = options.replaced(
        output_dir=None if options.output_dir is None else options.output_dir / CONFIRMATION,
        label=f"confirmation of {options.label or 'the run'}",
        limit=None,
        sample=None,
        seed=None,
        template_ids=(),
        question_ids=tuple(changed),
        repeats=options.confirm,
        gates=(),
        baseline=None,
        confirm=0,
        force=True,  # fixed references may have changed which questions are re-run
        max_cost=_left(options.max_cost, totals.get(COST), _LEAST),
        max_tokens=_left(options.max_tokens, totals.get(TOTAL_TOKENS), 1),
        max_time=_left(options.max_time, elapsed_sec, _LEAST),
    )
    vars(again).pop("selection", None)  # a cached value, for the run's own questions
    return again


def _left(most: Any, spent: object, least: float) -> Any:
    """Return the rest of a budget, at least ``least``; None if there is no limit."""
    spent = spent.get("sum") if isinstance(spent, Mapping) else spent
    return most if most is None or not isinstance(spent, int | float) else max(most - spent, least)
