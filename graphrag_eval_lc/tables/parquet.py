"""Tables as Parquet files, which keep the types of columns."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_eval_lc.errors import MissingExtraError, cannot_write
from graphrag_eval_lc.files.opening import open_to_write
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.tables.table import Table

if TYPE_CHECKING:
    import pyarrow

_INT64 = range(-(2**63), 2**63)


def write_parquet(table: Table, path: str | PathLike[str]) -> Path:
    """Write a table as a Parquet file; absent cells are null.

    A column is of booleans, of 64-bit integers, of doubles (also if integers and floats are mixed, or an integer is
    larger) or of texts. If it holds several of these, or lists and objects, all its cells are texts, the latter as
    JSON.

    Returns:
        The file; one that is there is replaced.

    Raises:
        MissingExtraError: pyarrow is not installed.
        RunFolderError: The file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as problem:
        raise MissingExtraError("A Parquet file", "parquet", "pyarrow") from problem
    target = Path(path)
    columns = {column: _array([row.get(column) for row in table.rows]) for column in table.columns}
    try:
        with open_to_write(target) as file:
            parquet.write_table(pyarrow.table(columns), file)
    except OSError as problem:
        raise cannot_write(target, problem, is_output=True) from problem
    return target


def _array(values: list[object]) -> "pyarrow.Array":
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return pyarrow.array(values, pyarrow.int64())
    if kinds and kinds <= {int, float}:
        return pyarrow.array([_double(value) for value in values], pyarrow.float64())
    return pyarrow.array([_text(value) for value in values], pyarrow.string())


def _double(value: object) -> float | None:
    """Return a number as a double; one that is too large for any is infinite."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(value: object) -> str | None:
    """Return a cell as text that UTF-8 can encode."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json_text(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
