"""The step kind rows: compares, checks and drafts steps that query a graph or a database."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from graphrag_eval_lc.config import RowsConfig, ValuesConfig
from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.files.rdf_graphs import GRAPHS
from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.json_and_text import JSON, have_same_text
from graphrag_eval_lc.matching.matchers import CutOutput, Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import says_no_rows
from graphrag_eval_lc.matching.rows.comparison import (
    SparqlComparison,
    compare_sparql_results,
    comparison_without_reference,
    comparison_without_results,
)
from graphrag_eval_lc.matching.rows.json_forms import results_of_rows
from graphrag_eval_lc.matching.rows.readers import read_declared_cells, read_graph, read_sparql_results
from graphrag_eval_lc.matching.rows.results import (
    SPARQL_JSON,
    SPARQL_RESULTS,
    SparqlResults,
    TermColumn,
    parse_sparql_results,
)
from graphrag_eval_lc.matching.rows.text_forms import read_csv, read_tsv
from graphrag_eval_lc.records import relative_tolerance
from graphrag_eval_lc.registry.step_kinds import Form, ServedWhere, StepKind, bare_media_type

REQUIRED_COLUMNS: Final = "required_columns"
JSON_MEDIA_TYPE: Final = str(JSON.serves[0][1])
SPARQL_QUERY: Final = "sparql_query"
CYPHER_QUERY: Final = "cypher_query"
SQL_DB_QUERY: Final = "sql_db_query"
ROW_TOOLS: Final = (CYPHER_QUERY, "read_neo4j_cypher", SQL_DB_QUERY)
"""Names of steps that return rows, other than ``sparql_query``: tools of Neo4j, its MCP server and LangChain."""

Read = Callable[[Any], SparqlResults]


def _declared(read: Callable[[str], SparqlResults]) -> Read:
    """Return a reader of outputs whose media type declares CSV or TSV."""
    return lambda output: read_declared_cells(output, read) if isinstance(output, str) else read_sparql_results(output)


# Of each media type: what its outputs are, how they are read, and as which forms, if there are few.
_MediaType = tuple[str, Read, tuple[str, ...]]
_TSV: Final[_MediaType] = ("TSV", _declared(read_tsv), ("W3C TSV", "TSV"))
_MEDIA_TYPES: Final[Mapping[str, _MediaType]] = {
    SPARQL_RESULTS: (SPARQL_JSON, read_sparql_results, (SPARQL_JSON,)),
    "text/csv": ("CSV", _declared(read_csv), ("W3C CSV",)),
    "text/tab-separated-values": _TSV,
    "text/tsv": _TSV,  # not registered, but common
    "application/sparql-results+xml": ("SPARQL results in XML", read_sparql_results, ("W3C XML",)),
    "text/boolean": ("a truth value", read_sparql_results, ()),
    **{media_type: (title, read_graph, ()) for media_type, title in GRAPHS.items()},
}


def _media_type_of(step: Mapping[str, Any]) -> str:
    given = step.get("output_media_type")
    return bare_media_type(given) if isinstance(given, str) else ""


def _is_of_sql(step: StepView) -> bool:
    return SQL_DB_QUERY in (step.get("name"), step.tool)


def _read_sql_output(output: Any, format: OutputFormat | None = None) -> SparqlResults:
    """Read an output of LangChain's SQL tool, which returns an empty text for a result without rows."""
    if isinstance(output, str) and not output.strip():
        form = f"an empty text, as {SQL_DB_QUERY} returns for no rows"
        return SparqlResults({}, 0, form=form, is_untyped=True)
    return read_sparql_results(output, format=format)


@cache  # steps cache results by the function that reads them, so it must be the same object each time
def _reader(is_of_sql: bool, format: OutputFormat | None = None) -> Read:
    read = _read_sql_output if is_of_sql else read_sparql_results
    return read if format is None else partial(read, format=format)


def _reader_for(reference: StepView) -> Read:
    """Return the function that reads outputs of a reference step's media type."""
    known = _MEDIA_TYPES.get(_media_type_of(reference))
    return known[1] if known else _reader(_is_of_sql(reference))


def reference_results(reference: StepView) -> SparqlResults:
    """Return the results of a reference step, read by its media type; without one, in any form."""
    return reference.parsed(_reader_for(reference))


def step_results(step: StepView, read: Read | None = None) -> SparqlResults:
    """Return the results of a step, read as ``steps.outputs`` declares, else by ``read``, else in any form."""
    declared, cut = step.declared and step.declared.format, step.cut_by_capture
    try:
        results = step.parsed(read if read and not declared else _reader(_is_of_sql(step), declared))
    except UnreadableOutput as problem:
        if cut is None or isinstance(problem, CutOutput):
            raise
        raise CutOutput(f"{cut}, and what is left is {problem}") from None
    if cut is not None and not results.has_end:
        raise CutOutput(cut)  # the form has no end mark, so the cut would go unnoticed
    return results


def actual_results(actual: StepView, reference: StepView) -> SparqlResults:
    """Return the results of a step; unless it is clearly a table, it is read by the reference's media type."""
    read = _reader_for(reference)
    try:
        return step_results(actual, read if read is read_graph else None)
    except UnreadableOutput as problem:
        if _media_type_of(reference) in _MEDIA_TYPES and actual.declared is None and not isinstance(problem, CutOutput):
            with suppress(UnreadableOutput):
                return actual.parsed(read)
        if says_no_rows(actual.get("output")):
            return SparqlResults({}, 0, form="a sentence that says so", is_untyped=True)
        raise


def media_type_of_form(results: SparqlResults, output: Any) -> str | None:
    """Return the media type that an output actually has; None if its form has none, such as Python's repr."""
    found = (media_type for media_type, (_, _, forms) in _MEDIA_TYPES.items() if results.form in forms)
    return next(found, JSON_MEDIA_TYPE if _is_json(output) else None)


def _is_json(output: Any) -> bool:
    try:
        return output is not None and (not isinstance(output, str) or parse_json(output) is not ...)
    except (ValueError, RecursionError):
        return False


def match_row_steps(reference: StepView, actual: StepView) -> StepScore:
    """Compare the outputs of two steps that return rows; equal texts match, whatever they are."""
    try:
        options = reference.once(comparison_options)
    except ValueError as problem:
        return explained(0.0, f"The reference step in the dataset is at fault: {problem}.")
    if have_same_text(reference, actual):
        return explained(1.0, "The output has the same text as in the dataset.")
    compared = compare_row_steps(reference, actual, options)
    outcome = compared.unreadable, compared.is_undecided, compared.cut
    grade = (lambda: compared.grade), (lambda: compared.grade_reason)
    return StepScore(compared.score, lambda: compared.reason, lambda: compared.closeness, *outcome, *grade)


def compare_row_steps(reference: StepView, actual: StepView, options: Mapping[str, Any]) -> SparqlComparison:
    """Compare the results of two steps; ``options`` are the ``comparison_options`` of the reference step."""
    required = reference.get(REQUIRED_COLUMNS)
    try:
        expected = reference_results(reference)
    except UnreadableOutput as problem:
        return comparison_without_reference(problem)
    required = None if expected.is_headless else required
    try:
        found = actual_results(actual, reference)
    except UnreadableOutput as problem:
        return comparison_without_results(problem)
    found = _as_meant(found, expected, required)
    compared = compare_sparql_results(expected, found, required, **options)
    if not compared.score and not options["strict"]:
        with_iris = _with_whole_iris(found, expected)
        compared = compared if with_iris is found else compare_sparql_results(expected, with_iris, required, **options)
    if not compared.score and _is_of_sql(actual):
        whole = _with_whole_cells(found, expected)
        if whole is not found and compare_sparql_results(expected, whole, required, **options).score:
            cut = 'a text ends with "...", at which LangChain\'s SQL tool cuts long texts (max_string_length)'
            return comparison_without_results(CutOutput(cut))
    return compared


def _as_meant(found: SparqlResults, expected: SparqlResults, required: Any) -> SparqlResults:
    """Return results that can be read in two ways in the way that fits the reference."""
    columns, count = list(found.columns.values()), found.row_count
    wanted = required if isinstance(required, list | tuple) else expected.variables
    if count > 1 and found.form.startswith("an array of arrays"):
        names = [column.texts[0] for column in columns]
        if wanted and all(name in names for name in wanted) and len(set(names)) == len(names):
            without_first = [
                TermColumn(
                    column.texts[1:],
                    column.shapes[1:] if isinstance(column.shapes, list) else column.shapes,
                    {at - 1: each for at, each in column.structures.items() if at},
                )
                for column in columns
            ]
            return replace(found, columns=dict(zip(names, without_first, strict=True)), row_count=count - 1)
    if len(columns) != 1 or not count:
        return found
    if found.form.startswith("a tuple of single values") and 1 < len(wanted) <= count:
        return results_of_rows([[columns[0].readable(at) for at in range(count)]])
    lists = list(columns[0].structures.values())
    are_values = len(lists) == count and all(isinstance(each, list) and len(each) == 1 for each in lists)
    if not are_values or any(each.structures for each in expected.columns.values()):
        return found
    return results_of_rows([{"values": value} for [value] in lists])


_SHORT_IRI: Final = re.compile(r"(?P<prefix>[\w.-]*:)?(?P<name>(?(prefix)|(?=\d*[^\W\d]))[^\s:/#]+)")


def _with_whole_iris(results: SparqlResults, expected: SparqlResults) -> SparqlResults:
    """Return results with whole IRIs in place of prefixed and local names, such as wd:Q42 and Q42.

    A prefix stands for the one namespace that the reference has with all local names after it.
    """
    firsts = {title: next(filter(None, column.texts), "") for title, column in results.columns.items()}
    candidates = [title for title, first in firsts.items() if _SHORT_IRI.fullmatch(first)]
    if not candidates:
        return results
    namespaces: dict[str, set[str]] = {}
    for column in expected.columns.values():
        for iri in {text for at, text in enumerate(column.texts) if column.is_iri(at)}:
            name = re.split("[/#]", iri)[-1]
            namespaces.setdefault(name, set()).add(iri.removesuffix(name))
    columns = dict(results.columns)
    for title in candidates:
        column = columns[title]
        if firsts[title].rpartition(":")[2] not in namespaces:
            continue
        short = {text: _SHORT_IRI.fullmatch(text) for text in column.texts if text}
        of_prefix: dict[str | None, set[str]] = {}
        for found in short.values():
            if found is not None and (known := namespaces.get(found["name"])):
                of_prefix[found["prefix"]] = of_prefix.get(found["prefix"], known) & known
        whole = {
            text: f"{next(iter(of_prefix[found['prefix']]))}{found['name']}"
            for text, found in short.items()
            if found is not None and len(of_prefix.get(found["prefix"], ())) == 1
        }
        if whole and len(whole) == len(short):
            columns[title] = replace(column, texts=[whole.get(text, text) for text in column.texts])
    if columns == results.columns:
        return results
    note = "prefixed and local names are read as IRIs of the reference"
    return replace(results, columns=columns, notes=(*results.notes, note))


_SHORTEST_CUT_CELL: Final = 50  # LangChain's SQL tool cuts cells after a word, by default within 300 characters


def _with_whole_cells(results: SparqlResults, expected: SparqlResults) -> SparqlResults:
    """Return results in which a text that the tool cut is replaced by the reference's text with that beginning."""
    known = {text for column in expected.columns.values() for text in column.texts}
    ends = {text for column in results.columns.values() for text in column.texts if text.endswith("...")} - known
    cut = [text for text in ends if len(text) >= _SHORTEST_CUT_CELL]
    whole = {text: each for text in cut for each in sorted(known, reverse=True) if each.startswith(text[:-3])}
    if not whole:
        return results
    columns = {
        name: replace(column, texts=[whole.get(text, text) for text in column.texts])
        for name, column in results.columns.items()
    }
    return replace(results, columns=columns)


def comparison_options(reference: StepView) -> dict[str, Any]:
    """Return the options of a reference step as arguments of ``compare_sparql_results``."""
    options: dict[str, Any] = {"ordered": False, "ignore_duplicates": True, "strict": False}
    options |= {key: given for key in options if (given := reference.get(key)) is not None}
    for key, given in options.items():
        if not isinstance(given, bool):
            raise ValueError(f"`{key}` is not true or false")
    tolerance, values, rows = reference.get("tolerance"), reference.get("values"), reference.rows or RowsConfig()
    try:
        options["tolerance"] = tolerance if isinstance(tolerance, Mapping | None) else relative_tolerance(tolerance)
    except ValueError as problem:
        raise ValueError(f"`tolerance` is {tolerance!r:.40}: {problem}") from None
    options["values"] = values if isinstance(values, ValuesConfig) else None
    return options | {"node_keys": tuple(rows.node_keys), "list_order": rows.list_order}


_AS_JSON: Final = "Store the results as SPARQL JSON, which says what is an IRI, and of which type a literal is."
_STORE: Final = "Store what the store returns."


def check_rows_step(step: StepView) -> Iterator[Finding]:
    """Report required columns that are missing or unreadable, and references that almost any result would match."""
    results = reference_results(step)
    yield from _form_findings(step, results)
    if results.boolean is not None:
        return
    required = step.get(REQUIRED_COLUMNS)
    named = required if isinstance(required, list | tuple) else ()
    for column in results.faults:
        if required is None or column in named:
            yield Finding(results.fault_of(column), _STORE, ("output",))
    if results.notes:
        what = f"the output is read with allowances: {'; '.join(results.notes)}"
        yield Finding(what, _STORE, ("output",), severity="warning")
    near = f"It has: {', '.join(results.variables) or 'none'}."
    for index, column in enumerate(() if results.is_headless else named):
        if column not in results.variables:
            yield Finding(f"the output has no column {column}", near, (REQUIRED_COLUMNS, index))
    if not results.row_count:
        what = "the output has no rows, so any query without rows fits it, and the step says little"
        yield Finding(what, "Keep the step if that is the right answer.", ("output",), severity="warning")


def _form_findings(step: StepView, results: SparqlResults) -> Iterator[Finding]:
    """Report results in a form other than the media type, and untyped results if types are compared."""
    output, media_type, name = step.get("output"), _media_type_of(step), step.get("name")
    title, _, forms = _MEDIA_TYPES.get(media_type, ("JSON", read_sparql_results, ()))
    if _is_json(output) if media_type == JSON_MEDIA_TYPE else not forms or results.form in forms:
        return
    what = f"the output is read from {results.form}, and its media type is that of {title}"
    is_sparql = media_type == SPARQL_RESULTS and name == SPARQL_QUERY
    is_without_types = is_sparql and results.is_untyped and results.row_count and step.get("strict") is True
    found = media_type_of_form(results, output)
    if is_without_types:
        what = f"the output is read from {results.form}, which has no types, and strict compares them"
    hint = "Leave output_media_type out." if found is None else f"Write output_media_type: {found}."
    if is_sparql:
        hint = _AS_JSON
    elif found is None and name not in ROW_TOOLS:
        hint = f"{hint[:-1]}, and say steps: {{kinds: {{{name}: rows}}}} in the config."
    elif found == JSON_MEDIA_TYPE and step.get(REQUIRED_COLUMNS) is None:
        hint = f"{hint[:-1]}, and add {REQUIRED_COLUMNS}: {json_text(list(results.variables))}."
    yield Finding(what, hint, ("output",), severity="error" if is_without_types else "warning")


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for a query; None if its results have no rows."""
    del later
    results = read_sparql_results(step["output"])
    if results.boolean is None and not results.row_count:
        return None
    drafted = {key: step[key] for key in ("name", "args", "output")}
    if (media_type := media_type_of_form(results, step["output"])) is not None:
        drafted["output_media_type"] = media_type
    return drafted | {REQUIRED_COLUMNS: list(results.columns)}


_READS: Final = dict.fromkeys((SPARQL_QUERY, *ROW_TOOLS), read_sparql_results) | {SQL_DB_QUERY: _read_sql_output}
_XML: Final = ("application/xml", "text/xml")

ROWS = StepKind(
    key="rows",
    title="SPARQL results",
    serves=((SPARQL_QUERY, SPARQL_RESULTS), *((None, media_type) for media_type in _MEDIA_TYPES)),
    # Steps of these names return rows only if the output can be read as rows: a sentence is compared as a text.
    serves_where=(
        *(ServedWhere(name=name, reads=read) for name, read in _READS.items()),
        *(ServedWhere(name=name, media_type=JSON_MEDIA_TYPE, reads=read) for name, read in _READS.items()),
        ServedWhere(media_type=JSON_MEDIA_TYPE, key=REQUIRED_COLUMNS, reads=read_sparql_results),
        *(ServedWhere(media_type=media_type, reads=read_sparql_results) for media_type in _XML),
    ),
    forms=(
        *(Form(media_type=each, title=title, parse=read) for each, (title, read, _) in list(_MEDIA_TYPES.items())[1:]),
        *(Form(media_type=each, title="rows", parse=read_sparql_results) for each in (JSON_MEDIA_TYPE, *_XML, None)),
    ),
    matcher=match_row_steps,
    parse=parse_sparql_results,
    check=check_rows_step,
    draft=_draft_step,
    shown_as="rows",
)
