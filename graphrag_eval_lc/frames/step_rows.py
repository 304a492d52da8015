"""The table of steps: a row for each call that the agent made."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.frames.fulfilling_steps import fulfilling_steps
from graphrag_eval_lc.frames.measures import scalars
from graphrag_eval_lc.frames.question_rows import repeat_of
from graphrag_eval_lc.frames.table import Table
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC

if TYPE_CHECKING:
    import pandas as pd

_FIRST = (
    "question_id",
    "repeat",
    "template_id",
    "position",
    "name",
    "status",
    "matched",
    "reference_group",
    "reference_step",
    "reference_score",
    ELAPSED_SEC,
)


def steps_frame(results: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Give the steps of results as a frame with a row for each call; see ``steps_table``.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return steps_table(results).to_pandas()


def steps_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Give the steps of results as a table with a row for each call that the agent made.

    Its columns are ``question_id``, ``repeat``, ``template_id``, ``position`` (from 0), ``name`` and ``status``;
    ``matched`` says whether a reference step is fulfilled by this call, ``reference_group`` and ``reference_step``
    (from 0) which one, and ``reference_score`` how well. Then come ``elapsed_sec`` and every other number and text
    of the step: what was measured of it, its ``id``, its ``args`` as JSON, its ``error``. Of the output there is
    only its length, ``output_characters``: the whole stands in the results.

    Args:
        results: The results of ``run_evaluation`` or of a run; each is let go once its rows are there.

    Example:
        >>> step = {"name": "now", "args": {}, "id": "c1", "status": "success", "output": "12:00"}
        >>> result = {"question_id": "q", "template_id": "t", "actual_steps": [step]}
        >>> steps_table([result]).rows[0]["output_characters"]
        5
    """
    return Table.of((row for result in results for row in _step_rows(result)), _FIRST).with_texts_last(_FIRST)


def _step_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    repeat, diagnosis = repeat_of(result), result.get("steps_diagnosis")
    references = {at: place for place, at in fulfilling_steps(result).items()}
    for position, step in enumerate(result.get("actual_steps") or ()):
        reference = references.get(position)
        row: dict[str, Any] = {
            "question_id": str(result["question_id"]),
            "repeat": repeat,
            "template_id": str(result["template_id"]),
            "position": position,
            "name": step.get("name"),
            "status": step.get("status"),
            "matched": reference is not None,
        }
        if reference is not None:
            group, place = reference
            row |= {"reference_group": group, "reference_step": place}
            if diagnosis:
                row["reference_score"] = diagnosis[group][place]["score"]
        if isinstance(step.get("output"), str):
            row["output_characters"] = len(step["output"])
        row.update(scalars(step, but=("output", *row)))
        if "args" in step:
            row["args"] = json_text(step["args"])
        yield row
