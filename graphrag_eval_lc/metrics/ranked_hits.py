"""The ranks of relevant ids in a ranking, and each measure of them, for ids, gains by id and groups of ids.

An id may be anything hashable, also a tuple: ``[("a", "b")]`` is one id if tuples were retrieved, else a group of
two ids. Gains by id and groups as lists are never ambiguous.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, log2
from numbers import Real
from operator import index
from typing import Any, Literal, TypeAlias

Normalize = Literal["relevant", "retrieved_relevant"]
Relevant: TypeAlias = Iterable[Hashable] | Mapping[Any, float] | Iterable[Iterable[Hashable]]
"""Ids, gains by id, or groups of ids, any one of which is enough."""

_TEXT = (str, bytes, bytearray)
_COMPOUND = (tuple, frozenset)


@dataclass(slots=True)
class RankedHits:
    """The ranks of the relevant ids in a ranking of distinct ids, and each measure of them, as ``ranking`` defines it.

    Attributes:
        hits: The ranks of the relevant ids, from 1, ascending.
        number_retrieved: How many distinct ids were retrieved.
        number_relevant: How many distinct ids (or groups) are relevant, retrieved or not; at least 1.
        gains: With gains by id those of the hits, in their order, as shares of the highest.
        ideal_gains: Those of all relevant ids, descending.
        groups: With groups the ranks of each group's ids, ascending.
        number_of_group_ids: The sum of the groups' numbers of distinct ids.
    """

    hits: Sequence[int]
    number_retrieved: int
    number_relevant: int
    gains: Sequence[float] | None = None
    ideal_gains: Sequence[float] = ()
    groups: Sequence[Sequence[int]] | None = None
    number_of_group_ids: int = 0

    def precision(self, k: int | None) -> float:
        """Return the share of the top k, or of all retrieved ids, that is relevant."""
        number = self.number_retrieved if k is None else k
        return len(_top(self.hits, k)) / number if number else 0.0

    def recall(self, k: int | None) -> float:
        """Return the share of the relevant that is in the top k."""
        return self._number_found(k) / self.number_relevant

    def recall_capped(self, k: int | None) -> float:
        """Return how many relevant the top k holds, as a share of the most that it could hold."""
        number = _at_most(k, self.number_relevant)
        return min(self._number_found(k), number) / number

    def f1(self, k: int | None) -> float:
        """Return the harmonic mean of precision and recall; 0 if both are 0."""
        precision, recall = self.precision(k), self.recall(k)
        return 2 * precision * recall / (precision + recall) if recall else 0.0

    def hit_rate(self, k: int | None) -> float:
        """Return 1 if the top k holds anything relevant, else 0."""
        return float(bool(_top(self.hits, k)))

    def reciprocal_rank(self, k: int | None) -> float:
        """Return 1 / rank of the first relevant, 0 if it is not in the top k; of groups the mean over them."""
        groups = [self.hits] if self.groups is None else self.groups
        return sum(1 / top[0] for ranks in groups if (top := _top(ranks, k))) / len(groups)

    def average_precision(self, k: int | None, normalize: Normalize = "relevant") -> float:
        """Return the mean of the precisions at the ranks of the relevant, over all relevant or those in the top k.

        Of groups it is the mean over them, each divided by its ids in the top k.
        """
        groups = [self.hits] if self.groups is None else self.groups
        tops = [top for ranks in groups if (top := _top(ranks, k))]
        sums = ((sum(number / rank for number, rank in enumerate(top, start=1)), len(top)) for top in tops)
        if self.groups is None and normalize == "relevant":
            return sum(total for total, _ in sums) / self.number_relevant
        return sum(total / number for total, number in sums) / len(groups)

    def ndcg(self, k: int | None) -> float:
        """Return the discounted gain of the top k as a share of that of the best ranking.

        With groups, the best ranking has as many relevant ids as were retrieved, or as the groups have.
        """
        top, number = _top(self.hits, k), _at_most(k, self.number_relevant)
        if self.gains is not None:
            gained = sum(gain / log2(rank + 1) for rank, gain in zip(top, self.gains, strict=False))
            ideal = sum(gain / log2(rank + 1) for rank, gain in enumerate(self.ideal_gains[:k], start=1))
            return min(1.0, gained / ideal)  # rounding must not push a share beyond 1
        if self.groups is not None:
            number = min(_at_most(k, self.number_retrieved), self.number_of_group_ids)
        return _discounted(top) / _ideal(number) if number else 0.0

    def r_precision(self, k: int | None) -> float:
        """Return the precision at rank R, the number of the relevant."""
        return self._number_found(_at_most(k, self.number_relevant)) / self.number_relevant

    def _number_found(self, k: int | None) -> int:
        if self.groups is None:
            return len(_top(self.hits, k))
        return sum(bool(_top(ranks, k)) for ranks in self.groups)


def _top(ranks: Sequence[int], k: int | None) -> Sequence[int]:
    """Return the ascending ranks that are at most k."""
    return ranks if k is None else ranks[: bisect_right(ranks, k)]


def _at_most(k: int | None, number: int) -> int:
    return number if k is None or k > number else k


def _discounted(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)


@lru_cache(maxsize=1024)
def _ideal(number: int) -> float:
    return _discounted(range(1, number + 1))


def ranked_hits(relevant: Relevant, retrieved: Iterable[Hashable]) -> RankedHits | None:
    """Return the ranks of the relevant ids in a ranking; None if nothing is relevant.

    An id counts once, in a group too; only the first of repeated retrieved ones takes a rank. Groups without ids do not
    count.

    Raises:
        TypeError: One of them is not an iterable of ids, or a gain is not a number.
        ValueError: Ids and groups are mixed, or a gain is not finite.
    """
    if isinstance(retrieved, Mapping):
        raise TypeError("retrieved is a mapping, which has no ranks: pass a list of ids, the best first")
    ranked = list(distinct_ids("retrieved", retrieved))
    rank_of = {identifier: rank for rank, identifier in enumerate(ranked, start=1)}
    if isinstance(relevant, Mapping):
        for identifier, gain in relevant.items():
            _check_gain(identifier, gain)
        gains = {identifier: gain for identifier, gain in relevant.items() if gain > 0}
        highest = max(gains.values(), default=1)  # sums of shares of it are finite, however high the gains
        hits = [rank for identifier, rank in rank_of.items() if identifier in gains]
        shares = [gains[ranked[rank - 1]] / highest for rank in hits]
        ideal = sorted((gain / highest for gain in gains.values()), reverse=True)
        return RankedHits(hits, len(ranked), len(gains), shares, ideal) if gains else None
    listed = _listed("relevant", relevant)
    if _are_groups(listed, ranked):
        distinct = [ids for ids in (distinct_ids("a group of relevant", group) for group in listed) if ids]
        groups = [sorted(rank_of[identifier] for identifier in ids if identifier in rank_of) for ids in distinct]
        hits = sorted({rank for ranks in groups for rank in ranks})
        number = sum(map(len, distinct))
        return RankedHits(hits, len(ranked), len(groups), None, (), groups, number) if groups else None
    ids = distinct_ids("relevant", listed)
    hits = [rank for identifier, rank in rank_of.items() if identifier in ids]
    return RankedHits(hits, len(ranked), len(ids)) if ids else None


def distinct_ids(name: str, identifiers: Iterable[Hashable]) -> dict[Hashable, None]:
    """Return the distinct ids, in their order.

    Raises:
        TypeError: They are a text, no iterable, or no ids; the message has ``name``, the argument.
    """
    listed = _listed(name, identifiers)
    try:
        return dict.fromkeys(listed)
    except TypeError as problem:
        raise TypeError(f"{name} has an element that is not an id: {problem}") from None


def checked_cutoff(k: int | None) -> int | None:
    """Return k as an integer, or None.

    Raises:
        ValueError: It is not an integer of at least 1.
    """
    if k is None or (type(k) is int and k >= 1):
        return k
    try:
        number = 0 if isinstance(k, bool) else index(k)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"k is the number of retrieved ids that count, a whole number of at least 1, not {k!r:.40}")
    return number


def _check_gain(identifier: Hashable, gain: object) -> None:
    if not isinstance(gain, Real):
        raise TypeError(f"the gain of {identifier!r:.60} is a number, not {type(gain).__name__}")
    try:
        is_finite = isfinite(gain)
    except OverflowError:  # a whole number beyond the floats
        is_finite = False
    if not is_finite:
        raise ValueError(f"the gain of {identifier!r:.60} is a number within the floats, not {gain!s:.40}")


def _are_groups(relevant: Sequence[Any], ranked: Iterable[Hashable]) -> bool:
    """Return whether the elements are groups of ids; tuples are ids if tuples were retrieved, as triples of a graph."""
    kinds = set(map(type, relevant))
    if any(issubclass(kind, Mapping) for kind in kinds):
        raise TypeError("relevant has a mapping for an element: pass the ids of documents, not the documents")
    has_tuples = any(issubclass(kind, _COMPOUND) for kind in set(map(type, ranked)))
    ids = (*_TEXT, *_COMPOUND) if has_tuples else _TEXT
    groups = {kind for kind in kinds if issubclass(kind, Iterable) and not issubclass(kind, ids)}
    if groups and groups != kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"relevant mixes ids and groups of ids, with elements of {names}: pass one of the two")
    return bool(groups)


def _listed(name: str, values: Iterable[Any]) -> Sequence[Any]:
    if isinstance(values, _TEXT):
        raise TypeError(f"{name} is a text: pass a list of ids, also if it has just one")
    try:
        return list(values)
    except TypeError as problem:
        raise TypeError(f"{name} is not an iterable of ids: {problem}") from None
