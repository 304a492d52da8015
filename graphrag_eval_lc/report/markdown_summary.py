"""A run or a comparison as a short text in GitHub's Markdown, such as for the summary of a job."""

from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.load_run import notes_in
from graphrag_eval_lc.compare import Flip, GateResult, PairComparison, RunComparison
from graphrag_eval_lc.compare.flips import Direction
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    failures_text,
    interval_text,
    p_text,
    value_text,
    verdict_text,
)
from graphrag_eval_lc.compare.pair_comparison import verdict_word
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import REPORT, SUMMARY
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, metric_spec
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.markdown import Block, fitted, md_code, md_table, md_text
from graphrag_eval_lc.report.reported_run import ReportedRun, part_of, reported_run, title_of
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.run_view import TemplateLine
from graphrag_eval_lc.view.scores import ScoreLine, whole_scores

# GitHub takes 1 MiB a step, and drops without a word what comes near it.
MOST_BYTES: Final = 1_000_000
_QUESTIONS = 10
_MOST_ROWS = 50
_MOST_TEMPLATES = 30
_MOST_COLUMNS = 6
_TOLD = 600
_MARKS = {"passed": "✅", "failed": "❌", "not checked": "⚠️"}
_NO_GATES = "ℹ️"


def write_summary(
    run: RunSource | RunComparison,
    path: str | PathLike[str] | None = None,
    *,
    gates: Sequence[GateResult] | None = None,
    most_questions: int = _QUESTIONS,
) -> Path:
    """Write a run or a comparison as a short text in GitHub's Markdown.

    The verdict comes first: whether the gates are passed. Then of a run the main score with its interval (failed
    questions as 0), the scores by template and the worst questions with the reasons; of a comparison the metrics with
    their verdicts, and the questions that were lost and fixed. The file stays below 1 MB, and texts of datasets and
    agents are shown as they are, whatever they hold.

    Args:
        run: The folder of a run, what ``run_benchmark``, ``score_run`` or ``load_run`` returned, a list of results, or
            what ``compare_runs`` returned.
        path: The file; None for ``summary.md`` in the run's folder. An existing one is replaced as a whole.
        gates: The gates as they were checked; None: of a run those of its configuration.
        most_questions: How many questions are shown at most: the worst, or of those that were lost and fixed.

    Returns:
        The file's path.

    Raises:
        RunFolderError: The run cannot be read, or the file cannot be written.
        OptionError: No path is given for a comparison or a run without a folder.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> results = [{"template_id": "t", "question_id": "q", "question_text": "?", "steps_score": 0.5}]
        >>> with TemporaryDirectory() as folder:
        ...     text = write_summary(results, f"{folder}/summary.md").read_text(encoding="utf-8")
        >>> "**steps_score 0.500**" in text
        True
    """
    if path is not None:
        target = Path(path)
    elif isinstance(run, RunComparison):
        raise OptionError("a comparison has no folder to write the summary to", hint="Give a path.")
    else:
        target = reported_run(run).file_of(SUMMARY)
    replace_file(target, [summary_text(run, gates, most_questions=most_questions).encode("utf-8")])
    return target


@recorded_only_here()
def summary_text(
    run: RunSource | RunComparison,
    gates: Sequence[GateResult] | None = None,
    *,
    most_questions: int = _QUESTIONS,
    most_bytes: int = MOST_BYTES,
) -> str:
    """Return that text.

    Args:
        run: As for ``write_summary``.
        gates: The gates as they were checked; None: of a run those of its configuration.
        most_questions: How many questions are shown at most.
        most_bytes: Its size in UTF-8 at most; what does not fit is left out, which is told.

    Raises:
        RunFolderError: The run cannot be read.
    """
    if isinstance(run, RunComparison):
        return fitted(_comparison_blocks(run, gates or (), most_questions), most_bytes)
    reported = reported_run(run)
    notes = run.notes if isinstance(run, BenchmarkRun) else list(notes_in(reported.record))
    view = reported.view(gates, most_failures=most_questions)
    checked = reported.checked_gates() if gates is None else gates
    return fitted(_run_blocks(reported, view, checked, notes), most_bytes)


def _run_blocks(run: ReportedRun, view: RunView, gates: Sequence[GateResult], notes: Sequence[str]) -> Iterator[Block]:
    stopped = part_of(run.record, "stopped").get("message")
    errors = view.headline.states.get("error", 0)
    verdict = _verdict(gates, is_answered=errors < view.headline.samples, stopped=stopped)
    note = "" if view.main is None else view.main.interval_note
    about_interval = ["", f"About the interval: {md_text(note)}."] if note else []
    line = f"**{md_text(view.headline)}**"
    yield Block([f"## {verdict}: {md_text(title_of(run))}", "", line, "", _main_score(view), *about_interval])
    if gates:
        yield _gates_block(gates)
    told = [("⚠️ Warning", text) for text in run.warnings[:_MOST_ROWS]] + [("Note", text) for text in notes]
    if told:
        yield Block([], [f"- {word}: {md_text(text, _TOLD)}" for word, text in told])
    if view.groups:
        yield _groups_block(view)
    if view.failures:
        yield _worst_block(view)
    if len(view.scores) > 1:
        yield _scores_block(view.scores)
    if view.templates:
        yield _templates_block(view)
    yield from _spent_block(run, view)


def _verdict(
    gates: Sequence[GateResult], *, is_answered: bool = True, stopped: object = None, otherwise: str = "Scored"
) -> str:
    """Return the verdict with its mark; ``otherwise`` is that without gates."""
    counts = Counter(gate.state for gate in gates)
    number = len(gates)
    if not is_answered:
        return f"{_MARKS['failed']} Failed, not one question was answered"
    if failed := counts["failed"]:
        return f"{_MARKS['failed']} Failed, {failed:,} of {counted(number, 'gate')} not passed"
    if stopped is not None:
        return f"{_MARKS['failed']} Stopped before its end ({md_text(stopped)})"
    if unchecked := counts["not checked"]:
        return f"{_MARKS['not checked']} Not checked, {unchecked:,} of {counted(number, 'gate')}"
    if gates:
        return f"{_MARKS['passed']} Passed, {'the gate' if number == 1 else f'all {number:,} gates'}"
    return f"{_NO_GATES} {otherwise}, no gates"


def _gates_block(gates: Sequence[GateResult]) -> Block:
    rows = [f"- {_MARKS[gate.state]} Gate {gate.state}: {md_text(masked_text(str(gate)), _TOLD)}" for gate in gates]
    return Block([], rows)


def _main_score(view: RunView) -> str:
    """Return what the main score is over."""
    headline, main = view.headline, view.main
    size = f"{counted(headline.questions, 'question')} in {counted(headline.templates, 'template')}"
    errors = headline.states.get("error", 0)
    if main is None:
        return f"No score was measured ({size}, {counted(errors, 'error')})."
    spec = metric_spec(main.metric)
    parts = [_interval_of(main), size]
    if main.without:
        parts.append(f"not measured for {counted(main.without, 'question')}")
    if errors:
        worth = spec.value_of_failure
        parts.append(f"{counted(errors, 'error')}, {'left out' if worth is None else f'counted as {worth:g}'}")
    if main.upper is not None:
        parts.append(f"{amount_text(main.upper, spec.unit)} if all undecided steps fitted")
    return " · ".join(parts)


def _interval_of(line: ScoreLine) -> str:
    if line.low is None:
        return "no interval"
    low, high = (amount_text(end, metric_spec(line.metric).unit) for end in (line.low, line.high))
    return f"95 % interval {low} to {high}"


def _groups_block(view: RunView) -> Block:
    rows = [
        (f"{group.count:,}", md_text(group.title), f"{md_code(group.keys[0])}<br>{md_text(group.example)}")
        for group in view.groups[:_MOST_ROWS]
    ]
    head, lines = md_table(("Count", "Why", "For example"), rows, left=3)
    return Block(["### Why questions failed", "", *head], lines)


def _worst_block(view: RunView) -> Block:
    rows = []
    for failure in view.failures:
        repeat = f" (repeat {failure.repeat})" if failure.repeat > 1 else ""
        score = "error" if failure.state == "error" or failure.score is None else format(failure.score, ".2f")
        question = f"{md_code(failure.question_id)}{repeat}<br>{md_text(failure.question)}"
        rows.append((question, md_text(failure.reason), score))
    head, lines = md_table(("Question", "Why", "Score"), rows, left=2)
    noun = counted(view.headline.not_right, "sample" if view.headline.repeats > 1 else "question")
    return Block([f"### Worst questions ({len(rows):,} of {noun} not right)", "", *head], lines)


def _scores_block(scores: Sequence[ScoreLine]) -> Block:
    rows = []
    for line in scores[:_MOST_ROWS]:
        unit = metric_spec(line.metric).unit
        ends = [amount_text(end, unit) for end in (line.low, line.high) if end is not None]
        mean, answered = (amount_text(value, unit) for value in line.means)
        rows.append((md_text(line.metric), mean, answered, " to ".join(ends) or "–", f"{line.questions:,}"))
    head, lines = md_table(("Score", "Mean", "Of the answered", "95 % interval", "Questions"), rows)
    return Block(["<details><summary>All scores</summary>", "", *head], lines, ["", "</details>"])


def _templates_block(view: RunView) -> Block:
    columns = whole_scores(line.metric for line in view.scores)[:_MOST_COLUMNS]
    shown = list(view.templates)
    notes = []
    if any(line.errors for line in shown):
        failed = "A failed question counts as 0 in scores; tokens, seconds and cost are means with the failed ones."
        notes = ["", failed]
    if len(shown) > _MOST_TEMPLATES:
        main = columns[0] if columns else MAIN_METRIC
        is_lower_better = metric_spec(main).lower_is_better

        def worth(line: TemplateLine) -> float:
            score = line.scores.get(main)
            return float("inf") if score is None else -score.mean if is_lower_better else score.mean

        shown = sorted(shown, key=worth)[:_MOST_TEMPLATES]
        notes += ["", f"The {_MOST_TEMPLATES} worst of {len(view.templates):,} templates."]
    has_cost = any(line.usd is not None for line in shown)
    rows = [
        (
            md_code(line.template_id),
            f"{line.questions:,}",
            f"{line.errors:,}" if line.errors else "",
            *(_template_score(line, metric) for metric in columns),
            amount_text(line.tokens, "tokens"),
            amount_text(line.seconds, "seconds"),
            *([amount_text(line.usd, "usd")] if has_cost else []),
        )
        for line in shown
    ]
    spent = ("Tokens", "Seconds", *(["Cost"] if has_cost else []))
    head, lines = md_table(("Template", "Questions", "Errors", *map(md_text, columns), *spent), rows)
    return Block(["### Templates", "", *head], lines, notes)


def _template_score(line: TemplateLine, metric: str) -> str:
    score = line.scores.get(metric)
    return amount_text(None if score is None else score.mean, metric_spec(metric).unit)


def _spent_block(run: ReportedRun, view: RunView) -> Iterator[Block]:
    lines = [line for line in view.spent if line.total][:_MOST_COLUMNS]
    says = [f"{md_text(line.name)} {amount_text(line.total, line.unit)}" for line in lines]
    if run.folder is not None and (page := run.file_of(REPORT)).is_file():
        says.append(f"report: {md_code(page)}")
    if says:
        yield Block([f"In all: {' · '.join(says)}"])


def _comparison_blocks(comparison: RunComparison, gates: Sequence[GateResult], most_questions: int) -> Iterator[Block]:
    main = comparison.metric
    verdicts = [
        f"{verdict_text(metric, pair.run.letter)} in {main}"
        for pair in comparison.pairs
        if main is not None and (metric := pair.metric(main)) is not None
    ]
    what = "; ".join(verdicts) or "Compared"
    runs = [
        f"- {run.letter}: {md_code(run.label)}, {counted(run.number_of_questions, 'question')}"
        f"{f', {md_code(run.path)}' if run.path else ''}"
        for run in comparison.runs
    ]
    verdict = _verdict(gates, otherwise=md_text(f"{what[0].upper()}{what[1:]}"))
    sentences = [md_text(metric.sentence, _TOLD) for pair in comparison.pairs if (metric := _main_of(pair, main))]
    yield Block([f"## {verdict}", *(line for sentence in sentences for line in ("", f"**{sentence}**"))])
    yield Block([], runs)
    if gates:
        yield _gates_block(gates)
    if comparison.warnings:
        yield Block([], [f"- ⚠️ Warning: {md_text(warning, _TOLD)}" for warning in comparison.warnings[:_MOST_ROWS]])
    for pair in comparison.pairs:
        yield from _metrics_blocks(pair)
        yield from _flips_blocks(pair, main, most_questions)


def _main_of(pair: PairComparison, main: str | None) -> MetricComparison | None:
    return None if main is None else pair.metric(main)


def _metrics_blocks(pair: PairComparison) -> Iterator[Block]:
    """Yield the metrics: first those that are no part of another one, the parts folded after them."""
    letter = pair.run.letter
    is_part = {metric.metric: metric_spec(metric.metric).is_part and not metric.is_main for metric in pair.metrics}
    wholes = [metric for metric in pair.metrics if not is_part[metric.metric]]
    parts = [metric for metric in pair.metrics if is_part[metric.metric]]
    questions = counted(pair.number_of_questions, "common question")
    title = f"### {letter} beside A ({questions}, {counted(pair.number_of_templates, 'template')})"
    failed = f"Failed samples, of which scores {failures_text(pair.metrics)}: {pair.errors_a:,} in A, "
    head, lines = _metrics_table(wholes, letter)
    yield Block([title, "", *head], lines, ["", f"{failed}{pair.errors_b:,} in {letter}."])
    if parts:
        head, lines = _metrics_table(parts, letter)
        yield Block(["<details><summary>More metrics</summary>", "", *head], lines, ["", "</details>"])


def _metrics_table(metrics: Sequence[MetricComparison], letter: str) -> tuple[list[str], list[str]]:
    rows = []
    for metric in metrics[:_MOST_ROWS]:
        left_out = f"{metric.left_out:,} left out" if metric.left_out else ""
        note = ", ".join(filter(None, (left_out, metric.direction_note)))
        rows.append(
            (
                md_text(f"{metric.metric} ({note})" if note else metric.metric),
                verdict_word(metric),
                md_text(value_text(metric.mean_a, metric.unit)),
                md_text(value_text(metric.mean_b, metric.unit)),
                md_text(change_text(metric.difference, metric.unit)),
                md_text(interval_text(metric)),
                md_text(p_text(metric.deciding_p_value)),
                f"{metric.wins:,}/{metric.ties:,}/{metric.losses:,}",
            )
        )
    headings = ("Metric", "Verdict", "A", letter, f"{letter} − A", "Interval", "p", "Won/tied/lost")
    return md_table(headings, rows, left=2)


def _flips_blocks(pair: PairComparison, main: str | None, most: int) -> Iterator[Block]:
    if main is None or not most:
        return
    letter = pair.run.letter
    known: tuple[tuple[str, Sequence[Flip], str], ...] = (
        (f"Lost: right in A, not right in {letter}", pair.broken, "b"),
        (f"Fixed: not right in A, right in {letter}", pair.fixed, "a"),
    )
    for title, flips, side in known:
        if flips:
            headings = ("Question", f"Why not in {'A' if side == 'a' else letter}", "A", letter)
            head, lines = md_table(headings, [_flip_cells(flip, side) for flip in flips[:most]], left=2)
            yield Block([f"#### {title} ({min(most, len(flips)):,} of {len(flips):,})", "", *head], lines)
    others = Counter(flip.direction for flip in pair.flips)
    ways: list[Direction] = ["worse", "better"]
    says = [counted(others[way], f"question is {way}", f"questions are {way}") for way in ways if others[way]]
    if says:
        yield Block([f"Not right in either run: {', '.join(says)} in {letter}."])


def _flip_cells(flip: Flip, side: str) -> Sequence[str]:
    undecided = " (undecided)" if flip.is_undecided else ""
    question = f"{md_code(flip.question_id)}{undecided}<br>{md_text(flip.question_text)}"
    scores = [
        f"{score:.2f}{' error' if told.status == 'error' else ''}"
        for score, told in ((flip.score_a, flip.a), (flip.score_b, flip.b))
    ]
    return question, md_text((flip.a if side == "a" else flip.b).reason), *scores
