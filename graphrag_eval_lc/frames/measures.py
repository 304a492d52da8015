"""What of a record can stand in a cell, which of the numbers are scores, and what they are on average."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from graphrag_eval_lc.frames.table import Row, Table

_SPENT = ("_tokens", "_sec", "_cost")
_COUNTED = frozenset({"repeat", "llm_calls", "capture_warnings", "retrieval_missing", "retrieval_text_missing"})


def scalars(record: Mapping[str, Any], but: Collection[str]) -> Iterable[tuple[str, Any]]:
    """Give the numbers, truth values and texts of a record, those of the keys ``but`` left out."""
    return (
        (key, value) for key, value in record.items() if isinstance(value, bool | int | float | str) and key not in but
    )


def measured(value: object) -> float | None:
    """Give a value that can be drawn and averaged as a number; None for all others.

    Example:
        >>> measured(True), measured(0.5), measured(float("nan")), measured("0.5")
        (1.0, 0.5, None, None)
    """
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def is_spent(metric: str) -> bool:
    """Tell whether a metric says what was spent: tokens, seconds or money, of which less is better.

    Example:
        >>> is_spent("total_tokens"), is_spent("elapsed_sec"), is_spent("steps_score")
        (True, True, False)
    """
    return metric.endswith(_SPENT)


def scores(table: Table) -> list[str]:
    """Give the columns of a table of questions that say how good the agent was.

    Those are the numbers that are neither spent nor counted.
    """
    return [
        column
        for column in table.columns
        if not (is_spent(column) or _is_count(column))
        and any(measured(row.get(column)) is not None for row in table.rows)
    ]


def means(rows: Sequence[Row], metrics: Iterable[str]) -> dict[str, float]:
    """Give the mean of each metric over the questions that were answered and have it."""
    answered = [row for row in rows if row["status"] != "error"]
    values = {metric: [measured(row.get(metric)) for row in answered] for metric in metrics}
    known = {metric: [value for value in column if value is not None] for metric, column in values.items()}
    return {metric: fmean(column) for metric, column in known.items() if column}


def _is_count(column: str) -> bool:
    is_of_steps = column.startswith("steps_") and column != "steps_score"
    return is_of_steps or column in _COUNTED or column.endswith("_count")
