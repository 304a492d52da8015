"""The retrieval steps of a result: the texts that they retrieved, and those that they should have."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.json_values import parse_json


def retrieval_steps(
    result: Mapping[str, Any], names: Mapping[str, str], retrieving: Set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the successful actual steps that retrieve, each with the id by which ``matches`` names it.

    Args:
        result: A result.
        names: Step names by tool name.
        retrieving: The names of the steps that retrieve documents.
    """
    for index, step in enumerate(result.get("actual_steps") or ()):
        name, identifier = step.get("name"), step.get("id")
        if names.get(name, name) in retrieving and step.get("status") == "success":
            yield str(index if identifier is None else identifier), step


def context_texts(output: Any) -> list[str | None]:
    """Give the texts of an output such as ``[{"id": "doc-1", "text": "…"}]``, by rank; None for one without.

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
            "LangChain retriever gave it, keep its documents: run with --retrieval-documents (config: capture)"
        )
    return [text if isinstance(text := context.get("text"), str) else None for context in contexts]


def reference_texts(result: Mapping[str, Any], retrieving: Set[str]) -> dict[str, str]:
    """Give the texts of the reference contexts, one a line, by the id of the actual step that matched them.

    A reference step without texts (with ids only, or with an output of another form) is left out.

    Args:
        result: A result.
        retrieving: The names of the steps that retrieve documents.
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
