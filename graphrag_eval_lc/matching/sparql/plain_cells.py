"""Cells as texts and floats that are equal only where the cells are, for the columns in which that can be had."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.numbers import (
    XSD,
    XSD_BOOLEAN,
    NumberKind,
    is_numeric_datatype,
    number_from,
    number_kind,
)

_WITH_FRACTION: Final = frozenset({f"{XSD}decimal", f"{XSD}double", f"{XSD}float"})
_NUMBER_CHARACTERS: Final = frozenset("-.0123456789\n")
_EXACT_LENGTH: Final = 15
"""Decimal numbers with at most 15 digits are equal only where the floats are that they are read as."""

_FINE_FRACTION: Final = re.compile(r"\.[0-9]{8}")
"""With so many decimals a number may be within 1e-8 of another one."""

_Shape: TypeAlias = tuple[str, str | None, str | None]


class PlainCells(NamedTuple):
    """The cells of a column.

    Attributes:
        cells: A text for each cell, or a float in a column of numbers.
        numbers: How the numbers are written; empty in a column of texts.
        kinds: What the numbers are.
        whole: The texts that are integers, as they have no datatype; empty in a column of numbers.
    """

    cells: list[str] | list[float]
    numbers: frozenset[str] = frozenset()
    kinds: frozenset[NumberKind] = frozenset()
    whole: frozenset[str] = frozenset()


def plain_cells(shapes: list[_Shape] | _Shape, texts: list[str]) -> PlainCells | None:
    """Give the cells of a column as texts or floats, equal only where the cells are; None where that takes more.

    That is so for unbound cells, blank nodes, long or uncommon numbers (1E3, +5), booleans written 1 and 0, and
    columns in which numbers or booleans stand among other terms.

    Args:
        shapes: Type, datatype and language tag of each cell, or of all cells.
        texts: The text of each cell.
    """
    kinds = set(shapes) if isinstance(shapes, list) else {shapes}
    if any(kind in ("", "bnode") for kind, _, _ in kinds):
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


def plain_cells_by_value(shapes: list[_Shape] | _Shape, texts: list[str]) -> PlainCells | None:
    """Give the same, with texts that have no datatype and are written as numbers compared by their value."""
    plain = plain_cells(shapes, texts)
    return plain if plain is None or plain.numbers else _with_untyped_numbers(texts, untyped_texts(shapes, texts))


def is_untyped(shape: _Shape) -> bool:
    """Tell whether a term is a literal with neither a datatype nor a language, so that its text may be a number."""
    kind, datatype, language = shape
    return datatype is None and not language and kind not in ("", "uri", "bnode")


def untyped_texts(shapes: list[_Shape] | _Shape, texts: list[str]) -> list[str]:
    """Give the texts that may be numbers although they have no datatype."""
    if not isinstance(shapes, list):
        return texts if is_untyped(shapes) else []
    untyped = set(filter(is_untyped, set(shapes)))
    return [text for shape, text in zip(shapes, texts, strict=True) if shape in untyped] if untyped else []


def _with_untyped_numbers(texts: list[str], untyped: list[str]) -> PlainCells | None:
    """Integers stand for themselves among texts, as there is one way to write them; others must be on their own."""
    numbers = {text for text in untyped if number_from(text, None) is not None}
    kinds = frozenset(number_kind(text, None) for text in numbers)
    if kinds <= {NumberKind.INTEGER}:
        return None if "-0" in numbers else PlainCells(texts, whole=frozenset(numbers))
    return _plain_numbers(texts, kinds, with_fraction=True) if numbers.issuperset(texts) else None


def _plain_numbers(texts: list[str], kinds: frozenset[NumberKind], *, with_fraction: bool) -> PlainCells | None:
    joined = "\n".join(texts)
    if not (set(joined) <= _NUMBER_CHARACTERS and max(map(len, texts)) <= _EXACT_LENGTH):
        return None
    if "." in joined and (not with_fraction or _FINE_FRACTION.search(joined)):
        return None
    try:
        return PlainCells(list(map(float, texts)), frozenset(texts), kinds)
    except ValueError:
        return None


def are_comparable(columns: Iterable[PlainCells]) -> bool:
    """Tell whether columns can be compared with each other.

    A number equals a text that is written like it, and an integer without a datatype equals a number of its value,
    which texts and floats do not show.
    """
    known = list(columns)
    numbers = frozenset[str]().union(*(column.numbers for column in known))
    if numbers and not all(column.numbers or numbers.isdisjoint(column.cells) for column in known):
        return False
    whole = frozenset[str]().union(*(column.whole for column in known))
    return not (numbers and whole) or set(map(float, whole)).isdisjoint(map(float, numbers))
