"""Which reference steps are compared as rows, by media type or name, and how their outputs are read.

A media type says in which form an output is; an output in another form is still read, as ``read_sparql_results`` finds
it out, and ``validate`` says so.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from graphrag_eval_lc.json_values import parse_deep_json
from graphrag_eval_lc.matching.json_and_text import JSON
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.readers import read_sparql_results, step_results
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SPARQL_RESULTS, SparqlResults
from graphrag_eval_lc.matching.rows.sql_texts import SQL_DB_QUERY, no_rows_of
from graphrag_eval_lc.matching.rows.text_tables import read_csv, read_tsv
from graphrag_eval_lc.registry.step_kinds import Form, ServedWhere, bare_media_type

CSV: Final = "text/csv"
TSV: Final = "text/tab-separated-values"
_TSV_TOO: Final = "text/tsv"  # as many write it
SPARQL_XML: Final = "application/sparql-results+xml"
JSON_MEDIA_TYPE: Final = str(JSON.serves[0][1])
REQUIRED_COLUMNS: Final = "required_columns"

SPARQL_QUERY: Final = "sparql_query"

CYPHER_QUERY: Final = "cypher_query"
ROW_TOOLS: Final = (CYPHER_QUERY, "read_neo4j_cypher", SQL_DB_QUERY)
"""The names of steps beside ``sparql_query`` that are known to give rows: tools of Neo4j, its MCP server, LangChain."""

MEDIA_TYPES: Final = (SPARQL_RESULTS, CSV, TSV, _TSV_TOO, SPARQL_XML)
"""The media types of rows, of steps of any name."""

# How texts begin that are some other form of results, even where they are declared to be lines of cells.
_OTHER_BEGINNINGS: Final = frozenset("{[<`|")
# How a line ends that is a sentence, and no name of a column.
_ENDS_OF_SENTENCES: Final = (".", "!", "?", ":", "…")


def read_declared_csv(output: Any) -> SparqlResults:
    r"""Read an output that its media type declares to be CSV, also of one column; else in whatever form it has.

    Raises:
        CutOutput: It ends before its end.
        UnreadableOutput: It is neither CSV nor another form of results.

    Example:
        >>> read_declared_csv("name\nOslo\n").row_count
        1
    """
    return _read_lines(output, read_csv)


def read_declared_tsv(output: Any) -> SparqlResults:
    """Read an output that its media type declares to be TSV; see ``read_declared_csv``."""
    return _read_lines(output, read_tsv)


def _read_lines(output: Any, read: Callable[[str], SparqlResults]) -> SparqlResults:
    if not isinstance(output, str):
        return read_sparql_results(output)
    if output.lstrip("\ufeff \t\r\n")[:1] in _OTHER_BEGINNINGS:
        try:
            return read_sparql_results(output)
        except CutOutput:
            raise
        except UnreadableOutput:  # a first name in brackets, perhaps
            return _without_sentences(read(output))
    try:
        return _without_sentences(read(output))
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        try:
            return read_sparql_results(output)
        except CutOutput:
            raise
        except UnreadableOutput:
            raise problem from None


def _without_sentences(results: SparqlResults) -> SparqlResults:
    """Refuse the lines of a text as a table of one column."""
    if len(results.variables) == 1 and results.variables[0].rstrip().endswith(_ENDS_OF_SENTENCES):
        raise UnreadableOutput(f"no {results.form}: its first line is a sentence")
    return results


_READERS: Final[Mapping[str, Callable[[Any], SparqlResults]]] = {
    CSV: read_declared_csv,
    TSV: read_declared_tsv,
    _TSV_TOO: read_declared_tsv,
}


def reference_results(reference: StepView) -> SparqlResults:
    r"""Return the results of a reference step, read as its media type says, else in whatever form they have.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.

    Example:
        >>> reference_results(StepView({"output": "name\nOslo", "output_media_type": "text/csv"})).variables
        ('name',)
    """
    return no_rows_of(reference) or reference.parsed(_reader_for(reference))


def actual_results(actual: StepView, reference: StepView) -> SparqlResults:
    """Return the results that a step gave; what is no evident table is read as the reference's media type says.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none.
    """
    try:
        return step_results(actual)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        read = _reader_for(reference)
        if read is read_sparql_results or actual.declared is not None:
            raise
        try:
            return actual.parsed(read)
        except UnreadableOutput:
            raise problem from None


def _reader_for(reference: StepView) -> Callable[[Any], SparqlResults]:
    media_type = reference.get("output_media_type")
    if not isinstance(media_type, str) or media_type == SPARQL_RESULTS:
        return read_sparql_results
    return _READERS.get(bare_media_type(media_type), read_sparql_results)


FORMS: Final = (
    Form(media_type=CSV, title="CSV", parse=read_declared_csv),
    Form(media_type=TSV, title="TSV", parse=read_declared_tsv),
    Form(media_type=_TSV_TOO, title="TSV", parse=read_declared_tsv),
    Form(media_type=SPARQL_XML, title="SPARQL results in XML", parse=read_sparql_results),
    Form(media_type=JSON_MEDIA_TYPE, title="rows", parse=read_sparql_results),
    Form(media_type=None, title="rows", parse=read_sparql_results),
)


def _read_sql_output(output: Any) -> SparqlResults:
    """Read an output of LangChain's tool of SQL, whose empty text means that there are no rows."""
    return no_rows_of(StepView({"name": SQL_DB_QUERY, "output": output})) or read_sparql_results(output)


# By a name alone, or by a key, only what can be read as rows is rows: a sentence is compared as a text.
SERVED_WHERE: Final = (
    *(
        ServedWhere(name=name, reads=_read_sql_output if name == SQL_DB_QUERY else read_sparql_results)
        for name in ROW_TOOLS
    ),
    ServedWhere(media_type=JSON_MEDIA_TYPE, key=REQUIRED_COLUMNS, reads=read_sparql_results),
)

# The forms of results that have a media type of their own.
_FORMS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    SPARQL_RESULTS: (SPARQL_JSON,),
    CSV: ("W3C CSV",),
    TSV: ("W3C TSV", "TSV"),
    _TSV_TOO: ("W3C TSV", "TSV"),
    SPARQL_XML: ("W3C XML",),
}


def is_of_media_type(media_type: str, results: SparqlResults, output: Any) -> bool:
    """Return whether an output has the form that a media type says; any form will do for one that is none of rows.

    Example:
        >>> is_of_media_type("text/csv", read_sparql_results('[{"name": "Oslo"}]'), '[{"name": "Oslo"}]')
        False
    """
    if media_type == JSON_MEDIA_TYPE:
        return _is_json(output)
    forms = _FORMS_OF.get(media_type)
    return forms is None or results.form in forms


def media_type_of_form(results: SparqlResults, output: Any) -> str | None:
    """Return the media type of an output as it is; None where there is none for its form, such as Python's repr.

    Example:
        >>> output = '[{"name": "Oslo"}]'
        >>> media_type_of_form(read_sparql_results(output), output)
        'application/json'
    """
    found = next((each for each, forms in _FORMS_OF.items() if results.form in forms), None)
    if found is not None:
        return found
    return JSON_MEDIA_TYPE if _is_json(output) else None


def names_no_columns(results: SparqlResults) -> bool:
    """Return whether results have no rows in a form that then names no columns either, such as an empty array.

    Example:
        >>> names_no_columns(read_sparql_results("[]"))
        True
    """
    return results.is_untyped and not results.row_count and not results.variables


def _is_json(output: Any) -> bool:
    if not isinstance(output, str):
        return output is not None
    try:
        parse_deep_json(output)
    except ValueError:
        return False
    return True
