"""A table of rows: what can stand in a cell, which columns are scores, and its forms as CSV, frame and HTML."""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError, cannot_write
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import JUDGES

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with named columns.

    Attributes:
        columns: The names of the columns in order.
        rows: The cells by column; what is not known of a row is absent.

    Example:
        >>> Table.of([{"id": "a"}, {"id": "b", "score": 1.0}]).columns
        ('id', 'score')
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]

    @classmethod
    def of(cls, rows: Iterable[Row], first: Iterable[str] = ()) -> "Table":
        """Return a table with the columns that its rows have, as they are first seen.

        Args:
            rows: The cells by column.
            first: Columns that are there in any case, before all others.
        """
        kept = list(rows)
        return cls(tuple(dict.fromkeys([*first, *(column for row in kept for column in row)])), kept)

    def with_texts_last(self, first: Sequence[str]) -> "Table":
        """Return the table with columns that hold texts after those that hold numbers, but for the ``first`` ones."""
        texts = {
            column
            for row in self.rows
            for column, value in row.items()
            if isinstance(value, str) and column not in first
        }
        return Table(tuple(sorted(self.columns, key=texts.__contains__)), self.rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a frame; what is absent is missing there.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as problem:
            raise MissingExtraError("A frame", "notebook", "pandas") from problem
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write the table as comma-separated values in UTF-8; what is absent is empty there.

        Spreadsheets run a text as a formula that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return,
        and what an agent or a graph says may begin so. Such a text gets a ``'`` before it, which spreadsheets take
        for the mark of a text. Numbers stay as they are, also those that stand as texts.

        Returns:
            The file.

        Raises:
            RunFolderError: The file cannot be written.
        """
        target = Path(path)
        try:
            # A lone surrogate, as broken JSON may hold, is no character that a file could have.
            with target.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                writer = csv.DictWriter(file, self.columns)
                csv.writer(file).writerow(map(_cell, self.columns))
                writer.writerows({column: _cell(value) for column, value in row.items()} for row in self.rows)
        except OSError as problem:
            raise cannot_write(target, problem) from problem
        return target


def _cell(value: object) -> object:
    """Return a value as a spreadsheet shows it and does not run it."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value)
    return f"'{value}" if is_formula else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def records_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Return rows as a frame, with the columns that they have.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return Table.of(rows).to_pandas()


# Lists of a result of which a table of questions has the length.
COUNTED_LISTS = ("llm_calls", "capture_warnings")
# Columns of such a table that are numbers and no metrics.
_NO_METRICS = frozenset(
    {
        "repeat",
        *(f"steps_{count}" for count in ("total", "extra", "repeated", "failed")),
        *COUNTED_LISTS,
        *(key for judge in JUDGES for key in judge.details),
    }
)


def scalars(record: Mapping[str, Any], but: Collection[str]) -> Iterable[tuple[str, Any]]:
    """Return the numbers, truth values and texts of a record, those of the keys ``but`` left out."""
    return (
        (key, value) for key, value in record.items() if isinstance(value, bool | int | float | str) and key not in but
    )


def measured(value: object) -> float | None:
    """Return a value that can be drawn and averaged as a number; None for all others.

    Example:
        >>> measured(True), measured(0.5), measured(float("nan")), measured(10**400), measured("0.5")
        (1.0, 0.5, None, None, None)
    """
    return float(value) if isinstance(value, int | float) and abs(value) <= LARGEST else None


def scores(table: Table) -> list[str]:
    """Return the columns of a table of questions that say how good the agent was.

    Those are the numbers that are neither spent nor counted; one that nobody declared is a score.
    """
    return [
        column
        for column in table.columns
        if column not in _NO_METRICS
        and metric_spec(column).kind == "score"
        and any(measured(row.get(column)) is not None for row in table.rows)
    ]


def means(rows: Sequence[Row], metrics: Iterable[str]) -> dict[str, float]:
    """Return the mean of each metric over the questions that were answered and have it."""
    answered = [row for row in rows if row["status"] != "error"]
    values = {metric: [measured(row.get(metric)) for row in answered] for metric in metrics}
    known = {metric: [value for value in column if value is not None] for metric, column in values.items()}
    return {metric: fmean(column) for metric, column in known.items() if column}


_LEFT = ' style="text-align: left"'


def table_html(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values; whatever they hold is shown as text.

    Example:
        >>> "&lt;b&gt;" in table_html("A run", [("folder", "<b>")])
        True
    """
    cells = "".join(
        f'<tr><th scope="row"{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(value)}</td></tr>' for name, value in rows
    )
    return f"<table><caption{_LEFT}>{escape(caption)}</caption>{cells}</table>"
