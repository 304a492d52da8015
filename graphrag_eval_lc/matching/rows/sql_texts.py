"""What a tool of SQL gives where a query failed, or found nothing: texts that are no rows, and one that is no row."""

import re
from dataclasses import replace
from typing import Final, NoReturn

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import UnreadableOutput, printable
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.texts import counted, shortened

SQL_DB_QUERY: Final = "sql_db_query"
"""The name of LangChain's tool of SQL, which gives an empty text where there are no rows."""

_DRIVER_ERROR: Final = re.compile(
    r"\s{0,20}(?:error: ?)?\((?:\w{1,40}\.){1,6}\w{0,60}(?:Error|Exception|Warning|Violation|Undefined\w{1,30})\)", re.I
)
_ERROR: Final = re.compile(
    r"\s{0,20}(?:Database |SQL |Query )?error(?: \d{1,5} \([0-9A-Z]{5}\))?(?: at line \d+)?: ?", re.I
)
_SHORTEST_CUT_CELL: Final = 50
_SQL: Final = re.compile(r"\n\[SQL: ")


def is_driver_error(text: str) -> bool:
    """Return whether a text is an error of a database's driver, whatever it shows of the query and its values.

    Example:
        >>> is_driver_error("Error: (sqlite3.OperationalError) no such table: town"), is_driver_error("Error: [1]")
        (True, False)
    """
    return _DRIVER_ERROR.match(text) is not None or (is_error(text) and _SQL.search(text) is not None)


def is_error(text: str) -> bool:
    """Return whether a text begins as an error."""
    return _ERROR.match(text) is not None


def refuse_error_text(text: str) -> NoReturn:
    """Refuse a text that tells of an error.

    Raises:
        UnreadableOutput: Always; it shows the first line.
    """
    first = re.sub(r"(?i)\Aerror: ?", "", text.strip()).split("\n")[0]
    raise UnreadableOutput(f"an error: {printable(shortened(first[:400], 100))}")


def no_rows_of(step: StepView) -> SparqlResults | None:
    """Return results without rows where the output of a step is the empty text that LangChain's tool gives for them.

    Example:
        >>> no_rows_of(StepView({"name": "sql_db_query", "output": ""})).row_count
        0
        >>> no_rows_of(StepView({"name": "search", "output": ""})) is None
        True
    """
    if SQL_DB_QUERY not in (step.get("name"), step.tool):
        return None
    output = step.get("output")
    if not isinstance(output, str) or output.strip():
        return None
    return SparqlResults(
        {}, 0, form=f"an empty text, which {SQL_DB_QUERY} gives where there are no rows", is_untyped=True
    )


def with_cut_cells(step: StepView, results: SparqlResults) -> SparqlResults:
    """Return results with a note on the cells that LangChain's tool may have cut, as it does with long texts.

    Example:
        >>> from graphrag_eval_lc.matching.rows.readers import read_sparql_results
        >>> view = StepView({"name": "sql_db_query", "output": str([("a long text " * 20 + "...",)])})
        >>> with_cut_cells(view, view.parsed(read_sparql_results)).notes
        ('1 cell that ends with "...", as the tool cuts long texts (max_string_length)',)
    """
    if SQL_DB_QUERY not in (step.get("name"), step.tool):
        return results
    texts = [text for column in results.columns.values() for text in column.texts if text.endswith("...")]
    cut = sum(len(text) >= _SHORTEST_CUT_CELL for text in texts)
    if not cut:
        return results
    said = f'{counted(cut, "cell that ends", "cells that end")} with "...", as the tool cuts long texts'
    return replace(results, notes=(*results.notes, f"{said} (max_string_length)"))
