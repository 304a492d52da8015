"""A comparison as a notebook shows it: each metric in both runs with its verdict, and the questions that flipped."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from graphrag_eval_lc.compare.flips import Flip
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    interval_text,
    is_same,
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
from graphrag_eval_lc.texts import counted, listed

# More of them make no small table.
_MOST_ROWS: Final = 40
_MANY_ROWS: Final = 12
_MOST_RUNS: Final = 8
_MOST_FLIPS: Final = 5
_MOST_WARNINGS: Final = 5

_FLIP_COLUMNS = (
    Column("question"),
    Column("text"),
    Column("was", is_number=True),
    Column("is", is_number=True),
    Column("why", longest=LONGEST_TEXT),
)


def notebook_comparison(
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
    shown = {metric.metric: metric for _, metric in metrics}.values()
    return page_html(
        paragraphs_html(_first(names, _MOST_RUNS, "run")),
        _metrics_html(metrics, pairs[0].run.letter if len(pairs) == 1 else "other"),
        *(_flips_html(pair) for pair in pairs[:_MOST_RUNS] if pair.flips),
        paragraphs_html([p_values_note(main, shown), *_first(warnings, _MOST_WARNINGS, "warning")]),
    )


def _metrics_html(metrics: Sequence[tuple[PairComparison, MetricComparison]], other: str) -> str:
    """Return a row for each metric; of many, those that are the same everywhere are only named."""
    shown = [each for each in metrics if not is_same(each[1])] if len(metrics) > _MANY_ROWS else metrics
    same = dict.fromkeys(metric.metric for _, metric in metrics if is_same(metric)) if shown is not metrics else {}
    notes = [f"The same: {listed(list(same))}."] if same else []
    if len(shown) > _MOST_ROWS:
        notes.append(f"And {counted(len(shown) - _MOST_ROWS, 'row')} more: to_pandas() has all.")
    columns = [
        Column("metric"),
        *(Column(heading, is_number=True) for heading in ("n", "A", other, "difference", "interval", "p")),
        Column("wins / ties / losses", is_number=True),
        Column("verdict", longest=LONGEST_TEXT),
    ]
    rows = (_metric_row(pair, metric, other) for pair, metric in shown[:_MOST_ROWS])
    return rows_html("Beside A, the baseline", columns, rows, " ".join(notes))


def _first(texts: Sequence[str], most: int, noun: str) -> Iterator[str]:
    yield from islice(texts, most)
    if len(texts) > most:
        yield f"and {counted(len(texts) - most, noun)} more"


def _metric_row(pair: PairComparison, metric: MetricComparison, other: str) -> Sequence[Cell]:
    mean_b = value_text(metric.mean_b, metric.unit)
    return (
        ", ".join(filter(None, (metric.metric, metric.direction_note))),
        f"{metric.number_of_questions:,}",
        value_text(metric.mean_a, metric.unit),
        mean_b if other == pair.run.letter else f"{pair.run.letter}: {mean_b}",
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
    reason = flip.b.reason or (f"before {flip.a.reason}" if flip.a.reason else "")
    verdict = {"now wrong": "worse", "now right": "better"}.get(flip.direction, flip.direction)
    return (
        flip.question_id,
        flip.question_text,
        f"{flip.score_a:.3f}",
        f"{flip.score_b:.3f}",
        Marked(f"{flip.direction}: {reason}" if reason else flip.direction, verdict),
    )
