"""SPARQL results in JSON values of other forms: bindings without a head, row objects, content blocks, under a key."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.json_values import json_number, json_text
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, printable
from graphrag_eval_lc.matching.rows.graph_values import STRUCTURES, GraphReader, GraphValue, is_entity, readable
from graphrag_eval_lc.matching.rows.neo4j_forms import neo4j_rows
from graphrag_eval_lc.matching.rows.results import (
    SparqlResults,
    TermColumn,
    parse_sparql_results,
    results_from_bindings,
)
from graphrag_eval_lc.matching.rows.tabular_json import (
    NamedRows,
    columns_of_cells,
    named_rows,
    without_missing_numbers,
)
from graphrag_eval_lc.matching.rows.terms import RARE_KEYS, Term
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD, XSD_BOOLEAN
from graphrag_eval_lc.texts import listed, shortened

ReadText = Callable[[str], SparqlResults]
TermObject = dict[str, Any]

_LEVELS: Final = 4
_MOST_CELLS: Final = 5_000_000
# Where an empty array stands for no rows, and a text may be a table.
_KEYS_OF_RESULTS: Final = frozenset(
    {"bindings", "content", "data", "output", "records", "response", "result", "results", "rows", "text", "value"}
)
_KEYS_OF_ERRORS: Final = frozenset({"error", "errors", "exception", "traceback"})
_STATUS_OF_ERRORS: Final = frozenset({"error", "failed", "failure"})
_BLOCK_KEYS: Final = frozenset({"type", "text"})


class NothingFound(UnreadableOutput):
    """A value neither is nor holds anything like results."""


def results_in(value: Any, read_text: ReadText) -> SparqlResults:
    """Return the results that a JSON value is, or that stand in it.

    Args:
        value: The value.
        read_text: Reads results from a text in it, of a content block or of JSON that is encoded twice.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none, or several things that may be meant.

    Example:
        >>> results_in({"data": [{"name": "Oslo"}, {"name": "Bergen"}]}, parse_sparql_results).form
        'an array of row objects under data'
    """
    if isinstance(value, str):
        return _noted(read_text(value), "encoded twice")
    results = _direct(value, read_text)
    if results is not None:
        return results
    if not isinstance(value, Mapping):
        found = "an array without rows of cells" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
        raise NothingFound(f"{found if value is not None else 'nothing'} instead of SPARQL results")
    try:
        return _under_a_key(value, read_text)
    except NothingFound:
        table = columns_of_cells(value)
        if table is None:
            raise
        return _of_named(table)


def results_of_rows(rows: Any) -> SparqlResults:
    """Return the results that an array of row objects, of bindings or of arrays is.

    Raises:
        UnreadableOutput: It is none of these.

    Example:
        >>> results_of_rows([{"name": "Oslo", "n": 5}, {"name": "Bergen"}]).variables
        ('name', 'n')
    """
    if not isinstance(rows, list | tuple):
        raise UnreadableOutput(f"a {type(rows).__name__} instead of an array of rows")
    if not rows:
        return SparqlResults({}, 0, form="an empty array", is_untyped=True)
    if all(map(is_entity, rows)):  # nodes, whose keys are no columns
        return replace(_of_arrays([(row,) for row in rows]), form="an array of nodes or relationships")
    if all(isinstance(row, Mapping) for row in rows):
        return _of_objects(rows)
    if all(isinstance(row, list | tuple) for row in rows):
        return _of_arrays(rows)
    raise UnreadableOutput("an array whose items are not all rows")


def _noted(results: SparqlResults, where: str) -> SparqlResults:
    return replace(results, form=f"{results.form} {where}")


def _direct(value: Any, read_text: ReadText) -> SparqlResults | None:
    """Return the results that a value is by its form; None where it has no such form.

    Raises:
        UnreadableOutput: It has the form, and something is wrong in it.
    """
    if isinstance(value, Mapping):
        if _is_block(value):
            return _noted(read_text(value["text"]), "in a content block")
        table = neo4j_rows(value) or named_rows(value)
        return _of_sparql_object(value) if table is None else _of_named(table)
    if not isinstance(value, list | tuple):
        return None
    blocks = [item for item in value if isinstance(item, Mapping) and _is_block(item)]
    if blocks and all(isinstance(item, Mapping) and isinstance(item.get("type"), str) for item in value):
        return _of_blocks([block["text"] for block in blocks], read_text)
    if value and not all(isinstance(item, Mapping | list | tuple) for item in value):
        return None
    return results_of_rows(value)


def _is_block(value: Mapping[Any, Any]) -> bool:
    return value.get("type") == "text" and isinstance(value.get("text"), str) and value.keys() >= _BLOCK_KEYS


def _of_blocks(texts: Sequence[str], read_text: ReadText) -> SparqlResults:
    where = "in a content block" if len(texts) == 1 else "in content blocks"
    try:
        return _noted(read_text("".join(texts)), where)
    except UnreadableOutput:
        if len(texts) == 1:
            raise
    return _noted(read_text("\n".join(texts)), where)


def _of_sparql_object(value: Mapping[Any, Any]) -> SparqlResults | None:
    if isinstance(value.get("boolean"), bool) and ("head" in value or len(value) == 1):
        return SparqlResults({}, 0, value["boolean"])
    inner = value.get("results")
    holder = inner if isinstance(inner, Mapping) and "bindings" in inner else value
    bindings = holder.get("bindings")
    if not isinstance(bindings, list | tuple):
        return None
    if _names(value) or ("head" in value and not bindings):
        if holder is inner or not _names(value):
            return parse_sparql_results(dict(value))
        results = parse_sparql_results({"head": value["head"], "results": {"bindings": list(bindings)}})
        return replace(results, form="bindings beside a head")
    for row, binding in enumerate(bindings, start=1):
        if not isinstance(binding, Mapping):
            raise UnreadableOutput(f"bindings whose row {row} is no object")
    rows = results_of_rows(bindings)
    return replace(rows, form="bindings without a head")


def _names(value: Mapping[Any, Any]) -> bool:
    head = value.get("head")
    return isinstance(head, Mapping) and isinstance(head.get("vars"), list)


def _of_objects(rows: Sequence[Mapping[Any, Any]]) -> SparqlResults:
    names = dict.fromkeys(name for row in rows for name, _ in row.items())
    if not names:
        raise UnreadableOutput("rows without a cell")
    if len(names) * len(rows) > _MOST_CELLS:
        raise UnreadableOutput(f"{len(rows):,} rows with {len(names):,} different keys")
    if any(str(name).startswith("@") for name in names):
        raise UnreadableOutput("JSON-LD, which is no rows")
    if len(rows) == 1 and any(str(name).lower() in _KEYS_OF_ERRORS for name in names):
        raise UnreadableOutput(f"an error: {_shown_error(rows[0])}")
    rows = without_missing_numbers(rows)
    untyped = False
    reader = GraphReader()
    structures: dict[str, dict[int, GraphValue]] = {}
    bindings: list[dict[str, Any]] = []
    for at, row in enumerate(rows):
        binding: dict[str, Any] = {}
        for name, cell in row.items():
            if cell is None:
                continue
            if isinstance(cell, Mapping) and is_term(cell):
                binding[str(name)] = dict(cell)
                continue
            untyped = True
            if not isinstance(cell, str | int | float):
                cell = _graph_value(reader, cell, at, str(name))
            if isinstance(cell, STRUCTURES):
                structures.setdefault(str(name), {})[at] = cell
                cell = printable(readable(cell))
            if cell is not None:
                binding[str(name)] = plain_term(cell.text if isinstance(cell, Term) else cell)
        bindings.append(binding)
    reader.join_ends()
    results = results_from_bindings([str(name) for name in names], bindings)
    columns = dict(results.columns)
    for name in structures.keys() & columns.keys():
        columns[name] = replace(columns[name], structures=structures[name])
    form = "an array of row objects" if untyped else "a list of bindings"
    return replace(results, columns=columns, form=form, is_untyped=untyped)


_TERM_KEYS: Final = frozenset({"value", "type", "datatype", "xml:lang", *RARE_KEYS})


def is_term(cell: Mapping[Any, Any]) -> bool:
    """Return whether an object in a cell is an RDF term, and no map or node with a property of the name value.

    Example:
        >>> is_term({"value": "5"}), is_term({"value": 5, "unit": "kV"}), is_term({"name": "Oslo"})
        (True, False, False)
    """
    return "value" in cell and (cell.get("type") in _TYPES_OF_TERMS or cell.keys() <= _TERM_KEYS)


_TYPES_OF_TERMS: Final = ("uri", "literal", "typed-literal", "bnode", "triple")


def _graph_value(reader: GraphReader, cell: Any, row: int, name: str) -> GraphValue:
    try:
        return reader.read(cell)
    except UnreadableOutput as problem:
        raise UnreadableOutput(f"rows whose cell in row {row + 1}, {printable(name[:40])}, {problem}") from None


def _of_named(table: NamedRows) -> SparqlResults:
    """Return the results that a table is whose columns have names."""
    if not table.rows:
        columns = {name: TermColumn([], ("literal", None, None)) for name in table.names}
        return SparqlResults(columns, 0, form=table.form, is_untyped=True)
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return replace(_of_objects(rows), form=table.form)


def _of_arrays(rows: Sequence[Sequence[Any]]) -> SparqlResults:
    width = len(rows[0])
    if not width or any(len(row) != width for row in rows):
        raise UnreadableOutput("arrays of different lengths instead of rows")
    names = [f"column {at}" for at in range(1, width + 1)]
    return replace(_of_objects([dict(zip(names, row, strict=True)) for row in rows]), form="an array of arrays")


def plain_term(value: str | float | Decimal) -> TermObject:
    """Return a text, number or boolean as a term."""
    if isinstance(value, str):
        is_blank_node = len(value) > 2 and value.startswith("_:")
        return {"type": "bnode", "value": value[2:]} if is_blank_node else {"type": "literal", "value": value}
    if isinstance(value, bool):
        return {"type": "literal", "value": "true" if value else "false", "datatype": XSD_BOOLEAN}
    if isinstance(value, Decimal):
        return {"type": "literal", "value": str(value)}
    number = json_number(value)
    if isinstance(number, str):
        return {"type": "literal", "value": number.replace("Infinity", "INF"), "datatype": f"{XSD}double"}
    return {"type": "literal", "value": repr(number)}


class _Found(NamedTuple):
    path: str
    results: SparqlResults
    rank: int  # 1 for SPARQL results, 0 for rows, -1 for rows with objects in cells


def _under_a_key(value: Mapping[Any, Any], read_text: ReadText) -> SparqlResults:
    refuse_error(value)
    cuts: list[CutOutput] = []
    found = list(_search(value, "", _LEVELS, read_text, cuts))
    best = [each for each in found if each.rank == max(one.rank for one in found)] if found else []
    if len(best) > 1:
        places = printable(listed([each.path for each in best]))
        hint = "steps.outputs can say which (path)"
        raise UnreadableOutput(f"a JSON object with several things that may be the results ({places}); {hint}")
    if best:
        return _noted(best[0].results, f"under {printable(shortened(best[0].path, 60))}")
    if cuts:
        raise cuts[0]
    raise NothingFound("a JSON object without SPARQL results")


def _search(
    value: Mapping[Any, Any], path: str, levels: int, read_text: ReadText, cuts: list[CutOutput]
) -> Iterable[_Found]:
    """Yield what may be the results under the keys of an object, with its place."""
    for key, inner in value.items():
        place = f"{path}.{key}" if path else str(key)
        try:
            results = _of_part(str(key), inner, read_text)
        except CutOutput as cut:
            cuts.append(cut)
            continue
        except UnreadableOutput:
            continue
        if results is not None:
            yield _Found(place, results, _rank(results))
        elif isinstance(inner, Mapping) and levels > 1:
            yield from _search(inner, place, levels - 1, read_text, cuts)


def _rank(results: SparqlResults) -> int:
    if any(column.structures for column in results.columns.values()):
        return -1
    return int(not results.is_untyped)


def _of_part(key: str, value: Any, read_text: ReadText) -> SparqlResults | None:
    is_expected = key.lower() in _KEYS_OF_RESULTS
    if isinstance(value, str):
        begins = value[:50].lstrip("\ufeff \t\r\n")[:1]
        return read_text(value) if begins in {"{", "[", "<", "`"} or (is_expected and "\n" in value) else None
    if isinstance(value, list | tuple) and not value and not is_expected:
        return None
    return _direct(value, read_text) if isinstance(value, Mapping | list | tuple) else None


def refuse_error(value: Mapping[Any, Any]) -> None:
    """Refuse an object in which a tool tells of an error.

    Raises:
        UnreadableOutput: It tells of one.
    """
    is_failure = value.get("isError") is True or value.get("success") is False
    status = value.get("status")
    is_failure = is_failure or (isinstance(status, str) and status.lower() in _STATUS_OF_ERRORS)
    if is_failure or any(value.get(key) for key in _KEYS_OF_ERRORS):
        raise UnreadableOutput(f"an error: {_shown_error(value)}")


def _shown_error(value: Mapping[Any, Any]) -> str:
    known = [part for key, part in value.items() if str(key).lower() in {*_KEYS_OF_ERRORS, "message"}]
    message = next(iter(known), "no message")
    return printable(shortened((message if isinstance(message, str) else json_text(message))[:400], 100))
