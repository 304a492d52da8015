"""How the outputs of steps are read: as their media type says, as the config declares, else in the form they have."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.json_values import json_text, parse_deep_json
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, printable
from graphrag_eval_lc.matching.rows_new.json_forms import XSD, is_prose
from graphrag_eval_lc.matching.rows_new.readers import read_sparql_results, refuse_broken_off
from graphrag_eval_lc.matching.rows_new.results import SPARQL_JSON, SPARQL_RESULTS, Shape, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows_new.text_forms import OPEN_FORMS, read_csv, read_tsv
from graphrag_eval_lc.registry.step_kinds import bare_media_type
from graphrag_eval_lc.texts import shortened

REQUIRED_COLUMNS: Final = "required_columns"
JSON_MEDIA_TYPE: Final = "application/json"
SPARQL_QUERY: Final = "sparql_query"
CYPHER_QUERY: Final = "cypher_query"
SQL_DB_QUERY: Final = "sql_db_query"
ROW_TOOLS: Final = (CYPHER_QUERY, "read_neo4j_cypher", SQL_DB_QUERY)
"""The names of steps other than ``sparql_query`` that return rows: tools of Neo4j, its MCP server, LangChain."""


GRAPHS: Final[Mapping[str, str]] = {
    "text/turtle": "Turtle",
    "application/x-turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/ld+json": "JSON-LD",
    "application/rdf+xml": "RDF/XML",
    "application/trig": "TriG",
    "application/n-quads": "N-Quads",
}
"""What graphs are called by their media type."""

_NAMES: Final = ("subject", "predicate", "object", "graph")
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ELSEWHERE: Final = re.compile(r'"@(?:context|import)"\s*:\s*\[?\s*"|<!ENTITY')  # which nothing is loaded from
_FENCE: Final = re.compile(r"```[\w/+.-]{0,40}[ \t]*\n(.*?)\n?```", re.DOTALL)
_BASE: Final = "urn:base:"
# The forms as pyoxigraph and rdflib call them; Turtle and N-Triples are TriG too.
_FORMS: Final = {
    "JSON-LD": "JSON_LD json-ld",
    "RDF/XML": "RDF_XML xml",
    "TriG": "TRIG trig",
    "N-Quads": "N_QUADS nquads",
}


def read_graph(output: Any) -> SparqlResults:
    """Read an RDF graph in any form that its beginning allows.

    Returns:
        Results with the columns subject, predicate and object; with graph, if there are named graphs.

    Raises:
        UnreadableOutput: It is not a graph, or neither pyoxigraph nor rdflib is installed.
    """
    text = json_text(output) if isinstance(output, Mapping | list) else output
    if not isinstance(text, str) or not text.strip():
        raise UnreadableOutput(f"{'nothing' if not output else 'a value'} instead of an RDF graph")
    fence = _FENCE.fullmatch(text.strip())
    text = text if fence is None else fence[1]
    begins = text.lstrip("\ufeff \t\r\n")[:1]
    problem = UnreadableOutput("not an RDF graph")
    if begins in ("{", "[", "<") and _ELSEWHERE.search(text) is not None:
        raise UnreadableOutput("an RDF graph with a context or an entity that is defined elsewhere")
    for form in {"{": ("JSON-LD", "TriG"), "[": ("JSON-LD", "TriG"), "<": ("RDF/XML", "TriG", "N-Quads")}.get(
        begins, ("TriG",)
    ):
        try:
            rows = sorted(set(_quads(text, form)), key=repr)
        except UnreadableOutput as found:
            problem = found
            continue
        if not rows and form == "JSON-LD" and text.strip() not in ("[]", "{}"):
            continue  # JSON without a triple
        columns = {
            name: TermColumn([row[at][0] for row in rows], [row[at][1] for row in rows])
            for at, name in enumerate(_NAMES[: 4 if any(row[3][0] for row in rows) else 3])
        }
        return SparqlResults(columns, len(rows), form="Turtle" if form == "TriG" else form, is_graph=True)
    raise problem


@cache
def _library() -> Any:
    for name in ("pyoxigraph", "rdflib"):
        with suppress(ImportError):
            return import_module(name)
    missing = MissingExtraError("An RDF graph", "graph", "pyoxigraph")
    raise UnreadableOutput(f"not read: {missing}")


def _quads(text: str, form: str) -> Iterator[tuple[tuple[str, Shape], ...]]:
    library = _library()
    if form == "RDF/XML" and _RDF not in text:
        raise UnreadableOutput("not an RDF graph")
    oxigraph_name, rdflib_name = _FORMS[form].split()
    try:
        if library.__name__ == "pyoxigraph":
            for quad in library.parse(text, format=getattr(library.RdfFormat, oxigraph_name), base_iri=_BASE):
                yield tuple(map(_term, (quad.subject, quad.predicate, quad.object, quad.graph_name)))
            return
        dataset = library.Dataset()
        dataset.parse(data=text, format=rdflib_name, publicID=_BASE)
        for *triple, graph in dataset.quads():
            is_default = graph is None or str(graph) in (_BASE, "urn:x-rdflib:default")
            yield tuple(map(_term, (*triple, None if is_default else graph)))
    except UnreadableOutput:
        raise
    except Exception as problem:  # each library has its own errors
        why = printable(shortened(" ".join(str(problem).split())[:200], 100))
        raise UnreadableOutput(f"not an RDF graph ({why})") from None


def _term(term: Any) -> tuple[str, Shape]:
    """Return the text and the shape of a term of either library; rdflib's are texts."""
    kind = type(term).__name__
    if kind in ("DefaultGraph", "NoneType"):
        return "", ("", None, None)
    if kind == "Triple":
        raise UnreadableOutput("a graph with triples as terms, which are not compared")
    text = str(term) if isinstance(term, str) else term.value
    if kind != "Literal":
        return text, ("bnode" if kind in ("BlankNode", "BNode") else "uri", None, None)
    datatype = str(getattr(term.datatype, "value", term.datatype or ""))
    is_plain = term.language or datatype in ("", f"{XSD}string")
    return text, ("literal", None if is_plain else datatype, term.language)


def _declared(read: Callable[[str], SparqlResults]) -> Callable[[Any], SparqlResults]:
    """Return a reader of outputs that their media type declares to be CSV or TSV, also of one column."""

    def read_declared(output: Any) -> SparqlResults:
        if not isinstance(output, str):
            return read_sparql_results(output)
        # Some begin as another form that is no line of cells.
        is_other = output.lstrip("\ufeff \t\r\n")[:1] in ("{", "[", "<", "`", "|")
        readers = [read_sparql_results, read] if is_other else [read, read_sparql_results]
        problem: UnreadableOutput | None = None
        for each in readers:
            try:
                results = each(output)
                if each is read and len(results.variables) == 1:
                    refuse_broken_off(output)
                    if is_prose(results.variables[0]):
                        raise UnreadableOutput(f"not {results.form}: its first line is a sentence")
                return results
            except UnreadableOutput as found:
                if isinstance(found, CutOutput):
                    raise
                problem = problem or found
        raise problem or UnreadableOutput("nothing")

    return read_declared


def _read_boolean(output: Any) -> SparqlResults:
    results = read_sparql_results(output)
    texts = [text for column in results.columns.values() for text in column.texts]
    is_lone = results.boolean is None and len(texts) == 1 and texts[0] in ("true", "false")
    return SparqlResults({}, 0, texts[0] == "true", form="a truth value") if is_lone else results


class MediaType(NamedTuple):
    """A media type of rows: what its outputs are called and how they are read; as which forms, if there are few."""

    title: str
    read: Callable[[Any], SparqlResults]
    forms: tuple[str, ...] = ()


MEDIA_TYPES: Final[Mapping[str, MediaType]] = {
    SPARQL_RESULTS: MediaType(SPARQL_JSON, read_sparql_results, (SPARQL_JSON,)),
    "text/csv": MediaType("CSV", _declared(read_csv), ("W3C CSV",)),
    "text/tab-separated-values": MediaType("TSV", _declared(read_tsv), ("W3C TSV", "TSV")),
    "text/tsv": MediaType("TSV", _declared(read_tsv), ("W3C TSV", "TSV")),  # as many write it
    "application/sparql-results+xml": MediaType("SPARQL results in XML", read_sparql_results, ("W3C XML",)),
    "text/boolean": MediaType("a truth value", _read_boolean),
    **{media_type: MediaType(title, read_graph) for media_type, title in GRAPHS.items()},
}


def _reader_for(reference: Mapping[str, Any]) -> Callable[[Any], SparqlResults]:
    """Return the function that reads outputs as the media type of a reference step says."""
    given = reference.get("output_media_type")
    known = MEDIA_TYPES.get(bare_media_type(given)) if isinstance(given, str) else None
    return read_sparql_results if known is None else known.read


@cache
def _reader_as(format: OutputFormat) -> Callable[[Any], SparqlResults]:
    return partial(read_sparql_results, format=format)


def reference_results(reference: StepView) -> SparqlResults:
    r"""Return the results of a reference step, read as its media type says, else in the form that they have.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.

    Example:
        >>> reference_results(StepView({"output": "name\nOslo", "output_media_type": "text/csv"})).variables
        ('name',)
    """
    return _no_rows_of(reference) or reference.parsed(_reader_for(reference))


def _no_rows_of(step: StepView) -> SparqlResults | None:
    """Return results without rows if the output of a step is the empty text of LangChain's SQL tool."""
    output = step.get("output")
    if SQL_DB_QUERY not in (step.get("name"), step.tool) or not isinstance(output, str) or output.strip():
        return None
    return SparqlResults({}, 0, form=f"an empty text, as {SQL_DB_QUERY} returns for no rows", is_untyped=True)


def step_results(step: StepView, read: Callable[[Any], SparqlResults] = read_sparql_results) -> SparqlResults:
    """Return the results of a step, read as ``steps.outputs`` declares, else in whatever form they have.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.
    """
    no_rows, cut = _no_rows_of(step), step.cut_by_capture
    if no_rows is not None:
        return no_rows
    if step.declared is not None and step.declared.format is not None:
        read = _reader_as(step.declared.format)
    try:
        results = step.parsed(read)
    except UnreadableOutput as problem:
        if cut is None or isinstance(problem, CutOutput):
            raise
        raise CutOutput(f"{cut}, and what is left is {problem}") from None
    if cut is not None and any(name in results.form for name in (*OPEN_FORMS, "lines", "Turtle")):
        raise CutOutput(cut)  # nothing marks the end of these
    return results


def actual_results(actual: StepView, reference: StepView) -> SparqlResults:
    """Return the results of a step; what is not an evident table is read as the reference's media type says.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.
    """
    read = _reader_for(reference)
    if read in (read_graph, _read_boolean):
        return step_results(actual, read)
    try:
        return step_results(actual)
    except UnreadableOutput as problem:
        if read is read_sparql_results or actual.declared is not None or isinstance(problem, CutOutput):
            raise
        with suppress(UnreadableOutput):
            return actual.parsed(read)
        raise


def media_type_of_form(results: SparqlResults, output: Any) -> str | None:
    """Return the media type of an output as it is; None if there is none for its form, such as Python's repr.

    Example:
        >>> output = '[{"name": "Oslo"}]'
        >>> media_type_of_form(read_sparql_results(output), output)
        'application/json'
    """
    found = next((each for each, known in MEDIA_TYPES.items() if results.form in known.forms), None)
    return found or (JSON_MEDIA_TYPE if is_json(output) else None)


def is_json(output: Any) -> bool:
    """Return whether an output is JSON."""
    try:
        return output is not None and (not isinstance(output, str) or parse_deep_json(output) is not ...)
    except ValueError:
        return False


def names_no_columns(results: SparqlResults) -> bool:
    """Return whether results have no rows in a form that then names no columns either, such as an empty array.

    Example:
        >>> names_no_columns(read_sparql_results("[]"))
        True
    """
    return results.is_untyped and not results.row_count and not results.variables
