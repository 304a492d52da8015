"""The results of queries as columns of terms, and the reader of SPARQL 1.1 JSON."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import itemgetter
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from graphrag_eval_lc.json_values import json_number
from graphrag_eval_lc.matching.outputs import UnreadableOutput, parsed_json
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD
from graphrag_eval_lc.texts import counted, plural

SPARQL_RESULTS: Final = "application/sparql-results+json"
"""The media type of SPARQL 1.1 JSON results."""

SPARQL_JSON: Final = "SPARQL JSON"
"""The form of results that follow the specification of SPARQL 1.1 JSON."""

Shape: TypeAlias = tuple[str, str | None, str | None]
"""Type (uri, literal, bnode, triple; empty if unbound), datatype and language tag of a term."""

UNBOUND_SHAPE: Final[Shape] = ("", None, None)
LITERAL_SHAPE: Final[Shape] = ("literal", None, None)
NO_LITERALS: Final = frozenset({"", "uri", "bnode", "triple"})


class Term(NamedTuple):
    """An RDF term, or an untyped value as its text."""

    text: str
    shape: Shape = LITERAL_SHAPE

    @property
    def readable(self) -> str:
        """The term for messages: a blank node with ``_:``, a literal in quotation marks."""
        kind = self.shape[0]
        if kind == "uri":
            return self.text
        return f"_:{self.text}" if kind == "bnode" else json.dumps(self.text, ensure_ascii=False)


class Triple(NamedTuple):
    """A triple term."""

    subject: "Term | Triple"
    predicate: "Term | Triple"
    object: "Term | Triple"

    @property
    def readable(self) -> str:
        """The triple in the syntax of N-Triples 1.2, but with IRIs without brackets."""
        return f"<<( {' '.join(part.readable for part in self)} )>>"


@dataclass(frozen=True, slots=True)
class Point:
    """A point: the number of its reference system, if it is known, and its coordinates, x or longitude first."""

    srid: int | None
    coordinates: tuple[float, ...]


UNBOUND: Final = Term("", UNBOUND_SHAPE)


def term_of_value(value: str | float | Decimal) -> Term:
    """Return a text, number or boolean as a term; only booleans and infinities get a datatype."""
    if isinstance(value, str):
        return Term(value)
    if isinstance(value, bool):
        return Term(str(value).lower(), ("literal", f"{XSD}boolean", None))
    number = value if isinstance(value, Decimal) else json_number(value)
    if isinstance(number, str):
        return Term(number.replace("Infinity", "INF"), ("literal", f"{XSD}double", None))
    return Term(str(number))


@dataclass(slots=True)
class TermColumn:
    """The terms of one column. It is not changed after it was read.

    Attributes:
        texts: The text of each cell.
        shapes: The shape of each cell or, in nearly all cases, the single shape of all cells.
        structures: By row: triple terms and values of a property graph; ``texts`` has a readable text for them.
    """

    texts: list[str]
    shapes: list[Shape] | Shape
    structures: Mapping[int, Any] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether all cells are IRIs, or all are literals of one type."""
        return not isinstance(self.shapes, list) and self.shapes[0] != "bnode" and not self.structures

    def kind(self, row: int) -> str:
        """Return the type of a cell; empty if it is unbound."""
        return self.shapes[row][0] if isinstance(self.shapes, list) else self.shapes[0]

    def is_iri(self, row: int) -> bool:
        """Return whether a cell is an IRI; in a form without types, whether its text can only be an IRI."""
        return self.kind(row) == "uri" or (self.kind(row) == "literal" and bool(_IRI.fullmatch(self.texts[row])))

    def readable(self, row: int) -> str | None:
        """Return the text of a cell, with ``_:`` before a blank node; None if it is unbound."""
        kind = self.kind(row)
        return None if not kind else f"_:{self.texts[row]}" if kind == "bnode" else self.texts[row]


@dataclass(frozen=True, slots=True)
class SparqlResults:
    """The results of a query, read and checked once for any number of comparisons.

    Attributes:
        columns: The columns by variable name, without those that cannot be read.
        row_count: The number of rows.
        boolean: The answer of an ASK query; None for other queries.
        notes: Phrases for messages on what was read although it deviates from the standard.
        faults: By column name: why the column cannot be read.
        form: The form of the output, such as "W3C CSV".
        is_untyped: Whether cells have no types in this form, so that IRIs and literals look the same.
        is_graph: Whether they are the triples of a graph: subject, predicate and object match by name only.
        has_end: Whether the form has an end mark, so that missing rows are noticed.
    """

    columns: dict[str, TermColumn]
    row_count: int
    boolean: bool | None = None
    notes: tuple[str, ...] = ()
    faults: dict[str, str] = field(default_factory=dict)
    form: str = SPARQL_JSON
    is_untyped: bool = False
    is_graph: bool = False
    has_end: bool = True

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all columns; unreadable ones come last."""
        return (*self.columns, *self.faults)

    @property
    def is_headless(self) -> bool:
        """Whether the columns are unknown, for lack of both rows and a header, as in ``[]``."""
        return not self.columns and not self.row_count and self.boolean is None and self.form != SPARQL_JSON

    def fault_of(self, name: str) -> str:
        """Return a phrase on why a column cannot be read."""
        return f"column `{name}` cannot be read: {self.faults[name]}"


ReadText = Callable[[str], SparqlResults]


def parse_sparql_results(output: Any) -> SparqlResults:
    """Read SPARQL 1.1 JSON of a SELECT or ASK query, as a text or parsed; raise UnreadableOutput for anything else.

    Cells that are nearly RDF terms are read with a note. If a column has any other cell, only its name is kept.
    """
    document = parsed_json(output) if isinstance(output, str) else output
    if not isinstance(document, Mapping):
        found = "nothing" if document is None else f"a {type(document).__name__}"
        raise UnreadableOutput(f"{found} instead of a JSON object with SPARQL results")
    results = sparql_object(document)
    if results is None:
        keys = ", ".join(map(str, document)).encode("ascii", "replace").decode()
        raise UnreadableOutput(f"a JSON object without SPARQL results (its keys: {keys or 'none':.120})")
    return results


def sparql_object(document: Mapping[Any, Any]) -> SparqlResults | None:
    """Return the results in SPARQL 1.1 JSON, even without a head or with a truth value as a text; None for others."""
    head, holder, form = document.get("head"), document.get("results"), SPARQL_JSON
    if "boolean" in document and ("head" in document or len(document) == 1):
        answer = {"true": True, "false": False}.get(str(document["boolean"]).lower())
        return None if answer is None else SparqlResults({}, 0, answer)
    if not isinstance(holder, Mapping) or "bindings" not in holder:
        holder, form = document, "bindings next to a head"
    bindings = holder.get("bindings")
    if not isinstance(bindings, list | tuple):
        return None
    if not all(issubclass(kind, dict) for kind in set(map(type, bindings))):
        raise UnreadableOutput("bindings that are not all objects")
    variables = head.get("vars") if isinstance(head, Mapping) else None
    if not isinstance(variables, list) or not set(map(type, variables)) <= {str}:
        if "head" not in document or bindings:
            if bindings and not any(bindings):
                raise UnreadableOutput("bindings without names and cells")
            variables, form = None, f"bindings without {'names in their' if 'head' in document else 'a'} head"
        elif variables is not None or not isinstance(head, Mapping | None):
            raise UnreadableOutput('SPARQL results whose "head" has no list "vars" of column names')
    results = results_from_bindings(variables, bindings)
    return results if form == SPARQL_JSON else replace(results, form=form)


def results_from_bindings(variables: Sequence[str] | None, bindings: Sequence[Mapping[str, Any]]) -> SparqlResults:
    """Return the results in bindings of SPARQL 1.1 JSON; without ``variables``, all names in the rows are columns."""
    if variables is None:
        variables = [name for binding in bindings for name in binding if isinstance(name, str)]
    require_unicode(variables)
    columns: dict[str, TermColumn] = {}
    faults: dict[str, str] = {}
    odd: list[str] = []
    notes: tuple[str, ...] = ()
    for name in dict.fromkeys(variables):
        try:
            cells: list[Any] = list(map(itemgetter(name), bindings))
        except KeyError:  # a row has an unbound cell
            cells = [binding.get(name) for binding in bindings]
        try:
            columns[name] = _plain_column(cells)
            continue
        except _NOT_PLAIN:
            terms: list[Term | Triple] = []
        try:
            terms.extend(map(term_of, cells))
            columns[name] = column_of(terms)
        except UnreadableOutput as fault:
            faults[name] = f"its cell in row {len(terms) + 1} {fault}" if len(terms) < len(cells) else str(fault)
            continue
        for row, cell in enumerate(cells, start=1):
            is_term = isinstance(cell, dict) and "type" in cell and isinstance(cell.get("value"), str | dict)
            odd += [] if is_term or cell is None else [f'"{name}" in row {row}']
    if odd:
        are_not = plural(len(odd), "is not an RDF term", "are not RDF terms")
        notes = (f'{counted(len(odd), "cell")} {are_not} with "type" and "value" (first: {odd[0]})',)
    return SparqlResults(columns, len(bindings), None, notes, faults)


def column_of(terms: Iterable[Term | Triple]) -> TermColumn:
    """Return terms as a column; equal shapes share one object, as tables may be large."""
    texts: list[str] = []
    shapes: list[Shape] = []
    structures: dict[int, Triple] = {}
    known: dict[Shape, Shape] = {}
    for row, term in enumerate(terms):
        if isinstance(term, Triple):
            structures[row], term = term, Term(term.readable, ("triple", None, None))
        texts.append(term.text)
        shapes.append(known.setdefault(term.shape, term.shape))
    require_unicode(texts)
    return TermColumn(texts, shapes[0] if len(known) == 1 else shapes, structures)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns; a repeated name, as after a join, gets a number."""
    found: dict[str, None] = {}
    for name in names:
        numbered = (f"{name} ({at})" for at in range(2, len(names) + 1))
        found[next(each for each in (name, *numbered) if each not in found)] = None
    return list(found)


def require_unicode(texts: Iterable[str]) -> None:
    """Raise UnreadableOutput if a text has a lone surrogate, which cannot be encoded."""
    joined = "\n".join(texts)
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            raise UnreadableOutput("a text with an unpaired surrogate") from None


_RARE_KEYS: Final = frozenset({"lang", "its:dir", "direction"})
_NOT_PLAIN: Final = (TypeError, KeyError, AttributeError, UnreadableOutput)
_TEXT: Final = (str, NoneType)
_FEW_CELLS: Final = 20


def _plain_column(cells: Sequence[Any]) -> TermColumn:
    """Read a column of plain terms, fast; raise ``_NOT_PLAIN`` if a cell is anything else."""
    are_alike = False  # apart from their values
    if len(cells) > _FEW_CELLS:
        with suppress(TypeError, KeyError, AttributeError):  # some cells are unbound, or have other keys
            keys = cells[0].keys() - {"value"}
            are_alike = len(set(map(len, cells))) == 1 and all(
                len(set(map(itemgetter(key), cells))) == 1 for key in keys
            )
    texts, shapes = [], []
    known: dict[Shape, Shape] = {}
    for cell in cells[:1] if are_alike else cells:
        text, shape = "", UNBOUND_SHAPE
        if cell is not None:
            text, shape = cell["value"], (cell["type"], cell.get("datatype"), cell.get("xml:lang"))
            if shape[0] in ("", "triple") or not _RARE_KEYS.isdisjoint(cell):
                raise TypeError
        texts.append(text)
        shapes.append(known.setdefault(shape, shape))  # one object for equal shapes, as tables may be large
    texts = list(map(itemgetter("value"), cells)) if are_alike else texts
    require_unicode(texts)
    for kind, datatype, language in known:
        if not isinstance(kind, str) or not isinstance(datatype, _TEXT) or not isinstance(language, _TEXT):
            raise TypeError
    return TermColumn(texts, shapes[0] if len(known) == 1 else shapes)


_DEEPEST: Final = 4  # levels of nested triple terms; bounded, as parts may hold the same object repeatedly
_PARTS: Final = (("subject", "s"), ("predicate", "p", "property"), ("object", "o"))
"""The keys of a triple's parts in RDF 1.2, RDF4J and old versions of Jena."""

# Only unmistakable schemes: "Oslo:Norway" is a text.
_IRI: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:)[^\s<>\"{}|\\^`]+")
_BLANK_NODE: Final = re.compile(r"_:\S+")


def term_of(cell: Any, depth: int = 0) -> Term | Triple:
    """Return the term in a cell, which may also be a bare value, lack a type, or have a number or boolean as value."""
    if isinstance(cell, str | int | float):
        cell = {"value": cell}
    if isinstance(cell, Term | Triple):
        return cell
    if not isinstance(cell, dict | None):
        found = "a list" if isinstance(cell, list | tuple) else f"a {type(cell).__name__}"
        raise UnreadableOutput(f"is {found} instead of an RDF term")
    if not cell or cell.get("value", "") is None:
        return UNBOUND
    for key in ("type", "datatype", "xml:lang", *_RARE_KEYS):
        if not isinstance(cell.get(key), _TEXT):
            raise UnreadableOutput(f'has a "{key}" that is not a text')
    value, kind, datatype = cell.get("value"), cell.get("type"), cell.get("datatype")
    if kind == "triple" or (not kind and isinstance(value, dict)):
        if not isinstance(value, dict) or depth >= _DEEPEST:
            raise UnreadableOutput("is a triple term without its parts, or nested too deeply")
        parts = []
        for keys in _PARTS:
            part = term_of(next((value[key] for key in keys if value.get(key) is not None), None), depth + 1)
            if part == UNBOUND:
                raise UnreadableOutput(f"is a triple term without {keys[0]}")
            parts.append(part)
        return Triple(*parts)
    if isinstance(value, int | float):
        value = term_of_value(value).text
    elif not isinstance(value, str):
        raise UnreadableOutput('has a "value" that is not a text')
    language, direction = cell.get("xml:lang") or cell.get("lang"), cell.get("its:dir") or cell.get("direction")
    if language and direction:
        language = f"{language}--{direction}"  # as N-Triples 1.2 has it: ar--rtl
    if kind or datatype or language:
        return Term(value, (kind or "literal", datatype, language))
    if _BLANK_NODE.fullmatch(value):
        return Term(value[2:], ("bnode", None, None))
    return Term(value, ("uri", None, None) if _IRI.fullmatch(value) else LITERAL_SHAPE)
