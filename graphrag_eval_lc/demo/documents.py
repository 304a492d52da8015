"""The documents of the demo, found by BM25."""

import json
import re
from pathlib import Path
from typing import TypedDict

from graphrag_eval_lc.demo.bm25 import BM25


class FoundDocument(TypedDict):
    """A document as the tool ``retrieval`` gives it; graphrag-eval's retrieval steps have these keys."""

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
        self._ranking = BM25(_tokens(document["text"]) for document in self._documents)

    def search(self, query: str, k: int) -> list[FoundDocument]:
        """Give the ``k`` best documents, best first; fewer where fewer share a word with the query."""
        scores = self._ranking.scores(_tokens(query))
        ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [self._documents[index] for index in ranked[:k] if scores[index] > 0]


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
