"""Relevant ids and retrieved ids, in a form in which they compare, ready for any number of comparisons."""

import re
from collections.abc import Iterable
from itertools import chain, islice
from operator import itemgetter
from typing import cast

from graphrag_eval_lc.records import Id, RelevantIds

_IRI_IN_BRACKETS = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*)>")


def alternatives(relevant: RelevantIds) -> list[list[Id]]:
    """Return the groups of ids of which one will do; an id that is relevant of itself is a group of its own.

    Example:
        >>> alternatives({"doc-1": 2, "doc-2": 0}), alternatives(["doc-1", "doc-1"])
        ([['doc-1']], [['doc-1']])
    """
    if isinstance(relevant, dict):
        return [[identifier] for identifier, gain in relevant.items() if gain > 0]
    groups = [entry for entry in relevant if isinstance(entry, list)]
    return groups or [[identifier] for identifier in dict.fromkeys(cast("list[Id]", relevant))]


def id_text(identifier: Id) -> str:
    """Return an id as a text: a whole number without decimals, and an IRI without its angle brackets.

    Example:
        >>> id_text(1.0), id_text("<urn:1>"), id_text("01")
        ('1', 'urn:1', '01')
    """
    if isinstance(identifier, float) and identifier.is_integer():
        return str(int(identifier))
    text = identifier if isinstance(identifier, str) else str(identifier)
    iri = _IRI_IN_BRACKETS.fullmatch(text) if text.startswith("<") else None
    return iri[1] if iri else text


class WantedIds:
    """The relevant ids of a reference step.

    Ids compare as texts: the keys of a JSON object, such as gains, are always texts, and so are cells of SPARQL
    results; and tools may write a number as a text.

    Attributes:
        given: The ids as they are given.
        ids: The same as texts.
        known: All that are relevant.

    Example:
        >>> wanted = WantedIds({"1": 3.0, 2: 1.0})
        >>> wanted.ids, wanted.recall_at_k(FoundIds([3, 1]), None)
        ({'2': 1.0, '1': 3.0}, 0.5)
    """

    def __init__(self, given: RelevantIds) -> None:
        self.given = given
        self.ids = _as_texts(given)
        groups = alternatives(self.ids)
        self.known = frozenset(chain.from_iterable(groups))
        is_grouped = any(len(group) > 1 for group in groups) or len(groups) != len(self.known)
        self._groups = [frozenset(group) for group in groups] if is_grouped else None

    def recall_at_k(self, found: "FoundIds", k: int | None) -> float:
        """Return what ``metrics.recall_at_k`` does, from sets that are made once."""
        top, groups = found.top(k), self._groups
        if groups is None:
            number, held = len(self.known), len(self.known & top)
        else:
            number, held = len(groups), sum(not top.isdisjoint(group) for group in groups)
        most = number if k is None else min(k, number)
        return min(held, most) / most


class FoundIds:
    """The ids that an actual step retrieved, as texts, by rank."""

    def __init__(self, ids: Iterable[Id]) -> None:
        self.ids = list(map(id_text, ids))
        self._tops: dict[int | None, frozenset[str]] = {}

    def top(self, k: int | None) -> frozenset[str]:
        """Return the first k distinct ids, or all."""
        if k not in self._tops:
            self._tops[k] = frozenset(islice(dict.fromkeys(self.ids), k))
        return self._tops[k]


def _as_texts(relevant: RelevantIds) -> RelevantIds:
    if isinstance(relevant, dict):  # of an id that is there as a number and as a text, the higher gain counts
        return {id_text(each): gain for each, gain in sorted(relevant.items(), key=itemgetter(1))}
    texts = [list(map(id_text, each)) if isinstance(each, list) else id_text(each) for each in relevant]
    return cast("RelevantIds", texts)
