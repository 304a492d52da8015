"""Rows that a tool printed as Python shows them, with objects of Neo4j's driver, sets or points in them.

``python_form``, which is quicker, goes first and reads all texts that have none of these. Here the calls below, Neo4j's
own, give texts without a type; all other calls are those of ``python_calls``, so that a printed value means the same in
both readers. Nothing is run: the text is read token by token.
"""

import re
from ast import literal_eval
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.graph_times import duration_text
from graphrag_eval_lc.matching.rows.python_calls import (
    CONSTANTS,
    NAMES,
    UTC,
    NamedZone,
    Zone,
    as_cell,
    call_value,
    zone_behind,
    zone_of,
)

_LONGEST: Final = 10_000_000
_DEEPEST: Final = 60

_BEGINNING: Final = re.compile(
    r"\s{0,100}(?:\[\s{0,20}[({\[<]|\{\s{0,20}'|\(\s{0,20}[\[({<]|<(?:Record|Node)\s|EagerResult\()"
)
_MARKS: Final = (
    "<Node ",
    "<Relationship ",
    "<Path ",
    "<Record ",
    "neo4j.time.",
    "datetime.",
    "UUID('",
    "Point(",
    "POINT(",
    "frozenset(",
    "set()",
)
_EAGER_RESULT: Final = re.compile(r"\s*EagerResult\(records=")

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_STRING: Final = re.compile(r"""'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\"""")
_NUMBER: Final = re.compile(r"-?(?:(?:\d{1,4000}+(?:\.\d{1,400}+)?(?:e[+-]?\d{1,4})?)|inf)(?![\w.'\"])")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_.\d]{0,60}")
_KEY: Final = re.compile(r"[A-Za-z_]\w{0,40}=")
_FIELD: Final = re.compile(r"[^=<>'\"\n]{1,300}=|'[^'\n]{1,300}'=")
_ZONE: Final = re.compile(
    r"<DstTzInfo '[\w/+-]{1,40}' [\w+-]{1,10}?(?P<sign>[+-])(?P<hours>\d\d?):(?P<minutes>\d\d):\d\d (?:STD|DST)>"
    r"|<StaticTzInfo '(?P<name>[\w/+-]{1,40})'>|<UTC>"
)
_POINT: Final = re.compile(r"POINT\([\d.eE+ -]{1,100}\)")
_TORN_NAME: Final = re.compile(r"<?[A-Za-z_.]{0,40}\Z|-?\d{0,40}\.?\d{0,40}\Z|['\"][^\n]*\Z|(?:\.\.\.|…)\s*\Z")
_OTHER_NAME: Final = re.compile(NAMES)
_NAMED: Final = {"None": None, "True": True, "False": False, "nan": float("nan"), "inf": float("inf")}
_SRIDS: Final = {
    ("WGS84Point", 2): 4326,
    ("WGS84Point", 3): 4979,
    ("CartesianPoint", 2): 7203,
    ("CartesianPoint", 3): 9157,
}


def is_graph_repr(text: str) -> bool:
    """Return whether a text begins as Python shows rows, and may hold objects of a driver, sets, points or times.

    Example:
        >>> is_graph_repr("[{'d': neo4j.time.Date(2020, 1, 1)}]"), is_graph_repr("[{'d': 1}]")
        (True, False)
    """
    return _BEGINNING.match(text) is not None and any(mark in text for mark in _MARKS)


def graph_repr_value(text: str) -> Any:
    """Return what Python showed: nodes and relationships as objects with their ids, times as texts.

    Raises:
        CutOutput: The text breaks off before its end.
        UnreadableOutput: It is something else, or too long or deep.

    Example:
        >>> graph_repr_value("[{'d': neo4j.time.Date(2020, 1, 1)}]")
        [{'d': '2020-01-01'}]
    """
    if len(text) > _LONGEST:
        raise UnreadableOutput(f"a Python value of more than {_LONGEST:,} characters")
    text = text.strip()
    eager = _EAGER_RESULT.match(text)
    parser = _Parser(text, eager.end() if eager else 0)
    value = parser.value(0)
    if not eager and text[parser.at :].strip():
        mark = cut_mark(text)
        if mark is not None:
            raise CutOutput(f"after the Python value stands {mark!r}")
        raise UnreadableOutput("a Python value with more text after it")
    return value


class _Parser:
    """Reads one value after the other.

    Attributes:
        at: Where the next one begins.
    """

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def value(self, depth: int) -> Any:
        """Read the value that begins here."""
        if depth > _DEEPEST:
            raise UnreadableOutput("a Python value that is nested too deeply")
        self._skip_space()
        sign = self._text[self.at : self.at + 1]
        if sign == "[":
            return self._items("[", "]", depth)
        if sign == "(":
            return tuple(self._items("(", ")", depth))
        if sign == "{":
            return self._braces(depth)
        if sign == "<":
            return self._object(depth)
        number = _NUMBER.match(self._text, self.at)
        if number is not None:
            self.at = number.end()
            return _number(number[0])
        return self._string() if sign in ("'", '"') else self._named(depth)

    def _string(self) -> str:
        found = _STRING.match(self._text, self.at)
        if found is None:
            raise self._problem()
        self.at = found.end()
        inside = found[0][1:-1]
        if "\\" not in inside:
            return inside
        try:
            return str(literal_eval(found[0]))
        except (ValueError, SyntaxError, MemoryError):
            raise UnreadableOutput("a Python value with a text that cannot be read") from None

    def _skip_space(self) -> None:
        if self._text[self.at : self.at + 1] in (" ", "\n", "\t", "\r"):
            found = _SPACE.match(self._text, self.at)
            self.at = self.at if found is None else found.end()

    def _takes(self, sign: str) -> bool:
        """Pass over a sign, if it comes next."""
        self._skip_space()
        if not self._text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def _need(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._problem()

    def _problem(self) -> UnreadableOutput:
        is_torn = self.at >= len(self._text) or _TORN_NAME.match(self._text, self.at) is not None
        if is_torn or cut_mark(self._text) is not None:
            return CutOutput("the Python value breaks off before its end")
        return UnreadableOutput(f"no Python value from character {self.at + 1:,} on")

    def _items(self, opening: str, closing: str, depth: int) -> list[Any]:
        self._need(opening)
        found: list[Any] = []
        while not self._takes(closing):
            if found:
                self._need(",")
                if self._takes(closing):
                    break
            found.append(as_cell(self.value(depth + 1)))
        return found

    def _braces(self, depth: int) -> dict[str, Any] | list[Any]:
        """Read a dict or a set."""
        self._need("{")
        found: dict[str, Any] = {}
        members: list[Any] = []
        while not self._takes("}"):
            if found or members:
                self._need(",")
            key = self.value(depth + 1)
            if members or not self._takes(":"):
                members.append(as_cell(key))
                continue
            if not isinstance(key, str | int):
                raise UnreadableOutput("a Python value with a key that is no name")
            found[str(key)] = as_cell(self.value(depth + 1))
        return sorted(members, key=repr) if members else found

    def _object(self, depth: int) -> Any:
        """Read an object of the driver."""
        zone = _ZONE.match(self._text, self.at)
        if zone is not None:
            self.at = zone.end()
            return _zone_of(zone)
        self._need("<")
        name = _NAME.match(self._text, self.at)
        if name is None:
            raise self._problem()
        self.at = name.end()
        fields: dict[str, Any] = {}
        while not self._takes(">"):
            key = _FIELD.match(self._text, self.at)
            if key is None:
                raise self._problem()
            self.at = key.end()
            field = key[0][:-1].strip("'") if name[0] == "Record" else key[0][:-1]
            fields[field] = as_cell(self.value(depth + 1))
        return _object_of(name[0], fields)

    def _named(self, depth: int) -> Any:
        """Read a constant or a call."""
        point = _POINT.match(self._text, self.at)
        if point is not None:
            self.at = point.end()
            return point[0]
        name = _NAME.match(self._text, self.at)
        if name is None:
            raise self._problem()
        start, self.at = self.at, name.end()
        if name[0] in _NAMED:
            return _NAMED[name[0]]
        if name[0] == "datetime.timezone.utc":
            return UTC
        read = _CALLS.get(name[0])
        short_name = name[0].rpartition(".")[2]
        if read is None:
            if _OTHER_NAME.match(self._text, start) is None:
                self.at = start
                raise self._problem()
            if short_name in CONSTANTS:
                return CONSTANTS[short_name]
        self._need("(")
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self._takes(")"):
            if arguments or keywords:
                self._need(",")
                self._skip_space()
            key = _KEY.match(self._text, self.at)
            self.at = self.at if key is None else key.end()
            found = self.value(depth + 1)
            if key is None:
                arguments.append(found)
            else:
                keywords[key[0][:-1]] = found
        if read is None:
            return call_value(short_name, arguments, keywords)
        try:
            return read(arguments, keywords)
        except (ValueError, TypeError, IndexError, KeyError, OverflowError, OSError) as problem:
            if isinstance(problem, UnreadableOutput):
                raise
            raise UnreadableOutput(f"no Python value: a {name[0]} that cannot be") from None


def _number(text: str) -> Any:
    if text.endswith("inf"):
        return float(text)
    return float(text) if "." in text or "e" in text else int(text)


def _zone_of(found: re.Match[str]) -> Zone | NamedZone:
    if found["name"] is not None:
        return NamedZone(found["name"])
    if found["sign"] is None:
        return UTC
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return zone_of(-offset if found["sign"] == "-" else offset)


def _object_of(name: str, fields: dict[str, Any]) -> Any:
    """Return an object of the driver as JSON has it."""
    properties = fields.get("properties")
    if name == "Record":
        return fields
    if name == "Node" and isinstance(properties, dict):
        return {"elementId": fields.get("element_id"), "labels": fields.get("labels") or [], "properties": properties}
    if name == "Relationship" and isinstance(properties, dict):
        start, end = fields.get("nodes") or (None, None)
        more = {"type": fields.get("type"), "properties": properties, "start": start, "end": end}
        return {"elementId": fields.get("element_id"), **more}
    if name == "Path" and isinstance(fields.get("size"), int) and {"start", "end"} <= fields.keys():
        return {"$type": "PathSummary", "_value": {key: fields[key] for key in ("start", "end", "size")}}
    raise UnreadableOutput(f"a Python value with an object ({name[:40]}) that is not known")


def _whole(values: list[Any]) -> list[int]:
    if not all(isinstance(value, int) for value in values):
        raise ValueError
    return values


def _date(arguments: list[Any], _: dict[str, Any]) -> str:
    year, month, day = _whole(arguments)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _clock(arguments: list[Any]) -> str:
    hour, minute, second, nanoseconds = [*_whole(arguments), 0, 0, 0][:4]
    return f"{hour:02d}:{minute:02d}:{second:02d}" + (f".{nanoseconds:09d}" if nanoseconds else "")


def _time(arguments: list[Any], more: dict[str, Any]) -> str:
    return _clock(arguments) + zone_behind(more.get("tzinfo"), None)


def _date_time(arguments: list[Any], more: dict[str, Any]) -> str:
    shown = f"{_date(arguments[:3], {})}T{_clock(arguments[3:])}"
    local = datetime.fromisoformat(shown[:19]).replace(fold=int(more.get("fold") == 1))
    return shown + zone_behind(more.get("tzinfo"), local)


def _duration(_: list[Any], more: dict[str, Any]) -> str:
    return duration_text(*_whole([more.get(key, 0) for key in ("months", "days", "seconds", "nanoseconds")]))


def _point(name: str) -> Callable[[list[Any], dict[str, Any]], Any]:
    def read(arguments: list[Any], _: dict[str, Any]) -> Any:
        if isinstance(arguments[0], tuple | list):
            arguments = list(arguments[0])
        x, y, *z = arguments
        srid = _SRIDS.get((name, len(arguments)))
        return {"srid": srid, "x": x, "y": y, **({"z": z[0]} if z else {})}

    return read


def _fixed_offset(arguments: list[Any], _: dict[str, Any]) -> Zone:
    (minutes,) = _whole(arguments)
    return zone_of(timedelta(minutes=minutes))


_CALLS: Final[dict[str, Callable[[list[Any], dict[str, Any]], Any]]] = {
    "neo4j.time.Date": _date,
    "neo4j.time.Time": _time,
    "neo4j.time.DateTime": _date_time,
    "neo4j.time.Duration": _duration,
    "pytz.FixedOffset": _fixed_offset,
    "WGS84Point": _point("WGS84Point"),
    "CartesianPoint": _point("CartesianPoint"),
    "Point": _point("Point"),
    "frozenset": lambda arguments, _: list(arguments[0]) if arguments else [],
    "set": lambda arguments, _: list(arguments[0]) if arguments else [],
}
"""What Neo4j's driver shows; ``python_calls`` reads all other calls."""
