"""The value of each cell as an integer, its key: equal keys are equal cells, for verdict, reason and grade alike.

A cell counts by the value in its value space (number, boolean, time, duration, geometry, IRI), all else by its text. A
number within the tolerance has the key of the nearest number of the reference, so that equality is transitive. A value
that the reference does not have equals a text of the reference that is written like it.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
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
    distance_of,
    numbers_are_equal,
    numbers_by_kind,
)
from graphrag_eval_lc.matching.rows.results import NO_LITERALS, Shape, SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.records import relative_tolerance

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How rows count: without duplicates, with them, or with their order too."""

Tolerance: TypeAlias = float | Mapping[str, float]
"""A relative tolerance from 0 to below 1 for all numbers but integers, or those of ``float`` and ``double``."""


class Tolerances(NamedTuple):
    """The relative tolerances of the kinds of numbers, in the order of ``NumberKind``; of two the looser counts."""

    integer: float = 0.0
    decimal: float = 0.0
    double: float = 0.0
    float: float = 0.0

    @classmethod
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> "Tolerances":
        """Return the tolerances of an argument; if RDF terms are compared, only one for all numbers counts.

        Raises:
            ValueError: It is not from 0 to below 1, or for a datatype that has none.

        Example:
            >>> Tolerances.of({"float": 1e-4})
            Tolerances(integer=0.0, decimal=0.0, double=1e-12, float=0.0001)
        """
        if tolerance is not None and not isinstance(tolerance, Mapping):
            every = relative_tolerance(tolerance)
            return cls(0.0, every, every, every)
        shares = _checked("tolerance", ToleranceConfig, tolerance) if tolerance else _DEFAULT_TOLERANCES
        return cls() if strict else cls(double=shares.double, float=shares.float)


def value_rules(values: Mapping[str, bool] | ValuesConfig | None) -> ValuesConfig:
    """Return which terms are compared by value, of those switched on and off by name; a ValueError for other names."""
    if isinstance(values, ValuesConfig):
        return values
    return _checked("values", ValuesConfig, values) if values else _DEFAULT_VALUES


Section = TypeVar("Section", bound=BaseModel)


def _checked(name: str, section: type[Section], given: Mapping[str, Any]) -> Section:
    """Return an argument as a section of the config, or report in one line what is wrong with it."""
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
    """How two results are compared; if strictly, by RDF terms and not by values alone."""

    rows_as: RowsAs = "set"
    strict: bool = False
    tolerances: Tolerances = Tolerances.of(None)
    values: ValuesConfig = _DEFAULT_VALUES
    graph: GraphRules = GraphRules()


UNBOUND_KEY: Final = 0
BLANK_KEY: Final = 1


class KeyColumn(NamedTuple):
    """The keys of a column.

    Attributes:
        keys: One per row; equal keys are equal cells. A cell with blank nodes has the key of what else it has.
        blanks: The blank nodes of the cells that have some, in order, by numbers that count for each side.
    """

    keys: list[int]
    blanks: dict[int, tuple[int, ...]]


class _NumberKeys:
    """The keys of the reference's numbers, each of which is the key of the actual numbers that are near it, too."""

    def __init__(self, tolerances: Tolerances, new_key: Iterator[int]) -> None:
        self._tolerances, self._new_key = tolerances, new_key
        self._keys: dict[Number, int] = {}
        self._others: dict[Number, int] = {}
        self._of_kind: dict[NumberKind, list[Number]] = {}
        self._sorted: dict[NumberKind, list[Any]] = {}

    def add(self, numbers: Collection[Number], kind: NumberKind) -> list[int]:
        """Return the keys of numbers of the reference; all are added before any number is looked up."""
        self._of_kind.setdefault(kind, []).extend(numbers)
        return list(map(self._keys.setdefault, numbers, self._new_key))

    def find(
        self, numbers: Collection[Number], kind: NumberKind, written: Iterable[int | None] = repeat(None)
    ) -> list[int]:
        """Return the keys of actual numbers: of the nearest one within the tolerance, or else of how it is written."""
        keys, unknown = self._keys, [number for number in numbers if number not in self._keys]
        if not unknown:
            return list(map(keys.__getitem__, numbers))
        if not self._sorted:
            self._sorted = {each: [*sorted(set(some) - {"NaN"}), inf] for each, some in self._of_kind.items()}
        near = self._nearest([number for number in unknown if number not in _NOT_FINITE], kind)
        return [
            keys.get(near.get(number, number)) or key or self._others.setdefault(number, next(self._new_key))
            for number, key in zip(numbers, written, strict=False)
        ]

    def _nearest(self, numbers: Sequence[Any], kind: NumberKind) -> dict[Number, Number]:
        """Return the nearest number of the reference for those that have one within the tolerance."""
        nearest: dict[Number, Number] = {}
        least = ABSOLUTE_TOLERANCE * _MARGIN
        for other_kind, others in self._sorted.items():
            relative = max(self._tolerances[kind], self._tolerances[other_kind]) if kind and other_kind else 0.0
            share = relative / (1 - relative) * _MARGIN  # of the actual number, which may be the smaller one
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
"""For floats that are not exact."""

_NOT_FINITE: Final = frozenset({inf, -inf, "NaN"})


def is_simple_literal(shape: Shape) -> bool:
    """Return whether a term is a literal with neither datatype nor language, whose text may be a number or a time."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in NO_LITERALS


class _TermType:
    """The terms of one shape: how their values are read, and the keys of their texts.

    ``keys`` has the keys of texts that have a value, or that another form of a text equals. ``keys_by_text`` has those
    of all others, and of texts in which the reference writes values; all types whose texts may be equal share it.
    """

    def __init__(self, shape: Shape, rules: Rules, texts: dict[Hashable, dict[str, int]]) -> None:
        self.kind, self.datatype, language = shape
        is_literal, by_value = self.kind not in NO_LITERALS, not rules.strict
        self.is_iri = self.kind == "uri" and by_value and rules.values.iri_case
        self.has_numbers = is_literal and (self.datatype in NUMBER_KINDS or (by_value and is_simple_literal(shape)))
        switch, reader = VALUE_READERS.get(self.datatype, ("", None))
        is_read = not switch or (by_value and getattr(rules.values, switch) and (self.datatype or not language))
        self.read = reader if is_literal and is_read else None
        alike: Hashable = None
        if rules.strict:
            alike = ((language or "").lower() or (self.datatype or XSD_STRING, "")) if is_literal else self.kind
        self.keys_by_text = texts.setdefault(alike, {})
        self.keys: dict[str, int] = {}


_Cells: TypeAlias = Sequence[tuple[_TermType, Sequence[str], Sequence[int]]]
"""The types of terms in a column, each with its texts and rows."""

_WITHOUT_TEXTS: Final = {"": UNBOUND_KEY, "bnode": BLANK_KEY}
"""The keys of cells whose text does not count."""

_FIRST_OF_VALUES: Final = frozenset("-0123456789")
_first_character: Final = itemgetter(slice(1))
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")

_REFERENCE: Final = 0
_ACTUAL: Final = 1


class Keys:
    """The keys of two results over the required columns. An actual column is read when it is needed.

    Attributes:
        reference: The keys of the required columns of the reference, by name.

    Example:
        >>> five = SparqlResults({"n": TermColumn(["5"], ("literal", None, None))}, 1)
        >>> other = SparqlResults({"m": TermColumn(["5.0", "six"], ("literal", None, None))}, 2)
        >>> keys = Keys(five, other, ["n"], Rules())
        >>> keys.reference["n"].keys[0] == keys.actual("m").keys[0]
        True
    """

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        self._rules = rules
        self._columns = (reference.columns, actual.columns)
        self._new_key = count(BLANK_KEY + 1)
        self._texts: dict[Hashable, dict[str, int]] = {}
        self._types: dict[Shape, _TermType] = {}
        self._values: dict[Hashable, int] = {}
        self._numbers, self._coordinates = (_NumberKeys(rules.tolerances, self._new_key) for _ in range(2))
        self._labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        compared = {name: reference.columns[name] for name in required}
        are_untyped = reference.is_untyped and actual.is_untyped
        self._structures = _structures_of((compared, actual.columns), reads_texts=are_untyped)
        values = [[value for cells in side.values() for value in cells.values()] for side in self._structures]
        self._details = details_of_both(*values) if any(values) else frozenset()
        self._is_reference = True
        cells = {name: self._read(column) for name, column in compared.items()}  # before texts that are written alike
        self.reference = {name: self._key_column(_REFERENCE, name, cells[name]) for name in cells}
        self._actual: dict[str, KeyColumn] = {}
        self._is_reference = False

    def actual(self, name: str) -> KeyColumn:
        """Return the keys of a column of the actual results."""
        if name not in self._actual:
            cells = self._read(self._columns[_ACTUAL][name])
            self._actual[name] = self._key_column(_ACTUAL, name, cells)
        return self._actual[name]

    def _read(self, column: TermColumn) -> _Cells:
        """Return the cells of a column by their type, which has the keys of their values from now on."""
        cells = []
        for shape, texts, rows in _by_shape(column):
            term_type = self._types.get(shape)
            if term_type is None:
                term_type = self._types[shape] = _TermType(shape, self._rules, self._texts)
            if term_type.has_numbers or term_type.read is not None:
                self._read_values(term_type, texts)
            cells.append((term_type, texts, rows))
        return cells

    def _read_values(self, of: _TermType, texts: Sequence[str]) -> None:
        """Find the keys of those texts that have a value: of the value, or else of the text as the reference has it."""
        keys, keys_by_text, is_reference = of.keys, of.keys_by_text, self._is_reference
        new = [text for text in dict.fromkeys(texts) if text not in keys]
        if not new or (of.datatype is None and _FIRST_OF_VALUES.isdisjoint(map(_first_character, new))):
            return
        for kind, found in numbers_by_kind(new, of.datatype).items() if of.has_numbers else ():
            numbers = found.values()
            written = () if is_reference else map(keys_by_text.get, found)
            number_keys = (
                self._numbers.add(numbers, kind) if is_reference else self._numbers.find(numbers, kind, written)
            )
            keys.update(zip(found, number_keys, strict=True))
        for text in new if of.read else ():
            value = None if text in keys or not of.read else of.read(text)
            if value is not None:
                if of.datatype == WKT_LITERAL:
                    keys_of_coordinates = self._coordinates.add if is_reference else self._coordinates.find
                    value = value[0], *keys_of_coordinates(value[1], NumberKind.DOUBLE)
                known: dict[Any, int] = self._values
                if of.datatype == XSD_BOOLEAN:  # 1 is written true as well
                    known, value = keys_by_text, value[1]
                same_text = None if is_reference else keys_by_text.get(text)
                keys[text] = known.setdefault(value, same_text or next(self._new_key))
        for text in new if is_reference else ():
            if text in keys:
                keys_by_text.setdefault(text, keys[text])

    def _key_column(self, side: int, name: str, cells: _Cells) -> KeyColumn:
        """Return the keys of a column whose values have been read."""
        labels, structures = self._labels[side], self._structures[side].get(name)
        blanks: dict[int, tuple[int, ...]] = {}
        keys = [UNBOUND_KEY] * len(self._columns[side][name].texts) if structures or len(cells) != 1 else []
        for term_type, texts, rows in cells:
            if term_type.kind == "bnode":
                blanks |= {row: (labels.setdefault(text, len(labels)),) for row, text in zip(rows, texts, strict=True)}
            found = self._keys_of(term_type, texts)
            if not keys:
                return KeyColumn(found, blanks)
            for row, key in zip(rows, found, strict=True):
                keys[row] = key
        for row, value in structures.items() if structures else ():
            keys[row], blanks_of_cell = self._key_of_structure(value, labels)
            if blanks_of_cell:
                blanks[row] = tuple(blanks_of_cell)
        return KeyColumn(keys, blanks)

    def _keys_of(self, of: _TermType, texts: Sequence[str]) -> list[int]:
        """Return the keys of texts whose values have been read."""
        if of.kind in _WITHOUT_TEXTS:
            return [_WITHOUT_TEXTS[of.kind]] * len(texts)
        if of.keys:
            try:
                return list(map(of.keys.__getitem__, texts))
            except KeyError:
                pass  # some are texts
        joined = "\n".join(texts)
        is_normal = joined.isascii() or self._rules.strict or not self._rules.values.nfc
        has_escapes = of.is_iri and "%" in joined
        if is_normal and not has_escapes and (not of.keys or of.keys.keys().isdisjoint(texts)):
            return list(map(of.keys_by_text.setdefault, texts, self._new_key))
        for text in dict.fromkeys(texts):
            if text not in of.keys:
                normal = text if is_normal else normalize("NFC", text)
                if has_escapes:
                    normal = _ESCAPE.sub(lambda escape: escape[0].upper(), normal)
                key = of.keys_by_text.get(normal) or of.keys_by_text.get(text) or next(self._new_key)
                of.keys[text] = of.keys_by_text[normal] = key
                of.keys_by_text.setdefault(text, key)
        return list(map(of.keys.__getitem__, texts))

    def _key_of_structure(self, value: Any, labels: dict[str, int]) -> tuple[int, list[int]]:
        """Return the key of a value with parts, and its blank nodes."""
        blanks: list[int] = []

        def key_of_part(part: Term | Triple) -> Hashable:
            if isinstance(part, Triple):
                return ("triple", *map(key_of_part, part))
            if part.shape[0] == "bnode":
                blanks.append(labels.setdefault(part.text, len(labels)))
                return BLANK_KEY
            [(term_type, texts, _)] = self._read(TermColumn([part.text], part.shape))
            return self._keys_of(term_type, texts)[0]

        is_term = isinstance(value, Term | Triple)
        key = key_of_part(value) if is_term else GraphKeys(self._details, self._rules.graph, key_of_part).key(value)
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
    r"^(?:-?\d{4,9}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}:\d\d(?::|$)|-?P[-\dT]|-?\d+ days?, |SRID=|POINT|[\[{(<])",
    re.M | re.I,
)


def _structures_of(
    results: Sequence[Mapping[str, TermColumn]], *, reads_texts: bool
) -> list[dict[str, Mapping[int, Any]]]:
    """Return the values with parts by column and row, for each side: those read, and those that untyped texts write.

    Texts are read if either side has values of property graphs, or ``reads_texts`` says so.
    """
    structures = [value for side in results for column in side.values() for value in column.structures.values()]
    if not structures and not reads_texts:
        return [{}, {}]
    reads_texts = reads_texts or not all(isinstance(value, Triple) for value in structures)
    found: list[dict[str, Mapping[int, Any]]] = []
    for side in results:
        reader = GraphReader()
        of_side: dict[str, Mapping[int, Any]] = {}
        for name, column in side.items():
            cells: dict[int, Any] = {}
            for shape, texts, rows in _by_shape(column) if reads_texts else ():
                if (is_simple_literal(shape) or shape[1] == WKT_LITERAL) and _MAY_BE_STRUCTURE.search("\n".join(texts)):
                    values = {text: value_of_text(text, reader) for text in dict.fromkeys(texts)}
                    cells |= {
                        row: values[text] for row, text in zip(rows, texts, strict=True) if values[text] is not None
                    }
            of_side[name] = {**cells, **column.structures}
        reader.join_ends()
        found.append(of_side)
    return found
