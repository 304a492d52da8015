"""The agent's steps next to the reference steps, and the rows in which their results differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.registry.step_kinds import ShownAs, StepKind, names_that_fulfil
from graphrag_eval_lc.report.formats import call_texts, shown_value, without_middle
from graphrag_eval_lc.report.row_table import row_table
from graphrag_eval_lc.tables.fulfilling_steps import Step, fulfilling_steps, named_step
from graphrag_eval_lc.texts import shown_name
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
        self._views = views or step_views(config)
        self._names = config.steps.names
        self._actual_views: dict[int, StepView] = {}
        self.references = list(self._read(config)) if self.groups else []

    def _read(self, config: EvaluationConfig) -> Iterator[ReferenceStep]:
        views, diagnoses = self._views, self.result.get("steps_diagnosis") or ()
        scored = scored_groups(self.groups, config.steps.counted)
        for group, steps in enumerate(self.groups):
            known = diagnoses[group] if group < len(diagnoses) else ()
            for place, step in enumerate(steps):
                view = views.reference_view(step)
                kind = views.own_kind_of(view)
                shown_as = views.shown_as_of(str(step.get("name")), kind)
                diagnosis = known[place] if place < len(known) else {}
                yield ReferenceStep(group, place, step, view, kind, shown_as, group in scored, diagnosis)

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
    signs = {False: ("✓", "≈ nearest:"), True: ("✓", "≈ in part:")}
    uses: dict[int, str] = {}
    for is_matched, (
        whole,
        part,
    ) in signs.items():  # fulfilled steps override nearest ones
        for at, group in enumerate(groups, start=1):
            for place, step in enumerate(group, start=1):
                if step["actual"] is not None and (step["status"] == "matched") == is_matched:
                    uses[step["actual"]] = f"{whole if step['score'] == 1.0 else part} group {at} step {place}"
    return uses


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
