"""Reads what Python prints for values: rows as lists, tuples and dicts, terms of RDF, and the objects of drivers.

Nothing is run: the text is read token by token, and only the calls and objects below are known. Sets become lists;
decimals, times, durations and the terms of rdflib and pyoxigraph become ``Term``s; nodes, relationships, paths and
points become JSON objects as Neo4j writes them, which ``graph_values`` reads.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from ipaddress import ip_address, ip_interface, ip_network
from typing import Any, Final, NoReturn
from uuid import UUID
from zoneinfo import ZoneInfo

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows_new.results import Term, Triple

_LONGEST: Final = 10_000_000
_DEEPEST: Final = 60
_MOST_DIGITS: Final = 1_000
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_TOKEN: Final = re.compile(
    r"""(?P<string>[bu]?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))"""
    r"|(?P<date>\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?)?)(?![\w.'\"-])"
    r"|(?P<number>-?(?:(?:0|[1-9]\d{0,3999})(?:\.\d{1,400})?(?:e[+-]?\d{1,4})?|inf))(?![\w.'\"])"
    r"|(?P<point>POINT ?Z?\([\d.eE+ -]{1,100}\))|(?P<name>[A-Za-z_][\w.]{0,60})|(?P<sign>[\[({<])",
    re.ASCII,
)
_FIELD: Final = re.compile(r"(?P<quote>'?)(?P<name>[^=<>'\"\n]{1,300})(?P=quote)=")
_KEYWORD: Final = re.compile(r"(?P<name>\w{1,60}(?:\([\w.*]{0,60}\))?)=")
_SPECIAL: Final = re.compile(  # objects whose parts are not printed as Python's values
    r"(?P<kind>NamedNode|BlankNode|Variable) value=(?P<id>[^<>\s]*)>"
    r"|(?P<literal>Literal) value=(?P<text>.*?)(?: datatype=<NamedNode value=(?P<datatype>[^<>\s]*)>"
    r"| language=(?P<language>[\w-]{1,60}(?: direction=(?:ltr|rtl))?))>"
    r"|DstTzInfo '[\w/+-]{1,60}' [\w+-]{1,10}?(?P<offset>[+-]\d\d?:\d\d):\d\d (?:STD|DST)>"
    r"|StaticTzInfo '(?P<zone>[\w/+-]{1,60})'>|(?P<mark>UTC|QueryBoolean true|QueryBoolean false|DefaultGraph)>"
    r"|class '[\w.]{1,60}'>|T\.(?P<key>id|label): \d>",
    re.DOTALL,
)
_TORN: Final = re.compile(
    r"""[bu]?'(?:[^'\\\n]|\\.)*+\\?|[bu]?"(?:[^"\\\n]|\\.)*+\\?|-?\d{0,400}\.?\d{0,400}(?:e[+-]?)?"""
    r"|(?:\.\.\.|…)[\s\])}>]{0,20}"
)
_OBJECT: Final = re.compile(r"(?:mgclient\.)?(?!Literal value=)(?P<name>[A-Za-z]{1,40})(?:(?P<call>\()|(?=[\s>]))")
_TORN_OBJECT: Final = re.compile(r"Literal value=.*|[\w ]{0,20}|'?[^=<>'\"\n]{0,300}", re.DOTALL)
_WRAPPER: Final = re.compile(
    r"(?:EagerResult\(|RawSearchResult\()?records=(?=\[)|(?:RetrieverResult\()?items=(?=\[RetrieverResultItem\(|\[\][, ])"
)
_NEBULA: Final = re.compile(r"ResultSet\(keys: (?=\[)")
_BEGINNING: Final = re.compile(
    r"[\[({]\s*(?:[\[({<'\"\])}\d-]|[bu]['\"]|(?:None|True|False|nan|inf|NaT)\b|[\w.]{1,60}\()"
    rf"|<[A-Z][A-Za-z]{{1,20}}[ >]|<mgclient\.|{_WRAPPER.pattern}|{_NEBULA.pattern}"
    r"|(?:None|True|False|nan|-?inf)\s*\Z|['\"].*['\"]\s*\Z|[A-Za-z_][\w.]{1,60}\([\s\S]*\)\s*\Z"
)


def looks_like_repr(text: str) -> bool:
    """Return whether a text begins as Python prints a value; the rest is not read.

    Example:
        >>> looks_like_repr("[{'name': 'Oslo'}]"), looks_like_repr("<Record n=1>"), looks_like_repr("(see below)")
        (True, True, False)
    """
    return _BEGINNING.match(text.lstrip("\ufeff \t\r\n")) is not None


def python_value(text: str) -> Any:
    """Return the value that Python printed; dicts, tuples or records, one a line, are a list of them.

    Raises:
        CutOutput: The text breaks off before its end.
        UnreadableOutput: It is something else, or too long or deep.

    Example:
        >>> python_value("[('Oslo', 5), (None, 2.5)]"), python_value("<Record n=1>\\n<Record n=2>")
        ([('Oslo', 5), (None, 2.5)], [{'n': 1}, {'n': 2}])
    """
    if len(text) > _LONGEST:
        raise UnreadableOutput(f"a Python value of more than {_LONGEST:,} characters")
    return _Reader(text.lstrip("\ufeff").strip()).whole()


class _Reader:
    """Reads one value after the other, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open = 0  # brackets

    def whole(self) -> Any:
        """Read all of the text."""
        wrapper, nebula = _WRAPPER.match(self._text), _NEBULA.match(self._text)
        if wrapper is not None:
            self._at = wrapper.end()
            return self.cell()  # what follows these rows is about the query
        if nebula is not None:
            self._at = nebula.end()
            return self._nebula_rows()
        values = [self.cell()]
        while self._at < len(self._text):
            rest = self._text[self._at :]
            if rest.lstrip()[:1] not in ("{", "(", "<") and (mark := cut_mark(self._text)) is not None:
                raise CutOutput(f"after the Python value follows {mark!r}")
            if type(values[0]) not in (dict, tuple) or not rest.lstrip(" \t\r").startswith("\n"):
                raise UnreadableOutput("a Python value with more text after it")
            values.append(self.cell())
            if type(values[-1]) is not type(values[0]):
                raise UnreadableOutput("Python values of several kinds, one a line")
        return values if len(values) > 1 or self._text.startswith("<Record ") else values[0]

    def cell(self) -> Any:
        """Read a value as it is in a row."""
        return _as_cell(self._value())

    def _value(self) -> Any:
        self._takes("")
        found = _TOKEN.match(self._text, self._at)
        if found is None or self._open > _DEEPEST:
            self._refuse()
        token, start, self._at = found[0], self._at, found.end()
        match found.lastgroup:
            case "string":
                return _string(token)
            case "number":
                return float(token) if any(sign in token for sign in ".ef") else int(token)
            case "date":  # of Nebula
                return token
            case "point":
                return {"$type": "Point", "_value": token}
            case "name":
                return self._named(token, start)
        if token == "<":
            return self._object()
        items, named = self._items({"[": "]", "(": ")", "{": "}"}[token])
        if token == "{":
            return sorted(map(_as_cell, items), key=repr) if items else named
        if named:
            self._refuse()
        cells = list(map(_as_cell, items))
        return cells if token == "[" else tuple(cells)

    def _refuse(self) -> NoReturn:
        """Say that what comes next is no value, or that the text ends too early."""
        if self._open > _DEEPEST:
            raise UnreadableOutput("a Python value that is nested too deeply")
        rest = self._text[self._at :]
        is_name = bool(rest) and rest.replace(".", "a").isidentifier()
        is_torn = is_name and any(name.startswith(rest.rpartition(".")[2]) for name in (*_CALLS, *_CONSTANTS))
        if self._open and (is_torn or _TORN.fullmatch(rest) or cut_mark(self._text) is not None):
            raise CutOutput("the Python value breaks off before its end")
        raise UnreadableOutput(f"no Python value from character {self._at + 1:,} on")

    def _takes(self, sign: str) -> bool:
        """Pass over a sign, if it comes next."""
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _items(self, closing: str) -> tuple[list[Any], dict[str, Any]]:
        """Read what is between brackets: values, and those with a keyword or key."""
        self._open += 1
        items: list[Any] = []
        named: dict[str, Any] = {}
        while not self._takes(closing):
            if items or named:
                if not self._takes(","):
                    self._refuse()
                if self._takes(closing):
                    break
            keyword = _KEYWORD.match(self._text, self._at) if closing == ")" else None
            if keyword is not None:
                self._at = keyword.end()
                named[keyword["name"]] = self._value()
                continue
            item = self._value()
            if closing != "}" or not self._takes(":"):
                items.append(item)
            elif isinstance(item, str | int):
                named[str(item)] = self.cell()
            else:
                raise UnreadableOutput("a Python value with a key that is not a name")
        self._open -= 1
        if closing == "}" and items and named:
            raise UnreadableOutput("a Python value that is neither a dict nor a set")
        return items, named

    def _named(self, name: str, start: int) -> Any:
        """Read a constant or a call."""
        short = name.rpartition(".")[2]
        if short in _CONSTANTS:
            return _CONSTANTS[short]
        if short not in _CALLS or not self._text.startswith("(", self._at):
            self._at = start
            self._refuse()
        self._at += 1
        arguments, keywords = self._items(")")
        try:
            return _CALLS[short](*arguments, **keywords)
        except UnreadableOutput:
            raise
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
            raise UnreadableOutput(f"a Python value with an impossible {name}") from None

    def _object(self) -> Any:
        """Read an object in angle brackets."""
        special = _SPECIAL.match(self._text, self._at)
        if special is not None:
            self._at = special.end()
            return _special(special)
        name = _OBJECT.match(self._text, self._at)
        if name is None:
            if _TORN_OBJECT.fullmatch(self._text, self._at):
                raise CutOutput("the Python value breaks off before its end")
            self._refuse()
        self._at = name.end()
        if name["call"]:
            _, fields = self._items(")")
            if self._text.startswith(" at 0x", self._at):
                self._at = self._text.find(">", self._at) + 1 or len(self._text)
            return _object_of(name["name"], fields)
        fields = {}
        self._open += 1
        while not self._takes(">"):
            field = _FIELD.match(self._text, self._at)
            if field is None:
                if _TORN_OBJECT.fullmatch(self._text, self._at):
                    raise CutOutput("the Python value breaks off before its end")
                self._refuse()
            self._at = field.end()
            fields[field["name"]] = self.cell()
        self._open -= 1
        return _object_of(name["name"], fields)

    def _nebula_rows(self) -> Any:
        """Read the rows of Nebula's ResultSet, which come after the names of their columns."""
        names = self.cell()
        rows = []
        self._open += 1
        if not (self._takes(",") and self._takes("values:")):
            self._refuse()
        while not self._takes(")"):
            if rows and not self._takes(","):
                self._refuse()
            row = self.cell()
            if not isinstance(row, list) or len(row) != len(names):
                raise UnreadableOutput("a ResultSet of Nebula whose rows do not fit its names")
            rows.append(dict(zip(map(str, names), row, strict=True)) if len(set(names)) == len(row) else tuple(row))
        return rows


def _string(token: str) -> str | bytes:
    try:
        return token.lstrip("u")[1:-1] if "\\" not in token and token[0] != "b" else literal_eval(token)
    except (ValueError, SyntaxError):
        raise UnreadableOutput("a Python value with a text that cannot be read") from None


def _literal(text: str, datatype: str | None = None, language: str | None = None) -> Term:
    return Term(text, ("literal", datatype, language))


def _as_cell(value: Any) -> Any:
    """Return a value as it is in a cell: numbers, times and bytes of Python as terms."""
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, timedelta):
        return _literal(duration_text(0, value // timedelta(microseconds=1) * 1_000), f"{_XSD}dayTimeDuration")
    if isinstance(value, datetime | date | time):
        kind = "dateTime" if isinstance(value, datetime) else "date" if isinstance(value, date) else "time"
        if isinstance(value, time) and value.tzinfo is not None and value.utcoffset() is None:
            raise UnreadableOutput("a Python value with a time whose zone needs a date")
        return _literal(value.isoformat(), f"{_XSD}{kind}")
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        is_text = text.isprintable() and "\ufffd" not in text
        return text if is_text else _literal(value.hex().upper(), f"{_XSD}hexBinary")
    if isinstance(value, tzinfo):
        raise UnreadableOutput("a Python value with a time zone alone")
    return value


def _decimal(number: Decimal) -> Term:
    if not number.is_finite():
        return _literal("NaN" if number.is_nan() else "INF" if number > 0 else "-INF", f"{_XSD}double")
    if len(number.as_tuple().digits) + abs(number.adjusted()) > _MOST_DIGITS:
        raise UnreadableOutput(f"a Python value with a Decimal of more than {_MOST_DIGITS:,} digits")
    return _literal(f"{number:f}", f"{_XSD}decimal")


def duration_text(months: int, nanoseconds: int) -> str:
    """Return a duration as XSD writes it, and one of months and seconds with different signs as Neo4j does."""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    days, seconds = divmod(seconds, 86_400)
    sign = "-" if nanoseconds < 0 else ""
    start = f"P{months}M" if months else "P"
    if sign and months <= 0:
        start, sign = "-" + start.replace("-", ""), ""
    day = f"{sign}{days}D" if days else ""
    clock = f"T{sign}{seconds}{f'.{rest:09d}'.rstrip('0') if rest else ''}S" if seconds or rest or not days else ""
    return start + day + clock


def _special(found: re.Match[str]) -> Any:
    """Return the value of an object whose parts are not printed as Python's values."""
    if found["kind"] is not None:
        kind = {"NamedNode": "uri", "BlankNode": "bnode"}.get(found["kind"])
        return found["id"] if kind is None else Term(found["id"], (kind, None, None))
    if found["literal"] is not None:
        language = found["language"]
        return _literal(found["text"], found["datatype"], language and language.replace(" direction=", "--"))
    if found["zone"] is not None:
        try:
            return ZoneInfo(found["zone"])
        except (LookupError, OSError, ValueError):
            raise UnreadableOutput("a Python value with an unknown time zone") from None
    if found["offset"] is not None:
        hours, minutes = map(int, found["offset"][1:].split(":"))
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if found["offset"][0] == "-" else offset)
    return found["key"] or {"UTC": timezone.utc, "QueryBoolean true": True, "QueryBoolean false": False}.get(
        found["mark"]
    )


def _object_of(name: str, fields: dict[str, Any]) -> Any:
    """Return a row as a dict, and an object of a driver as Neo4j writes it in JSON."""
    properties = fields.get("properties")
    if name in ("Record", "QuerySolution"):
        return fields
    if name in ("Triple", "Quad") and {"subject", "predicate", "object"} <= fields.keys():
        return Triple(fields["subject"], fields["predicate"], fields["object"])
    own_id = fields.get("element_id", fields.get("id"))
    if name == "Node" and isinstance(properties, dict):
        return {"elementId": own_id, "labels": fields.get("labels") or [], "properties": properties}
    if name == "Relationship" and isinstance(properties, dict):
        ends = fields.get("nodes")
        if not isinstance(ends, tuple) or len(ends) != 2:
            ends = tuple(fields.get(f"{end}_id", fields.get(f"{end}_node_id")) for end in ("start", "end"))
        kind = fields.get("type")
        return {"elementId": own_id, "type": kind, "properties": properties, "start": ends[0], "end": ends[1]}
    if name == "Path" and isinstance(fields.get("size"), int):
        return {"$type": "Path", "_value": {key: fields.get(key) for key in ("start", "end", "size")}}
    raise UnreadableOutput(f"a Python value with an object ({name}) that is not known")


def _row(*pairs: Any, **cells: Any) -> dict[str, Any]:
    """Read a row that is printed as a dict, pairs or keywords."""
    return {str(key): _as_cell(value) for key, value in (dict(*pairs[-1:]) | cells).items()}


def _item_row(content: Any, **_: Any) -> Any:
    """Read the row in an item of neo4j-graphrag's RetrieverResult."""
    row = python_value(content) if isinstance(content, str) and content[:1] in ("<", "{", "[") else content
    row = row[0] if isinstance(row, list) and len(row) == 1 else row
    if not isinstance(row, dict):
        raise UnreadableOutput("a RetrieverResult whose items are texts instead of rows")
    return row


def _date_time(*parts: int, tzinfo: Any = None, fold: int = 0) -> str:
    """Read Neo4j's DateTime, which has nanoseconds; its text is that of Neo4j's JSON."""
    shown = datetime(*parts[:6], tzinfo=tzinfo, fold=fold).isoformat()
    return shown[:19] + (f".{parts[6]:09d}" if parts[6:] and parts[6] else "") + shown[19:]


def _time(*parts: int, tzinfo: Any = None) -> str:
    return _date_time(2000, 1, 1, *parts, tzinfo=tzinfo)[11:]


def _point(srids: Mapping[int, str]) -> Callable[..., Any]:
    def read(*numbers: Any) -> Any:
        numbers = numbers[0] if isinstance(numbers[0], tuple) else numbers
        shown = " ".join(repr(float(number)) for number in numbers)
        return {"$type": "Point", "_value": f"{srids.get(len(numbers), '')}POINT ({shown})"}

    return read


def _only(*values: Any) -> Any:
    return values[0]


_CONSTANTS: Final[dict[str, Any]] = {
    **{"None": None, "True": True, "False": False, "nan": float("nan"), "inf": float("inf"), "utc": timezone.utc},
    **{"NaT": None, "True_": True, "False_": False, "__NULL__": None, "__EMPTY__": None},
}
_TEXTS: Final = ("UUID", "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")
_NUMBERS: Final = (*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32")
_CALLS: Final[dict[str, Callable[..., Any]]] = {
    **{"Decimal": Decimal, "date": date, "datetime": datetime, "time": time, "timedelta": timedelta},
    **{"timezone": timezone, "ZoneInfo": ZoneInfo, "FixedOffset": lambda minutes: timezone(timedelta(minutes=minutes))},
    "Timestamp": lambda text, **_: datetime.fromisoformat(text),
    "Fraction": lambda one, other: one / other,
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys((*_NUMBERS, "float64", "bool", "bool_", "str_"), _only),
    **dict.fromkeys(("OrderedDict", "RealDictRow", "Row", "defaultdict", "frozendict", "mappingproxy"), _row),
    **dict.fromkeys(("set", "frozenset"), lambda *items: list(items[0]) if items else []),
    "RetrieverResultItem": _item_row,
    "Variable": str,
    "URIRef": lambda text: Term(text, ("uri", None, None)),
    "BNode": lambda text: Term(text, ("bnode", None, None)),
    "Literal": lambda text, datatype=None, lang=None: _literal(text, datatype and datatype.text, lang),
    **{"Date": lambda *parts: date(*parts).isoformat(), "Time": _time, "DateTime": _date_time},
    "Duration": lambda months=0, days=0, seconds=0, nanoseconds=0: duration_text(
        months, (days * 86_400 + seconds) * 1_000_000_000 + nanoseconds
    ),
    "WGS84Point": _point({2: "SRID=4326;", 3: "SRID=4979;"}),
    "CartesianPoint": _point({2: "SRID=7203;", 3: "SRID=9157;"}),
    "Point": _point({}),
}
