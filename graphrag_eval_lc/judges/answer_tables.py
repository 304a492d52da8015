"""Reads and writes tables of answers as CSV or TSV, with the columns of a judge and the labels of people."""

import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, ResponsesError
from graphrag_eval_lc.files.reading import cells_of_any_length, read_text
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metric_spec import error_key, reason_key
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_F1
from graphrag_eval_lc.texts import counted

_WHAT = "table of answers"
_DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon"}


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """A table read from a file; for each row it has the cells and the line on which the row begins."""

    path: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the indexes of columns; the names that datasets and responses use for them are accepted too."""
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

    Cells of a ``.tsv`` file are separated by tabs. Otherwise the first row decides: commas, semicolons or tabs.

    Raises:
        ResponsesError: The file cannot be read, is empty or not UTF-8, or a row has too many or too few cells or
            unmatched quotation marks.
    """
    file = read_text(path, ResponsesError, what=_WHAT)
    rows: list[list[str]] = []
    lines: list[int] = []
    line = 1
    first_row = file.text.lstrip("\r\n").partition("\n")[0]
    delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else max(_DELIMITERS, key=first_row.count)
    with cells_of_any_length():
        # strict: otherwise an unmatched quotation mark silently swallows the rows after it.
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


def table_lines(rows: Iterable[Sequence[str]], path: str | PathLike[str] = "") -> Iterator[bytes]:
    r"""Yield rows as lines of a file, from which ``read_table`` returns the same cells.

    Cells are separated by commas in a ``.csv`` file, and by tabs in any other file.

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
"""The columns of answers, and the key of each in datasets and responses."""

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
    """Return the cells of answer correctness in a result, by column; missing keys are blank, and lists are JSON.

    Example:
        >>> cells = cells_of({"answer_matching_claims_count": 1, "answer_true_positives": ["Oslo is in NO1."]})
        >>> cells["#Matching"], cells["True positives"], cells["Error"]
        ('1', '["Oslo is in NO1."]', '')
    """
    values = {column: record.get(key) for column, key in _KEYS.items()}
    return {
        column: value if isinstance(value, str) else "" if value is None else json_text(value)
        for column, value in values.items()
    }


def is_judged(cells: Cells) -> bool:
    """Return whether a row has its counts and no error."""
    return not cells["Error"].strip() and all(cells[column].isdecimal() for column in _COUNTS)


def score_in(cells: Cells, metric: str) -> float | None:
    """Return the score of a judged row, 0 to 1; None without claims to count.

    ``answer_f1`` is ``2 · #Matching / (#Reference + #PTarget)``, and ``answer_recall`` ``#Matching / #Reference``.

    Example:
        >>> score_in({"#Reference": "3", "#PTarget": "3", "#Matching": "2"}, "answer_f1")
        0.6666666666666666
    """
    reference, actual, matching = (int(cells[column]) for column in _COUNTS)
    part, whole = (2 * matching, reference + actual) if metric == ANSWER_F1 else (matching, reference)
    return part / whole if whole else None


# --- labels of people ---

LABEL_COLUMN: Final = "Label"
_CORRECT = frozenset({"1", "yes", "true", "correct"})
_INCORRECT = frozenset({"0", "no", "false", "incorrect"})


def labels_in(table: AnswerTable, column: str) -> list[bool | None]:
    """Return for each row whether its answer is correct according to a column; None if the cell is blank.

    A label is 1, yes, true or correct; or 0, no, false or incorrect; case is ignored. Raises a ResponsesError if the
    column is missing, has other values or has no label at all.
    """
    (place,) = table.places([column])
    labels = []
    for row, line in zip(table.rows, table.lines, strict=True):
        label = row[place].strip().lower()
        if label and label not in _CORRECT | _INCORRECT:
            near = difflib.get_close_matches(label, sorted(_CORRECT | _INCORRECT), n=1, cutoff=0.7)
            hint = f"Did you mean {near[0]}?" if near else "Write 1, yes, true or correct; 0, no, false or incorrect."
            what = f"{row[place][:50]!r} is no label"
            raise ResponsesError(what, path=table.path, line=line, key=column, hint=hint)
        labels.append(label in _CORRECT if label else None)
    if not any(label is not None for label in labels):
        raise ResponsesError("no row has a label", path=table.path, key=column, hint="Write 1 or 0 in this column.")
    return labels


class JudgeLabels:
    """Pairs of a judge's score and the label of the same answer.

    A row that the judge scored has both. A row without a score, such as a note in a report, gets the score of the
    result with the same question and answer. If there is a result for a scored row, the result's score counts.

    The table has the columns of answers, ``Label``, and optionally those of the judge that ``judge agreement --output``
    writes.

    Example:
        >>> columns = ("question_text", "reference_answer", "actual_answer", "Label")
        >>> table = AnswerTable("labelled.tsv", columns, [["q", "r", "a", "1"]], [2])
        >>> labels = JudgeLabels(table)
        >>> labels.add({"question_text": "q", "actual_answer": "a", "answer_f1": 0.8})
        >>> labels.pairs()
        [(0.8, 1.0)]
    """

    def __init__(self, table: AnswerTable) -> None:
        question, _, answer = table.places(ANSWER_COLUMNS)
        labels = labels_in(table, LABEL_COLUMN)
        judged = table.places(JUDGED_COLUMNS) if set(JUDGED_COLUMNS) <= set(table.columns) else None
        self._labels: dict[tuple[str, str], float] = {}
        self._scores: dict[tuple[str, str], float] = {}
        for row, label in zip(table.rows, labels, strict=True):
            if label is None:
                continue
            self._labels[row[question], row[answer]] = float(label)
            cells = {} if judged is None else dict(zip(JUDGED_COLUMNS, (row[place] for place in judged), strict=True))
            score = score_in(cells, ANSWER_F1) if cells and is_judged(cells) else None
            if score is not None:
                self._scores[row[question], row[answer]] = score

    def add(self, result: Mapping[str, Any]) -> None:
        """Add the score of a result if its answer has a label."""
        score, key = result.get(ANSWER_F1), (result.get("question_text"), result.get("actual_answer"))
        if isinstance(score, int | float) and key in self._labels:
            self._scores[key] = float(score)

    def pairs(self) -> list[tuple[float, float]]:
        """Return the score and the label of each answer that has both, each 0 to 1."""
        return [(score, self._labels[key]) for key, score in self._scores.items()]


def judge_labels(path: str | PathLike[str]) -> JudgeLabels:
    """Return the labels in the file that a config names; raise a ConfigError if something is wrong with them."""
    try:
        return JudgeLabels(read_table(path))
    except GraphRAGEvalError as problem:
        hint = "Give what graphrag-eval-lc judge agreement wrote with --output, or leave the key out."
        raise ConfigError(f"the labels cannot be used: {problem}", key="judges.labels", hint=hint) from problem
