"""Relevant ids and retrieved ids, in a form in which they compare, ready for any number of comparisons."""

import re
from functools import cached_property
from itertools import chain, islice
from operator import itemgetter
from typing import cast

from graphrag_eval_lc.metrics.ranked_hits import ranked_hits
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
    text = str(identifier)
    iri = _IRI_IN_BRACKETS.fullmatch(text) if text.startswith("<") else None
    return iri[1] if iri else text


class WantedIds:
    """The relevant ids of a reference step.

    Attributes:
        ids: The ids as they are given.
        known: All that are relevant.
        kinds: Whether these are texts: True, False or both.
    """

    def __init__(self, ids: RelevantIds) -> None:
        self.ids = ids
        self.known: frozenset[Id] = frozenset(chain.from_iterable(alternatives(ids)))
        self.kinds = {isinstance(each, str) for each in self.known}

    @cached_property
    def texts(self) -> "WantedIds":
        """The same as texts; of an id that is there as a number and as a text, the higher gain counts."""
        ids = self.ids
        if isinstance(ids, dict):
            return WantedIds({id_text(each): gain for each, gain in sorted(ids.items(), key=itemgetter(1))})
        texts = [list(map(id_text, each)) if isinstance(each, list) else id_text(each) for each in ids]
        return WantedIds(cast("RelevantIds", texts))

    @cached_property
    def _groups(self) -> list[frozenset[Id]] | None:
        """The groups of ids of which one will do; None where each id is relevant of itself."""
        ranked_hits(self.ids, ())  # refuses what no ranking can be measured with
        is_grouped = isinstance(self.ids, list) and isinstance(self.ids[0], list)
        return [frozenset(group) for group in alternatives(self.ids)] if is_grouped else None

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
    """The ids that an actual step retrieved.

    Attributes:
        ids: The ids by rank.
        kinds: Whether they are texts: True, False or both; neither where nothing was retrieved.
    """

    def __init__(self, ids: list[Id]) -> None:
        self.ids = ids
        self.kinds = {isinstance(each, str) for each in ids}
        self._tops: dict[int | None, frozenset[Id]] = {}

    @cached_property
    def texts(self) -> "FoundIds":
        """The same as texts."""
        return FoundIds([id_text(each) for each in self.ids])

    def top(self, k: int | None) -> frozenset[Id]:
        """Return the first k distinct ids, or all."""
        if k not in self._tops:
            self._tops[k] = frozenset(islice(dict.fromkeys(self.ids), k))
        return self._tops[k]


def in_one_form(wanted: WantedIds, found: FoundIds) -> tuple[WantedIds, FoundIds]:
    """Return all ids as texts where some are texts and others numbers; else as they are.

    The keys of a JSON object, such as gains, are always texts; and tools may write a number as a text.

    Example:
        >>> wanted, found = in_one_form(WantedIds({"1": 3.0}), FoundIds([2, 1]))
        >>> wanted.ids, found.ids
        ({'1': 3.0}, ['2', '1'])
    """
    return (wanted.texts, found.texts) if len(wanted.kinds | found.kinds) > 1 else (wanted, found)
