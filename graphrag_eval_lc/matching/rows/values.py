"""Which terms have a value beside their text, and what it is: times, durations, geometries, texts and IRIs."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias
from unicodedata import is_normalized, normalize

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.rows.wkt import WKT_LITERAL, geometry_from
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD
from graphrag_eval_lc.matching.rows.xsd_times import (
    DATE_TIME_READERS,
    DURATION_READERS,
    date_from,
    time_from,
    untyped_time_from,
)


class Family(IntEnum):
    """Terms of one family are equal by value; terms of different ones, or without a value, by their text."""

    NUMBER = 0
    BOOLEAN = 1
    DATE_TIME = 2
    DATE = 3
    TIME = 4
    DURATION = 5
    GEOMETRY = 6
    IRI = 7


Value: TypeAlias = tuple[Family, Any]
"""A value and its family. But for numbers and geometries, which have a tolerance, equal values are the same."""

Reader: TypeAlias = Callable[[str], Value | None]
"""Reads the value of a text; None where the text has none."""


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
        if values is None:
            return cls()
        if isinstance(values, ValuesConfig):  # checked already
            return cls(values.times, values.durations, values.wkt, values.nfc, values.iri_case)
        given = dict(values)
        unknown = [name for name in given if name not in cls._fields]
        if unknown:
            raise ValueError(f"values has no {unknown[0]!r:.40}: it has {', '.join(cls._fields)}")
        wrong = [name for name, value in given.items() if not isinstance(value, bool)]
        if wrong:
            raise ValueError(f"values.{wrong[0]} is neither true nor false")
        return cls(**given)


NO_VALUES: Final = ValueRules(times=False, durations=False, wkt=False, nfc=False, iri_case=False)
"""Every term but numbers and booleans is its text."""


def _reader(family: Family, read: Callable[[str], Any]) -> Reader:
    def value(text: str) -> Value | None:
        found = read(text)
        return None if found is None else (family, found)

    return value


_TIME_READERS: Final[Mapping[str, Reader]] = {
    **{datatype: _reader(Family.DATE_TIME, read) for datatype, read in DATE_TIME_READERS.items()},
    f"{XSD}date": _reader(Family.DATE, date_from),
    f"{XSD}time": _reader(Family.TIME, time_from),
}
_DURATION_READERS: Final[Mapping[str, Reader]] = {
    datatype: _reader(Family.DURATION, read) for datatype, read in DURATION_READERS.items()
}
_WKT_READERS: Final[Mapping[str, Reader]] = {WKT_LITERAL: _reader(Family.GEOMETRY, geometry_from)}


def typed_reader(datatype: str | None, rules: ValueRules) -> Reader | None:
    """Return what reads the times, durations or geometries of a datatype; None where its terms are their texts.

    Example:
        >>> read = typed_reader("http://www.w3.org/2001/XMLSchema#duration", ValueRules())
        >>> read("P1D") == read("PT24H"), read("a day")
        (True, None)
    """
    if datatype is None:
        return None
    found = _TIME_READERS.get(datatype) if rules.times else None
    found = found or (_DURATION_READERS.get(datatype) if rules.durations else None)
    return found or (_WKT_READERS.get(datatype) if rules.wkt else None)


TIME_FAMILIES: Final = frozenset({Family.DATE_TIME, Family.DATE, Family.TIME})

_FAMILY_OF: Final[Mapping[str, Family]] = {
    **dict.fromkeys(DATE_TIME_READERS, Family.DATE_TIME),
    f"{XSD}date": Family.DATE,
    f"{XSD}time": Family.TIME,
    **dict.fromkeys(DURATION_READERS, Family.DURATION),
    WKT_LITERAL: Family.GEOMETRY,
}


def family_of(datatype: str | None) -> Family | None:
    """Return the family of a datatype's times, durations or geometries; None for all other datatypes."""
    return None if datatype is None else _FAMILY_OF.get(datatype)


def untyped_time(text: str) -> Value | None:
    """Read a text without a datatype that is a point in time, or a time with a zone."""
    found = untyped_time_from(text)
    return None if found is None else (Family.DATE_TIME if found.has_date else Family.TIME, found.moment)


_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_LOWER_CASE_ESCAPE: Final = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")


def iri_reader(rules: ValueRules) -> Reader:
    """Return what reads IRIs, which count as they are but for the case of percent-encoding."""

    def read(iri: str) -> Value:
        return Family.IRI, with_upper_case_escapes(iri) if rules.iri_case else iri

    return read


def with_upper_case_escapes(iri: str) -> str:
    """Return an IRI with the hex digits of its percent-encoding in upper case.

    Example:
        >>> with_upper_case_escapes("http://example.org/%c3%A5/%zz")
        'http://example.org/%C3%A5/%zz'
    """
    return _ESCAPE.sub(lambda found: found[0].upper(), iri) if "%" in iri else iri


def have_lower_case_escapes(iris: Iterable[str]) -> bool:
    """Return whether one of the IRIs has percent-encoding in lower case."""
    joined = "\n".join(iris)
    return "%" in joined and _LOWER_CASE_ESCAPE.search(joined) is not None


def in_nfc(text: str) -> str:
    """Return a text in the Unicode normal form C."""
    return normalize("NFC", text)


def are_in_nfc(texts: Iterable[str]) -> bool:
    """Return whether all texts are in the Unicode normal form C; nothing joins what stands on two lines."""
    joined = "\n".join(texts)
    return joined.isascii() or is_normalized("NFC", joined)
