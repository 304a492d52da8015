"""A run or a comparison as a short text in GitHub's Markdown, such as for the summary of a job."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.aggregation import RunValues, is_error, reason_of
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.load_run import notes_in
from graphrag_eval_lc.compare import Flip, PairComparison, RunComparison
from graphrag_eval_lc.compare.flips import Direction
from graphrag_eval_lc.compare.gates import Gate, GateResult, gate_results, state_in_run, state_of
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
from graphrag_eval_lc.report.reported_run import ReportedRun, part_of, reported_run, reported_samples, title_of
from graphrag_eval_lc.report.scores import score_records, shown_scores, template_metrics, template_rows
from graphrag_eval_lc.report.spent import Spent
from graphrag_eval_lc.report.summary import SeenResults, added_to
from graphrag_eval_lc.tables.run_tables import repeat_of
from graphrag_eval_lc.texts import counted

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
    gates: Sequence[Gate] | None = None,
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
    gates: Sequence[Gate] | None = None,
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
        states = [(state_of(gate), gate) for gate in gates or ()]
        return fitted(_comparison_blocks(run, states, most_questions), most_bytes)
    reported = reported_run(run)
    if gates is None:
        gates = _gates_of(run)
    states = [(state_in_run(gate), gate) for gate in gates]
    notes = run.notes if isinstance(run, BenchmarkRun) else list(notes_in(reported.record))
    return fitted(_run_blocks(reported, states, notes, most_questions), most_bytes)


def _gates_of(run: RunSource) -> list[GateResult]:
    if isinstance(run, BenchmarkRun):
        return run.gate_results()
    return gate_results(run) if isinstance(run, str | PathLike) else []


States = Sequence[tuple[str, Gate]]


def _run_blocks(run: ReportedRun, gates: States, notes: Sequence[str], most_questions: int) -> Iterator[Block]:
    numbers, spent = RunValues(run.config, run.more_metrics), Spent(run.config)
    seen = SeenResults(added_to(numbers, _added_to_spent(spent, run)), most_questions)
    scores = shown_scores(numbers)
    number = len(numbers.questions)
    records = score_records(scores, number)
    samples = sum(question.samples for question in numbers.questions.values())
    errors = sum(question.errors for question in numbers.questions.values())
    stopped = part_of(run.record, "stopped").get("message")
    verdict = _verdict(gates, is_answered=errors < samples, stopped=stopped)
    columns = template_metrics(scores)[:_MOST_COLUMNS]
    templates = template_rows(numbers, scores, columns, spent)
    score = _main_score(records, number, errors, len(templates))
    note = records[0]["interval_note"] if records else ""
    about_interval = ["", f"About the interval: {md_text(note)}."] if note else []
    yield Block([f"## {verdict}: {md_text(title_of(run))}", "", score, *about_interval])
    if gates:
        yield _gates_block(gates)
    told = [("⚠️ Warning", text) for text in run.warnings[:_MOST_ROWS]] + [("Note", text) for text in notes]
    if told:
        yield Block([], [f"- {word}: {md_text(text, _TOLD)}" for word, text in told])
    if len(records) > 1:
        yield _scores_block(records)
    if templates:
        yield _templates_block(templates, columns)
    if worst := seen.worst():
        yield _worst_block(worst, counted(seen.lacking, "question" if samples == number else "sample"))
    yield from _spent_block(run, spent)


def _added_to_spent(spent: Spent, run: ReportedRun) -> Iterator[Mapping[str, Any]]:
    for sample in reported_samples(run.results, run.metrics()):
        spent.add(sample)
        yield sample.result


def _verdict(gates: States, *, is_answered: bool = True, stopped: object = None, otherwise: str = "Scored") -> str:
    """Return the verdict with its mark; ``otherwise`` is that without gates."""
    counts = Counter(state for state, _ in gates)
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


def _gates_block(gates: States) -> Block:
    rows = [f"- {_MARKS[state]} Gate {state}: {md_text(masked_text(str(gate)), _TOLD)}" for state, gate in gates]
    return Block([], rows)


def _main_score(records: Sequence[Mapping[str, Any]], number: int, errors: int, templates: int) -> str:
    """Return the number that counts: the mean over all questions with its interval."""
    size = f"{counted(number, 'question')} in {counted(templates, 'template')}"
    if not records:
        return f"No score was measured ({size}, {counted(errors, 'error')})."
    record = records[0]
    metric, spec = record["metric"], metric_spec(record["metric"])
    parts = [f"**{md_text(metric)} {amount_text(record['mean_all'], spec.unit)}**", _interval_of(record), size]
    if record["without"]:
        parts.append(f"{record['without']:,} without it")
    if errors:
        worth = spec.value_of_failure
        as_what = "left out" if worth is None else f"counted as {worth:g}"
        parts.append(f"{counted(errors, 'error')}, {as_what}")
    if "upper" in record:
        parts.append(f"{amount_text(record['upper'], spec.unit)} if all undecided steps fitted")
    return " · ".join(parts)


def _interval_of(record: Mapping[str, Any]) -> str:
    if record["low"] is None:
        return "no interval"
    low, high = (amount_text(record[end], metric_spec(record["metric"]).unit) for end in ("low", "high"))
    return f"95 % interval {low} to {high}"


def _scores_block(records: Sequence[Mapping[str, Any]]) -> Block:
    rows = []
    for record in records[:_MOST_ROWS]:
        unit = metric_spec(record["metric"]).unit
        ends = [amount_text(record[end], unit) for end in ("low", "high") if record[end] is not None]
        mean, answered = (amount_text(record[key], unit) for key in ("mean_all", "mean_answered"))
        rows.append((md_text(record["metric"]), mean, answered, " to ".join(ends) or "–", f"{record['n_all']:,}"))
    head, lines = md_table(("Score", "Mean", "Of the answered", "95 % interval", "Questions"), rows)
    return Block(["<details><summary>All scores</summary>", "", *head], lines, ["", "</details>"])


def _templates_block(templates: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Block:
    shown = list(templates)
    notes = []
    if any(row["errors"] for row in shown):
        notes = [
            "",
            "A failed question counts as 0 in scores; tokens, seconds and cost are means with the failed ones.",
        ]
    if len(shown) > _MOST_TEMPLATES:
        main = columns[0] if columns else MAIN_METRIC
        is_lower_better = metric_spec(main).lower_is_better

        def worth(row: Mapping[str, Any]) -> float:
            mean = row["scores"].get(main, {}).get("mean_all")
            return float("inf") if mean is None else -mean if is_lower_better else mean

        shown = sorted(shown, key=worth)[:_MOST_TEMPLATES]
        notes += ["", f"The {_MOST_TEMPLATES} worst of {len(templates):,} templates."]
    has_cost = any(row["usd"] is not None for row in shown)
    spent = {"tokens": "Tokens", "seconds": "Seconds", **({"usd": "Cost"} if has_cost else {})}
    rows = [
        (
            md_code(row["id"]),
            f"{row['questions']:,}",
            f"{row['errors']:,}" if row["errors"] else "",
            *(_template_score(row, metric) for metric in columns),
            *(amount_text(row[key], "usd" if key == "usd" else key) for key in spent),
        )
        for row in shown
    ]
    head, lines = md_table(("Template", "Questions", "Errors", *map(md_text, columns), *spent.values()), rows)
    return Block(["### Templates", "", *head], lines, notes)


def _template_score(row: Mapping[str, Any], metric: str) -> str:
    record = row["scores"].get(metric)
    return amount_text(None if record is None else record["mean_all"], metric_spec(metric).unit)


def _worst_block(worst: Sequence[Mapping[str, Any]], lacking: str) -> Block:
    rows = []
    for result in worst:
        repeat = f" (repeat {repeat_of(result)})" if repeat_of(result) > 1 else ""
        score = "error" if is_error(result) else format(result[MAIN_METRIC], ".2f")
        question = f"{md_code(result['question_id'])}{repeat}<br>{md_text(result.get('question_text', ''))}"
        rows.append((question, md_text(reason_of(result)), score))
    head, lines = md_table(("Question", "Why", "Score"), rows, left=2)
    title = f"### Worst questions ({len(worst):,} of {lacking} that did not score in full)"
    return Block([title, "", *head], lines)


def _spent_block(run: ReportedRun, spent: Spent) -> Iterator[Block]:
    records = [record for record in spent.records() if record["total"]][:_MOST_COLUMNS]
    says = [f"{md_text(record['name'])} {amount_text(record['total'], record['unit'])}" for record in records]
    if run.folder is not None and (page := run.file_of(REPORT)).is_file():
        says.append(f"report: {md_code(page)}")
    if says:
        yield Block([f"In all: {' · '.join(says)}"])


def _comparison_blocks(comparison: RunComparison, gates: States, most_questions: int) -> Iterator[Block]:
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
