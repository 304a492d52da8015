"""Equality of rows up to one renaming of the blank nodes.

Blank nodes are coloured by the rows that they stand in and by the colours of the other blank nodes there, until the
colours settle. Nodes of a colour of their own are paired at once. The rest falls apart into groups of nodes that share
rows; whether two groups of the same colours can be paired is found by backtracking.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import Budget, DetailedCodes, Row, RowsAs
from graphrag_eval_lc.matching.rows.row_pairing import can_be_paired, row_groups_agree


class Edge(NamedTuple):
    """A row that holds blank nodes.

    Attributes:
        pattern: A number for the row without its blank nodes and for how often it occurs.
        nodes: The blank nodes, in the order of their columns.
    """

    pattern: int
    nodes: tuple[int, ...]


_STEPS_OF_A_ROW: Final = 10
"""Putting a row into a graph takes about as long as looking at so many."""

Renaming: TypeAlias = dict[int, int]
"""Reference nodes to actual nodes."""


def rows_agree_in_detail(
    reference: Iterable[Row], actual: Iterable[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
) -> bool:
    """Return whether detailed rows agree, as a set or a bag, whose coarse rows are known to agree.

    Raises:
        SearchCutOff: Where the budget is used up.
    """
    mine, others = list(reference), list(actual)
    budget.spend(_STEPS_OF_A_ROW * (len(mine) + len(others)))
    plain = [row for row in mine if min(row) >= 0]
    other_plain = [row for row in others if min(row) >= 0]
    if not row_groups_agree(plain, other_plain, rows_as, codes, budget):
        return False
    if len(plain) == len(mine):
        return True
    return _Search(
        [row for row in mine if min(row) < 0], [row for row in others if min(row) < 0], rows_as, codes, budget
    ).finds_renaming()


class _Search:
    def __init__(
        self, mine: list[Row], others: list[Row], rows_as: RowsAs, codes: DetailedCodes, budget: Budget
    ) -> None:
        self.rows_as = rows_as
        self.codes = codes
        self.budget = budget
        self.is_exact = not any(map(codes.is_inexact_row, mine)) and not any(map(codes.is_inexact_row, others))
        self.graph = Graph(budget)
        self.mine = self._add(mine, 0)
        self.others = self._add(others, 1)
        self.other_edges = set(self.others)
        self.edges_at: defaultdict[tuple[int, int, int], list[Edge]] | None = None

    def _add(self, rows: list[Row], side: int) -> dict[Edge, list[Row]]:
        """Add one side's rows to the graph, with one edge for rows that differ in inexact cells only."""
        coarse: defaultdict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            coarse[self.codes.coarse_row(row)].append(row)
        return {
            self.graph.add(row, len(detailed) if self.rows_as == "bag" else 1, side): detailed
            for row, detailed in coarse.items()
        }

    def finds_renaming(self) -> bool:
        """Return whether some renaming makes the rows agree."""
        graph = self.graph
        if len(self.mine) != len(self.others) or len(graph.nodes[0]) != len(graph.nodes[1]):
            return False
        graph.refine_colours()
        colours = graph.colours
        if Counter(colours[node] for node in graph.nodes[0]) != Counter(colours[node] for node in graph.nodes[1]):
            return False
        fixed = self._nodes_of_own_colour()
        if not self._fits([edge for edge in self.mine if all(node in fixed for node in edge.nodes)], fixed):
            return False
        alike: defaultdict[tuple[int, ...], list[list[int]]] = defaultdict(list)
        for group in graph.groups(1, set(fixed.values())):
            alike[self._colours_of(group)].append(group)
        groups: defaultdict[tuple[int, ...], list[list[int]]] = defaultdict(list)
        for group in graph.groups(0, set(fixed)):
            groups[self._colours_of(group)].append(group)
        return all(self._can_be_paired(mine, alike.get(colour, []), fixed) for colour, mine in groups.items())

    def _nodes_of_own_colour(self) -> Renaming:
        mine, others = self.graph.nodes
        members: defaultdict[int, list[int]] = defaultdict(list)
        for node in (*mine, *others):
            members[self.graph.colours[node]].append(node)
        return {nodes[0]: nodes[1] for nodes in members.values() if len(nodes) == 2}

    def _colours_of(self, group: list[int]) -> tuple[int, ...]:
        return tuple(sorted(self.graph.colours[node] for node in group))

    def _can_be_paired(self, mine: list[list[int]], others: list[list[int]], fixed: Renaming) -> bool:
        if len(mine) != len(others):
            return False
        if not self.is_exact:
            partners = [
                [at for at, other in enumerate(others) if self._are_alike(group, other, fixed)] for group in mine
            ]
            return can_be_paired(partners, self.budget)
        free = list(reversed(others))
        for group in mine:  # alike is transitive here: the first one that is alike will do
            for at in range(len(free) - 1, -1, -1):
                if self._are_alike(group, free[at], fixed):
                    del free[at]
                    break
            else:
                return False
        return True

    def _are_alike(self, group: list[int], other: list[int], fixed: Renaming) -> bool:
        """Return whether some renaming of one group's nodes to the other's makes their rows agree."""
        edges = list(dict.fromkeys(edge for node in group for edge in self.graph.edges_of[node]))
        return any(
            self.is_exact or self._fits(edges, renaming | fixed) for renaming in self._renamings(group, other, fixed)
        )

    def _fits(self, edges: list[Edge], renaming: Renaming) -> bool:
        """Return whether the rows of these edges, renamed, agree in every detail with rows of the other side."""
        mine: list[Row] = []
        others: list[Row] = []
        back = {self.graph.label_of[other]: self.graph.label_of[node] for node, other in renaming.items()}
        for edge in edges:
            renamed = Edge(edge.pattern, tuple(renaming[node] for node in edge.nodes))
            if renamed not in self.others:
                return False
            if not self.is_exact:
                mine += self.mine[edge]
                others += (tuple(back.get(code, code) for code in row) for row in self.others[renamed])
        return self.is_exact or row_groups_agree(mine, others, self.rows_as, self.codes, self.budget)

    def _renamings(self, group: list[int], other: list[int], fixed: Renaming) -> Iterator[Renaming]:
        """Yield the renamings of a group's nodes that turn its edges into edges of the other side."""
        order, anchors = self.graph.walk(group)
        renaming: Renaming = {}
        used: set[int] = set()
        first = [node for node in other if self.graph.colours[node] == self.graph.colours[order[0]]]
        waiting: list[Iterator[int]] = [iter(first)]
        while waiting:
            depth = len(waiting) - 1
            node = order[depth]
            if node in renaming:
                used.discard(renaming.pop(node))
            image = next(waiting[-1], None)
            if image is None:
                waiting.pop()
                continue
            self.budget.spend(3)
            if image in used or self.graph.colours[image] != self.graph.colours[node]:
                continue
            renaming[node] = image
            used.add(image)
            if not self._keeps_edges(node, renaming, fixed):
                continue
            if depth + 1 == len(order):
                yield dict(renaming)
            else:
                waiting.append(self._images(anchors[depth + 1], order[depth + 1], renaming))

    def _keeps_edges(self, node: int, renaming: Renaming, fixed: Renaming) -> bool:
        edges = self.graph.edges_of[node]
        self.budget.spend(3 * len(edges))
        for edge in edges:
            images = [renaming.get(other, fixed.get(other)) for other in edge.nodes]
            if None not in images and Edge(edge.pattern, tuple(images)) not in self.other_edges:  # type: ignore[arg-type]
                return False
        return True

    def _images(self, anchor: Edge, node: int, renaming: Renaming) -> Iterator[int]:
        """Return the nodes that ``node`` may be renamed to, given an edge with a node that is renamed already."""
        if self.edges_at is None:
            self.edges_at = defaultdict(list)
            for edge in self.others:
                for position, other in enumerate(edge.nodes):
                    self.edges_at[edge.pattern, position, other].append(edge)
        at = next(position for position, other in enumerate(anchor.nodes) if other in renaming)
        own = anchor.nodes.index(node)
        edges = self.edges_at.get((anchor.pattern, at, renaming[anchor.nodes[at]]), [])
        self.budget.spend(len(edges))
        return iter(dict.fromkeys(edge.nodes[own] for edge in edges))


class Graph:
    """The blank nodes of both sides, joined by the rows that they share.

    Attributes:
        nodes: The nodes of the reference and of the actual side.
        edges_of: The edges of each node.
        label_of: The detailed code of each node, unique on its side only.
        colours: The colour of each node; nodes that are paired in the end have the same.
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
                (pattern, tuple(other == node for other in nodes), tuple(colours[other] for other in nodes))
                for pattern, nodes in edges
            )
        )

    def _split(self, colour: int, parts: list[list[int]], sizes: Counter[int]) -> list[int]:
        """Give new colours to all parts of a colour but one, and return their nodes.

        The nodes that no part holds keep the colour; without such nodes the largest part does.
        """
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
        """Yield the nodes of a side that are not fixed, in groups that share no row."""
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
        """Order the nodes of a group so that each shares an edge with an earlier one.

        Returns:
            The nodes, and for each of them that edge (for the first one, any of its edges).
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
