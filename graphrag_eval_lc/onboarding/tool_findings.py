"""Finds out about an agent's tools: which it has, what each returned, and how its steps would be compared."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from langchain_core.tools import BaseTool

from graphrag_eval_lc.config import OutputFormat
from graphrag_eval_lc.dataset.query_language import Language, language_of
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.iri_discovery import AUTOCOMPLETE_SEARCH, iris_in_text, readable_text
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.retrieval import parse_document_ids
from graphrag_eval_lc.matching.rows import read_sparql_results
from graphrag_eval_lc.matching.rows.json_forms import SINGLE_FORMS
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.matching.rows.row_steps import CYPHER_QUERY, SPARQL_QUERY, media_type_of_form
from graphrag_eval_lc.records import is_error, step_status
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, drafting_kinds
from graphrag_eval_lc.texts import counted

_DEEPEST = 12
_INNER = ("bound", "first", "last", "builder", "runnable")
_SEVERAL = ("nodes", "middle", "steps", "branches")


def tools_in(runnable: object) -> dict[str, BaseTool]:
    """Return the tools of an agent by their names, in its order.

    The nodes of a graph and of its subgraphs are searched for LangGraph's ``ToolNode``. Tools that a function calls
    itself, and those of an agent on a server, are not visible.
    """
    found: dict[str, BaseTool] = {}
    for name, tool in _tools_below(runnable, set(), 0):
        found.setdefault(name, tool)
    return found


def _tools_below(node: object, seen: set[int], depth: int) -> Iterator[tuple[str, BaseTool]]:
    if node is None or id(node) in seen or depth > _DEEPEST:
        return
    seen.add(id(node))
    tools = getattr(node, "tools_by_name", None)
    if isinstance(tools, Mapping) and all(isinstance(each, BaseTool) for each in tools.values()):
        yield from ((str(name), tool) for name, tool in tools.items())
        return
    parts = [getattr(node, name, None) for name in _INNER]
    for name in _SEVERAL:
        several = getattr(node, name, None)
        if isinstance(several, Mapping):
            parts.extend(several.values())
        elif isinstance(several, Iterable) and not isinstance(several, str | bytes):
            parts.extend(several)
    for part in parts:
        yield from _tools_below(part, seen, depth + 1)


Gives = Literal["rows", "documents", "entities", "text", "unknown"]
_REFERENCE_NAMES: Mapping[Language, str] = {"SPARQL": SPARQL_QUERY, "Cypher": CYPHER_QUERY}
_IRI = re.compile(r"<?(https?://|urn:)\S+$")
_TEXT_KEYS = {"text", "page_content", "content"}
_DEEPEST_PATH = 3
_MOST_ROWS = 100
_MOST_KEYS = 50


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """What is known about a tool."""

    tool: str
    calls: int = 0  # how many of its calls succeeded
    gives: Gives = "unknown"  # what its outputs are; entities are rows with IRIs that a search by name found
    language: Language | None = None  # the query language of its argument, if one was seen
    reference_name: str | None = None  # the name of the reference steps that it fulfils; None: the tool's own name
    is_known: bool = False  # whether steps of its name have a kind already, so that the config need not mention it
    # how the config must declare its outputs, as in steps.outputs; None if it need not
    declared: Mapping[str, Any] | None = None
    form: str = ""  # what its outputs were read as, for people; empty if they were not
    note: str = ""  # what the user should know
    has_media_type: bool = True  # whether there is a media type of rows in that form

    @property
    def about(self) -> str:
        """A short description of what its calls returned."""
        if not self.calls:
            return f"not called yet; {self.note}" if self.note else "not called yet"
        gives = "text" if self.gives == "unknown" else self.gives
        given = f"{gives} as {self.form}" if self.form else gives
        return f"{counted(self.calls, 'call')}: {f'{self.language}, ' if self.language else ''}{given}"


def tool_findings(responses: Iterable[Mapping[str, Any]], tools: Mapping[str, str] | None = None) -> list[ToolFinding]:
    """Return what is known about each tool, in the order of the first calls. Tools that were not called are last.

    ``tools`` has the descriptions of the tools by name, if they are known.

    Example:
        >>> rows = '{"head": {"vars": ["n"]}, "results": {"bindings": []}}'
        >>> step = {"name": "run_query", "args": {"q": "SELECT ?n {?n ?p ?o}"}, "status": "success", "output": rows}
        >>> [finding] = tool_findings([{"question_id": "q", "actual_steps": [step]}])
        >>> finding.about
        '1 call: SPARQL, rows as SPARQL JSON'
    """
    steps: dict[str, list[Mapping[str, Any]]] = {}
    for response in responses:
        for step in () if is_error(response) else response.get("actual_steps") or ():
            if isinstance(step, Mapping) and step_status(step.get("status", "success")) == "success":
                steps.setdefault(str(step.get("name")), []).append(step)
    called = [_observed(tool, of_tool) for tool, of_tool in steps.items()]
    return called + [_guessed(tool, text) for tool, text in (tools or {}).items() if tool not in steps]


def _observed(tool: str, steps: Sequence[Mapping[str, Any]]) -> ToolFinding:
    """Return what the successful calls of a tool show."""
    language: Language | None = next(filter(None, (_language(step.get("args")) for step in steps)), None)
    outputs = [step.get("output") for step in steps]
    is_known = bool(drafting_kinds(tool))
    base: dict[str, Any] = {"tool": tool, "calls": len(steps), "language": language, "is_known": is_known}
    if language is None and all(map(_is_documents, outputs)):
        name = None if is_known else RETRIEVAL
        return ToolFinding(**base, gives="documents", form="JSON with ids", reference_name=name)
    results, declared = _rows(outputs, may_be_single=language is not None)
    if language is None and (results is None or "format" in (declared or {})) and _lists_iris(outputs):
        name = None if is_known else AUTOCOMPLETE_SEARCH
        return ToolFinding(**base, gives="entities", form="IRIs", reference_name=name)
    if results is None:
        hint = "have the tool return JSON, or name the path to the rows in steps.outputs"
        note = f"{tool} accepts {language}, and its output cannot be read as rows: {hint}" if language else ""
        return ToolFinding(**base, gives="text", note=note)
    is_search = language is None and _finds_entities(results)
    name = AUTOCOMPLETE_SEARCH if is_search else _REFERENCE_NAMES.get(language) if language else None
    return ToolFinding(
        **base,
        gives="entities" if is_search else "rows",
        form=results[0].form,
        reference_name=None if is_known or name == tool else name,
        declared=declared,
        has_media_type=media_type_of_form(results[0], outputs[0]) is not None,
    )


def _guessed(tool: str, description: str) -> ToolFinding:
    """Guess from its description what a tool does that was not called."""
    if drafting_kinds(tool):
        return ToolFinding(tool, is_known=True)
    for language, name in _REFERENCE_NAMES.items():
        if re.search(rf"\b{language}\b|{language}_|_{language}", f"{tool} {description}", re.IGNORECASE):
            note = f"its description mentions {language}"
            return ToolFinding(tool, gives="rows", language=language, reference_name=name, note=note)
    return ToolFinding(tool)


def _language(args: Any) -> Language | None:
    texts = [value for value in args.values() if isinstance(value, str)] if isinstance(args, Mapping) else []
    return next(filter(None, map(language_of, texts)), None)


def _is_documents(output: Any) -> bool:
    """Return whether an output is a JSON array of documents, each with an id and a text."""
    try:
        values = parse_json(output) if isinstance(output, str) else output
        parse_document_ids(output)
    except (UnreadableOutput, ValueError, RecursionError):
        return False
    return bool(values) and all(isinstance(each, Mapping) and len(each.keys() & _TEXT_KEYS) > 0 for each in values)


def _rows(
    outputs: Sequence[Any], *, may_be_single: bool
) -> tuple[list[SparqlResults] | None, Mapping[str, Any] | None]:
    """Read outputs as rows; return the rows, or None if they are not rows, and the declaration that this needs.

    A number, a list of names or one object counts as rows only if a query returned it (``may_be_single``).
    """
    for declared in (None, *_declarations(outputs)):
        try:
            read = [read_sparql_results(output, **(declared or {})) for output in outputs]
        except (UnreadableOutput, ValueError):
            continue
        if not may_be_single and any(each.form.startswith(SINGLE_FORMS) for each in read):
            break
        if any(each.row_count or each.variables for each in read) or all(each.form for each in read):
            return read, declared
    return None, None


def _declarations(outputs: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield declarations to try: the JSON paths that lead to arrays or objects, then the forms of rows."""
    try:
        first = parse_json(outputs[0]) if isinstance(outputs[0], str) else outputs[0]
    except (ValueError, RecursionError):
        first = None
    yield from ({"path": path} for path in _paths(first, "", _DEEPEST_PATH))
    yield from ({"format": form} for form in get_args(OutputFormat))


def _paths(value: Any, before: str, depth: int) -> Iterator[str]:
    if not isinstance(value, Mapping) or not depth:
        return
    for key, inner in list(value.items())[:_MOST_KEYS]:
        if isinstance(inner, list | Mapping) and isinstance(key, str) and key and "." not in key:
            yield f"{before}{key}"
            yield from _paths(inner, f"{before}{key}.", depth - 1)


def _lists_iris(outputs: Sequence[Any]) -> bool:
    """Return whether at least half of the outputs are lists of IRIs: each item of an array or line of a text has one.

    The others may be empty, or a sentence that nothing was found.
    """
    return 2 * sum(map(_is_list_of_iris, outputs)) >= len(outputs)


def _is_list_of_iris(output: Any) -> bool:
    try:
        value = parse_json(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        value = [line for line in output.splitlines() if line.strip()]
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(any(map(_IRI.match, iris_in_text(readable_text(item)))) for item in items)


def _finds_entities(results: Sequence[SparqlResults]) -> bool:
    """Return whether all results with rows have an IRI, as those of a search by name do."""
    filled = [each for each in results if each.row_count]
    return bool(filled) and all(
        any(
            bool(_IRI.match(text)) if each.is_untyped else column.kind(row) == "uri"
            for column in each.columns.values()
            for row, text in enumerate(column.texts[:_MOST_ROWS])
        )
        for each in filled
    )
