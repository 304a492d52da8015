"""The value of each cell as an integer, its key: equal keys are equal cells, for verdict, reason and grade alike.

A cell counts by the value in its value space (number, time, duration, geometry, IRI, boolean), all else by its text. A
number within the tolerance has the key of the nearest number of the reference, so that equality is transitive. A value
that the reference does not have equals a text of the reference that is written like it.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from graphrag_eval_lc.config import ToleranceConfig, ValuesConfig
from graphrag_eval_lc.matching.rows_new.graph_values import GraphRules, key_of, told_by, value_of_text
from graphrag_eval_lc.matching.rows_new.numbers_and_times import (
    DURATION_DATATYPES,
    NUMBER_KINDS,
    TIME_READERS,
    WKT_LITERAL,
    XSD_BOOLEAN,
    XSD_STRING,
    Number,
    NumberKind,
    Value,
    distance_of,
    duration_from,
    geometry_from,
    number_from,
    number_kind,
    numbers_are_equal,
    numbers_from,
    relative_difference,
)
from graphrag_eval_lc.matching.rows_new.results import NO_LITERALS, Shape, SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.records import relative_tolerance

RowsAs: TypeAlias = Literal["set", "bag", "list"]
"""How rows count: without duplicates, with them, or with their order too."""

Tolerance: TypeAlias = float | Mapping[str, float]
"""A relative tolerance from 0 to below 1 for all numbers but integers, or those of ``float`` and ``double``."""


Share: TypeAlias = float


class Tolerances(NamedTuple):
    """The relative tolerance of each kind of number, in the order of ``NumberKind``.

    Example:
        >>> Tolerances.of(None).between(NumberKind.FLOAT, NumberKind.DOUBLE)
        1e-05
    """

    integer: float = 0.0
    decimal: float = 0.0
    double: float = 0.0
    float: float = 0.0

    @classmethod
    def of(cls, tolerance: Tolerance | None, *, strict: bool = False) -> "Tolerances":
        """Return the tolerances from what a caller says.

        Args:
            tolerance: One for all numbers but integers, or those of ``float`` and ``double`` that differ from the
                default; None for the defaults.
            strict: Whether RDF terms are compared; then only a tolerance for all numbers counts.

        Raises:
            ValueError: It is none from 0 to below 1, or for a datatype that has none.
        """
        if tolerance is not None and not isinstance(tolerance, Mapping):
            every = _share("tolerance", tolerance)
            return cls(decimal=every, double=every, float=every)
        known = ToleranceConfig().model_dump()
        unknown = [str(name) for name in tolerance or {} if name not in known]
        if unknown:
            raise ValueError(f"there is no tolerance of {unknown[0]}, only of {' and '.join(known)}")
        shares = {name: _share(f"tolerance of {name}", value) for name, value in {**known, **(tolerance or {})}.items()}
        return cls() if strict else cls(**shares)

    def between(self, one: NumberKind, other: NumberKind) -> Share:
        """Return the looser tolerance of two kinds; an integer has none with any number."""
        return max(self[one], self[other]) if one and other else 0.0


def _share(name: str, share: object) -> float:
    try:
        return relative_tolerance(share)
    except ValueError as problem:
        raise ValueError(f"the {name} is {share!r:.40}: {problem}") from None


class ValueRules(NamedTuple):
    """Which terms are compared by what they mean; see ``ValuesConfig``."""

    times: bool = True
    durations: bool = True
    wkt: bool = True
    nfc: bool = True
    iri_case: bool = True

    @classmethod
    def of(cls, values: "Mapping[str, bool] | ValuesConfig | None") -> "ValueRules":
        """Return the rules of a config, or those switched on and off by name.

        Raises:
            ValueError: A name is unknown, or what it is set to is neither true nor false.

        Example:
            >>> ValueRules.of({"wkt": False}).wkt
            False
        """
        if isinstance(values, ValuesConfig):  # checked already
            return cls(values.times, values.durations, values.wkt, values.nfc, values.iri_case)
        for name, value in (values or {}).items():
            if name not in cls._fields:
                raise ValueError(f"values has no {name!r:.40}: it has {', '.join(cls._fields)}")
            if not isinstance(value, bool):
                raise ValueError(f"values.{name} is neither true nor false")
        return cls(**(values or {}))


NO_VALUES: Final = ValueRules(times=False, durations=False, wkt=False, nfc=False, iri_case=False)


class Rules(NamedTuple):
    """How two results are compared; if strictly, by RDF terms and not by values alone."""

    rows_as: RowsAs = "set"
    strict: bool = False
    tolerances: Tolerances = Tolerances.of(None)
    values: ValueRules = ValueRules()
    graph: GraphRules = GraphRules()


UNBOUND_KEY: Final = 0
BLANK_KEY: Final = 1
_TRUE_KEY: Final = 2
_FALSE_KEY: Final = 3


@dataclass
class KeyColumn:
    """The keys of a column.

    Attributes:
        keys: One per row; equal keys are equal cells. A cell with blank nodes has the key of what else there is.
        blanks: The blank nodes of the cells that have some, in order, by numbers that count for each side.
    """

    keys: list[int]
    blanks: dict[int, tuple[int, ...]] = field(default_factory=dict)


class _Numbers:
    """The keys of the reference's numbers, and of those that are near them."""

    def __init__(self, tolerances: Tolerances, new_key: Iterator[int]) -> None:
        self._tolerances = tolerances
        self._new_key = new_key
        self._keys: dict[Number, int] = {}
        self._of_kind: defaultdict[NumberKind, list[Any]] = defaultdict(list)
        self._is_sorted = True

    def of_reference(self, values: Sequence[Number], kind: NumberKind) -> list[int]:
        self._is_sorted = False
        self._of_kind[kind] += (value for value in values if value != "NaN")
        return list(map(self._keys.setdefault, values, self._new_key))

    def nearest(self, values: Sequence[Number], kind: NumberKind) -> list[int | None]:
        """Return the keys of the reference's numbers: the same one, else the nearest within the tolerance, or None."""
        keys = list(map(self._keys.get, values))
        if None not in keys:
            return keys
        if not self._is_sorted:
            self._of_kind = defaultdict(list, {kind: sorted(set(each)) for kind, each in self._of_kind.items()})
            self._is_sorted = True
        for at, value in enumerate(values):
            if keys[at] is None and value != "NaN":
                near = [
                    other
                    for other_kind, others in self._of_kind.items()
                    for other in _neighbours(others, value)
                    if numbers_are_equal(value, other, self._tolerances.between(kind, other_kind))
                ]
                if near:
                    nearest = (
                        near[0] if len(near) == 1 else min(near, key=lambda other: (distance_of(value, other), other))
                    )
                    keys[at] = self._keys[nearest]
        return keys


def _neighbours(numbers: list[Any], value: Any) -> list[Any]:
    at = bisect_left(numbers, value)
    return numbers[max(at - 1, 0) : at + 1]


def is_untyped(shape: Shape) -> bool:
    """Return whether a term is a literal with neither datatype nor language, whose text may be a number or a time."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in NO_LITERALS


class _Space:
    """The cells of one shape.

    Attributes:
        texts: The keys of texts without a value, and of texts in which the reference writes values.
        known: The keys of texts with a value.
        read: Reads a value that is not a number; None if there are none.
    """

    def __init__(self, shape: Shape, texts: dict[str, int], rules: Rules) -> None:
        kind, datatype, language = shape
        is_literal = kind not in NO_LITERALS
        self.texts = texts
        self.known: dict[str, int] = {}
        self.datatype = datatype
        self.is_iri = kind == "uri" and rules.values.iri_case and not rules.strict
        self.is_untyped = is_untyped(shape) and not rules.strict
        self.is_numeric = is_literal and datatype in NUMBER_KINDS
        self.read: Callable[[str], Value | None] | None = None
        if is_literal and datatype == XSD_BOOLEAN:
            self.known = {"1": _TRUE_KEY, "0": _FALSE_KEY, **(dict(_BOOLEANS) if rules.strict else {})}
        if is_literal and not rules.strict and (datatype is not None or not language):
            if datatype in TIME_READERS:
                self.read = TIME_READERS[datatype] if rules.values.times else None
            elif datatype in DURATION_DATATYPES:
                self.read = duration_from if rules.values.durations else None
            elif datatype == WKT_LITERAL and rules.values.wkt:
                self.read = geometry_from

    def has_values(self, texts: Sequence[str]) -> bool:
        """Return whether some of the texts may have a value, told quickly."""
        if self.is_untyped:
            return not _FIRST_OF_VALUES.isdisjoint(map(_first_character, texts))
        return self.is_numeric or self.read is not None or bool(self.known)


_BOOLEANS: Final = {"true": _TRUE_KEY, "True": _TRUE_KEY, "false": _FALSE_KEY, "False": _FALSE_KEY}
_FIRST_OF_VALUES: Final = frozenset("-0123456789")
_first_character: Final = itemgetter(slice(1))
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_MAY_BE_GRAPH_VALUE: Final = re.compile(
    r"^(?:-?\d{4,9}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}:\d\d(?::|$)|-?P[-\dT]|-?\d+ days?, |SRID=|POINT|point\(|[\[{(<])",
    re.MULTILINE | re.IGNORECASE,
)

_Side: TypeAlias = Literal[0, 1]
_REFERENCE: Final = 0
_ACTUAL: Final = 1


class Keys:
    """The keys of two results. A column is read when it is asked for.

    Args:
        reference: The expected results.
        actual: The results of the query.
        required: The columns of the reference that count.
        rules: How cells are compared.

    Example:
        >>> five = SparqlResults({"n": TermColumn(["5"], ("literal", None, None))}, 1)
        >>> other = SparqlResults({"m": TermColumn(["5.0", "six"], ("literal", None, None))}, 2)
        >>> keys = Keys(five, other, ["n"], Rules())
        >>> keys.reference("n").keys[0] == keys.actual("m").keys[0], keys.note("n", 0, "m", 1)
        (True, None)
    """

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        self._columns = (reference.columns, actual.columns)
        self._required = tuple(required)
        self._rules = rules
        self._new_key = count(_FALSE_KEY + 1)
        self._texts: defaultdict[Hashable, dict[str, int]] = defaultdict(
            dict, {} if rules.strict else {None: dict(_BOOLEANS)}
        )
        self._values: dict[Hashable, int] = {}
        self._numbers = _Numbers(rules.tolerances, self._new_key)
        self._coordinates = _Numbers(rules.tolerances, self._new_key)
        self._spaces: dict[Shape, _Space] = {}
        self._labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._found: tuple[dict[str, KeyColumn], dict[str, KeyColumn]] = ({}, {})
        reads_texts = reference.is_untyped and actual.is_untyped
        self._structures = self._graph_values(reads_texts)
        for name in self._required:  # the values of all columns first, as texts may be written like them
            for shape, texts, _ in _by_shape(self._columns[_REFERENCE][name]):
                self._learn(self._space(shape), texts, is_reference=True)
        for name in self._required:
            self._found[_REFERENCE][name] = self._key_column(_REFERENCE, name, is_reference=True)

    def reference(self, name: str) -> KeyColumn:
        """Return the keys of a column of the reference."""
        return self._column(_REFERENCE, name)

    def actual(self, name: str) -> KeyColumn:
        """Return the keys of a column of the actual results."""
        return self._column(_ACTUAL, name)

    def _column(self, side: _Side, name: str) -> KeyColumn:
        if name not in self._found[side]:
            self._found[side][name] = self._key_column(side, name, is_reference=False)
        return self._found[side][name]

    def _key_column(self, side: _Side, name: str, *, is_reference: bool) -> KeyColumn:
        column, labels = self._columns[side][name], self._labels[side]
        keys = [UNBOUND_KEY] * len(column.texts)
        blanks: dict[int, tuple[int, ...]] = {}
        for shape, texts, rows in _by_shape(column):
            if shape[0] == "bnode":
                of_shape = [BLANK_KEY] * len(texts)
                blanks.update(zip(rows, ((labels.setdefault(text, len(labels)),) for text in texts), strict=True))
            else:
                of_shape = self._keys_of(self._space(shape), texts, is_reference=is_reference) if shape[0] else []
            if len(of_shape) == len(keys):
                keys = of_shape
            else:
                for row, key in zip(rows, of_shape, strict=False):
                    keys[row] = key
        for row, value in self._structures[side].get(name, column.structures).items():
            found: list[int] = []
            keys[row] = self._key_of_structure(value, labels, found, is_reference)
            if found:
                blanks[row] = tuple(found)
        return KeyColumn(keys, blanks)

    def _key_of_structure(self, value: Any, labels: dict[str, int], found: list[int], is_reference: bool) -> int:
        """Return the key of a value with parts; ``found`` takes up its blank nodes."""

        def key_of_part(part: Term | Triple) -> Hashable:
            if isinstance(part, Triple):
                return ("triple", *map(key_of_part, part))
            if part.shape[0] == "bnode":
                found.append(labels.setdefault(part.text, len(labels)))
                return BLANK_KEY
            return self._keys_of(self._space(part.shape), [part.text], is_reference=is_reference)[0]

        if isinstance(value, Term | Triple):
            key = key_of_part(value)
        else:
            key = key_of(value, self._told, self._rules.graph, key_of_part)
        return key if isinstance(key, int) else self._key_of_value(key)

    def _key_of_value(self, value: Hashable) -> int:
        key = self._values.get(value)
        if key is None:
            key = self._values[value] = next(self._new_key)
        return key

    def _space(self, shape: Shape) -> _Space:
        space = self._spaces.get(shape)
        if space is None:
            kind, datatype, language = shape
            of_terms: Hashable = None
            if self._rules.strict:
                kind = "literal" if kind == "typed-literal" else kind
                of_terms = kind if kind == "uri" else (kind, (language or "").lower() or datatype or XSD_STRING)
            space = self._spaces[shape] = _Space(shape, self._texts[of_terms], self._rules)
        return space

    def _learn(self, space: _Space, texts: Sequence[str], *, is_reference: bool) -> bool:
        """Find the keys of those texts that have a value; return whether some may have one."""
        if not space.has_values(texts):
            return False
        new = [text for text in dict.fromkeys(texts) if text not in space.known]
        numbers: Sequence[Number | None] = [None] * len(new)
        if space.is_numeric or space.is_untyped:
            numbers = numbers_from(new, space.datatype)
            of_kind: defaultdict[NumberKind, list[tuple[str, Number]]] = defaultdict(list)
            if space.is_numeric:
                kind = NUMBER_KINDS[space.datatype]
                of_kind[kind] = [
                    (text, number) for text, number in zip(new, numbers, strict=True) if number is not None
                ]
            else:
                for text, number in zip(new, numbers, strict=True):
                    if number is not None:
                        of_kind[number_kind(text, None)].append((text, number))
            for kind, pairs in of_kind.items():
                self._learn_numbers(space, pairs, kind, is_reference=is_reference)
        if space.read is not None:
            for text, number in zip(new, numbers, strict=True):
                value = space.read(text) if number is None else None
                if value is not None:
                    space.known[text] = self._key_of_read(space, text, value, is_reference=is_reference)
        if is_reference:
            for text in new:
                if text in space.known:
                    space.texts.setdefault(text, space.known[text])
        return True

    def _learn_numbers(
        self, space: _Space, pairs: Sequence[tuple[str, Number]], kind: NumberKind, *, is_reference: bool
    ) -> None:
        texts, numbers = [text for text, _ in pairs], [number for _, number in pairs]
        if is_reference:
            space.known.update(zip(texts, self._numbers.of_reference(numbers, kind), strict=True))
            return
        for text, number, key in zip(texts, numbers, self._numbers.nearest(numbers, kind), strict=True):
            if key is None:
                key = None if self._rules.strict else space.texts.get(text)
            space.known[text] = self._key_of_value(("number", number)) if key is None else key

    def _key_of_read(self, space: _Space, text: str, value: Value, *, is_reference: bool) -> int:
        if space.datatype == WKT_LITERAL:
            words, numbers = value
            if is_reference:
                value = (words, *self._coordinates.of_reference(numbers, NumberKind.DOUBLE))
            else:
                near = self._coordinates.nearest(numbers, NumberKind.DOUBLE)
                value = (
                    words,
                    *(("number", number) if key is None else key for number, key in zip(numbers, near, strict=True)),
                )
        key = self._values.get(value)
        if key is None:
            key = None if is_reference else space.texts.get(text)
            key = self._values[value] = next(self._new_key) if key is None else key
        return key

    def _keys_of(self, space: _Space, texts: Sequence[str], *, is_reference: bool) -> list[int]:
        may_have_values = self._learn(space, texts, is_reference=is_reference)
        known, of_texts = space.known, space.texts
        joined = "\n".join(texts)
        is_plain = self._rules.strict or joined.isascii() or not self._rules.values.nfc
        if is_plain and not may_have_values and not (space.is_iri and "%" in joined):
            return list(map(of_texts.setdefault, texts, self._new_key))
        for text in dict.fromkeys(texts):
            if text not in known:
                normal = text if is_plain else normalize("NFC", text)
                if space.is_iri:
                    normal = _ESCAPE.sub(lambda found: found[0].upper(), normal)
                key = of_texts.get(normal, of_texts.get(text))
                known[text] = of_texts[normal] = next(self._new_key) if key is None else key
                of_texts.setdefault(text, known[text])
        return list(map(known.__getitem__, texts))

    def _graph_values(self, reads_texts: bool) -> tuple[dict[str, dict[int, Any]], dict[str, dict[int, Any]]]:
        """Return the values of property graphs by column and row: those read, and those that untyped texts write."""
        columns = ({name: self._columns[_REFERENCE][name] for name in self._required}, self._columns[_ACTUAL])
        has_some = any(column.structures for side in columns for column in side.values())
        found: tuple[dict[str, dict[int, Any]], dict[str, dict[int, Any]]] = ({}, {})
        if has_some or reads_texts:
            for side, of_side in zip(columns, found, strict=True):
                for name, column in side.items():
                    structures = {**_values_of_texts(column), **column.structures}
                    if structures:
                        of_side[name] = structures
        values = (
            (value for of_column in of_side.values() for value in of_column.values() if not isinstance(value, Triple))
            for of_side in found
        )
        self._told = told_by(*values)
        return found

    def note(self, name: str, row: int, actual_name: str, actual_row: int) -> str | None:
        """Return how two cells are near each other, for a reason; None if nothing is to be said.

        Example: 15063.999 instead of 15063.998 differs by 7e-8 of its value.
        """
        column, other_column = self._columns[_REFERENCE][name], self._columns[_ACTUAL][actual_name]
        text, other = column.texts[row], other_column.texts[actual_row]
        shape, other_shape = column.shape(row), other_column.shape(actual_row)
        if not shape[0] or not other_shape[0]:
            return None
        number, other_number = _number_of(text, shape), _number_of(other, other_shape)
        if number is not None and other_number is not None:
            share = relative_difference(number, other_number)
            if share and share < _NEAR:
                mantissa, exponent = f"{share:.0e}".split("e")
                return f"{other} instead of {text} differs by {mantissa}e{int(exponent)} of its value"
            return None
        if text == other:
            return None if shape == other_shape else f"{text!r:.60} has another datatype, language tag or kind"
        if " ".join(text.split()).casefold() == " ".join(other.split()).casefold():
            return f"{other!r:.60} instead of {text!r:.60} differs in case or spaces only"
        return None


_NEAR: Final = 0.01
"""Numbers that differ by less than this share are worth a note."""


def _by_shape(column: TermColumn) -> Iterator[tuple[Shape, Sequence[str], Sequence[int]]]:
    """Yield the shapes of a column, each with its texts and rows."""
    if not isinstance(column.shapes, list):
        yield column.shapes, column.texts, range(len(column.texts))
        return
    rows_of: defaultdict[Shape, list[int]] = defaultdict(list)
    for row, shape in enumerate(column.shapes):
        rows_of[shape].append(row)
    for shape, rows in rows_of.items():
        yield shape, [column.texts[row] for row in rows], rows


def _values_of_texts(column: TermColumn) -> dict[int, Any]:
    """Return the values of property graphs that untyped texts and geometries of a column write, by row."""
    found: dict[int, Any] = {}
    for shape, texts, rows in _by_shape(column):
        if (is_untyped(shape) or shape[1] == WKT_LITERAL) and _MAY_BE_GRAPH_VALUE.search("\n".join(texts)):
            values = {text: value_of_text(text) for text in dict.fromkeys(texts)}
            found |= {row: values[text] for row, text in zip(rows, texts, strict=True) if values[text] is not None}
    return found


def _number_of(text: str, shape: Shape) -> Number | None:
    is_number = is_untyped(shape) or (shape[0] not in NO_LITERALS and shape[1] in NUMBER_KINDS)
    return number_from(text, shape[1]) if is_number else None
