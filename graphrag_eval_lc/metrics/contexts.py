"""Metrics of retrieved contexts against reference contexts, by their ids or the similarity of their texts."""

from collections.abc import Hashable, Iterable
from numbers import Real
from typing import Any, Literal, get_args

from graphrag_eval_lc.metrics.ranking import distinct_ids

Distance = Literal["levenshtein", "hamming", "jaro", "jaro_winkler"]

# Characters times characters: a few seconds, as rapidfuzz compares 64 at a time.
_MOST_WORK = 5e10
# rapidfuzz rounds its cut-off, some versions by 1e-5: similarities near the threshold must be computed in full.
_NEAR = 1e-3


def id_context_precision(
    retrieved_context_ids: Iterable[Hashable], reference_context_ids: Iterable[Hashable]
) -> float | None:
    """Return the share of the retrieved contexts that are reference contexts, by id.

    ``|retrieved ∩ reference| / |retrieved|`` over the distinct ids as texts, so that 1 equals "1": ragas'
    ``IDBasedContextPrecision``.

    Args:
        retrieved_context_ids: In any order; repeated ones count once.
        reference_context_ids: In any order; repeated ones count once.

    Returns:
        0 to 1; 0 if only one of the two is empty (ragas: NaN if nothing was retrieved), None if both are.

    Raises:
        TypeError: One of them is not an iterable of ids.

    Example:
        >>> id_context_precision(["doc_1", "doc_2", "doc_3", "doc_4"], ["doc_1", "doc_4", "doc_5", "doc_6"])
        0.5
    """
    retrieved = {*map(str, distinct_ids("retrieved_context_ids", retrieved_context_ids))}
    reference = {*map(str, distinct_ids("reference_context_ids", reference_context_ids))}
    if not retrieved:
        return 0.0 if reference else None
    return len(retrieved & reference) / len(retrieved)


def id_context_recall(
    retrieved_context_ids: Iterable[Hashable], reference_context_ids: Iterable[Hashable]
) -> float | None:
    """Return the share of the reference contexts that were retrieved, by id.

    ``|retrieved ∩ reference| / |reference|`` over the distinct ids as texts, so that 1 equals "1": ragas'
    ``IDBasedContextRecall``.

    Args:
        retrieved_context_ids: In any order; repeated ones count once.
        reference_context_ids: In any order; repeated ones count once.

    Returns:
        0 to 1; 0 if nothing was retrieved, None without references.

    Raises:
        TypeError: One of them is not an iterable of ids.

    Example:
        >>> id_context_recall([1, 2, 3], [2, 3, 4, 5])
        0.5
    """
    retrieved = {*map(str, distinct_ids("retrieved_context_ids", retrieved_context_ids))}
    reference = {*map(str, distinct_ids("reference_context_ids", reference_context_ids))}
    return len(retrieved & reference) / len(reference) if reference else None


def text_context_precision(
    retrieved_contexts: Iterable[str],
    reference_contexts: Iterable[str],
    *,
    threshold: float = 0.5,
    distance: Distance = "levenshtein",
) -> float | None:
    """Return the average precision of the contexts that resemble a reference.

    A retrieved context is useful if its similarity to the nearest reference, ``1 − normalised distance`` by
    rapidfuzz, is at least the threshold. The value is ``Σ P@rank / number of useful contexts`` over the ranks of the
    useful ones: ragas' ``NonLLMContextPrecisionWithReference``, without the 1e-10 that it adds to the divisor.

    Args:
        retrieved_contexts: By rank; repeated ones count each time, as in ragas.
        reference_contexts: In any order.
        threshold: 0 to 1.
        distance: ``levenshtein`` counts insertions, deletions and replacements, ``hamming`` replacements alone;
            ``jaro`` counts common characters near each other, and ``jaro_winkler`` favours a common beginning.

    Returns:
        0 to 1; 0 if nothing useful was retrieved, None without references.

    Raises:
        TypeError: One of them is not an iterable of texts, or the threshold is not a number.
        ValueError: The threshold or the distance is out of range, or the texts are too long to compare.

    Example:
        >>> text_context_precision(["It rains.", "Paris is a city."], ["Paris is a city in France."])
        0.5
    """
    scores = text_context_scores(retrieved_contexts, reference_contexts, threshold=threshold, distance=distance)
    return scores.get("precision")


def text_context_recall(
    retrieved_contexts: Iterable[str],
    reference_contexts: Iterable[str],
    *,
    threshold: float = 0.5,
    distance: Distance = "levenshtein",
) -> float | None:
    """Return the share of the reference contexts that a retrieved context resembles.

    A reference is found if its similarity to the nearest retrieved context, ``1 − normalised distance`` by
    rapidfuzz, is above the threshold: ragas' ``NonLLMContextRecall``. As in ragas, the threshold itself counts for
    ``text_context_precision`` but not here.

    Args:
        retrieved_contexts: In any order.
        reference_contexts: In any order; repeated ones count each time, as in ragas.
        threshold: 0 to 1; with 1 nothing is found.
        distance: As for ``text_context_precision``.

    Returns:
        0 to 1; 0 if nothing was retrieved, None without references.

    Raises:
        TypeError: One of them is not an iterable of texts, or the threshold is not a number.
        ValueError: The threshold or the distance is out of range, or the texts are too long to compare.

    Example:
        >>> text_context_recall(["Paris is a city."], ["Paris is a city in France.", "Rome is a city in Italy."])
        0.5
    """
    scores = text_context_scores(retrieved_contexts, reference_contexts, threshold=threshold, distance=distance)
    return scores.get("recall")


def text_context_scores(
    retrieved: Iterable[str],
    references: Iterable[str],
    *,
    threshold: float = 0.5,
    distance: Distance = "levenshtein",
) -> dict[str, float]:
    """Return ``text_context_precision``, ``text_context_recall`` and their F1, comparing each pair of texts once.

    Args:
        retrieved: Texts by rank.
        references: Texts in any order.
        threshold: 0 to 1.
        distance: As for ``text_context_precision``.

    Returns:
        ``precision``, ``recall`` and ``f1``, each 0 to 1; empty without references.

    Raises:
        TypeError: One of them is not an iterable of texts, or the threshold is not a number.
        ValueError: The threshold or the distance is out of range, or the texts are too long to compare.
    """
    if not isinstance(threshold, Real):
        raise TypeError(f"threshold is a number from 0 to 1, not {type(threshold).__name__}")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is 0 to 1, not {threshold}")
    if distance not in get_args(Distance):
        raise ValueError(f"distance is one of {', '.join(get_args(Distance))}, not {distance!r:.40}")
    found, wanted = _texts("retrieved", retrieved), _texts("references", references)
    if not wanted:
        return {}
    rows = _similarities(found, wanted, threshold, distance)
    useful = [rank for rank, row in enumerate(rows, start=1) if max(row) >= threshold]
    precision = sum(number / rank for number, rank in enumerate(useful, start=1)) / len(useful) if useful else 0.0
    recall = sum(max(column) > threshold for column in zip(*rows, strict=True)) / len(wanted)
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _similarities(found: list[str], wanted: list[str], threshold: float, distance: Distance) -> list[list[float]]:
    """Return each retrieved text's similarity to each reference; 0 if it is clearly below the threshold."""
    lengths = sum(map(len, found)), sum(map(len, wanted))
    if lengths[0] * lengths[1] > _MOST_WORK:
        raise ValueError(
            f"the texts are too long to compare: {lengths[0]} characters were retrieved, and the references have "
            f"{lengths[1]}"
        )
    # Loaded late: most evaluations compare ids alone.
    from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

    kinds: dict[Distance, Any] = dict(zip(get_args(Distance), (Levenshtein, Hamming, Jaro, JaroWinkler), strict=True))
    measured, cutoff = kinds[distance].normalized_distance, min(1.0, 1 - threshold + _NEAR)
    return [[1 - measured(text, reference, score_cutoff=cutoff) for reference in wanted] for text in found]


def _texts(name: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TypeError(f"{name} is a list of texts, not {type(texts).__name__}")
    listed = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise TypeError(f"{name} has an element that is not a text but {type(text).__name__}")
    return listed
