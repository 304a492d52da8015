"""Results of queries as columns of terms, and reading SPARQL 1.1 JSON into them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.texts import counted

SPARQL_RESULTS: Final = "application/sparql-results+json"
"""The media type of SPARQL 1.1 JSON results."""

SPARQL_JSON: Final = "SPARQL JSON"
"""The form of results that are SPARQL 1.1 JSON as it is specified."""

Shape: TypeAlias = tuple[str, str | None, str | None]
"""Type (uri, literal, bnode, triple; empty if unbound), datatype and language tag of a term."""

UNBOUND_SHAPE: Final[Shape] = ("", None, None)
TRIPLE_SHAPE: Final[Shape] = ("triple", None, None)
LITERAL_SHAPE: Final[Shape] = ("literal", None, None)
NO_LITERALS: Final = frozenset({"", "uri", "bnode", "triple"})


class Term(NamedTuple):
    """An RDF term, or an untyped value as its text."""

    text: str
    shape: Shape = LITERAL_SHAPE

    @property
    def readable(self) -> str:
        """The term for people: a blank node after ``_:``, a literal in quotes, as it may have spaces."""
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
        """The triple as N-Triples 1.2 has it, but IRIs without brackets."""
        return f"<<( {' '.join(part.readable for part in self)} )>>"


UNBOUND: Final = Term("", UNBOUND_SHAPE)


@dataclass(slots=True)
class TermColumn:
    """The terms of one column; it is not changed once it is read.

    Attributes:
        texts: The text of each cell.
        shapes: The shape of each cell, or the one of all cells, as nearly always.
        structures: The cells that have parts, by row: triple terms and values of a property graph (see
            ``graph_values``). Their text shows them to people.
    """

    texts: list[str]
    shapes: list[Shape] | Shape
    structures: Mapping[int, Any] = field(default_factory=dict)

    def shape(self, row: int) -> Shape:
        """Return the shape of a cell."""
        return self.shapes[row] if isinstance(self.shapes, list) else self.shapes

    def kind(self, row: int) -> str:
        """Return the type of a cell; empty if it is unbound."""
        return self.shape(row)[0]

    def readable(self, row: int) -> str | None:
        """Return the text of a cell, with ``_:`` before a blank node; None if it is unbound."""
        kind = self.kind(row)
        return None if not kind else f"_:{self.texts[row]}" if kind == "bnode" else self.texts[row]


@dataclass(frozen=True, slots=True)
class SparqlResults:
    """The outcome of a query, read and checked once, for any number of comparisons.

    Attributes:
        columns: The columns by the name of their variable, without those that cannot be read.
        row_count: Number of rows.
        boolean: The answer of an ASK query; None for all else.
        notes: What was read although it is not as the standard has it: phrases for people.
        faults: Why a column cannot be read, by its name.
        head: The names of all columns, if some cannot be read; None: those of ``columns``.
        form: What they were read from, such as "W3C CSV".
        is_untyped: Whether that form has texts without types, so that an IRI cannot be told from a literal.
        is_graph: Whether they are a graph: subject, predicate and object of its triples, which match by name only.
    """

    columns: dict[str, TermColumn]
    row_count: int
    boolean: bool | None = None
    notes: tuple[str, ...] = ()
    faults: dict[str, str] = field(default_factory=dict)
    head: tuple[str, ...] | None = None
    form: str = SPARQL_JSON
    is_untyped: bool = False
    is_graph: bool = False

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
    """Read the results of a SELECT or ASK query: SPARQL 1.1 Query Results JSON, as a text or parsed already.

    A binding of a variable that the head does not name is left out. Cells that are nearly RDF terms are read, with a
    note; a column with a cell that cannot be read is kept by its name alone.

    Raises:
        UnreadableOutput: For everything else, such as the Turtle of a DESCRIBE query; nothing else is raised.

    Example:
        >>> results = parse_sparql_results('{"head": {"vars": ["n"]}, "results": {"bindings": [{}]}}')
        >>> results.variables, results.row_count
        (('n',), 1)
    """
    document = _json(output) if isinstance(output, str) else output
    if not isinstance(document, dict):
        found = "nothing" if document is None else f"a {type(document).__name__}"
        raise UnreadableOutput(f"{found} instead of a JSON object with SPARQL results")
    if "boolean" in document:
        answer = str(document["boolean"]).lower() if isinstance(document["boolean"], bool | str) else ""
        if answer not in ("true", "false"):
            raise UnreadableOutput('the "boolean" of these ASK results is neither true nor false')
        return SparqlResults({}, 0, answer == "true")
    if "head" not in document and "results" not in document:
        keys = ", ".join(key[:30].encode("ascii", "replace").decode() for key in document if isinstance(key, str))
        found = f"its keys are {keys:.120}" if keys else "it is empty"
        raise UnreadableOutput(f"a JSON object without SPARQL results ({found})")
    head, results = document.get("head"), document.get("results")
    if not isinstance(head, dict) and (head is not None or results is None):
        raise UnreadableOutput('SPARQL results without a "head" object')
    variables = None if head is None else head.get("vars")
    notes: tuple[str, ...] = ()
    if variables is None and results is not None:
        notes = ('there is no list "vars" in a "head", so the columns are those of the rows',)
    elif not isinstance(variables, list) or not set(map(type, variables)) <= {str}:
        raise UnreadableOutput('SPARQL results whose "head" has no list "vars" of column names')
    bindings = results.get("bindings") if isinstance(results, dict) else None
    if not isinstance(bindings, list):
        raise UnreadableOutput('SPARQL results without a list "bindings" in "results"')
    for at, binding in enumerate(bindings, 1):
        if not isinstance(binding, dict):
            raise UnreadableOutput(f"SPARQL results whose row {at} is no object")
    return results_from_bindings(variables, bindings, notes=notes)


def _json(text: str) -> Any:
    try:
        return parse_json(text, allow_nan=False)
    except RecursionError:
        raise UnreadableOutput("JSON that is nested too deeply") from None
    except ValueError as error:
        shown = " ".join(text[:60].split()).encode("ascii", "replace").decode() or "an empty text"
        raise UnreadableOutput(f"no JSON ({error}): {shown}") from None


def results_from_bindings(
    variables: Sequence[str] | None, bindings: Sequence[Mapping[str, Any]], *, notes: Sequence[str] = ()
) -> SparqlResults:
    """Return the results of rows of RDF terms as SPARQL 1.1 JSON has them; without variables, all that the rows have.

    Raises:
        UnreadableOutput: A name has half a character.

    Example:
        >>> results = results_from_bindings(None, [{"n": {"type": "literal", "value": "Oslo"}}, {"n": "Bergen"}])
        >>> results.columns["n"].texts, results.notes
        (['Oslo', 'Bergen'], ('1 cell with a bare value instead of an RDF term (first: "n" in row 2)',))
    """
    if variables is None:
        variables = [name for binding in bindings for name in binding if isinstance(name, str)]
    names = tuple(dict.fromkeys(variables))
    _require_unicode(names)
    columns: dict[str, TermColumn] = {}
    faults: dict[str, str] = {}
    allowed: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        try:
            columns[name] = _plain_column([binding.get(name) for binding in bindings])
        except _NOT_PLAIN:
            reader = _LenientReader()
            try:
                columns[name] = reader.column(name, bindings)
            except UnreadableOutput as fault:
                faults[name] = str(fault)
                continue
            for about, rows in reader.allowed.items():
                allowed.setdefault(about, []).extend((name, row) for row in rows)
    said = [
        f'{counted(len(cells), "cell")} {about} (first: "{cells[0][0]}" in row {cells[0][1] + 1})'
        for about, cells in allowed.items()
    ]
    return SparqlResults(columns, len(bindings), None, (*notes, *said), faults, names if faults else None)


def _require_unicode(texts: Iterable[str]) -> None:
    joined = "\n".join(texts)
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            raise UnreadableOutput("SPARQL results with half a character (a lone surrogate)") from None


_RARE_KEYS: Final = frozenset({"lang", "its:dir", "direction"})
_NOT_PLAIN: Final = (TypeError, KeyError, AttributeError, UnreadableOutput)
_TEXT: Final = (str, NoneType)
_FEW_CELLS: Final = 20


def _plain_column(cells: Sequence[Any]) -> TermColumn:
    """Read a column of plain terms quickly; raise ``_NOT_PLAIN`` if a cell is none."""
    if len(cells) > _FEW_CELLS and _are_alike(cells):
        texts = [cell["value"] for cell in cells]
        _require_unicode(texts)
        return TermColumn(texts, _plain_column(cells[:1]).shapes)
    texts = []
    shapes: list[Shape] = []
    known: dict[Shape, Shape] = {UNBOUND_SHAPE: UNBOUND_SHAPE}
    for cell in cells:
        if cell is None:
            texts.append("")
            shapes.append(UNBOUND_SHAPE)
            continue
        kind, datatype, language = cell["type"], None, None
        if len(cell) > len(("type", "value")):
            datatype, language = cell.get("datatype"), cell.get("xml:lang")
            if not _RARE_KEYS.isdisjoint(cell):
                raise TypeError
        if not kind or kind == "triple":
            raise TypeError
        texts.append(cell["value"])
        shape = (kind, datatype, language)
        shapes.append(known.setdefault(shape, shape))  # one object for equal shapes, as tables may be large
    _require_unicode(texts)
    for kind, datatype, language in known:
        if not isinstance(kind, str) or not isinstance(datatype, _TEXT) or not isinstance(language, _TEXT):
            raise TypeError
    return TermColumn(texts, shapes[0] if shapes and shapes.count(shapes[0]) == len(shapes) else shapes)


def _are_alike(cells: Sequence[Any]) -> bool:
    """Return whether all cells have the same keys and, but for their value, the same under each."""
    first = cells[0]
    if set(map(type, cells)) != {dict} or set(map(len, cells)) != {len(first)}:
        return False
    return all(set(map(dict.get, cells, repeat(key))) == {first[key]} for key in first if key != "value")


_MOST_PARTS: Final = 60  # of one triple term, with those of nested ones
_PARTS: Final = (("subject", "s"), ("predicate", "p", "property"), ("object", "o"))
"""The keys of a triple's parts as RDF 1.2, RDF4J and old Jena write them."""

# With a scheme that leaves no doubt; "Oslo:Norway" is a text.
_IRI: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:)[^\s<>\"{}|\\^`]+")
_BLANK_NODE: Final = re.compile(r"_:\S+")


class _LenientReader:
    """Reads the cells of a column one by one, and keeps what it allows in which rows."""

    def __init__(self) -> None:
        self.allowed: dict[str, list[int]] = {}
        self._row = self._parts_left = 0

    def column(self, name: str, bindings: Iterable[Mapping[str, Any]]) -> TermColumn:
        terms: list[Term] = []
        structures: dict[int, Triple] = {}
        for self._row, binding in enumerate(bindings):
            self._parts_left = _MOST_PARTS
            try:
                term = self._term(binding.get(name))
            except UnreadableOutput as fault:
                raise UnreadableOutput(f"its cell in row {self._row + 1} {fault}") from None
            if isinstance(term, Triple):
                structures[self._row] = term
                term = Term(term.readable, TRIPLE_SHAPE)
            terms.append(term)
        return TermColumn([term.text for term in terms], [term.shape for term in terms], structures)

    def _allow(self, about: str) -> None:
        self.allowed.setdefault(about, []).append(self._row)

    def _term(self, cell: Any) -> Term | Triple:
        if isinstance(cell, str | int | float):
            self._allow("with a bare value instead of an RDF term")
            return _guessed(_text_of(cell))
        if not isinstance(cell, dict | None):
            found = "a list" if isinstance(cell, list | tuple) else f"a {type(cell).__name__}"
            raise UnreadableOutput(f"is {found} instead of an RDF term")
        if cell == {}:
            self._allow("with an empty object, read as unbound")
        if not cell or cell.get("value", "") is None:
            return UNBOUND
        for key in ("type", "datatype", "xml:lang", "lang", "its:dir", "direction"):
            if not isinstance(cell.get(key), _TEXT):
                raise UnreadableOutput(f'has a "{key}" that is no text')
            _text_of(cell.get(key) or "")
        value, kind, datatype = cell.get("value"), cell.get("type"), cell.get("datatype")
        if not kind:
            self._allow('without a "type"')
        if kind == "triple" or (not kind and isinstance(value, dict)):
            return self._triple(value)
        if isinstance(value, int | float):
            self._allow('with a number or boolean instead of a text as "value"')
        elif not isinstance(value, str):
            raise UnreadableOutput('has no text as "value"')
        language = cell.get("xml:lang") or cell.get("lang")
        direction = cell.get("its:dir") or cell.get("direction")
        if language and direction:
            language = f"{language}--{direction}"  # as N-Triples 1.2 has it: ar--rtl
        if not kind and not datatype and not language:
            return _guessed(_text_of(value))
        return Term(_text_of(value), (kind or "literal", datatype, language))

    def _triple(self, value: Any) -> Triple:
        if not isinstance(value, dict):
            raise UnreadableOutput("is a triple term without its parts")
        self._parts_left -= len(_PARTS)
        if self._parts_left < 0:  # parts may hold the same object again and again
            raise UnreadableOutput("is a triple term of too many parts")
        parts = []
        for keys in _PARTS:
            part = self._term(next((value[key] for key in keys if value.get(key) is not None), None))
            if part == UNBOUND:
                raise UnreadableOutput(f"is a triple term without {keys[0]}")
            parts.append(part)
        return Triple(*parts)


def _guessed(text: str) -> Term:
    """Return the term of a text without a type: an IRI or a blank node if it looks like one, else a literal."""
    if _BLANK_NODE.fullmatch(text):
        return Term(text[2:], ("bnode", None, None))
    return Term(text, ("uri", None, None) if _IRI.fullmatch(text) else LITERAL_SHAPE)


def _text_of(value: str | float) -> str:
    """Return a text, or a number or boolean as JSON or XSD write it."""
    try:
        text = value if isinstance(value, str) else json.dumps(value).replace("Infinity", "INF")
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableOutput("has half a character (a lone surrogate)") from None
    except ValueError:
        raise UnreadableOutput("is a number of too many digits") from None
    return text
