"""Comparing retrieval steps: the ids of the retrieved documents by recall@k."""

from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.metrics import recall_at_k


def parse_document_ids(output: Any) -> list[str | int | float]:
    """Give the ids of an output such as ``[{"id": "doc-1", "text": "…"}, …]``, by rank.

    Raises:
        UnreadableOutput: The output is no list of objects that have an id.
    """
    documents = parse_json_output(output)
    if not isinstance(documents, list):
        raise UnreadableOutput(f"the output is no list of documents but {type(documents).__name__}")
    for rank, document in enumerate(documents, start=1):
        if not isinstance(document, dict) or not isinstance(document.get("id"), str | int | float):
            raise UnreadableOutput(f"document {rank} has no id")
    return [document["id"] for document in documents]


def match_retrieval_steps(reference: StepView, actual: StepView) -> Comparison:
    """Score recall@k of the retrieved ids; k is the reference step's ``args.k``, else the actual step's, else all."""
    try:
        relevant = reference.parsed(parse_document_ids)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    if not relevant:
        return explained(0.0, "the reference step names no relevant documents")
    try:
        retrieved = actual.parsed(parse_document_ids)
    except UnreadableOutput as problem:
        return explained(0.0, str(problem), unreadable=str(problem))
    k = _cut_off(reference)
    k = _cut_off(actual) if k is None else k
    score = recall_at_k(relevant, retrieved, k)
    return Comparison(score, lambda: _reason(relevant, retrieved, k), lambda: score)


def _cut_off(step: StepView) -> int | None:
    args = step.get("args")
    k = args.get("k") if isinstance(args, dict) else None
    if k is None:
        return None
    if isinstance(k, str) and k.isascii() and k.isdigit():
        k = int(k)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise UnreadableOutput(f"args.k is {k!r:.40}, not a whole number from 1")
    return k


def _reason(relevant: list[Any], retrieved: list[Any], k: int | None) -> str:
    top = list(dict.fromkeys(retrieved))[:k]
    missing = [identifier for identifier in dict.fromkeys(relevant) if identifier not in top]
    where = f"the top {k}" if k is not None else f"the {len(top)} retrieved"
    found = len(set(relevant)) - len(missing)
    text = f"{found} of {len(set(relevant))} relevant documents in {where}"
    return f"{text}; missing, e.g. {missing[0]}" if missing else text
