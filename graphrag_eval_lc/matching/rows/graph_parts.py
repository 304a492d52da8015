"""The parts of a graph's value as terms by their places, as far as they count: equal values have equal parts."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

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

Parts: TypeAlias = list[tuple[str, Term]]
"""The terms of a value, each after its place."""

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
                    found.append((f"{path}#labels", Term(":".join(labels), _LITERAL)))
                self._add_properties(chosen, path, found)
            case Relationship():
                self._add_relationship(value, path, found)
            case Path():
                self._add_path(value, path, found)
            case Point(srid=srid, coordinates=coordinates):
                self._mark(f"list {len(coordinates)}", path, found)
                found += [(f"{path}/{at}", Term(repr(float(x)), _LITERAL)) for at, x in enumerate(coordinates)]
                if "srid" not in self._counting.lacking:
                    found.append((f"{path}#srid", Term(str(srid), _LITERAL)))
            case _:
                self._add_scalar(value, path, found)

    def _add_scalar(self, value: GraphValue, path: str, found: Parts) -> None:
        scalar = scalar_of(value)
        if isinstance(scalar, Term):
            found.append((path, scalar))
        else:
            self._add(scalar, path, found)

    def _mark(self, kind: str, path: str, found: Parts) -> None:
        found.append((f"{path}#", Term(kind, _LITERAL)))

    def _chosen(self, properties: dict[str, GraphValue]) -> dict[str, GraphValue]:
        """Return the properties that count; the same ones where all do."""
        chosen = {key: properties[key] for key in self._keys if key in properties}
        return chosen or properties

    def _add_properties(self, properties: Mapping[str, GraphValue], path: str, found: Parts) -> None:
        for key, value in properties.items():
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
            for at, item in enumerate(items):
                if not (leaves_out and at % 2):
                    self._add(item, f"{path}/{at}", found)
            return
        in_order = sorted(map(self.parts, items), key=_order)
        found += [(f"{path}/{at}{inner}", term) for at, parts in enumerate(in_order) for inner, term in parts]

    def _add_relationship(self, value: Relationship, path: str, found: Parts) -> None:
        lacking = self._counting.lacking
        properties = value.properties or {}
        chosen = properties if "properties" in lacking else self._chosen(properties)
        is_chosen = chosen is not properties
        has_ends = value.ends is not None and "ends" not in lacking and not is_chosen
        self._mark("list 3" if has_ends and not self._counting.entities else "relationship", path, found)
        self._add_type(value, chosen, is_chosen, f"{path}/1", found)
        if value.ends is not None and has_ends:
            self._add(value.ends[0], f"{path}/0", found)
            self._add(value.ends[1], f"{path}/2", found)

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


def _order(parts: Parts) -> list[tuple[str, bool, float, str]]:
    """Return what brings the elements of a list into an order of their own, numbers by value."""
    return [(path, *_order_of(term)) for path, term in sorted(parts)]


def _order_of(term: Term) -> tuple[bool, float, str]:
    number = number_from(term.text, None) if term.shape == _LITERAL else None
    if number is None or isinstance(number[0], str):
        return True, 0.0, term.text
    try:
        return False, float(number[0]), ""
    except OverflowError:
        return False, float("inf") if number[0] > 0 else float("-inf"), term.text


def scalar_of(value: GraphValue) -> Term | Point:
    """Return a scalar as the term that it is in a cell of its own; a text may be a point.

    Example:
        >>> scalar_of(True).text, scalar_of(2.0).text, scalar_of("2020-01-01 00:00").text
        ('true', '2.0', '2020-01-01T00:00:00')
    """
    if isinstance(value, Term):
        return value
    if isinstance(value, str):
        return scalar_of_text(value) or Term(value, _LITERAL)
    if isinstance(value, bool):
        return Term("true" if value else "false", _BOOLEAN)
    if isinstance(value, Decimal):
        return Term(str(value), _LITERAL)
    number = json_number(value)
    if isinstance(number, str):
        return Term(number.replace("Infinity", "INF"), _DOUBLE)
    return Term(repr(number), _LITERAL)


def scalar_of_text(text: str) -> Term | Point | None:
    """Return the time, duration or point that a text writes; None where it writes none."""
    found = canonical_text(text)
    if found is not None:
        return Term(*found)
    return point_of_text(text)
