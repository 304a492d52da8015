"""Values of property graphs that stand in cells: nodes, relationships, paths, points, lists and maps, in any form.

Stores and their drivers write the same node in many ways. Here each of them becomes one of a few types, without the ids
that the store gave it; what a form does not tell (the driver's ``data()`` has no labels) is None.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, get_args
from uuid import UUID

from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.graph_times import duration_text, point_from
from graphrag_eval_lc.matching.rows.python_calls import duration_of
from graphrag_eval_lc.matching.rows.terms import Term
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD

GraphValue: TypeAlias = Any
"""A text, number, boolean, decimal, RDF term or None; a list or dict of them; or one of the classes below."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node.

    Attributes:
        labels: Its labels in the order of their names; empty for none.
        properties: Those that are not null.
    """

    labels: tuple[str, ...]
    properties: dict[str, GraphValue]


@dataclass(slots=True)
class Relationship:
    """A relationship.

    Attributes:
        type: Its type; None where the form does not tell.
        properties: Those that are not null; None where the form does not tell.
        ends: Its start and end; None where nothing but their ids is known.
    """

    type: str | None
    properties: dict[str, GraphValue] | None
    ends: tuple[GraphValue, GraphValue] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path.

    Attributes:
        parts: Nodes and relationships in turns, beginning and ending with a node; just these two where the form leaves
            out what is between them.
        length: The number of relationships.
    """

    parts: tuple[GraphValue, ...]
    length: int

    @property
    def is_whole(self) -> bool:
        """Whether all parts are known."""
        return len(self.parts) == 2 * self.length + 1


@dataclass(frozen=True, slots=True)
class Point:
    """A point in space.

    Attributes:
        srid: The number of its coordinate reference system; None where the form does not tell.
        coordinates: Two or three numbers: x or longitude first.
    """

    srid: int | None
    coordinates: tuple[float, ...]


STRUCTURES: Final = (dict, list, Node, Relationship, Path, Point)
"""The types of all values that have parts."""

_Scalar: TypeAlias = str | int | float | Decimal | None
_SCALARS: Final = get_args(_Scalar)
_DEEPEST: Final = 60
MOST_VALUES: Final = 5_000_000
"""A table may hold so many values inside its cells."""

_IDS: Final = frozenset({"element_id", "elementId", "identity", "id"})
_NODE_KEYS: Final = _IDS | {"labels", "properties", "type"}
_ENDS: Final = ("start", "end")
_END_IDS: Final = frozenset(
    {"startNodeElementId", "endNodeElementId", "start_id", "end_id", "startNode", "endNode", *_ENDS}
)
_NODE_IDS: Final = ("elementId", "element_id", "identity", "id")
_START_IDS: Final = ("startNodeElementId", "start_id", "start")
_LAST_IDS: Final = ("endNodeElementId", "end_id", "end")
_RELATIONSHIP_KEYS: Final = _IDS | _END_IDS | {"type", "label", "properties"}
_AGE_VERTEX: Final = frozenset({"id", "label", "properties"})
_CRS: Final = {"wgs-84": 4326, "wgs-84-3d": 4979, "cartesian": 7203, "cartesian-3d": 9157}
_POINT_KEYS: Final = frozenset({"srid", "crs", "x", "y", "z", "longitude", "latitude", "height"})


class GraphReader:
    """Reads values, of one table together at most ``MOST_VALUES``."""

    def __init__(self) -> None:
        self._left = MOST_VALUES
        self._nodes: dict[str, Node] = {}
        self._loose: list[tuple[Relationship, str, str]] = []

    def join_ends(self) -> None:
        """Give relationships that tell their ends by ids the nodes that have been read with these ids."""
        for relationship, start, end in self._loose:
            if start in self._nodes and end in self._nodes:
                relationship.ends = self._nodes[start], self._nodes[end]
        self._loose.clear()

    def _with_id(self, node: Node, own_id: Any) -> Node:
        if own_id is not None:
            self._nodes[repr(own_id)] = node
        return node

    def _with_end_ids(self, relationship: Relationship, start: Any, end: Any) -> Relationship:
        if relationship.ends is None and start is not None and end is not None:
            self._loose.append((relationship, repr(start), repr(end)))
        return relationship

    def read(self, raw: Any, depth: int = 0) -> GraphValue:
        """Return a value as one of the types of this module.

        Args:
            raw: A value of JSON, of a repr, or of a driver.
            depth: How deep it stands in others.

        Raises:
            UnreadableOutput: It is nested too deeply, or holds too many values.

        Example:
            >>> GraphReader().read({"elementId": "4:a:0", "labels": ["City"], "properties": {"name": "Oslo"}})
            Node(labels=('City',), properties={'name': 'Oslo'})
        """
        if isinstance(raw, _SCALARS):
            return raw
        if depth > _DEEPEST:
            raise UnreadableOutput(f"is nested more than {_DEEPEST} deep")
        self._left -= 1
        if self._left < 0:
            raise UnreadableOutput(f"has, with the cells before it, more than {MOST_VALUES:,} values")
        from_driver = _driver_class(raw)
        if from_driver is not None:
            return self._from_driver(raw, from_driver, depth)
        if isinstance(raw, Mapping):
            return self._mapping(raw, depth)
        if isinstance(raw, list | tuple):
            return self._list(raw, depth)
        if isinstance(raw, Set):
            return self._list(sorted(raw, key=repr), depth)
        return _text_of(raw)

    def _properties(self, raw: Mapping[Any, Any], depth: int) -> dict[str, GraphValue]:
        self._left -= len(raw)
        return {str(key): self.read(value, depth + 1) for key, value in raw.items() if value is not None}

    def _list(self, raw: Sequence[Any], depth: int) -> GraphValue:
        self._left -= len(raw)
        if self._left < 0:
            return self.read([], depth)  # which says so
        items = [item if isinstance(item, _SCALARS) else self.read(item, depth + 1) for item in raw]
        return _path_of(items) or items

    def _mapping(self, raw: Mapping[Any, Any], depth: int) -> GraphValue:
        keys = raw.keys()
        if "$type" in keys and len(keys) == 2 and "_value" in keys:
            return self._typed(raw["$type"], raw["_value"], depth)
        return (
            _term_of(raw)
            or self._entity(raw, depth)
            or self._ladybug_value(raw, depth)
            or _point_of(raw)
            or self._path_of_segments(raw, depth)
            or self._properties(raw, depth)
        )

    def _entity(self, raw: Mapping[Any, Any], depth: int) -> GraphValue | None:
        """Read a node or relationship that is written with its ids beside its properties."""
        kind = entity_kind(raw)
        if kind is None:
            return None
        properties = self._properties(raw["properties"], depth)
        if kind == "node":
            node = Node(_labels(raw["labels"] if "labels" in raw else [raw["label"]]), properties)
            return self._with_id(node, _first(raw, _NODE_IDS))
        name = raw.get("label", raw.get("type"))
        ends = [self._entity(raw[end], depth + 1) if isinstance(raw.get(end), Mapping) else None for end in _ENDS]
        known = Relationship(name, properties, _known_ends(*ends))
        return self._with_end_ids(known, _first(raw, _START_IDS), _first(raw, _LAST_IDS))

    def _ladybug_value(self, raw: Mapping[Any, Any], depth: int) -> GraphValue | None:
        """Read a node, relationship or path of ladybug, and of kuzu, whose own keys have an underscore."""
        marks = {str(key).upper(): key for key in raw if isinstance(key, str) and key.startswith("_")}
        if {"_NODES", "_RELS"} <= marks.keys() and len(raw) == 2:
            nodes, between = (raw[marks[name]] for name in ("_NODES", "_RELS"))
            if not isinstance(nodes, list | tuple) or not isinstance(between, list | tuple):
                return None
            if len(nodes) != len(between) + 1:  # the relationships of a path, with the nodes between them
                return [self.read(each, depth + 1) for each in between]
            parts = [part for pair in zip(nodes, between, strict=False) for part in pair] + [nodes[-1]]
            return Path(tuple(self.read(part, depth + 1) for part in parts), len(between))
        if "_LABEL" not in marks or not isinstance(raw[marks["_LABEL"]], str):
            return None
        label = raw[marks["_LABEL"]]
        if not isinstance(raw.get(marks.get("_ID")), Mapping) and "_SRC" not in marks:
            return None
        own = {marks[name] for name in ("_ID", "_LABEL", "_SRC", "_DST") if name in marks}
        properties = self._properties({key: value for key, value in raw.items() if key not in own}, depth)
        ids = [raw.get(marks.get(name)) for name in ("_ID", "_SRC", "_DST")]
        if {"_SRC", "_DST"} <= marks.keys():
            return self._with_end_ids(Relationship(label, properties), ids[1], ids[2])
        return self._with_id(Node((label,), properties), ids[0])

    def _path_of_segments(self, raw: Mapping[Any, Any], depth: int) -> Path | None:
        """Read a path of the JavaScript driver."""
        segments = raw.get("segments")
        if not isinstance(segments, list) or not {"start", "end"} <= raw.keys():
            return None
        parts = [raw["start"]]
        for segment in segments:
            if not isinstance(segment, Mapping) or not {"relationship", "end"} <= segment.keys():
                return None
            parts += [segment["relationship"], segment["end"]]
        return Path(tuple(self.read(part, depth + 1) for part in parts), len(segments))

    def _typed(self, kind: Any, value: Any, depth: int) -> GraphValue:
        """Read a value of Neo4j's typed JSON."""
        if kind == "Node" and isinstance(value, Mapping) and isinstance(value.get("_properties"), Mapping):
            node = Node(_labels(value.get("_labels")), self._properties(value["_properties"], depth))
            return self._with_id(node, value.get("_element_id"))
        if kind == "Relationship" and isinstance(value, Mapping) and isinstance(value.get("_properties"), Mapping):
            name = value.get("_type")  # absent in the older API
            known = Relationship(None if name is None else str(name), self._properties(value["_properties"], depth))
            ids = (value.get(f"_{end}_node_element_id") for end in _ENDS)
            return self._with_end_ids(known, *ids)
        if kind == "PathSummary" and isinstance(value, Mapping):  # not Neo4j's: what Python shows of a driver's path
            ends = (self.read(value.get("start"), depth + 1), self.read(value.get("end"), depth + 1))
            size = value.get("size")
            return Path(ends, size if isinstance(size, int) else 0)
        if kind in ("Integer", "Float") and isinstance(value, str):
            return _number_of(value)
        return self.read(value, depth + 1)

    def _from_driver(self, raw: Any, kind: str, depth: int) -> GraphValue:
        """Read an object of the Neo4j driver."""
        if kind == "Node":
            return Node(_labels(raw.labels), self._properties(dict(raw.items()), depth))
        if kind == "Relationship":
            ends = [None if end is None else self.read(end, depth + 1) for end in raw.nodes]
            return Relationship(raw.type, self._properties(dict(raw.items()), depth), _known_ends(*ends))
        if kind == "Path":
            nodes = [self.read(node, depth + 1) for node in raw.nodes]
            between = [self._from_driver(each, "Relationship", depth + 1) for each in raw.relationships]
            parts = [part for pair in zip(nodes, between, strict=False) for part in pair] + nodes[-1:]
            return Path(tuple(parts), len(between))
        if kind == "Point":
            return Point(raw.srid, tuple(raw))
        return _text_of(raw)


_TYPES_OF_TERMS: Final = ("uri", "literal", "typed-literal", "bnode")


def _term_of(raw: Mapping[Any, Any]) -> Term | str | None:
    """Return the RDF term that an object is; of a time or decimal its text, as in most forms; None for all else."""
    kind, text, datatype = raw.get("type"), raw.get("value"), raw.get("datatype")
    if kind not in _TYPES_OF_TERMS or not isinstance(text, str) or not raw.keys() <= _TERM_KEYS:
        return None
    is_typed = isinstance(datatype, str)
    if is_typed and datatype in _BY_VALUE:
        return text
    is_bare = kind == "bnode" or not is_typed  # a blank node inside a value is its label
    return Term(text, ("literal" if kind == "bnode" else kind, None if is_bare else datatype, None))


_TERM_KEYS: Final = frozenset({"type", "value", "datatype", "xml:lang"})
_BY_VALUE: Final = frozenset(f"{XSD}{name}" for name in ("date", "dateTime", "dayTimeDuration", "decimal", "time"))
"""The types of texts that are compared by their values also without a type."""


def entity_kind(raw: Any) -> str | None:
    """Return ``node`` or ``relationship`` for an object that says itself that it is one; None for all else.

    Example:
        >>> entity_kind({"elementId": "5:a:1", "type": "KNOWS", "properties": {}}), entity_kind({"labels": 3})
        ('relationship', None)
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("properties"), Mapping):
        return None
    keys = raw.keys()
    if "labels" in keys and keys <= _NODE_KEYS and raw.get("type", "node") == "node":
        labels = raw["labels"]
        return "node" if isinstance(labels, list | tuple | Set) else None
    if keys == _AGE_VERTEX:
        return "node" if isinstance(raw["label"], str) else None
    if not keys <= _RELATIONSHIP_KEYS or keys.isdisjoint(_IDS | _END_IDS):
        return None
    return "relationship" if isinstance(raw.get("label", raw.get("type")), str) else None


def is_entity(raw: Any) -> bool:
    """Return whether a value says itself that it is a node, a relationship or a path, and no row of a table."""
    return _driver_class(raw) in ("Node", "Relationship", "Path") or entity_kind(raw) is not None


_BUILT_IN: Final = frozenset({dict, list, tuple, str, int, float, bool, type(None), Decimal})


def _driver_class(raw: Any) -> str | None:
    """Return what an object of the Neo4j driver is; None for all other objects."""
    kind = type(raw)
    if kind in _BUILT_IN:
        return None
    names = {each.__name__ for each in kind.__mro__ if str(each.__module__).startswith("neo4j.")}
    found = [name for name in ("Node", "Relationship", "Path", "Point", "Duration") if name in names]
    return found[0] if found else None


def _first(raw: Mapping[Any, Any], keys: Sequence[str]) -> Any:
    """Return what stands under the first of some keys that an object has."""
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def _labels(raw: Any) -> tuple[str, ...]:
    return tuple(sorted(map(str, raw))) if isinstance(raw, list | tuple | Set) else ()


def _known_ends(start: GraphValue, end: GraphValue) -> tuple[GraphValue, GraphValue] | None:
    """Return the ends of a relationship; None where a driver knows no more than their ids."""
    if start is None or end is None or all(end == Node((), {}) for end in (start, end)):
        return None
    return start, end


def _path_of(items: list[GraphValue]) -> Path | None:
    """Return the path that a list of nodes and relationships in turns is; None where it is none."""
    if len(items) < 3 or len(items) % 2 == 0 or not isinstance(items[1], Relationship):
        return None
    is_path = all(isinstance(item, Relationship if at % 2 else Node | dict) for at, item in enumerate(items))
    return Path(tuple(items), len(items) // 2) if is_path else None


def _point_of(raw: Mapping[Any, Any]) -> Point | None:
    keys = raw.keys()
    if raw.get("type") == "Point" and isinstance(raw.get("coordinates"), list | tuple):
        crs = raw.get("crs")
        srid = raw.get("srid", crs.get("srid") if isinstance(crs, Mapping) else None)
        return _checked_point(srid, raw["coordinates"])
    if not keys <= _POINT_KEYS or not ({"srid", "crs"} & keys or {"longitude", "latitude"} <= keys):
        return None
    if {"x", "y"} <= keys:
        coordinates = [raw["x"], raw["y"], raw.get("z")]
    elif {"longitude", "latitude"} <= keys:
        coordinates = [raw["longitude"], raw["latitude"], raw.get("height")]
    else:
        return None
    crs = raw.get("crs")
    srid = raw.get("srid", _CRS.get(crs.lower()) if isinstance(crs, str) else None)
    return _checked_point(srid, [each for each in coordinates if each is not None])


def _checked_point(srid: Any, coordinates: Sequence[Any]) -> Point | None:
    numbers = [each for each in coordinates if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) != len(coordinates) or len(numbers) not in (2, 3):
        return None
    return Point(srid if isinstance(srid, int) else None, tuple(numbers))


def point_of_text(text: str) -> Point | None:
    """Return the point that a text writes as WKT or as Cypher does; None where it writes none.

    Example:
        >>> point_of_text("SRID=4326;POINT (1.5 2)"), point_of_text("a point")
        (Point(srid=4326, coordinates=(1.5, 2.0)), None)
    """
    found = point_from(text)
    return None if found is None else Point(_CRS.get(found.crs) if found.srid is None else found.srid, found.numbers)


def _number_of(text: str) -> GraphValue:
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return text


def _text_of(raw: Any) -> str:
    """Return an object of a driver as the text that other forms have in its place."""
    if isinstance(raw, timedelta):
        return duration_of(raw)
    if _driver_class(raw) == "Duration":
        return duration_text(raw.months, raw.days, raw.seconds, raw.nanoseconds)
    if isinstance(raw, datetime | date | time):
        return raw.isoformat()
    if isinstance(raw, UUID):
        return str(raw)
    try:
        return str(raw)
    except Exception:  # an object of a tool's own, which may raise anything
        raise UnreadableOutput(f"is a {type(raw).__name__} without a text") from None


def readable(value: GraphValue, longest: int = 300) -> str:
    """Return a value for people, as Cypher would write it but without quotes.

    Args:
        value: The value.
        longest: So many characters are enough; what comes after them is left out.

    Example:
        >>> readable(Node(("City",), {"name": "Oslo", "tags": ["a", "b"]}))
        '(:City {name: Oslo, tags: [a, b]})'
    """
    shown: list[str] = []
    left = longest

    def write(text: str) -> bool:
        nonlocal left
        shown.append(text)
        left -= len(text)
        return left > 0

    _write(value, write)
    text = "".join(shown)
    return text if left > 0 else f"{text[:longest]}…"


def _write(value: GraphValue, write: Callable[[str], bool]) -> bool:
    """Write a value in pieces, until one is refused."""
    match value:
        case dict():
            return _write_map(value, "", write)
        case list():
            return write("[") and _write_items(value, ", ", write) and write("]")
        case Node(labels=labels, properties=properties):
            return write("(" + "".join(f":{label}" for label in labels)) and _write_inside(labels, properties, write)
        case Relationship(ends=None):
            return _write_relationship(value, write)
        case Relationship(ends=(start, end)):
            is_going_on = _write(start, write) and write("-") and _write_relationship(value, write) and write("->")
            return is_going_on and _write(end, write)
        case Path(parts=parts) if value.is_whole:
            return _write_items(parts, "-", write)
        case Path(parts=parts):
            return _write(parts[0], write) and write(f"-[*{value.length}]-") and _write(parts[-1], write)
        case Point(coordinates=coordinates):
            return write(f"POINT({' '.join(map(str, coordinates))})")
        case Term(text=text):
            return write(text)
        case bool():
            return write(str(value).lower())
        case float() if not math.isfinite(value):
            return write(str(value))
        case int() if value.bit_length() > 1_000:
            return write(hex(value))
    return write("null" if value is None else str(value))


def _write_inside(labels: tuple[str, ...], properties: dict[str, GraphValue], write: Callable[[str], bool]) -> bool:
    if properties and not (_write_map(properties, " " if labels else "", write)):
        return False
    return write(")")


def _write_relationship(value: Relationship, write: Callable[[str], bool]) -> bool:
    if not write(f"[:{value.type}" if value.type is not None else "["):
        return False
    return (not value.properties or _write_map(value.properties, " ", write)) and write("]")


def _write_map(value: Mapping[str, GraphValue], before: str, write: Callable[[str], bool]) -> bool:
    if not write(f"{before}{{"):
        return False
    for at, (key, item) in enumerate(value.items()):
        if not (write(f"{', ' if at else ''}{key}: ") and _write(item, write)):
            return False
    return write("}")


def _write_items(items: Sequence[GraphValue], between: str, write: Callable[[str], bool]) -> bool:
    return all((not at or write(between)) and _write(item, write) for at, item in enumerate(items))
