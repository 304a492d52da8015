"""The ids that a retrieval step should find, and those that it found."""

import math
from collections.abc import Collection, Mapping
from typing import Any, cast

from graphrag_eval_lc.matching.comparison import StepView, UnreadableOutput
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.matching.sparql import SparqlResults, parse_sparql_results
from graphrag_eval_lc.records import Id, RelevantIds

ID_COLUMN = "id_column"
"""The key under which a view of a step names the column of its SPARQL results that holds the ids."""


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
    column = reference.get(ID_COLUMN)
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
    """Give the relevant ids as the actual step writes them, and the ids that it retrieved, by rank.

    SPARQL results give the ids of their named column; where they call it otherwise, of the column that holds most
    of the relevant ids. Numbers in SPARQL results are texts, and so may be those that ``relevant_ids`` stands for.

    Raises:
        UnreadableOutput: The output of the actual step has no ids.
    """
    column = actual.get(ID_COLUMN)
    if column is None:
        retrieved = actual.parsed(parse_document_ids)
        is_text = reference.get("relevant_ids") is not None and all(isinstance(each, str) for each in retrieved)
        return _as_texts(relevant) if is_text else relevant, retrieved
    results = actual.parsed(parse_sparql_results)
    if results.boolean is not None:
        raise UnreadableOutput("the answer of an ASK query has no ids")
    relevant = _as_texts(relevant)
    if column not in results.columns:
        known = {identifier for group in alternatives(relevant) for identifier in group}
        held = {name: len(known & set(_column_ids(results, name))) for name in results.columns}
        if not held:
            raise UnreadableOutput(f"the results have no column {column}, nor any other")
        column = max(held, key=lambda name: held[name])
    return relevant, list[Id](_column_ids(results, column))


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


def _as_texts(relevant: RelevantIds) -> RelevantIds:
    if isinstance(relevant, dict):
        return {str(identifier): gain for identifier, gain in relevant.items()}
    texts = [list(map(str, each)) if isinstance(each, list) else str(each) for each in relevant]
    return cast("RelevantIds", texts)


def _column_ids(results: SparqlResults, name: str) -> list[str]:
    """Give the texts of a column in row order, without the cells that are unbound."""
    column = results.columns[name]
    return [text for row in range(results.row_count) if (text := column.readable(row)) is not None]
