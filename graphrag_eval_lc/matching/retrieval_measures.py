"""What the matched retrieval steps of a question measure without a language model, and how many are missing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphrag_eval_lc.config import RetrievalConfig, TextSimilarityConfig
from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.matching.relevant_ids import alternatives, found_ids, relevant_ids
from graphrag_eval_lc.metrics import ranking_scores, text_context_scores
from graphrag_eval_lc.records import RelevantIds
from graphrag_eval_lc.registry.metrics import RETRIEVAL_IDS, RETRIEVAL_TEXT


class RetrievalPair(NamedTuple):
    """A reference step of retrieval and the actual step that fulfils it.

    Attributes:
        reference: The reference step.
        actual: The actual step; None where none fulfils it.
        position: Its index among the actual steps.
    """

    reference: StepView
    actual: StepView | None = None
    position: int | None = None


@dataclass(slots=True)
class RetrievalMeasures:
    """The measures of a question.

    Attributes:
        of_steps: By index of the actual step: the keys that it gets.
        missing: Number of reference steps with relevant ids that nothing fulfils; None where none has relevant ids.
        text_missing: Number of those with texts; None where none has texts.
    """

    of_steps: dict[int, dict[str, float | str]] = field(default_factory=dict)
    missing: int | None = None
    text_missing: int | None = None


def retrieval_measures(pairs: Iterable[RetrievalPair], config: RetrievalConfig) -> RetrievalMeasures:
    """Measure the retrieval of a question.

    A reference step without relevant ids, or whose ids cannot be read, is neither measured nor missing.

    Args:
        pairs: The reference steps of retrieval that count.
        config: What is measured.
    """
    measured = RetrievalMeasures()
    for reference, actual, position in pairs:
        relevant = _relevant_ids(reference)
        texts = [text for text in _texts(reference) if text] if config.text.enabled else []
        is_missing = position is None
        if relevant is not None:
            measured.missing = (measured.missing or 0) + is_missing
        if texts:
            measured.text_missing = (measured.text_missing or 0) + is_missing
        if actual is None or position is None:
            continue
        record = {} if relevant is None else _of_ids(reference, relevant, actual, config)
        if texts and (found := _texts(actual)):
            record |= _of_texts(found, texts, config.text)
        if record:
            measured.of_steps[position] = record
    return measured


def _relevant_ids(reference: StepView) -> RelevantIds | None:
    try:
        relevant = relevant_ids(reference)
    except UnreadableOutput:
        return None
    return relevant if alternatives(relevant) else None


def _of_ids(
    reference: StepView, relevant: RelevantIds, actual: StepView, config: RetrievalConfig
) -> dict[str, float | str]:
    try:
        scores = ranking_scores(*found_ids(reference, relevant, actual), config.parsed_measures())
    except Exception as problem:  # whatever it is, the other figures of the question are good
        return {f"{RETRIEVAL_IDS}error": _told(problem)}
    return {f"{RETRIEVAL_IDS}{key}": score for key, score in scores.items()}


def _of_texts(retrieved: list[str], references: list[str], config: TextSimilarityConfig) -> dict[str, float | str]:
    try:
        scores = text_context_scores(retrieved, references, threshold=config.threshold, distance=config.distance)
    except Exception as problem:
        return {f"{RETRIEVAL_TEXT}error": _told(problem)}
    return {f"{RETRIEVAL_TEXT}{key}": score for key, score in scores.items()}


def _texts(step: StepView) -> list[str]:
    """Give the texts of the documents of a step, by rank; none where none has a text.

    A document without text is an empty one among them: it keeps its rank and is like no other.
    """
    try:
        return step.parsed(_document_texts)
    except UnreadableOutput:
        return []


def _document_texts(output: Any) -> list[str]:
    documents = parse_json_output(output)
    if not isinstance(documents, list):
        return []
    texts = [_document_text(document) for document in documents]
    return texts if any(texts) else []


def _document_text(document: Any) -> str:
    found = [document.get(key) for key in ("text", "page_content")] if isinstance(document, dict) else []
    return next((text for text in found if isinstance(text, str) and text.strip()), "")


def _told(problem: Exception) -> str:
    if isinstance(problem, ValueError) and str(problem):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"
