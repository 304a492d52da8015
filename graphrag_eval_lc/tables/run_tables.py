"""The tables of a run: a row for each question, for each step (and what it fulfils), and for each aggregate."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.tables.table import COUNTED_LISTS, Table, measured, scalars
from graphrag_eval_lc.view.samples import repeat_of

Step = Mapping[str, Any]

# Whether an actual step (the second) has a name that may fulfil a reference step (the first).
Fits = Callable[[Step, Step], bool]


def has_same_name(reference: Step, actual: Step) -> bool:
    """Return whether both steps have the same name."""
    return bool(reference.get("name") == actual.get("name"))


def fulfilling_steps(result: Mapping[str, Any], fits: Fits = has_same_name) -> dict[tuple[int, int], int]:
    """Match the fulfilled reference steps, each as (group, place), to the indices of the actual steps that fulfil them.

    No actual step fulfils two reference steps. If several actual steps share an id, the later ones fulfil the later
    reference steps, and ``fits`` decides between them.

    Example:
        >>> steps = [{"name": "a", "id": None}, {"name": "a", "id": None}]
        >>> fulfilling_steps({"reference_steps": [[{"name": "a", "matches": "1"}]], "actual_steps": steps})
        {(0, 0): 1}
    """
    actual_steps = result.get("actual_steps") or ()
    fulfilled = [
        (group, place, step)
        for group, steps in enumerate(result.get("reference_steps") or ())
        for place, step in enumerate(steps)
        if step.get("matches") is not None
    ]
    found: dict[tuple[int, int], int] = {}
    for group, place, step in reversed(fulfilled):
        at = named_step(step["matches"], step, actual_steps, fits, taken=found.values())
        if at is not None:
            found[group, place] = at
    return dict(reversed(found.items()))


def named_step(
    name: object, reference: Step, actual_steps: Sequence[Step], fits: Fits, taken: Collection[int] = ()
) -> int | None:
    """Return the index of the actual step that a match or a diagnosis names by its id, or its index if it has none.

    If several steps have the same id, it is the last one that fits the reference step, preferably one that succeeded. A
    step whose index is in ``taken`` is returned only if there is no other.
    """

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        step = actual_steps[at]
        return at not in taken, fits(reference, step), step.get("status") == "success", at

    ids = [step.get("id") for step in actual_steps]
    named = [at for at, identifier in enumerate(ids) if str(at if identifier is None else identifier) == str(name)]
    return named[0] if len(named) == 1 else max(named, key=rank, default=None)


_FIRST_OF_QUESTIONS = ("question_id", "repeat", "template_id", "status")
_RETRIEVAL = "retrieval_"


def questions_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Return results as a table with a row for each.

    Its columns are ``question_id``, ``repeat`` (1 if a question was asked once), ``template_id`` and ``status``,
    then each number that any result has, then each text. Lists and dicts only add these numbers: ``steps_total``
    (calls of the agent), ``steps_extra``, ``steps_repeated``, ``steps_failed``, ``steps_undecided`` and
    ``steps_outputs_cut`` of ``steps_counts``, ``llm_calls`` and ``capture_warnings`` (how many), and for each
    ``retrieval_…`` metric of the steps its mean, of a cost its sum.

    Example:
        >>> result = {"question_id": "q", "template_id": "t", "status": "success", "steps_score": 0.5}
        >>> questions_table([result]).rows
        [{'question_id': 'q', 'repeat': 1, 'template_id': 't', 'status': 'success', 'steps_score': 0.5}]
    """
    return Table.of(map(question_row, results), _FIRST_OF_QUESTIONS).with_texts_last(_FIRST_OF_QUESTIONS)


def question_row(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of one result."""
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
    row.update(scalars(result, but=_FIRST_OF_QUESTIONS))
    return row


def _of_retrieval(steps: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return one value for each metric of retrieval steps: the mean over the steps, of a cost the sum."""
    values: dict[str, list[float]] = {}
    for step in steps:
        for key, value in step.items():
            if key.startswith(_RETRIEVAL) and (number := measured(value)) is not None:
                values.setdefault(key, []).append(number)
    return {key: sum(of_steps) if metric_spec(key).is_spent else fmean(of_steps) for key, of_steps in values.items()}


_FIRST_OF_STEPS = (
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


def steps_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Return the steps of results as a table with a row for each call that the agent made.

    Its columns are ``question_id``, ``repeat``, ``template_id``, ``position`` (from 0), ``name`` and ``status``;
    ``matched`` says whether the call fulfils a reference step, ``reference_group`` and ``reference_step`` (from 0)
    which one, and ``reference_score`` how well. Then come ``elapsed_sec`` and every other number and text of the
    step: the values of its metrics, its ``id``, its ``args`` as JSON, its ``error``. The output only adds its
    length, ``output_characters``.

    Example:
        >>> step = {"name": "now", "args": {}, "id": "c1", "status": "success", "output": "12:00"}
        >>> result = {"question_id": "q", "template_id": "t", "actual_steps": [step]}
        >>> steps_table([result]).rows[0]["output_characters"]
        5
    """
    rows = (row for result in results for row in _step_rows(result))
    return Table.of(rows, _FIRST_OF_STEPS).with_texts_last(_FIRST_OF_STEPS)


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


_COLUMNS_OF_AGGREGATES = ("scope", "template_id", "metric", "statistic", "value")


def aggregates_table(aggregates: Mapping[str, Any]) -> Table:
    """Return aggregates as a table with a row for each statistic.

    Its columns are ``scope`` (template, micro, macro, totals or repeats), ``template_id`` (of the scope template
    only), ``metric``, ``statistic`` (sum, mean, …; "value" if a metric has a single number) and ``value``. How
    often a tool was called is the metric ``steps.TOOL``; pass@k has k as its statistic.

    Example:
        >>> aggregates_table({"macro": {"steps_score": {"mean": 0.5}}}).rows
        [{'scope': 'macro', 'metric': 'steps_score', 'statistic': 'mean', 'value': 0.5}]
    """
    rows: list[dict[str, Any]] = []
    for scope, section in aggregates.items():
        if scope == "per_template":
            for template_id, summary in section.items():
                rows += ({"scope": "template", "template_id": template_id, **row} for row in _statistics(summary))
        else:
            rows += ({"scope": scope, **row} for row in _statistics(section))
    return Table(_COLUMNS_OF_AGGREGATES, rows)


def _statistics(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, value in summary.items():
        if metric == "steps":
            for statistic, counts in value.items():
                for tool, count in counts.items():
                    yield {"metric": f"steps.{tool}", "statistic": statistic, "value": count}
        elif metric == "metrics":  # of repeats
            yield from _statistics(value)
        elif isinstance(value, Mapping):
            yield from ({"metric": metric, "statistic": key, "value": number} for key, number in value.items())
        elif isinstance(value, int | float):
            yield {"metric": metric, "statistic": "value", "value": value}
