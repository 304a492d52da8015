"""Labels of people: whether answers are correct, and what they say of the judge's scores of the same answers."""

import difflib
from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, ResponsesError
from graphrag_eval_lc.judges.answer_tables import (
    ANSWER_COLUMNS,
    JUDGED_COLUMNS,
    AnswerTable,
    is_judged,
    read_table,
    score_in,
)
from graphrag_eval_lc.registry.metrics import ANSWER_F1

LABEL_COLUMN: Final = "Label"
_CORRECT = frozenset({"1", "yes", "true", "correct"})
_INCORRECT = frozenset({"0", "no", "false", "incorrect"})


def labels_in(table: AnswerTable, column: str) -> list[bool | None]:
    """Return the label of each row.

    Args:
        table: The table.
        column: The column of the labels: 1, yes, true or correct; 0, no, false or incorrect; in any case.

    Returns:
        Whether the answer is correct; None if the cell is blank.

    Raises:
        ResponsesError: The column is missing, a label is something else, or there is none at all.
    """
    (place,) = table.places([column])
    labels = []
    for row, line in zip(table.rows, table.lines, strict=True):
        label = row[place].strip().lower()
        if label and label not in _CORRECT | _INCORRECT:
            near = difflib.get_close_matches(label, sorted(_CORRECT | _INCORRECT), n=1, cutoff=0.7)
            raise ResponsesError(
                f"{row[place][:50]!r} is no label",
                path=table.path,
                line=line,
                key=column,
                hint=f"Did you mean {near[0]}?"
                if near
                else "Write 1, yes, true or correct; 0, no, false or incorrect.",
            )
        labels.append(label in _CORRECT if label else None)
    if not any(label is not None for label in labels):
        raise ResponsesError("no row has a label", path=table.path, key=column, hint="Write 1 or 0 in this column.")
    return labels


class JudgeLabels:
    """Pairs of a judge's score and the label of the same answer.

    Rows of a table that the judge scored bring both. Those without a score, such as the notes of a report, find it in
    the results of the run, by question and answer; if a result has the answer of a scored row, its score counts.

    Args:
        table: The columns of answers, Label, and perhaps those of the judge, as ``judge agreement --output`` writes.

    Raises:
        ResponsesError: A column is missing, or a label is not one.

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
        """Take the score of a result whose answer has a label."""
        score, key = result.get(ANSWER_F1), (result.get("question_text"), result.get("actual_answer"))
        if isinstance(score, int | float) and key in self._labels:
            self._scores[key] = float(score)

    def pairs(self) -> list[tuple[float, float]]:
        """Return the score and the label of each answer that has both, each 0 to 1."""
        return [(score, self._labels[key]) for key, score in self._scores.items()]


def judge_labels(path: str | PathLike[str]) -> JudgeLabels:
    """Return the labels that a config names.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or has something else than labels.
    """
    try:
        return JudgeLabels(read_table(path))
    except GraphRAGEvalError as problem:
        hint = "Give what graphrag-eval-lc judge agreement wrote with --output, or leave the key out."
        raise ConfigError(f"the labels cannot be used: {problem}", key="judges.labels", hint=hint) from problem
