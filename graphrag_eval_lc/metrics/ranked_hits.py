"""The ranks of relevant ids in a ranking, and each measure of them, for ids, gains by id and groups of ids.

An id may be anything hashable, also a tuple: ``[("a", "b")]`` is one id where tuples were retrieved, else a group of
two ids. Gains by id and groups as lists are never ambiguous.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isfinite, log2
from numbers import Real
from operator import index
from typing import Any, Literal, TypeAlias

Normalize = Literal["relevant", "retrieved_relevant"]


@dataclass(slots=True)
class RankedHits:
    """The ranks of the relevant ids in a ranking of distinct ids, and each measure of them.

    The functions of ``metrics.ranking`` say what each measure means for the three kinds of relevance.

    Attributes:
        hits: The ranks of the relevant ids, from 1, ascending.
        number_retrieved: How many distinct ids were retrieved.
        number_relevant: How many distinct ids are relevant, retrieved or not; at least 1.
    """

    hits: Sequence[int]
    number_retrieved: int
    number_relevant: int

    def precision(self, k: int | None) -> float:
        """Return the share of the top k, or of all retrieved ids, that is relevant."""
        number = self.number_retrieved if k is None else k
        return _number_within(self.hits, k) / number if number else 0.0

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
        return float(_number_within(self.hits, k) > 0)

    def reciprocal_rank(self, k: int | None) -> float:
        """Return 1 / rank of the first relevant; 0 if it is not in the top k."""
        return _reciprocal_of_first(self.hits, k)

    def average_precision(self, k: int | None, normalize: Normalize = "relevant") -> float:
        """Return the mean of the precisions at the ranks of the relevant, over all relevant or those in the top k."""
        number = self.number_relevant if normalize == "relevant" else _number_within(self.hits, k)
        return _summed_precisions(self.hits, k) / number if number else 0.0

    def ndcg(self, k: int | None) -> float:
        """Return the discounted gain of the top k as a share of that of the best ranking."""
        return _discounted(self.hits[: _number_within(self.hits, k)]) / _ideal(_at_most(k, self.number_relevant))

    def r_precision(self, k: int | None) -> float:
        """Return the precision at rank R, the number of the relevant."""
        return self._number_found(_at_most(k, self.number_relevant)) / self.number_relevant

    def _number_found(self, k: int | None) -> int:
        return _number_within(self.hits, k)


@dataclass(slots=True)
class RankedGains(RankedHits):
    """A ranking with gains by id, which matter to nDCG alone.

    Attributes:
        gains: The gains of the hits, in their order.
        ideal_gains: Those of all relevant ids, descending. Both are shares of the highest.
    """

    gains: Sequence[float]
    ideal_gains: Sequence[float]

    def ndcg(self, k: int | None) -> float:
        """Compare with the ids of the highest gains."""
        top = self.hits[: _number_within(self.hits, k)]
        gained = sum(gain / log2(rank + 1) for rank, gain in zip(top, self.gains, strict=False))
        ideal = sum(gain / log2(rank + 1) for rank, gain in enumerate(self.ideal_gains[:k], start=1))
        # Rounding must not push a share beyond 1.
        return min(1.0, gained / ideal)


@dataclass(slots=True)
class RankedGroups(RankedHits):
    """A ranking with groups of relevant ids, any one of which is enough: AutoRAG's ``retrieval_gt``.

    Attributes:
        groups: The ranks of each group's ids, ascending; at least one group.
        number_of_group_ids: The sum of the groups' numbers of distinct ids.
    """

    groups: Sequence[Sequence[int]]
    number_of_group_ids: int

    def reciprocal_rank(self, k: int | None) -> float:
        """Return the mean over the groups."""
        return sum(_reciprocal_of_first(ranks, k) for ranks in self.groups) / len(self.groups)

    def average_precision(self, k: int | None, normalize: Normalize = "relevant") -> float:
        """Return the mean over the groups, each divided by its ids in the top k whatever ``normalize`` says."""
        found = ((_summed_precisions(ranks, k), _number_within(ranks, k)) for ranks in self.groups)
        return sum(total / number for total, number in found if number) / len(self.groups)

    def ndcg(self, k: int | None) -> float:
        """Compare with as many relevant ids as were retrieved, or as the groups have."""
        number = min(_at_most(k, self.number_retrieved), self.number_of_group_ids)
        return _discounted(self.hits[: _number_within(self.hits, k)]) / _ideal(number) if number else 0.0

    def _number_found(self, k: int | None) -> int:
        """Return how many groups have an id in the top k."""
        return sum(_number_within(ranks, k) > 0 for ranks in self.groups)


def _number_within(ranks: Sequence[int], k: int | None) -> int:
    """Return how many of the ascending ranks are at most k."""
    return len(ranks) if k is None else bisect_right(ranks, k)


def _at_most(k: int | None, number: int) -> int:
    return number if k is None or k > number else k


def _reciprocal_of_first(ranks: Sequence[int], k: int | None) -> float:
    return 1 / ranks[0] if _number_within(ranks, k) else 0.0


def _summed_precisions(ranks: Sequence[int], k: int | None) -> float:
    return sum(number / rank for number, rank in enumerate(islice(ranks, _number_within(ranks, k)), start=1))


def _discounted(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)


@lru_cache(maxsize=1024)
def _ideal(number: int) -> float:
    return _discounted(range(1, number + 1))


Relevant: TypeAlias = Iterable[Hashable] | Mapping[Any, float] | Iterable[Iterable[Hashable]]
"""Ids, gains by id, or groups of ids, any one of which is enough."""

_TEXT = (str, bytes, bytearray)
_COMPOUND = (tuple, frozenset)


def ranked_hits(relevant: Relevant, retrieved: Iterable[Hashable]) -> RankedHits | None:
    """Return the ranks of the relevant ids in a ranking; None if nothing is relevant.

    Args:
        relevant: Ids; ``{id: gain}``, of which a gain above 0 makes an id relevant; or groups of ids. An id counts
            once, in a group too; groups without ids do not count.
        retrieved: Ids by rank. Only the first of repeated ones takes a rank.

    Raises:
        TypeError: One of them is not an iterable of ids, or a gain is not a number.
        ValueError: Ids and groups are mixed, or a gain is not finite.
    """
    if isinstance(retrieved, Mapping):
        raise TypeError("retrieved is a mapping, which has no ranks: pass a list of ids, the best first")
    ranked = distinct_ids("retrieved", retrieved)
    if isinstance(relevant, Mapping):
        return _ranked_gains(relevant, ranked)
    listed = _listed("relevant", relevant)
    if _are_groups(listed, ranked):
        return _ranked_groups(listed, ranked)
    distinct = distinct_ids("relevant", listed)
    if not distinct:
        return None
    hits = [rank for rank, identifier in enumerate(ranked, start=1) if identifier in distinct]
    return RankedHits(hits, len(ranked), len(distinct))


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


def _ranked_gains(relevant: Mapping[Any, float], ranked: Iterable[Hashable]) -> RankedGains | None:
    for identifier, gain in relevant.items():
        _check_gain(identifier, gain)
    gains = {identifier: gain for identifier, gain in relevant.items() if gain > 0}
    if not gains:
        return None
    ranked = list(ranked)
    hits = [rank for rank, identifier in enumerate(ranked, start=1) if identifier in gains]
    highest = max(gains.values())  # sums of shares of it are finite, however high the gains
    shares = [gains[ranked[rank - 1]] / highest for rank in hits]
    ideal = sorted((gain / highest for gain in gains.values()), reverse=True)
    return RankedGains(hits, len(ranked), len(gains), shares, ideal)


def _check_gain(identifier: Hashable, gain: object) -> None:
    if not isinstance(gain, Real):
        raise TypeError(f"the gain of {identifier!r:.60} is a number, not {type(gain).__name__}")
    try:
        is_finite = isfinite(gain)
    except OverflowError:  # a whole number beyond the floats
        is_finite = False
    if not is_finite:
        raise ValueError(f"the gain of {identifier!r:.60} is a number within the floats, not {gain!s:.40}")


def _ranked_groups(groups: Sequence[Iterable[Hashable]], ranked: Iterable[Hashable]) -> RankedGroups | None:
    rank_of = {identifier: rank for rank, identifier in enumerate(ranked, start=1)}
    distinct = [ids for ids in (distinct_ids("a group of relevant", group) for group in groups) if ids]
    if not distinct:
        return None
    ranks = [sorted(rank_of[identifier] for identifier in ids if identifier in rank_of) for ids in distinct]
    hits = sorted({rank for group in ranks for rank in group})
    return RankedGroups(hits, len(rank_of), len(ranks), ranks, sum(map(len, distinct)))


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
