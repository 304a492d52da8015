"""Tables in JSON objects: names of columns beside rows, a list of cells for each column, and pandas' other forms.

They are what the tools of SQL databases give: ``{"columns": ["n"], "rows": [[5]]}``, ``{"n": [5, 6]}``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.matching.outputs import UnreadableOutput

_KEYS_OF_NAMES: Final = ("columns", "column_names", "columnNames", "cols", "headers", "header", "fields", "meta")
_KEYS_OF_ROWS: Final = ("rows", "data", "values", "records", "results", "result", "data_array")
_KEYS_OF_A_NAME: Final = ("name", "column_name", "columnName", "field", "title")
_KEYS_OF_RESULTS: Final = ("data", "output", "result", "results", "rows", "records")
INDEX: Final = "index"
"""The name of a column that a table has for its rows, where it has none itself."""


class NamedRows(NamedTuple):
    """A table.

    Attributes:
        names: The names of its columns.
        rows: The cells of each row.
        form: What it was.
    """

    names: list[str]
    rows: Sequence[Sequence[Any]]
    form: str


def named_rows(value: Mapping[Any, Any]) -> NamedRows | None:
    """Return the table that an object is which has the names of the columns beside the rows; None for all else.

    A column of pandas' index that only counts the rows is left out.

    Raises:
        UnreadableOutput: The names do not fit the rows.

    Example:
        >>> named_rows({"columns": ["name", "n"], "rows": [["Oslo", 5]], "rowCount": 1})[:2]
        (['name', 'n'], [['Oslo', 5]])
        >>> named_rows({"columns": ["name"], "rows": [["Oslo"]], "data": []}) is None
        True
    """
    schema = value.get("schema")
    holder = {**value, **schema} if isinstance(schema, Mapping) else value
    named = [found for key in _KEYS_OF_NAMES if (found := _names(holder.get(key))) is not None]
    lists = [rows for key in _KEYS_OF_ROWS if isinstance(rows := value.get(key), list | tuple)]
    if len(named) != 1 or len(lists) != 1:
        return None
    names, rows = named[0], lists[0]
    form = "rows beside the names of their columns"
    if all(isinstance(row, list | tuple) for row in rows):
        if any(len(row) != len(names) for row in rows):
            raise UnreadableOutput(f"rows of other lengths than their {len(names)} names")
        index = value.get(INDEX)
        if isinstance(index, list) and len(index) == len(rows) and not counts(index) and INDEX not in names:
            return NamedRows([INDEX, *names], [[at, *row] for at, row in zip(index, rows, strict=True)], form)
        return NamedRows(names, list(rows), form)
    if not all(isinstance(row, Mapping) for row in rows):
        return None
    if all(row.keys() == {"f"} for row in rows):
        return _of_bigquery(names, rows, form)
    if not all(row.keys() <= set(names) for row in rows):
        return None
    cells = [[row.get(name) for name in names] for row in rows]
    has_index = names[:1] == [INDEX] and len(names) > 1 and holder.get("primaryKey") == [INDEX]
    if has_index and counts([row[0] for row in cells]):
        return NamedRows(names[1:], [row[1:] for row in cells], form)
    return NamedRows(names, cells, form)


def counts(cells: Sequence[Any]) -> bool:
    """Return whether cells only count the rows, from 0 on.

    Example:
        >>> counts([0, 1, 2]), counts(["0", "1"]), counts([1, 2]), counts([])
        (True, True, False, True)
    """
    return all(str(cell) == str(at) for at, cell in enumerate(cells))


def _names(value: Any) -> list[str] | None:
    """Return the names of columns that a list of texts or of descriptions is."""
    if not isinstance(value, list | tuple) or not value:
        return None
    names = [_name(item) if isinstance(item, Mapping) else item for item in value]
    is_one = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return names if is_one else None


def _name(description: Mapping[Any, Any]) -> Any:
    return next((description[key] for key in _KEYS_OF_A_NAME if key in description), None)


def _of_bigquery(names: list[str], rows: Sequence[Mapping[Any, Any]], form: str) -> NamedRows | None:
    cells = [row["f"] for row in rows]
    if not all(isinstance(row, list) and len(row) == len(names) for row in cells):
        return None
    if not all(isinstance(cell, Mapping) and cell.keys() == {"v"} for row in cells for cell in row):
        return None
    return NamedRows(names, [[cell["v"] for cell in row] for row in cells], form)


def columns_of_cells(value: Mapping[Any, Any]) -> NamedRows | None:
    """Return the table that an object of columns is, or that stands under one of its keys; None where there is none.

    A column is a list of cells, or an object with the name of each row. Such an object is asked for only where
    nothing else is found.

    Raises:
        UnreadableOutput: Several such tables may be meant, or rows as well as columns.

    Example:
        >>> columns_of_cells({"name": ["Oslo", "Bergen"], "n": [5, 6]})[:2]
        (['name', 'n'], [('Oslo', 5), ('Bergen', 6)])
        >>> columns_of_cells({"n": {"0": 5, "1": 6}})[:2]
        (['n'], [(5,), (6,)])
    """
    inner = [value[key] for key in _KEYS_OF_RESULTS if isinstance(value.get(key), Mapping)]
    found = [table for each in (value, *inner) if (table := _columns(each)) is not None]
    if len(found) > 1:
        raise UnreadableOutput(f"a JSON object with {len(found)} tables that may be the results")
    return found[0] if found else None


def _columns(value: Mapping[Any, Any]) -> NamedRows | None:
    columns = list(value.values())
    names = list(map(str, value))
    if not names or len(set(names)) < len(names):
        return None
    if all(isinstance(column, list | tuple) for column in columns):
        lengths = set(map(len, columns))
        is_message = len(names) == 1 and names[0].lower() in (*_KEYS_OF_ROWS, *_KEYS_OF_RESULTS, "content", "text")
        if len(lengths) != 1 or not lengths.pop() or is_message or not all(map(_are_cells, columns)):
            return None
        return NamedRows(names, list(zip(*columns, strict=True)), "an object of columns")
    if not all(isinstance(column, Mapping) and _are_cells(list(column.values())) for column in columns):
        return None
    return _of_objects(names, columns)


def _are_cells(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, str | int | float) for value in values)


def _of_objects(names: list[str], columns: Sequence[Mapping[Any, Any]]) -> NamedRows | None:
    """Return the table of an object of objects: of columns or of rows, of which the others are counted."""
    inner = list(map(str, columns[0]))
    if not inner or any(list(map(str, column)) != inner for column in columns):
        return None
    cells = [list(column.values()) for column in columns]
    has_counted_rows, are_counted = counts(inner), counts(names)
    if has_counted_rows and are_counted:
        raise UnreadableOutput("an object of objects, in which rows cannot be told from columns")
    if has_counted_rows:
        return NamedRows(names, list(zip(*cells, strict=True)), "an object of columns")
    return NamedRows(inner, list(cells), "an object of rows") if are_counted else None


def without_missing_numbers(rows: Sequence[Mapping[Any, Any]]) -> Sequence[Mapping[Any, Any]]:
    """Return rows without NaN in columns of texts, where pandas writes it for what is missing.

    In a column of numbers NaN may be a number, and stays.

    Example:
        >>> without_missing_numbers([{"name": "Oslo", "n": 5}, {"name": float("nan"), "n": float("nan")}])
        [{'name': 'Oslo', 'n': 5}, {'name': None, 'n': nan}]
    """
    missing = {name for row in rows for name, cell in row.items() if isinstance(cell, float) and cell != cell}
    if not missing:
        return rows
    texts = {name for row in rows for name in missing & row.keys() if isinstance(row[name], str)}
    if not texts:
        return rows
    return [{name: None if name in texts and cell != cell else cell for name, cell in row.items()} for row in rows]
