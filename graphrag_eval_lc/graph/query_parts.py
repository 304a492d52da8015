"""Describe in words which parts of a SQL or Cypher query differ from those of the reference query."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from graphrag_eval_lc.graph.query_difference import Difference, DifferenceKind
from graphrag_eval_lc.graph.query_forms import TooLargeQueryError

Part: TypeAlias = Literal[
    "form",
    "table",
    "label",
    "relationship type",
    "relationship",
    "column",
    "property",
    "value",
    "aggregate",
    "condition",
    "join",
    "group",
    "order",
    "limit",
    "distinct",
]
Parts: TypeAlias = Mapping[Part, Sequence[str]]
"""The texts of each part, in the order of the query."""
IsPair: TypeAlias = Callable[[Part, str, str], bool]
"""Whether a text of the reference query and one of the query do the same thing in two ways."""

_KINDS: Mapping[Part, DifferenceKind] = {
    "form": "form",
    "table": "class",
    "label": "class",
    "relationship type": "property",
    "relationship": "direction",
    "property": "property",
    "value": "value",
    "aggregate": "aggregate",
    "column": "columns",
    "condition": "filter",
    "join": "group",
    "group": "aggregate",
    "order": "order",
    "limit": "limit",
    "distinct": "distinct",
}
_VERBS: Mapping[Part, tuple[str, str, str]] = {
    "form": ("uses", "lacks", "adds"),
    "relationship": ("has", "lacks", "also has"),
    "column": ("returns", "does not return", "also returns"),
    "condition": ("filters by", "does not filter by", "also filters by"),
    "join": ("has", "lacks", "has"),
    "group": ("groups by", "does not group by", "groups by"),
    "aggregate": ("computes", "does not compute", "also computes"),
    "order": ("sorts by", "does not sort by", "sorts by"),
    "limit": ("has", "lacks", "has"),
    "distinct": ("has", "lacks", "adds"),
}
"""Verbs for what a query does instead, does not do, and does in addition."""
_MOST_CHARACTERS = 20_000
_MOST_NESTED = 30


def part_differences(
    wanted: Parts,
    given: Parts,
    is_pair: IsPair,
    shown: tuple[Callable[[str], str], Callable[[str], str]] = (str, str),
) -> Iterator[Difference]:
    """Yield what is only in one of two queries; if one part replaces another, both are in one difference.

    Args:
        wanted: The parts of the reference query.
        given: The parts of the query.
        is_pair: Decides which text replaces which.
        shown: Formats a text of the reference query, and one of the query.
    """
    for part, kind in _KINDS.items():
        missing, extra = (
            _only_in(wanted.get(part, ()), given.get(part, ())),
            _only_in(given.get(part, ()), wanted.get(part, ())),
        )
        does, does_not, does_too = _VERBS.get(
            part, (f"uses the {part}", f"does not use the {part}", f"also uses the {part}")
        )
        is_only = len(missing) == len(extra) == 1 and part not in ("condition", "relationship")
        for old in list(missing):
            new = next((each for each in extra if is_only or is_pair(part, old, each)), None)
            if new is not None:
                missing.remove(old)
                extra.remove(new)
                expected, found = shown[0](old), shown[1](new)
                yield Difference(kind, f"{does} {found} instead of {expected}", expected, found)
        for expected in map(shown[0], missing):
            yield Difference("missing_filter" if kind == "filter" else kind, f"{does_not} {expected}", expected)
        for found in map(shown[1], extra):
            yield Difference("extra_filter" if kind == "filter" else kind, f"{does_too} {found}", None, found)


def refuse_too_large(*queries: str) -> None:
    """Refuse queries whose parsing could take long or exceed Python's recursion limit.

    Raises:
        TooLargeQueryError: One of them is too large.
    """
    for query in queries:
        depth = deepest = 0
        for bracket in re.findall(r"[()]", query):
            depth += 1 if bracket == "(" else -1
            deepest = max(deepest, depth)
        if len(query) > _MOST_CHARACTERS or deepest > _MOST_NESTED:
            raise TooLargeQueryError("it is too large to be compared")


def _only_in(texts: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the texts that ``others`` lacks, or has less often."""
    left = list(others)
    only = []
    for each in texts:
        if each in left:
            left.remove(each)
        else:
            only.append(each)
    return only
