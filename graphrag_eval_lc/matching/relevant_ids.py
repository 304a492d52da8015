"""The ids that a retrieval step should find, and those that it found."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, cast

from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.matching.sparql import SparqlResults, parse_sparql_results
from graphrag_eval_lc.records import Id, RelevantIds

_IRI_IN_BRACKETS = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*)>")


def parse_document_ids(output: Any) -> list[Id]:
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


def parse_relevant_ids(value: Any) -> RelevantIds:
    """Give ``relevant_ids`` of a reference step: ids, gains by id, or groups of ids of which one will do.

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
    """Give what a reference step should find: its ``relevant_ids``, else the ids of its output.

    Raises:
        UnreadableOutput: They cannot be read.
    """
    given = reference.get("relevant_ids")
    if given is not None:
        return parse_relevant_ids(given)
    column = reference.id_column
    if column is None:
        return cast("RelevantIds", reference.parsed(parse_document_ids))
    results = reference.parsed(parse_sparql_results)
    if column not in results.columns:
        raise UnreadableOutput(f"the output has no column {column}")
    # The label of a blank node names nothing outside its own results.
    return list[Id](identifier for identifier in _column_ids(results, column) if not identifier.startswith("_:"))


def alternatives(relevant: RelevantIds) -> list[list[Id]]:
    """Give the groups of ids of which one will do; an id that is relevant of itself is a group of its own.

    Example:
        >>> alternatives({"doc-1": 2, "doc-2": 0}), alternatives(["doc-1", "doc-1"])
        ([['doc-1']], [['doc-1']])
    """
    if isinstance(relevant, dict):
        return [[identifier] for identifier, gain in relevant.items() if gain > 0]
    groups = [entry for entry in relevant if isinstance(entry, list)]
    return groups or [[identifier] for identifier in dict.fromkeys(cast("list[Id]", relevant))]


def found_ids(reference: StepView, relevant: RelevantIds, actual: StepView) -> tuple[RelevantIds, list[Id]]:
    """Give the relevant ids and those that the actual step retrieved, by rank, both in a form that compares.

    SPARQL results give the ids of their named column; where they call it otherwise, of the column that holds most
    of the relevant ids. They are texts, and so become the relevant ones.

    Raises:
        UnreadableOutput: The output of the actual step has no ids.
    """
    column = actual.id_column
    if column is None:
        return in_one_form(relevant, actual.parsed(parse_document_ids))
    results = actual.parsed(parse_sparql_results)
    if results.boolean is not None:
        raise UnreadableOutput("the answer of an ASK query has no ids")
    relevant = _as_texts(relevant)
    if column not in results.columns:
        known = {identifier for group in alternatives(relevant) for identifier in group}
        held = {name: len(known.intersection(map(id_text, _column_ids(results, name)))) for name in results.columns}
        if not held:
            raise UnreadableOutput(f"the results have no column {column}, nor any other")
        column = max(held, key=lambda name: held[name])
    return relevant, [id_text(each) for each in _column_ids(results, column)]


def in_one_form(relevant: RelevantIds, retrieved: list[Id]) -> tuple[RelevantIds, list[Id]]:
    """Give both as they are where all ids are texts or all are numbers, and else all ids as texts.

    The keys of a JSON object are texts, so that gains can have no others; and tools may write a number as a text.

    Example:
        >>> in_one_form({"1": 3.0}, [2, 1])
        ({'1': 3.0}, ['2', '1'])
    """
    kinds = {isinstance(each, str) for each in chain(_each_id(relevant), retrieved)}
    return (_as_texts(relevant), [id_text(each) for each in retrieved]) if len(kinds) > 1 else (relevant, retrieved)


def id_text(identifier: Id) -> str:
    """Give an id as a text: a whole number without decimals, and an IRI without its angle brackets.

    Example:
        >>> id_text(1.0), id_text("<urn:1>"), id_text("01")
        ('1', 'urn:1', '01')
    """
    if isinstance(identifier, float) and identifier.is_integer():
        return str(int(identifier))
    text = str(identifier)
    iri = _IRI_IN_BRACKETS.fullmatch(text) if text.startswith("<") else None
    return iri[1] if iri else text


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


def _each_id(relevant: RelevantIds) -> Iterable[Id]:
    is_grouped = isinstance(relevant, list) and relevant and isinstance(relevant[0], list)
    return chain.from_iterable(cast("list[list[Id]]", relevant)) if is_grouped else cast("Iterable[Id]", relevant)


def _as_texts(relevant: RelevantIds) -> RelevantIds:
    if isinstance(relevant, dict):
        # Of an id that stands there as a number and as a text, the higher gain counts.
        by_gain = sorted(relevant.items(), key=lambda entry: entry[1])
        return {id_text(identifier): gain for identifier, gain in by_gain}
    texts = [list(map(id_text, each)) if isinstance(each, list) else id_text(each) for each in relevant]
    return cast("RelevantIds", texts)


def _column_ids(results: SparqlResults, name: str) -> list[str]:
    """Give the texts of a column in row order, without the cells that are unbound."""
    column = results.columns[name]
    return [text for row in range(results.row_count) if (text := column.readable(row)) is not None]
