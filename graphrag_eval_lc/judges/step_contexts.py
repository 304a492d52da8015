"""The contexts of retrieval steps: which steps retrieve, and the texts of their outputs and of the reference."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.json_values import document_text, parse_json


def retrieval_steps(
    result: Mapping[str, Any], names: Mapping[str, str], retrieving: Set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the successful steps of a result with a name in ``retrieving``, by the ids that ``matches`` has for them.

    ``names`` has step names by tool name.
    """
    for index, step in enumerate(result.get("actual_steps") or ()):
        name, identifier = step.get("name"), step.get("id")
        if names.get(name, name) in retrieving and step.get("status") == "success":
            yield str(index if identifier is None else identifier), step


def context_texts(output: Any) -> list[str | None]:
    """Return the texts in an output such as ``[{"id": "doc-1", "text": "…"}]``, by rank; None for one without.

    A document's text is what ``document_text`` finds: ``text``, ``page_content``, or that of a serialised Document.

    Raises:
        JudgeError: The output is no JSON array of objects.
    """
    try:
        contexts = parse_json(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        contexts = None
    if not isinstance(contexts, list) or not all(isinstance(context, dict) for context in contexts):
        raise JudgeError(
            "the step's output is no JSON array of objects with a text, so its contexts cannot be judged; if a "
            "LangChain retriever gave it, keep its documents: run with --retrieval-documents TOOL "
            "(config: capture: {retrieval_documents: [TOOL]})"
        )
    return [document_text(context) for context in contexts]


def reference_texts(result: Mapping[str, Any], retrieving: Set[str]) -> dict[str, str]:
    """Return the texts of reference contexts, joined by newlines, by the id of the actual step that matched them.

    Reference steps without texts, such as those with ids only, are left out.
    """
    texts: dict[str, str] = {}
    for group in result.get("reference_steps") or ():
        for step in group:
            if "matches" not in step or step.get("name") not in retrieving:
                continue
            try:
                known = [text for text in context_texts(step.get("output")) if text and text.strip()]
            except JudgeError:
                continue
            if known:
                texts[str(step["matches"])] = "\n".join(known)
    return texts
