"""Retrieval steps: the ids that they should find and the ids that they find, their score, and their metrics."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import document_text
from graphrag_eval_lc.matching.json_and_text import parse_json_output
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.rows import SparqlResults, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import check_rows_step, step_results
from graphrag_eval_lc.metrics import ranking_scores, text_context_scores
from graphrag_eval_lc.records import Id, RelevantIds
from graphrag_eval_lc.registry.metrics import RETRIEVAL_IDS, RETRIEVAL_MISSING, RETRIEVAL_TEXT, RETRIEVAL_TEXT_MISSING
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, StepKind

Found = TypeVar("Found")

_IRI_IN_BRACKETS = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*)>")


def alternatives(relevant: RelevantIds) -> list[list[Id]]:
    """Return relevant ids as groups; finding one id of a group is enough. A single id is a group of one."""
    if isinstance(relevant, dict):
        return [[identifier] for identifier, gain in relevant.items() if gain > 0]
    groups = [entry for entry in relevant if isinstance(entry, list)]
    return groups or [[identifier] for identifier in dict.fromkeys(cast("list[Id]", relevant))]


def id_text(identifier: Id) -> str:
    """Return an id as a text: a whole number without decimals, and an IRI without its angle brackets."""
    if isinstance(identifier, float) and identifier.is_integer():
        return str(int(identifier))
    text = identifier if isinstance(identifier, str) else str(identifier)
    iri = _IRI_IN_BRACKETS.fullmatch(text) if text.startswith("<") else None
    return iri[1] if iri else text


class WantedIds:
    """The relevant ids of a reference step, as texts, which is how ids are compared."""

    def __init__(self, given: RelevantIds) -> None:
        self.ids: RelevantIds
        if isinstance(given, dict):  # an id may be given both as a number and as a text: the higher gain counts
            self.ids = {id_text(each): gain for each, gain in sorted(given.items(), key=itemgetter(1))}
        else:
            texts = [list(map(id_text, each)) if isinstance(each, list) else id_text(each) for each in given]
            self.ids = cast("RelevantIds", texts)
        self.groups = [frozenset(map(str, group)) for group in alternatives(self.ids)]

    def held(self, found: frozenset[str]) -> int:
        """Return the number of groups of which at least one id is found."""
        return sum(not found.isdisjoint(group) for group in self.groups)


class FoundIds:
    """The ids that an actual step retrieved, as texts, by rank."""

    def __init__(self, ids: Iterable[Id]) -> None:
        self.ids = list(map(id_text, ids))
        self._tops: dict[int | None, frozenset[str]] = {}

    def top(self, k: int | None) -> frozenset[str]:
        """Return the first k distinct ids, or all."""
        if k not in self._tops:
            self._tops[k] = frozenset(islice(dict.fromkeys(self.ids), k))
        return self._tops[k]


def match_retrieval_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score recall@k of the retrieved ids; k is the reference step's ``args.k``, else the actual step's, else all."""
    try:
        wanted = reference.once(_wanted)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    if not wanted.groups:
        return explained(0.0, "the reference step names no relevant documents")
    try:
        found = _found(actual, wanted)
    except CutOutput:
        raise  # relevant ids may have followed after the cut
    except UnreadableOutput as problem:
        # A query that was not a search is not a failed search.
        is_query = actual.id_column is not None and reference.get("name") not in {actual.get("name"), actual.tool}
        output, hint = actual.get("output"), ""
        if actual.id_column is None and isinstance(output, str) and output.lstrip()[:1] not in {"{", "["}:
            hint = (  # it may be the text that a retriever tool built from its documents
                "; if it is from a LangChain retriever, keep its documents: run with --retrieval-documents TOOL "
                "(config: capture: {retrieval_documents: [TOOL]})"
            )
        return explained(0.0, f"{problem}{hint}", unreadable=None if is_query else str(problem))
    k = reference.once(_cut_off)
    k = actual.once(_cut_off) if k is None else k
    # The same as metrics.recall_at_k, but from sets that are made only once.
    most = len(wanted.groups) if k is None else min(k, len(wanted.groups))
    score = min(wanted.held(found.top(k)), most) / most
    # Many steps make hundreds of thousands of pairs, so both partials hold as little as possible.
    return StepScore(score, partial(_reason, wanted, found, k), partial(float, score))


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


def _reason(wanted: WantedIds, found: FoundIds, k: int | None) -> str:
    groups, top = alternatives(wanted.ids), found.top(k)
    missing = [group for group in groups if top.isdisjoint(group)]
    where = f"the top {k}" if k is not None else f"the {len(top)} retrieved"
    kind = "documents" if all(len(group) == 1 for group in groups) else "groups of documents"
    text = f"{len(groups) - len(missing)} of {len(groups)} relevant {kind} in {where}"
    return f"{text}; missing, e.g. {' or '.join(map(str, missing[0]))}" if missing else text


def _check_step(step: StepView) -> Iterator[Finding]:
    """Report reference steps without relevant documents."""
    if step.id_column is not None:  # retrieval by SPARQL
        yield from check_rows_step(step)
    elif not step.parsed(parse_document_ids):
        yield Finding("no relevant documents", "List at least one, as [{id: …}].", ("output",))


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for a retrieval; None if it found no ids."""
    del later
    return {key: step[key] for key in ("name", "args", "output")} if parse_document_ids(step["output"]) else None


def parse_document_ids(output: Any) -> list[Id]:
    """Return the ids of an output such as ``[{"id": "doc-1", "text": "…"}, …]``, by rank."""
    documents = parse_json_output(output)
    if not isinstance(documents, list):
        raise UnreadableOutput(f"the output is not a list of documents but {type(documents).__name__}")
    for rank, document in enumerate(documents, start=1):
        if not isinstance(document, dict) or not isinstance(document.get("id"), str | int | float):
            raise UnreadableOutput(f"document {rank} has no id")
    return [document["id"] for document in documents]


def parse_relevant_ids(value: Any) -> RelevantIds:
    """Return ``relevant_ids`` of a reference step: ids, gains by id, or groups of ids of which one is enough."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes):
        raise UnreadableOutput(f"relevant_ids is {value!r:.40}, not a list or a mapping")
    groups = [
        entry for entry in value if isinstance(entry, Collection) and not isinstance(entry, str | bytes | Mapping)
    ]
    if groups and len(groups) < len(value):
        raise UnreadableOutput("relevant_ids mixes ids and groups")
    if not all(groups):
        raise UnreadableOutput("relevant_ids has a group without ids")
    if not value:
        raise UnreadableOutput("relevant_ids is empty")
    for each in chain.from_iterable(groups) if groups else value:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise UnreadableOutput(f"relevant_ids has {each!r:.40}, which is not an id")
    if not isinstance(value, Mapping):
        return [list(group) for group in groups] if groups else list(value)
    for each, gain in value.items():
        if isinstance(gain, bool) or not isinstance(gain, int | float) or not 0 <= gain < math.inf:
            raise UnreadableOutput(f"relevant_ids has the gain {gain!r:.40} for {each!r:.40}, not a number from 0")
    if not any(value.values()):
        raise UnreadableOutput("relevant_ids has no gain above 0")
    return dict(value)


def relevant_ids(reference: StepView) -> RelevantIds:
    """Return what a reference step should find: its ``relevant_ids``, else the ids of its output."""
    given = reference.get("relevant_ids")
    if given is not None:
        return parse_relevant_ids(given)
    column = reference.id_column
    if column is None:
        return cast("RelevantIds", reference.parsed(parse_document_ids))
    # The label of a blank node names nothing outside its own results.
    ids = _column_ids(reference.parsed(read_sparql_results), column)
    return list[Id](identifier for identifier in ids if not identifier.startswith("_:"))


def found_ids(relevant: RelevantIds, actual: StepView) -> tuple[RelevantIds, list[str]]:
    """Return the relevant ids and the ids that the actual step retrieved, by rank; both as texts, to be compared.

    In SPARQL results, the retrieved ids are the cells of the id column. Without a column of that name, they are
    the cells of the column that holds most of the relevant ids.
    """
    wanted = WantedIds(relevant)
    return wanted.ids, _found(actual, wanted).ids


def _column_ids(results: SparqlResults, name: str) -> list[str]:
    """Return the texts of a column in row order, without unbound cells."""
    if name in results.faults:
        raise UnreadableOutput(results.fault_of(name))
    if name not in results.columns:
        raise UnreadableOutput(f"the output has no column {name}")
    column = results.columns[name]
    return [text for row in range(results.row_count) if (text := column.readable(row)) is not None]


def _found_in_columns(actual: StepView) -> list[FoundIds]:
    """Return the ids of the id column or, if SPARQL results have none of that name, of each column."""
    results, column = step_results(actual), str(actual.id_column)
    if results.boolean is not None:
        raise UnreadableOutput("the answer of an ASK query has no ids")
    is_there = column in results.columns or column in results.faults
    if not is_there and not results.columns:
        why = "".join(f"; {results.fault_of(name)}" for name in results.faults)
        raise UnreadableOutput(f"the results have no column {column} and no other{why}")
    return [FoundIds(_column_ids(results, name)) for name in ([column] if is_there else results.columns)]


def _wanted(reference: StepView) -> WantedIds:
    return WantedIds(relevant_ids(reference))


def _found_documents(actual: StepView) -> FoundIds:
    return FoundIds(actual.parsed(parse_document_ids))


def _found(actual: StepView, wanted: WantedIds) -> FoundIds:
    if actual.id_column is None:
        return actual.once(_found_documents)
    return max(actual.once(_found_in_columns), key=lambda found: wanted.held(found.top(None)))


class RetrievalPair(NamedTuple):
    """A reference step of retrieval, the actual step that fulfils it, if any, and the index of that step."""

    reference: StepView
    actual: StepView | None = None
    position: int | None = None


class RetrievalMeasures(NamedTuple):
    """The retrieval metrics of a question: the keys to add to its actual steps, by index, and to its result.

    The result's keys count the reference steps that no step fulfils, separately for those with relevant ids and
    those with texts. A count is absent without such reference steps.
    """

    of_steps: dict[int, dict[str, float | str]]
    of_result: dict[str, int]


def retrieval_measures(pairs: Iterable[RetrievalPair], config: RetrievalConfig) -> RetrievalMeasures:
    """Compute the retrieval metrics of a question from its scored reference steps of retrieval.

    A reference step without relevant ids, or whose ids cannot be read, is neither measured nor counted as missing.
    """
    of_steps: dict[int, dict[str, float | str]] = {}
    missing, text = Counter[str](), config.text
    for reference, actual, position in pairs:
        relevant = readable(reference, relevant_ids) or []
        texts = [each for each in _texts(reference) if each] if text.enabled else []
        has_relevant, is_missing = bool(alternatives(relevant)), position is None
        if has_relevant:
            missing[RETRIEVAL_MISSING] += is_missing
        if texts:
            missing[RETRIEVAL_TEXT_MISSING] += is_missing
        if actual is None or position is None:
            continue
        record: dict[str, float | str] = {}
        if has_relevant:
            with _error_noted(record, RETRIEVAL_IDS):
                scores = ranking_scores(*found_ids(relevant, actual), config.parsed_measures())
                record |= {f"{RETRIEVAL_IDS}{key}": score for key, score in scores.items()}
        if texts and (found := _texts(actual)):
            with _error_noted(record, RETRIEVAL_TEXT):
                scores = text_context_scores(found, texts, threshold=text.threshold, distance=text.distance)
                record |= {f"{RETRIEVAL_TEXT}{key}": score for key, score in scores.items()}
        if record:
            of_steps[position] = record
    return RetrievalMeasures(of_steps, dict(missing))


def readable(step: StepView, read: Callable[[StepView], Found]) -> Found | None:
    """Return what ``read`` returns for a step; None if the output cannot be read."""
    try:
        return read(step)
    except UnreadableOutput:
        return None


@contextmanager
def _error_noted(record: dict[str, float | str], prefix: str) -> Iterator[None]:
    """Record an error in the keys of one step, so that the other metrics of the question remain."""
    try:
        yield
    except Exception as problem:
        is_plain = isinstance(problem, ValueError) and str(problem)
        record[f"{prefix}error"] = str(problem) if is_plain else f"{type(problem).__name__}: {problem}"


def _texts(step: StepView) -> list[str]:
    """Return the texts of the documents of a step, by rank; empty if no document has a text."""
    documents = readable(step, lambda step: step.parsed(parse_json_output))
    texts = [document_text(each) or "" for each in documents] if isinstance(documents, list) else []
    return [text if text.strip() else "" for text in texts] if any(map(str.strip, texts)) else []


DOCUMENTS = StepKind(
    key="retrieval",
    title="documents",
    serves=((RETRIEVAL, None),),
    matcher=match_retrieval_steps,
    parse=parse_document_ids,
    check=_check_step,
    draft=_draft_step,
)
