"""Metrics of a ranked list of ids against the relevant ones.

What is relevant is given as ids, in any order; as ``{id: gain}``, of which a gain above 0 makes an id relevant, and
gains matter to nDCG alone; or as groups of ids, all of which are needed, and any id of a group is enough (AutoRAG's
``retrieval_gt``). If tuples were retrieved, tuples in ``relevant`` are ids, not groups; gains by id and groups as lists
are never ambiguous. k is how many of the retrieved ids count, None for all. The values for ids and gains are those of
trec_eval, for groups those of AutoRAG.

Each raises a ValueError if k is not an integer of at least 1, ids and groups are mixed, or a gain is
not finite; and a TypeError if its input is not an iterable of ids.
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


def precision(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return the share of the retrieved ids that are relevant: P@k.

    ``|top k of retrieved ∩ relevant| / k``, as trec_eval's ``P``, also if fewer than k ids were retrieved. Without k
    it divides by the number of retrieved ids (``set_P``). With groups, the ids of all groups are relevant, as in
    AutoRAG.

    Args:
        relevant: Ids, gains by id, or groups of ids.
        retrieved: Ids by rank; repeated ones count once.
        k: How many of them count, at least 1.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> precision([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"])
        0.5
        >>> precision(["a", "b"], ["a", "c"], k=5)
        0.2
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.precision(k)


def recall(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return the share of all relevant ids that were retrieved: R@k.

    ``|top k of retrieved ∩ relevant| / |relevant|``, as trec_eval's ``recall``. If more than k ids are relevant
    no ranking reaches 1; ``recall_at_k`` then divides by k. With groups it is the share of the groups with an id in
    the top k, as in AutoRAG.

    Args:
        relevant: Ids, gains by id, or groups of ids; repeated ids count once.
        retrieved: Ids by rank; repeated ones count once.
        k: How many of them count, at least 1.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> recall([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"])
        0.5
        >>> recall([1, 3, 5, 6], [1, 4, 3, 5, 7], k=3)
        0.5
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.recall(k)


def recall_at_k(relevant_docs: Relevant, retrieved_docs: Iterable[Hashable], k: int | None = None) -> float:
    """Return the relevant documents in the top k as a share of the most that it could hold: R_cap@k.

    ``|top k of retrieved ∩ relevant| / min(k, |relevant|)``, so that a perfect top k scores 1 even if more than k
    documents are relevant; ``recall`` divides by all of them. It is defined in graphrag-eval's documentation. With
    groups it is the number of groups with an id in the top k / min(k, number of groups), and at most 1 if an id is
    in several groups.

    Args:
        relevant_docs: Ids, gains by id, or groups of ids; repeated ids count once.
        retrieved_docs: Ids by rank; repeated ones count once.
        k: How many of them count, at least 1; None counts all, and divides by all relevant ids.

    Returns:
        0 to 1; 0 if nothing was retrieved, and, as in graphrag-eval, if nothing is relevant.

    Example:
        >>> recall_at_k([1, 3, 5, 6], [1, 4, 3, 5, 7], k=5)
        0.75
        >>> recall_at_k([1, 3, 5, 6], [1, 4, 3, 5, 7], k=3)
        0.6666666666666666
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant_docs, retrieved_docs)
    return 0.0 if hits is None else hits.recall_capped(k)


def f1(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return the harmonic mean of precision and recall: F1@k.

    ``2 · P · R / (P + R)`` with ``precision`` and ``recall`` at the same k: van Rijsbergen 1979, "Information
    Retrieval", with equal weights; with groups as in AutoRAG.

    Args:
        relevant: Ids, gains by id, or groups of ids; repeated ids count once.
        retrieved: Ids by rank; repeated ones count once.
        k: How many of them count, at least 1.

    Returns:
        0 to 1; 0 if nothing relevant was retrieved, None if nothing is relevant.

    Example:
        >>> f1([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"])
        0.5
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.f1(k)


def reciprocal_rank(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return 1 / rank of the first relevant id: RR@k, whose mean over questions is MRR.

    It is 0 if the top k holds no relevant id: Voorhees 1999, "The TREC-8 Question Answering Track Report", as
    trec_eval's ``recip_rank``. With groups it is the mean over the groups, as AutoRAG's MRR.

    Args:
        relevant: Ids, gains by id, or groups of ids.
        retrieved: Ids by rank; repeated ones count once, and take no rank.
        k: How many of them count, at least 1.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> reciprocal_rank([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"])
        0.5
        >>> reciprocal_rank(["b", "c"], ["a", "b", "c"])
        0.5
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.reciprocal_rank(k)


def average_precision(
    relevant_docs: Relevant,
    retrieved_docs: Iterable[Hashable],
    k: int | None = None,
    *,
    normalize: Normalize = "relevant",
) -> float | None:
    """Return the mean of the precisions at the ranks of the relevant ids: AP@k, whose mean over questions is MAP.

    ``Σ P@rank / |relevant|`` over the ranks of the relevant ids in the top k; a relevant id that was not retrieved
    counts as 0: trec_eval's ``map`` and ``map_cut``. With groups it is the mean over the groups of ``Σ P@rank /
    number of the group's ids in the top k``, as AutoRAG's MAP.

    Args:
        relevant_docs: Ids, gains by id, or groups of ids; repeated ids count once.
        retrieved_docs: Ids by rank; repeated ones count once, and take no rank.
        k: How many of them count, at least 1.
        normalize: What to divide by: ``relevant`` for all relevant ids, or ``retrieved_relevant`` for those in the top
            k, as in the example of graphrag-eval's documentation. Groups always do the latter.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Raises:
        ValueError: ``normalize`` is something else.

    Example:
        >>> average_precision([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]) * 12
        5.0
        >>> round(average_precision([1, 3, 5, 6], [1, 4, 3, 5, 7]), 4)
        0.6042
        >>> round(average_precision([1, 3, 5, 6], [1, 4, 3, 5, 7], normalize="retrieved_relevant"), 4)
        0.8056
    """
    if normalize not in ("relevant", "retrieved_relevant"):
        raise ValueError(f"normalize is relevant or retrieved_relevant, not {normalize!r:.40}")
    k, hits = checked_cutoff(k), ranked_hits(relevant_docs, retrieved_docs)
    return None if hits is None else hits.average_precision(k, normalize)


def ndcg(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return the discounted cumulative gain as a share of the best one: nDCG@k.

    ``Σ gain / log2(rank + 1)`` over the top k, divided by that of the best ranking of all relevant ids: Järvelin and
    Kekäläinen 2002, "Cumulated Gain-Based Evaluation of IR Techniques" (ACM TOIS 20), with linear gains, as
    trec_eval's ``ndcg`` and ``ndcg_cut``. An id without a gain has 1. With groups, each of their ids has the gain 1,
    and the best ranking has as many relevant ids as the top k has retrieved ids, or as the groups have: AutoRAG's
    nDCG.

    Args:
        relevant: Ids, gains by id, or groups of ids; repeated ids count once, or once in each group.
        retrieved: Ids by rank; repeated ones count once, and take no rank.
        k: How many of them count, at least 1.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> round(ndcg([["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]), 4)
        0.7039
        >>> round(ndcg({"a": 2, "b": 1}, ["b", "a"]), 4)
        0.8597
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.ndcg(k)


def hit_rate(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return whether anything relevant was retrieved: Success@k, whose mean over questions is the hit rate.

    1 if the top k holds a relevant id, of any group, else 0, as trec_eval's ``success``.

    Args:
        relevant: Ids, gains by id, or groups of ids.
        retrieved: Ids by rank; repeated ones count once, and take no rank.
        k: How many of them count, at least 1.

    Returns:
        0 or 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> hit_rate(["c", "d"], ["a", "b", "c"]), hit_rate(["c", "d"], ["a", "b", "c"], k=2)
        (1.0, 0.0)
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.hit_rate(k)


def r_precision(relevant: Relevant, retrieved: Iterable[Hashable], k: int | None = None) -> float | None:
    """Return the precision at rank R, the number of relevant ids: R-precision.

    ``|top R of retrieved ∩ relevant| / R`` with R = |relevant|, as trec_eval's ``Rprec``. With groups, R is their
    number, and the value the share of the groups with an id in the top R; AutoRAG has none.

    Args:
        relevant: Ids, gains by id, or groups of ids; repeated ids count once.
        retrieved: Ids by rank; repeated ones count once, and take no rank.
        k: How many of them count, at least 1; it matters only below R.

    Returns:
        0 to 1; 0 if nothing was retrieved, None if nothing is relevant.

    Example:
        >>> r_precision(["a", "b"], ["a", "c", "b"])
        0.5
    """
    k, hits = checked_cutoff(k), ranked_hits(relevant, retrieved)
    return None if hits is None else hits.r_precision(k)
