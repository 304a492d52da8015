"""Reading SPARQL 1.1 JSON results into columns of terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NoReturn, TypeAlias

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.sparql.plain_cells import (
    Concerns,
    PlainCells,
    Shape,
    are_comparable,
    concerns_of,
    is_untyped,
    plain_cells,
    plain_cells_by_value,
    relevant_rules,
    untyped_texts,
)
from graphrag_eval_lc.matching.sparql.values import NO_VALUES, ValueRules, in_nfc
from graphrag_eval_lc.matching.sparql.xsd_numbers import (
    Number,
    NumberKind,
    has_untyped_number,
    is_numeric_datatype,
    number_from,
    number_kind,
)

SPARQL_RESULTS: Final = "application/sparql-results+json"
"""The media type of SPARQL 1.1 JSON results."""

_type_of = itemgetter("type")
_value_of = itemgetter("value")
_NO_TERM: Final = {"type": "", "value": ""}


@dataclass(frozen=True)
class TermColumn:
    """The terms of one column.

    Attributes:
        texts: The text of each cell.
        shapes: The shape of each cell, or the one of all cells, as nearly always.
    """

    texts: list[str]
    shapes: list[Shape] | Shape

    @cached_property
    def plain(self) -> PlainCells | None:
        """The cells as texts or floats, which are equal only if the cells are; None where these do not suffice."""
        return plain_cells(self.shapes, self.texts)

    @cached_property
    def has_untyped_numbers(self) -> bool:
        """Whether a cell without a datatype is written as a number, which cells of other texts may equal."""
        return has_untyped_number(untyped_texts(self.shapes, self.texts))

    @cached_property
    def in_nfc(self) -> "TermColumn":
        """The column with the texts of its literals in the Unicode normal form C."""
        if not self.concerns.nfc:
            return self
        shapes = self.shapes if isinstance(self.shapes, list) else [self.shapes] * len(self.texts)
        texts = zip(shapes, self.texts, strict=True)
        normal = [text if kind in ("uri", "bnode") else in_nfc(text) for (kind, _, _), text in texts]
        return TermColumn(normal, self.shapes)

    @cached_property
    def concerns(self) -> Concerns:
        """What may equal cells that are written otherwise, beside numbers and booleans."""
        return concerns_of(self.shapes, self.texts)

    @cached_property
    def _by_value(self) -> dict[ValueRules, PlainCells | None]:
        return {}

    def plain_by_value(self, values: ValueRules) -> PlainCells | None:
        """Return the cells as texts, floats or values, which are equal just if the cells are; None likewise."""
        if values not in self._by_value:
            column = self.in_nfc if values.nfc else self
            is_plain = not self.has_untyped_numbers and values == NO_VALUES
            texts = column.texts
            self._by_value[values] = column.plain if is_plain else plain_cells_by_value(self.shapes, texts, values)
        return self._by_value[values]

    def number(self, row: int) -> tuple[Number, NumberKind] | None:
        """Return the number that a cell holds, and what kind of number; None where it holds none."""
        shape = self.shapes[row] if isinstance(self.shapes, list) else self.shapes
        datatype, text = shape[1], self.texts[row]
        if shape[0] == "uri" or not (is_numeric_datatype(datatype) or is_untyped(shape)):
            return None
        found = number_from(text, datatype)
        return None if found is None else (found[0], number_kind(text, datatype))

    def kind(self, row: int) -> str:
        """Return the type of a cell: uri, literal, bnode; empty where it is unbound."""
        return (self.shapes[row] if isinstance(self.shapes, list) else self.shapes)[0]

    def readable(self, row: int) -> str | None:
        """Return the text of a cell, with ``_:`` before a blank node; None where it is unbound."""
        kind = self.kind(row)
        return None if not kind else f"_:{self.texts[row]}" if kind == "bnode" else self.texts[row]


@dataclass(frozen=True, slots=True)
class SparqlResults:
    """The outcome of a SELECT or ASK query, read and checked once, for any number of comparisons.

    Attributes:
        columns: The columns of a SELECT by the name of their variable.
        row_count: Number of rows.
        boolean: The answer of an ASK query; None for a SELECT.
    """

    columns: dict[str, TermColumn]
    row_count: int
    boolean: bool | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)


def parse_sparql_results(output: Any) -> SparqlResults:
    """Read the results of a SELECT or ASK query.

    Args:
        output: SPARQL 1.1 Query Results JSON, as a string or parsed already.

    Returns:
        The results. A variable that the head names twice is one column; a binding of a variable that the head
        does not name is left out.

    Raises:
        UnreadableOutput: For everything else, such as the Turtle of a DESCRIBE query; nothing else is raised.

    Example:
        >>> results = parse_sparql_results('{"head": {"vars": ["n"]}, "results": {"bindings": [{}]}}')
        >>> results.variables, results.row_count
        (('n',), 1)
    """
    document = _document(output)
    if "boolean" in document:
        if not isinstance(document["boolean"], bool):
            raise UnreadableOutput('the "boolean" of these ASK results is neither true nor false')
        return SparqlResults({}, 0, document["boolean"])
    if "head" not in document and "results" not in document:
        raise UnreadableOutput(f"a JSON object without SPARQL results ({_keys(document)})")
    variables = _variables(document)
    bindings = _bindings(document)
    try:
        columns = {name: _column(name, bindings) for name in variables}
    except (TypeError, KeyError, AttributeError):
        _refuse_terms(variables, bindings)
    return SparqlResults(columns, len(bindings))


def _document(output: Any) -> dict[str, Any]:
    if isinstance(output, str):
        output = _json(output)
    if not isinstance(output, dict):
        found = "nothing" if output is None else f"a {type(output).__name__}"
        raise UnreadableOutput(f"{found} instead of a JSON object with SPARQL results")
    return output


def _json(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except RecursionError:
        raise UnreadableOutput("JSON that is nested too deeply") from None
    except ValueError as error:
        start = " ".join(text[:60].split())
        shown = start.encode("ascii", "replace").decode() or "an empty text"
        raise UnreadableOutput(f"no JSON ({error}): {shown}") from None


def _keys(document: dict[str, Any]) -> str:
    names = [key[:30].encode("ascii", "replace").decode() for key in list(document)[:5] if isinstance(key, str)]
    return f"its keys are {', '.join(names)}" if names else "it is empty"


def _variables(document: dict[str, Any]) -> tuple[str, ...]:
    head = document.get("head")
    if not isinstance(head, dict):
        raise UnreadableOutput('SPARQL results without a "head" object')
    variables = head.get("vars")
    if not isinstance(variables, list) or not all(isinstance(name, str) for name in variables):
        raise UnreadableOutput('SPARQL results whose "head" has no list "vars" of column names')
    _require_unicode(variables)
    return tuple(dict.fromkeys(variables))


def _bindings(document: dict[str, Any]) -> list[dict[str, Any]]:
    results = document.get("results")
    if not isinstance(results, dict) or not isinstance(results.get("bindings"), list):
        raise UnreadableOutput('SPARQL results without a list "bindings" in "results"')
    bindings: list[Any] = results["bindings"]
    for row, binding in enumerate(bindings, start=1):
        if not isinstance(binding, dict):
            raise UnreadableOutput(f"SPARQL results whose row {row} is no object")
    return bindings


def _column(name: str, bindings: list[dict[str, Any]]) -> TermColumn:
    """Check the cells of a column quickly; what is wrong with them is found out later.

    Raises:
        TypeError, KeyError, AttributeError: Where a cell is no term.
    """
    try:
        cells = list(map(itemgetter(name), bindings))
    except KeyError:
        cells = [binding.get(name, _NO_TERM) for binding in bindings]
    texts = list(map(_value_of, cells))
    kinds = set(map(_type_of, cells))
    _require_unicode(texts)
    if len(kinds) == 1 and set(map(len, cells)) == {2}:  # nothing but type and value, as most columns
        (kind,) = kinds
        if not isinstance(kind, str):
            raise TypeError
        return TermColumn(texts, (kind, None, None))
    return _column_of_shapes(cells, texts)


def _column_of_shapes(cells: list[dict[str, Any]], texts: list[str]) -> TermColumn:
    shapes = [(cell["type"], cell.get("datatype"), cell.get("xml:lang")) for cell in cells]
    known: dict[Shape, Shape] = dict(zip(shapes, shapes, strict=True))
    for kind, datatype, language in known:
        if not isinstance(kind, str) or not isinstance(datatype, str | None) or not isinstance(language, str | None):
            raise TypeError
    if len(known) == 1:
        return TermColumn(texts, next(iter(known)))
    return TermColumn(texts, [known[shape] for shape in shapes])


def _refuse_terms(variables: tuple[str, ...], bindings: list[dict[str, Any]]) -> NoReturn:
    """Say where the first term stands that is none."""
    for row, binding in enumerate(bindings, start=1):
        for variable in variables:
            term = binding.get(variable, _NO_TERM)
            if term is _NO_TERM:
                continue
            place = f'SPARQL results whose cell "{variable}" in row {row}'
            if not isinstance(term, dict):
                raise UnreadableOutput(f"{place} is no object")
            if not isinstance(term.get("value"), str):
                raise UnreadableOutput(f'{place} has no text as "value"')
            beside = (term.get("datatype"), term.get("xml:lang"))
            if not isinstance(term.get("type"), str) or not all(isinstance(part, str | None) for part in beside):
                raise UnreadableOutput(f'{place} has a "type", "datatype" or "xml:lang" that is no text')
    raise UnreadableOutput("SPARQL results with a cell that is no RDF term")


def _require_unicode(texts: Any) -> None:
    joined = "".join(texts)
    if joined.isascii():
        return
    try:
        joined.encode()
    except UnicodeEncodeError:
        raise UnreadableOutput("SPARQL results with half a character (a lone surrogate)") from None


PlainColumns: TypeAlias = tuple[list[PlainCells], list[PlainCells]]
"""The cells of the required columns of the reference, and of all actual columns."""


def relevant_values(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], values: ValueRules
) -> ValueRules:
    """Return which of the rules make a difference to the required and the actual columns."""
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    return relevant_rules([column.concerns for column in columns], values)


def plain_columns(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], values: ValueRules | None
) -> PlainColumns | None:
    """Return the required and the actual columns as plain cells; None where they cannot be compared so.

    With rules of values, different cells have different values; without, different texts may have the same value.
    """
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    found = (column.plain if values is None else column.plain_by_value(values) for column in columns)
    plain = [cells for cells in found if cells is not None]
    if len(plain) < len(columns) or not are_comparable(plain):
        return None
    return plain[: len(required)], plain[len(required) :]
