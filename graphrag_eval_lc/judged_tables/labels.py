"""What people say of answers: whether each is correct."""

import difflib

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.judged_tables.tsv import Table

_CORRECT = frozenset({"1", "yes", "true", "correct"})
_INCORRECT = frozenset({"0", "no", "false", "incorrect"})


def labels_in(table: Table, column: str) -> list[bool | None]:
    """Give the label of each row.

    Args:
        table: The table.
        column: The column of the labels: 1, yes, true or correct; 0, no, false or incorrect; in any case.

    Returns:
        Whether the answer is correct; None where the cell is blank.

    Raises:
        ResponsesError: There is no such column, a label is something else, or there is none at all.
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
                mend=f"Did you mean {near[0]}?"
                if near
                else "Write 1, yes, true or correct; 0, no, false or incorrect.",
            )
        labels.append(label in _CORRECT if label else None)
    if not any(label is not None for label in labels):
        raise ResponsesError("no row has a label", path=table.path, key=column, mend="Write 1 or 0 in this column.")
    return labels
