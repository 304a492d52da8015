"""What `validate` finds in the SPARQL results of a reference step: columns, no rows at all, rows that are a draw."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows.media_types import (
    CSV,
    JSON_MEDIA_TYPE,
    REQUIRED_COLUMNS,
    ROW_TOOLS,
    SPARQL_QUERY,
    SPARQL_XML,
    is_of_media_type,
    media_type_of_form,
    names_no_columns,
    reference_results,
)
from graphrag_eval_lc.matching.rows.query_order import QueryOrder, query_order
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SPARQL_RESULTS, SparqlResults
from graphrag_eval_lc.registry.step_kinds import bare_media_type

_AS_JSON: Final = "Store the results as SPARQL JSON, which says what is an IRI, and of which type a literal is."

# What the media types of rows are called in findings; the others are those of TSV.
_NAMES: Final = defaultdict(
    lambda: "TSV", {SPARQL_RESULTS: SPARQL_JSON, CSV: "CSV", SPARQL_XML: "SPARQL XML", JSON_MEDIA_TYPE: "JSON"}
)


def check_rows_step(step: StepView) -> Iterator[Finding]:
    """Find columns that the reference output lacks or that cannot be read, and references that tell little.

    An output without rows is one, as any query without rows fits it; another is one whose query sorts by values that
    several rows share, where that decides which rows are kept, or in which order; and one that is read from another
    form than its media type names.
    """
    results = reference_results(step)
    yield from _form_findings(step, results)
    if results.boolean is not None:
        return
    required = step.get("required_columns")
    for column in results.faults:
        if required is None or (isinstance(required, list | tuple) and column in required):
            yield Finding(results.fault_of(column), "Store what the store gives.", ("output",))
    if results.notes:
        what = f"the output is read with allowances: {'; '.join(results.notes)}"
        yield Finding(what, "Store what the store gives.", ("output",), severity="warning")
    for index, column in enumerate(required if isinstance(required, list | tuple) else ()):
        if column not in results.variables and not names_no_columns(results):
            near = f"It has: {', '.join(results.variables) or 'none'}."
            yield Finding(f"the output has no column {column}", near, ("required_columns", index))
    if not results.row_count:
        what = "the output has no rows, so any query without rows fits it, and the step tells little"
        yield Finding(what, "Keep the step if that is the right answer.", ("output",), severity="warning")
    yield from _draws(step, results)


def _form_findings(step: StepView, results: SparqlResults) -> Iterator[Finding]:
    """Find results in another form than the media type says, and those without types where types are compared."""
    given, output = step.get("output_media_type"), step.get("output")
    media_type = bare_media_type(given) if isinstance(given, str) else ""
    if is_of_media_type(media_type, results, output):
        return
    what = f"the output is read from {results.form}, and its media type is that of {_NAMES[media_type]}"
    if media_type != SPARQL_RESULTS or step.get("name") != SPARQL_QUERY:
        found = media_type_of_form(results, output)
        hint = "Leave output_media_type out" if found is None else f"Write output_media_type: {found}"
        if found is None and step.get("name") not in ROW_TOOLS:
            hint += f", and say steps: {{kinds: {{{step.get('name')}: rows}}}} in the config"
        elif found == JSON_MEDIA_TYPE and step.get(REQUIRED_COLUMNS) is None:
            hint += f", and add {REQUIRED_COLUMNS}: {json_text(list(results.variables))}"
        yield Finding(what, f"{hint}.", ("output",), severity="warning")
        return
    if results.is_untyped and results.row_count and step.get("strict") is True:
        what = f"the output is read from {results.form}, which has no types, and strict compares them"
        yield Finding(what, _AS_JSON, ("output",))
        return
    hint = _AS_JSON if results.is_untyped else "Store SPARQL JSON, and nothing around it."
    yield Finding(what, hint, ("output",), severity="warning")


def _draws(step: StepView, results: SparqlResults) -> Iterator[Finding]:
    """Find rows with the same sort values whose choice or order the query leaves to the store."""
    order = _order_of(step)
    required = step.get("required_columns")
    shown = required if isinstance(required, list | tuple) else results.variables
    if order is None or not results.columns.keys() >= {*order.variables, *shown}:
        return
    if set(shown) <= set(order.variables):  # rows with the same sort values are the same rows then
        return
    last = results.row_count - 1
    sort, hint = ", ".join(f"?{name}" for name in order.variables), "Sort by a further variable that tells them apart."
    if order.limit == results.row_count > 1 and _is_tied(results, order, last - 1, last):
        what = f"the query keeps {order.limit} rows sorted by {sort}, and the last two have the same value there"
        what += ", so that another store may keep others"
        yield Finding(what, hint, ("output",), severity="warning")
    if step.get("ordered") is not True:
        return
    for row, following in pairwise(range(results.row_count)):
        if _is_tied(results, order, row, following) and _cells(results, shown, row) != _cells(
            results, shown, following
        ):
            what = f"the rows are compared in order, and rows {row + 1} and {following + 1} have the same {sort}"
            what += ", so that another store may swap them"
            yield Finding(what, hint, ("output",), severity="warning")
            return


def _order_of(step: StepView) -> QueryOrder | None:
    """Return the order that the query among the arguments asks for; None without one, or with several."""
    args = step.get("args")
    texts = [each for each in args.values() if isinstance(each, str)] if isinstance(args, Mapping) else []
    orders = [order for each in texts if (order := query_order(each)) is not None]
    return orders[0] if len(orders) == 1 else None


def _is_tied(results: SparqlResults, order: QueryOrder, row: int, other: int) -> bool:
    return _cells(results, order.variables, row) == _cells(results, order.variables, other)


def _cells(results: SparqlResults, names: Any, row: int) -> list[tuple[Any, str]]:
    """Return the terms of a row: the shape of each, and its text."""
    columns = [results.columns[name] for name in names]
    return [
        (column.shapes[row] if isinstance(column.shapes, list) else column.shapes, column.texts[row])
        for column in columns
    ]
