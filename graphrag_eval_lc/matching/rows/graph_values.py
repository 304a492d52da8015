"""Reads values of property graphs, whatever store or driver wrote them, and writes them for people.

``GraphReader`` reads nodes, relationships, paths, points, lists and maps from JSON values and from what
``python_repr`` returns; ``value_of_text`` reads those that a text writes. The ids of the store only join relationships
with their ends. ``graph_keys`` has the keys by which values are compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final, TypeAlias

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.python_repr import duration_text, python_value, without_single_lists
from graphrag_eval_lc.matching.rows.results import Shape, Term, Triple

GraphValue: TypeAlias = Any
"""A text, number, boolean, decimal, RDF term or None; a list or dict of them; or one of the classes below."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its labels in the order of their names, and its properties that are not null."""

    labels: tuple[str, ...]
    properties: dict[str, GraphValue]


@dataclass(slots=True)
class Relationship:
    """A relationship; type, properties and ends are None where the form does not say them."""

    type: str | None
    properties: dict[str, GraphValue] | None
    ends: tuple[GraphValue, GraphValue] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path: nodes and relationships in turns, or its first and last node only, and its number of relationships."""

    parts: tuple[GraphValue, ...]
    length: int

    @property
    def is_whole(self) -> bool:
        """Whether all parts are known."""
        return len(self.parts) == 2 * self.length + 1


@dataclass(frozen=True, slots=True)
class Point:
    """A point: the number of its reference system, if the form says it, and its coordinates, x or longitude first."""

    srid: int | None
    coordinates: tuple[float, ...]


STRUCTURES: Final = (dict, list, Node, Relationship, Path, Point)
"""The types of all values that have parts."""

MOST_VALUES: Final = 5_000_000
"""A table may hold so many values inside its cells."""

_DEEPEST: Final = 60
_READ: Final = (str, int, float, Decimal, type(None), Term, Triple, Node, Relationship, Path, Point)
_FIELDS: Final = {
    "id": "elementid identity id",
    "labels": "labels",
    "label": "label",
    "type": "type",
    "properties": "properties props",
    "start": "startnodeelementid startelementid startid startnode start outv srcnode",
    "end": "endnodeelementid endelementid endid endnode end inv destnode",
    "other": "entitytype outvlabel invlabel",
}
"""The keys of nodes and relationships in Neo4j's drivers, Memgraph, AGE, Gremlin, Neptune and FalkorDB."""

_FIELD_OF: Final = {key: field for field, keys in _FIELDS.items() for key in keys.split()}
_GREMLIN: Final = ("g:Vertex", "g:Edge")
_CRS: Final = {"wgs-84": 4326, "wgs-84-3d": 4979, "cartesian": 7203, "cartesian-3d": 9157}
_POINT_KEYS: Final = frozenset({"srid", "crs", "x", "y", "z", "longitude", "latitude", "height"})


def _entity_in(raw: Any) -> dict[str, Any] | None:
    """Return the fields of the node (which has labels) or relationship that an object is; None if it is neither."""
    if not isinstance(raw, Mapping):
        return None
    kind, inner = raw.get("$type", raw.get("@type")), raw.get("_value", raw.get("@value"))
    if kind in ("Node", "Relationship", *_GREMLIN) and isinstance(inner, Mapping):
        raw = inner
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        field = _FIELD_OF.get(str(key).lower().replace("_", "").lstrip("~"))
        if field is None:
            return None
        if value is not None and (field not in fields or isinstance(value, Mapping)):
            fields[field] = value
    labels, label, name = fields.get("labels"), fields.get("label"), fields.get("type")
    if kind in _GREMLIN or name in ("vertex", "edge"):
        fields.setdefault("properties", {})
    if not isinstance(fields.get("properties"), Mapping):
        return None
    is_vertex = name == "vertex" or kind == "g:Vertex" or fields.keys() == {"id", "label", "properties"}
    if labels is None and isinstance(label, str) and is_vertex:
        return fields | {"labels": [label]}
    if isinstance(labels, list | tuple | Set) and name in (None, "node"):
        return fields
    is_relationship = {"id", "start", "end"} & fields.keys() and isinstance(label or name, str)
    return fields if labels is None and (is_relationship or kind == "Relationship") else None


def _ladybug_in(raw: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return the fields of a node or relationship of ladybug or kuzu, whose own keys have an underscore."""
    own = {str(key).upper(): each for key, each in raw.items() if str(key).startswith("_")}
    label = own.get("_LABEL")
    if not isinstance(label, str) or not (isinstance(own.get("_ID"), Mapping) or "_SRC" in own):
        return None
    names = ("_ID", "_LABEL", "_SRC", "_DST")
    properties = {key: each for key, each in raw.items() if str(key).upper() not in names}
    if "_SRC" in own and "_DST" in own:
        return {"type": label, "properties": properties, "start": own["_SRC"], "end": own["_DST"]}
    return {"labels": [label], "properties": properties, "id": own.get("_ID")}


def is_entity(raw: Any) -> bool:
    """Return whether a value is itself a node, relationship, path or point, and so not a row with columns.

    Example:
        >>> is_entity({"elementId": "4:a:0", "labels": ["City"], "properties": {}}), is_entity({"name": "Oslo"})
        (True, False)
    """
    if isinstance(raw, dict):
        return raw.keys() == {"$type", "_value"} or raw.get("@type") in _GREMLIN or _entity_in(raw) is not None
    return type(raw).__module__ == "neo4j.graph"


class GraphReader:
    """Reads the values of one table, together at most ``MOST_VALUES``."""

    def __init__(self) -> None:
        self._left = MOST_VALUES
        self._nodes: dict[str, Node] = {}
        self._loose: list[tuple[Relationship, str, str]] = []

    def join_ends(self) -> None:
        """Give relationships whose ends are ids the nodes with these ids, if the table has them."""
        for relationship, start, end in self._loose:
            if start in self._nodes and end in self._nodes:
                relationship.ends = self._nodes[start], self._nodes[end]
        self._loose.clear()

    def read(self, raw: Any, depth: int = 0) -> GraphValue:
        """Return a value as a scalar, a ``Term``, a list or dict of values, or one of the classes of this module.

        Args:
            raw: A value of JSON, of ``python_repr``, or an object of Python or a driver.
            depth: How deep it is inside other values.

        Raises:
            UnreadableOutput: It is nested too deeply, or holds too many values.

        Example:
            >>> GraphReader().read({"elementId": "4:a:0", "labels": ["City"], "properties": {"name": "Oslo"}})
            Node(labels=('City',), properties={'name': 'Oslo'})
        """
        if isinstance(raw, _READ):
            return raw
        if depth > _DEEPEST:
            raise UnreadableOutput(f"is nested more than {_DEEPEST} deep")
        if isinstance(raw, set | frozenset):
            raw = sorted(raw, key=repr)
        elif not isinstance(raw, dict) and type(raw) not in (list, tuple):
            return self._object(raw, depth)
        self._left -= 1 + len(raw)
        if self._left < 0:
            raise UnreadableOutput(f"has, with the cells before it, more than {MOST_VALUES:,} values")
        return self._mapping(raw, depth) if isinstance(raw, dict) else self._list(raw, depth)

    def _object(self, raw: Any, depth: int) -> GraphValue:
        """Read an object as what Python prints for it; only paths have more parts than they print."""
        try:
            if type(raw).__name__ == "Path":
                return self._list(_in_turns(raw.nodes, raw.relationships), depth)
            return self.read(python_value(repr(raw)), depth + 1)
        except UnreadableOutput:
            return str(raw)
        except Exception:  # an object of a tool, which may raise anything
            raise UnreadableOutput(f"is a {type(raw).__name__} without a text") from None

    def _properties(self, raw: Mapping[Any, Any], depth: int) -> dict[str, GraphValue]:
        return {str(key): self.read(value, depth + 1) for key, value in raw.items() if value is not None}

    def _list(self, raw: Sequence[Any], depth: int) -> GraphValue:
        fields = _pairs(raw)  # of FalkorDB
        if fields is not None and {"id", "properties"} <= fields.keys():
            return self._mapping(fields | {"properties": _pairs(fields["properties"])}, depth)
        items = [item if isinstance(item, _READ) else self.read(item, depth + 1) for item in raw]
        is_path = len(items) % 2 and len(items) > 2 and isinstance(items[1], Relationship)
        if is_path and all(isinstance(item, Relationship if at % 2 else Node | dict) for at, item in enumerate(items)):
            return Path(tuple(items), len(items) // 2)
        return items

    def _mapping(self, raw: Mapping[Any, Any], depth: int) -> GraphValue:
        fields = _entity_in(raw) or _ladybug_in(raw)
        if fields is not None:
            return self._entity(fields, depth)
        for kind, inner in (("$type", "_value"), ("@type", "@value")):
            if raw.keys() == {kind, inner} and isinstance(raw[kind], str):
                return self._typed(raw[kind], raw[inner], depth)
        found = _term_in(raw) or _point_in(raw) or self._path(raw, depth)
        return found or self._properties(raw, depth)

    def _entity(self, fields: Mapping[str, Any], depth: int) -> Node | Relationship:
        properties = self._properties({key: _property(each) for key, each in fields["properties"].items()}, depth)
        if fields.get("labels") is not None:
            node = Node(tuple(sorted(map(str, fields["labels"]))), properties)
            self._nodes[str(self.read(fields.get("id"), depth + 1))] = node
            return node
        name = fields.get("label", fields.get("type"))
        start, end = (self.read(fields.get(key), depth + 1) for key in ("start", "end"))
        relationship = Relationship(name if isinstance(name, str) else None, properties)
        if isinstance(start, Node) and isinstance(end, Node):
            nothing = Node((), {})  # a driver that knows only the ids
            relationship.ends = None if start == end == nothing else (start, end)
        elif start is not None and end is not None:
            self._loose.append((relationship, str(start), str(end)))
        return relationship

    def _typed(self, kind: str, value: Any, depth: int) -> GraphValue:
        """Read a value of Neo4j's typed JSON or of GraphSON."""
        if isinstance(value, str):
            if kind in ("Integer", "Float") and _NUMERAL.fullmatch(value):
                return int(value) if kind == "Integer" and value.lstrip("-").isdigit() else float(value)
            return (scalar_of_text(value) if kind == "Point" else None) or value
        if kind == "g:Map" and isinstance(value, list):
            names = (str(self.read(key, depth + 1)) for key in value[::2])
            found = self._properties(dict(zip(names, value[1::2], strict=False)), depth)
            is_element = any(isinstance(key, dict) and key.get("@type") == "g:T" for key in value[::2])
            return without_single_lists(found) if is_element else found
        if kind == "g:Date" and type(value) is int and abs(value) < 10**14:
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)).isoformat()
        if isinstance(value, Mapping):
            if kind == "Path" and isinstance(value.get("size"), int):  # as Python prints it
                ends = (self.read(value.get(end), depth + 1) for end in ("start", "end"))
                return Path(tuple(ends), value["size"])
            value = value.get({"g:Path": "objects", "g:Property": "value"}.get(kind), value)
        return self.read(value, depth + 1)

    def _path(self, raw: Mapping[Any, Any], depth: int) -> GraphValue | None:
        """Read a path of ladybug, kuzu or Neo4j's drivers for Go and JavaScript."""
        nodes, between = next(((raw[one], raw[other]) for one, other in _PATHS if raw.keys() == {one, other}), (0, 0))
        segments = raw.get("segments")
        if isinstance(segments, list) and "start" in raw and all(set(each) >= _SEGMENT for each in segments):
            nodes = [raw["start"], *(each["end"] for each in segments)]
            between = [each["relationship"] for each in segments]
        if not isinstance(nodes, list) or not isinstance(between, list):
            return None
        if len(nodes) != len(between) + 1:  # the relationships of a path of ladybug, with the nodes between them
            return self._list(between, depth)
        return Path(tuple(self.read(part, depth + 1) for part in _in_turns(nodes, between)), len(between))


_PATHS: Final = (("_NODES", "_RELS"), ("_nodes", "_rels"), ("Nodes", "Relationships"))
_SEGMENT: Final = {"relationship", "end"}
_NUMERAL: Final = re.compile(r"-?\d{1,4000}(?:\.\d{0,400})?(?:[eE][+-]?\d{1,4})?", re.ASCII)


def _in_turns(nodes: Sequence[Any], between: Sequence[Any]) -> list[Any]:
    return [part for pair in zip(nodes, between, strict=False) for part in pair] + [nodes[-1]]


def _pairs(raw: Any) -> dict[str, Any] | None:
    """Return the dict that a list of names and values is; None if it is none."""
    is_one = isinstance(raw, list) and all(isinstance(each, list) and len(each) == 2 for each in raw)
    return dict(raw) if is_one and all(isinstance(name, str) for name, _ in raw) else None


def _property(value: Any) -> Any:
    """Return a property of a vertex, which GraphSON writes as a list of objects with ids."""
    inner = [each.get("@value", each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    values = [each["value"] for each in inner if isinstance(each, dict) and {"id", "value"} <= each.keys()]
    if not values or len(values) < len(value):
        return value
    return values[0] if len(values) == 1 else values


def _term_in(raw: Mapping[Any, Any]) -> Term | None:
    """Return the RDF term that an object is; a blank node, which means nothing inside a value, is its text."""
    kind, text, datatype = raw.get("type"), raw.get("value"), raw.get("datatype")
    if kind not in ("uri", "literal", "typed-literal", "bnode") or not isinstance(text, str):
        return None
    if not raw.keys() <= {"type", "value", "datatype", "xml:lang"}:
        return None
    return Term(text, ("uri" if kind == "uri" else "literal", datatype if isinstance(datatype, str) else None, None))


def _point_in(raw: Mapping[Any, Any]) -> Point | None:
    """Return the point that an object is: GeoJSON, or coordinates with a reference system."""
    crs = raw.get("crs")
    srid = raw.get("srid", crs.get("srid") if isinstance(crs, Mapping) else _CRS.get(str(crs).lower()))
    numbers = raw.get("coordinates") if raw.get("type") == "Point" else None
    if numbers is None:
        if not raw.keys() <= _POINT_KEYS or raw.keys().isdisjoint({"srid", "crs", "longitude"}):
            return None
        names = ("x", "y", "z") if "x" in raw else ("longitude", "latitude", "height")
        numbers = [raw[name] for name in names if raw.get(name) is not None]
    if not isinstance(numbers, list) or len(numbers) not in (2, 3) or {*map(type, numbers)} - {int, float}:
        return None
    is_finite = all(abs(number) < 10**300 for number in numbers)
    return Point(srid if type(srid) is int else None, tuple(map(float, numbers))) if is_finite else None


_NUMBER: Final = r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?"
_POINT: Final = re.compile(
    rf"(?:SRID=(?P<srid>\d{{1,9}});)? ?POINT ?Z? ?\( ?({_NUMBER}) ({_NUMBER})(?: ({_NUMBER}))? ?\)"
    rf"|point\(\{{x: ?({_NUMBER}), ?y: ?({_NUMBER}),(?: ?z: ?({_NUMBER}),)? ?crs: ?'(?P<crs>[\w-]{{1,20}})'\}}\)",
    re.ASCII | re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"(?:(?P<date>-?\d{4,9}-\d\d-\d\d)[T ])?(?P<clock>\d\d:\d\d)(?P<seconds>:\d\d)?(?:\.(?P<fraction>\d{1,18}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?(?:\[[\w/+-]{1,40}\])?",
    re.ASCII,
)
_PART: Final = r"(-?\d{1,18})"
_DURATION: Final = re.compile(
    rf"(-)?P(?=[-\dT])(?:{_PART}Y)?(?:{_PART}M)?(?:{_PART}W)?(?:{_PART}D)?"
    rf"(?:T(?=[-\d])(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}(?:\.(\d{{1,18}}))?S)?)?"
    r"|(?:(?P<days>-?\d{1,9}) days?, )?(?P<clock>\d{1,2}:\d\d:\d\d)(?:\.(?P<decimals>\d{1,9}))?",
    re.ASCII,
)
_MAY_BE_SCALAR: Final = re.compile(
    r"-?\d{4,9}-\d\d-\d\d[T ]\d\d:|\d{1,2}:\d\d(?::|\Z)|-?P[-\dT]|-?\d+ days?, |SRID=|point", re.I
)
_DURATION_SHAPE: Final[Shape] = ("literal", "http://www.w3.org/2001/XMLSchema#duration", None)
_LITERAL: Final[Shape] = ("literal", None, None)
_ENDS: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
_AGTYPE: Final = re.compile(r"(?<=[}\]])::(?:vertex|edge|path)")
_LONGEST: Final = 100_000
_LONGEST_SCALAR: Final = 300


def value_of_text(text: str, reader: GraphReader | None = None) -> GraphValue | None:
    """Return the time, duration, point, list, map, node, relationship or path that a text writes; None for all else.

    Times and durations are a ``Term`` with the same text for the same value.

    Args:
        text: The text.
        reader: Reads all texts of a table, so that its ``join_ends`` can join them.

    Example:
        >>> value_of_text('{"name": "Oslo"}'), value_of_text("2020-01-01 10:00"), value_of_text("[sic]")
        ({'name': 'Oslo'}, Term(text='2020-01-01T10:00:00', shape=('literal', None, None)), None)
    """
    scalar = scalar_of_text(text)
    text = text.strip()
    if scalar is not None or text[:1] not in _ENDS or len(text) > _LONGEST:
        return scalar
    if text.endswith(("::vertex", "::edge", "::path")):
        text = _AGTYPE.sub("", text)
    if not text.endswith(_ENDS[text[0]]):
        return None
    try:
        try:
            parsed = parse_json(text)
        except ValueError:
            parsed = python_value(text)
        value = (reader or GraphReader()).read(parsed)
    except (UnreadableOutput, RecursionError):
        return None
    return value if isinstance(value, STRUCTURES) else None


def scalar_of_text(text: str) -> Term | Point | None:
    """Return the time, duration or point that a text writes; None if it writes none."""
    if len(text) > _LONGEST_SCALAR or _MAY_BE_SCALAR.match(text) is None:
        return None
    found = _TIME.fullmatch(text)
    if found is not None:
        fraction = (found["fraction"] or "").rstrip("0")
        clock = f"{found['clock']}{found['seconds'] or ':00'}{'.' if fraction else ''}{fraction}"
        zone = found["zone"] or ""
        zone = f"{zone[:3]}:{zone[-2:]}" if len(zone) > 1 else zone
        return Term(f"{found['date']}T{clock}{zone}" if found["date"] else clock + zone, _LITERAL)
    found = _POINT.fullmatch(text)
    if found is not None:
        numbers = tuple(float(number) for number in found.groups()[1:7] if number is not None)
        return Point(int(found["srid"]) if found["srid"] else _CRS.get((found["crs"] or "").lower()), numbers)
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    years, months, weeks, days, hours, minutes = (int(part or "0") for part in found.groups()[1:7])
    seconds, fraction = found[8] or "0", found[9]
    if found["clock"] is not None:  # as Python writes it
        days, fraction = int(found["days"] or "0"), found["decimals"]
        hours, minutes, seconds = (int(part) for part in found["clock"].split(":"))
    nanoseconds = int(f"{fraction or ''}000000000"[:9]) * (-1 if str(seconds).startswith("-") else 1)
    nanoseconds += (((weeks * 7 + days) * 24 + hours) * 3_600 + minutes * 60 + int(seconds)) * 10**9
    sign = -1 if found[1] else 1
    return duration_term(sign * (years * 12 + months), sign * nanoseconds)


def duration_term(months: int, nanoseconds: int) -> Term:
    """Return a duration; one of months and seconds with different signs is none of XSD, and equal by its text."""
    return Term(duration_text(months, nanoseconds), _DURATION_SHAPE if months * nanoseconds >= 0 else _LITERAL)


def readable(value: GraphValue, longest: int = 300) -> str:
    """Return a value for people, as Cypher would write it but without quotes, cut after so many characters.

    Example:
        >>> readable(Node(("City",), {"name": "Oslo", "tags": ["a", "b"]}))
        '(:City {name: Oslo, tags: [a, b]})'
    """

    def inside(items: Iterable[GraphValue]) -> list[str]:
        return [readable(item, longest) for item in islice(items, longest)]

    match value:
        case Term():
            text = value.text
        case dict():
            text = ", ".join(map("{}: {}".format, value, inside(value.values())))
            text = f"{{{text}}}"
        case list():
            text = f"[{', '.join(inside(value))}]"
        case Node(labels=labels, properties=properties):
            shown = ["".join(f":{label}" for label in labels), *inside([properties] if properties else [])]
            text = f"({' '.join(filter(None, shown))})"
        case Relationship(type=name, properties=properties, ends=ends):
            shown = ["" if name is None else f":{name}", *inside([properties] if properties else [])]
            text = f"[{' '.join(filter(None, shown))}]"
            text = text if ends is None else f"-{text}->".join(inside(ends))
        case Path(parts=parts, length=length):
            text = ("-" if value.is_whole else f"-[*{length}]-").join(inside(parts))
        case Point(coordinates=coordinates):
            text = f"POINT({' '.join(map(str, coordinates))})"
        case bool() | None:
            text = {True: "true", False: "false", None: "null"}[value]
        case _:
            text = hex(value) if isinstance(value, int) and value.bit_length() > 1_000 else str(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
