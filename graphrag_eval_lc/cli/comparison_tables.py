"""Prints a comparison: its tables, and the gates."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, EXIT_NOTHING, output_console, say
from graphrag_eval_lc.compare import GateResult, MetricComparison, PairComparison, QuestionSide
from graphrag_eval_lc.compare.comparison_view import ComparisonView, MetricRow, PairView
from graphrag_eval_lc.compare.metric_comparison import failures_text, p_text
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.report.summary import question_cell
from graphrag_eval_lc.texts import counted, shortened

# Its tables are wider than those of other commands.
_PLAIN_WIDTH = 150
# On a terminal that is narrower the tables leave out some columns.
_WIDE = 120
# So that "no evidence" and "cannot tell" take two lines.
_NARROW_VERDICT = 8
_SHOWN_REASON = 160


def print_comparison(view: ComparisonView, *, show: int) -> None:
    """Print verdicts, gates, at most ``show`` flipped questions of each run, the metrics, and how sure that is."""
    console = output_console(_PLAIN_WIDTH)
    for pair in view.pairs:
        console.print(data_text(f"{pair.headline}.", "bold"))
    print_gates(view.gates)
    for run in view.runs:
        questions = counted(run.number_of_questions, "question")
        path = f", {run.path}" if run.path else ""
        console.print(data_text(f"{run.letter}  {run.label}: {questions}{path}"))
    for pair in view.pairs:
        if pair.pair.flips and show and view.metric:
            console.print()
            console.print(_flips_table(pair.pair, view.metric, show))
        console.print()
        console.print(_metrics_table(pair, is_wide=console.width >= _WIDE))
    console.print()
    console.print(data_text("How sure is this?", "bold"))
    for pair in view.pairs:
        if pair.main is not None:
            console.print(data_text(pair.main.sentence))
        if pair.doubt:
            console.print(data_text(pair.doubt))
        console.print(data_text(_errors_line(pair.pair)))
    console.print(data_text(f"Means are over questions; one test takes templates as wholes. {view.note}"))


def _metrics_table(pair: PairView, *, is_wide: bool) -> Table:
    letter = pair.letter
    table = Table(
        title=f"{letter} compared with A ({counted(pair.pair.number_of_questions, 'common question')}, "
        f"{counted(pair.pair.number_of_templates, 'template')})",
        title_justify="left",
        title_style="bold",
        show_edge=False,
        padding=(0, 1) if is_wide else 0,
    )
    # On narrow terminals the verdict folds before the names do; numbers never do.
    table.add_column("Metric", overflow="fold", max_width=36)
    for heading in _headings(letter, is_wide=is_wide):
        table.add_column(heading, justify="right", no_wrap=True)
    has_verdicts = not pair.doubt
    if has_verdicts:
        table.add_column("Verdict", overflow="fold", width=None if is_wide else _NARROW_VERDICT)
        if is_wide:
            table.add_column("Needed", justify="right", no_wrap=True)
    was_spent = False
    for row in pair.rows:
        if row.metric.is_spent and not was_spent:
            table.add_section()
        was_spent = row.metric.is_spent
        table.add_row(*_cells(row, is_wide=is_wide, has_verdict=has_verdicts))
    if is_wide and any(row.metric.questions_needed is not None for row in pair.rows) and has_verdicts:
        table.caption = "needed: how many questions a verdict needs; +: it needs more templates"
        table.caption_justify = "left"
    return table


def _headings(letter: str, *, is_wide: bool) -> tuple[str, ...]:
    if not is_wide:
        return "A", letter, f"{letter} − A", "Interval", "p", "W/T/L"
    return "n", "A", letter, f"{letter} − A", "Interval", "p", "p (Holm)", "d_z", "Won/tied/lost"


def _cells(row: MetricRow, *, is_wide: bool, has_verdict: bool) -> tuple[str | Text, ...]:
    metric = row.metric
    name, *values = map(data_text, (row.name, row.a, row.b, row.change, row.interval))
    if not is_wide:
        return name, *values, row.p, row.counts, *([row.verdict] if has_verdict else [])
    return (
        name,
        f"{metric.number_of_questions:,}",
        *values,
        p_text(metric.p_value),
        p_text(metric.adjusted_p_value),
        "–" if metric.effect_size is None else format(metric.effect_size, "+.2f").replace("-", "−"),
        row.counts,
        *([row.verdict, _needed(metric)] if has_verdict else []),
    )


def _needed(metric: MetricComparison) -> str:
    if metric.verdict != "no evidence" or metric.questions_needed is None:
        return ""
    low, high, number = metric.questions_needed_low, metric.questions_needed_high, metric.number_of_questions
    if low is None or (high is not None and high <= number):
        return "+"
    if high is None:
        return f"≥ {max(low, number + 1):,}"
    if low <= number:
        return f"≤ {high:,}"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _errors_line(pair: PairComparison) -> str:
    counts = f"{pair.errors_a:,} in A, {pair.errors_b:,} in {pair.run.letter}"
    return f"Failed samples, of which scores {failures_text(pair.metrics)}: {counts}."


def _flips_table(pair: PairComparison, metric: str, show: int) -> Table:
    flips = pair.flips[:show]
    table = Table(
        title=data_text(f"Questions that flipped in {metric} ({len(flips):,} of {len(pair.flips):,})"),
        title_justify="left",
        title_style="bold",
        show_edge=False,
        show_lines=True,
    )
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("", no_wrap=True)
    for letter in ("A", pair.run.letter):
        table.add_column(letter, overflow="fold", ratio=2)
    for question in flips:
        sides = ((question.score_a, question.a), (question.score_b, question.b))
        direction = f"{question.direction}\n(undecided)" if question.is_undecided else question.direction
        cell = question_cell(question.question_id, question.question_text)
        table.add_row(cell, direction, *(_side(score, side) for score, side in sides))
    return table


def _side(score: float, side: QuestionSide) -> Text:
    reason = shortened(side.reason, _SHOWN_REASON)
    return data_text(f"{score:.2f}{' error' if side.status == 'error' else ''}{f'  {reason}' if reason else ''}")


def print_gates(gates: Iterable[GateResult]) -> None:
    """Print gates; those that are not passed go to standard error."""
    for gate in gates:
        say(masked_text(f"Gate {gate.state}: {gate}."), err=not gate.has_passed, keeps_lines=False)


def exit_code_of(gates: Sequence[GateResult]) -> int:
    """Return the exit code of gates: one that failed overrides one that could not be checked."""
    states = {gate.state for gate in gates}
    if "failed" in states:
        return EXIT_FINDINGS
    return EXIT_NOTHING if "not checked" in states else 0
