"""The command ``compare``, with its tables and gates."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.cli.options import with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, EXIT_NOTHING, echo_err, output_console, print_json, say
from graphrag_eval_lc.compare import (
    GateResult,
    MetricComparison,
    PairComparison,
    QuestionSide,
    RunComparison,
    compare_runs,
)
from graphrag_eval_lc.compare.comparison_view import ComparisonView, MetricRow, PairView
from graphrag_eval_lc.compare.gates import DEFAULT_MAX_DROP, gates_in, gates_of_option, read_gates
from graphrag_eval_lc.compare.metric_comparison import failures_text, p_text
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.config import EvaluationConfig, GateConfig, load_config, locate
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.errors import ConfigError, OptionError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.report.comparison_page import write_comparison
from graphrag_eval_lc.report.machine_files import CiFiles, check_writable, comparison_document, make_folder_of
from graphrag_eval_lc.report.summary import question_cell
from graphrag_eval_lc.run_folder import RESULTS_FILE, RUN_FILE
from graphrag_eval_lc.run_store import Baseline, baseline_in, latest_run
from graphrag_eval_lc.texts import counted, listed, shortened, visible

# The width of tables if the output is not a terminal; those of other commands are narrower.
_PLAIN_WIDTH = 150
# On narrower terminals the tables leave out some columns.
_WIDE = 120
# The width of the verdict on narrow terminals: "no evidence" and "cannot tell" then have two lines.
_NARROW_VERDICT = 8
_WIDEST_NAME, _NARROWEST_NAME = 36, 12
_SHOWN_REASON = 160
_MEANS = (
    "Means are over questions. Tests treat each template as a unit, because its questions succeed and fail together."
)


def print_comparison(view: ComparisonView, *, show: int) -> None:
    """Print verdicts, gates, at most ``show`` flipped questions of each run, the metrics, and how certain they are."""
    console = output_console(_PLAIN_WIDTH)
    for pair in view.pairs:
        console.print(data_text(f"{pair.headline}.", "bold"))
    print_gates(view.gates)
    for run in view.runs:
        questions = counted(run.number_of_questions, "question")
        path = f", {run.path}" if run.path not in (None, run.label) else ""
        console.print(data_text(f"{run.letter}  {run.label}: {questions}{path}"))
    for pair in view.pairs:
        if pair.pair.flips and show and view.metric:
            console.print()
            console.print(_flips_table(pair.pair, view.metric, show))
        console.print()
        console.print(_metrics_table(pair, console.width))
    console.print()
    console.print(data_text("How sure is this?", "bold"))
    for pair in view.pairs:
        if pair.main is not None:
            console.print(data_text(pair.main.sentence))
        if pair.doubt:
            console.print(data_text(pair.doubt))
        counts = f"{pair.pair.errors_a:,} in A, {pair.pair.errors_b:,} in {pair.letter}"
        console.print(data_text(f"Failed samples, of which scores {failures_text(pair.pair.metrics)}: {counts}."))
    console.print(data_text(f"{_MEANS} {view.note}"))


def _metrics_table(pair: PairView, width: int) -> Table:
    letter, is_wide = pair.letter, width >= _WIDE
    table = Table(
        title=f"{letter} compared with A ({counted(pair.pair.number_of_questions, 'common question')}, "
        f"{counted(pair.pair.number_of_templates, 'template')})",
        title_justify="left",
        title_style="bold",
        show_edge=False,
        padding=(0, 1) if is_wide else 0,
    )
    of_both, has_verdicts = ("A", letter, f"{letter} − A", "Interval", "p"), not pair.doubt
    headings = ("n", *of_both, "p (raw)", "d_z", "Won/tied/lost") if is_wide else (*of_both, "W/T/L")
    rows = [_cells(row, is_wide=is_wide, has_verdict=has_verdicts) for row in pair.rows]
    for_names = _WIDEST_NAME
    if not is_wide:
        taken = [
            max(map(cell_len, (heading, *each))) + 1
            for heading, *each in zip(headings, *(row[1:] for row in rows), strict=False)
        ]
        for_names = max(_NARROWEST_NAME, width - sum(taken) - (_NARROW_VERDICT + 1 if has_verdicts else 0))
    table.add_column("Metric", overflow="fold", max_width=for_names)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    if has_verdicts:
        table.add_column("Verdict", overflow="fold", width=None if is_wide else _NARROW_VERDICT)
        if is_wide:
            table.add_column("Needed", justify="right", no_wrap=True)
    was_spent = False
    for row, (name, *cells) in zip(pair.rows, rows, strict=True):
        if row.metric.is_spent and not was_spent:
            table.add_section()
        was_spent = row.metric.is_spent
        table.add_row(data_text(_broken_name(name, for_names), keeps_lines=True), *map(data_text, cells))
    if is_wide and any(row.metric.questions_needed is not None for row in pair.rows) and has_verdicts:
        table.caption = "Needed: how many questions a verdict needs; +: it needs more templates"
        table.caption_justify = "left"
    return table


def _broken_name(name: str, width: int) -> str:
    """Return a metric's name on lines that end after underscores and spaces, if one line is too short for it."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]?", visible(name, keeps_lines=False)):
        if lines[-1] and cell_len(f"{lines[-1]}{part}".rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: MetricRow, *, is_wide: bool, has_verdict: bool) -> tuple[str, ...]:
    metric, values = row.metric, (row.a, row.b, row.change, row.interval, row.p)
    if not is_wide:
        return row.name, *values, row.counts, *([row.verdict] if has_verdict else [])
    return (
        row.name,
        f"{metric.number_of_questions:,}",
        *values,
        p_text(metric.p_value),
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


def _flips_table(pair: PairComparison, metric: str, show: int) -> Table:
    flips = pair.flips[:show]
    table = Table(
        title=data_text(f"Questions that changed in {metric} ({len(flips):,} of {len(pair.flips):,})"),
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
        text = f"Gate {gate.state}: {gate}."
        say(masked_text(text), err=not gate.has_passed, keeps_lines=False, wraps=True)


def exit_code_of(gates: Sequence[GateResult]) -> int:
    """Return the exit code of gates: one that failed overrides one that could not be checked."""
    states = {gate.state for gate in gates}
    if "failed" in states:
        return EXIT_FINDINGS
    return EXIT_NOTHING if "not checked" in states else 0


@with_options()
def compare(
    runs: list[Path],
    baseline: Path | None = None,
    metrics: list[str] | None = None,
    fail_on_regression: bool = False,
    max_drop: list[str] | None = None,
    fail_under: list[str] | None = None,
    html: Path | None = None,
    as_json: bool = False,
    against: str | None = None,
    labels: list[str] | None = None,
    config: Path | None = None,
    max_drop_per_template: list[str] | None = None,
    confident: bool = False,
    max_lost: list[str] | None = None,
    fail_over: list[str] | None = None,
    show: int = 10,
    csv: Path | None = None,
    summary: Path | None = None,
) -> None:
    """Compare runs question by question: is a difference more than chance?

    Questions are paired by their ids. For each metric: the means, the difference with its interval, a p-value, the
    effect size, wins, ties and losses. Failed samples score 0. Intervals and p-values are clustered by template. The
    verdict on the main metric uses its own p-value; those on all other metrics use Holm-adjusted p-values. Needs the
    `graphrag-eval-lc[stats]` extra.

    For example:

    `graphrag-eval-lc compare runs/main runs/branch --fail-on-regression`

    Options:
        --metric METRIC: Compare this metric; may be repeated. The first score is the main one (the first metric, if
            none is a score): it decides which questions are broken and fixed, and whether there is a regression.
            Default: all that both runs have, steps_score as the main one.
        as_json --json: Print JSON instead of text.
        runs RUN_A RUN_B [RUN_C…]: The folders of two or more runs; each is compared with the first. With --baseline or
            --against, one is enough.
        --baseline DIR: The run to compare with, or a folder of runs, whose last completed run is used. Default: the
            first run.
        --fail-on-regression: Exit with 1 if a run is worse than RUN_A in the main metric. If the test would detect a
            drop of 0.05 in at least 80 % of such comparisons, a p-value below 0.05 decides; otherwise a drop by more
            than --max-drop (0.05 by default). The output says which decided, and why.
        --max-drop [METRIC=]DROP: Exit with 1 if the mean of a metric is worse than that of RUN_A by more than this, 0
            to 1. For a score between 0 and 1 it is points, for anything else (scores from 1 to 5, tokens) a share of
            RUN_A's mean. A number without a name is for the main metric; with --fail-on-regression it is the drop that
            this allows. TEMPLATE/METRIC=DROP is for one template. May be repeated.
        --html FILE: Write the comparison as an HTML page.

    More:
        --against RUN: Choose the baseline from the folder of --baseline, or from the one that RUN is in, such as
            compare today --against previous. RUN is previous, first (the first run on the same dataset), best (the best
            run before RUN by the main metric; p-values are multiplied by the number of candidates), or a run by its
            label, folder name or path. Runs of one commit that are otherwise alike are pooled, except with previous.
        --label: A name for a run, one for each in their order; default: that in run.json, or the folder if runs have
            the same name.

    Gates: when the command exits with 1:
        --config -c FILE: A YAML or JSON file with the configuration, whose gates are checked; default: those in each
            run's run.json.
        --max-drop-per-template [METRIC=]DROP: The same for the mean of each template; names those that dropped by more.
            May be repeated.
        --confident: Let only certain drops fail: the lower end of a drop's 95 % interval counts instead of the drop (of
            a template: over its questions). With few questions no drop is certain; the output says so.
        --max-lost NUMBER[/TEMPLATE]: Exit with 1 if more questions are broken: right in RUN_A and not now, by the main
            metric: 2 in all, 2/template in each template, 1/notes in the template notes. May be repeated.
        --fail-over METRIC=NUMBER: Exit with 1 if a lower-is-better metric is above this number, such as
            elapsed_sec.p95=30, or above that of RUN_A by more than this increase, over the questions that both have,
            such as total_tokens=+10% or agent_cost=+0.05. METRIC.median, .p95, .min, .max and .sum are over samples;
            TEMPLATE/METRIC is for one template. May be repeated.

    Output:
        --show (min 0): How many broken and fixed questions to show.
        --csv FILE: Write the metrics as comma-separated values.
    """
    given_runs: list[RunSource] = [*runs]
    if against is not None:
        given_runs.insert(0, _chosen_baseline(against, baseline, runs, metrics or (), on_stdout=not as_json))
    elif baseline is not None:
        given_runs.insert(0, last_baseline(baseline, runs, on_stdout=not as_json))
    if len(given_runs) < 2:
        hint = "Write: compare RUN_A RUN_B. With one run: compare RUN_B --against previous."
        raise OptionError("only one run is given to compare", hint=hint)
    drops = gates_of_option("max-drop", max_drop or (), confident=confident)
    regression: list[GateConfig] = []
    if fail_on_regression:
        # A number without a metric is the limit for --fail-on-regression if the effect decides.
        allowed = next((gate.max_drop for gate in drops if gate.metric is None), DEFAULT_MAX_DROP)
        drops = [gate for gate in drops if gate.metric is not None]
        regression = [GateConfig(regression=allowed, confident=confident)]
    given = [
        *gates_of_option("fail-under", fail_under or ()),
        *gates_of_option("fail-over", fail_over or (), has_baseline=True),
        *drops,
        *gates_of_option("max-drop-per-template", max_drop_per_template or (), confident=confident),
        *gates_of_option("max-lost", max_lost or ()),
    ]
    read_gates(given, has_baseline=True)  # declared names are checked before a run is read
    for path in (csv, html):
        check_writable(path)
    files = CiFiles.of(summary)
    configured = None if config is None else load_config(config, has_llm=True, has_embeddings=True)
    comparison = compare_runs(*given_runs, metrics=metrics or None, labels=labels or None, config=configured)
    # Names are checked before anything is printed.
    gates = comparison.gate_results(given)
    try:
        gates += comparison.gate_results(configured)  # the gates of a configuration, otherwise those in each run.json
    except ConfigError as problem:
        if config is not None:
            locate(problem, config)
        raise
    gates += comparison.gate_results(regression)
    if not as_json:
        print_comparison(comparison.view(gates), show=show)
    for warning in comparison.warnings:
        say(f"Warning: {warning}", err=True, wraps=True)
    for path in (csv, html):
        if path is not None:
            make_folder_of(path)
    written = [] if csv is None else [comparison.to_csv(csv)]
    if html is not None:
        written.append(write_comparison(comparison, html, gates))
    for warning in files.write(comparison, gates, most_questions=show):
        echo_err(f"Warning: {warning}")
    written += files.given
    if as_json:
        print_json(comparison_document(comparison, gates))
    else:
        for line in _origins(comparison, config, configured):
            say(line, wraps=True)
        for path in written:
            say(f"Written to {path}.")
        print_gates(gate for gate in gates if not gate.has_passed)  # the first lines may be out of sight
    if code := exit_code_of(gates):
        raise typer.Exit(code)


def last_baseline(folder: Path, others: Sequence[Path], *, on_stdout: bool) -> Path:
    """Return the baseline's folder: ``folder`` if it is a run, otherwise the last completed run in it.

    The ``others``, which are compared with the baseline, are skipped. Without ``on_stdout`` the choice goes to stderr.
    """
    if (folder / RUN_FILE).is_file() or (folder / RESULTS_FILE).is_file():
        return folder
    found: Path = latest_run(folder, but=others).path
    say(f"The baseline is {found}, the last completed run in {folder}.", err=not on_stdout)
    return found


def _chosen_baseline(
    against: str, folder: Path | None, runs: Sequence[Path], metrics: Sequence[str], *, on_stdout: bool
) -> Baseline:
    """Return the run that ``--against`` chooses from a folder; by default the folder that the first run is in."""
    place = folder or runs[0].absolute().parent
    metric = next((metric for metric in metrics if not metric_spec(metric).is_spent), None)
    found: Baseline = baseline_in(place, runs[0], against, metric=metric, but=runs)
    paths = listed([str(run.path) for run in found.runs], 3)
    pooled = f" ({counted(len(found.runs), 'run')} of one commit, pooled)" if len(found.runs) > 1 else ""
    say(f"The baseline is {paths}{pooled}.", err=not on_stdout)
    return found


def _origins(comparison: RunComparison, path: Path | None, config: EvaluationConfig | None) -> Iterator[str]:
    """Yield sentences on which configurations have gates."""
    if config is not None:
        yield f"{_checked(len(config.gates), str(path))}, and none of run.json."
        return
    numbers = [len(gates_in(results)) for results in comparison.sources]
    for run, number in zip(comparison.runs[1:], numbers[1:], strict=True):
        if number:
            yield f"{_checked(number, f'the config in {run.path}/{RUN_FILE}')}; --config FILE replaces them."
        elif any(numbers):
            other = next(other for other, others in zip(comparison.runs, numbers, strict=True) if others)
            record = f"{run.path}/{RUN_FILE}"
            yield f"The config in {record} has no gates, unlike that of {other.path}; --config FILE adds some."


def _checked(number: int, source: str) -> str:
    return f"{counted(number, 'gate')} of {source} {'is' if number == 1 else 'are'} checked"
