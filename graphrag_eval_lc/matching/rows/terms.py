"""Reading the cells of a column one by one, where some are no plain RDF terms: what can be allowed, and what cannot."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.texts import counted

Shape: TypeAlias = tuple[str, str | None, str | None]
"""Type, datatype and language tag of a term: what there is beside its text."""

UNBOUND_SHAPE: Final[Shape] = ("", None, None)
"""The shape of a cell without a term; its text is empty."""

TRIPLE_SHAPE: Final[Shape] = ("triple", None, None)
"""The shape of a triple term; its text shows it to people, its parts are cells of their own."""

NO_LITERALS: Final = frozenset({"", "uri", "bnode", "triple"})
"""The types of all cells but literals; that of unbound cells is empty."""

DIRECTION_KEYS: Final = ("its:dir", "direction")
"""The keys of a base direction, as RDF 1.2 and as RDF/JS write it."""

RARE_KEYS: Final = frozenset({"lang", *DIRECTION_KEYS})
"""Keys that only some tools write, and that count."""

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LANGUAGE_DATATYPES: Final = frozenset({None, f"{_RDF}langString", f"{_RDF}dirLangString"})
"""The datatypes of texts with a language, which may stand beside the tag."""

DEEPEST_TRIPLE: Final = 20
"""Triple terms may be nested so deep."""

MOST_PATHS: Final = 300
"""A column may hold triple terms with so many different places for a part; each of them is a column of its own."""

_PARTS: Final = {
    "s": ("subject", "s"),
    "p": ("predicate", "p", "property"),
    "o": ("object", "o"),
}
"""The parts of a triple by the step that leads to them, under the keys of RDF 1.2, of RDF4J and of old Jena."""

# With a scheme that leaves no doubt; "Oslo:Norway" is a text.
_IRI: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:)[^\s<>\"{}|\\^`]+")
_BLANK_NODE: Final = re.compile(r"_:\S+")


class Term(NamedTuple):
    """A cell that has been read.

    Attributes:
        text: Its text; for people if it is a triple.
        shape: What there is beside the text.
        parts: The parts of a triple, and theirs, by the steps that lead to them: ``s``, ``p``, ``o``, ``os``.
    """

    text: str
    shape: Shape
    parts: tuple[tuple[str, "Term"], ...] = ()


class Cells(NamedTuple):
    """The texts and shapes of a column's cells."""

    texts: list[str]
    shapes: list[Shape]


UNBOUND: Final = Term("", UNBOUND_SHAPE)


class Allowances:
    """Counts what was read although it is not as the standard has it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], tuple[str, int]] = {}

    def add(self, about: tuple[str, str], name: str, row: int) -> None:
        """Count one more cell, of a column and row (from 0); ``about`` says it of one cell, and of several."""
        self._counts[about] += 1
        self._first.setdefault(about, (name, row))

    def update(self, other: "Allowances") -> None:
        """Count all that another one has counted."""
        self._counts.update(other._counts)
        self._first = other._first | self._first

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a phrase for each kind of allowance."""
        places = {about: f'"{name}" in row {row + 1}' for about, (name, row) in self._first.items()}
        return tuple(f"{counted(number, *about)} (first: {places[about]})" for about, number in self._counts.items())


_UNTYPED: Final = ('cell without a "type"', 'cells without a "type"')
_NO_TEXT: Final = (
    'cell whose "value" is a number or boolean instead of a text',
    'cells whose "value" is a number or boolean instead of a text',
)
_BARE: Final = ("cell that is a bare value instead of an RDF term", "cells that are bare values instead of RDF terms")
_EMPTY: Final = ("cell that is an empty object, read as unbound", "cells that are empty objects, read as unbound")


def read_cells(name: str, bindings: Iterable[Mapping[str, Any]], allowances: Allowances) -> dict[str, Cells]:
    """Read a column leniently.

    Args:
        name: The column.
        bindings: The rows.
        allowances: Counts what was allowed, if the column can be read.

    Returns:
        The cells of the column under ``""``, and those of the parts of its triple terms by the steps that lead to them,
        in the order of their names. A part is unbound in rows that do not have it.

    Raises:
        UnreadableOutput: A cell is no RDF term, nor anything that can be read as one.

    Example:
        >>> read_cells("n", [{"n": {"value": 5}}, {"n": None}], Allowances())[""].texts
        ['5', '']
    """
    reader = _Reader(name)
    terms: list[Term] = []
    parts: dict[str, dict[int, Term]] = {}
    for row, binding in enumerate(bindings):
        try:
            term = reader.term_of(binding.get(name), row)
        except UnreadableOutput as fault:
            raise UnreadableOutput(f"its cell in row {row + 1} {fault}") from None
        terms.append(term)
        for path, part in term.parts:
            parts.setdefault(path, {})[row] = part
        if len(parts) > MOST_PATHS:
            raise UnreadableOutput(f"its triple terms are nested in too many ways, from row {row + 1} on")
    allowances.update(reader.allowances)
    rows = range(len(terms))
    return {
        "": _cells_of(terms),
        **{path: _cells_of([parts[path].get(row, UNBOUND) for row in rows]) for path in sorted(parts)},
    }


def _cells_of(terms: Sequence[Term]) -> Cells:
    return Cells([term.text for term in terms], [term.shape for term in terms])


class _Reader:
    """Reads the cells of one column."""

    def __init__(self, name: str) -> None:
        self.allowances = Allowances()
        self._name = name
        self._row = 0

    def term_of(self, cell: Any, row: int) -> Term:
        """Read the cell of a row, counted from 0."""
        self._row = row
        return self.term(cell, "")

    def term(self, cell: Any, path: str) -> Term:
        """Read a cell, or a part of a triple; the path leads there."""
        if cell is None:
            return UNBOUND
        if isinstance(cell, str | int | float):
            self._allow(_BARE)
            return _guessed(_text_of(cell))
        if not isinstance(cell, dict):
            raise UnreadableOutput(f"is {_kind_of(cell)} instead of an RDF term")
        if not cell:
            self._allow(_EMPTY)
            return UNBOUND
        kind = self._kind(cell)
        value = cell.get("value")
        if value is None and "value" in cell:
            return UNBOUND
        if kind == "triple" or (kind is None and isinstance(value, dict)):
            if kind is None:
                self._allow(_UNTYPED)
            return self._triple(value, path)
        if isinstance(value, int | float):
            self._allow(_NO_TEXT)
        elif not isinstance(value, str):
            raise UnreadableOutput('has no text as "value"')
        text = _text_of(value)
        if kind is not None and len(cell) == 2:  # nothing but type and value
            return Term(text, (kind, None, None))
        datatype, language = _text_under("datatype", cell), _language(cell)
        if kind is not None:
            return Term(text, (kind, datatype, language))
        self._allow(_UNTYPED)
        return Term(text, ("literal", datatype, language)) if datatype or language else _guessed(text)

    def _kind(self, cell: dict[Any, Any]) -> str | None:
        """Return the type of a cell; None where it says none."""
        kind = cell.get("type")
        if kind is not None and not isinstance(kind, str):
            raise UnreadableOutput('has a "type" that is no text')
        return kind or None

    def _triple(self, value: Any, path: str) -> Term:
        if len(path) >= DEEPEST_TRIPLE:
            raise UnreadableOutput(f"has triple terms that are nested more than {DEEPEST_TRIPLE} deep")
        if not isinstance(value, dict):
            raise UnreadableOutput("is a triple term without its parts")
        parts: list[tuple[str, Term]] = []
        shown: list[str] = []
        for step, keys in _PARTS.items():
            part = self.term(next((value[key] for key in keys if value.get(key) is not None), None), path + step)
            if part.shape == UNBOUND_SHAPE:
                raise UnreadableOutput(f"is a triple term without {keys[0]}")
            parts += [(path + step, part), *part.parts]
            shown.append(_shown(part))
            if len(parts) > MOST_PATHS:  # at once, as parts may hold the same object again and again
                raise UnreadableOutput("is a triple term of too many parts")
        return Term(f"<<( {' '.join(shown)} )>>", TRIPLE_SHAPE, tuple(parts))

    def _allow(self, about: tuple[str, str]) -> None:
        self.allowances.add(about, self._name, self._row)


def _guessed(text: str) -> Term:
    """Return the term that a text without a type is: an IRI or a blank node if it looks like one, else a literal.

    Both are compared by their text alike; but a blank node must be renamed, and an IRI is found as one.
    """
    if _BLANK_NODE.fullmatch(text):
        return Term(text[2:], ("bnode", None, None))
    return Term(text, ("uri" if _IRI.fullmatch(text) else "literal", None, None))


def _text_of(value: str | float) -> str:
    """Return a text, or a number or boolean as JSON writes it."""
    if isinstance(value, str):
        return _unicode(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    try:
        return json.dumps(value)
    except ValueError:
        raise UnreadableOutput("is a number of too many digits") from None


def _text_under(key: str, cell: dict[Any, Any]) -> str | None:
    text = cell.get(key)
    if text is None or isinstance(text, str):
        return None if text is None else _unicode(text)
    raise UnreadableOutput(f'has a "{key}" that is no text')


def _language(cell: dict[Any, Any]) -> str | None:
    """Return the language tag, with the base direction as N-Triples writes it: ``ar--rtl``."""
    language = _text_under("xml:lang", cell)
    if language is None:
        language = _text_under("lang", cell)
    if not language:
        return language
    direction = next(filter(None, (_text_under(key, cell) for key in DIRECTION_KEYS)), None)
    return f"{language}--{direction}" if direction else language


def _unicode(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableOutput("has half a character (a lone surrogate)") from None
    return text


def _kind_of(cell: Any) -> str:
    return "a list" if isinstance(cell, list | tuple) else f"a {type(cell).__name__}"


def _shown(part: Term) -> str:
    """Return a part of a triple for people: texts in quotes, as they may hold spaces."""
    kind = part.shape[0]
    if kind in ("uri", "triple"):
        return part.text
    return f"_:{part.text}" if kind == "bnode" else json.dumps(part.text, ensure_ascii=False)


def names_in(bindings: Iterable[Mapping[Any, Any]]) -> Iterator[str]:
    """Yield the names of the columns that rows have, in the order in which they appear."""
    for name in dict.fromkeys(name for binding in bindings for name in binding):
        if isinstance(name, str):
            yield name
