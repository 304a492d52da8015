"""What of a response becomes the references of its question."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.comparison import UnreadableOutput
from graphrag_eval_lc.matching.iri import holds_whole
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.matching.relevant_ids import parse_document_ids
from graphrag_eval_lc.matching.sparql import SPARQL_RESULTS, SparqlResults, parse_sparql_results
from graphrag_eval_lc.matching.time_series import COMPARED_BY_ARGUMENTS

_SEARCH = "autocomplete_search"
_QUERY = "sparql_query"


def drafted_references(response: Mapping[str, Any], config: EvaluationConfig) -> dict[str, Any]:
    """Give the reference answer and the groups of reference steps for which a response may stand.

    Args:
        response: A response that did not fail.
        config: The configuration: what the tools are called among the reference steps, and which are retrieval.

    Returns:
        ``reference_answer`` and ``reference_steps``, each only where there is one.
    """
    references: dict[str, Any] = {}
    if response.get("actual_answer"):
        references["reference_answer"] = response["actual_answer"]
    names = config.steps.names
    steps = [
        {**step, "name": names.get(str(step.get("name")), str(step.get("name")))}
        for step in response.get("actual_steps") or ()
        if isinstance(step, Mapping)
    ]
    groups = _groups(steps, config.retrieval.document_step_names(names))
    if groups:
        references["reference_steps"] = groups
    return references


def _groups(steps: list[dict[str, Any]], document_names: frozenset[str]) -> list[list[dict[str, Any]]]:
    successful = [step for step in steps if step.get("status", "success") == "success"]
    drafted: dict[tuple[str, str], dict[str, Any]] = {}
    for place, step in enumerate(successful):
        name = step["name"]
        if name == _SEARCH:
            iri = _iri_used_later(step, successful[place + 1 :])
            if iri is not None:
                drafted[name, iri] = _iri_discovery(step, iri)
            continue
        reference = _reference_step(name, step, document_names)
        if reference is not None:
            drafted.pop((name, ""), None)
            drafted[name, ""] = reference
    return [[reference] for reference in drafted.values()]


def _iri_discovery(step: Mapping[str, Any], iri: str) -> dict[str, Any]:
    return {
        "name": "iri_discovery",
        "args": {"query": (step.get("args") or {}).get("query")},
        "output": iri,
        "output_media_type": "text/uri",
    }


def _iri_used_later(step: Mapping[str, Any], later: list[dict[str, Any]]) -> str | None:
    """Give the first hit of a search that stands in the arguments of a later step."""
    try:
        results = parse_sparql_results(step.get("output"))
    except UnreadableOutput:
        return None
    asked = "\n".join(_argument_text(other) for other in later)
    for column in results.columns.values():
        for row, text in enumerate(column.texts):
            if column.kind(row) == "uri" and holds_whole(asked, text):
                return text
    return None


def _argument_text(step: Mapping[str, Any]) -> str:
    args = step.get("args")
    values = args.values() if isinstance(args, Mapping) else [args]
    return "\n".join(value if isinstance(value, str) else json_text(value) for value in values)


def _reference_step(name: str, step: Mapping[str, Any], document_names: frozenset[str]) -> dict[str, Any] | None:
    """Give a reference step for an actual one; None where its output says nothing, such as no rows."""
    reference: dict[str, Any] = {"name": name, "args": step.get("args") or {}}
    output = step.get("output")
    if name in COMPARED_BY_ARGUMENTS:
        return reference
    if not isinstance(output, str) or not output:
        return None
    reference["output"] = output
    if name in document_names:
        return reference if _has_documents(output) else None
    results = _sparql_results(output)
    if results is not None:
        if results.boolean is None and not results.row_count:
            return None
        return {**reference, "output_media_type": SPARQL_RESULTS, "required_columns": list(results.variables)}
    if name == _QUERY:  # such as the Turtle of a DESCRIBE
        return None
    if _is_json(output):
        reference["output_media_type"] = "application/json"
    return reference


def _sparql_results(output: str) -> SparqlResults | None:
    """Give the SPARQL results that an output is, whatever the tool is called; None where it is none."""
    try:
        return parse_sparql_results(output)
    except UnreadableOutput:
        return None


def _has_documents(output: str) -> bool:
    try:
        return bool(parse_document_ids(output))
    except UnreadableOutput:
        return False


def _is_json(output: str) -> bool:
    try:
        parse_json_output(output)
    except UnreadableOutput:
        return False
    return True
