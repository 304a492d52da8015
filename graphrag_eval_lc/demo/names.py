"""Finding the IRI of a thing by its name, as a search box with completion does."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from graphrag_eval_lc.demo.graph import PREFIXES, NamedThing

_CLOSE_ENOUGH = 0.85


class NameHit(NamedTuple):
    """A thing whose name fits a search, and how well, from above 0 to 1 (the very name)."""

    thing: NamedThing
    rank: float


class NameIndex:
    """The names of a graph, safe to search from several threads.

    Args:
        things: The things to find.
    """

    def __init__(self, things: Iterable[NamedThing]) -> None:
        self._entries = [(thing, _tokens(thing.name)) for thing in things]

    def search(self, query: str, class_iri: str | None, limit: int) -> list[NameHit]:
        """Give the ``limit`` best hits, best first.

        Each word of the query must equal, begin or nearly equal a word of the name. Names with further words
        rank lower.
        """
        wanted = _tokens(query)
        hits = [
            NameHit(thing, rank)
            for thing, tokens in self._entries
            if class_iri in (None, thing.class_iri) and (rank := _rank(wanted, tokens)) > 0
        ]
        return sorted(hits, key=lambda hit: (-hit.rank, hit.thing.name, hit.thing.iri))[:limit]


def full_iri(class_name: str) -> str:
    """Give ``cim:Substation``, ``<https://…#Substation>`` or the bare IRI as the bare IRI."""
    prefix, _, local = class_name.partition(":")
    return PREFIXES[prefix] + local if prefix in PREFIXES else class_name.strip("<>")


def _tokens(name: str) -> list[str]:
    return re.findall(r"\w+", name.casefold())


def _rank(wanted: list[str], tokens: list[str]) -> float:
    if not wanted or not tokens:
        return 0.0
    closeness = [max(_closeness(word, token) for token in tokens) for word in wanted]
    if min(closeness) == 0:
        return 0.0
    return round(sum(closeness) / max(len(wanted), len(tokens)), 4)


def _closeness(word: str, token: str) -> float:
    if word == token:
        return 1.0
    if token.startswith(word):
        return 0.9 * len(word) / len(token)
    ratio = SequenceMatcher(None, word, token).ratio()
    return 0.8 * ratio if ratio >= _CLOSE_ENOUGH else 0.0
