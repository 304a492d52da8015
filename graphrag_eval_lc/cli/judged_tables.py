"""Judging a table or altered answers with their progress, and what the judging commands print."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, EXIT_INTERRUPTED, say, tell
from graphrag_eval_lc.errors import cannot_write
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.evaluation.judge_certificate import Ask, Certifying, check_complete
from graphrag_eval_lc.evaluation.judged_tables import AnswerJudge, JudgedTable, answer_judge, judge_table
from graphrag_eval_lc.judges.altered_answers import Reference
from graphrag_eval_lc.judges.answer_tables import AnswerTable, is_judged
from graphrag_eval_lc.judges.cache import JudgeCache
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.prices import dollars, unpriced_warning
from graphrag_eval_lc.registry.metrics import TOTAL_TOKENS
from graphrag_eval_lc.texts import counted


def judged_table(
    table: AnswerTable, judge: AnswerJudge, *, output: Path | None, overwrite: bool, is_quiet: bool, **options: Any
) -> JudgedTable:
    """Judge a table and show the progress."""
    try:
        with progress_display("off" if is_quiet else "auto") as observer:
            progress = _Progress(observer, judge.max_concurrency)
            judged = judge_table(table, judge, progress, output=output, overwrite=overwrite, **options)
    except KeyboardInterrupt:
        again = "Run the same command to resume" + (", without --overwrite." if overwrite else ".")
        tell("Stopped." if output is None else f"Stopped. Judged answers are kept. {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if judged.outdated:
        tell(f"Warning: judged answers that are no longer in the input were left out of {output}: {judged.outdated:,}.")
    return judged


def certified(
    config: Path | None,
    references: Sequence[Reference],
    asks: Sequence[Ask],
    output: Path,
    *,
    max_cost: float | None,
    plan: RequestPlan | None,
    overwrite: bool,
    is_quiet: bool,
) -> tuple[Certifying, AnswerJudge]:
    """Judge altered answers and show the progress; what was judged is cached next to the output.

    With a plan nothing is asked or written.
    """
    path = output.with_name(f"{output.name}.cache.jsonl")
    if plan is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if overwrite:
                path.unlink(missing_ok=True)
        except OSError as problem:
            raise cannot_write(path, problem) from problem
    with closing(JudgeCache(path)) as cache:
        budget = Budget(max_cost)
        if max_cost is not None:
            budget.spend(cache.spent())
        judge = answer_judge(config, cache=cache, budget=budget, plan=plan)
        try:
            with progress_display("off" if is_quiet or plan is not None else "auto") as observer:
                certifying = Certifying(judge, references, _Progress(observer, judge.max_concurrency))
                certifying.run(asks)
        except KeyboardInterrupt:
            tell("Stopped. Judged answers are kept. Run the same command to resume.")
            raise typer.Exit(EXIT_INTERRUPTED) from None
    if plan is None:
        check_complete(certifying)
        if judge.pricing.unpriced:
            tell(f"Warning: {unpriced_warning(judge.pricing.unpriced)}")
    return certifying, judge


def tell_cost(judged: JudgedTable, judge: AnswerJudge) -> None:
    """Print how many answers were judged now, and what that cost."""
    if not judged.asked:
        if judged.cells:
            say("All of these answers had been judged before; --overwrite asks again.")
        return
    cost = "not known" if judged.cost is None else dollars(judged.cost)
    say(f"Cost: {cost} ({counted(judged.asked, 'answer')} judged now)")
    if judge.pricing.unpriced:
        tell(f"Warning: {unpriced_warning(judge.pricing.unpriced)}")


def tell_errors(judged: JudgedTable) -> None:
    """Print how many rows could not be judged."""
    errors = [cells["Error"] for cells in judged.cells if cells["Error"]]
    if errors:
        rows = counted(len(errors), "row")
        if judged.given_up is not None:
            tell(f"{judged.given_up}; {rows} could not be judged. Run the same command to retry them.")
            raise typer.Exit(EXIT_FINDINGS)
        tell(f"{rows} could not be judged. Run the same command to retry them. The first error: {errors[0]}")
        if not any(map(is_judged, judged.cells)):
            raise typer.Exit(EXIT_FINDINGS)


class _Progress:
    """Shows the progress of judging as that of a run: an answer is a question of it."""

    def __init__(self, observer: Observer, max_concurrency: int) -> None:
        self._observer = observer
        self._max_concurrency = max_concurrency

    def started(self, total: int, done: int) -> None:
        fields = {"total": total, "done": done, "errors": 0, "max_concurrency": self._max_concurrency}
        self._observer(RunEvent("run_started", fields))

    def judged(self, error: str) -> None:
        status = "error" if error else "success"
        fields = {"question_id": "", "repeat": None, "status": status, TOTAL_TOKENS: None}
        self._observer(RunEvent("response_ended", fields))
