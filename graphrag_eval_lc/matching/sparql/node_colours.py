"""Blank nodes of two tables as one graph, and colours that tell its nodes apart."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator
from typing import NamedTuple

from graphrag_eval_lc.matching.sparql.budget import Budget
from graphrag_eval_lc.matching.sparql.rows import Row


class Edge(NamedTuple):
    """A row that holds blank nodes.

    Attributes:
        pattern: Stands for all that the row has but its blank nodes, and for how often it occurs.
        nodes: The blank nodes, in the order of their columns.
    """

    pattern: int
    nodes: tuple[int, ...]


class Graph:
    """The blank nodes of both sides, joined by the rows that they share.

    Args:
        budget: Counts the rows that are looked at.

    Attributes:
        nodes: The nodes of the reference and of the actual side.
        edges_of: The edges of each node.
        label_of: The detailed code of each node, unique on its side only.
        colours: The colour of each node; equal nodes of both sides have the same.
    """

    def __init__(self, budget: Budget) -> None:
        self.nodes: tuple[list[int], list[int]] = ([], [])
        self.edges_of: list[list[Edge]] = []
        self.label_of: list[int] = []
        self.colours: list[int] = []
        self._budget = budget
        self._number_of: dict[tuple[int, int], int] = {}
        self._patterns: dict[tuple[Row, int], int] = {}

    def add(self, row: Row, times: int, side: int) -> Edge:
        """Add a coarse row, in which blank nodes are the negative codes, to a side (0 or 1)."""
        skeleton = tuple(-1 if code < 0 else code for code in row)
        pattern = self._patterns.setdefault((skeleton, times), len(self._patterns))
        edge = Edge(pattern, tuple(self._node(code, side) for code in row if code < 0))
        for node in dict.fromkeys(edge.nodes):
            self.edges_of[node].append(edge)
        return edge

    def _node(self, label: int, side: int) -> int:
        node = self._number_of.setdefault((label, side), len(self.label_of))
        if node == len(self.label_of):
            self.label_of.append(label)
            self.edges_of.append([])
            self.colours.append(0)
            self.nodes[side].append(node)
        return node

    def refine_colours(self) -> None:
        """Colour nodes by their edges and the colours of their neighbours, until nothing changes.

        Raises:
            SearchCutOff: Where the budget is used up.
        """
        sizes = Counter(self.colours)
        changed: Collection[int] = range(len(self.colours))
        while changed:
            by_colour: defaultdict[int, defaultdict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
            for node in changed:
                by_colour[self.colours[node]][self._signature(node)].append(node)
            recoloured: list[int] = []
            for colour, parts in by_colour.items():
                recoloured += self._split(colour, list(parts.values()), sizes)
            changed = self._neighbours(recoloured)

    def _signature(self, node: int) -> Hashable:
        edges = self.edges_of[node]
        self._budget.spend(len(edges))
        colours = self.colours
        return tuple(
            sorted(
                (
                    pattern,
                    tuple(other == node for other in nodes),
                    tuple(colours[other] for other in nodes),
                )
                for pattern, nodes in edges
            )
        )

    def _split(self, colour: int, parts: list[list[int]], sizes: Counter[int]) -> list[int]:
        """Give new colours to all parts but one: the nodes that no part holds, or else the largest part."""
        parts.sort(key=len)
        if sizes[colour] == sum(map(len, parts)):
            parts.pop()
        recoloured: list[int] = []
        for part in parts:
            fresh = len(sizes)
            sizes[fresh] = len(part)
            sizes[colour] -= len(part)
            for node in part:
                self.colours[node] = fresh
            recoloured += part
        return recoloured

    def _neighbours(self, nodes: list[int]) -> list[int]:
        self._budget.spend(len(nodes))
        return list(
            dict.fromkeys(
                other for node in nodes for edge in self.edges_of[node] for other in edge.nodes if other != node
            )
        )

    def groups(self, side: int, fixed: Collection[int]) -> Iterator[list[int]]:
        """Give the nodes of a side that are not fixed, in groups that share no row."""
        seen = set(fixed)
        for start in self.nodes[side]:
            if start in seen:
                continue
            seen.add(start)
            group = [start]
            for node in group:  # grows while it is walked
                for edge in self.edges_of[node]:
                    new = [other for other in dict.fromkeys(edge.nodes) if other not in seen]
                    seen.update(new)
                    group += new
            yield group

    def walk(self, group: list[int]) -> tuple[list[int], list[Edge]]:
        """Give the nodes of a group in an order in which each shares a row with an earlier one.

        Returns:
            The nodes, and for each of them that row (for the first one, any of its rows).
        """
        members = set(group)
        order = [group[0]]
        anchors = [self.edges_of[group[0]][0]]
        members.discard(group[0])
        for node in order:  # grows while it is walked
            for edge in self.edges_of[node]:
                for other in edge.nodes:
                    if other in members:
                        members.discard(other)
                        order.append(other)
                        anchors.append(edge)
        return order, anchors
