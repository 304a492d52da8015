"""Judging a table with its progress, and what the judging commands print."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, EXIT_INTERRUPTED, output_console, say, tell
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.evaluation.answer_tables import AnswerTable, Cells, is_judged
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.evaluation.judge_agreement import Interval, JudgeAgreement, Share, verdict_text
from graphrag_eval_lc.evaluation.judged_tables import AnswerJudge, JudgedTable, judge_table
from graphrag_eval_lc.prices import dollars, unpriced_warning
from graphrag_eval_lc.registry.metrics import TOTAL_TOKENS
from graphrag_eval_lc.texts import counted, shortened

_SHOWN_TEXT = 300


def judged_table(
    table: AnswerTable, judge: AnswerJudge, *, output: Path | None, overwrite: bool, is_quiet: bool, **options: Any
) -> JudgedTable:
    """Judge a table and show the progress.

    Raises:
        typer.Exit: With code 130, where it was interrupted; the command that goes on is printed.
    """
    try:
        with progress_display("off" if is_quiet else "auto") as observer:
            progress = _Progress(observer, judge.max_concurrency)
            judged = judge_table(table, judge, progress, output=output, overwrite=overwrite, **options)
    except KeyboardInterrupt:
        again = "Give the same command again to go on" + (", without --overwrite." if overwrite else ".")
        tell("Stopped." if output is None else f"Stopped. What had been judged is kept. {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if judged.outdated:
        tell(f"Warning: judged answers that are no longer in the input were left out of {output}: {judged.outdated:,}.")
    return judged


def tell_cost(judged: JudgedTable, judge: AnswerJudge) -> None:
    """Print what was asked now, and what it cost."""
    if not judged.asked:
        if judged.cells:
            say("All of these answers had been judged before; --overwrite asks again.")
        return
    cost = "not known" if judged.cost is None else dollars(judged.cost)
    say(f"Cost: {cost} ({counted(judged.asked, 'answer')} judged now)")
    if judge.pricing.unpriced:
        tell(f"Warning: {unpriced_warning(judge.pricing.unpriced)}")


def tell_errors(judged: JudgedTable) -> None:
    """Print how many rows could not be judged.

    Raises:
        typer.Exit: With code 1, where that is all of them, or the model was asked nothing more.
    """
    errors = [cells["Error"] for cells in judged.cells if cells["Error"]]
    if errors:
        rows = counted(len(errors), "row")
        if judged.given_up is not None:
            tell(f"{judged.given_up}; {rows} could not be judged, and given again, the command asks for them again.")
            raise typer.Exit(EXIT_FINDINGS)
        tell(f"{rows} could not be judged; given again, the command asks for them again. The first error: {errors[0]}")
        if not any(map(is_judged, judged.cells)):
            raise typer.Exit(EXIT_FINDINGS)


class _Progress:
    """Shows the progress of judging as that of a run: an answer is a question of it.

    Args:
        observer: The display.
        max_concurrency: The most answers that are judged at once.
    """

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


def print_agreement(agreement: JudgeAgreement, questions: Sequence[str], cells: Sequence[Cells], *, show: int) -> None:
    """Print the agreement, how many rows were left out, and disagreements.

    Args:
        agreement: Labels against verdicts.
        questions: The question of each row.
        cells: What the judge found of each row.
        show: How many disagreements are shown.
    """
    console = output_console()
    console.print(_statistics_table(agreement))
    console.print(_rows_line(agreement, cells))
    disagreements = agreement.disagreements
    if disagreements and show:
        console.print()
        console.print(_disagreements_table(agreement, disagreements[:show], questions, cells))


def _statistics_table(agreement: JudgeAgreement) -> Table:
    table = Table(title="The judge against people", title_justify="left", title_style="bold", show_edge=False)
    table.add_column("")
    for heading in ("Value", "95 % interval", "Rows"):
        table.add_column(heading, justify="right")
    _add_share(table, "Agreement", agreement.agreement)
    table.add_row("Cohen's kappa", _number(agreement.kappa), _interval(agreement.kappa_interval), "")
    _add_share(table, "False positive rate (of incorrect answers)", agreement.false_positives)
    _add_share(table, "False negative rate (of correct answers)", agreement.false_negatives)
    return table


def _add_share(table: Table, name: str, share: Share) -> None:
    table.add_row(name, _number(share.value), _interval(share.interval), f"{share.count:,} of {share.number:,}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(bounds: Interval | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def _rows_line(agreement: JudgeAgreement, cells: Sequence[Cells]) -> str:
    """Say how many rows there are, and which of them count."""
    total = len(agreement.labels)
    labelled = zip(agreement.labels, cells, strict=True)
    errors = sum(bool(each["Error"]) for label, each in labelled if label is not None)
    left_out = {
        "without a label": agreement.unlabelled,
        "with an error of the judge": errors,
        "without claims to count": total - agreement.unlabelled - agreement.judged - errors,
    }
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    rows = counted(total, "row")
    return f"{rows}; left out: {reasons}" if reasons else rows


def _disagreements_table(
    agreement: JudgeAgreement, shown: Sequence[int], questions: Sequence[str], cells: Sequence[Cells]
) -> Table:
    count = len(agreement.disagreements)
    title = f"Disagreements ({len(shown):,} of {count:,})"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, show_lines=True)
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("Label", no_wrap=True)
    table.add_column("Judge", no_wrap=True)
    table.add_column("Reason", overflow="fold", ratio=3)
    for place in shown:
        table.add_row(
            _shortened(questions[place]),
            verdict_text(agreement.labels[place]),
            verdict_text(agreement.verdicts[place]),
            _shortened(cells[place]["Reasoning"]),
        )
    return table


def _shortened(text: str) -> Text:
    return data_text(shortened(text, _SHOWN_TEXT))
