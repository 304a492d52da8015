"""Turning captured runs into a draft of a reference dataset, for a person to check and complete."""

import json
from collections.abc import Mapping
from typing import Any, cast

from graphrag_eval_lc.dataset import RESPONSES
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.evaluation import Responses, responses_by_id
from graphrag_eval_lc.matching.comparison import UnreadableOutput
from graphrag_eval_lc.matching.iri import holds_whole
from graphrag_eval_lc.matching.json_text import parse_json_output
from graphrag_eval_lc.matching.relevant_ids import parse_document_ids
from graphrag_eval_lc.matching.sparql import parse_sparql_results
from graphrag_eval_lc.record_files import RecordFile
from graphrag_eval_lc.records import Template

DRAFT_TEMPLATE_ID = "draft"

_SEARCH = "autocomplete_search"
_BY_ARGUMENTS = frozenset({"retrieve_time_series", "retrieve_data_points"})


def draft_dataset(responses: Responses) -> list[Template]:
    """Draft a reference dataset from what an agent did.

    Of each tool the last successful step with an output that can be compared becomes a reference step, in a group
    of its own, in the order of the run. A search whose hit a later step uses becomes ``iri_discovery``. The answers
    become the reference answers. All of it is marked with ``draft: true``: an agent's run is no truth, so check each
    question, sort the questions into templates, and take the marks away.

    Args:
        responses: The responses by question id, or a list of responses that carry their question ids.

    Returns:
        One template with a question for each response that did not fail.

    Raises:
        ResponsesError: The responses are neither a mapping nor a list of responses with question ids, or one of
            them breaks the format.

    Example:
        >>> step = {"name": "add", "args": {}, "id": "c1", "status": "success", "output": "3"}
        >>> draft_dataset([{"question_id": "q", "question_text": "1 + 2?", "actual_steps": [step]}])[0]["questions"]
        [{'id': 'q', 'question_text': '1 + 2?', 'draft': True, 'reference_steps': [[{'name': 'add', 'args': {}, \
'output': '3', 'output_media_type': 'application/json'}]]}]
    """
    by_id = responses_by_id(responses)
    values = [{"question_id": key, **value} if isinstance(value, Mapping) else value for key, value in by_id.items()]
    RecordFile(values).check(RESPONSES, ResponsesError)
    questions = [
        _question(identifier, response)
        for identifier, response in by_id.items()
        if response.get("error") is None and response.get("status") != "error"
    ]
    return [cast("Template", {"template_id": DRAFT_TEMPLATE_ID, "draft": True, "questions": questions})]


def _question(identifier: str, response: Mapping[str, Any]) -> dict[str, Any]:
    question: dict[str, Any] = {
        "id": identifier,
        "question_text": response.get("question_text") or f"(write the question of {identifier})",
        "draft": True,
    }
    if response.get("actual_answer"):
        question["reference_answer"] = response["actual_answer"]
    groups = _groups([step for step in response.get("actual_steps") or () if isinstance(step, Mapping)])
    if groups:
        question["reference_steps"] = groups
    return question


def _groups(steps: list[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    successful = [step for step in steps if step.get("status", "success") == "success"]
    drafted: dict[tuple[str, str], dict[str, Any]] = {}
    for place, step in enumerate(successful):
        name = str(step.get("name"))
        if name == _SEARCH:
            iri = _iri_used_later(step, successful[place + 1 :])
            if iri is not None:
                drafted[name, iri] = _iri_discovery(step, iri)
            continue
        reference = _reference_step(name, step)
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


def _iri_used_later(step: Mapping[str, Any], later: list[Mapping[str, Any]]) -> str | None:
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
    return "\n".join(value if isinstance(value, str) else json.dumps(value, default=str) for value in values)


def _reference_step(name: str, step: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give a reference step for an actual one; None where its output says nothing, such as no rows."""
    reference: dict[str, Any] = {"name": name, "args": step.get("args") or {}}
    output = step.get("output")
    if name in _BY_ARGUMENTS:
        return reference
    if not isinstance(output, str) or not output:
        return None
    reference["output"] = output
    if name == "sparql_query":
        try:
            results = parse_sparql_results(output)
        except UnreadableOutput:
            return None
        if results.boolean is None and not results.row_count:
            return None
        reference["output_media_type"] = "application/sparql-results+json"
        reference["required_columns"] = list(results.variables)
        return reference
    if name == "retrieval":
        return reference if _has_documents(output) else None
    if _is_json(output):
        reference["output_media_type"] = "application/json"
    return reference


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
