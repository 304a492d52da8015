"""Columns of terms as plain texts, floats or values, where these will do to compare them quickly."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import product, repeat
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.matching.rows.terms import NO_LITERALS, Shape
from graphrag_eval_lc.matching.rows.values import (
    NO_VALUES,
    TIME_FAMILIES,
    Family,
    Reader,
    Value,
    ValueRules,
    are_in_nfc,
    family_of,
    have_lower_case_escapes,
    iri_reader,
    typed_reader,
    untyped_time,
)
from graphrag_eval_lc.matching.rows.wkt import WKT_LITERAL
from graphrag_eval_lc.matching.rows.xsd_numbers import (
    XSD,
    XSD_BOOLEAN,
    NumberKind,
    is_numeric_datatype,
    number_from,
    number_kind,
)
from graphrag_eval_lc.matching.rows.xsd_times import (
    TimeForm,
    form_of_times,
    forms_of_untyped_times,
    has_untyped_time,
)

_SHAPES_OF_TEXTS: Final = frozenset({("uri", None, None), ("literal", None, None)})
_WITH_FRACTION: Final = frozenset({f"{XSD}decimal", f"{XSD}double", f"{XSD}float"})
_NUMBER_CHARACTERS: Final = b"-.0123456789\n"
_EXACT_LENGTH: Final = 15
"""Numbers with at most 15 digits are equal only where they are equal as floats."""

_FINE_PLACES: Final = 8
_FINE_FRACTION: Final = re.compile(rf"\.[0-9]{{{_FINE_PLACES}}}")
"""With so many decimals a number may be within 1e-8 of another one."""


class PlainCells(NamedTuple):
    """The cells of a column.

    Attributes:
        cells: A text for each cell; a float in a column of numbers; a value in one of times or durations.
        forms: How the numbers or values are written; empty in a column of texts.
        kinds: What the numbers are; empty in all other columns.
        whole: The texts without a datatype that are integers; empty in a column of numbers or values.
    """

    cells: list[str] | list[float] | list[Value]
    forms: frozenset[str] = frozenset()
    kinds: frozenset[NumberKind] = frozenset()
    whole: frozenset[str] = frozenset()


def distinct_shapes(shapes: list[Shape] | Shape) -> Collection[Shape]:
    """Return the shapes of a column, each once."""
    return set(shapes) if isinstance(shapes, list) else (shapes,)


def plain_cells(
    shapes: list[Shape] | Shape, texts: list[str], known: Collection[Shape] | None = None
) -> PlainCells | None:
    """Return the cells of a column as texts or floats, which are equal only if the cells are.

    They do not suffice for unbound cells, blank nodes, long or uncommon numbers (1E3, +5), booleans written 1 and 0,
    and columns in which numbers or booleans stand among other terms; then this is None.

    Args:
        shapes: The shapes of the cells.
        texts: Their texts.
        known: The distinct shapes, where they are known.
    """
    if isinstance(shapes, tuple) and shapes in _SHAPES_OF_TEXTS:
        return PlainCells(texts)
    kinds = distinct_shapes(shapes) if known is None else known
    if any(kind in ("", "bnode", "triple") for kind, _, _ in kinds):
        return None
    datatypes = {None if kind == "uri" else datatype for kind, datatype, _ in kinds}
    numeric = {datatype for datatype in datatypes if is_numeric_datatype(datatype)}
    if numeric:
        if numeric != datatypes:
            return None
        found = frozenset(number_kind("", datatype) for datatype in numeric)
        return _plain_numbers(texts, found, with_fraction=numeric <= _WITH_FRACTION)
    if XSD_BOOLEAN in datatypes and (len(datatypes) > 1 or not set(texts) <= {"true", "false"}):
        return None
    return PlainCells(texts)


def plain_cells_by_value(shapes: list[Shape] | Shape, texts: list[str], values: ValueRules) -> PlainCells | None:
    """Return the cells as texts, floats or values, which are equal just if the cells are; None where these do not do.

    Texts without a datatype that are written as numbers or times count by their value. The texts are in the normal
    form C where that is asked for.
    """
    plain = plain_cells(shapes, texts)
    if plain is None or plain.forms:
        return plain
    kinds = set(shapes) if isinstance(shapes, list) else {shapes}
    iris = iris_of(shapes, texts)
    if (values.iri_case and have_lower_case_escapes(iris)) or (values.nfc and not are_in_nfc(iris)):
        return None
    untyped = untyped_texts(shapes, texts)
    has_times = values.times and has_untyped_time(untyped)
    readers = {shape: read for shape in kinds if (read := value_reader(shape, values, reads_untyped=has_times))}
    if not readers:
        return _with_untyped_numbers(texts, untyped)
    if len(readers) < len(kinds) or (values.wkt and any(datatype == WKT_LITERAL for _, datatype, _ in kinds)):
        return None
    of_cells = map(readers.__getitem__, shapes) if isinstance(shapes, list) else repeat(readers[shapes])
    cells = [read(text) for read, text in zip(of_cells, texts, strict=False)]
    known = [cell for cell in cells if cell is not None]
    return PlainCells(known, frozenset(texts)) if len(known) == len(cells) else None


def value_reader(shape: Shape, values: ValueRules, *, reads_untyped: bool = True) -> Reader | None:
    """Return what reads the times, durations and geometries of a shape; None where its terms are none of these."""
    if is_untyped(shape):
        return untyped_time if values.times and reads_untyped else None
    return None if shape[0] in NO_LITERALS else typed_reader(shape[1], values)


def sample_reader(shape: Shape, values: ValueRules) -> Callable[[str], Hashable]:
    """Return what tells roughly which terms of a shape are equal: by value, geometries by their floats, or by text."""
    read = iri_reader(values) if shape[0] == "uri" else value_reader(shape, values)
    if read is None:
        return str

    def key(text: str) -> Hashable:
        found = read(text)
        if found is None:
            return text
        family, value = found
        if family == Family.GEOMETRY:
            return value.skeleton, value.floats
        return value if family == Family.IRI else found

    return key


class Marks(NamedTuple):
    """Which characters the texts of a column have, which is enough to know that most columns are of no concern."""

    is_ascii: bool
    may_have_times: bool
    has_percent: bool


_MARKS: Final = {each: Marks(*each) for each in product((False, True), repeat=3)}


def marks_of(joined: str) -> Marks:
    """Return the marks of texts that are joined; a time with a zone has a colon and one of ``Z+-``."""
    may_have_times = ":" in joined and ("-" in joined or "Z" in joined or "+" in joined)
    return _MARKS[joined.isascii(), may_have_times, "%" in joined]


class Concerns(NamedTuple):
    """What in a column may equal cells that are written otherwise.

    Attributes:
        times: The forms of its times by family, with None for several or rare forms.
        untyped_times: Whether cells without a datatype are among its times.
        durations: Whether it has any.
        wkt: Whether it has geometries.
        nfc: Whether a literal or IRI is not in the normal form C.
        iris: Whether an IRI is not.
        iri_case: Whether an IRI has percent-encoding in lower case.
    """

    times: frozenset[tuple[Family, TimeForm | None]]
    untyped_times: bool
    durations: bool
    wkt: bool
    nfc: bool
    iris: bool
    iri_case: bool


NO_CONCERNS: Final = Concerns(
    frozenset(), untyped_times=False, durations=False, wkt=False, nfc=False, iris=False, iri_case=False
)
"""Nothing in a column equals cells that are written otherwise."""


def concerns_of(
    shapes: list[Shape] | Shape, texts: list[str], marks: Marks | None = None, known: Collection[Shape] | None = None
) -> Concerns:
    """Find what in a column may equal cells that are written otherwise.

    Args:
        shapes: The shapes of its cells.
        texts: Their texts.
        marks: Those of the texts, where they are known.
        known: The distinct shapes, where they are known.
    """
    marks = marks_of("\n".join(texts)) if marks is None else marks
    known = distinct_shapes(shapes) if known is None else known
    if (
        marks.is_ascii
        and not marks.has_percent
        and all(family_of(datatype) is None for _, datatype, _ in known)
        and not (marks.may_have_times and any(map(is_untyped, known)))
    ):
        return NO_CONCERNS
    times: set[tuple[Family, TimeForm | None]] = set()
    families = set()
    for shape in known:
        family = family_of(shape[1]) if shape[0] not in NO_LITERALS else None
        families.add(family)
        if family in TIME_FAMILIES:
            same = (
                texts
                if not isinstance(shapes, list)
                else [text for each, text in zip(shapes, texts, strict=True) if each == shape]
            )
            times.add((family, form_of_times(same)))
    untyped = untyped_texts(shapes, texts) if marks.may_have_times else []
    has_untyped_times = has_untyped_time(untyped)
    if has_untyped_times:
        forms = forms_of_untyped_times(untyped)
        times |= {(Family.DATE_TIME if has_date else Family.TIME, form) for has_date, form in forms}
    nfc = not (marks.is_ascii or are_in_nfc(texts))
    iris = iris_of(shapes, texts) if nfc or marks.has_percent else []
    return Concerns(
        frozenset(times),
        has_untyped_times,
        Family.DURATION in families,
        Family.GEOMETRY in families,
        nfc,
        nfc and not are_in_nfc(iris),
        have_lower_case_escapes(iris),
    )


def relevant_rules(concerns: Sequence[Concerns], values: ValueRules) -> ValueRules:
    """Return which rules make a difference to columns; times of one form are equal just where their texts are."""
    concerns = [each for each in concerns if each is not NO_CONCERNS]
    if not concerns:
        return NO_VALUES
    forms = defaultdict[tuple[Family, bool], set[TimeForm | None]](set)
    for family, form in frozenset[tuple[Family, TimeForm | None]]().union(*(each.times for each in concerns)):
        forms[family, form is None or form[1] != ""].add(form)
    return ValueRules(
        times=values.times and any(None in found or len(found) > 1 for found in forms.values()),
        durations=values.durations and any(each.durations for each in concerns),
        wkt=values.wkt and any(each.wkt for each in concerns),
        nfc=values.nfc and any(each.nfc for each in concerns),
        iri_case=values.iri_case and any(each.iri_case for each in concerns),
    )


def iris_of(shapes: list[Shape] | Shape, texts: list[str]) -> list[str]:
    """Return the IRIs among the texts."""
    if not isinstance(shapes, list):
        return texts if shapes[0] == "uri" else []
    return [text for shape, text in zip(shapes, texts, strict=True) if shape[0] == "uri"]


def is_untyped(shape: Shape) -> bool:
    """Return whether a term is a literal with neither datatype nor language, whose text may be a number."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in NO_LITERALS


def untyped_texts(shapes: list[Shape] | Shape, texts: list[str]) -> list[str]:
    """Return the texts of untyped cells."""
    if not isinstance(shapes, list):
        return texts if is_untyped(shapes) else []
    untyped = set(filter(is_untyped, set(shapes)))
    return [text for shape, text in zip(shapes, texts, strict=True) if shape in untyped] if untyped else []


def _with_untyped_numbers(texts: list[str], untyped: list[str]) -> PlainCells | None:
    """Keep untyped integers as texts, as there is one way to write them; other numbers must fill their column."""
    numbers = {text for text in untyped if number_from(text, None) is not None}
    kinds = frozenset(number_kind(text, None) for text in numbers)
    if kinds <= {NumberKind.INTEGER}:
        return None if "-0" in numbers else PlainCells(texts, whole=frozenset(numbers))
    return _plain_numbers(texts, kinds, with_fraction=True) if numbers.issuperset(texts) else None


def _plain_numbers(texts: list[str], kinds: frozenset[NumberKind], *, with_fraction: bool) -> PlainCells | None:
    joined = "\n".join(texts)
    longest = max(map(len, texts))
    if longest > _EXACT_LENGTH or not joined.isascii() or joined.encode().translate(None, _NUMBER_CHARACTERS):
        return None
    if "." in joined and not with_fraction:
        return None
    if longest > _FINE_PLACES and _FINE_FRACTION.search(joined):
        return None
    try:
        return PlainCells(list(map(float, texts)), frozenset(texts), kinds)
    except ValueError:
        return None


def are_comparable(columns: Iterable[PlainCells]) -> bool:
    """Return whether columns can be compared as texts, floats and values.

    These do not show that a number or time equals a text written like it, nor that an untyped integer equals a number.
    """
    known = list(columns)
    forms = frozenset[str]().union(*(column.forms for column in known))
    if forms and not all(column.forms or forms.isdisjoint(column.cells) for column in known):
        return False
    whole = frozenset[str]().union(*(column.whole for column in known))
    numbers = set[Any]().union(*(column.cells for column in known if column.kinds)) if whole else set[Any]()
    return numbers.isdisjoint(map(float, whole))
