"""The value of each cell as an integer, its key: equal keys are equal cells, for verdict, reason and grade alike.

A cell counts by the value in its value space (number, boolean, time, duration, geometry, IRI), all else by its text. A
number within the tolerance has the key of the nearest number of the reference, so that equality is transitive. A value
that the reference does not have equals a text of the reference that is written like it.
"""

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
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
    NUMBER_KINDS,
    VALUE_READERS,
    WKT_LITERAL,
    XSD_BOOLEAN,
    XSD_STRING,
    Number,
    NumberKind,
    distance_of,
    number_from,
    numbers_are_equal,
    numbers_by_kind,
    relative_difference,
)
from graphrag_eval_lc.matching.rows.results import NO_LITERALS, Shape, SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.records import relative_tolerance

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How rows count: without duplicates, with them, or with their order too."""

Tolerance: TypeAlias = float | Mapping[str, float]
"""A relative tolerance from 0 to below 1 for all numbers but integers, or those of ``float`` and ``double``."""


Section = TypeVar("Section", bound=BaseModel)


def _checked(name: str, section: type[Section], given: Mapping[str, Any]) -> Section:
    """Return what a caller says as a section of the config, or say in one line what is wrong with it."""
    try:
        return section.model_validate(dict(given))
    except ValidationError as problem:
        first = problem.errors()[0]
        place, fields = ".".join([name, *map(str, first["loc"])]), ", ".join(section.model_fields)
        unknown = f"there is only {fields}" if first["type"] == "extra_forbidden" else first["msg"]
        raise ValueError(f"{place}: {unknown}") from None


class Tolerances(NamedTuple):
    """The relative tolerances of the kinds of numbers, in the order of ``NumberKind``; of two the looser counts."""

    integer: float = 0.0
    decimal: float = 0.0
    double: float = 0.0
    float: float = 0.0

    @classmethod
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> "Tolerances":
        """Return the tolerances from what a caller says; if RDF terms are compared, only one for all numbers counts.

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


_DEFAULT_TOLERANCES: Final = ToleranceConfig()


class ValueRules(ValuesConfig):
    """Which terms are compared by what they mean."""

    @classmethod
    def of(cls, values: Mapping[str, bool] | ValuesConfig | None) -> ValuesConfig:
        """Return the rules of a config, or those switched on and off by name; a ValueError for any other name."""
        if isinstance(values, ValuesConfig):
            return values
        return _checked("values", cls, values) if values else _DEFAULT_VALUES


_DEFAULT_VALUES: Final = ValueRules()


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
    """The keys of the reference's numbers, which others that are near them have, too."""

    def __init__(self, tolerances: Tolerances, new_key: Iterator[int]) -> None:
        self.is_reference = True
        self._tolerances, self._new_key = tolerances, new_key
        self._keys: dict[Number, int] = {}
        self._others: dict[Number, int] = {}
        self._of_kind: dict[NumberKind, set[Number]] = {}
        self._sorted: dict[NumberKind, list[Any]] = {}

    def keys_of(
        self, numbers: Sequence[Number], kind: NumberKind, written: Iterable[int | None] = repeat(None)
    ) -> list[int]:
        """Return keys; of what is not of the reference those of its nearest numbers, or else of how it is written."""
        if self.is_reference:
            self._of_kind.setdefault(kind, set()).update(numbers)
            return list(map(self._keys.setdefault, numbers, self._new_key))
        self._sorted = self._sorted or {of: sorted(some - {"NaN"}) for of, some in self._of_kind.items()}
        found = []
        for number, otherwise in zip(numbers, written, strict=False):
            key = self._keys.get(number) or self._nearest(number, kind) or otherwise  # no key of a number is 0
            found.append(key or self._others.setdefault(number, next(self._new_key)))
        return found

    def _nearest(self, number: Any, kind: NumberKind) -> int | None:
        near = []
        for other_kind, others in self._sorted.items() if number != "NaN" else ():
            relative = max(self._tolerances[kind], self._tolerances[other_kind]) if kind and other_kind else 0.0
            at = bisect_left(others, number)
            near += [other for other in others[max(at - 1, 0) : at + 1] if numbers_are_equal(number, other, relative)]
        if len(near) > 1:
            near.sort(key=lambda other: (distance_of(number, other), other))
        return self._keys[near[0]] if near else None


def is_untyped(shape: Shape) -> bool:
    """Return whether a term is a literal with neither datatype nor language, whose text may be a number or a time."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in NO_LITERALS


class _Space:
    """The cells of one shape: how their values are read, and the keys of their texts.

    ``known`` has the keys of texts with a value. ``texts`` has those of all others, and of texts in which the reference
    writes values; all shapes whose texts may be equal share it.
    """

    def __init__(self, shape: Shape, rules: Rules, texts: dict[Hashable, dict[str, int]]) -> None:
        self.kind, self.datatype, language = shape
        is_literal, by_value = self.kind not in NO_LITERALS, not rules.strict
        self.is_iri = self.kind == "uri" and by_value and rules.values.iri_case
        self.has_numbers = is_literal and (self.datatype in NUMBER_KINDS or (by_value and is_untyped(shape)))
        switch, reader = VALUE_READERS.get(self.datatype, ("", None))
        is_read = not switch or (by_value and getattr(rules.values, switch) and (self.datatype or not language))
        self.read = reader if is_literal and is_read else None
        alike: Hashable = None
        if rules.strict:
            alike = ((language or "").lower() or (self.datatype or XSD_STRING, "")) if is_literal else self.kind
        self.texts = texts.setdefault(alike, {})
        self.known: dict[str, int] = {}


_Cells: TypeAlias = Sequence[tuple[_Space, Sequence[str], Sequence[int]]]
"""The spaces of a column, each with its texts and rows."""

_FIRST_OF_VALUES: Final = frozenset("-0123456789")
_first_character: Final = itemgetter(slice(1))
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")

_REFERENCE: Final = 0
_ACTUAL: Final = 1


class Keys:
    """The keys of two results over the required columns. An actual column is read when it is asked for.

    Example:
        >>> five = SparqlResults({"n": TermColumn(["5"], ("literal", None, None))}, 1)
        >>> other = SparqlResults({"m": TermColumn(["5.0", "six"], ("literal", None, None))}, 2)
        >>> keys = Keys(five, other, ["n"], Rules())
        >>> keys.reference("n").keys[0] == keys.actual("m").keys[0], keys.note("n", 0, "m", 1)
        (True, None)
    """

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        self._rules = rules
        self._columns = (reference.columns, actual.columns)
        self._new_key = count(BLANK_KEY + 1)
        self._texts: dict[Hashable, dict[str, int]] = {}
        self._spaces: dict[Shape, _Space] = {}
        self._values: dict[Hashable, int] = {}
        self._numbers = _NumberKeys(rules.tolerances, self._new_key)
        self._coordinates = _NumberKeys(rules.tolerances, self._new_key)
        self._labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        compared = {name: reference.columns[name] for name in required}
        are_untyped = reference.is_untyped and actual.is_untyped
        self._structures = _structures_of((compared, actual.columns), reads_texts=are_untyped)
        values = [[value for cells in side.values() for value in cells.values()] for side in self._structures]
        self._details = details_of_both(*values) if any(values) else frozenset()
        self._is_reference = True
        cells = {name: self._learned(column) for name, column in compared.items()}  # texts may be written like values
        self._reference = {name: self._key_column(_REFERENCE, name, cells[name]) for name in cells}
        self._actual: dict[str, KeyColumn] = {}
        self._is_reference = self._numbers.is_reference = self._coordinates.is_reference = False

    def reference(self, name: str) -> KeyColumn:
        """Return the keys of a required column of the reference."""
        return self._reference[name]

    def actual(self, name: str) -> KeyColumn:
        """Return the keys of a column of the actual results."""
        if name not in self._actual:
            cells = self._learned(self._columns[_ACTUAL][name])
            self._actual[name] = self._key_column(_ACTUAL, name, cells)
        return self._actual[name]

    def _learned(self, column: TermColumn) -> _Cells:
        """Return the cells of a column by their space, whose values are known from now on."""
        cells = []
        for shape, texts, rows in _by_shape(column):
            space = self._spaces.get(shape)
            if space is None:
                space = self._spaces[shape] = _Space(shape, self._rules, self._texts)
            if space.has_numbers or space.read is not None:
                self._learn(space, texts)
            cells.append((space, texts, rows))
        return cells

    def _key_column(self, side: int, name: str, cells: _Cells) -> KeyColumn:
        labels, structures = self._labels[side], self._structures[side].get(name, {})
        keys = [UNBOUND_KEY] * len(self._columns[side][name].texts)
        blanks: dict[int, tuple[int, ...]] = {}
        for space, texts, rows in cells:
            if space.kind == "bnode":
                numbers = [labels.setdefault(text, len(labels)) for text in texts]
                blanks |= {row: (number,) for row, number in zip(rows, numbers, strict=True)}
                found = [BLANK_KEY] * len(texts)
            else:
                found = self._keys_of(space, texts) if space.kind else [UNBOUND_KEY] * len(texts)
            for row, key in zip(rows, found, strict=True):
                keys[row] = key
        for row, value in structures.items():
            keys[row], blanks_of_cell = self._key_of_structure(value, labels)
            if blanks_of_cell:
                blanks[row] = tuple(blanks_of_cell)
        return KeyColumn(keys, blanks)

    def _key_of_structure(self, value: Any, labels: dict[str, int]) -> tuple[int, list[int]]:
        """Return the key of a value with parts, and its blank nodes."""
        blanks: list[int] = []

        def key_of_part(part: Term | Triple) -> Hashable:
            if isinstance(part, Triple):
                return ("triple", *map(key_of_part, part))
            if part.shape[0] == "bnode":
                blanks.append(labels.setdefault(part.text, len(labels)))
                return BLANK_KEY
            [(space, texts, _)] = self._learned(TermColumn([part.text], part.shape))
            return self._keys_of(space, texts)[0]

        is_term = isinstance(value, Term | Triple)
        key = key_of_part(value) if is_term else GraphKeys(self._details, self._rules.graph, key_of_part).key(value)
        return key if isinstance(key, int) else self._values.setdefault(key, next(self._new_key)), blanks

    def _learn(self, space: _Space, texts: Sequence[str]) -> None:
        """Find the keys of those texts that have a value."""
        datatype, of_texts, known = space.datatype, space.texts, space.known
        if datatype is None and _FIRST_OF_VALUES.isdisjoint(map(_first_character, texts)):
            return
        new = [text for text in dict.fromkeys(texts) if text not in known]
        found: dict[str, int] = {}
        for kind, numbers in numbers_by_kind(new, datatype).items() if space.has_numbers else ():
            keys = self._numbers.keys_of(list(numbers.values()), kind, map(of_texts.get, numbers))
            found.update(zip(numbers, keys, strict=True))
        for text in new:
            value = None if space.read is None or text in found else space.read(text)
            if value is not None:
                written = None if self._is_reference else of_texts.get(text)
                if datatype == WKT_LITERAL:
                    value = value[0], *self._coordinates.keys_of(value[1], NumberKind.DOUBLE)
                if datatype == XSD_BOOLEAN:  # 1 is written true as well
                    found[text] = of_texts.setdefault(value[1], written or next(self._new_key))
                else:
                    found[text] = self._values.setdefault(value, written or next(self._new_key))
        known.update(found)
        if self._is_reference:
            for text, key in found.items():
                of_texts.setdefault(text, key)

    def _keys_of(self, space: _Space, texts: Sequence[str]) -> list[int]:
        """Return the keys of texts, whose values have been learned."""
        of_texts, known = space.texts, space.known
        found = list(map(known.get, texts)) if known else []
        if found and None not in found:
            return found  # type: ignore[return-value]  # there is no None in it
        joined = "\n".join(texts)
        is_normal = joined.isascii() or self._rules.strict or not self._rules.values.nfc
        has_escapes = space.is_iri and "%" in joined
        if is_normal and not has_escapes and not any(found):
            return list(map(of_texts.setdefault, texts, self._new_key))
        for text in dict.fromkeys(texts):
            if text not in known:
                normal = text if is_normal else normalize("NFC", text)
                if has_escapes:
                    normal = _ESCAPE.sub(lambda escape: escape[0].upper(), normal)
                key = of_texts.get(normal) or of_texts.get(text) or next(self._new_key)
                known[text] = of_texts[normal] = key
                of_texts.setdefault(text, key)
        return list(map(known.__getitem__, texts))

    def note(self, name: str, row: int, actual_name: str, actual_row: int, *, of_numbers: bool = False) -> str | None:
        """Return how two cells, or the numbers in them, are near each other; None if nothing is to be said."""
        column, other_column = self._columns[_REFERENCE][name], self._columns[_ACTUAL][actual_name]
        text, shape = column.texts[row], column.shape(row)
        other, other_shape = other_column.texts[actual_row], other_column.shape(actual_row)
        cells = ((text, shape), (other, other_shape))
        numbers = [number_from(of, by[1]) if is_untyped(by) or by[1] in NUMBER_KINDS else None for of, by in cells]
        if numbers[0] is not None and numbers[1] is not None:
            share = relative_difference(numbers[0], numbers[1])
            if not share or share > _NEAR:
                return None
            return f"{other} instead of {text} differs by {share:.1g} of its value".replace("e-0", "e-")
        if of_numbers or not shape[0] or not other_shape[0] or (text == other and shape == other_shape):
            return None
        if text == other:
            return f"{other!r:.60} has another datatype, language tag or kind"
        is_near = " ".join(text.split()).casefold() == " ".join(other.split()).casefold()
        return f"{other!r:.60} instead of {text!r:.60} differs in case or spaces only" if is_near else None


_NEAR: Final = 0.01
"""Numbers that differ by less than this share are worth a note."""


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
    sides: Sequence[Mapping[str, TermColumn]], *, reads_texts: bool
) -> list[dict[str, Mapping[int, Any]]]:
    """Return the values with parts by column and row, for each side: those read, and those that untyped texts write.

    Texts are read if either side has values of property graphs, or ``reads_texts`` says so.
    """
    structures = [value for side in sides for column in side.values() for value in column.structures.values()]
    if not structures and not reads_texts:
        return [{}, {}]
    reads_texts = reads_texts or not all(isinstance(value, Triple) for value in structures)
    found: list[dict[str, Mapping[int, Any]]] = []
    for side in sides:
        reader = GraphReader()
        of_side: dict[str, Mapping[int, Any]] = {}
        for name, column in side.items():
            cells: dict[int, Any] = {}
            for shape, texts, rows in _by_shape(column) if reads_texts else ():
                if (is_untyped(shape) or shape[1] == WKT_LITERAL) and _MAY_BE_STRUCTURE.search("\n".join(texts)):
                    values = {text: value_of_text(text, reader) for text in dict.fromkeys(texts)}
                    cells |= {
                        row: values[text] for row, text in zip(rows, texts, strict=True) if values[text] is not None
                    }
            of_side[name] = {**cells, **column.structures}
        reader.join_ends()
        found.append(of_side)
    return found
