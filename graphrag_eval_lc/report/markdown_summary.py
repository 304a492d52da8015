"""A run or a comparison as a short text in GitHub's Markdown, in which data cannot break or inject anything."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun, notes_in
from graphrag_eval_lc.compare import Flip, GateResult, RunComparison
from graphrag_eval_lc.compare.comparison_view import ComparisonView, MetricRow, PairView
from graphrag_eval_lc.compare.flips import Direction
from graphrag_eval_lc.compare.metric_comparison import failures_text
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import REPORT, SUMMARY
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.reported_run import ReportedRun, reported_run
from graphrag_eval_lc.run_store.stored_runs import part_of
from graphrag_eval_lc.texts import counted, one_line
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.failures import lines_of
from graphrag_eval_lc.view.scores import ScoreLine, whole_scores

LONGEST_TEXT: Final = 300
LONGEST_NAME: Final = 120

# Characters with a meaning anywhere on a line for GitHub or GitLab: code, links, tables, HTML, formulas, mentions.
_SPECIAL = re.compile(r"[&<>|`\\*\[\]~$#@{}]")
# An underscore after a letter begins nothing; leaving it alone keeps names readable.
_EMPHASIS = re.compile(r"(?<![^\W_])_")
# Addresses, emoji and commands of continuous integration (::error::); escaping one character of each is enough.
_ADDRESS = re.compile(r"\A:(?=:)|:(?=//)|(?<=www)\.|:(?=[\w+-]+:)", re.IGNORECASE)
# GitHub finds mentions and issue numbers in the rendered text, so an entity alone does not prevent them.
_REFERENCE = re.compile(r"(@)(?=[\w-])|([#!])(?=\d)")
_NO_WIDTH: Final = "\u200b"


def md_text(text: object, length: int = LONGEST_TEXT) -> str:
    r"""Return a text on one line, cut at ``length``, escaped so that Markdown shows it literally."""
    marked = _REFERENCE.sub(lambda found: f"{found[0]}{_NO_WIDTH}", one_line(text, length))
    return _escaped(marked).replace(_NO_WIDTH, "&#8203;")


def md_code(text: object, length: int = LONGEST_NAME) -> str:
    """Return a text as inline code, such as an id: it mentions nobody, and it can be copied."""
    return f"<code>{_escaped(one_line(text, length))}</code>"


def _escaped(text: str) -> str:
    for pattern in (_SPECIAL, _EMPHASIS, _ADDRESS):  # in this order: no pattern matches what an earlier one inserted
        text = pattern.sub(lambda found: f"&#{ord(found[0])};", text)
    return text


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document: lines that stay together, rows of which the last may be left out, and closing lines."""

    head: Sequence[str]
    rows: Sequence[str] = ()
    tail: Sequence[str] = ()


def md_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> tuple[list[str], list[str]]:
    """Return the first two lines of a table, and its rows. Cells are Markdown; after the first ``left``, numbers."""
    lines = [":---" if index < left else "---:" for index in range(len(headings))]
    head, rule, *body = (f"| {' | '.join(cells)} |" for cells in (headings, lines, *rows))
    return [head, rule], body


_RESERVED: Final = 400


def fitted(blocks: Iterable[Block], most_bytes: int) -> str:
    """Return blocks as a document of at most ``most_bytes`` bytes; a note says what is left out.

    Rows are left out from the end, and so are blocks that do not fit. The first block should fit.
    """
    left = most_bytes - _RESERVED
    parts: list[str] = []
    dropped = 0
    for block in blocks:
        head, tail = ("".join(f"{line}\n" for line in lines) for lines in (block.head, block.tail))
        needed = len(f"{head}{tail}".encode()) + 1
        if needed > left:
            dropped += 1 + len(block.rows)
            continue
        left -= needed
        kept = []
        for row in block.rows:
            left -= len(row.encode()) + 1
            if left < 0:
                break
            kept.append(f"{row}\n")
        dropped += len(block.rows) - len(kept)
        parts.append(f"{head}{''.join(kept)}{tail}")
    if dropped:
        parts.append(f"_Shortened: {counted(dropped, 'line is', 'lines are')} left out here._\n")
    return "\n".join(parts)


# GitHub accepts 1 MiB per step, and silently drops a summary that comes near it.
MOST_BYTES: Final = 1_000_000
_QUESTIONS = 10
_MOST_ROWS = 50
_MOST_TEMPLATES = 30
_MOST_COLUMNS = 6
_NOTICE = 600
_MARKS: Final = {"passed": "✅", "failed": "❌", "not checked": "⚠️"}
_NO_GATES: Final = "ℹ️"


def write_summary(
    run: RunSource | RunComparison,
    path: str | PathLike[str] | None = None,
    *,
    gates: Sequence[GateResult] | None = None,
    most_questions: int = _QUESTIONS,
) -> Path:
    """Write a run or a comparison as a short text in GitHub's Markdown.

    The verdict comes first: whether the gates passed. The summary of a run continues with the main score and its
    interval (failed questions count 0), the scores by template, and the worst questions with the reasons. That of a
    comparison continues with the metrics and their verdicts, and the questions that broke or were fixed. The file stays
    below 1 MB. Texts of datasets and agents are escaped, so that Markdown shows them literally.

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
        >>> "steps_score 0.500" in text
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
    """Return the text of ``write_summary``, at most ``most_bytes`` in UTF-8; a note says what was left out.

    Raises:
        RunFolderError: The run cannot be read.
    """
    if isinstance(run, RunComparison):
        return fitted(_comparison_blocks(run.view(gates or ()), most_questions), most_bytes)
    reported = reported_run(run)
    notes = run.notes if isinstance(run, BenchmarkRun) else list(notes_in(reported.record))
    checked = reported.checked_gates() if gates is None else gates
    view = reported.view(checked, most_failures=most_questions)
    return fitted(_run_blocks(reported, view, checked, notes), most_bytes)


def _run_blocks(run: ReportedRun, view: RunView, gates: Sequence[GateResult], notes: Sequence[str]) -> Iterator[Block]:
    stopped = part_of(run.record, "stopped").get("message")
    errors = view.headline.states.get("error", 0)
    verdict = _gates_verdict(gates, is_answered=errors < view.headline.samples, stopped=stopped)
    note = "" if view.main is None else view.main.interval_note
    about_interval = ["", f"About the interval: {md_text(note)}."] if note else []
    line = f"**{md_text(view.headline)}**"
    yield Block([f"## {verdict}: {md_text(run.title)}", "", line, "", _main_score(view), *about_interval])
    if gates:
        yield _gates_block(gates)
    notices = [("⚠️ Warning", text) for text in run.warnings[:_MOST_ROWS]] + [("Note", text) for text in notes]
    if notices:
        yield Block([], [f"- {word}: {md_text(text, _NOTICE)}" for word, text in notices])
    if view.groups:
        yield _groups_block(view)
    if view.failures:
        yield _worst_block(view)
    if len(view.scores) > 1:
        yield _scores_block(view.scores, view.judge_note)
    if view.templates:
        yield _templates_block(view)
    yield from _spent_block(run, view)


def _main_score(view: RunView) -> str:
    """Say which questions the main score covers."""
    headline, main = view.headline, view.main
    size = f"{counted(headline.questions, 'question')} in {counted(headline.templates, 'template')}"
    errors = headline.states.get("error", 0)
    if main is None:
        return f"No score was measured ({size}, {counted(errors, 'error')})."
    spec = metric_spec(main.metric)
    ends = [amount_text(end, spec.unit) for end in (main.low, main.high) if end is not None]
    parts = [f"95 % interval {' to '.join(ends)}" if ends else "no interval", size]
    if main.without:
        parts.append(f"not measured for {counted(main.without, 'question')}")
    if errors:
        worth = spec.value_of_failure
        parts.append(f"{counted(errors, 'error')}, {'left out' if worth is None else f'counted as {worth:g}'}")
    if main.upper is not None:
        parts.append(f"{amount_text(main.upper, spec.unit)} if all undecided steps fitted")
    return " · ".join(parts)


def _groups_block(view: RunView) -> Block:
    rows = [
        (count, md_text(title), "" if group is None else f"{md_code(group.keys[0])}<br>{md_text(group.example)}")
        for count, title, group in lines_of(view.parts, _MOST_ROWS)[0]
    ]
    head, lines = md_table(("Count", "Why", "For example"), rows, left=3)
    return Block(["### Why questions failed", "", *head], lines)


def _worst_block(view: RunView) -> Block:
    rows = []
    for failure in view.failures:
        repeat = f" (repeat {failure.repeat})" if failure.repeat > 1 else ""
        question = f"{md_code(failure.question_id)}{repeat}<br>{md_text(failure.question)}"
        rows.append((question, md_text(failure.reason), failure.score_text))
    head, lines = md_table(("Question", "Why", "Score"), rows, left=2)
    noun = counted(view.headline.not_right, "sample" if view.headline.repeats > 1 else "question")
    return Block([f"### Worst questions ({len(rows):,} of {noun} not right)", "", *head], lines)


def _scores_block(scores: Sequence[ScoreLine], judge_note: str) -> Block:
    rows = []
    for line in scores[:_MOST_ROWS]:
        unit = metric_spec(line.metric).unit
        ends = [amount_text(end, unit) for end in (line.low, line.high) if end is not None]
        mean, answered = (amount_text(value, unit) for value in line.means)
        rows.append((md_text(line.metric), mean, answered, " to ".join(ends) or "–", f"{line.questions:,}"))
    head, lines = md_table(("Score", "Mean", "Of the answered", "95 % interval", "Questions"), rows)
    note = ["", md_text(judge_note)] if judge_note else []
    return Block(["<details><summary>All scores</summary>", "", *head], lines, [*note, "", "</details>"])


def _templates_block(view: RunView) -> Block:
    columns = whole_scores(line.metric for line in view.scores)[:_MOST_COLUMNS]
    shown = list(view.templates)
    notes = []
    if any(line.errors for line in shown):
        failed = "A failed question counts as 0 in scores; tokens, seconds and cost are means with the failed ones."
        notes = ["", failed]
    if len(shown) > _MOST_TEMPLATES:
        shown = shown[:_MOST_TEMPLATES]
        notes += ["", f"The {_MOST_TEMPLATES} worst of {len(view.templates):,} templates."]
    has_cost = any(line.usd is not None for line in shown)
    rows = [
        (
            md_code(line.template_id),
            f"{line.questions:,}",
            f"{line.errors:,}" if line.errors else "",
            *(
                amount_text(score.mean if (score := line.scores.get(metric)) else None, metric_spec(metric).unit)
                for metric in columns
            ),
            amount_text(line.tokens, "tokens"),
            amount_text(line.seconds, "seconds"),
            *([amount_text(line.usd, "usd")] if has_cost else []),
        )
        for line in shown
    ]
    spent = ("Tokens", "Seconds", *(["Cost"] if has_cost else []))
    head, lines = md_table(("Template", "Questions", "Errors", *map(md_text, columns), *spent), rows)
    return Block(["### Templates", "", *head], lines, notes)


def _spent_block(run: ReportedRun, view: RunView) -> Iterator[Block]:
    lines = [line for line in view.spent if line.total][:_MOST_COLUMNS]
    says = [f"{md_text(line.name)} {amount_text(line.total, line.unit)}" for line in lines]
    if run.folder is not None and (page := run.file_of(REPORT)).is_file():
        says.append(f"report: {md_code(page)}")
    if says:
        yield Block([f"In all: {' · '.join(says)}"])


def _gates_verdict(
    gates: Sequence[GateResult], *, is_answered: bool = True, stopped: object = None, otherwise: str = "Scored"
) -> str:
    """Return the verdict with its mark; ``otherwise`` is the verdict without gates."""
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
    """Return a line for each gate."""
    rows = [f"- {_MARKS[gate.state]} Gate {gate.state}: {md_text(masked_text(str(gate)), _NOTICE)}" for gate in gates]
    return Block([], rows)


def _comparison_blocks(view: ComparisonView, most_questions: int) -> Iterator[Block]:
    """Yield the blocks of a comparison, with at most ``most_questions`` broken and as many fixed ones."""
    first = view.pairs[0].headline if len(view.pairs) == 1 else "Compared"
    lines = [line for pair in view.pairs for line in ("", f"**{md_text(pair.headline, _NOTICE)}.**")]
    yield Block(
        [
            f"## {_gates_verdict(view.gates, otherwise=md_text(first))}",
            *(lines if view.gates or len(view.pairs) > 1 else []),
        ]
    )
    if view.gates:
        yield _gates_block(view.gates)
    for pair in view.pairs:
        yield from _flips_blocks(pair, most_questions)
    if view.warnings:
        yield Block([], [f"- ⚠️ Warning: {md_text(warning, _NOTICE)}" for warning in view.warnings[:_MOST_ROWS]])
    runs = [
        f"- {run.letter}: {md_code(run.label)}, {counted(run.number_of_questions, 'question')}"
        f"{f', {md_code(run.path)}' if run.path else ''}"
        for run in view.runs
    ]
    yield Block([], runs)
    for pair in view.pairs:
        yield from _metrics_blocks(pair)
    certainty = [each for pair in view.pairs for each in (*pair.certainty, pair.doubt) if each]
    texts = [f"- {md_text(text, _NOTICE)}" for text in [*certainty, view.note]]
    yield Block(["<details><summary>How sure is this?</summary>", ""], texts, ["", "</details>"])


def _metrics_blocks(view: PairView) -> Iterator[Block]:
    """Yield the metrics: first those that are not part of another one, then the parts, folded."""
    letter, pair = view.letter, view.pair
    is_part = {
        row.metric.metric: metric_spec(row.metric.metric).is_part and not row.metric.is_main for row in view.rows
    }
    wholes = [row for row in view.rows if not is_part[row.metric.metric]]
    parts = [row for row in view.rows if is_part[row.metric.metric]]
    questions = counted(pair.number_of_questions, "common question")
    title = f"### {letter} compared with A ({questions}, {counted(pair.number_of_templates, 'template')})"
    failed = f"Failed samples, of which scores {failures_text(pair.metrics)}: {pair.errors_a:,} in A, "
    head, lines = _metrics_table(wholes, view)
    yield Block([title, "", *head], lines, ["", f"{failed}{pair.errors_b:,} in {letter}."])
    if parts:
        head, lines = _metrics_table(parts, view)
        yield Block(["<details><summary>More metrics</summary>", "", *head], lines, ["", "</details>"])


def _metrics_table(rows: Sequence[MetricRow], view: PairView) -> tuple[list[str], list[str]]:
    verdict = [] if view.doubt else ["Verdict"]
    headings = ("Metric", *verdict, "A", view.letter, f"{view.letter} − A", "Interval", "p", "Won/tied/lost")
    cells = [
        (
            md_text(row.name),
            *([row.verdict] if verdict else []),
            *map(md_text, (row.a, row.b, row.change, row.interval, row.p)),
            row.counts,
        )
        for row in rows[:_MOST_ROWS]
    ]
    return md_table(headings, cells, left=1 + len(verdict))


def _flips_blocks(view: PairView, most: int) -> Iterator[Block]:
    if not view.has_flips or not most:
        return
    letter, pair = view.letter, view.pair
    known: tuple[tuple[str, Sequence[Flip], str], ...] = (
        (f"Broken: right in A, not right in {letter}", pair.broken, "b"),
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
        f"{score:.2f}{' error' if result.status == 'error' else ''}"
        for score, result in ((flip.score_a, flip.a), (flip.score_b, flip.b))
    ]
    return question, md_text((flip.a if side == "a" else flip.b).reason), *scores
