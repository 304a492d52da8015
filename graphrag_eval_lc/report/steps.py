"""The agent's steps next to the reference steps, and the rows in which their results differ."""

from collections.abc import Iterator, Mapping, Sequence
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


class SampleSteps:
    """The steps of a result as the sections of a report read them; outputs are parsed at most once.

    Args:
        result: The result.
        config: The configuration that it was scored with.
        views: How that has steps read, where several results are; None: it is made here.

    Attributes:
        result: The result.
        groups: The groups of reference steps.
        actual: The actual steps.
        diagnoses: What the matching said of each reference step.
        scored: The indices of the groups that count for the score.
    """

    def __init__(self, result: Step, config: EvaluationConfig, views: StepViews | None = None) -> None:
        self.result = result
        self.groups: Sequence[Sequence[Step]] = result.get("reference_steps") or []
        self.actual: Sequence[Step] = result.get("actual_steps") or []
        self.diagnoses: Sequence[Sequence[Step]] = result.get("steps_diagnosis") or ()
        self.scored = scored_groups(self.groups, config.steps.counted)
        self.views = views or step_views(config)
        self._names = config.steps.names
        self._references: dict[tuple[int, int], StepView] = {}
        self._actual_views: dict[int, StepView] = {}
        self._shown: dict[tuple[int, int], ShownAs] = {}
        self._kinds: dict[tuple[int, int], StepKind] = {}

    def reference(self, group: int, place: int) -> StepView:
        """Return a reference step as matchers read it."""
        key = group, place
        if key not in self._references:
            self._references[key] = self.views.reference_view(self.groups[group][place])
        return self._references[key]

    def shown_as(self, group: int, place: int) -> ShownAs:
        """Return how reports treat a reference step: as a query with rows, an IRI, or a text."""
        key = group, place
        if key not in self._shown:
            name = str(self.groups[group][place].get("name"))
            self._shown[key] = self.views.shown_as_of(name, self.kind_of(group, place))
        return self._shown[key]

    def kind_of(self, group: int, place: int) -> StepKind:
        """Return the kind that a reference step has, whether or not it counts as retrieval."""
        key = group, place
        if key not in self._kinds:
            self._kinds[key] = self.views.own_kind_of(self.reference(group, place))
        return self._kinds[key]

    def actual_view(self, at: int) -> StepView:
        """Return an actual step as matchers read it."""
        if at not in self._actual_views:
            self._actual_views[at] = self.views.actual_view(self.actual[at])
        return self._actual_views[at]

    def name_of(self, step: Step) -> str:
        """Return an actual step's name as the config maps it to the names of reference steps."""
        name = str(step.get("name"))
        return self._names.get(name, name)


def step_groups(steps: SampleSteps) -> list[list[dict[str, Any]]]:
    """Return the groups of reference steps, each step with what became of it."""
    diagnoses = steps.diagnoses

    def fits(reference: Step, actual: Step) -> bool:
        return steps.name_of(actual) in names_that_fulfil(str(reference.get("name")))

    fulfilling = fulfilling_steps(steps.result, fits)

    def record(step: Step, group: int, place: int) -> dict[str, Any]:
        known = diagnoses[group] if group < len(diagnoses) else ()
        diagnosis = known[place] if place < len(known) else {}
        at, nearest = fulfilling.get((group, place)), diagnosis.get("nearest")
        if at is None and nearest is not None:
            at = named_step(nearest, step, steps.actual, fits)
        return _step_record(steps, group, place, diagnosis, at)

    return [[record(step, at, place) for place, step in enumerate(group)] for at, group in enumerate(steps.groups)]


def uses_of(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[int, str]:
    """Say which reference step each actual step fulfils, or comes nearest to, by the actual step's index."""
    signs = {False: ("✓", "≈ nearest:"), True: ("✓", "≈ in part:")}
    uses: dict[int, str] = {}
    for is_matched, (whole, part) in signs.items():  # what a call fulfils says more than what it comes nearest to
        for at, group in enumerate(groups, start=1):
            for place, step in enumerate(group, start=1):
                if step["actual"] is not None and (step["status"] == "matched") == is_matched:
                    uses[step["actual"]] = f"{whole if step['score'] == 1.0 else part} group {at} step {place}"
    return uses


def extra_steps(groups: Sequence[Sequence[Mapping[str, Any]]], actual_steps: Sequence[Step]) -> list[int]:
    """Return the indices of the successful steps that no reference step is compared with."""
    compared = {step["actual"] for group in groups for step in group}
    return [at for at, step in enumerate(actual_steps) if step.get("status") == "success" and at not in compared]


def _step_record(steps: SampleSteps, group: int, place: int, diagnosis: Step, actual: int | None) -> dict[str, Any]:
    reference, is_scored = steps.groups[group][place], group in steps.scored
    is_matched, score = bool(diagnosis.get("matched")), diagnosis.get("score", 0.0)
    is_undecided = diagnosis.get("outcome") == "undecided"
    unmatched = "undecided" if is_undecided else "missing" if actual is None else "near"
    record: dict[str, Any] = {
        "name": shown_name(reference.get("name")),
        "scored": is_scored,
        "status": "matched" if is_matched else unmatched if is_scored else "unscored",
        "score": score,
        "reason": without_middle(diagnosis.get("reason", "")),
        "reference": {**call_texts(reference.get("args")), "output": shown_value(reference.get("output", ""))},
        "actual": actual,
        **({"may_fit": True} if is_undecided else {}),
        # Graded: worth something, although it does not fit.
        **({"in_part": True} if score > 0 and diagnosis.get("outcome") == "mismatch" else {}),
    }
    # Of undecided results it is not known which rows differ.
    if actual is not None and score < 1.0 and not is_undecided:
        rows = _rows_of(steps, group, place, actual)
        if rows is not None:
            notes = list(_doubts(rows, diagnosis))
            record["rows"] = rows | ({"notes": notes} if notes else {})
    return record


def _rows_of(steps: SampleSteps, group: int, place: int, at: int) -> dict[str, Any] | None:
    """Return the table of the rows of two steps; None if they have no rows, or these cannot be compared."""
    actual, reference = steps.actual[at], steps.groups[group][place]
    if steps.name_of(actual) != reference.get("name") or actual.get("status") != "success":
        return None
    if steps.kind_of(group, place).shown_as != "rows":
        return None
    return row_table(steps.reference(group, place), steps.actual_view(at))


def _doubts(rows: Mapping[str, Any], diagnosis: Step) -> Iterator[str]:
    """Say of which columns equal values may be equal by chance, as the query has them from another property."""
    for each in (diagnosis.get("query") or {}).get("differences") or () if rows["equal"] else ():
        if each.get("column") is not None:
            yield (
                f"Rows may be equal by chance: {each['column']} has the values of {each['actual']}, "
                f"not those of {each['expected']}."
            )


def step_views(config: EvaluationConfig) -> StepViews:
    """Return how a config has steps read."""
    return StepViews(config.steps, config.sparql, config.retrieval)
