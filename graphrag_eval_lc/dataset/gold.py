"""Turns the gold results of a published dataset into the reference output of a step."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.matchers import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, parse_sparql_results, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import JSON_MEDIA_TYPE
from graphrag_eval_lc.texts import listed, plural, shortened

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS: Final = frozenset(f"{_XSD}{name}" for name in ("integer", "int", "long", "decimal", "float", "double")) | {
    f"{_XSD}{sign}Integer" for sign in ("nonNegative", "positive", "nonPositive", "negative")
}
_DATES: Final = frozenset(f"{_XSD}{name}" for name in ("date", "dateTime", "gYear", "gYearMonth", "gMonthDay"))
# The column of the row with which Virtuoso and others answer ASK.
_ASK_COLUMN: Final = ["__ASK_RETVAL"]
_ASK: Final = re.compile(
    r"(?:\s+|#[^\r\n]*|PREFIX\s*[^\s:]*:\s*<[^>]*>|BASE\s*<[^>]*>|DEFINE\s+\S+\s+\S+)*+ASK\b", re.IGNORECASE
)


class BrokenGoldError(ValueError):
    """Gold results cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold results."""

    output: str
    media_type: str | None  # its media type; None if the output is compared as a text
    columns: tuple[str, ...] | None  # the columns that an answer needs; None if it needs none (ASK, or a text)
    is_empty: bool = False  # whether it has no rows, or none that binds anything
    answer_type: str | None = None  # QALD's answer types: boolean, number, date, resource, string or table
    notes: tuple[str, ...] = ()  # what was corrected

    def as_step_keys(self) -> dict[str, Any]:
        """Return the keys of a reference step that hold the gold."""
        keys: dict[str, Any] = {"output": self.output}
        if self.media_type is not None:
            keys["output_media_type"] = self.media_type
        if self.columns is not None:
            keys["required_columns"] = list(self.columns)
        return keys


def gold_of_value(value: Any) -> Gold | None:
    r"""Return the gold answer in a cell: one or several SPARQL JSON results, rows, or any text; None if it is empty.

    Example:
        >>> gold_of_value([{"head": {}, "boolean": False}]).answer_type, gold_of_value('[{"n": 6}]').columns
        ('boolean', ('n',))
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = value if isinstance(value, str) else json_text(value)
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        _require_whole(text)
        return Gold(text, None, None)
    tables = [each for each in (value if isinstance(value, list) else [value]) if each]
    if tables and is_sparql_results(tables[0]):
        return gold_of_sparql(tables[0] if len(tables) == 1 else _joined(tables))
    named = _with_names(value)
    text = text if named is value else json_text(named)
    try:
        results = read_sparql_results(text)
    except UnreadableOutput:
        return Gold(text, JSON_MEDIA_TYPE, None, is_empty=value in ([], {}, None))
    is_named = isinstance(named, list) and any(isinstance(row, Mapping) for row in named)
    return Gold(text, JSON_MEDIA_TYPE, results.variables if is_named else None, is_empty=not results.row_count)


def _joined(tables: list[Any]) -> dict[str, Any]:
    """Join several SPARQL results that have the same columns."""
    parts = [gold for each in tables if not (gold := gold_of_sparql(each)).is_empty]
    if not parts or any(part.columns is None or part.columns != parts[0].columns for part in parts):
        raise BrokenGoldError(f"there are {len(tables)} results, which do not have the same columns")
    rows = [row for each in tables for row in bindings_of(each)]
    return {"head": {"vars": list(parts[0].columns or ())}, "results": {"bindings": rows}}


def is_sparql_results(value: Any) -> bool:
    """Return whether a value looks like SPARQL JSON results, even if they are broken."""
    return isinstance(value, Mapping) and ("head" in value or "results" in value or "boolean" in value)


def _with_names(value: Any) -> Any:
    """Name the columns of a list of values or of rows without names; anything else is returned unchanged."""
    cells = [row if isinstance(row, list) else [row] for row in value] if isinstance(value, list) else []
    widths = {len(row) for row in cells}
    if len(widths) != 1 or widths == {0} or any(isinstance(cell, list | dict) for row in cells for cell in row):
        return value
    names = ["answer"] if widths == {1} else [f"answer{number}" for number in range(1, len(cells[0]) + 1)]
    return [dict(zip(names, row, strict=True)) for row in cells]


def _require_whole(text: str) -> None:
    """Raise BrokenGoldError if a text is JSON rows that were cut off; any other text may be gold."""
    try:
        read_sparql_results(text)
    except CutOutput as problem:
        raise BrokenGoldError(str(problem)) from None
    except UnreadableOutput:
        pass


def is_ask_query(query: str) -> bool:
    r"""Return whether a SPARQL query is an ASK."""
    return _ASK.match(query) is not None


def with_truth(query: str, value: Any) -> Any:
    """Return a store's answer, converted to a boolean if the store answers ASK with rows, as Virtuoso does."""
    if not is_ask_query(query) or not isinstance(value, Mapping) or value.get("boolean") is not None:
        return value
    if "results" not in value:
        raise BrokenGoldError("they have no boolean and no results")
    return parse_json(_gold_of_ask(_truth_in(_cells(bindings_of(value)))).output)


def _cells(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{str(name): _cell(name, cell) for name, cell in row.items() if cell is not None} for row in rows]


def gold_of_sparql(value: Any) -> Gold:
    """Return SPARQL JSON results as gold: compact JSON, and the columns that at least one row binds.

    Many published datasets have an incomplete ``head``, so columns that only rows have count too. Numbers and booleans
    become texts. Some stores, such as Virtuoso, answer ASK with rows: a row with 1 is true, no row or 0 is false.
    """
    if not isinstance(value, Mapping):
        raise BrokenGoldError(f"SPARQL results are a JSON object, not {shortened(json_text(value), 60)}")
    if value.get("boolean") is not None:
        return _gold_of_ask(value["boolean"])
    cells = _cells(bindings_of(value))
    declared = _declared(value.get("head"))
    if _ASK_COLUMN in (declared, *map(list, cells)):
        return _gold_of_ask(_truth_in(cells))
    bound = {name for row in cells for name in row}
    names = list(dict.fromkeys([*declared, *(name for row in cells for name in row)]))
    columns = tuple(name for name in names if name in bound) or tuple(names)
    whole = {"head": {"vars": names}, "results": {"bindings": cells}}
    output = json_text(whole, is_compact=True)
    try:
        faults = parse_sparql_results(output).faults
    except UnreadableOutput as problem:
        raise BrokenGoldError(f"they cannot be read: {problem}") from None
    if faults:
        raise BrokenGoldError(f"the {plural(len(faults), 'column')} {listed(list(faults))} cannot be read")
    unnamed = [name for name in columns if name not in declared]
    notes = (f"head.vars lacks {listed(unnamed)}, which rows bind",) if declared and unnamed else ()
    return Gold(output, SPARQL_RESULTS, columns, not bound, _answer_type(cells, columns), notes)


def bindings_of(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of SPARQL JSON results; an empty list if the bindings are missing."""
    results = value.get("results")
    rows = (results.get("bindings") if isinstance(results, Mapping) else results) or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise BrokenGoldError("bindings are not a list of rows, each a JSON object")
    return rows


def _gold_of_ask(value: Any) -> Gold:
    word = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(word, str):
        word = {"true": True, "false": False}.get(word)
    if not isinstance(word, bool):
        raise BrokenGoldError(f"boolean is {shortened(json_text(value), 40)}, not true or false")
    return Gold(json_text({"head": {}, "boolean": word}, is_compact=True), SPARQL_RESULTS, None, False, "boolean")


def _truth_in(rows: list[dict[str, Any]]) -> Any:
    """Return the truth value in the rows of a store that answers ASK with rows."""
    cells = [cell["value"] for row in rows for cell in row.values()]
    if len(cells) > 1:
        raise BrokenGoldError(f"an ASK is answered with {len(cells)} values")
    return {"1": True, "0": False}.get(cells[0], cells[0]) if cells else False


def _declared(head: Any) -> list[str]:
    given = head.get("vars") if isinstance(head, Mapping) else None
    if isinstance(given, str):
        given = [given]
    return list(dict.fromkeys(map(str, given))) if isinstance(given, list) else []


def _cell(name: Any, cell: Any) -> dict[str, Any]:
    """Return an RDF term of SPARQL JSON with its type, and with its value as a text."""
    if not isinstance(cell, Mapping) or cell.get("value") is None:
        what = shortened(json_text(cell), 60)
        raise BrokenGoldError(f"a cell of {name} is not an RDF term with a value: {what}")
    term = {str(key): part for key, part in cell.items() if part is not None}
    if isinstance(term["value"], bool | int | float):
        term["value"] = json_text(term["value"])
    if not term.get("type"):
        term = {"type": "literal", **term}
    return term


def _answer_type(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> str | None:
    if len(columns) > 1:
        return "table"
    cells = [row[name] for row in rows for name in columns if name in row]
    if not cells:
        return None
    if all(cell["type"] in ("uri", "iri", "bnode") for cell in cells):
        return "resource"
    datatypes = {cell.get("datatype") for cell in cells}
    if datatypes <= _NUMBERS or (datatypes == {None} and _are_numbers(cell["value"] for cell in cells)):
        return "number"
    return "date" if datatypes <= _DATES else "string"


def _are_numbers(texts: Iterable[Any]) -> bool:
    try:
        return all(isinstance(parse_json(text), int | float) for text in texts)
    except (ValueError, TypeError, RecursionError):
        return False
