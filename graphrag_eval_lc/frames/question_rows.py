"""The table of questions: a row for each result, with whatever was measured."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.frames.measures import COUNTED_LISTS, measured, scalars
from graphrag_eval_lc.frames.table import Table
from graphrag_eval_lc.registry import metric_spec

if TYPE_CHECKING:
    import pandas as pd

_FIRST = ("question_id", "repeat", "template_id", "status")
_RETRIEVAL = "retrieval_"


def questions_frame(results: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Give results as a frame with a row for each; see ``questions_table``.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return questions_table(results).to_pandas()


def questions_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Give results as a table with a row for each.

    Its columns are ``question_id``, ``repeat`` (1 where a question was asked once), ``template_id`` and ``status``,
    then each number that any result has, then each text. Of lists and dicts only this is taken up:
    ``steps_total`` (calls of the agent), ``steps_extra``, ``steps_repeated`` and ``steps_failed`` of
    ``steps_counts``, ``llm_calls`` and ``capture_warnings`` (how many), and for each ``retrieval_…`` number of the
    steps its mean over them, of a cost its sum.

    Args:
        results: The results of ``run_evaluation`` or of a run; each is let go once its row is there.

    Example:
        >>> result = {"question_id": "q", "template_id": "t", "status": "success", "steps_score": 0.5}
        >>> questions_table([result]).rows
        [{'question_id': 'q', 'repeat': 1, 'template_id': 't', 'status': 'success', 'steps_score': 0.5}]
    """
    return Table.of(map(question_row, results), _FIRST).with_texts_last(_FIRST)


def question_row(result: Mapping[str, Any]) -> dict[str, Any]:
    """Give the row of one result."""
    row: dict[str, Any] = {
        "question_id": str(result["question_id"]),
        "repeat": repeat_of(result),
        "template_id": str(result["template_id"]),
        "status": "error" if result.get("error") is not None or result.get("status") == "error" else "success",
    }
    steps = result.get("actual_steps")
    if steps is not None:
        row["steps_total"] = len(steps)
        row.update(_of_retrieval(steps))
    row.update({f"steps_{key}": count for key, count in (result.get("steps_counts") or {}).items()})
    row.update({key: len(result[key]) for key in COUNTED_LISTS if isinstance(result.get(key), list)})
    row.update(scalars(result, but=_FIRST))
    return row


def repeat_of(result: Mapping[str, Any]) -> int:
    """Give which asking of its question a result is of: 1 where it does not say so."""
    repeat = result.get("repeat")
    return repeat if isinstance(repeat, int) else 1


def _of_retrieval(steps: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Give what was measured of the steps that retrieve, in one number each."""
    values: dict[str, list[float]] = {}
    for step in steps:
        for key, value in step.items():
            if key.startswith(_RETRIEVAL) and (number := measured(value)) is not None:
                values.setdefault(key, []).append(number)
    return {key: sum(numbers) if metric_spec(key).is_spent else fmean(numbers) for key, numbers in values.items()}
