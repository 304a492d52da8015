"""The values of an answer with their verdicts, and the rows that they come from, for the report."""

import re
from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.registry.answer_metrics import ANSWER_VALUES
from graphrag_eval_lc.report.formats import without_middle
from graphrag_eval_lc.report.steps import SampleSteps
from graphrag_eval_lc.texts import shown_name

_ADDRESS: Final = re.compile(r"row (\d{1,9})/(.+)", re.DOTALL)
_MOST_VALUES, _MOST_ROWS, _MOST_CELLS = 2_000, 200, 12


def answer_values(steps: SampleSteps) -> dict[str, Any] | None:
    """Return the values of an answer as the report shows them; None if they were not looked up.

    Returns:
        ``values``: for each its text, kind, verdict and address, and if that is a row, its index in ``rows`` and the
        column; ``rows``: for each its address, columns and cells. Malformed parts of results are passed over.
    """
    found = steps.result.get(ANSWER_VALUES)
    if not isinstance(found, list) or not found:
        return None
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    values = []
    for each in found[:_MOST_VALUES]:
        if not isinstance(each, Mapping) or not isinstance(each.get("text"), str):
            continue
        value: dict[str, Any] = {key: shown_name(each.get(key)) for key in ("kind", "verdict")}
        value["text"] = without_middle(each["text"])
        if isinstance(at := each.get("at"), str):
            value["at"] = shown_name(at)
            if (place := _place_of(steps, at)) is not None:
                step, row, column = place
                if (
                    (step, row) not in rows
                    and len(rows) < _MOST_ROWS
                    and (record := _row(steps, step, row)) is not None
                ):
                    rows[step, row] = record
                if (step, row) in rows:
                    value |= {"row": list(rows).index((step, row)), "column": shown_name(column)}
        values.append(value)
    return {"values": values, "rows": list(rows.values())}


def _place_of(steps: SampleSteps, at: str) -> tuple[int, int, str] | None:
    """Return the index of the step, the row from 0 and the column at an address; None if it is of no row."""
    for index, step in enumerate(steps.actual):
        identifier = str(step["id"]) if step.get("id") is not None else str(index)
        if at.startswith(f"{identifier}/") and (found := _ADDRESS.fullmatch(at, len(identifier) + 1)):
            return index, int(found[1]) - 1, found[2]
    return None


def _row(steps: SampleSteps, step: int, row: int) -> dict[str, Any] | None:
    """Return a row of a step; None if the step cannot be read any more, or has no such row."""
    try:
        results = step_results(steps.actual_view(step))
    except UnreadableOutput:
        return None
    if not 0 <= row < results.row_count:
        return None
    kept = list(results.columns)[:_MOST_CELLS]
    cells = [results.columns[name].readable(row) for name in kept]
    shown = [None if cell is None else without_middle(cell) for cell in cells]
    name = shown_name(steps.actual[step].get("name"))
    return {
        "address": f"{name}, call {step + 1}, row {row + 1:,}",
        "columns": list(map(shown_name, kept)),
        "cells": shown,
    }
