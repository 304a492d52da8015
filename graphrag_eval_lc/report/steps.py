"""The agent's steps next to the reference steps, and the rows of their results: missing, extra and equal."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.rows.alignment import Alignment
from graphrag_eval_lc.matching.rows.columns import Row, namesakes
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.matching.rows.row_steps import (
    actual_results,
    compare_row_steps,
    comparison_options,
    reference_results,
)
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.registry.step_kinds import ShownAs, StepKind, names_that_fulfil
from graphrag_eval_lc.report.formats import call_texts, shown_value, without_middle
from graphrag_eval_lc.tables.run_tables import Step, fulfilling_steps, named_step
from graphrag_eval_lc.texts import one_line, shown_name
from graphrag_eval_lc.view.failures import with_label


@dataclass(slots=True)
class ReferenceStep:
    """A reference step: its place, how matchers and reports read it, and the outcome of matching."""

    group: int
    place: int
    step: Step
    view: StepView
    kind: StepKind
    shown_as: ShownAs
    is_scored: bool
    diagnosis: Step


class SampleSteps:
    """The steps of a result as the sections of a report read them; outputs are parsed at most once.

    ``views`` reads steps as the config says; pass one object for several results. None creates it here.
    """

    def __init__(self, result: Step, config: EvaluationConfig, views: StepViews | None = None) -> None:
        self.result = result
        self.groups: Sequence[Sequence[Step]] = result.get("reference_steps") or ()
        self.actual: Sequence[Step] = result.get("actual_steps") or ()
        self._views = views = views or step_views(config)
        self._names = config.steps.names
        self._actual_views: dict[int, StepView] = {}
        self.references: list[ReferenceStep] = []
        diagnoses = result.get("steps_diagnosis") or ()
        scored = scored_groups(self.groups, config.steps.counted) if self.groups else ()
        for group, steps in enumerate(self.groups):
            known = diagnoses[group] if group < len(diagnoses) else ()
            for place, step in enumerate(steps):
                view = views.reference_view(step)
                kind = views.own_kind_of(view)
                shown_as = views.shown_as_of(str(step.get("name")), kind)
                diagnosis = known[place] if place < len(known) else {}
                read = ReferenceStep(group, place, step, view, kind, shown_as, group in scored, diagnosis)
                self.references.append(read)

    def actual_view(self, at: int) -> StepView:
        """Return an actual step as matchers read it."""
        if at not in self._actual_views:
            self._actual_views[at] = self._views.actual_view(self.actual[at])
        return self._actual_views[at]

    def name_of(self, step: Step) -> str:
        """Return an actual step's name as the config maps it to the names of reference steps."""
        name = str(step.get("name"))
        return self._names.get(name, name)


def step_groups(steps: SampleSteps) -> list[list[dict[str, Any]]]:
    """Return the groups of reference steps, each step with its outcome."""

    def fits(reference: Step, actual: Step) -> bool:
        return steps.name_of(actual) in names_that_fulfil(str(reference.get("name")))

    fulfilling = fulfilling_steps(steps.result, fits)
    groups: list[list[dict[str, Any]]] = [[] for _ in steps.groups]
    for each in steps.references:
        at, nearest = fulfilling.get((each.group, each.place)), each.diagnosis.get("nearest")
        if at is None and nearest is not None:
            at = named_step(nearest, each.step, steps.actual, fits)
        groups[each.group].append(_step_record(steps, each, at))
    return groups


def uses_of(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[int, str]:
    """Return, by the index of an actual step, which reference step it fulfils or comes nearest to."""
    fulfilled: dict[int, str] = {}
    nearest: dict[int, str] = {}
    for at, group in enumerate(groups, start=1):
        for place, step in enumerate(group, start=1):
            if step["actual"] is not None:
                is_matched = step["status"] == "matched"
                sign = "✓" if step["score"] == 1.0 else "≈ in part:" if is_matched else "≈ nearest:"
                (fulfilled if is_matched else nearest)[step["actual"]] = f"{sign} group {at} step {place}"
    return nearest | fulfilled


def extra_steps(groups: Sequence[Sequence[Mapping[str, Any]]], actual_steps: Sequence[Step]) -> list[int]:
    """Return the indices of the successful steps that no reference step is compared with."""
    compared = {step["actual"] for group in groups for step in group}
    return [at for at, step in enumerate(actual_steps) if step.get("status") == "success" and at not in compared]


def _step_record(steps: SampleSteps, reference: ReferenceStep, at: int | None) -> dict[str, Any]:
    step, diagnosis = reference.step, reference.diagnosis
    score, outcome = diagnosis.get("score", 0.0), diagnosis.get("outcome")
    is_undecided = outcome == "undecided"
    unmatched = "undecided" if is_undecided else "missing" if at is None else "near"
    status = "matched" if diagnosis.get("matched") else unmatched if reference.is_scored else "unscored"
    record: dict[str, Any] = {
        "name": shown_name(step.get("name")),
        "scored": reference.is_scored,
        "status": status,
        "score": score,
        "reason": without_middle(with_label(str(diagnosis.get("reason", "")), step)),
        "reference": {**call_texts(step.get("args")), "output": shown_value(step.get("output", ""))},
        "actual": at,
    }
    if is_undecided:
        record["may_fit"] = True
    if score > 0 and outcome == "mismatch":  # graded: it scores something, although it does not match
        record["in_part"] = True
    # If results are undecided, it is unknown which rows differ.
    if at is not None and score < 1.0 and not is_undecided and reference.kind.shown_as == "rows":
        actual = steps.actual[at]
        if steps.name_of(actual) == step.get("name") and actual.get("status") == "success":
            rows = row_table(reference.view, steps.actual_view(at))
            if rows is not None:
                notes = list(_doubts(rows, diagnosis))
                record["rows"] = rows | ({"notes": notes} if notes else {})
    return record


def _doubts(rows: Mapping[str, Any], diagnosis: Step) -> Iterator[str]:
    """Name the columns whose values may be equal by chance, as the query reads them from another property."""
    for each in (diagnosis.get("query") or {}).get("differences") or () if rows["equal"] else ():
        if each.get("column") is not None:
            yield (
                f"Rows may be equal by chance: {each['column']} has the values of {each['actual']}, "
                f"not those of {each['expected']}."
            )


def step_views(config: EvaluationConfig) -> StepViews:
    """Return the reader of steps for a config."""
    return StepViews(config.steps, config.sparql, config.retrieval)


_MOST_ROWS: Final = 20  # of each kind
_LONGEST_CELL: Final = 300

_Column = tuple[str | None, str | None, bool]
"""The names of a column in the reference and in the actual results, and whether it is required."""


def row_table(reference: StepView, actual: StepView) -> dict[str, Any] | None:
    """Return the rows of two steps as a table; None if they are equal, or cannot be compared.

    Returns:
        ``columns``: for each its name in the reference, its actual name (None if it has none), and whether it is
        required, the required ones first; ``unlike``: the first rows that are not in both, each as ``missing`` or
        ``extra``, its cells (None if unbound), and the indices of the cells in which it differs from the row of the
        other kind next to it; ``equal``: the cells of the first rows that are in both; ``counts``: the numbers of
        missing, extra and equal rows.
    """
    try:
        options = comparison_options(reference)
        expected = reference_results(reference)
    except (ValueError, UnreadableOutput):
        return None
    compared = compare_row_steps(reference, actual, options)
    # Rows without a partner under the best columns found may have one under others that the search did not reach.
    if compared.is_undecided:
        return None
    if (rows := compared.alignment) is not None:
        return _table(rows.reference, rows.actual, rows.columns, rows)
    try:
        found = actual_results(actual, reference)
    except UnreadableOutput:
        return None
    if expected.boolean is not None or found.boolean is not None or bool(expected.row_count) == bool(found.row_count):
        return None
    required = reference.get("required_columns")
    names = [name for name in expected.columns if required is None or name in required]
    return _table(expected, found, {**dict.fromkeys(names), **namesakes(names, list(found.columns))}, None)


def _table(
    reference: SparqlResults, actual: SparqlResults, required: Mapping[str, str | None], rows: Alignment | None
) -> dict[str, Any] | None:
    missing = list(range(reference.row_count)) if rows is None else rows.missing
    extra = list(range(actual.row_count)) if rows is None else rows.extra
    if not missing and not extra:  # they differ only in their order or in blank nodes
        return None
    columns = list(_columns(reference, actual, required))

    def cells(at: int | None, actual_at: int | None) -> list[str | None]:
        return [
            _cell(actual, name, actual_at)
            if actual_at is not None and name is not None
            else _cell(reference, own_name, at)
            for own_name, name, _ in columns
        ]

    unlike: list[list[Any]] = []
    for at, actual_at, differing in _side_by_side(missing, extra, rows):
        unlike += [] if at is None else [["missing", cells(at, None), differing]]
        unlike += [] if actual_at is None else [["extra", cells(None, actual_at), differing]]
    return {
        "columns": [[*each] for each in columns],
        "unlike": unlike,
        "equal": [] if rows is None else [cells(*each) for each in islice(_equal(rows), _MOST_ROWS)],
        "counts": [len(missing), len(extra), 0 if rows is None else sum(rows.equal.values())],
    }


def _columns(reference: SparqlResults, actual: SparqlResults, required: Mapping[str, str | None]) -> Iterator[_Column]:
    """Yield the required columns, then the reference's others, each with the actual one of its name, then the rest."""
    optional = [name for name in reference.columns if name not in required]
    left = [name for name in actual.columns if name not in required.values()]
    same = namesakes(optional, left)
    for name, found in required.items():
        yield name, found, True
    for name in optional:
        yield name, same.get(name), False
    for name in left:
        if name not in same.values():
            yield None, name, False


def _side_by_side(
    missing: Sequence[int], extra: Sequence[int], rows: Alignment | None
) -> Iterator[tuple[int | None, int | None, list[int]]]:
    """Yield missing and extra rows, pairs that share cells first, with the indices of the cells that differ."""
    left, actual_left = list(missing), list(extra)
    for pair in () if rows is None else rows.pairs[:_MOST_ROWS]:
        at = next(each for each in left if rows and rows.rows[each] == pair.reference)
        actual_at = next(each for each in actual_left if rows and rows.actual_rows[each] == pair.actual)
        left.remove(at)
        actual_left.remove(actual_at)
        yield at, actual_at, [place for place in range(len(pair.reference)) if place not in pair.columns]
    shown = len(missing) - len(left)
    for at in left[: _MOST_ROWS - shown]:
        yield at, None, []
    for actual_at in actual_left[: _MOST_ROWS - shown]:
        yield None, actual_at, []


def _equal(rows: Alignment) -> Iterator[tuple[int, int]]:
    """Yield the indices of equal rows in both results, in the order of the actual rows."""
    places: dict[Row, list[int]] = defaultdict(list)
    for at, row in enumerate(rows.rows):
        places[row].append(at)
    left = dict(rows.equal)
    for actual_at, row in enumerate(rows.actual_rows):
        if left.get(row):
            left[row] -= 1
            yield places[row].pop(0), actual_at


def _cell(results: SparqlResults, name: str | None, at: int | None) -> str | None:
    text = None if name is None or at is None else results.columns[name].readable(at)
    return None if text is None else one_line(text, _LONGEST_CELL)
