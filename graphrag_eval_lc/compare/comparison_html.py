"""A comparison as a notebook shows it: each metric in both runs with its verdict, and the questions that flipped."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from graphrag_eval_lc.compare.flips import Flip
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    interval_text,
    p_text,
    p_values_note,
    value_text,
    verdict_text,
)
from graphrag_eval_lc.compare.pair_comparison import PairComparison
from graphrag_eval_lc.tables.notebook_html import (
    LONGEST_TEXT,
    Cell,
    Column,
    Marked,
    page_html,
    paragraphs_html,
    rows_html,
)
from graphrag_eval_lc.texts import counted

# More of them make no small table.
_MOST_ROWS: Final = 40
_MOST_RUNS: Final = 8
_MOST_FLIPS: Final = 5
_MOST_WARNINGS: Final = 5

_METRIC_COLUMNS = (
    Column("metric"),
    Column("n", is_number=True),
    Column("A", is_number=True),
    Column("other", is_number=True),
    Column("difference", is_number=True),
    Column("interval", is_number=True),
    Column("p", is_number=True),
    Column("wins / ties / losses", is_number=True),
    Column("verdict", longest=LONGEST_TEXT),
)
_FLIP_COLUMNS = (
    Column("question"),
    Column("text"),
    Column("A", is_number=True),
    Column("other", is_number=True),
    Column("why it is wrong", longest=LONGEST_TEXT),
)


def comparison_html(
    names: Sequence[str], pairs: Sequence[PairComparison], main: str | None, warnings: Sequence[str]
) -> str:
    """Return a comparison as small tables.

    Args:
        names: What each run is called, the baseline first.
        pairs: Each other run beside the baseline.
        main: The main metric.
        warnings: What may make the runs hard to compare.
    """
    metrics = [(pair, metric) for pair in pairs for metric in pair.metrics]
    left_out = len(metrics) - _MOST_ROWS
    more = f"and {counted(left_out, 'row')} more: to_pandas() has all" if left_out > 0 else ""
    rows = (_metric_row(pair, metric) for pair, metric in metrics[:_MOST_ROWS])
    shown = {metric.metric: metric for _, metric in metrics}.values()
    return page_html(
        paragraphs_html(_first(names, _MOST_RUNS, "run")),
        rows_html("Beside A, the baseline", _METRIC_COLUMNS, rows, more),
        *(_flips_html(pair) for pair in pairs[:_MOST_RUNS] if pair.flips),
        paragraphs_html([p_values_note(main, shown), *_first(warnings, _MOST_WARNINGS, "warning")]),
    )


def _first(texts: Sequence[str], most: int, noun: str) -> Iterator[str]:
    yield from islice(texts, most)
    if len(texts) > most:
        yield f"and {counted(len(texts) - most, noun)} more"


def _metric_row(pair: PairComparison, metric: MetricComparison) -> Sequence[Cell]:
    return (
        ", ".join(filter(None, (metric.metric, metric.direction_note))),
        f"{metric.number_of_questions:,}",
        value_text(metric.mean_a, metric.unit),
        f"{pair.run.letter}: {value_text(metric.mean_b, metric.unit)}",
        change_text(metric.difference, metric.unit),
        interval_text(metric),
        p_text(metric.deciding_p_value),
        f"{metric.wins} / {metric.ties} / {metric.losses}",
        Marked(verdict_text(metric, pair.run.letter), metric.verdict),
    )


def _flips_html(pair: PairComparison) -> str:
    """Return the questions that flipped, those that are wrong now first, as flips are sorted."""
    fixed, broken = len(pair.fixed), len(pair.broken)
    other = len(pair.flips) - fixed - broken
    counts = [
        f"{counted(broken, 'question')} broken",
        f"{fixed:,} fixed",
        *([f"{other:,} better or worse"] if other else []),
    ]
    left_out = len(pair.flips) - _MOST_FLIPS
    more = f"and {left_out:,} more, in pairs[…].flips" if left_out > 0 else ""
    rows = map(_flip_row, pair.flips[:_MOST_FLIPS])
    return rows_html(f"{pair.run.letter}: {', '.join(counts)}", _FLIP_COLUMNS, rows, more)


def _flip_row(flip: Flip) -> Sequence[Cell]:
    reason = flip.b.reason or flip.a.reason
    verdict = {"now wrong": "worse", "now right": "better"}.get(flip.direction, flip.direction)
    return (
        flip.question_id,
        flip.question_text,
        f"{flip.score_a:.3f}",
        f"{flip.score_b:.3f}",
        Marked(f"{flip.direction}: {reason}" if reason else flip.direction, verdict),
    )
