"""Whether chance alone explains that a column of the actual results has what is required of it.

A query that returns 300 numbers has the one that was asked for, and one that returns true and false has the right
answer. So a column is trusted by the information in what it shares with the required one, against the number of
columns that could have been chosen in its place:

- A value has as many bits as its kind has room for: a boolean, a blank node or an unbound cell 1, a number 3.3 for each
  digit, a text 5 for each character up to 40, an IRI 40. A column has the bits of its different values; or, beside
  other columns, those of how its values lie over the rows, where these are more.
- Rivals are the actual columns with values of the same kind that play no required column and were not asked for, less
  the required columns of this kind that no column plays.
- Chance explains the column to (rivals + 1) ÷ 2^bits, 1 at most; without rivals, or where the column has the name of
  the required one, not at all. The rest is its trust.

A count of 5 is so trusted beside columns of texts alone; to 0.8 beside one other number; and from 9 on not at all.
"""

import re
from collections.abc import Iterable, Mapping
from math import log2
from typing import Final

from graphrag_eval_lc.matching.rows.results import TermColumn
from graphrag_eval_lc.matching.rows.terms import Shape
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD_BOOLEAN

_NUMBER: Final = re.compile(r"\s{0,9}[+-]?([0-9]{0,999}(?:\.[0-9]{0,999})?)(?:[eE][+-]?[0-9]{1,9})?\s{0,9}")
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}:[^\s<>]+")
_BITS_OF_A_DIGIT: Final = log2(10)
_BITS_OF_A_CHARACTER: Final = 5.0
_MOST_BITS: Final = 40.0
_NEGLIGIBLE: Final = 1e-6


def kind_of_value(text: str, shape: Shape) -> str:
    """Return the kind of value that a cell is, as a guess at a required value would have to be.

    Example:
        >>> kind_of_value("5", ("literal", None, None)), kind_of_value("Oslo", ("literal", None, "en"))
        ('number', 'text')
    """
    kind, datatype, _ = shape
    if kind in ("", "bnode"):
        return kind
    if datatype == XSD_BOOLEAN or text in ("true", "false"):
        return "boolean"
    match = _NUMBER.fullmatch(text)
    if match is not None and match[1].strip("."):
        return "number"
    return "iri" if kind == "uri" or _IRI.fullmatch(text) else "text"


def bits_of_value(text: str, shape: Shape) -> float:
    """Return the information of a value, as its kind has room for; 1 to 40.

    Example:
        >>> bits_of_value("true", ("literal", None, None)), round(bits_of_value("42", ("literal", None, None)), 1)
        (1.0, 6.6)
    """
    kind = kind_of_value(text, shape)
    if kind in ("", "bnode", "boolean"):
        return 1.0
    if kind == "iri":
        return _MOST_BITS
    if kind == "text":
        return max(1.0, min(_MOST_BITS, _BITS_OF_A_CHARACTER * len(text)))
    match = _NUMBER.fullmatch(text)
    digits = "" if match is None else match[1]
    digits = (digits.rstrip("0") if "." in digits else digits).replace(".", "").lstrip("0")
    return min(_MOST_BITS, _BITS_OF_A_DIGIT * max(1, len(digits)))


def kinds_in(column: TermColumn) -> frozenset[str]:
    """Return the kinds of values in a column, without those that are unbound."""
    if isinstance(column.shapes, list):
        cells = set(zip(column.texts, column.shapes, strict=True))
    else:
        cells = {(text, column.shapes) for text in set(column.texts)}
    return frozenset(kind_of_value(*cell) for cell in cells) - {""}


def bits_of_column(values: Mapping[tuple[str, Shape], int], *, is_alone: bool) -> float:
    """Return the information of the values of a column.

    Args:
        values: The different values with the number of different rows that have each.
        is_alone: Whether there is no other column, so that it does not tell which row has which value.
    """
    by_values = sum(bits_of_value(*value) for value in values)
    if is_alone:
        return by_values
    rows = sum(values.values())
    return max(by_values, sum(times * log2(rows / times) for times in values.values()))


def trust(bits: float, rivals: int) -> float:
    """Return how far a column is trusted that has this information in common with the required one; 0 to 1.

    Example:
        >>> trust(1.0, 1), trust(1.0, 0), round(trust(3.32, 1), 1), trust(40.0, 299)
        (0.0, 1.0, 0.8, 1.0)
    """
    if rivals <= 0:
        return 1.0
    chance = (rivals + 1) * 2.0 ** -min(bits, 1_000.0)
    return 1.0 - min(1.0, chance) if chance > _NEGLIGIBLE else 1.0


def rival_count(kinds: frozenset[str], surplus: Iterable[frozenset[str]], unplayed: Iterable[frozenset[str]]) -> int:
    """Return how many columns could have been chosen in place of one.

    Args:
        kinds: The kinds of values in the required column.
        surplus: Those in the actual columns that play none and were not asked for.
        unplayed: Those in the required columns that no column plays.
    """
    free = sum(not kinds.isdisjoint(each) for each in surplus)
    return max(0, free - sum(not kinds.isdisjoint(each) for each in unplayed))
