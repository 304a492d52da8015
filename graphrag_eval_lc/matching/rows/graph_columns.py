"""Columns with values of a property graph, made columns of terms that can be compared: each part a column of its own.

What is compared depends on both results: what the form of one of them does not tell, such as the labels of nodes in a
driver's ``data()``, counts for neither. So the columns are made for each comparison, where either side holds such
values, or texts that are times or points in several forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from graphrag_eval_lc.matching.rows.graph_parts import (
    Counting,
    GraphParts,
    GraphRules,
    Parts,
    Told,
    exact_text,
    scalar_of_text,
)
from graphrag_eval_lc.matching.rows.graph_texts import structure_from_text
from graphrag_eval_lc.matching.rows.graph_times import DURATION_SHAPE
from graphrag_eval_lc.matching.rows.graph_values import GraphReader, GraphValue, readable
from graphrag_eval_lc.matching.rows.plain_cells import is_untyped
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import TRIPLE_SHAPE, UNBOUND, Shape, Term
from graphrag_eval_lc.matching.rows.wkt import WKT_LITERAL

MOST_PLACES: Final = 2_000
"""A column may hold values with so many different places for a part, before whole values are compared as texts."""

MOST_CELLS: Final = 3_000_000
"""A table may have so many parts in its rows, before whole values are compared as texts."""


class _Cells:
    """The cells of one column: terms, and values with parts by their row."""

    def __init__(self, terms: list[Term], structures: dict[int, GraphValue]) -> None:
        self.terms = terms
        self.structures = structures


def comparable_results(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: GraphRules
) -> tuple[SparqlResults, SparqlResults]:
    """Return two results with columns that can be compared; the same ones where they hold no values of a graph.

    Args:
        reference: The expected results.
        actual: The results of the query.
        required: The columns of the reference that count.
        rules: How values of a graph are compared.

    Example:
        >>> oslo = SparqlResults({"n": TermColumn(["Oslo"], ("literal", None, None))}, 1)
        >>> comparable_results(oslo, oslo, ["n"], GraphRules()) == (oslo, oslo)
        True
    """
    columns = {name: reference.columns[name] for name in required}, dict(actual.columns)
    if not any(column.structures for each in columns for column in each.values()) and not (
        reference.is_untyped
        and actual.is_untyped
        and any(column.may_have_values for each in columns for column in each.values())
    ):
        return reference, actual
    mine, others = map(_cells_of, columns)
    told, other_told = _told_by(mine), _told_by(others)
    parts = [
        _parts_of(mine, GraphParts(Counting.of(rules, told, other_told))),
        _parts_of(others, GraphParts(Counting.of(rules, other_told, told))),
    ]
    if not all(_are_few(each, size) for each, size in zip(parts, (reference.row_count, actual.row_count), strict=True)):
        parts = [{name: _joined(rows) for name, rows in each.items()} for each in parts]
    return (
        replace(reference, columns={**reference.columns, **_columns_of(mine, parts[0])}),
        replace(actual, columns={**actual.columns, **_columns_of(others, parts[1])}),
    )


def _cells_of(columns: Mapping[str, TermColumn]) -> dict[str, _Cells]:
    """Return the cells of those columns that hold values with parts, or texts that write some, or times or points."""
    reader = GraphReader()
    found: dict[str, _Cells] = {}
    for name, column in columns.items():
        shapes = column.shapes if isinstance(column.shapes, list) else [column.shapes] * len(column.texts)
        structures = dict(column.structures)
        terms: list[Term] = []
        is_changed = bool(structures)
        for row, (text, shape) in enumerate(zip(column.texts, shapes, strict=True)):
            term = Term(text, shape)
            if row not in structures:
                value = _value_of_text(text, shape, reader)
                if isinstance(value, Term):
                    term = value
                elif value is not None:
                    structures[row] = value
                is_changed |= value is not None
            terms.append(term)
        if is_changed:
            found[name] = _Cells(terms, structures)
    return found


def _value_of_text(text: str, shape: Shape, reader: GraphReader) -> GraphValue | None:
    """Return the time, point or other value that a cell's text writes; None where it is no more than a text."""
    if not is_untyped(shape) and shape[1] != WKT_LITERAL:
        return None
    value = scalar_of_text(text)
    return structure_from_text(text, reader) if value is None else value


def _told_by(side: Mapping[str, _Cells]) -> Told:
    told = Told()
    for cells in side.values():
        told.durations |= any(term.shape == DURATION_SHAPE for term in cells.terms)
        for value in cells.structures.values():
            told.add(value)
    return told


def _parts_of(side: Mapping[str, _Cells], lowering: GraphParts) -> dict[str, dict[int, Parts]]:
    return {
        name: {row: lowering.parts(value) for row, value in cells.structures.items()} for name, cells in side.items()
    }


def _are_few(parts: Mapping[str, Mapping[int, Parts]], row_count: int) -> bool:
    """Return whether there are not too many columns of parts, nor cells in them."""
    total = 0
    for rows in parts.values():
        places: set[str] = set()
        for found in rows.values():
            places.update(path for path, _ in found)
            if len(places) > MOST_PLACES:
                return False
        total += len(places) * row_count
    return total <= MOST_CELLS


def _joined(rows: Mapping[int, Parts]) -> dict[int, Parts]:
    """Return each value as a single text, with its parts in order."""
    joined: dict[int, Parts] = {}
    for row, parts in rows.items():
        text = "\n".join(f"{path} {exact_text(term)}" for path, term in sorted(parts))
        joined[row] = [("whole", Term(text, ("literal", None, None)))]
    return joined


def _columns_of(side: Mapping[str, _Cells], parts: Mapping[str, Mapping[int, Parts]]) -> dict[str, TermColumn]:
    columns: dict[str, TermColumn] = {}
    for name, cells in side.items():
        rows = range(len(cells.terms))
        terms = list(cells.terms)
        found: dict[str, dict[int, Term]] = {}
        for row, each in parts[name].items():
            terms[row] = Term(readable(cells.structures[row]), TRIPLE_SHAPE)
            for path, term in each:
                if path:
                    found.setdefault(path, {})[row] = term
                else:  # a duration that was written as a list
                    terms[row] = term
        inner = {path: _column_of([at.get(row, UNBOUND) for row in rows]) for path, at in sorted(found.items())}
        columns[name] = replace(_column_of(terms), parts=inner)
    return columns


def _column_of(terms: Sequence[Term]) -> TermColumn:
    shapes = [term.shape for term in terms]
    first = shapes[0]
    is_one = all(shape == first for shape in shapes)
    return TermColumn([term.text for term in terms], first if is_one else shapes)
