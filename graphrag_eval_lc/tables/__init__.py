"""Tidy tables and plots of results, runs and comparisons."""

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.tables.results import Results
from graphrag_eval_lc.tables.run_tables import aggregates_table, questions_table, steps_table
from graphrag_eval_lc.tables.table import Table

__all__ = ["Results", "Table", "aggregates_table", "questions_table", "steps_table"]

__dir__ = only_public(globals())
