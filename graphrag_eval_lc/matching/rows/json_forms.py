"""Reads results from JSON values: SPARQL JSON, rows, columns, single values, and objects in which tools wrap them."""

import re
from collections.abc import Mapping, Sequence, Set, Sized
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from types import NoneType
from typing import Any, Final, TypeGuard

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.outputs import (
    ERROR_KEYS,
    CutOutput,
    UnreadableOutput,
    is_prose,
    printable,
    refuse_cut_in_words,
    refuse_error_report,
)
from graphrag_eval_lc.matching.rows.graph_values import STRUCTURES, GraphReader, is_entity, readable
from graphrag_eval_lc.matching.rows.results import (
    LITERAL_SHAPE,
    UNBOUND,
    ReadText,
    SparqlResults,
    Term,
    TermColumn,
    Triple,
    column_of,
    distinct_names,
    require_unicode,
    results_from_bindings,
    sparql_object,
    term_of,
    term_of_value,
)
from graphrag_eval_lc.matching.rows.text_forms import term_of_turtle
from graphrag_eval_lc.texts import counted, listed, shortened

SINGLE_FORMS: Final = ("a single value", "an array of single values", "a tuple of single", "an object as one row")
"""Forms that count as tables only if they are the whole output."""

_LEVELS: Final = 4
_MOST_CELLS: Final = 5_000_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Keys under which tools return results. Under them, an empty array means no rows, and a text may be a table.
RESULT_KEYS: Final = _words(
    "bindings boolean content data output records response result results rows text value values"
)
# Keys with information about results, as `_plain_key` returns them. An object with only such keys is not a row.
_COUNT_KEYS: Final = _words("count length number size total")
# Keys that servers and tools set if they return less than they found.
_CUT_FLAGS: Final = _words(
    "exceededtransferlimit hasmore hasmoreresults hasmorerows hasnextpage incomplete ispartial istruncated"
    " limitreached partial partialresults resultstruncated resulttruncated timedout truncated wastruncated"
)
_NEXT_PAGES: Final = _words(
    "continuationtoken cursor lastevaluatedkey next nextcursor nextlink nextpagetoken nexttoken nexturi pagetoken"
)
_TOTALS: Final = _words("numfound resultsize resultsizetotal totalcount totalhits totalrecords totalresults totalrows")
_NOTES: Final = _words("comment hint info message msg note notes warning warnings")
_ABOUT_KEYS: Final = _words(
    "code columns cypher duration durationms elapsed elapsedms error errors executiontime executiontimems iserror"
    " meta ok previous query querytime querytype requestid resultcount rowcount sparql sql statement status"
    " success time timems timestamp took tookms tool type"
).union(_CUT_FLAGS, _TOTALS, _NOTES)
_TEXT_KEYS: Final = ("content", "messages", "text")


def results_in(value: Any, read_text: ReadText) -> SparqlResults:
    """Return the results in a JSON value; ``read_text`` reads results from a text inside it."""
    if isinstance(value, str):
        return _noted(read_text(value), "encoded twice")
    if isinstance(value, Set):
        value = sorted(value, key=repr)
    if _is_array(value):
        return _of_array(value, read_text)
    if isinstance(value, Mapping):
        return _of_object(value, read_text)
    if value is None:
        raise UnreadableOutput("nothing instead of SPARQL results")
    return single_value(value)


def results_of_rows(rows: Any) -> SparqlResults:
    """Return the results in an array of row objects, bindings, arrays or single values."""
    if not _is_array(rows):
        raise UnreadableOutput(f"a {type(rows).__name__} instead of an array of rows")
    if not rows:
        return SparqlResults({}, 0, form="an empty array", is_untyped=True)
    if all(isinstance(row, Triple) for row in rows):  # what a CONSTRUCT of pyoxigraph returns
        return replace(_of_table(Triple._fields, rows, "a list of triples"), is_graph=True)
    if all(map(is_entity, rows)):  # nodes, whose keys are not columns
        return _of_table(["column 1"], [(row,) for row in rows], "an array of nodes or relationships")
    if all(isinstance(row, Mapping) for row in rows):
        return _of_objects(rows)
    if all(map(_is_array, rows)):
        names = [f"column {at}" for at in range(1, len(rows[0]) + 1)]
        return _of_table(names, rows, "an array of arrays")
    if not any(isinstance(row, Mapping) or _is_array(row) for row in rows):
        form = "a tuple of single values" if isinstance(rows, tuple) else "an array of single values"
        return _of_table(["column 1"], [(row,) for row in rows], form)
    raise UnreadableOutput("an array whose items are not all rows")


def single_value(value: Any) -> SparqlResults:
    """Return results with one cell."""
    return _of_table(["column 1"], [(value,)], "a single value")


def _is_array(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple) and not isinstance(value, Term | Triple | Mapping)


def _are_scalars(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, str | int | float | Term) for value in values)


def _noted(results: SparqlResults, where: str) -> SparqlResults:
    return replace(results, form=f"{results.form} {where}")


def _of_array(value: Sequence[Any], read_text: ReadText) -> SparqlResults:
    """Read an array of rows, or an array in which a tool or store wraps rows."""
    if len(value) > 1 and value[-1] in ("...", "…") and not isinstance(value[0], str):
        raise CutOutput(f"the array ends with {value[-1]!r}")
    objects = [item for item in value if isinstance(item, Mapping)]
    if len(objects) == len(value) and all(isinstance(item.get("type"), str) for item in objects):
        blocks = [item.get("text") for item in objects if item["type"] == "text"]
        if texts := [text for text in blocks if isinstance(text, str)]:  # of a model or of MCP
            return _noted(read_text("\n".join(texts)), "in content blocks")
    # Of SurrealDB or D1, for one statement; the keys of Neo4j's records are a list.
    is_statement = len(objects) == len(value) == 1 and not {"status", "success"}.isdisjoint(objects[0].keys())
    if is_statement and _is_array(objects[0].get("results", objects[0].get("result"))):
        return results_in(objects[0], read_text)
    contents = [item.get("content") if isinstance(item, Mapping) else item for item in value]
    texts = [text for text in contents if isinstance(text, str) and text.startswith(("<Record ", "{'", '{"'))]
    if 0 < len(texts) == len(value):  # rows as texts, also as the content of neo4j-graphrag's items
        return read_text("\n".join(texts))
    if len(value) == 3 and all(map(_is_array, value)) and all(map(_is_array, value[1])):
        names = [name[1] if _is_array(name) and len(name) == 2 else name for name in value[0]]
        if value[2] and all(isinstance(note, str) and ": " in note for note in value[2]):
            return _of_table(names, value[1], "FalkorDB's reply")  # names, rows, and notes about the query
    return results_of_rows(value)


def _of_object(value: Mapping[Any, Any], read_text: ReadText) -> SparqlResults:
    if value.get("type") == "text" and isinstance(value.get("text"), str):
        return _of_array([value], read_text)
    if value.keys() == {"@type", "@value"}:  # GraphSON
        try:
            value = GraphReader().read(value)
        except UnreadableOutput as problem:
            raise UnreadableOutput(f"a value that {problem}") from None
        return results_in(value, read_text)
    results = _of_sparql(value) or _of_named_columns(value)
    results = results or _of_parts(value, read_text) or _of_columns(value) or _of_one_key(value, read_text)
    if results is None:
        return _of_one_object(value)
    if not results.form.startswith("an object of"):
        _refuse_flags(value, results.row_count)
    return results


def _of_one_key(value: Mapping[Any, Any], read_text: ReadText) -> SparqlResults | None:
    """Read the value under the only key that is not mere information about the results."""
    keys = [key for key in value if _plain_key(key) not in _ABOUT_KEYS | _COUNT_KEYS | _NEXT_PAGES]
    if len(keys) != 1:
        return None
    name, inner = str(keys[0]).lower(), value[keys[0]]
    are_values = _is_array(inner) and len(inner) > 0 and _are_scalars(inner) and name not in _TEXT_KEYS
    if not are_values and not (name in RESULT_KEYS and isinstance(inner, Mapping | int | float)):
        return None
    return _noted(results_in(inner, read_text), f"under {keys[0]}")


def _refuse_flags(value: Mapping[Any, Any], row_count: int, levels: int = _LEVELS) -> None:
    """Raise CutOutput if a key next to the results says that there are more."""
    for key, flag in value.items():
        name = _plain_key(key)
        if name in _NOTES:
            refuse_cut_in_words(flag if isinstance(flag, str) else json_text(flag))
        is_flag = name in _CUT_FLAGS and str(flag).lower() == "true"
        has_more = name in _NEXT_PAGES and isinstance(flag, str | Mapping) and len(flag) > 0
        is_total = name in _TOTALS or (name in _COUNT_KEYS and levels == _LEVELS)
        if is_flag or has_more or (is_total and type(flag) is int and flag > row_count):
            shown = printable(shortened(json_text({str(key): flag})[1:-1], 60))
            raise CutOutput(f"the output says that there are more rows ({shown})")
        if isinstance(flag, Mapping) and levels > 1:
            _refuse_flags(flag, row_count, levels - 1)


@lru_cache(maxsize=1_000)
def _plain_key(key: Any) -> str:
    """Return a key in lower case, without punctuation."""
    return re.sub(r"[\W_]", "", str(key).lower()).removeprefix("odata")


def _of_sparql(value: Mapping[Any, Any]) -> SparqlResults | None:
    is_answer = "boolean" in value and {*map(_plain_key, value.keys())} <= _ABOUT_KEYS | {"boolean"}
    return sparql_object({"boolean": value["boolean"]} if is_answer else value)


# Where databases' interfaces put the names of the columns, the name of one column, and the rows.
_NAMES_KEYS: Final = _words(
    "columns column_names columnnames cols headers header fields meta schema selected columninfo columnmetadata rowtype"
)
_NAME_KEYS: Final = ("name", "Name", "column_name", "columnName", "field", "title")
_ROWS_KEYS: Final = _words("rows data values records results result data_array res")
_WRAPPERS: Final = _words("data result results manifest schema resultset resultsetmetadata")
_CELL_KEYS: Final = _words("v VarCharValue stringValue longValue doubleValue booleanValue isNull")


def _of_named_columns(value: Mapping[Any, Any]) -> SparqlResults | None:
    """Read an object with the names of the columns next to the rows, as the interfaces of most databases return it."""
    statements = value.get("results")
    if "errors" in value and _is_array(statements) and len(statements) == 1 and isinstance(statements[0], Mapping):
        (value,) = statements  # of Neo4j's HTTP API
    parts = [value]
    for part in parts:  # grows during the loop
        inner = [each for key, each in part.items() if str(key).lower() in _WRAPPERS and isinstance(each, Mapping)]
        parts += inner[: 6 - len(parts)]
    items = [(str(key).lower(), inner) for part in parts for key, inner in part.items()]
    named = [names for key, inner in items if key in _NAMES_KEYS and (names := _names(inner))]
    lists = [inner for key, inner in items if key in _ROWS_KEYS and _is_array(inner)]
    if len(named) != 1 or len(lists) != 1:
        return None
    names, rows, keys = named[0], list(map(_cells, lists[0])), {key for key, _ in items}
    if all(isinstance(row, Mapping) and row.keys() <= set(names) for row in rows):
        rows = [[row.get(name) for name in names] for row in rows]
    elif not all(map(_is_array, rows)):
        return None
    if rows and rows[0] == names:  # as Athena has them
        del rows[0]
    if "primarykey" in keys and names[0] == "index" and [str(row[0]) for row in rows if row] == _counted(rows):
        names, rows = names[1:], [row[1:] for row in rows]  # pandas counts the rows
    return _of_table(names, rows, "rows next to the names of their columns")


def _names(value: Any) -> list[str]:
    """Return the column names in a list of texts or of column descriptions; empty for other values."""
    found: list[Any] = [
        next((item[key] for key in _NAME_KEYS if key in item), None) if isinstance(item, Mapping) else item
        for item in (value if _is_array(value) else ())
    ]
    return found if all(isinstance(name, str) and name for name in found) else []


def _cells(row: Any) -> Any:
    """Return the cells of a row that an interface wraps: Neo4j's HTTP API, BigQuery, Athena, Redshift's Data API."""
    if isinstance(row, Mapping) and row.keys() <= {"row", "meta", "graph", "f", "Data"}:
        row = _with_kind(row["row"], row.get("meta")) if "row" in row else row.get("f", row.get("Data", row))
    cells = row if _is_array(row) else [row]
    if not all(isinstance(cell, Mapping) and len(cell) < 2 and cell.keys() <= _CELL_KEYS for cell in cells):
        return row
    return [None if "isNull" in cell else next(iter(cell.values()), None) for cell in cells]


def _with_kind(cell: Any, about: Any) -> Any:
    """Return a cell of Neo4j's HTTP API, in which only ``meta`` distinguishes relationships from maps."""
    if isinstance(cell, list) and isinstance(about, list) and len(cell) == len(about):
        return list(map(_with_kind, cell, about))
    is_relationship = isinstance(about, Mapping) and about.get("type") == "relationship"
    return {"$type": "Relationship", "_value": {"_properties": cell}} if is_relationship and cell is not None else cell


def _of_columns(value: Mapping[Any, Any]) -> SparqlResults | None:
    """Read an object of columns: lists of cells, or pandas' objects whose keys are the row numbers from 0."""
    names, columns = list(map(str, value.keys())), list(value.values())
    are_pandas = all(isinstance(column, Mapping) and [*map(str, column)] == _counted(column) for column in columns)
    if names and names == _counted(names) and all(isinstance(column, Mapping) for column in columns):
        raise UnreadableOutput('rows under their numbers, as to_json(orient="index") writes them; use orient="records"')
    if are_pandas:
        columns = [list(column.values()) for column in columns]
    is_text = len(names) == 1 and names[0].lower() in _TEXT_KEYS
    if is_text or not all(_is_array(column) and column and _are_scalars(column) for column in columns):
        return None
    if len(set(map(len, columns))) != 1:
        return None
    return _of_table(names, list(zip(*columns, strict=True)), "an object of columns")


def _counted(rows: Sized) -> list[str]:
    return [str(at) for at in range(len(rows))]


def _of_parts(value: Mapping[Any, Any], read_text: ReadText) -> SparqlResults | None:
    """Return the results under one of the keys of an object; only one value in it may be results."""
    refuse_error_report(value)
    found: list[tuple[str, SparqlResults]] = []
    cuts: list[CutOutput] = []
    holders = [(value, "", 1)]
    for holder, path, level in holders:  # grows during the loop
        for key, inner in holder.items():
            if key == "intermediate_steps" and _is_array(inner) and all(isinstance(step, Mapping) for step in inner):
                inner = {name: cell for step in inner for name, cell in step.items()}  # of LangChain's chain for Cypher
            try:
                results = _part(str(key).lower(), inner, read_text)
            except CutOutput as problem:
                cuts.append(problem)
            except UnreadableOutput:
                continue
            else:
                if results is not None:
                    found.append((f"{path}{key}", results))
                elif isinstance(inner, Mapping) and level < _LEVELS:
                    holders.append((inner, f"{path}{key}.", level + 1))
    found = [each for each in found if not each[1].is_untyped] or found
    found = [each for each in found if not any(column.structures for column in each[1].columns.values())] or found
    if any(results.columns != found[0][1].columns for _, results in found):
        places = f"{printable(listed([place for place, _ in found]))}); steps.outputs can say which (path)"
        raise UnreadableOutput(f"a JSON object with several things that may be the results ({places}")
    if not found and cuts:
        raise cuts[0]
    return _noted(found[0][1], f"under {printable(shortened(found[0][0], 60))}") if found else None


def _part(name: str, inner: Any, read_text: ReadText) -> SparqlResults | None:
    """Return the results under one key; a text or an array must look like more than a single value."""
    if isinstance(inner, str):
        begins = inner[:50].lstrip("\ufeff \t\r\n")[:1]
        may_be_results = begins in {"{", "[", "<", "`"} or (name in RESULT_KEYS and "\n" in inner)
        return read_text(inner) if may_be_results else None
    if isinstance(inner, Mapping):
        is_graphson = inner.keys() == {"@type", "@value"}
        return _of_object(inner, read_text) if is_graphson else _of_sparql(inner) or _of_named_columns(inner)
    if _is_array(inner) and (not _are_scalars(inner) if inner else name in RESULT_KEYS):
        return _of_array(inner, read_text)
    return None


def _of_one_object(value: Mapping[Any, Any]) -> SparqlResults:
    """Read an object that contains no results as one row, unless it is a message or only information about results."""
    names, cells = set(map(_plain_key, value.keys())), list(value.values())
    of_rows, lists = names - _ABOUT_KEYS, [cell for cell in cells if _is_array(cell)]
    is_report = (
        not of_rows or (len(of_rows) > 1 and of_rows <= _COUNT_KEYS | RESULT_KEYS) or names & {"head", "boolean"}
    )
    has_results = lists and (of_rows < names or not all(map(_are_scalars, lists)))
    is_message = sum(isinstance(cell, str) and is_prose(cell) for cell in cells) == len(cells) - len(lists)
    has_objects = not all(is_entity(cell) or _is_term(cell) for cell in cells if isinstance(cell, Mapping))
    if is_report or has_results or is_message or has_objects:
        raise UnreadableOutput("a JSON object without SPARQL results")
    return replace(_of_objects([value]), form="an object as one row")


def _of_objects(rows: Sequence[Mapping[Any, Any]]) -> SparqlResults:
    """Return the results of row objects."""
    table = [{str(name): cell for name, cell in row.items()} for row in rows]
    names = list(dict.fromkeys(name for row in table for name in row))
    if not names or any(name.startswith("@") for name in names):
        raise UnreadableOutput("JSON-LD, which is not rows" if names else "rows without a cell")
    if len(names) * len(table) > _MOST_CELLS:
        raise UnreadableOutput(f"{len(table):,} rows with {len(names):,} different keys")
    if len(table) == 1:  # its status may be a cell
        refuse_error_report({name: cell for name, cell in table[0].items() if name.lower() in ERROR_KEYS})
    if all(cell is None or (isinstance(cell, dict) and _is_term(cell)) for row in table for cell in row.values()):
        return replace(results_from_bindings(names, table), form="a list of bindings")
    results = _of_table(names, [[row.get(name) for name in names] for row in table], "an array of row objects")
    return results if results.is_untyped else replace(results, form="a list of bindings")


def _of_table(names: Sequence[Any], rows: Sequence[Sequence[Any]], form: str) -> SparqlResults:
    """Return the results of rows of cells: RDF terms, plain values or values of a property graph."""
    if not all(isinstance(name, str) for name in names):
        raise UnreadableOutput("rows of columns whose names are not all texts")
    if not names or any(len(row) != len(names) for row in rows):
        raise UnreadableOutput(f"rows that do not all have {counted(len(names), 'cell')}, one for each column")
    names = distinct_names(names)
    require_unicode(names)
    cells = [cell for row in rows for cell in row if cell is not None]
    if len(names) > 1 and cells and all(_is_array(cell) and len(cell) == 1 and _are_scalars(cell) for cell in cells):
        rows = [[cell and cell[0] for cell in row] for row in rows]  # as Gremlin's valueMap() has them
    texts, has_variables = [cell for cell in cells if isinstance(cell, str)], all(name[:1] == "?" for name in names)
    is_doubtful = all(text[:1] == "_" or text[-1:] == '"' for text in texts)
    if has_variables or (all(map(_TURTLE.fullmatch, texts)) and not is_doubtful):  # as QLever's own JSON has them
        names = [name.removeprefix("?") for name in names] if has_variables else names
        rows = [[term_of_turtle(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    reader, columns = GraphReader(), dict.fromkeys(names, TermColumn([], []))
    faults: dict[str, str] = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=False):
        if (texts_of_column := _plain_texts(column)) is not None:  # as most of the large ones
            columns[name] = TermColumn(texts_of_column, LITERAL_SHAPE)
            continue
        structures: dict[int, Any] = {}
        terms: list[Term | Triple] = []
        for row, cell in enumerate(column):
            value = cell
            if not isinstance(cell, _PLAIN):
                try:
                    value = term_of(cell) if _is_term(cell) else reader.read(cell)
                except UnreadableOutput as problem:
                    where = f"row {row + 1} of {printable(name[:40])}"
                    raise UnreadableOutput(f"rows whose cell in {where} {problem}") from None
                if isinstance(value, STRUCTURES):
                    structures[row] = value
                    value = printable(readable(value))
            terms.append(_term(value, is_alone=len(names) == 1))
        try:
            columns[name] = column_of(terms)
            columns[name].structures = {**columns[name].structures, **structures}
        except UnreadableOutput as fault:
            del columns[name]
            faults[name] = str(fault)
    reader.join_ends()
    is_untyped = not rows or not all(cell is None or _is_term(cell) for row in rows for cell in row)
    return SparqlResults(columns, len(rows), faults=faults, form=form, is_untyped=is_untyped)


def _plain_texts(column: Sequence[Any]) -> list[str] | None:
    """Return the texts of a column of only texts, or of only finite numbers; None for any other column."""
    kinds = set(map(type, column))
    if kinds == {str}:
        joined = "\n".join(column)
        return list(column) if joined.isascii() and not (joined.startswith("_:") or "\n_:" in joined) else None
    are_numbers = kinds and kinds <= {int, float} and (kinds == {float} or max(map(abs, column)) < _LARGE)
    return list(map(str, column)) if are_numbers and all(map(isfinite, column)) else None


_LARGE: Final = 10**15
_TURTLE: Final = re.compile(r'<[a-zA-Z][\w+.-]*:[^<>\s"]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^<>\s"]+>)?|_:\S+')
_PLAIN: Final = (str, int, float, NoneType)
_TERM_TYPES: Final = ("uri", "literal", "typed-literal", "bnode", "triple")
_TERM_KEYS: Final = frozenset({"value", "type", "datatype", "xml:lang", "lang", "its:dir", "direction"})


def _is_term(cell: Any) -> bool:
    """Return whether a cell is an RDF term and not a map or node that has a property named value."""
    if not isinstance(cell, dict):
        return isinstance(cell, Term | Triple)
    return "value" in cell and (cell.get("type") in _TERM_TYPES or cell.keys() <= _TERM_KEYS)


def _term(value: Any, *, is_alone: bool) -> Term | Triple:
    """Return a scalar as a term; NaN is a missing cell, as in pandas, unless it is the only cell of its row."""
    if isinstance(value, str):
        is_blank_node = value[:2] == "_:" and len(value) > 2
        return Term(value[2:], ("bnode", None, None)) if is_blank_node else Term(value)
    if isinstance(value, Term | Triple):
        return value
    return UNBOUND if value is None or (value != value and not is_alone) else term_of_value(value)
