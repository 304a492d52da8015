"""Turns each cell into an integer key: cells are equal if their keys are, in the verdict, the reason and the grade.

Numbers, booleans, times, durations, geometries and IRIs are compared by value, anything else by its text. A number
within the tolerance gets the key of the nearest number of the reference, so that equality is transitive. A value that
the reference lacks equals a text of the reference that is written in the same way.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, count, islice, repeat
from math import inf
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config import ToleranceConfig, ValuesConfig
from graphrag_eval_lc.matching.rows.graph_values import (
    GraphKeys,
    GraphReader,
    GraphRules,
    details_of_both,
    value_of_text,
)
from graphrag_eval_lc.matching.rows.numbers_and_times import (
    ABSOLUTE_TOLERANCE,
    NUMBER_KINDS,
    VALUE_READERS,
    WKT_LITERAL,
    XSD_BOOLEAN,
    XSD_STRING,
    Number,
    NumberKind,
    boolean_text,
    distance_of,
    numbers_are_equal,
    numbers_by_kind,
    values_by_text,
)
from graphrag_eval_lc.matching.rows.results import NO_LITERALS, Shape, SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.records import relative_tolerance

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How rows are compared: without duplicates, with duplicates, or in order too."""

Tolerance: TypeAlias = float | Mapping[str, float]
"""A relative tolerance, from 0 to below 1, for all numbers except integers; or one by datatype (float, double)."""


class Tolerances(NamedTuple):
    """The relative tolerances by kind of number, in the order of ``NumberKind``; between kinds, the looser counts."""

    integer: float = 0.0
    decimal: float = 0.0
    double: float = 0.0
    float: float = 0.0

    @classmethod
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> "Tolerances":
        """Return the tolerances for an argument; if ``strict``, only a single number counts."""
        if tolerance is not None and not isinstance(tolerance, Mapping):
            every = relative_tolerance(tolerance)
            return cls(0.0, every, every, every)
        shares = _checked("tolerance", ToleranceConfig, tolerance) if tolerance else _DEFAULT_TOLERANCES
        return cls() if strict else cls(double=shares.double, float=shares.float)


def value_rules(values: Mapping[str, bool] | ValuesConfig | None) -> ValuesConfig:
    """Return which kinds of terms are compared by value; raise a ValueError for an unknown name."""
    if isinstance(values, ValuesConfig):
        return values
    return _checked("values", ValuesConfig, values) if values else _DEFAULT_VALUES


Section = TypeVar("Section", bound=BaseModel)


def _checked(name: str, section: type[Section], given: Mapping[str, Any]) -> Section:
    """Return an argument as a section of the config; raise a one-line ValueError if it is wrong."""
    try:
        return section.model_validate(dict(given))
    except ValidationError as problem:
        first = problem.errors()[0]
        place, fields = ".".join([name, *map(str, first["loc"])]), ", ".join(section.model_fields)
        unknown = f"there is only {fields}" if first["type"] == "extra_forbidden" else first["msg"]
        raise ValueError(f"{place}: {unknown}") from None


_DEFAULT_TOLERANCES: Final = ToleranceConfig()
_DEFAULT_VALUES: Final = ValuesConfig()


class Rules(NamedTuple):
    """The options by which two results are compared; if ``strict``, as RDF terms and not only by value."""

    rows_as: RowsAs = "set"
    strict: bool = False
    tolerances: Tolerances = Tolerances.of(None)
    values: ValuesConfig = _DEFAULT_VALUES
    graph: GraphRules = GraphRules()


UNBOUND_KEY: Final = 0
BLANK_KEY: Final = 1


class KeyColumn(NamedTuple):
    """The keys of a column."""

    keys: list[int]
    blanks: Mapping[int, tuple[int, ...]]


class _NumberKeys:
    """The keys of the reference's numbers; actual numbers within the tolerance get the key of the nearest one."""

    def __init__(self, tolerances: Tolerances, new_key: Iterator[int]) -> None:
        self._tolerances, self._new_key = tolerances, new_key
        self._keys: dict[Number, int] = {}
        self._others: dict[Number, int] = {}
        self._of_kind: dict[NumberKind, list[Number]] = {}
        self._sorted: dict[NumberKind, list[Any]] = {}

    def add(self, numbers: Collection[Number], kind: NumberKind) -> list[int]:
        """Return new keys for numbers of the reference. Add all of them before the first call of ``find``."""
        self._of_kind.setdefault(kind, []).extend(numbers)
        return list(map(self._keys.setdefault, numbers, self._new_key))

    def find(
        self, numbers: Collection[Number], kind: NumberKind, written: Iterable[int | None] = repeat(None)
    ) -> list[int]:
        """Return the keys of actual numbers: that of the nearest reference number, else that of their text."""
        keys, unknown = self._keys, [number for number in numbers if number not in self._keys]
        if not unknown:
            return list(map(keys.__getitem__, numbers))
        if not self._sorted:
            self._sorted = {each: [*sorted(set(some) - {"NaN"}), inf] for each, some in self._of_kind.items()}
        if not _NOT_FINITE.isdisjoint(unknown):
            unknown = [number for number in unknown if number not in _NOT_FINITE]
        near = self._nearest(unknown, kind)
        others = list(map(self._others.setdefault, numbers, self._new_key))
        of_texts = [*islice(written, len(numbers))]
        if not near and len(unknown) == len(numbers) and not any(of_texts):  # as a rule, in a column nobody requires
            return others
        return [
            keys.get(near.get(number, number)) or key or other
            for number, key, other in zip(numbers, of_texts, others, strict=True)
        ]

    def _nearest(self, numbers: Sequence[Any], kind: NumberKind) -> dict[Number, Number]:
        """Return the nearest reference number for each number that has one within the tolerance."""
        nearest: dict[Number, Number] = {}
        least, lowest, highest = ABSOLUTE_TOLERANCE * _MARGIN, min(numbers, default=inf), max(numbers, default=-inf)
        for other_kind, others in self._sorted.items():
            relative = max(self._tolerances[kind], self._tolerances[other_kind]) if kind and other_kind else 0.0
            share = relative / (1 - relative) * _MARGIN  # of the actual number, which may be the smaller one
            ends = others[0], others[-min(2, len(others))], lowest, highest
            if not relative and {*map(type, ends)} == {float} and (highest + 1 < ends[0] or ends[1] + 1 < lowest):
                continue  # other numbers altogether
            for number in numbers:
                near, reach = [], max(least, share * abs(number)) if type(number) is float else inf
                if reach < inf:  # nearly always
                    at = bisect_left(others, number - reach)
                    if others[at] > number + reach:  # as a rule, or the number would be in the reference
                        continue
                    near = others[at : at + 1]
                if reach == inf or others[at + 1] <= number + reach:
                    at = bisect_left(others, number)
                    near = others[max(at - 1, 0) : at + 1]
                for other in near:
                    if numbers_are_equal(number, other, relative):
                        known = nearest.setdefault(number, other)
                        if known != other:
                            nearest[number] = min(known, other, key=lambda each: (distance_of(number, each), each))
        return nearest


_MARGIN: Final = 1 + 1e-9
"""A margin for rounding errors of floats."""

_NOT_FINITE: Final = frozenset({inf, -inf, "NaN"})


def is_simple_literal(shape: Shape) -> bool:
    """Return whether a term is a literal without datatype and language; its text may still be a number or a time."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in NO_LITERALS


class _TermType:
    """The terms of one shape: the functions that read their values, and the keys of their texts."""

    def __init__(self, shape: Shape, rules: Rules, texts: dict[Hashable, dict[str, int]]) -> None:
        self.kind, self.datatype, language = shape
        is_literal, by_value = self.kind not in NO_LITERALS, not rules.strict
        is_number = self.datatype in NUMBER_KINDS or (by_value and is_simple_literal(shape))
        self.has_numbers = is_literal and is_number
        switch, reader = VALUE_READERS.get(self.datatype, ("times", None))
        self.is_read = bool(
            reader and is_literal and by_value and getattr(rules.values, switch) and (self.datatype or not language)
        )
        self.has_values = self.has_numbers or self.is_read
        self._has_booleans = is_literal and self.datatype == XSD_BOOLEAN
        self._is_iri = self.kind == "uri" and by_value and rules.values.iri_case
        self._is_nfc = by_value and rules.values.nfc
        alike: Hashable = None
        if rules.strict:
            alike = ((language or "").lower() or (self.datatype or XSD_STRING, "")) if is_literal else self.kind
        self.keys_by_text = texts.setdefault(alike, {})
        self.keys: dict[str, int] = {}

    def unread(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that may have a value and were not read yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self.keys] if self.keys else [*dict.fromkeys(texts)]
        are_words = self.datatype is None and _FIRST_OF_VALUES.isdisjoint(map(_first_character, new))
        return [] if are_words else new

    def normal_forms(self, texts: Sequence[str]) -> dict[str, str]:
        """Return the normal form of each text that differs from it; texts of the same meaning have the same form."""
        if self._has_booleans:
            forms = {text: boolean_text(text) or text for text in texts}
        else:
            joined = "".join(texts) if self._is_nfc or self._is_iri else ""
            if joined.isascii() and not (self._is_iri and "%" in joined):  # nearly always
                return {}
            forms = {
                text: _ESCAPE.sub(lambda escape: escape[0].upper(), text) if self._is_iri else text for text in texts
            }
            forms = {text: normalize("NFC", form) if self._is_nfc else form for text, form in forms.items()}
        return {text: form for text, form in forms.items() if form != text}


_WITHOUT_TEXTS: Final = {"": UNBOUND_KEY, "bnode": BLANK_KEY}
"""The keys of cells whose text is ignored."""

_FIRST_OF_VALUES: Final = frozenset("-0123456789")
_first_character: Final = itemgetter(slice(1))
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")


_Cells: TypeAlias = Sequence[tuple[_TermType, Sequence[str], Sequence[int]]]
"""The types of terms in a column, each with its texts and rows."""

_NO_BLANKS: Final[Mapping[int, tuple[int, ...]]] = {}


class _Side(NamedTuple):
    """One of the two results: its columns, their structured values by row, and the numbers of its blank nodes.

    Blank nodes of the actual results have numbers below 0.
    """

    columns: Mapping[str, TermColumn]
    structures: Mapping[str, Mapping[int, Any]]
    is_reference: bool
    labels: dict[str, int]
    new_label: Iterator[int]


class Keys:
    """Two results to compare, and the keys of their cells, computed on demand."""

    def __init__(self, reference: SparqlResults, actual: SparqlResults, names: Sequence[str], rules: Rules) -> None:
        self.reference, self.actual, self.names, self.rules = reference, actual, names, rules
        self._new_key = count(BLANK_KEY + 1)
        self._texts: dict[Hashable, dict[str, int]] = {}
        self._types: dict[Shape, _TermType] = {}
        self._values: dict[Hashable, int] = {}
        self._columns: dict[str, KeyColumn] = {}
        self._details: frozenset[str] = frozenset()
        self._numbers, self._coordinates = (_NumberKeys(rules.tolerances, self._new_key) for _ in range(2))
        self.are_graphs = reference.is_graph and actual.is_graph  # their columns match by name only

    @cached_property
    def required(self) -> dict[str, KeyColumn]:
        """The keys of the required columns of the reference, by name."""
        side, _ = self._sides
        cells = {name: self._by_type(column) for name, column in side.columns.items()}
        for of, texts, _ in chain.from_iterable(cells.values()):
            if of.has_values:
                self._learn(of, texts, adds=True)  # first, so that texts with the same spelling get the same keys
        return {name: self._key_column(side, name, cells[name]) for name in cells}

    def column(self, name: str) -> KeyColumn:
        """Return the keys of a column of the actual results."""
        if name not in self._columns and self.required:
            self._columns[name] = self._key_column(self._sides[1], name, self._by_type(self.actual.columns[name]))
        return self._columns[name]

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        """Both sides with their structured values: those that were read, and those in untyped texts.

        Texts are read if either side has values of property graphs, or if no side has types.
        """
        sides = {name: self.reference.columns[name] for name in self.names}, self.actual.columns
        read = [value for side in sides for column in side.values() for value in column.structures.values()]
        are_untyped = self.reference.is_untyped and self.actual.is_untyped
        reads_texts = are_untyped or not all(isinstance(value, Triple) for value in read)
        found: tuple[dict[str, Mapping[int, Any]], ...] = ({}, {})
        for side, of_side in zip(sides, found, strict=True) if read or are_untyped else ():
            reader = GraphReader()
            for name, column in side.items():
                cells: dict[int, Any] = {}
                for shape, texts, rows in _by_shape(column) if reads_texts else ():
                    may_be = is_simple_literal(shape) or shape[1] == WKT_LITERAL
                    if may_be and _MAY_BE_STRUCTURE.search("\n".join(texts)):
                        values = {text: value_of_text(text, reader) for text in dict.fromkeys(texts)}
                        of_rows = ((row, values[text]) for row, text in zip(rows, texts, strict=True))
                        cells |= {row: value for row, value in of_rows if value is not None}
                of_side[name] = {**cells, **column.structures}
            reader.join_ends()
        if any(found):
            both = ([value for cells in of_side.values() for value in cells.values()] for of_side in found)
            self._details = details_of_both(*both)
        return _Side(sides[0], found[0], True, {}, count()), _Side(sides[1], found[1], False, {}, count(-1, -1))

    def _by_type(self, column: TermColumn) -> _Cells:
        """Return the types of terms in a column, each with its texts and rows."""
        cells = _by_shape(column)
        for shape, _, _ in cells:
            if shape not in self._types:
                self._types[shape] = _TermType(shape, self.rules, self._texts)
        return [(self._types[shape], texts, rows) for shape, texts, rows in cells]

    def _learn(self, of: _TermType, texts: Sequence[str], *, adds: bool) -> None:
        """Store the keys of texts that have a value: a new key, or that of an equal value or text of the reference."""
        new, by_text = of.unread(texts), {} if adds else of.keys_by_text
        for kind, numbers in numbers_by_kind(new, of.datatype).items() if of.has_numbers and new else ():
            values = numbers.values()
            found = (
                self._numbers.add(values, kind) if adds else self._numbers.find(values, kind, map(by_text.get, numbers))
            )
            of.keys.update(zip(numbers, found, strict=True))
        left = [text for text in new if text not in of.keys] if of.is_read else []
        read = values_by_text(left, of.datatype) if left else {}
        if of.datatype == WKT_LITERAL:
            keys_of = self._coordinates.add if adds else self._coordinates.find
            read = {text: (value[0], *keys_of(value[1], NumberKind.DOUBLE)) for text, value in read.items()}
        own = (key or next(self._new_key) for key in map(by_text.get, read))
        of.keys.update(zip(read, map(self._values.setdefault, read.values(), own), strict=True))
        if adds:
            learned = [text for text in new if text in of.keys]
            deque(map(of.keys_by_text.setdefault, learned, map(of.keys.__getitem__, learned)), maxlen=0)

    def _key_column(self, side: _Side, name: str, cells: _Cells) -> KeyColumn:
        structures = side.structures.get(name, {})
        blanks: dict[int, tuple[int, ...]] = {}
        keys = [UNBOUND_KEY] * len(side.columns[name].texts)
        for of, texts, rows in cells:
            if of.kind == "bnode":
                blanks |= zip(rows, zip(map(side.labels.setdefault, texts, side.new_label)), strict=True)
            found = self._keys_of(side, of, texts)
            if len(found) == len(keys):
                keys = found
                break
            for row, key in zip(rows, found, strict=True):
                keys[row] = key
        for row, value in structures.items():
            keys[row], blanks_of_cell = self._key_of_structure(side, value)
            if blanks_of_cell:
                blanks[row] = tuple(blanks_of_cell)
        return KeyColumn(keys, blanks or _NO_BLANKS)

    def _keys_of(self, side: _Side, of: _TermType, texts: Sequence[str]) -> list[int]:
        if of.kind in _WITHOUT_TEXTS:
            return [_WITHOUT_TEXTS[of.kind]] * len(texts)
        keys, by_text = of.keys, of.keys_by_text
        if of.has_values:
            with suppress(KeyError):
                return list(map(keys.__getitem__, texts))
            self._learn(of, texts, adds=side.is_reference)
            with suppress(KeyError):
                return list(map(keys.__getitem__, texts))
        for text, normal in of.normal_forms(texts).items():
            if text not in keys:
                keys[text] = by_text[normal] = by_text.get(normal) or by_text.get(text) or next(self._new_key)
                by_text.setdefault(text, keys[text])
        if not keys or keys.keys().isdisjoint(texts):
            return list(map(by_text.setdefault, texts, self._new_key))
        return [keys.get(text) or by_text.setdefault(text, next(self._new_key)) for text in texts]

    def _key_of_structure(self, side: _Side, value: Any) -> tuple[int, list[int]]:
        """Return the key of a structured value, and its blank nodes."""
        blanks: list[int] = []

        def key_of_part(part: Term | Triple) -> Hashable:
            if isinstance(part, Triple):
                return ("triple", *map(key_of_part, part))
            if part.shape[0] == "bnode":
                blanks.append(side.labels.setdefault(part.text, next(side.new_label)))
            [(of, texts, _)] = self._by_type(TermColumn([part.text], part.shape))
            return self._keys_of(side, of, texts)[0]

        is_term = isinstance(value, Term | Triple)
        key = key_of_part(value) if is_term else GraphKeys(self._details, self.rules.graph, key_of_part).key(value)
        return key if isinstance(key, int) else self._values.setdefault(key, next(self._new_key)), blanks


def _by_shape(column: TermColumn) -> list[tuple[Shape, Sequence[str], Sequence[int]]]:
    """Return the shapes of a column, each with its texts and rows."""
    if not isinstance(column.shapes, list):
        return [(column.shapes, column.texts, range(len(column.texts)))]
    rows_of: dict[Shape, list[int]] = {}
    for row, shape in enumerate(column.shapes):
        rows_of.setdefault(shape, []).append(row)
    return [(shape, [column.texts[row] for row in rows], rows) for shape, rows in rows_of.items()]


_MAY_BE_STRUCTURE: Final = re.compile(
    r"^(?:-?\d{4,9}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}:\d\d(?::|$)|-?P[-\dT]|-?\d+ days?,? |SRID=|POINT|[\[{(<])",
    re.M | re.I,
)
