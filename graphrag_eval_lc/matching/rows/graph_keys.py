"""What both sides of a comparison say about values of property graphs, and one key for each value.

Equal keys are equal values, whatever store or driver wrote them. What one side's form does not say, such as the labels
of nodes, counts for neither.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple
from unicodedata import normalize

from graphrag_eval_lc.json_values import json_number
from graphrag_eval_lc.matching.rows.graph_values import (
    GraphValue,
    Node,
    Path,
    Point,
    Relationship,
    duration_term,
    scalar_of_text,
)
from graphrag_eval_lc.matching.rows.results import Shape, Term, Triple

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_LITERAL: Final[Shape] = ("literal", None, None)
_BY_VALUE: Final = {_XSD + name for name in ("date", "dateTime", "dayTimeDuration", "decimal", "time")}
"""The types of times and decimals, which most forms write without a type."""


class GraphRules(NamedTuple):
    """How values of a property graph are compared.

    Attributes:
        node_keys: The properties that identify a node or relationship; empty for labels (type) and all properties.
        list_order: Whether the order of a list's elements counts.
    """

    node_keys: tuple[str, ...] = ()
    list_order: bool = True


class Told(NamedTuple):
    """What the values of both sides say, and so what counts.

    Attributes:
        labels: Whether labels count, and a node differs from a map.
        entities: Whether a relationship or path differs from a list.
        lacking: What does not count of relationships, paths and points: type, properties, ends, parts, srid.
        chains_are_relationships: Whether lists of a map, a text and a map are relationships, of which the type counts.
        lists_are_durations: Whether lists of four integers are durations.
    """

    labels: bool = True
    entities: bool = True
    lacking: frozenset[str] = frozenset()
    chains_are_relationships: bool = False
    lists_are_durations: bool = False


def told_by(reference: Iterable[GraphValue], actual: Iterable[GraphValue]) -> Told:
    """Return what both sides of a comparison say in their values.

    Example:
        >>> node = Node(("City",), {"name": "Oslo"})
        >>> told_by([node], [node]).labels, told_by([node], [{"name": "Oslo"}]).labels
        (True, False)
    """
    one, other = _facts(reference), _facts(actual)
    both, either = one & other, one | other
    lacking = {fact.removeprefix("no ") for fact in either if fact.startswith("no ")}
    lacking |= set() if "points" in both else {"srid"}
    a_list, a_duration = "lists of four", "durations"
    return Told(
        labels="nodes" in both,
        entities="entities" in both and "chains" not in either,
        lacking=frozenset(lacking),
        chains_are_relationships="ends" in lacking and "relationships" in either and "paths" not in either,
        lists_are_durations=any(
            a_list in mine and a_duration in theirs - mine for mine, theirs in ((one, other), (other, one))
        ),
    )


def _facts(values: Iterable[GraphValue]) -> set[str]:
    """Return what the values of one side say, and what they fail to say."""
    facts: set[str] = set()
    left: list[tuple[GraphValue, bool]] = [(value, False) for value in values]
    while left:
        value, is_in_path = left.pop()
        inner: Iterable[GraphValue] = ()
        match value:
            case str() if value[:1] in ("P", "-") or " day" in value:
                found = scalar_of_text(value)
                facts |= {"durations"} if isinstance(found, Term) and "P" in found.text else set()
            case Term(shape=(_, str(datatype), _)) if datatype.lower().endswith("duration"):
                facts.add("durations")
            case dict():
                inner = value.values()
            case list():
                inner = value
                facts |= {"lists of four"} if _may_be_duration(value) else set()
                if _is_chain(value):
                    facts |= {"chains", "no properties"} | ({"no ends"} if _has_unknown_ends(value) else set())
            case Node(properties=properties):
                facts |= {"nodes", "entities"}
                inner = properties.values()
            case Relationship(type=name, properties=properties, ends=ends):
                facts |= {"relationships", "entities"}
                known = {"no type": name, "no properties": properties, "no ends": () if is_in_path else ends}
                facts |= {fact for fact, each in known.items() if each is None}
                inner = (*(properties or {}).values(), *(ends or ()))
            case Path(parts=parts):
                facts |= {"paths", "entities"} | (set() if value.is_whole else {"no parts"})
                left += ((part, True) for part in parts)
            case Point(srid=srid):
                facts |= {"points"} | ({"no srid"} if srid is None else set())
        left += ((each, False) for each in inner if type(each) not in (int, float, bool))
    return facts


def _may_be_duration(items: Sequence[GraphValue]) -> bool:
    return len(items) == 4 and all(type(item) is int for item in items)


def _is_chain(items: Sequence[GraphValue]) -> bool:
    """Return whether a list is one of maps and texts in turns, as ``data()`` of Neo4j's driver writes a path."""
    if len(items) < 3 or len(items) % 2 == 0 or not isinstance(items[1], str):
        return False
    return all(isinstance(item, str if at % 2 else dict) for at, item in enumerate(items))


def _has_unknown_ends(items: Sequence[GraphValue]) -> bool:
    return len(items) == 3 and not items[0] and not items[2]


def key_of(
    value: GraphValue, told: Told, rules: GraphRules, key_of_term: Callable[[Term | Triple], Hashable]
) -> Hashable:
    """Return the key of a value: values that are equal as far as both sides say have equal keys.

    Args:
        value: The value.
        told: What the forms of both sides say.
        rules: How values are compared.
        key_of_term: Returns the key of a scalar; numbers and texts come as literals without a type.

    Example:
        >>> node = Node(("City",), {"name": "Oslo"})
        >>> told = told_by([node], [{"name": "Oslo"}])
        >>> key_of(node, told, GraphRules(), str) == key_of({"name": "Oslo"}, told, GraphRules(), str)
        True
    """
    return _Keys(told, rules, key_of_term).key(value)


class _Keys:
    def __init__(self, told: Told, rules: GraphRules, key_of_term: Callable[[Term | Triple], Hashable]) -> None:
        self._told = told
        self._rules = rules
        self._key_of_term = key_of_term

    def key(self, value: GraphValue) -> Hashable:
        told = self._told
        match value:
            case Term(text=text, shape=(_, datatype, _)):  # times and decimals inside values rarely have a type
                return self._scalar(text) if datatype in _BY_VALUE else self._key_of_term(value)
            case Triple():
                return ("triple", *map(self._key_of_term, value))
            case dict():
                return "map", self._map(value if told.labels else self._chosen(value)[0])
            case list():
                return self._list(value)
            case Node(labels=labels, properties=properties):
                chosen, is_chosen = self._chosen(properties)
                if not told.labels:
                    return "map", self._map(chosen)
                return "node", None if is_chosen else labels, self._map(chosen)
            case Relationship(ends=ends):
                middle, is_chosen = self._middle(value)
                if ends is None or is_chosen or "ends" in told.lacking:
                    return "relationship", middle
                return "relationship" if told.entities else "list", (self.key(ends[0]), middle, self.key(ends[1]))
            case Path(parts=parts, length=length):
                return self._path(parts, length)
            case Point(srid=srid, coordinates=coordinates):
                if "srid" in told.lacking:
                    return self._list(list(coordinates))
                return "point", srid, tuple(map(self.key, coordinates))
        return self._scalar(value)

    def _path(self, parts: Sequence[GraphValue], length: int) -> Hashable:
        if "parts" in self._told.lacking:
            return "path", length, self.key(parts[0]), self.key(parts[-1])
        keys = (self._middle(part)[0] if isinstance(part, Relationship) else self.key(part) for part in parts)
        return "path" if self._told.entities else "list", tuple(keys)

    def _middle(self, value: Relationship) -> tuple[Hashable, bool]:
        """Return the key of a relationship without its ends, and whether it is that of chosen properties."""
        lacking = self._told.lacking
        properties: dict[str, GraphValue] = {} if "properties" in lacking else value.properties or {}
        chosen, is_chosen = self._chosen(properties)
        has_type = "type" not in lacking and not is_chosen
        return (self.key(value.type) if has_type else None, self._map(chosen)), is_chosen

    def _chosen(self, properties: dict[str, GraphValue]) -> tuple[dict[str, GraphValue], bool]:
        """Return the properties that count, and whether they are those that were chosen for all nodes."""
        chosen = {key: properties[key] for key in self._rules.node_keys if key in properties}
        return (chosen, True) if chosen else (properties, False)

    def _map(self, properties: Mapping[str, GraphValue]) -> Hashable:
        return frozenset(
            (normalize("NFC", name), self.key(value)) for name, value in properties.items() if value is not None
        )

    def _list(self, items: list[GraphValue]) -> Hashable:
        told = self._told
        if told.lists_are_durations and _may_be_duration(items):
            months, days, seconds, nanoseconds = items
            return self.key(duration_term(months, (days * 86_400 + seconds) * 10**9 + nanoseconds))
        if _is_chain(items):
            parts = [Relationship(item, None) if at % 2 else item for at, item in enumerate(items)]
            if len(items) == 3 and (told.chains_are_relationships or _has_unknown_ends(items)):
                return self.key(parts[1])
            return self._path(parts, len(items) // 2)
        keys = tuple(map(self.key, items))
        return "list", keys if self._rules.list_order else frozenset(Counter(keys).items())

    def _scalar(self, value: GraphValue) -> Hashable:
        if value is None:
            return None
        if isinstance(value, str):
            found = scalar_of_text(value)
            return self._key_of_term(Term(value, _LITERAL)) if found is None else self.key(found)
        if isinstance(value, bool):
            return self._key_of_term(Term("true" if value else "false", ("literal", f"{_XSD}boolean", None)))
        number = value if isinstance(value, Decimal) else json_number(value)
        if isinstance(number, str):
            return self._key_of_term(Term(number.replace("Infinity", "INF"), ("literal", f"{_XSD}double", None)))
        return self._key_of_term(Term(str(number), _LITERAL))
