"""The parts of a graph's value as terms by their places, as far as they count: equal values have equal parts."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias, cast

from graphrag_eval_lc.json_values import json_number
from graphrag_eval_lc.matching.rows.graph_times import canonical_text, duration_text
from graphrag_eval_lc.matching.rows.graph_values import (
    GraphValue,
    Node,
    Path,
    Point,
    Relationship,
    point_of_text,
)
from graphrag_eval_lc.matching.rows.terms import Shape, Term
from graphrag_eval_lc.matching.rows.values import in_nfc
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD, XSD_BOOLEAN, number_from

Parts: TypeAlias = list[str | Term]
"""The parts of a value in an order of their own, each after its place: a text for a literal without a type, else a
term.

They are so many that a pair for each would cost more than all the rest.
"""

_LITERAL: Final[Shape] = ("literal", None, None)
_BOOLEAN: Final[Shape] = ("literal", XSD_BOOLEAN, None)
_DOUBLE: Final[Shape] = ("literal", f"{XSD}double", None)
_ESCAPES: Final = str.maketrans({"~": "~0", "/": "~1", "#": "~2"})
_PARTS_OF_A_DURATION: Final = 4


class GraphRules(NamedTuple):
    """How values of a property graph are compared.

    Attributes:
        node_keys: The properties that tell a node or relationship; empty for labels (type) and all properties.
        list_order: Whether the order of a list's elements counts.
    """

    node_keys: tuple[str, ...] = ()
    list_order: bool = True


class Told:
    """What the values of one result tell, and what they fail to tell.

    Attributes:
        nodes: Whether some say that they are nodes, with their labels.
        relationships: Whether some say that they are relationships.
        paths: Whether some say that they are paths.
        points: Whether some say that they are points.
        chains: Whether there are lists of maps and texts in turns, as ``data()`` writes relationships and paths.
        durations: Whether there are texts that are durations.
        lists_of_four: Whether there are lists of four integers, which are durations that were written as JSON.
        lacking: What some relationship, path or point does not tell: type, properties, ends, parts, srid.
    """

    def __init__(self) -> None:
        self.nodes = self.relationships = self.paths = self.points = False
        self.chains = self.durations = self.lists_of_four = False
        self.lacking: set[str] = set()

    @property
    def entities(self) -> bool:
        """Whether nodes, relationships or paths say themselves what they are."""
        return self.nodes or self.relationships or self.paths

    def add(self, value: GraphValue, *, is_in_path: bool = False) -> None:
        """Take account of a value."""
        match value:
            case str():
                self.durations |= value[:1] in ("P", "-") and is_duration(value)
            case list():
                self._add_list(value)
            case dict():
                self._add_all(value.values())
            case Node(properties=properties):
                self.nodes = True
                self._add_all(properties.values())
            case Relationship(type=name, properties=properties, ends=ends):
                self.relationships = True
                known = {"type": name, "properties": properties, "ends": ends}
                self.lacking |= {
                    key for key, each in known.items() if each is None and (key != "ends" or not is_in_path)
                }
                self._add_all((properties or {}).values())
                self._add_all(ends or ())
            case Path(parts=parts):
                self.paths = True
                self.lacking |= set() if value.is_whole else {"parts"}
                for part in parts:
                    self.add(part, is_in_path=True)
            case Point(srid=srid):
                self.points = True
                self.lacking |= {"srid"} if srid is None else set()

    def _add_all(self, values: Iterable[GraphValue]) -> None:
        for value in values:
            if type(value) not in _PLAIN:
                self.add(value)

    def _add_list(self, items: list[GraphValue]) -> None:
        if is_chain(items):
            self.chains = True
            self.lacking.add("properties")
            self.lacking |= {"ends"} if _has_unknown_ends(items) else set()
        self.lists_of_four |= _may_be_duration(items)
        self._add_all(items)


_PLAIN: Final = frozenset({int, float, bool, type(None)})


def is_duration(text: str) -> bool:
    """Return whether a text is a duration."""
    found = canonical_text(text)
    return found is not None and found[0].lstrip("-").startswith("P")


def is_chain(items: Sequence[GraphValue]) -> bool:
    """Return whether a list is one of maps and texts in turns, as the driver's ``data()`` writes a path.

    Example:
        >>> is_chain([{"name": "Oslo"}, "NEAR", {}]), is_chain([{}, {}, {}])
        (True, False)
    """
    if len(items) < 3 or len(items) % 2 == 0 or not isinstance(items[1], str):
        return False
    return all(isinstance(item, str if at % 2 else dict) for at, item in enumerate(items))


def _has_unknown_ends(items: Sequence[GraphValue]) -> bool:
    """Return whether a chain is a relationship of which the driver knew no more than the ids of its ends."""
    return len(items) == 3 and not items[0] and not items[2]


def _may_be_duration(items: Sequence[GraphValue]) -> bool:
    return len(items) == _PARTS_OF_A_DURATION and all(type(item) is int for item in items)


class Counting(NamedTuple):
    """What counts in the values of one side of a comparison: what both sides tell.

    Attributes:
        rules: How values are compared.
        labels: Whether labels count, and a node differs from a map.
        entities: Whether a relationship or path differs from a list.
        lacking: What does not count of relationships, paths and points.
        chains_are_relationships: Whether lists of a map, a text and a map are relationships, of which only the type
            counts.
        lists_are_durations: Whether lists of four integers are durations.
    """

    rules: GraphRules
    labels: bool
    entities: bool
    lacking: frozenset[str]
    chains_are_relationships: bool
    lists_are_durations: bool

    @classmethod
    def of(cls, rules: GraphRules, own: Told, other: Told) -> "Counting":
        """Return what counts in the values of one side beside the other."""
        lacking = own.lacking | other.lacking | (set() if own.points and other.points else {"srid"})
        return cls(
            rules,
            own.nodes and other.nodes,
            own.entities and other.entities and not (own.chains or other.chains),
            frozenset(lacking),
            "ends" in lacking and other.relationships and not other.paths,
            own.lists_of_four and other.durations and not own.durations,
        )


class GraphParts:
    """Takes values apart.

    Args:
        counting: What counts.
    """

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._keys = counting.rules.node_keys
        self._places_in: defaultdict[str, list[str]] = defaultdict(list)
        self._maps_may_be_nodes = not counting.labels

    def parts(self, value: GraphValue) -> Parts:
        """Return the parts of a value that count."""
        found: Parts = []
        self._add(value, "", found)
        return found

    def _add(self, value: GraphValue, path: str, found: Parts) -> None:
        match value:
            case None:
                return
            case dict():
                self._mark("map", path, found)
                self._add_properties(self._chosen(value) if self._maps_may_be_nodes else value, path, found)
            case list():
                self._add_list(value, path, found)
            case Node(labels=labels, properties=properties):
                chosen = self._chosen(properties)
                self._mark("node" if self._counting.labels else "map", path, found)
                if self._counting.labels and chosen is properties:
                    found += (f"{path}#labels", ":".join(labels))
                self._add_properties(chosen, path, found)
            case Relationship():
                self._add_relationship(value, path, found)
            case Path():
                self._add_path(value, path, found)
            case Point(srid=srid, coordinates=coordinates):
                self._mark(f"list {len(coordinates)}", path, found)
                self._add_numbers([float(x) for x in coordinates], path, found)
                if "srid" not in self._counting.lacking:
                    found += (f"{path}#srid", str(srid))
            case _:
                self._add_scalar(value, path, found)

    def _add_scalar(self, value: GraphValue, path: str, found: Parts) -> None:
        scalar = scalar_of(value)
        if isinstance(scalar, str | Term):
            found += (path, scalar)
        else:
            self._add(scalar, path, found)

    def _add_numbers(self, items: Sequence[float], path: str, found: Parts) -> None:
        for place, number in zip(self._places(path, len(items)), items, strict=False):
            found += (place, repr(number))

    def _places(self, path: str, length: int) -> list[str]:
        """Return the places of a list's elements, at least so many; they are made once."""
        places = self._places_in[path]
        places += [f"{path}/{at}" for at in range(len(places), length)]
        return places

    def _mark(self, kind: str, path: str, found: Parts) -> None:
        found += (f"{path}#", kind)

    def _chosen(self, properties: dict[str, GraphValue]) -> dict[str, GraphValue]:
        """Return the properties that count; the same ones where all do."""
        chosen = {key: properties[key] for key in self._keys if key in properties}
        return chosen or properties

    def _add_properties(self, properties: Mapping[str, GraphValue], path: str, found: Parts) -> None:
        for key, value in sorted(properties.items()):
            name = key if key.isascii() else in_nfc(key)
            self._add(value, f"{path}/{name.translate(_ESCAPES)}", found)

    def _add_list(self, items: list[GraphValue], path: str, found: Parts) -> None:
        if self._counting.lists_are_durations and _may_be_duration(items):
            months, days, seconds, nanoseconds = items
            self._add(duration_text(months, days, seconds, nanoseconds), path, found)
            return
        if is_chain(items):
            if len(items) == 3 and (self._counting.chains_are_relationships or _has_unknown_ends(items)):
                self._add_relationship(Relationship(items[1], None), path, found)
                return
            if "parts" in self._counting.lacking:
                self._add_path(Path((items[0], items[-1]), len(items) // 2), path, found)
                return
        self._mark(f"list {len(items)}", path, found)
        if self._counting.rules.list_order or is_chain(items):
            leaves_out = is_chain(items) and "type" in self._counting.lacking
            if are_plain_numbers(items):
                self._add_numbers(items, path, found)
                return
            for at, (place, item) in enumerate(zip(self._places(path, len(items)), items, strict=False)):
                if not (leaves_out and at % 2):
                    self._add(item, place, found)
            return
        in_order = sorted(map(self.parts, items), key=_order)
        for at, parts in enumerate(in_order):
            for inner, part in pairs_of(parts):
                found += (f"{path}/{at}{inner}", part)

    def _add_relationship(self, value: Relationship, path: str, found: Parts) -> None:
        lacking = self._counting.lacking
        properties = value.properties or {}
        chosen = properties if "properties" in lacking else self._chosen(properties)
        is_chosen = chosen is not properties
        has_ends = value.ends is not None and "ends" not in lacking and not is_chosen
        self._mark("list 3" if has_ends and not self._counting.entities else "relationship", path, found)
        start, end = value.ends if value.ends is not None and has_ends else (None, None)
        self._add(start, f"{path}/0", found)
        self._add_type(value, chosen, is_chosen, f"{path}/1", found)
        self._add(end, f"{path}/2", found)

    def _add_type(
        self, value: Relationship, chosen: Mapping[str, GraphValue], is_chosen: bool, path: str, found: Parts
    ) -> None:
        if "type" not in self._counting.lacking and not is_chosen:
            self._add(value.type, path, found)
        if "properties" not in self._counting.lacking:
            self._add_properties(chosen, path, found)

    def _add_path(self, value: Path, path: str, found: Parts) -> None:
        if "parts" in self._counting.lacking:
            self._mark(f"path {value.length}", path, found)
            self._add(value.parts[0], f"{path}/0", found)
            self._add(value.parts[-1], f"{path}/1", found)
            return
        self._mark(f"{'path' if self._counting.entities else 'list'} {len(value.parts)}", path, found)
        for at, part in enumerate(value.parts):
            if isinstance(part, Relationship):
                properties = part.properties or {}
                chosen = properties if "properties" in self._counting.lacking else self._chosen(properties)
                self._add_type(part, chosen, chosen is not properties, f"{path}/{at}", found)
            else:
                self._add(part, f"{path}/{at}", found)


def pairs_of(parts: Parts) -> Iterator[tuple[str, str | Term]]:
    """Return the places and the parts of a value.

    Example:
        >>> list(pairs_of(["#", "list 1", "/0", "Oslo"]))
        [('#', 'list 1'), ('/0', 'Oslo')]
    """
    return zip(cast("list[str]", parts[::2]), parts[1::2], strict=True)


def are_plain_numbers(items: Sequence[GraphValue]) -> bool:
    """Return whether all elements are numbers that Python writes as JSON does."""
    kinds = set(map(type, items))
    if not kinds or not kinds <= _NUMBERS:
        return False
    return min(items) > -_LARGEST and max(items) < _LARGEST and (float not in kinds or all(map(math.isfinite, items)))


_NUMBERS: Final = frozenset({int, float})
_LARGEST: Final = 10**300


def _order(parts: Parts) -> list[tuple[str, bool, float, str]]:
    """Return what brings the elements of a list into an order of their own, numbers by value."""
    return [(place, *_order_of(part)) for place, part in pairs_of(parts)]


def _order_of(part: str | Term) -> tuple[bool, float, str]:
    if isinstance(part, Term):
        return True, 0.0, part.text
    number = number_from(part, None)
    if number is None or isinstance(number[0], str):
        return True, 0.0, part
    try:
        return False, float(number[0]), ""
    except OverflowError:
        return False, math.inf if number[0] > 0 else -math.inf, part


def scalar_of(value: GraphValue) -> str | Term | Point:
    """Return a scalar as it is compared in a cell of its own: a text may be a point, a time or a duration.

    Example:
        >>> scalar_of(2.0), scalar_of("2020-01-01 00:00")
        ('2.0', '2020-01-01T00:00:00')
    """
    if isinstance(value, Term):
        return value
    if isinstance(value, str):
        found = scalar_of_text(value)
        return value if found is None else found.text if isinstance(found, Term) and found.shape == _LITERAL else found
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, Decimal):
        return str(value)
    number = json_number(value)
    return Term(number.replace("Infinity", "INF"), _DOUBLE) if isinstance(number, str) else repr(number)


_TRUE: Final = Term("true", _BOOLEAN)
_FALSE: Final = Term("false", _BOOLEAN)


def scalar_of_text(text: str) -> Term | Point | None:
    """Return the time, duration or point that a text writes; None where it writes none."""
    found = canonical_text(text)
    if found is not None:
        return Term(*found)
    return point_of_text(text)
