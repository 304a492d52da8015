"""What is known of answers from earlier sessions: from the file that was written, and from that of one cut short."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from graphrag_eval_lc.errors import ResponsesError, RunFolderError
from graphrag_eval_lc.file_problems import cannot_write
from graphrag_eval_lc.judged_tables.judged_cells import ANSWER_COLUMNS, JUDGED_COLUMNS, Cells, is_judged
from graphrag_eval_lc.judged_tables.tsv import read_table
from graphrag_eval_lc.judges.cache import JudgeCache

Answer = tuple[str, str, str]
"""A question, its reference answer and the actual answer."""


class EarlierCells:
    """The cells of answers that were judged without an error, by answer.

    What is judged now is kept beside the output, in ``<output>.partial``, as it comes, so that a crash loses nothing
    that was paid for. The output itself is only ever written as a whole.

    Args:
        output: The file that is written in the end.

    Raises:
        RunFolderError: The output is another file than one of judged answers, or a file cannot be read.
    """

    def __init__(self, output: Path) -> None:
        self._partial = _partial_of(output)
        self._kept = _cells_in(output)
        self._journal = JudgeCache(self._partial)

    def get(self, answer: Answer) -> Cells | None:
        """Give the cells of an answer; None where it is to be judged."""
        record = self._journal.get(_digest(answer))
        if record is not None and all(isinstance(record.get(column), str) for column in JUDGED_COLUMNS):
            return {column: record[column] for column in JUDGED_COLUMNS}
        return self._kept.get(answer)

    def put(self, answer: Answer, cells: Cells) -> None:
        """Keep the cells of an answer."""
        self._journal.put(_digest(answer), cells)

    def outdated(self, answers: Iterable[Answer]) -> int:
        """Give how many judged answers of the output are none of ``answers``, and will be gone from it.

        Raises:
            RunFolderError: That would be all of them.
        """
        lost = len(self._kept.keys() - set(answers))
        if lost and lost == len(self._kept):
            raise RunFolderError(
                "the file exists and holds judged answers, none of which is in the input",
                path=self._partial.with_suffix(""),
                mend="Give another file, or pass --overwrite.",
            )
        return lost

    def close(self, *, is_done: bool) -> None:
        """Close the file beside the output; where the output is written, remove it."""
        self._journal.close()
        if is_done:
            _remove(self._partial)


def forget_earlier(output: Path) -> None:
    """Remove what earlier sessions wrote, to begin anew."""
    _remove(output)
    _remove(_partial_of(output))


def _partial_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from problem


def _cells_in(output: Path) -> dict[Answer, Cells]:
    if not output.exists() or (output.is_file() and not output.stat().st_size):
        return {}
    try:
        table = read_table(output)
        answer_places = table.places(ANSWER_COLUMNS)
        judged_places = table.places(JUDGED_COLUMNS)
    except ResponsesError as problem:
        raise RunFolderError(
            f"the file exists and is no table of judged answers ({problem.what})",
            path=output,
            mend="Give another file, or pass --overwrite.",
        ) from problem
    known: dict[Answer, Cells] = {}
    for row in table.rows:
        cells = dict(zip(JUDGED_COLUMNS, (row[place] for place in judged_places), strict=True))
        if is_judged(cells):
            question, reference, actual = (row[place] for place in answer_places)
            known[question, reference, actual] = cells
    return known


def _digest(answer: Answer) -> str:
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()
