"""What of a record can stand in a cell, which of the numbers are scores, and what they are on average."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from graphrag_eval_lc.frames.table import Row, Table
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import JUDGES

# Lists of a result of which a table of questions has the length.
COUNTED_LISTS = ("llm_calls", "capture_warnings")
# Columns of such a table that are numbers and no metrics.
_NO_METRICS = frozenset(
    {
        "repeat",
        *(f"steps_{count}" for count in ("total", "extra", "repeated", "failed")),
        *COUNTED_LISTS,
        *(key for judge in JUDGES for key in judge.details),
    }
)


def scalars(record: Mapping[str, Any], but: Collection[str]) -> Iterable[tuple[str, Any]]:
    """Give the numbers, truth values and texts of a record, those of the keys ``but`` left out."""
    return (
        (key, value) for key, value in record.items() if isinstance(value, bool | int | float | str) and key not in but
    )


def measured(value: object) -> float | None:
    """Give a value that can be drawn and averaged as a number; None for all others.

    Example:
        >>> measured(True), measured(0.5), measured(float("nan")), measured(10**400), measured("0.5")
        (1.0, 0.5, None, None, None)
    """
    return float(value) if isinstance(value, int | float) and abs(value) <= LARGEST else None


def scores(table: Table) -> list[str]:
    """Give the columns of a table of questions that say how good the agent was.

    Those are the numbers that are neither spent nor counted; one that nobody declared is a score.
    """
    return [
        column
        for column in table.columns
        if column not in _NO_METRICS
        and metric_spec(column).kind == "score"
        and any(measured(row.get(column)) is not None for row in table.rows)
    ]


def means(rows: Sequence[Row], metrics: Iterable[str]) -> dict[str, float]:
    """Give the mean of each metric over the questions that were answered and have it."""
    answered = [row for row in rows if row["status"] != "error"]
    values = {metric: [measured(row.get(metric)) for row in answered] for metric in metrics}
    known = {metric: [value for value in column if value is not None] for metric, column in values.items()}
    return {metric: fmean(column) for metric, column in known.items() if column}
