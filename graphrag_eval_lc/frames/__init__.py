"""Tidy tables and plots of results, runs and comparisons."""

from graphrag_eval_lc.frames.aggregate_rows import aggregates_frame, aggregates_table
from graphrag_eval_lc.frames.question_rows import questions_frame, questions_table
from graphrag_eval_lc.frames.results import Results
from graphrag_eval_lc.frames.step_rows import steps_frame, steps_table
from graphrag_eval_lc.frames.table import Table, records_frame

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
