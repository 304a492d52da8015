"""Columns with values of a property graph, made columns of terms that can be compared: each part a column of its own.

What is compared depends on both results: what the form of one of them does not tell, such as the labels of nodes in a
driver's ``data()``, counts for neither. So the columns are made for each comparison, where either side holds such
values, or texts that are times or points in several forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import Rules
from graphrag_eval_lc.matching.rows.graph_codes import Whole, whole_values
from graphrag_eval_lc.matching.rows.graph_parts import (
    Counting,
    GraphParts,
    GraphRules,
    Parts,
    Told,
    scalar_of_text,
)
from graphrag_eval_lc.matching.rows.graph_texts import structure_from_text
from graphrag_eval_lc.matching.rows.graph_times import DURATION_SHAPE
from graphrag_eval_lc.matching.rows.graph_values import GraphReader, GraphValue
from graphrag_eval_lc.matching.rows.plain_cells import is_untyped
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import TRIPLE_SHAPE, UNBOUND, Shape, Term
from graphrag_eval_lc.matching.rows.wkt import WKT_LITERAL

_LITERAL: Final[Shape] = ("literal", None, None)
_Place: TypeAlias = tuple[str, int]


class _Cells:
    """The cells of one column: terms, and values with parts by their row."""

    def __init__(self, terms: list[Term], structures: dict[int, GraphValue]) -> None:
        self.terms = terms
        self.structures = structures


def comparable_results(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], graph: GraphRules, rules: Rules
) -> tuple[SparqlResults, SparqlResults]:
    """Return two results with columns that can be compared; the same ones where they hold no values of a graph.

    Args:
        reference: The expected results.
        actual: The results of the query.
        required: The columns of the reference that count.
        graph: How values of a graph are compared.
        rules: How the results are compared.

    Example:
        >>> from graphrag_eval_lc.matching.rows.values import NO_VALUES
        >>> from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances
        >>> oslo = SparqlResults({"n": TermColumn(["Oslo"], ("literal", None, None))}, 1)
        >>> rules = Rules("set", False, Tolerances(), NO_VALUES)
        >>> comparable_results(oslo, oslo, ["n"], GraphRules(), rules) == (oslo, oslo)
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
    sides = [
        _parts_of(mine, GraphParts(Counting.of(graph, told, other_told))),
        _parts_of(others, GraphParts(Counting.of(graph, other_told, told))),
    ]
    wholes = whole_values([list(side.values()) for side in sides], rules)
    known = [dict(zip(side, found, strict=True)) for side, found in zip(sides, wholes, strict=True)]
    return (
        replace(reference, columns={**reference.columns, **_columns_of(mine, known[0])}),
        replace(actual, columns={**actual.columns, **_columns_of(others, known[1])}),
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
    reader.join_ends()
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


def _parts_of(side: Mapping[str, _Cells], lowering: GraphParts) -> dict[_Place, Parts]:
    """Return the parts of the values by their places; what has become a term by now joins the terms."""
    found: dict[_Place, Parts] = {}
    for name, cells in side.items():
        for row, value in list(cells.structures.items()):
            parts = lowering.parts(value)
            if parts[0] == "":  # a duration that was written as a list
                part = parts[1]
                cells.terms[row] = part if isinstance(part, Term) else Term(part, _LITERAL)
                del cells.structures[row]
            else:
                found[name, row] = parts
    return found


def _columns_of(side: Mapping[str, _Cells], wholes: Mapping[_Place, Whole]) -> dict[str, TermColumn]:
    columns: dict[str, TermColumn] = {}
    for name, cells in side.items():
        terms = list(cells.terms)
        found: dict[str, dict[int, Term]] = {}
        for row in cells.structures:
            whole = wholes[name, row]
            terms[row] = Term(terms[row].text, TRIPLE_SHAPE)
            found.setdefault("whole", {})[row] = Term(whole.text, _LITERAL)
            for at, number in enumerate(whole.near):
                found.setdefault(f"near {at:03d}", {})[row] = number
        rows = range(len(terms))
        inner = {path: _column_of([at.get(row, UNBOUND) for row in rows]) for path, at in found.items()}
        columns[name] = replace(_column_of(terms), parts=inner)
    return columns


def _column_of(terms: Sequence[Term]) -> TermColumn:
    shapes = [term.shape for term in terms]
    is_one = shapes.count(shapes[0]) == len(shapes)
    return TermColumn([term.text for term in terms], shapes[0] if is_one else shapes)
