"""Tidy tables and plots of results, runs and comparisons."""

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.tables.results import Results
from graphrag_eval_lc.tables.run_tables import (
    aggregates_frame,
    aggregates_table,
    questions_frame,
    questions_table,
    steps_frame,
    steps_table,
)
from graphrag_eval_lc.tables.table import Table, records_frame

__all__ = [
    "Results",
    "Table",
    "aggregates_frame",
    "aggregates_table",
    "questions_frame",
    "questions_table",
    "records_frame",
    "steps_frame",
    "steps_table",
]

__dir__ = only_public(globals())
