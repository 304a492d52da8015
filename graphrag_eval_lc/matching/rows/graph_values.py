"""Reads values of property graphs from any store or driver, and computes the key by which each is compared.

``GraphReader`` reads nodes, relationships, paths, points, lists and maps from JSON values and from what
``python_repr`` returns; ``value_of_text`` reads them from texts. Values with equal keys are equal. A detail that one
side leaves out, such as the labels of nodes, is ignored on both sides. Ids of the store are only used to join
relationships with the nodes at their ends.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias
from unicodedata import normalize

from graphrag_eval_lc.json_values import json_number
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD, duration_from
from graphrag_eval_lc.matching.rows.python_repr import (
    DURATION,
    duration_of,
    printed_value,
    python_value,
    scalar_of_text,
)
from graphrag_eval_lc.matching.rows.results import Point, Term, Triple, term_of_value

GraphValue: TypeAlias = Any
"""A text, number, boolean, decimal, RDF term or None; a list or dict of them; or one of the classes below."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node; its labels are in the order of their names."""

    labels: tuple[str, ...]
    properties: dict[str, GraphValue]


@dataclass(slots=True)
class Relationship:
    """A relationship; type, properties or ends are None if the output does not contain them."""

    type: str | None
    properties: dict[str, GraphValue] | None
    ends: tuple[GraphValue, GraphValue] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path: nodes and relationships, alternating."""

    parts: tuple[GraphValue, ...]


STRUCTURES: Final = (dict, list, Node, Relationship, Path, Point)
"""The types of all values that have parts."""

MOST_VALUES: Final = 5_000_000
"""The largest number of values inside the cells of a table."""

_DEEPEST: Final = 60
_READ: Final = (str, int, float, Decimal, type(None), Term, Triple, Node, Relationship, Path, Point)
_ENDS: Final = "{0}nodeelementid {0}elementid {0}id {0}nodeid {0}node {0}"
_FIELD_OF: Final = {
    **{key: key for key in ("labels", "label", "type", "nodes", "entitytype")},
    **dict.fromkeys(("elementid", "identity", "id"), "id"),
    **dict.fromkeys(("properties", "props"), "properties"),
    **dict.fromkeys((*_ENDS.format("start").split(), "srcnode", "src"), "start"),
    **dict.fromkeys((*_ENDS.format("end").split(), "destnode", "dst"), "end"),
}
"""The keys under which drivers and JSON have the fields of nodes and relationships, and the field of each."""

_PATHS: Final = (("_NODES", "_RELS"), ("_nodes", "_rels"), ("Nodes", "Relationships"))
_SEGMENT: Final = {"relationship", "end"}
_OF_FALKORDB: Final = ((0, "id"), (-1, "properties"))


def _entity_in(raw: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return the fields of a node (which has labels) or relationship; None if the object is neither."""
    inner = raw.get("_value") if raw.get("$type") in ("Node", "Relationship") else raw
    if not isinstance(inner, Mapping):
        return None
    is_ladybug = "_label" in inner or "_LABEL" in inner
    fields: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in inner.items():
        field = _FIELD_OF.get(str(key).lower().replace("_", "").lstrip("~"))
        if field is None or (is_ladybug and str(key)[:1] != "_"):
            others[key] = value
        elif value is not None and (field not in fields or isinstance(value, Mapping)):
            fields[field] = value
    if is_ladybug:
        fields["properties"] = others
    if not isinstance(fields.get("properties"), Mapping) or (others and not is_ladybug):
        return None
    labels, name = fields.get("labels"), fields.get("label", fields.get("type"))
    if labels is None and isinstance(name, str) and fields.keys() == {"id", "label", "properties"}:
        return fields | {"labels": [name]}
    if isinstance(labels, list | tuple | Set):
        return fields if fields.get("type", "node") == "node" else None
    has_ends = isinstance(name, str) and not fields.keys().isdisjoint(("id", "start", "end", "nodes"))
    return fields if labels is None and (has_ends or raw.get("$type") == "Relationship") else None


def is_entity(raw: Any) -> bool:
    """Return whether a value is itself a node, relationship, path or point, and so not a row with columns."""
    if isinstance(raw, dict):
        return raw.keys() == {"$type", "_value"} or _entity_in(raw) is not None
    return type(raw).__module__ == "neo4j.graph"


class GraphReader:
    """Reads the values of one table, together at most ``MOST_VALUES``."""

    def __init__(self) -> None:
        self._remaining = MOST_VALUES
        self._nodes: dict[str, Node] = {}
        self._unjoined: list[tuple[Relationship, str, str]] = []

    def join_ends(self) -> None:
        """Replace ids at the ends of relationships by the nodes with these ids, if the table has them."""
        for relationship, start, end in self._unjoined:
            if start in self._nodes and end in self._nodes:
                relationship.ends = self._nodes[start], self._nodes[end]
        self._unjoined.clear()

    def read(self, raw: Any, depth: int = 0) -> GraphValue:
        """Return a value of JSON, of ``python_repr`` or of a driver as a ``GraphValue``."""
        if isinstance(raw, _READ):
            return raw
        if depth > _DEEPEST:
            raise UnreadableOutput(f"is nested more than {_DEEPEST} deep")
        if not isinstance(raw, dict) and type(raw) not in (list, tuple):
            return self._object(raw, depth)
        self._remaining -= 1 + len(raw)
        if self._remaining < 0:
            raise UnreadableOutput(f"has, with the cells before it, more than {MOST_VALUES:,} values")
        return self._mapping(raw, depth) if isinstance(raw, dict) else self._list(raw, depth)

    def _object(self, raw: Any, depth: int) -> GraphValue:
        """Read an object from its repr, except paths, whose repr leaves out some parts."""
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
        if len(raw) > 2 and all(isinstance(raw[at], list) and raw[at][:1] == [key] for at, key in _OF_FALKORDB):
            raise UnreadableOutput("is a node or relationship of FalkorDB's raw reply; return its properties instead")
        items: list[Any] = [item if isinstance(item, _READ) else self.read(item, depth + 1) for item in raw]
        nodes, between = items[::2], items[1::2]
        if not between or len(nodes) == len(between) or not all(isinstance(node, Node | dict) for node in nodes):
            return items
        if all(isinstance(each, str) for each in between):  # as data() of Neo4j's driver has relationships and paths
            between = [Relationship(name, None) for name in between]
            if len(between) == 1:
                between[0].ends = (nodes[0], nodes[1]) if nodes[0] or nodes[1] else None
                return between[0]
        is_path = all(isinstance(each, Relationship) for each in between)
        return Path(tuple(_in_turns(nodes, between))) if is_path else items

    def _mapping(self, raw: Mapping[Any, Any], depth: int) -> GraphValue:
        fields, keys = _entity_in(raw), raw.keys()
        if fields is not None:
            return self._entity(fields, depth)
        if keys == {"@type", "@value"} and isinstance(raw["@type"], str):
            value, is_map = raw["@value"], raw["@type"] == "g:Map" and isinstance(raw["@value"], list)
            if isinstance(value, Mapping) or (is_map and any(isinstance(key, dict) for key in value[::2])):
                raise UnreadableOutput(f"is a {raw['@type']} of GraphSON; return valueMap() instead")
            value = dict(zip(map(str, value[::2]), value[1::2], strict=False)) if is_map else value
            return self.read(value, depth + 1)
        if keys == {"$type", "_value"} and isinstance(raw["$type"], str):  # Neo4j's typed JSON
            is_point = raw["$type"] == "Point" and isinstance(raw["_value"], str)
            return (scalar_of_text(raw["_value"]) if is_point else None) or self.read(raw["_value"], depth + 1)
        if keys == {"low", "high"} and {*map(type, raw.values())} == {int}:  # Neo4j's driver for JavaScript
            return (raw["high"] << 32) + (raw["low"] & 0xFFFF_FFFF) if abs(raw["high"]) < 2**31 else str(raw)
        nodes, between = next(((raw[one], raw[other]) for one, other in _PATHS if keys == {one, other}), (None, None))
        segments = raw.get("segments") if "start" in raw else None
        if isinstance(segments, list) and all(isinstance(each, dict) and each.keys() >= _SEGMENT for each in segments):
            nodes = [raw["start"], *(each["end"] for each in segments)]
            between = [each["relationship"] for each in segments]
        if isinstance(nodes, list) and isinstance(between, list):
            # A relationship of several steps in ladybug has the nodes between them only.
            return self._list(_in_turns(nodes, between) if len(nodes) > len(between) else between, depth)
        if raw.get("type") in ("vertex", "edge") and "properties" in raw:
            raise UnreadableOutput("is a vertex or edge of GraphSON; return valueMap() instead")
        return _point_in(raw) or self._properties(raw, depth)

    def _entity(self, fields: Mapping[str, Any], depth: int) -> Node | Relationship:
        properties = self._properties(fields["properties"], depth)
        if "labels" in fields:
            node = Node(tuple(sorted(map(str, fields["labels"]))), properties)
            self._nodes[str(self.read(fields.get("id"), depth + 1))] = node
            return node
        name = fields.get("label", fields.get("type"))
        relationship = Relationship(name if isinstance(name, str) else None, properties)
        nodes = fields.get("nodes")  # as Python prints them
        ends = nodes if isinstance(nodes, tuple) and len(nodes) == 2 else (fields.get("start"), fields.get("end"))
        start, end = (self.read(each, depth + 1) for each in ends)
        if isinstance(start, Node) and isinstance(end, Node):
            is_known = start != Node((), {}) or start != end  # else the driver knows only the ids
            relationship.ends = (start, end) if is_known else None
        elif start is not None and end is not None:
            self._unjoined.append((relationship, str(start), str(end)))
        return relationship


def _in_turns(nodes: Sequence[Any], between: Sequence[Any]) -> list[Any]:
    return [part for pair in zip(nodes, between, strict=False) for part in pair] + [nodes[-1]]


_SRIDS: Final = {"wgs-84": 4326, "wgs-84-3d": 4979, "cartesian": 7203, "cartesian-3d": 9157}
_COORDINATES: Final = ("x", "longitude", "y", "latitude", "z", "height")


def _point_in(raw: Mapping[Any, Any]) -> Point | None:
    """Return the point in GeoJSON, or of coordinates with a reference system."""
    crs, numbers = raw.get("crs"), raw.get("coordinates") if raw.get("type") == "Point" else None
    srid = raw.get("srid", crs.get("srid") if isinstance(crs, Mapping) else _SRIDS.get(str(crs)))
    if raw.keys() <= {"srid", "crs", *_COORDINATES} and not raw.keys().isdisjoint(("srid", "crs", "longitude")):
        numbers = [raw[name] for name in _COORDINATES if raw.get(name) is not None]
    if not isinstance(numbers, list) or len(numbers) not in (2, 3) or {*map(type, numbers)} - {int, float}:
        return None
    is_finite = all(abs(number) < 10**300 for number in numbers)
    return Point(srid if type(srid) is int else None, tuple(map(float, numbers))) if is_finite else None


def value_of_text(text: str, reader: GraphReader | None = None) -> GraphValue | None:
    """Return the duration, point, list, map, node, relationship or path in a text; None for anything else."""
    try:
        value = scalar_of_text(text) or (reader or GraphReader()).read(printed_value(text))
    except (UnreadableOutput, RecursionError):
        return None
    return value if isinstance(value, (*STRUCTURES, Term)) else None


_DURATIONS: Final = {XSD + "duration", XSD + "dayTimeDuration"}
_BY_VALUE: Final = {XSD + name for name in ("date", "dateTime", "dayTimeDuration", "decimal", "time")}
"""The types of times and decimals, which most forms write without a type."""


class GraphRules(NamedTuple):
    """How values of a property graph are compared.

    Attributes:
        node_keys: The properties that identify a node or relationship; empty for labels (type) and all properties.
        list_order: Whether the order of a list's elements counts.
    """

    node_keys: tuple[str, ...] = ()
    list_order: bool = True


def details_of_both(reference: Iterable[GraphValue], actual: Iterable[GraphValue]) -> frozenset[str]:
    """Return the details that count, because values of both sides have them.

    They are the "labels" of nodes (without them a node equals a map), the "type", "properties" and "ends" of
    relationships, and the "srid" of points (without it a point equals a list). With "paths", relationships without
    properties may be paths, as in Neo4j's ``data()``. With "durations", lists of four integers may be durations, as in
    Neo4j's JSON.
    """
    sides = [[part for value in values for part in _parts_of(value)] for values in (reference, actual)]
    parts = [part for side in sides for part in side]
    relationships = [part for part in parts if isinstance(part, Relationship)]
    has_srids = all(part.srid is not None for part in parts if isinstance(part, Point))
    details = {
        "labels": all(any(isinstance(part, Node) for part in side) for side in sides),
        "type": all(each.type is not None for each in relationships),
        "properties": all(each.properties is not None for each in relationships),
        "ends": all(each.ends is not None for each in relationships),
        "srid": has_srids and all(any(isinstance(part, Point) for part in side) for side in sides),
        "paths": any(isinstance(part, Path) for part in parts),
        "durations": any(
            part.shape[1] in _DURATIONS
            if isinstance(part, Term)
            else isinstance(part, str) and part[:1] == "P" and duration_from(part) is not None
            for part in parts
        ),
    }
    return frozenset(name for name, is_detail in details.items() if is_detail)


def _parts_of(value: GraphValue) -> Iterator[GraphValue]:
    """Yield a value and all values in it; a relationship in a path has its ends next to it."""
    yield value
    inner: Iterable[GraphValue] = ()
    match value:
        case dict():
            inner = value.values()
        case list():
            inner = value
        case Node(properties=properties):
            inner = properties.values()
        case Relationship(properties=properties, ends=ends):
            inner = (*(properties or {}).values(), *(ends or ()))
        case Path(parts=parts):
            inner = (replace(part, ends=(None, None)) if isinstance(part, Relationship) else part for part in parts)
    for each in inner:
        if isinstance(each, (*STRUCTURES, Term, str)):
            yield from _parts_of(each)


class GraphKeys(NamedTuple):
    """Computes the keys by which values are compared."""

    details: frozenset[str]
    rules: GraphRules
    key_of_term: Callable[[Term | Triple], Hashable]

    def key(self, value: GraphValue) -> Hashable:
        """Return the key of a value: values are equal, in the details that count, if their keys are equal."""
        match value:
            case Term(text=text, shape=(_, datatype, _)):  # times and decimals inside values rarely have a type
                return self._scalar(text) if datatype in _BY_VALUE else self.key_of_term(value)
            case Triple():
                return ("triple", *map(self.key_of_term, value))
            case dict():
                return "map", self._map(value) if "labels" in self.details else self._properties(value)[0]
            case list():
                return self._list(value)
            case Node(labels=labels, properties=properties):
                key, is_chosen = self._properties(properties)
                return ("node", None if is_chosen else labels, key) if "labels" in self.details else ("map", key)
            case Relationship(ends=ends):
                middle, is_chosen = self._middle(value)
                may_be_path = "paths" in self.details and value.properties is None
                if ends is None or is_chosen or not ("ends" in self.details or may_be_path):
                    return "relationship", middle
                return "path", (self.key(ends[0]), middle, self.key(ends[1]))
            case Path(parts=parts):
                nodes, between = parts[::2], (self._middle(part)[0] for part in parts[1::2])
                return "path", tuple(_in_turns(list(map(self.key, nodes)), list(between)))
            case Point(srid=srid, coordinates=coordinates):
                keys = tuple(map(self.key, coordinates))
                return ("point", srid, keys) if "srid" in self.details else self._list(list(coordinates))
        return self._scalar(value)

    def _middle(self, value: Relationship) -> tuple[Hashable, bool]:
        """As ``_properties``, for a relationship without its ends."""
        key, is_chosen = self._properties((value.properties if "properties" in self.details else None) or {})
        return (self.key(value.type) if "type" in self.details and not is_chosen else None, key), is_chosen

    def _properties(self, properties: dict[str, GraphValue]) -> tuple[Hashable, bool]:
        """Return the key of the properties that count, and whether they are the configured ``node_keys``."""
        chosen = {key: properties[key] for key in self.rules.node_keys if key in properties}
        return self._map(chosen or properties), bool(chosen)

    def _map(self, properties: Mapping[str, GraphValue]) -> Hashable:
        return frozenset(
            (normalize("NFC", name), self.key(value)) for name, value in properties.items() if value is not None
        )

    def _list(self, items: list[GraphValue]) -> Hashable:
        if "durations" in self.details and [*map(type, items)] == [int] * 4:
            return self.key_of_term(Term(duration_of(*items), DURATION))
        keys = tuple(map(self.key, items))
        return "list", keys if self.rules.list_order else frozenset(Counter(keys).items())

    def _scalar(self, value: GraphValue) -> Hashable:
        if value is None:
            return None
        found = (scalar_of_text(value) if isinstance(value, str) else None) or term_of_value(value)
        return self.key_of_term(found) if isinstance(found, Term) else self.key(found)


def readable(value: GraphValue, longest: int = 300) -> str:
    """Return a value for people, as Cypher would write it but without quotes, cut after so many characters."""

    def inside(items: Iterable[GraphValue]) -> list[str]:
        return [readable(item, longest) for item in islice(items, longest)]

    def named(names: Iterable[str], properties: Any) -> str:
        return " ".join(["".join(f":{name}" for name in names), *inside([properties] if properties else [])]).strip()

    match value:
        case Term():
            text = value.text
        case dict():
            text = f"{{{', '.join(map('{}: {}'.format, value, inside(value.values())))}}}"
        case list():
            text = f"[{', '.join(inside(value))}]"
        case Node(labels=labels, properties=properties):
            text = f"({named(labels, properties)})"
        case Relationship(type=name, properties=properties, ends=ends):
            text = f"[{named([name] if name else [], properties)}]"
            text = text if ends is None else f"-{text}->".join(inside(ends))
        case Path(parts=parts):
            text = "-".join(inside(parts))
        case Point(coordinates=coordinates):
            text = f"POINT({' '.join(map(str, coordinates))})"
        case bool() | None:
            text = {True: "true", False: "false", None: "null"}[value]
        case _:
            text = str(json_number(value) if isinstance(value, int) else value)
    return text if len(text) <= longest else f"{text[:longest]}…"
