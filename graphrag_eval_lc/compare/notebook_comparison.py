"""Shows a comparison in a notebook: first the verdict and flips, then the metrics, then how certain they are."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from graphrag_eval_lc.compare.comparison_view import ComparisonView, MetricRow, PairView
from graphrag_eval_lc.compare.metric_comparison import failures_text, is_same
from graphrag_eval_lc.tables.notebook_html import (
    LONGEST_TEXT,
    Column,
    Marked,
    page_html,
    paragraphs_html,
    rows_html,
)
from graphrag_eval_lc.texts import counted, listed

# With more rows the tables would not be small.
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


def notebook_comparison(view: ComparisonView) -> str:
    """Return a comparison as small tables."""
    headlines = [f"{pair.headline}." for pair in view.pairs]
    count_as = failures_text(row.metric for pair in view.pairs for row in pair.rows)
    names = []
    for run in view.runs:
        failed = f" ({run.number_of_errors:,} of {run.number_of_samples:,} failed; their scores {count_as})"
        names.append(f"{run.letter}: {run.label}{failed if run.number_of_errors else ''}")
    doubts = dict.fromkeys(pair.doubt for pair in view.pairs if pair.doubt)
    undecided = dict.fromkeys(pair.undecided for pair in view.pairs if pair.undecided)
    return page_html(
        paragraphs_html([*_first(headlines, _MOST_RUNS, "run"), *_first(names, _MOST_RUNS, "run")]),
        *(_flips_html(pair) for pair in view.pairs[:_MOST_RUNS] if pair.pair.flips),
        _metrics_html([(pair, row) for pair in view.pairs for row in pair.rows], view.pairs),
        paragraphs_html(
            ["How sure is this?", *doubts, *undecided, view.note, *_first(view.warnings, _MOST_WARNINGS, "warning")]
        ),
    )


def _metrics_html(rows: Sequence[tuple[PairView, MetricRow]], pairs: Sequence[PairView]) -> str:
    """Return a row for each metric. If there are many, those that are the same in all runs are only named."""
    other = pairs[0].letter if len(pairs) == 1 else "other"
    shown = [each for each in rows if not is_same(each[1].metric)] if len(rows) > _MANY_ROWS else rows
    same = dict.fromkeys(row.metric.metric for _, row in rows if is_same(row.metric)) if shown is not rows else {}
    notes = [f"The same: {listed(list(same))}."] if same else []
    if len(shown) > _MOST_ROWS:
        notes.append(f"And {counted(len(shown) - _MOST_ROWS, 'row')} more: to_pandas() has all.")
    columns = [
        Column("metric"),
        *(Column(heading, is_number=True) for heading in ("n", "A", other, "difference", "interval", "p")),
        Column("better / same / worse", is_number=True),
        Column("verdict", longest=LONGEST_TEXT),
    ]
    cells = (
        (
            row.name,
            f"{row.metric.number_of_questions:,}",
            row.a,
            row.b if other == pair.letter else f"{pair.letter}: {row.b}",
            *(row.change, row.interval, row.p, row.counts),
            Marked(row.reason, row.metric.verdict),
        )
        for pair, row in shown[:_MOST_ROWS]
    )
    return rows_html("Metrics compared with A, the baseline", columns, cells, " ".join(notes))


def _first(texts: Sequence[str], most: int, noun: str) -> Iterator[str]:
    yield from islice(texts, most)
    if len(texts) > most:
        yield f"and {counted(len(texts) - most, noun)} more"


def _flips_html(pair: PairView) -> str:
    """Return a table of the questions that changed, broken ones first."""
    flips, cells = pair.pair.flips, []
    for flip in flips[:_MOST_FLIPS]:
        verdict = {"broken": "worse", "fixed": "better"}.get(flip.direction, flip.direction)
        why = Marked(f"{flip.direction}: {flip.why}" if flip.why else flip.direction, verdict)
        cells.append((flip.question_id, flip.question_text, f"{flip.score_a:.3f}", f"{flip.score_b:.3f}", why))
    more = f"and {len(flips) - _MOST_FLIPS:,} more, in pairs[…].flips" if len(flips) > _MOST_FLIPS else ""
    return rows_html(f"{pair.letter}: {pair.flips_text}", _FLIP_COLUMNS, cells, more)
