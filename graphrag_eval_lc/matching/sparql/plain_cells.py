"""Cells as texts and floats that are equal only where the cells are, for the columns in which that can be had."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.sparql.numbers import XSD, XSD_BOOLEAN, is_numeric_datatype

_WITH_FRACTION: Final = frozenset({f"{XSD}decimal", f"{XSD}double", f"{XSD}float"})
_NUMBER_CHARACTERS: Final = frozenset("-.0123456789\n")
_EXACT_LENGTH: Final = 15
"""Decimal numbers with at most 15 digits are equal only where the floats are that they are read as."""

_FINE_FRACTION: Final = re.compile(r"\.[0-9]{8}")
"""With so many decimals a number may be within the tolerance of another one."""


class PlainCells(NamedTuple):
    """The cells of a column.

    Attributes:
        cells: A text for each cell, or a float in a column of numbers.
        numbers: How the numbers are written; empty in a column of texts.
    """

    cells: list[str] | list[float]
    numbers: frozenset[str] = frozenset()


def plain_cells(
    shapes: list[tuple[str, str | None, str | None]] | tuple[str, str | None, str | None], texts: list[str]
) -> PlainCells | None:
    """Give the cells of a column as texts or floats; None where more is needed to tell which are equal.

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
        return _plain_numbers(texts, with_fraction=numeric <= _WITH_FRACTION) if numeric == datatypes else None
    if XSD_BOOLEAN in datatypes and (len(datatypes) > 1 or not set(texts) <= {"true", "false"}):
        return None
    return PlainCells(texts)


def _plain_numbers(texts: list[str], *, with_fraction: bool) -> PlainCells | None:
    joined = "\n".join(texts)
    if not (set(joined) <= _NUMBER_CHARACTERS and max(map(len, texts)) <= _EXACT_LENGTH):
        return None
    if "." in joined and (not with_fraction or _FINE_FRACTION.search(joined)):
        return None
    try:
        return PlainCells(list(map(float, texts)), frozenset(texts))
    except ValueError:
        return None


def are_comparable(columns: Iterable[PlainCells]) -> bool:
    """Tell whether columns can be compared with each other.

    A number equals a text that is written like it, which a float does not show.
    """
    known = list(columns)
    numbers = frozenset[str]().union(*(column.numbers for column in known))
    return not numbers or all(column.numbers or numbers.isdisjoint(column.cells) for column in known)
