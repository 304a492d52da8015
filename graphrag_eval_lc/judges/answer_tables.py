"""Tables of answers as CSV or TSV, and the columns that a judge adds."""

import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.files.csv_cells import cells_of_any_length
from graphrag_eval_lc.files.reading import read_text
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metric_spec import error_key, reason_key
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_F1
from graphrag_eval_lc.texts import counted

_WHAT = "table of answers"
_DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon"}


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """A table as read from a file.

    Attributes:
        path: The file.
        columns: The names in its first row.
        rows: The other rows, each with a cell for each column.
        lines: The line of the file in which each row begins.
    """

    path: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the indexes of columns, also under the names that datasets and responses have for them.

        Raises:
            ResponsesError: A column is missing or occurs twice.
        """
        found = [name if name in self.columns else _KEYS_OF_COLUMNS.get(name, name) for name in names]
        missing = [name for name, each in zip(names, found, strict=True) if each not in self.columns]
        if missing:
            others = [column for column in self.columns if column and column not in found]
            raise ResponsesError(
                f"found no column {' and no column '.join(missing)}",
                path=self.path,
                line=1,
                hint=_hint_of(missing[0], others),
            )
        for name in found:
            if self.columns.count(name) > 1:
                raise ResponsesError(
                    f"there are {self.columns.count(name)} columns {name}",
                    path=self.path,
                    line=1,
                    hint="Rename all but one.",
                )
        return [self.columns.index(name) for name in found]


def read_table(path: str | PathLike[str]) -> AnswerTable:
    """Read a table with the column names in its first row; blank lines are skipped.

    Tabs are between the cells of a ``.tsv`` file. Otherwise the first row decides: commas, semicolons or tabs.

    Raises:
        ResponsesError: The file cannot be read, is empty or not UTF-8, or a row has too many or too few cells or
            unmatched quotation marks.
    """
    file = read_text(path, ResponsesError, what=_WHAT)
    rows: list[list[str]] = []
    lines: list[int] = []
    line = 1
    delimiter = _delimiter_of(path, file.text)
    with cells_of_any_length():
        # strict: else a lone quotation mark silently swallows the rows after it.
        reader = csv.reader(io.StringIO(file.text, newline=""), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(line)
                line = reader.line_num + 1
        except csv.Error as problem:
            raise ResponsesError(
                f"the row cannot be read: {problem}",
                path=path,
                line=line,
                hint='Write a cell that begins with a quotation mark as "…", with each mark in it doubled.',
            ) from problem
    if not rows:
        raise ResponsesError(f"the {_WHAT} has no columns", path=path, hint="Give their names in its first row.")
    columns = rows[0]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(columns):
            raise ResponsesError(
                f"the row has {counted(len(row), 'cell')} and the first row {len(columns)}",
                path=path,
                line=line,
                hint=f'Write a cell that holds a {_DELIMITERS[delimiter]} or a line break as "…", and leave no cell '
                "out.",
            )
    return AnswerTable(str(path), tuple(columns), rows[1:], lines[1:])


def _delimiter_of(path: str | PathLike[str], text: str) -> str:
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    first_row = text.lstrip("\r\n").partition("\n")[0]
    return max(_DELIMITERS, key=first_row.count)


def table_lines(rows: Iterable[Sequence[str]], path: str | PathLike[str] = "") -> Iterator[bytes]:
    r"""Yield rows as lines of a file; ``read_table`` returns the same cells again.

    Args:
        rows: The rows.
        path: The file. Commas are between the cells of a ``.csv`` file, and tabs between those of all others.

    Example:
        >>> list(table_lines([["a", "b c"], ["d\te", ""]]))
        [b'a\tb c\n', b'"d\te"\t\n']
        >>> list(table_lines([["a", "b, c"]], "judged.csv"))
        [b'a,"b, c"\n']
    """
    delimiter = "," if Path(path).suffix.lower() == ".csv" else "\t"
    for row in rows:
        # A lone surrogate, which a model may write in JSON, cannot be encoded.
        yield (delimiter.join(_quoted(cell, delimiter) for cell in row) + "\n").encode("utf-8", "replace")


def _quoted(cell: str, delimiter: str) -> str:
    # Not csv: some versions of Python leave a lone carriage return unquoted.
    return '"' + cell.replace('"', '""') + '"' if any(sign in cell for sign in f'{delimiter}\r\n"') else cell


def _hint_of(missing: str, others: Sequence[str]) -> str:
    plain = {_plain(column): column for column in others}
    near = difflib.get_close_matches(_plain(missing), plain, n=1, cutoff=0.5)
    if near:
        return f"Rename {plain[near[0]]}, if that is it, to {missing}."
    names = ", ".join(others)[:300] or "none"
    return f"The other columns are: {names}. The first row names the columns, with commas or tabs between them."


def _plain(column: str) -> str:
    return column.strip().lower().replace("_", " ")


_KEYS_OF_COLUMNS = {
    "Question": "question_text",
    "Reference answer": "reference_answer",
    "Actual answer": "actual_answer",
}
ANSWER_COLUMNS = tuple(_KEYS_OF_COLUMNS)
"""The columns of answers, each also under the key that datasets and responses have for it."""

_KEYS = {
    "#Reference": "answer_reference_claims_count",
    "#PTarget": "answer_actual_claims_count",
    "#Matching": "answer_matching_claims_count",
    "Reasoning": reason_key(ANSWER_CORRECTNESS),
    "Error": error_key(ANSWER_CORRECTNESS),
    "True positives": "answer_true_positives",
    "False positives": "answer_false_positives",
    "False negatives": "answer_false_negatives",
}
JUDGED_COLUMNS = tuple(_KEYS)
_COUNTS = JUDGED_COLUMNS[:3]

Cells = Mapping[str, str]


def cells_of(record: Mapping[str, Any]) -> Cells:
    """Return the cells of answer correctness, by column.

    Args:
        record: The keys of a result. Absent ones are blank cells; lists become JSON.

    Example:
        >>> cells = cells_of({"answer_matching_claims_count": 1, "answer_true_positives": ["Oslo is in NO1."]})
        >>> cells["#Matching"], cells["True positives"], cells["Error"]
        ('1', '["Oslo is in NO1."]', '')
    """
    return {column: _text(record.get(key)) for column, key in _KEYS.items()}


def is_judged(cells: Cells) -> bool:
    """Return whether a row has its counts and no error."""
    return not cells["Error"].strip() and all(cells[column].isdecimal() for column in _COUNTS)


def score_in(cells: Cells, metric: str) -> float | None:
    """Return the score of a judged row.

    Args:
        cells: Its cells; see ``is_judged``.
        metric: ``answer_f1``, which is ``2 · #Matching / (#Reference + #PTarget)``, or ``answer_recall``, which is
            ``#Matching / #Reference``.

    Returns:
        0 to 1; None without claims to count.

    Example:
        >>> score_in({"#Reference": "3", "#PTarget": "3", "#Matching": "2"}, "answer_f1")
        0.6666666666666666
    """
    reference, actual, matching = (int(cells[column]) for column in _COUNTS)
    part, whole = (2 * matching, reference + actual) if metric == ANSWER_F1 else (matching, reference)
    return part / whole if whole else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)
