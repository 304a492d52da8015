"""The documents and their search, ranked by BM25."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict


class FoundDocument(TypedDict):
    """A document as the tool ``retrieval`` returns it, with the keys of graphrag-eval's retrieval steps."""

    id: str
    text: str


class DocumentIndex:
    """The documents of a JSON Lines file (id, title, text), read once and safe to search from several threads.

    Args:
        path: The file, UTF-8.
    """

    def __init__(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        self._documents = [FoundDocument(id=row["id"], text=f"{row['title']}. {row['text']}") for row in rows]
        self._ranking = BM25(tokens_of(document["text"]) for document in self._documents)

    def search(self, query: str, k: int) -> list[FoundDocument]:
        """Return the ``k`` best documents that share a word with the query, best first."""
        scores = self._ranking.scores(tokens_of(query))
        ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [self._documents[index] for index in ranked[:k] if scores[index] > 0]


def tokens_of(text: str) -> list[str]:
    """Return the words of a text, case folded."""
    return re.findall(r"\w+", text.casefold())


class BM25:
    """Scores tokenised texts against a tokenised query.

    Term weights are those of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
    (2009), equation 3.15: ``idf(t) · tf / (tf + k1 · (1 - b + b · length / mean length))``. The inverse document
    frequency is ``ln(1 + (N - n + 0.5) / (n + 0.5))``, theirs with 1 added, so that a term found in most texts never
    counts against a text.

    Args:
        texts: The tokens of each text.
        k1: How much repetitions of a term count, 0 (not at all) or more.
        b: How much long texts are penalised, 0 (not at all) to 1 (in full).

    Example:
        >>> [round(score, 2) for score in BM25([["power", "line"], ["power"]]).scores(["line"])]
        [0.28, 0.0]
    """

    def __init__(self, texts: Iterable[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._frequencies = [Counter(text) for text in texts]
        lengths = [frequencies.total() for frequencies in self._frequencies]
        mean_length = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._dampings = [k1 * (1 - b + b * length / mean_length) for length in lengths]
        self._text_frequency = Counter(term for frequencies in self._frequencies for term in frequencies)

    def scores(self, query: Iterable[str]) -> list[float]:
        """Return the score of each text in order, 0 or more; a repeated query term counts once."""
        weights = {term: self._idf(term) for term in query if term in self._text_frequency}
        return [
            math.fsum(
                weight * frequencies[term] / (frequencies[term] + damping)
                for term, weight in weights.items()
                if term in frequencies
            )
            for frequencies, damping in zip(self._frequencies, self._dampings, strict=True)
        ]

    def _idf(self, term: str) -> float:
        containing = self._text_frequency[term]
        return math.log(1 + (len(self._frequencies) - containing + 0.5) / (containing + 0.5))
