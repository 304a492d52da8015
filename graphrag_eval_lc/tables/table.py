"""Tables: their cells, which columns are scores, and how they become CSV, Parquet and frames."""

import csv
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError, cannot_write
from graphrag_eval_lc.files.opening import open_to_write
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import JUDGES, OUTPUTS_CUT, UNDECIDED, UPPER_BOUNDS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

Row = Mapping[str, Any]

# Spreadsheets drop leading blanks and line breaks, and Excel reads full-width signs like the usual ones.
_FORMULA = re.compile("[\t\r]|[\\s\x00-\x1f\u200b\ufeff]*[=+@\uff1d\uff0b\uff0d\uff20-]")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with named columns; unknown cells are absent."""

    columns: tuple[str, ...]
    rows: Sequence[Row]

    @classmethod
    def of(cls, rows: Iterable[Row], first: Iterable[str] = ()) -> "Table":
        """Return a table with the columns of its rows as they are first seen, after ``first``."""
        kept = list(rows)
        return cls(tuple(dict.fromkeys([*first, *(column for row in kept for column in row)])), kept)

    def with_texts_last(self, first: Sequence[str]) -> "Table":
        """Return the table with columns that hold texts after all others; the ``first`` ones stay in front."""
        texts = {column for row in self.rows for column, value in row.items() if isinstance(value, str)} - {*first}
        return Table(tuple(sorted(self.columns, key=texts.__contains__)), self.rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a frame; absent cells are missing values.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as problem:
            raise MissingExtraError("A frame", "notebook", "pandas") from problem
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write the table as comma-separated values in UTF-8; absent cells are empty.

        Spreadsheets run a text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, even if the sign is
        full-width or follows blanks or line breaks. A text of an agent or a graph may begin so. Such a text is written
        with a leading ``'``, which marks it as text; so is one that begins with a tab or a carriage return. Numbers
        are unchanged, even if they are texts.

        Returns:
            The file.

        Raises:
            RunFolderError: The file cannot be written.
        """
        target = Path(path)
        try:
            # Broken JSON may hold lone surrogates, which UTF-8 cannot encode.
            with TextIOWrapper(open_to_write(target), "utf-8", "backslashreplace", newline="") as file:
                writer = csv.DictWriter(file, self.columns)
                csv.writer(file).writerow(map(_cell, self.columns))
                writer.writerows({column: _cell(value) for column, value in row.items()} for row in self.rows)
        except OSError as problem:
            raise cannot_write(target, problem, is_output=True) from problem
        return target


def _cell(value: object) -> object:
    """Return a value that a spreadsheet shows and does not run."""
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _is_number(value)
    return f"'{value}" if is_formula else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# The lists in results whose lengths are columns of a table of questions.
COUNTED_LISTS = ("llm_calls", "capture_warnings")
# Columns of that table that hold numbers but are not metrics.
_NO_METRICS = frozenset(
    {
        "repeat",
        *(f"steps_{count}" for count in ("total", "extra", "repeated", "failed", UNDECIDED, OUTPUTS_CUT)),
        *COUNTED_LISTS,
        *(key for judge in JUDGES for key in judge.details),
    }
)


def scalars(record: Mapping[str, Any], but: Collection[str]) -> Iterable[tuple[str, Any]]:
    """Return the numbers, booleans and texts of a record without those of the keys ``but``."""
    return (
        (key, value) for key, value in record.items() if isinstance(value, bool | int | float | str) and key not in but
    )


def measured(value: object) -> float | None:
    """Return a number that can be averaged and drawn; None for all other values."""
    return float(value) if isinstance(value, int | float) and abs(value) <= LARGEST else None


def scores(table: Table) -> list[str]:
    """Return the columns of a table of questions that are scores: metrics declared so, or not declared at all."""
    return [
        column
        for column in table.columns
        if column not in _NO_METRICS
        and metric_spec(column).kind == "score"
        and any(measured(row.get(column)) is not None for row in table.rows)
    ]


def value_in(row: Row, metric: str) -> float | None:
    """Return a row's number for a metric; for a missing upper bound, the value that it would bound."""
    value = measured(row.get(metric))
    return measured(row.get(UPPER_BOUNDS.get(metric, metric))) if value is None else value


def means(rows: Sequence[Row], metrics: Iterable[str]) -> dict[str, float]:
    """Return the mean of each metric over the answered questions that have it.

    The mean of an upper bound is over the questions that have the value that it bounds.
    """
    answered = [row for row in rows if row["status"] != "error"]
    found = {}
    for metric in metrics:
        if values := [value for row in answered if (value := value_in(row, metric)) is not None]:
            found[metric] = fmean(values)
    return found


_INT64 = range(-(2**63), 2**63)


def write_parquet(table: Table, path: str | PathLike[str]) -> Path:
    """Write a table as a Parquet file; absent cells are null, and an existing file is replaced.

    A column holds booleans, 64-bit integers, doubles (also if integers and floats are mixed, or an integer is larger)
    or texts. If it mixes several of these, or holds lists or objects, all its cells are texts; lists and objects are
    written as JSON.

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
    columns = {column: _arrow_array([row.get(column) for row in table.rows]) for column in table.columns}
    try:
        with open_to_write(target) as file:
            parquet.write_table(pyarrow.table(columns), file)
    except OSError as problem:
        raise cannot_write(target, problem, is_output=True) from problem
    return target


def _arrow_array(values: list[object]) -> "pyarrow.Array":
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return pyarrow.array(values, pyarrow.int64())
    if kinds and kinds <= {int, float}:
        return pyarrow.array([_double(value) for value in values], pyarrow.float64())
    return pyarrow.array([_utf8_text(value) for value in values], pyarrow.string())


def _double(value: object) -> float | None:
    """Return a number as a double; one that is too large for any is infinite."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _utf8_text(value: object) -> str | None:
    """Return a cell as text that UTF-8 can encode."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json_text(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
