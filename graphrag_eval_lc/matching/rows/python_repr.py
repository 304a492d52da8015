"""Reads Python's repr of values: rows as lists, tuples and dicts, RDF terms, and the objects of database drivers.

No code is executed: the text is parsed token by token, and only the names in the table at the end are known. Sets
become lists. Decimals, times, durations and the terms of rdflib and pyoxigraph become ``Term``s. Nodes and
relationships become dicts of their fields, which ``graph_values`` reads. ``printed_value`` and ``scalar_of_text`` read
values that Cypher stores and shells write as the text of a cell.
"""

import math
import re
from ast import literal_eval
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any, Final, NoReturn
from zoneinfo import ZoneInfo

from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD, duration_from, geometry_from
from graphrag_eval_lc.matching.rows.results import Point, Term, Triple

_LONGEST: Final = 10_000_000
_DEEPEST: Final = 60
_MOST_DIGITS: Final = 1_000
_ESCAPE: Final = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"""
_TOKEN: Final = re.compile(
    rf"""\s*+(?:(?P<text>[bu]?(?:'(?:[^'\\\n]|{_ESCAPE})*+'|"(?:[^"\\\n]|{_ESCAPE})*+"))"""
    r"|(?P<number>-?(?:(?:0|[1-9]\d{0,3999})(?:\.\d{1,400})?(?:e[+-]?\d{1,4})?|inf))(?![\w.'\"])"
    r"|(?P<name>[A-Za-z_][\w.]{0,60})|(?P<sign>[\[({<]))",
    re.ASCII,
)
_KEYWORD: Final = re.compile(r"\s*+(?P<name>\w{1,60}(?:\([\w.*]{0,60}\))?)(?:=|: )")
_FIELD: Final = re.compile(r"(?P<name>[^=<>'\"\n]{1,300})=")
_OBJECT: Final = re.compile(r"(Record|QuerySolution|Node|Relationship|Triple)(?=[\s>])")
_SPECIAL: Final = re.compile(  # objects whose parts are not printed as Python's values
    r"(?:NamedNode value=(?P<uri>[^<>\s]*)|BlankNode value=(?P<bnode>[^<>\s]*)"
    r"|Literal value=(?P<literal>.*?) (?:datatype=<NamedNode value=(?P<datatype>[^<>\s]*)>|language=(?P<lang>[\w-]+))"
    r"|DstTzInfo '[\w/+-]{1,60}' [\w+-]{1,10}?(?P<hours>[+-]\d\d?):(?P<minutes>\d\d):\d\d (?:STD|DST)"
    r"|(?P<constant>UTC|NA|QueryBoolean true|QueryBoolean false))>",
    re.DOTALL,
)
# The end of a text that breaks off: half a value, half a part of an object, or an ellipsis after a value.
_TORN_VALUE: Final = re.compile(
    r"""\s*+(?:[bu]?'(?:[^'\\\n]|\\.)*+\\?|[bu]?"(?:[^"\\\n]|\\.)*+\\?|-?[\w.]*(?:(?<=e)[+-])?|(?:\.\.\.|…)[\s\])}>]*+)"""
)
_TORN_PART: Final = re.compile(r"(?:Literal|NamedNode|BlankNode|DstTzInfo) .*|[^=<>'\"\n]{0,300}", re.DOTALL)
_NEXT_ROW: Final = re.compile(r"[ \t\r]*[,\n]\s*(?=[{(<])")
_WRAPPER: Final = re.compile(
    r"(?:EagerResult\(|RawSearchResult\()?records=(?=\[)"
    r"|(?:RetrieverResult\()?items=(?=\[RetrieverResultItem\(|\[\][, ])"
)
_BEGINNING: Final = re.compile(
    r"[\[({]\s*(?:[\[({<'\"\])}\d-]|[bu]['\"]|(?:None|True|False|nan|inf|NaT)\b|[\w.]{1,60}\()"
    rf"|<[A-Z][A-Za-z]{{1,20}}[ >]|ResultSet\(keys: \[|{_WRAPPER.pattern}"
    r"|(?:None|True|False|nan|-?inf)\s*\Z|b?['\"].*['\"]\s*\Z|[A-Za-z_][\w.]{1,60}\([\s\S]*\)\s*\Z"
)


def looks_like_repr(text: str) -> bool:
    """Return whether the beginning of a text looks like the repr of a Python value."""
    return _BEGINNING.match(text.lstrip("\ufeff \t\r\n")) is not None


def python_value(text: str) -> Any:
    """Return the value of a Python repr; several dicts, tuples or records in a row are a list."""
    if len(text) > _LONGEST:
        raise UnreadableOutput(f"a Python value of more than {_LONGEST:,} characters")
    text = text.lstrip("\ufeff").strip()
    wrapper = _WRAPPER.match(text)
    reader = _Reader(text, wrapper.end() if wrapper else 0)
    try:
        values = [reader.value()]
        while wrapper is None and reader.at < len(text):  # what follows in a wrapper is about the query
            following = _NEXT_ROW.match(text, reader.at)
            if following is None or type(values[0]) not in (dict, tuple):
                if (mark := cut_mark(text)) is not None:
                    raise CutOutput(f"after the Python value follows {mark!r}")
                raise UnreadableOutput("a Python value with more text after it")
            reader.at = following.end()
            values.append(reader.value())
    except UnreadableOutput:
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, SyntaxError, TypeError, ValueError):
        raise UnreadableOutput("an impossible Python value, such as a date in month 13") from None
    return values if len(values) > 1 or text.startswith("<Record ") else values[0]


_ENDS: Final = {"{": "}", "[": "]", "(": ")", "<": ">", "p": ")"}
_LONGEST_IN_CELL: Final = 100_000
_AGTYPE: Final = re.compile(r"(?<=[}\]])::(?:vertex|edge|path)")
_CYPHER: Final = re.compile(r"(?:point\(|[(\[](?P<names>(?::`?\w{1,60}`?){1,20}) ?)(?P<map>\{.*\})?[)\]]", re.DOTALL)
_CYPHER_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?<!\w)`?(?P<key>[A-Za-z_]\w*+)`?(?=:)')


def printed_value(text: str) -> Any:
    """Return the value of a cell's text in the syntax of JSON, Python, AGE or Cypher."""
    text = text.strip()
    if text.endswith(("::vertex", "::edge", "::path")):
        text = _AGTYPE.sub("", text)
    if len(text) > _LONGEST_IN_CELL or not text or text[-1] != _ENDS.get(text[0]):
        raise UnreadableOutput("a text")
    cypher = _CYPHER.fullmatch(text)
    if cypher is not None:
        names = (cypher["names"] or "").replace("`", "").split(":")[1:]
        fields = {"labels": names} if text[0] == "(" else {"id": "", "type": names[0]} if names else {}
        text = _CYPHER_KEY.sub(lambda found: f'"{found["key"]}"' if found["key"] else found[0], cypher["map"] or "{}")
        text = f'{json_text(fields)[:-1]}, "properties": {text}}}' if fields else text
    try:
        return parse_json(text)
    except ValueError:
        return python_value(text)


DURATION: Final = ("literal", f"{XSD}duration", None)
_TEXT_POINT: Final = re.compile(r"(?:SRID=(\d{1,9});)?(\s*POINT.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_CLOCK: Final = re.compile(r"\d\d:\d\d:\d\d\.\d{1,18}", re.ASCII)
_TIMEDELTA: Final = re.compile(
    r"(?:(-?\d{1,9}) days?,? \+?(?=\d)|(?=\d:))(\d{1,2}):(\d\d):(\d\d(?:\.\d{1,6})?)", re.ASCII
)
_LONGEST_SCALAR: Final = 300


def scalar_of_text(text: str) -> Term | Point | None:
    """Return the duration, point or time of day in a text; other times are compared by value anyway."""
    if len(text) > _LONGEST_SCALAR:
        return None
    if _CLOCK.fullmatch(text):
        return Term(text.rstrip("0").rstrip("."))  # Neo4j writes nine digits of a second
    if text.startswith(("P", "-P")) and duration_from(text) is not None:
        return Term(text, DURATION)
    found = _TIMEDELTA.fullmatch(text)
    if found is not None:
        days, hours, minutes = (int(part or "0") for part in found.groups()[:3])
        return Term(duration_of(0, days, hours * 3_600 + minutes * 60 + Decimal(found[4])), DURATION)
    found = _TEXT_POINT.fullmatch(text)
    shape, numbers = (geometry_from(found[2]) if found else None) or ("", ())
    if found is None or shape not in ("POINT(##)", "POINT(###)", "POINTZ(###)"):
        return None
    return Point(int(found[1]) if found[1] else None, numbers)


class _Reader:
    """Parses one value after the other; the next one begins at ``at``."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at
        self._open = 0  # brackets

    def value(self) -> Any:
        found = _TOKEN.match(self._text, self.at)
        if found is None or self._open > _DEEPEST:
            self._refuse(_TORN_VALUE)
        kind = found.lastgroup or ""
        token, self.at = found[kind], found.end()
        if kind == "text":
            if "\\" not in token and token[0] in "'\"":
                return token[1:-1]
            value = literal_eval(token)
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            is_text = value == text or ("".join(text.split()).isprintable() and "\ufffd" not in text)
            return text if is_text else _literal(value.hex().upper(), f"{XSD}hexBinary")
        if kind == "number":
            return float(token) if any(sign in token for sign in ".ef") else int(token)
        if kind == "name":
            name = token.rpartition(".")[2]
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            if name not in _CALLS or not self._text.startswith("(", self.at):
                self.at = found.start(kind)
                self._refuse(_TORN_VALUE)
            self.at += 1
            arguments, keywords = self._items(")", _KEYWORD)
            return _CALLS[name](*arguments, **keywords)
        if token == "<":
            return self._object()
        items, named = self._items({"[": "]", "(": ")", "{": "}"}[token])
        if named and items:
            raise UnreadableOutput("a Python value that is not a dict or a set")
        if token == "{" and not items:
            return named
        return tuple(items) if token == "(" else items if token == "[" else sorted(items, key=repr)

    def _refuse(self, torn: re.Pattern[str]) -> NoReturn:
        """Raise the error for text that is not a value, or that breaks off inside a value."""
        if self._open > _DEEPEST:
            raise UnreadableOutput("a Python value that is nested too deeply")
        if self._open and (torn.fullmatch(self._text, self.at) or cut_mark(self._text) is not None):
            raise CutOutput("the Python value breaks off before its end")
        if re.compile(r"-\d\d").match(self._text, self.at):
            raise UnreadableOutput("a Python value with a date without quotation marks; return it as a text")
        raise UnreadableOutput(f"not a Python value from character {self.at + 1:,} on")

    def _takes(self, sign: str) -> bool:
        """Skip white space, and ``sign`` if it comes next; return whether it did."""
        while self._text[self.at : self.at + 1].isspace():
            self.at += 1
        if not self._text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def _items(
        self, closing: str, keyword: re.Pattern[str] | None = None, *, sign: str = ","
    ) -> tuple[list[Any], dict[str, Any]]:
        """Read what is between brackets, separated by ``sign``: plain values, and values with a key or keyword."""
        self._open += 1
        items: list[Any] = []
        named: dict[str, Any] = {}
        while not self._takes(closing):
            if (items or named) and not self._takes(sign):
                self._refuse(_TORN_VALUE)
            if keyword is not None:
                self._takes("values:")  # before the rows of Nebula's ResultSet
            if closing == ")" and self._takes(closing):
                break
            found = keyword.match(self._text, self.at) if keyword else None
            if found is not None:
                self.at = found.end()
                named[found["name"]] = self.value()
                continue
            if closing == ">":
                self._refuse(_TORN_PART)
            item = self.value()
            if closing != "}" or not self._takes(":"):
                items.append(item)
            elif isinstance(item, str | int):
                named[str(item)] = self.value()
            else:
                raise UnreadableOutput("a Python value with a key that is not a name")
        self._open -= 1
        return items, named

    def _object(self) -> Any:
        """Read an object in angle brackets: a dict of its fields."""
        special, name = _SPECIAL.match(self._text, self.at), _OBJECT.match(self._text, self.at)
        if special is not None:
            self.at = special.end()
            if special["constant"]:
                return {"UTC": UTC, "NA": None}.get(special["constant"], special["constant"].endswith("true"))
            if special["hours"]:
                minutes = int(special["minutes"]) * (-1 if special["hours"][0] == "-" else 1)
                return timezone(timedelta(hours=int(special["hours"]), minutes=minutes))
            kind = next(name for name in ("uri", "bnode", "literal") if special[name] is not None)  # of pyoxigraph
            return Term(special[kind], (kind, special["datatype"], special["lang"]))
        if self._text.startswith("Path ", self.at):
            raise UnreadableOutput("a Path as Python prints it, without properties; return nodes(p), relationships(p)")
        if name is None:
            self._open += 1
            self._refuse(_TORN_PART)
        self.at = name.end()
        _, fields = self._items(">", _FIELD, sign="")
        if name[1] in ("Node", "Relationship") and "properties" not in fields:
            raise UnreadableOutput(f"a Python value with a {name[1]} without properties")
        return Triple(**fields) if name[1] == "Triple" else fields


def _literal(text: str, datatype: str | None, language: str | None = None) -> Term:
    return Term(text, ("literal", datatype, language))


def _decimal(text: str) -> Term:
    number = Decimal(text)
    if not number.is_finite():
        return _literal("NaN" if number.is_nan() else "INF" if number > 0 else "-INF", f"{XSD}double")
    if len(number.as_tuple().digits) + abs(number.adjusted()) > _MOST_DIGITS:
        raise UnreadableOutput(f"a Python value with a Decimal of more than {_MOST_DIGITS:,} digits")
    return _literal(f"{number:f}", f"{XSD}decimal")


def _isoformat(kind: type[date | time | datetime], name: str) -> Callable[..., Term]:
    return lambda *parts, **more: _literal(kind(*parts, **more).isoformat(), f"{XSD}{name}")


def _timedelta(**parts: int) -> Term:
    value = timedelta(**parts)
    return _literal(duration_of(0, value.days, value.seconds, value.microseconds * 1_000), f"{XSD}dayTimeDuration")


def _timezone(offset: Term, _name: str = "") -> timezone:
    _, _, seconds = duration_from(offset.text) or ("", 0, 0)
    return timezone(timedelta(seconds=int(seconds)))


def duration_of(months: int = 0, days: int = 0, seconds: int | Decimal = 0, nanoseconds: int = 0) -> str:
    """Return a duration in XSD's syntax, or in Neo4j's if months and seconds have different signs."""
    seconds = days * 86_400 + seconds + Decimal(nanoseconds) / 10**9
    sign = -1 if months <= 0 and seconds <= 0 and (months or seconds) else 1
    of_months = f"{sign * months}M" if months else ""
    return f"{'-' if sign < 0 else ''}P{of_months}T{(sign * seconds).normalize():f}S"


def _date_time(*parts: int, tzinfo: Any = None, fold: int = 0) -> str:
    """Read Neo4j's DateTime, which has nanoseconds; its text is that of Neo4j's JSON."""
    year, month, day, hour, minute, second, nanosecond = (*parts, 0, 0, 0, 0)[:7]
    shown = datetime(year, month, day, hour, minute, second, tzinfo=tzinfo, fold=fold).isoformat()
    return shown[:19] + (f".{nanosecond:09d}" if nanosecond else "") + shown[19:]


def _row(*pairs: Any, **cells: Any) -> dict[str, Any]:
    """Read a row that is printed as a dict, pairs, keywords, or values with the positions of their names (BigQuery)."""
    if len(pairs) == 2:
        return {str(name): pairs[0][at] for name, at in pairs[1].items()}
    return {str(key): value for key, value in (dict(*pairs) | cells).items()}


def _item_row(content: Any, **_: Any) -> Any:
    """Read the row in an item of neo4j-graphrag."""
    row = _Reader(content, 0).value() if isinstance(content, str) and content[:1] in ("<", "{") else content
    if not isinstance(row, dict):
        raise UnreadableOutput("a RetrieverResult whose items are texts instead of rows")
    return row


def _point(srids: tuple[int, int], *numbers: Any) -> Point:
    numbers = numbers[0] if isinstance(numbers[0], tuple) else numbers
    return Point(srids[len(numbers) - 2], tuple(map(float, numbers)))


_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("None", "NaT", "nan", "__NULL__", "__EMPTY__")),  # pandas writes a missing number as nan
    **dict.fromkeys(("True", "True_"), True),
    **dict.fromkeys(("False", "False_"), False),
    "inf": math.inf,
    "utc": UTC,
}
_NUMBERS: Final = (f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64))
_CALLS: Final[dict[str, Callable[..., Any]]] = {
    "Decimal": _decimal,
    "date": _isoformat(date, "date"),
    "time": _isoformat(time, "time"),
    "datetime": _isoformat(datetime, "dateTime"),
    "Timestamp": lambda text, **_: _literal(datetime.fromisoformat(text).isoformat(), f"{XSD}dateTime"),
    "timedelta": _timedelta,
    "Timedelta": scalar_of_text,
    "timezone": _timezone,
    "ZoneInfo": ZoneInfo,
    **dict.fromkeys(("UUID", "str_", "IPv4Address", "IPv6Address"), lambda text: text + ""),
    **dict.fromkeys(("bool", "bool_", *_NUMBERS), lambda number: number),
    **dict.fromkeys(("OrderedDict", "RealDictRow", "Row"), _row),
    **dict.fromkeys(("set", "frozenset"), lambda items=(): list(items)),
    "FixedOffset": lambda minutes: timezone(timedelta(minutes=minutes)),
    "RetrieverResultItem": _item_row,
    "ResultSet": lambda *rows, keys: {"columns": keys, "rows": list(rows)},
    "Variable": str,
    "URIRef": lambda text: Term(text, ("uri", None, None)),
    "BNode": lambda text: Term(text, ("bnode", None, None)),
    "Literal": lambda text, datatype=None, lang=None: _literal(text, datatype and datatype.text, lang),
    "Date": lambda *parts: date(*parts).isoformat(),
    "Time": lambda *parts, tzinfo=None: _date_time(2000, 1, 1, *parts, tzinfo=tzinfo)[11:],
    "DateTime": _date_time,
    "Duration": duration_of,
    "WGS84Point": partial(_point, (4326, 4979)),
    "CartesianPoint": partial(_point, (7203, 9157)),
}
