"""Metrics of a ranked list of ids against the relevant ones.

What is relevant is given as ids, in any order; as ``{id: gain}``, of which a gain above 0 makes an id relevant, and
gains matter to nDCG alone; or as groups of ids, all of which are needed, and any id of a group is enough (AutoRAG's
``retrieval_gt``). If tuples were retrieved, tuples in ``relevant`` are ids, not groups. k is how many of the retrieved
ids count, None for all. The values for ids and gains are those of trec_eval, for groups those of AutoRAG.

Each raises a ValueError if k is not an integer of at least 1, ids and groups are mixed, or a gain is
not finite; and a TypeError if its input is not an iterable of ids.
"""

from collections.abc import Hashable, Iterable

from graphrag_eval_lc.metrics.ranked_hits import Normalize, Relevant, checked_cutoff, ranked_hits


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
