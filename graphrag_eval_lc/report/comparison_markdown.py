"""A comparison in GitHub's Markdown: verdict, gates and flips first, then metrics, then how sure that is."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from graphrag_eval_lc.compare import Flip, GateResult
from graphrag_eval_lc.compare.comparison_view import ComparisonView, MetricRow, PairView
from graphrag_eval_lc.compare.flips import Direction
from graphrag_eval_lc.compare.metric_comparison import failures_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.report.markdown import Block, md_code, md_table, md_text
from graphrag_eval_lc.texts import counted

_MOST_ROWS: Final = 50
_TOLD: Final = 600
_MARKS: Final = {"passed": "✅", "failed": "❌", "not checked": "⚠️"}
_NO_GATES: Final = "ℹ️"


def gates_verdict(
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


def gates_block(gates: Sequence[GateResult]) -> Block:
    """Return a line for each gate."""
    rows = [f"- {_MARKS[gate.state]} Gate {gate.state}: {md_text(masked_text(str(gate)), _TOLD)}" for gate in gates]
    return Block([], rows)


def comparison_blocks(view: ComparisonView, most_questions: int) -> Iterator[Block]:
    """Yield the blocks of a comparison.

    Args:
        view: The comparison.
        most_questions: How many broken, and how many fixed questions are shown at most.
    """
    first = view.pairs[0].headline if len(view.pairs) == 1 else "Compared"
    lines = [line for pair in view.pairs for line in ("", f"**{md_text(pair.headline, _TOLD)}.**")]
    yield Block(
        [
            f"## {gates_verdict(view.gates, otherwise=md_text(first))}",
            *(lines if view.gates or len(view.pairs) > 1 else []),
        ]
    )
    if view.gates:
        yield gates_block(view.gates)
    for pair in view.pairs:
        yield from _flips_blocks(pair, most_questions)
    if view.warnings:
        yield Block([], [f"- ⚠️ Warning: {md_text(warning, _TOLD)}" for warning in view.warnings[:_MOST_ROWS]])
    runs = [
        f"- {run.letter}: {md_code(run.label)}, {counted(run.number_of_questions, 'question')}"
        f"{f', {md_code(run.path)}' if run.path else ''}"
        for run in view.runs
    ]
    yield Block([], runs)
    for pair in view.pairs:
        yield from _metrics_blocks(pair)
    certainty = [each for pair in view.pairs for each in (*pair.certainty, pair.doubt) if each]
    texts = [f"- {md_text(text, _TOLD)}" for text in [*certainty, view.note]]
    yield Block(["<details><summary>How sure is this?</summary>", ""], texts, ["", "</details>"])


def _metrics_blocks(view: PairView) -> Iterator[Block]:
    """Yield the metrics: first those that are not part of another one, the parts folded after them."""
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
        f"{score:.2f}{' error' if told.status == 'error' else ''}"
        for score, told in ((flip.score_a, flip.a), (flip.score_b, flip.b))
    ]
    return question, md_text((flip.a if side == "a" else flip.b).reason), *scores
