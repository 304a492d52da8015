"""Metrics of a ranked list of ids against the relevant ones."""

from collections.abc import Hashable, Iterable
from itertools import islice


def recall_at_k(relevant_docs: Iterable[Hashable], retrieved_docs: Iterable[Hashable], k: int | None = None) -> float:
    """Give the share of the relevant documents that the top k could hold and do hold.

    ``|top k of retrieved ∩ relevant| / min(k, |relevant|)``, so that a perfect top k scores 1 even where more than
    k documents are relevant. The definition is that of graphrag-eval's documentation; repeated ids count once.

    Args:
        relevant_docs: The ids of the relevant documents, in any order.
        retrieved_docs: The ids that were retrieved, by rank.
        k: How many of the retrieved count, at least 1; None counts all, and divides by all relevant ids.

    Returns:
        0 to 1; 0 where nothing is relevant.

    Raises:
        ValueError: ``k`` is less than 1.

    Example:
        >>> recall_at_k([1, 3, 5, 6], [1, 4, 3, 5, 7], k=5)
        0.75
        >>> recall_at_k([1, 3, 5, 6], [1, 4, 3, 5, 7], k=3)
        0.6666666666666666
    """
    if k is not None and k < 1:
        raise ValueError(f"k is the number of documents that count, at least 1, not {k}")
    relevant = set(relevant_docs)
    if not relevant:
        return 0.0
    top = set(islice(dict.fromkeys(retrieved_docs), k))
    return len(top & relevant) / (len(relevant) if k is None else min(k, len(relevant)))
