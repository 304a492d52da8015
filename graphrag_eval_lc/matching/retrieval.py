"""Comparing retrieval steps: the ids of the retrieved documents by recall@k."""

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.relevant_ids import alternatives, found_ids, id_text, relevant_ids
from graphrag_eval_lc.metrics import recall_at_k
from graphrag_eval_lc.records import Id, RelevantIds


def match_retrieval_steps(reference: StepView, actual: StepView) -> Comparison:
    """Score recall@k of the retrieved ids; k is the reference step's ``args.k``, else the actual step's, else all."""
    try:
        given = relevant_ids(reference)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    if not given:
        return explained(0.0, "the reference step names no relevant documents")
    try:
        relevant, retrieved = found_ids(reference, given, actual)
    except UnreadableOutput as problem:
        # A query that was no search is no search that failed.
        is_query = actual.id_column is not None and reference.get("name") not in {actual.get("name"), actual.tool}
        hint = "" if is_query or actual.id_column is not None else _hint(actual.get("output"))
        return explained(0.0, f"{problem}{hint}", unreadable=None if is_query else str(problem))
    k = _cut_off(reference)
    k = _cut_off(actual) if k is None else k
    score = recall_at_k(relevant, retrieved, k)
    return Comparison(score, lambda: _reason(given, relevant, retrieved, k), lambda: score)


def _hint(output: object) -> str:
    """Say how documents are kept, where an output may be the text that a retriever tool makes of them."""
    if not isinstance(output, str) or output.lstrip()[:1] in {"{", "["}:
        return ""
    return "; if a LangChain retriever gave it, keep its documents: run with --retrieval-documents (config: capture)"


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


def _reason(given: RelevantIds, relevant: RelevantIds, retrieved: list[Id], k: int | None) -> str:
    top = list(dict.fromkeys(retrieved))[:k]
    wanted = alternatives(relevant)
    missing = [group for group in wanted if not any(identifier in top for identifier in group)]
    where = f"the top {k}" if k is not None else f"the {len(top)} retrieved"
    kind = "documents" if all(len(group) == 1 for group in wanted) else "groups of documents"
    text = f"{len(wanted) - len(missing)} of {len(wanted)} relevant {kind} in {where}"
    if not missing:
        return text
    as_given = {id_text(identifier): str(identifier) for group in alternatives(given) for identifier in group}
    return f"{text}; missing, e.g. {' or '.join(as_given.get(str(each), str(each)) for each in missing[0])}"
