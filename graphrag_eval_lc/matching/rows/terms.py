"""The value of each cell as an integer, its key: equal keys are equal cells, for verdict, reason and grade alike.

A cell counts by the value in its value space (number, boolean, time, duration, geometry, IRI), all else by its text. A
number within the tolerance has the key of the nearest number of the reference, so that equality is transitive. A value
that the reference does not have equals a text of the reference that is written like it.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from graphrag_eval_lc.config import ToleranceConfig, ValuesConfig
from graphrag_eval_lc.matching.rows.graph_values import GraphReader, GraphRules, key_of, told_by, value_of_text
from graphrag_eval_lc.matching.rows.numbers_and_times import (
    DURATION_DATATYPES,
    NUMBER_KINDS,
    TIME_READERS,
    WKT_LITERAL,
    XSD_BOOLEAN,
    XSD_STRING,
    Number,
    NumberKind,
    Value,
    boolean_from,
    distance_of,
    duration_from,
    geometry_from,
    number_from,
    number_kind,
    numbers_are_equal,
    numbers_from,
    relative_difference,
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
        """Return the tolerances from what a caller says; if RDF terms are compared, only one for all numbers counts.

        Raises:
            ValueError: It is not from 0 to below 1, or for a datatype that has none.

        Example:
            >>> Tolerances.of({"float": 1e-4})
            Tolerances(integer=0.0, decimal=0.0, double=1e-12, float=0.0001)
        """
        if tolerance is not None and not isinstance(tolerance, Mapping):
            every = _share("tolerance", tolerance)
            return cls(decimal=every, double=every, float=every)
        given, known = dict(tolerance or {}), ToleranceConfig().model_dump()
        unknown = [str(name) for name in given if name not in known]
        if unknown:
            raise ValueError(f"there is no tolerance of {unknown[0]}, only of {' and '.join(known)}")
        shares = {name: _share(f"tolerance of {name}", share) for name, share in {**known, **given}.items()}
        return cls() if strict else cls(**shares)


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
        given = values.model_dump(include=set(cls._fields)) if isinstance(values, ValuesConfig) else dict(values or {})
        for name, value in given.items():
            if name not in cls._fields:
                raise ValueError(f"values has no {name!r:.40}: it has {', '.join(cls._fields)}")
            if not isinstance(value, bool):
                raise ValueError(f"values.{name} is neither true nor false")
        return cls(**given)


class Rules(NamedTuple):
    """How two results are compared; if strictly, by RDF terms and not by values alone."""

    rows_as: RowsAs = "set"
    strict: bool = False
    tolerances: Tolerances = Tolerances.of(None)
    values: ValueRules = ValueRules()
    graph: GraphRules = GraphRules()


UNBOUND_KEY: Final = 0
BLANK_KEY: Final = 1


@dataclass
class KeyColumn:
    """The keys of a column.

    Attributes:
        keys: One per row; equal keys are equal cells. A cell with blank nodes has the key of what else it has.
        blanks: The blank nodes of the cells that have some, in order, by numbers that count for each side.
    """

    keys: list[int]
    blanks: dict[int, tuple[int, ...]] = field(default_factory=dict)


class _Numbers:
    """The keys of the reference's numbers, which others that are near them have, too."""

    def __init__(self, tolerances: Tolerances, new_key: Iterator[int]) -> None:
        self._tolerances, self._new_key = tolerances, new_key
        self._keys: dict[Number, int] = {}
        self._others: dict[Number, int] = {}
        self._of_kind: defaultdict[NumberKind, list[Any]] = defaultdict(list)
        self._sorted: dict[NumberKind, list[Any]] = {}

    def of_reference(self, numbers: Sequence[Number], kind: NumberKind) -> list[int]:
        """Return the keys of numbers of the reference; all of them are known before others are looked up."""
        self._of_kind[kind] += numbers
        return list(map(self._keys.setdefault, numbers, self._new_key))

    def of_others(self, numbers: Iterable[Number], kind: NumberKind, otherwise: Iterable[int | None]) -> list[int]:
        """Return the keys of the same or else the nearest numbers of the reference; if none is near, others."""
        if not self._sorted:
            self._sorted = {kind: sorted(set(each) - {"NaN"}) for kind, each in self._of_kind.items()}
        keys = []
        for number, other in zip(numbers, otherwise, strict=False):
            key = self._keys.get(number)
            if key is None:
                key = self._nearest(number, kind)
                key = other if key is None else key
            keys.append(self._others.setdefault(number, next(self._new_key)) if key is None else key)
        return keys

    def _nearest(self, number: Any, kind: NumberKind) -> int | None:
        near = []
        for other_kind, others in self._sorted.items() if number != "NaN" else ():
            relative = max(self._tolerances[kind], self._tolerances[other_kind]) if kind and other_kind else 0.0
            far = 3e-8 + 3 * relative * abs(number) if isinstance(number, float) and relative < 0.1 else 0.0
            at = bisect_left(others, number)
            for other in others[max(at - 1, 0) : at + 1]:
                is_far = far and isinstance(other, float) and abs(number - other) > far  # told quickly
                if not is_far and numbers_are_equal(number, other, relative):
                    near.append(other)
        if len(near) > 1:
            near.sort(key=lambda other: (distance_of(number, other), other))
        return self._keys[near[0]] if near else None


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
        kind, self.datatype, language = shape
        self.texts, self.known = texts, dict[str, int]()
        self.is_iri = kind == "uri" and rules.values.iri_case and not rules.strict
        self.is_untyped = is_untyped(shape) and not rules.strict
        self.has_numbers = self.is_untyped or (kind not in NO_LITERALS and self.datatype in NUMBER_KINDS)
        self.read: Callable[[str], Value | None] | None = None
        if kind in NO_LITERALS or (language and not self.datatype):
            return
        if self.datatype == XSD_BOOLEAN:
            self.read = boolean_from
        elif not rules.strict:
            readers: dict[str | None, Callable[[str], Value | None]] = dict(TIME_READERS) if rules.values.times else {}
            if rules.values.durations:
                readers |= dict.fromkeys(DURATION_DATATYPES, duration_from)
            if rules.values.wkt:
                readers[WKT_LITERAL] = geometry_from
            self.read = readers.get(self.datatype)

    def may_have_values(self, texts: Sequence[str]) -> bool:
        """Return whether some of the texts may have a value, told quickly."""
        if self.is_untyped:
            return not _FIRST_OF_VALUES.isdisjoint(map(_first_character, texts))
        return self.has_numbers or self.read is not None


_FIRST_OF_VALUES: Final = frozenset("-0123456789")
_first_character: Final = itemgetter(slice(1))
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")

_REFERENCE: Final = 0
_ACTUAL: Final = 1


class Keys:
    """The keys of two results. An actual column is read when it is asked for.

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
        self._rules = rules
        self._columns = (reference.columns, actual.columns)
        self._new_key = count(BLANK_KEY + 1)
        self._texts: defaultdict[Hashable, dict[str, int]] = defaultdict(dict)
        self._spaces: dict[Shape, _Space] = {}
        self._values: dict[Hashable, int] = {}
        self._numbers = _Numbers(rules.tolerances, self._new_key)
        self._coordinates = _Numbers(rules.tolerances, self._new_key)
        self._labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        compared = {name: reference.columns[name] for name in required}, actual.columns
        self._structures = _structures_of(compared, reads_texts=reference.is_untyped and actual.is_untyped)
        self._told = told_by(
            *([each for found in side.values() for each in found.values()] for side in self._structures)
        )
        self._is_reference = True
        for column in compared[_REFERENCE].values():  # all values first, as texts may be written like them
            for shape, texts, _ in _by_shape(column):
                self._learn(self._space(shape), texts)
        self._found = {(_REFERENCE, name): self._key_column(_REFERENCE, name) for name in compared[_REFERENCE]}
        self._is_reference = False

    def reference(self, name: str) -> KeyColumn:
        """Return the keys of a column of the reference."""
        return self._column(_REFERENCE, name)

    def actual(self, name: str) -> KeyColumn:
        """Return the keys of a column of the actual results."""
        return self._column(_ACTUAL, name)

    def _column(self, side: int, name: str) -> KeyColumn:
        if (side, name) not in self._found:
            for shape, texts, _ in _by_shape(self._columns[side][name]):
                self._learn(self._space(shape), texts)
            self._found[side, name] = self._key_column(side, name)
        return self._found[side, name]

    def _key_column(self, side: int, name: str) -> KeyColumn:
        column, labels = self._columns[side][name], self._labels[side]
        found = KeyColumn([UNBOUND_KEY] * len(column.texts))
        for shape, texts, rows in _by_shape(column):
            if shape[0] == "bnode":
                keys = [BLANK_KEY] * len(texts)
                found.blanks |= {
                    row: (labels.setdefault(text, len(labels)),) for row, text in zip(rows, texts, strict=True)
                }
            else:
                keys = self._keys_of(self._space(shape), texts) if shape[0] else [UNBOUND_KEY] * len(texts)
            if len(keys) == len(found.keys):
                found.keys = keys
            else:
                for row, key in zip(rows, keys, strict=True):
                    found.keys[row] = key
        for row, value in self._structures[side].get(name, column.structures).items():
            blanks: list[int] = []
            found.keys[row] = self._key_of_structure(value, labels, blanks)
            if blanks:
                found.blanks[row] = tuple(blanks)
        return found

    def _key_of_structure(self, value: Any, labels: dict[str, int], blanks: list[int]) -> int:
        """Return the key of a value with parts; its blank nodes are added to ``blanks``."""

        def key_of_part(part: Term | Triple) -> Hashable:
            if isinstance(part, Triple):
                return ("triple", *map(key_of_part, part))
            if part.shape[0] == "bnode":
                blanks.append(labels.setdefault(part.text, len(labels)))
                return BLANK_KEY
            space = self._space(part.shape)
            self._learn(space, [part.text])
            return self._keys_of(space, [part.text])[0]

        is_term = isinstance(value, Term | Triple)
        key = key_of_part(value) if is_term else key_of(value, self._told, self._rules.graph, key_of_part)
        return key if isinstance(key, int) else self._key_of_value(key)

    def _key_of_value(self, value: Hashable, otherwise: int | None = None) -> int:
        key = self._values.get(value, otherwise)
        self._values[value] = next(self._new_key) if key is None else key
        return self._values[value]

    def _space(self, shape: Shape) -> _Space:
        if shape not in self._spaces:
            kind, datatype, language = shape
            terms: Hashable = None
            if self._rules.strict:
                terms = kind if kind in NO_LITERALS else (language or "").lower() or (datatype or XSD_STRING, "")
            self._spaces[shape] = _Space(shape, self._texts[terms], self._rules)
        return self._spaces[shape]

    def _learn(self, space: _Space, texts: Sequence[str]) -> None:
        """Find the keys of those texts that have a value."""
        if not space.may_have_values(texts):
            return
        new = [text for text in dict.fromkeys(texts) if text not in space.known]
        if space.has_numbers:
            numbers = numbers_from(new, space.datatype)
            of_kind: dict[NumberKind, dict[str, Number]] = {}
            for text, number in zip(new, numbers, strict=True):
                if number is not None:
                    of_kind.setdefault(number_kind(text, space.datatype), {})[text] = number
            for kind, of_text in of_kind.items():
                written = map(space.texts.get, of_text)
                keys = self._number_keys(self._numbers, of_text.values(), kind, written)
                space.known.update(zip(of_text, keys, strict=True))
        read = space.read
        for text in new if read is not None else ():
            value = read(text) if read is not None and text not in space.known else None
            if value is None:
                continue
            otherwise = None if self._is_reference else space.texts.get(text)
            if space.datatype == WKT_LITERAL:
                value = value[0], *self._number_keys(self._coordinates, value[1], NumberKind.DOUBLE)
            elif space.datatype == XSD_BOOLEAN:  # 1 is written true as well
                otherwise = space.texts.get(value[1]) if otherwise is None else otherwise
                space.texts.setdefault(value[1], self._key_of_value(value, otherwise))
            space.known[text] = self._key_of_value(value, otherwise)
        if self._is_reference:
            for text in space.known.keys() & set(texts):
                space.texts.setdefault(text, space.known[text])

    def _number_keys(
        self, keys: _Numbers, numbers: Iterable[Number], kind: NumberKind, otherwise: Iterable[int | None] = ()
    ) -> list[int]:
        if self._is_reference:
            return keys.of_reference(list(numbers), kind)
        return keys.of_others(numbers, kind, chain(otherwise, repeat(None)))

    def _keys_of(self, space: _Space, texts: Sequence[str]) -> list[int]:
        """Return the keys of texts, whose values have been learned."""
        known, of_texts, joined = space.known, space.texts, "\n".join(texts)
        is_normal = self._rules.strict or joined.isascii() or not self._rules.values.nfc
        if is_normal and not (space.is_iri and "%" in joined) and (not known or known.keys().isdisjoint(texts)):
            return list(map(of_texts.setdefault, texts, self._new_key))
        for text in dict.fromkeys(texts):
            if text not in known:
                normal = text if is_normal else normalize("NFC", text)
                if space.is_iri:
                    normal = _ESCAPE.sub(lambda found: found[0].upper(), normal)
                key = of_texts.get(normal, of_texts.get(text))
                known[text] = of_texts[normal] = next(self._new_key) if key is None else key
                of_texts.setdefault(text, known[text])
        return list(map(known.__getitem__, texts))

    def note(self, name: str, row: int, actual_name: str, actual_row: int) -> str | None:
        """Return how two cells are near each other, for a reason; None if nothing is to be said."""
        column, other_column = self._columns[_REFERENCE][name], self._columns[_ACTUAL][actual_name]
        text, shape = column.texts[row], column.shape(row)
        other, other_shape = other_column.texts[actual_row], other_column.shape(actual_row)
        numbers = [
            number_from(each, datatype) if is_untyped((kind, datatype, language)) or datatype in NUMBER_KINDS else None
            for each, (kind, datatype, language) in ((text, shape), (other, other_shape))
        ]
        if numbers[0] is not None and numbers[1] is not None:
            share = relative_difference(numbers[0], numbers[1])
            if not share or share > _NEAR:
                return None
            mantissa, exponent = f"{share:.0e}".split("e")
            return f"{other} instead of {text} differs by {mantissa}e{int(exponent)} of its value"
        if not shape[0] or not other_shape[0] or (text == other and shape == other_shape):
            return None
        if text == other:
            return f"{other!r:.60} has another datatype, language tag or kind"
        is_near = " ".join(text.split()).casefold() == " ".join(other.split()).casefold()
        return f"{other!r:.60} instead of {text!r:.60} differs in case or spaces only" if is_near else None


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


_MAY_BE_STRUCTURE: Final = re.compile(
    r"^(?:-?\d{4,9}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}:\d\d(?::|$)|-?P[-\dT]|-?\d+ days?, |SRID=|POINT|[\[{(<])",
    re.M | re.I,
)


def _structures_of(sides: Sequence[Mapping[str, TermColumn]], *, reads_texts: bool) -> list[dict[str, dict[int, Any]]]:
    """Return the values with parts by column and row, for each side: those read, and those that untyped texts write.

    Texts are read if either side has values of property graphs, or ``reads_texts`` says so.
    """
    reads_texts = reads_texts or any(
        not isinstance(value, Triple)
        for side in sides
        for column in side.values()
        for value in column.structures.values()
    )
    found: list[dict[str, dict[int, Any]]] = []
    for side in sides:
        found.append({name: dict(column.structures) for name, column in side.items() if column.structures})
        reader = GraphReader()
        for name, column in side.items() if reads_texts else ():
            for shape, texts, rows in _by_shape(column):
                if (is_untyped(shape) or shape[1] == WKT_LITERAL) and _MAY_BE_STRUCTURE.search("\n".join(texts)):
                    values = {text: value_of_text(text, reader) for text in dict.fromkeys(texts)}
                    pairs = zip(rows, map(values.__getitem__, texts), strict=True)
                    written = {row: value for row, value in pairs if value is not None}
                    found[-1][name] = {**written, **found[-1].get(name, {})}
        reader.join_ends()
    return found
