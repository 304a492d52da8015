"""Reading SPARQL 1.1 JSON results into columns of terms."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from operator import is_, itemgetter
from typing import Any, Final, TypeAlias, cast

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.rows.graph_times import may_have_values
from graphrag_eval_lc.matching.rows.plain_cells import (
    Concerns,
    Marks,
    PlainCells,
    are_comparable,
    concerns_of,
    distinct_shapes,
    is_untyped,
    marks_of,
    plain_cells,
    plain_cells_by_value,
    relevant_rules,
    untyped_texts,
)
from graphrag_eval_lc.matching.rows.terms import (
    LANGUAGE_DATATYPES,
    RARE_KEYS,
    Allowances,
    Shape,
    names_in,
    read_cells,
)
from graphrag_eval_lc.matching.rows.values import NO_VALUES, ValueRules, in_nfc
from graphrag_eval_lc.matching.rows.xsd_numbers import (
    Number,
    NumberKind,
    has_untyped_number,
    is_numeric_datatype,
    number_from,
    number_kind,
)

SPARQL_RESULTS: Final = "application/sparql-results+json"
"""The media type of SPARQL 1.1 JSON results."""

SPARQL_JSON: Final = "SPARQL JSON"
"""The form of results that are SPARQL 1.1 JSON as it is specified."""

_type_of = itemgetter("type")
_value_of = itemgetter("value")
_NO_TERM: Final = {"type": "", "value": ""}


@dataclass
class TermColumn:
    """The terms of one column; it is not changed once it is read.

    Attributes:
        texts: The text of each cell.
        shapes: The shape of each cell, or the one of all cells, as nearly always.
        parts: The columns of the parts of its triple terms, and of theirs, by the steps that lead to them: ``s``,
            ``p``, ``o``, ``os`` for the subject of the object. They are unbound where a row does not have the part.
        marks: Those of the texts, where they are known already.
        known_shapes: The distinct shapes, where they are known already.
        structures: The values of a property graph in it, by their row: nodes, lists and the like, of which the text
            is what people read; see ``graph_values``.
    """

    texts: list[str]
    shapes: list[Shape] | Shape
    parts: "dict[str, TermColumn]" = field(default_factory=dict)
    marks: Marks | None = None
    known_shapes: Collection[Shape] | None = None
    structures: Mapping[int, Any] = field(default_factory=dict)

    @property
    def with_parts(self) -> "dict[str, TermColumn]":
        """The column itself, under an empty text, and the columns of its parts."""
        return {"": self, **self.parts}

    @cached_property
    def plain(self) -> PlainCells | None:
        """The cells as texts or floats, which are equal only if the cells are; None where these do not suffice."""
        return plain_cells(self.shapes, self.texts, self.known_shapes)

    @cached_property
    def has_untyped_numbers(self) -> bool:
        """Whether a cell without a datatype is written as a number, which cells of other texts may equal."""
        return has_untyped_number(untyped_texts(self.shapes, self.texts))

    @property
    def may_have_numbers(self) -> bool:
        """Whether a cell may be a number, told without reading the numbers."""
        known = distinct_shapes(self.shapes) if self.known_shapes is None else self.known_shapes
        is_typed = any(kind != "uri" and is_numeric_datatype(datatype) for kind, datatype, _ in known)
        return is_typed or self.has_untyped_numbers

    @property
    def floats(self) -> list[float] | None:
        """The cells as floats, where all are numbers but integers, written as usual; else None."""
        plain = self.plain
        if plain is None or not plain.kinds or NumberKind.INTEGER in plain.kinds:
            return None
        return cast("list[float]", plain.cells)

    @cached_property
    def may_have_values(self) -> bool:
        """Whether a cell without a datatype may be a time, a point, a list or a map that is written as a text."""
        return may_have_values("\n".join(untyped_texts(self.shapes, self.texts)))

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
        return concerns_of(self.shapes, self.texts, self.marks, self.known_shapes)

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
        """Return the type of a cell: uri, literal, bnode, triple; empty where it is unbound."""
        return (self.shapes[row] if isinstance(self.shapes, list) else self.shapes)[0]

    def readable(self, row: int) -> str | None:
        """Return the text of a cell, with ``_:`` before a blank node; None where it is unbound."""
        kind = self.kind(row)
        return None if not kind else f"_:{self.texts[row]}" if kind == "bnode" else self.texts[row]


@dataclass(frozen=True, slots=True)
class SparqlResults:
    """The outcome of a SELECT or ASK query, read and checked once, for any number of comparisons.

    Attributes:
        columns: The columns of a SELECT by the name of their variable, without those that cannot be read.
        row_count: Number of rows.
        boolean: The answer of an ASK query; None for a SELECT.
        notes: What was read although it is not as the standard has it: phrases for people.
        faults: Why a column cannot be read, by its name.
        head: The names of all columns, if some cannot be read; None: those of ``columns``.
        form: What they were read from, such as "W3C CSV".
        is_untyped: Whether that form has texts without types, so that an IRI cannot be told from a literal.
    """

    columns: dict[str, TermColumn]
    row_count: int
    boolean: bool | None = None
    notes: tuple[str, ...] = ()
    faults: dict[str, str] = field(default_factory=dict)
    head: tuple[str, ...] | None = None
    form: str = SPARQL_JSON
    is_untyped: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns, with those that cannot be read."""
        return tuple(self.columns) if self.head is None else self.head

    def fault_of(self, name: str) -> str:
        """Return a phrase that says why a column cannot be read."""
        return f"column `{name}` cannot be read: {self.faults[name]}"

    @property
    def is_headless(self) -> bool:
        """Whether nothing names the columns: there are no rows, and the form has no header, as ``[]``."""
        return not self.columns and not self.row_count and self.boolean is None and self.form != SPARQL_JSON


def parse_sparql_results(output: Any) -> SparqlResults:
    """Read the results of a SELECT or ASK query.

    Args:
        output: SPARQL 1.1 Query Results JSON, as a string or parsed already.

    Returns:
        The results. A variable that the head names twice is one column; a binding of a variable that the head
        does not name is left out. Cells that are nearly RDF terms are read, with a note; a column with a cell that is
        none is kept by its name alone.

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
    notes = ['there is no list "vars" in a "head", so the columns are those of the rows'] if variables is None else []
    return results_from_bindings(variables, _bindings(document), notes=notes)


def results_from_bindings(
    variables: Sequence[str] | None, bindings: Sequence[Mapping[str, Any]], *, notes: Sequence[str] = ()
) -> SparqlResults:
    """Return the results that rows of RDF terms make.

    Args:
        variables: The names of the columns; None: those that the rows have, in the order in which they appear.
        bindings: The rows: for each name the term as SPARQL 1.1 JSON has it. A name is absent where it is unbound.
        notes: What was read with allowances already; other notes follow these.

    Raises:
        UnreadableOutput: A name has half a character.

    Example:
        >>> results = results_from_bindings(None, [{"n": {"type": "literal", "value": "Oslo"}}, {"n": "Bergen"}])
        >>> results.columns["n"].texts, results.notes
        (['Oslo', 'Bergen'], ('1 cell that is a bare value instead of an RDF term (first: "n" in row 2)',))
    """
    names = tuple(dict.fromkeys(names_in(bindings) if variables is None else variables))
    require_unicode(names)
    allowances: Allowances | None = None  # most results need none
    columns: dict[str, TermColumn] = {}
    faults: dict[str, str] = {}
    for name in names:
        try:
            columns[name] = _column(name, bindings)
        except (TypeError, KeyError, AttributeError, UnreadableOutput):
            allowances = allowances or Allowances()
            try:
                columns[name] = _column_read_leniently(name, bindings, allowances)
            except UnreadableOutput as fault:
                faults[name] = str(fault)
    return SparqlResults(
        columns,
        len(bindings),
        None,
        (*notes, *(allowances.notes if allowances else ())),
        faults,
        names if faults else None,
    )


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


def _variables(document: dict[str, Any]) -> list[str] | None:
    """Return the names in the head; None where there are none but the rows tell them."""
    head = document.get("head")
    if (head is None or isinstance(head, dict)) and "results" in document and (head or {}).get("vars") is None:
        return None
    if not isinstance(head, dict):
        raise UnreadableOutput('SPARQL results without a "head" object')
    variables = head.get("vars")
    if not isinstance(variables, list) or not all(isinstance(name, str) for name in variables):
        raise UnreadableOutput('SPARQL results whose "head" has no list "vars" of column names')
    return variables


def _bindings(document: dict[str, Any]) -> list[dict[str, Any]]:
    results = document.get("results")
    if not isinstance(results, dict) or not isinstance(results.get("bindings"), list):
        raise UnreadableOutput('SPARQL results without a list "bindings" in "results"')
    bindings: list[Any] = results["bindings"]
    if set(map(type, bindings)) <= {dict}:  # as all parsed JSON has it
        return bindings
    for row, binding in enumerate(bindings, start=1):
        if not isinstance(binding, dict):
            raise UnreadableOutput(f"SPARQL results whose row {row} is no object")
    return bindings


def _column(name: str, bindings: Sequence[Mapping[str, Any]]) -> TermColumn:
    """Read a column of plain terms quickly.

    Raises:
        TypeError, KeyError, AttributeError, UnreadableOutput: Where a cell is no plain term.
    """
    unbound = 0
    try:
        cells = list(map(itemgetter(name), bindings))
    except KeyError:
        cells = [binding.get(name, _NO_TERM) for binding in bindings]
        unbound = sum(map(is_, cells, repeat(_NO_TERM)))
    texts = list(map(_value_of, cells))
    kinds = set(map(_type_of, cells))
    joined = "\n".join(texts)
    marks = marks_of(joined)
    if not marks.is_ascii:
        _require_encodable(joined)
    keys = sum(map(len, cells))
    if "triple" in kinds or ("" in kinds and list(map(_type_of, cells)).count("") != unbound):
        raise TypeError
    if len(kinds) == 1 and keys == 2 * len(cells):  # nothing but type and value, as most columns
        (kind,) = kinds
        if not isinstance(kind, str):
            raise TypeError
        return TermColumn(texts, (kind, None, None), marks=marks)
    datatypes: list[Any] = list(map(dict.get, cells, repeat("datatype")))
    if len(kinds) == 1 and keys == 3 * len(cells) and None not in (found := set(datatypes)) and len(found) == 1:
        shape = (*kinds, *found, None)  # nothing but type, value and one datatype, as most columns of numbers
        _require_plain([shape], ())
        return TermColumn(texts, shape, marks=marks)
    other_keys = keys - 3 * len(cells) + datatypes.count(None)
    languages = list(map(dict.get, cells, repeat("xml:lang"))) if other_keys else [None] * len(cells)
    has_other_keys = other_keys > len(cells) - languages.count(None)
    distinct = kinds, set(datatypes), set(languages)
    if all(len(each) == 1 for each in distinct):
        (shape,) = zip(*distinct, strict=True)
        _require_plain([shape], cells if has_other_keys else ())
        return TermColumn(texts, shape, marks=marks)
    shapes: list[Shape] = list(zip(map(_type_of, cells), datatypes, languages, strict=True))
    known = dict(zip(shapes, shapes, strict=True))
    _require_plain(known, cells if has_other_keys else ())
    return TermColumn(texts, list(map(known.__getitem__, shapes)), marks=marks, known_shapes=known.keys())


def _require_plain(known: Iterable[Any], with_other_keys: Iterable[Mapping[str, Any]]) -> None:
    """Check the shapes of a column, and the terms that have keys beside type, value, datatype and ``xml:lang``.

    Raises:
        TypeError: Where a cell is no plain term.
    """
    may_have_language = False
    for kind, datatype, language in known:
        if not isinstance(kind, str) or not isinstance(datatype, str | None) or not isinstance(language, str | None):
            raise TypeError
        may_have_language |= datatype in LANGUAGE_DATATYPES and kind not in ("", "uri", "bnode")
    if may_have_language and not RARE_KEYS.isdisjoint(set[str]().union(*with_other_keys)):
        raise TypeError


def _column_read_leniently(name: str, bindings: Sequence[Mapping[str, Any]], allowances: Allowances) -> TermColumn:
    """Read a column cell by cell.

    Raises:
        UnreadableOutput: Where a cell cannot be read at all.
    """
    columns = {path: TermColumn(*cells) for path, cells in read_cells(name, bindings, allowances).items()}
    own = columns.pop("")
    return TermColumn(own.texts, own.shapes, columns)


def require_unicode(texts: Iterable[str]) -> None:
    """Refuse texts with lone surrogates, which are no characters.

    Raises:
        UnreadableOutput: A text has one.
    """
    joined = "".join(texts)
    if not joined.isascii():
        _require_encodable(joined)


def _require_encodable(joined: str) -> None:
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
    return relevant_rules([column.concerns for column in compared_columns(reference, actual, required)], values)


def compared_columns(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> list[TermColumn]:
    """Return the required and the actual columns, each with the parts of its triple terms."""
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    return [*columns, *(part for column in columns for part in column.parts.values())]


def plain_columns(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], values: ValueRules | None
) -> PlainColumns | None:
    """Return the required and the actual columns as plain cells; None where they cannot be compared so.

    With rules of values, different cells have different values; without, different texts may have the same value.
    """
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    plain: list[PlainCells] = []
    for column in columns:
        cells = column.plain if values is None else column.plain_by_value(values)
        if cells is None:
            return None
        plain.append(cells)
    if not are_comparable(plain):
        return None
    return plain[: len(required)], plain[len(required) :]
