"""Retrieval steps: the ids that they should find and those that they find, their score, and their measures."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import document_text
from graphrag_eval_lc.matching.compared_ids import FoundIds, WantedIds, alternatives, id_text, in_one_form
from graphrag_eval_lc.matching.json_and_text import parse_json_output
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.rows import SparqlResults, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import check_rows_step, step_results
from graphrag_eval_lc.metrics import ranking_scores, text_context_scores
from graphrag_eval_lc.records import Id, RelevantIds
from graphrag_eval_lc.registry.metrics import RETRIEVAL_IDS, RETRIEVAL_TEXT
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, StepKind


def match_retrieval_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score recall@k of the retrieved ids; k is the reference step's ``args.k``, else the actual step's, else all."""
    try:
        wanted = reference.once(_wanted)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    if not wanted.ids:
        return explained(0.0, "the reference step names no relevant documents")
    try:
        relevant, found = _compared_ids(wanted, actual)
    except CutOutput:
        raise  # which of the relevant ids stood behind the cut is not known
    except UnreadableOutput as problem:
        # A query that was no search is no search that failed.
        is_query = actual.id_column is not None and reference.get("name") not in {actual.get("name"), actual.tool}
        hint = "" if is_query or actual.id_column is not None else _hint(actual.get("output"))
        return explained(0.0, f"{problem}{hint}", unreadable=None if is_query else str(problem))
    k = reference.once(_cut_off)
    k = actual.once(_cut_off) if k is None else k
    score = relevant.recall_at_k(found, k)
    # Of many steps there are hundreds of thousands of pairs, so that these two are small.
    return StepScore(score, partial(_reason, wanted.ids, relevant.ids, found.ids, k), _always(score))


@lru_cache(maxsize=1024)
def _always(score: float) -> Callable[[], float]:
    return lambda: score


def _hint(output: object) -> str:
    """Say how to keep documents where an output may be the text that a retriever tool made of them."""
    if not isinstance(output, str) or output.lstrip()[:1] in {"{", "["}:
        return ""
    return (
        "; if a LangChain retriever gave it, keep its documents: run with --retrieval-documents TOOL "
        "(config: capture: {retrieval_documents: [TOOL]})"
    )


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


def _check_step(step: StepView) -> Iterator[Finding]:
    """Find reference steps without relevant documents."""
    if step.id_column is not None:  # retrieval by SPARQL
        yield from check_rows_step(step)
    elif not step.parsed(parse_document_ids):
        yield Finding("no relevant documents", "List at least one, as [{id: …}].", ("output",))


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for a retrieval; None where it found no ids."""
    del later
    return {key: step[key] for key in ("name", "args", "output")} if parse_document_ids(step["output"]) else None


def parse_document_ids(output: Any) -> list[Id]:
    """Return the ids of an output such as ``[{"id": "doc-1", "text": "…"}, …]``, by rank.

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


def parse_relevant_ids(value: Any) -> RelevantIds:
    """Return ``relevant_ids`` of a reference step: ids, gains by id, or groups of ids of which one will do.

    Raises:
        UnreadableOutput: It is none of these, or names nothing that is relevant.

    Example:
        >>> parse_relevant_ids([["doc-1", "doc-1b"], ["doc-2"]])
        [['doc-1', 'doc-1b'], ['doc-2']]
    """
    if isinstance(value, Mapping):
        return _gains(value)
    if not _is_collection(value):
        raise UnreadableOutput(f"relevant_ids is {value!r:.40}, no list and no mapping")
    groups = [entry for entry in value if _is_collection(entry)]
    if groups and len(groups) < len(value):
        raise UnreadableOutput("relevant_ids mixes ids and groups")
    if not all(groups):
        raise UnreadableOutput("relevant_ids has a group without ids")
    if not value:
        raise UnreadableOutput("relevant_ids is empty")
    for identifier in (each for group in groups for each in group) if groups else value:
        _require_id(identifier)
    return [list(group) for group in groups] if groups else list(value)


def relevant_ids(reference: StepView) -> RelevantIds:
    """Return what a reference step should find: its ``relevant_ids``, else the ids of its output.

    Raises:
        UnreadableOutput: They cannot be read.
    """
    given = reference.get("relevant_ids")
    if given is not None:
        return parse_relevant_ids(given)
    column = reference.id_column
    if column is None:
        return cast("RelevantIds", reference.parsed(parse_document_ids))
    results = reference.parsed(read_sparql_results)
    if column in results.faults:
        raise UnreadableOutput(results.fault_of(column))
    if column not in results.columns:
        raise UnreadableOutput(f"the output has no column {column}")
    # The label of a blank node names nothing outside its own results.
    return list[Id](identifier for identifier in _column_ids(results, column) if not identifier.startswith("_:"))


def found_ids(reference: StepView, relevant: RelevantIds, actual: StepView) -> tuple[RelevantIds, list[Id]]:
    """Return the relevant ids and those that the actual step retrieved, by rank, both in a form that compares.

    Of SPARQL results these are the cells of the id column or, where there is no column of that name, of the column that
    holds most of the relevant ids. They are texts, and so become the relevant ones.

    Raises:
        UnreadableOutput: The output of the actual step has no ids.
    """
    wanted, found = _compared_ids(WantedIds(relevant), actual)
    return wanted.ids, found.ids


def _gains(value: Mapping[Any, Any]) -> RelevantIds:
    for identifier, gain in value.items():
        _require_id(identifier)
        if isinstance(gain, bool) or not isinstance(gain, int | float) or not 0 <= gain < math.inf:
            raise UnreadableOutput(f"relevant_ids gives {identifier!r:.40} the gain {gain!r:.40}, no number from 0")
    if not any(value.values()):
        raise UnreadableOutput("relevant_ids has no gain above 0" if value else "relevant_ids is empty")
    return dict(value)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _require_id(identifier: Any) -> None:
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        raise UnreadableOutput(f"relevant_ids has {identifier!r:.40}, which is no id")


def _column_ids(results: SparqlResults, name: str) -> list[str]:
    """Return the texts of a column in row order, without the cells that are unbound."""
    column = results.columns[name]
    return [text for row in range(results.row_count) if (text := column.readable(row)) is not None]


class _FoundInColumns:
    """The ids in each column of an actual step's SPARQL results."""

    def __init__(self, actual: StepView) -> None:
        self._results = step_results(actual)
        if self._results.boolean is not None:
            raise UnreadableOutput("the answer of an ASK query has no ids")
        self._found: dict[str, FoundIds] = {}

    def of(self, column: str, wanted: WantedIds) -> FoundIds:
        """Return those of a column; where there is none of that name, of the one that holds most of the wanted ids."""
        names, faults = self._results.columns, self._results.faults
        if column in faults:
            raise UnreadableOutput(self._results.fault_of(column))
        if column not in names:
            if not names:
                why = "".join(f"; {self._results.fault_of(name)}" for name in faults)
                raise UnreadableOutput(f"the results have no column {column}, nor any other{why}")
            column = max(names, key=lambda name: len(wanted.known & self._ids(name).top(None)))
        return self._ids(column)

    def _ids(self, column: str) -> FoundIds:
        if column not in self._found:
            self._found[column] = FoundIds([id_text(each) for each in _column_ids(self._results, column)])
        return self._found[column]


def _wanted(reference: StepView) -> WantedIds:
    return WantedIds(relevant_ids(reference))


def _found_documents(actual: StepView) -> FoundIds:
    return FoundIds(actual.parsed(parse_document_ids))


def _compared_ids(wanted: WantedIds, actual: StepView) -> tuple[WantedIds, FoundIds]:
    """Return both in a form that compares; see ``found_ids``."""
    if actual.id_column is not None:
        return wanted.texts, actual.once(_FoundInColumns).of(actual.id_column, wanted.texts)
    return in_one_form(wanted, actual.once(_found_documents))


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
    """The retrieval measures of a question.

    Attributes:
        of_steps: By index of the actual step: the keys that are added to it.
        missing: Number of reference steps with relevant ids that no step fulfils; None where none has relevant ids.
        text_missing: Number of reference steps with texts that no step fulfils; None where none has texts.
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
        record: dict[str, float | str] = {}
        if relevant is not None:
            with _error_noted(record, RETRIEVAL_IDS):
                scores = ranking_scores(*found_ids(reference, relevant, actual), config.parsed_measures())
                record |= {f"{RETRIEVAL_IDS}{key}": score for key, score in scores.items()}
        if texts and (found := _texts(actual)):
            with _error_noted(record, RETRIEVAL_TEXT):
                text = config.text
                scores = text_context_scores(found, texts, threshold=text.threshold, distance=text.distance)
                record |= {f"{RETRIEVAL_TEXT}{key}": score for key, score in scores.items()}
        if record:
            measured.of_steps[position] = record
    return measured


def _relevant_ids(reference: StepView) -> RelevantIds | None:
    try:
        relevant = relevant_ids(reference)
    except UnreadableOutput:
        return None
    return relevant if alternatives(relevant) else None


@contextmanager
def _error_noted(record: dict[str, float | str], prefix: str) -> Iterator[None]:
    """Note an error in the record of a step; whatever it is, the other metrics of the question are good."""
    try:
        yield
    except Exception as problem:
        is_told = isinstance(problem, ValueError) and str(problem)
        record[f"{prefix}error"] = str(problem) if is_told else f"{type(problem).__name__}: {problem}"


def _texts(step: StepView) -> list[str]:
    """Return the texts of the documents of a step, by rank; none where no document has a text.

    A document without text counts as an empty one: the others keep their ranks.
    """
    try:
        return step.parsed(_document_texts)
    except UnreadableOutput:
        return []


def _document_texts(output: Any) -> list[str]:
    documents = parse_json_output(output)
    if not isinstance(documents, list):
        return []
    texts = [_text_or_empty(document) for document in documents]
    return texts if any(texts) else []


def _text_or_empty(document: Any) -> str:
    text = document_text(document) or ""
    return text if text.strip() else ""


DOCUMENTS = StepKind(
    key="retrieval",
    title="documents",
    serves=((RETRIEVAL, None),),
    matcher=match_retrieval_steps,
    parse=parse_document_ids,
    check=_check_step,
    draft=_draft_step,
)
