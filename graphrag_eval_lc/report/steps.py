"""The agent's steps beside the reference steps, and the rows in which their results differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching.matchers import UnreadableOutput
from graphrag_eval_lc.matching.rows.media_types import reference_results
from graphrag_eval_lc.matching.rows.row_steps import compare_row_steps, comparison_options
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil
from graphrag_eval_lc.report.formats import args_text, if_known, shown_name, shown_value, without_middle
from graphrag_eval_lc.tables.fulfilling_steps import Step, fulfilling_steps, named_step
from graphrag_eval_lc.texts import visible


def step_groups(result: Mapping[str, Any], config: EvaluationConfig) -> list[list[dict[str, Any]]]:
    """Return the groups of reference steps, each step with what became of it."""
    groups = result.get("reference_steps") or []
    actual_steps = result.get("actual_steps") or []
    diagnoses = result.get("steps_diagnosis") or ()
    scored = scored_groups(groups, config.steps.counted)

    def fits(reference: Step, actual: Step) -> bool:
        return step_name(actual, config) in names_that_fulfil(str(reference.get("name")))

    fulfilling = fulfilling_steps(result, fits)

    def record(step: Step, group: int, place: int) -> dict[str, Any]:
        known = diagnoses[group] if group < len(diagnoses) else ()
        diagnosis = known[place] if place < len(known) else {}
        at, nearest = fulfilling.get((group, place)), diagnosis.get("nearest")
        if at is None and nearest is not None:
            at = named_step(nearest, step, actual_steps, fits)
        actual = None if at is None else (at, actual_steps[at])
        return _step_record(step, diagnosis, actual, config, scored=group in scored)

    return [[record(step, at, place) for place, step in enumerate(group)] for at, group in enumerate(groups)]


def uses_of(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[int, str]:
    """Name the reference step that each actual step fulfils, by the actual step's index."""
    return {
        step["actual"]: f"group {at} step {place}"
        for at, group in enumerate(groups, start=1)
        for place, step in enumerate(group, start=1)
        if step["status"] == "matched" and step["actual"] is not None
    }


def extra_steps(groups: Sequence[Sequence[Mapping[str, Any]]], actual_steps: Sequence[Step]) -> list[int]:
    """Return the indices of the successful steps that fit no reference step, nor may fit one."""
    fitting = {
        step["actual"]
        for group in groups
        for step in group
        if step.get("may_fit") or (step["score"] > 0 and (step["status"] == "matched" or not step.get("in_part")))
    }
    return [at for at, step in enumerate(actual_steps) if step.get("status") == "success" and at not in fitting]


def _step_record(
    reference: Step, diagnosis: Step, actual: tuple[int, Step] | None, config: EvaluationConfig, *, scored: bool
) -> dict[str, Any]:
    is_matched, score = bool(diagnosis.get("matched")), diagnosis.get("score", 0.0)
    is_undecided = diagnosis.get("outcome") == "undecided"
    unmatched = "undecided" if is_undecided else "missing" if actual is None else "near"
    status = "matched" if is_matched else unmatched if scored else "unscored"
    record: dict[str, Any] = {
        "name": shown_name(reference.get("name")),
        "scored": scored,
        "status": status,
        "score": score,
        "reason": without_middle(diagnosis.get("reason", "")),
        "reference": {"args": args_text(reference.get("args")), "output": shown_value(reference.get("output", ""))},
        "actual": None if actual is None else actual[0],
        **({"may_fit": True} if is_undecided else {}),
        # Graded: worth something, although it does not fit.
        **({"in_part": True} if score > 0 and diagnosis.get("outcome") == "mismatch" else {}),
    }
    # Of undecided results it is not known which rows differ.
    if (
        actual is not None
        and score < 1.0
        and not is_undecided
        and (rows := _unlike_rows(reference, actual[1], config)) is not None
    ):
        record["rows"] = rows
    return record


def _unlike_rows(reference: Step, actual: Step, config: EvaluationConfig) -> dict[str, Any] | None:
    """Return the rows that two results do not share; None where there are none or they cannot be compared."""
    if step_name(actual, config) != reference.get("name") or actual.get("status") != "success":
        return None
    views = step_views(config)
    expected = views.reference_view(reference)
    if views.own_kind_of(expected).shown_as != "rows":
        return None
    try:
        options = comparison_options(expected)
    except ValueError:
        return None
    try:
        read = reference_results(expected)
    except UnreadableOutput:
        return None
    compared = compare_row_steps(expected, views.actual_view(actual), options)
    # Rows that lack a partner under the columns that come nearest may have one under others that no search got to.
    if compared.is_undecided or not (compared.missing_row_count or compared.extra_row_count):
        return None
    columns = compared.columns
    required = list(dict.fromkeys(reference.get("required_columns") or read.variables))
    return {
        "columns": [[visible(name), if_known(visible, columns.get(name))] for name in required],
        "missing": [[if_known(visible, text) for text in row] for row in compared.missing_rows],
        "extra": [[if_known(visible, text) for text in row] for row in compared.extra_rows],
        "missing_count": compared.missing_row_count,
        "extra_count": compared.extra_row_count,
    }


def step_name(step: Mapping[str, Any], config: EvaluationConfig) -> str:
    """Return an actual step's name as the config maps it to the names of reference steps."""
    name = str(step.get("name"))
    return config.steps.names.get(name, name)


def step_views(config: EvaluationConfig) -> StepViews:
    """Return how a config has steps read."""
    return StepViews(config.steps, config.sparql, config.retrieval)


def is_query(reference: Mapping[str, Any], views: StepViews) -> bool:
    """Return whether a reference step is a query that gives rows: by the config, its name or its media type.

    Example:
        >>> results = "application/sparql-results+json"
        >>> steps = {"name": "run_sparql", "output_media_type": results}, {"name": "run_sparql"}
        >>> [is_query(step, StepViews()) for step in steps]
        [True, False]
    """
    return views.shown_as(views.reference_view(reference)) == "rows"


def is_iri(reference: Mapping[str, Any], views: StepViews) -> bool:
    """Return whether a reference step is an IRI that must be found before a query can use it.

    Example:
        >>> steps = {"name": "iri_discovery", "output": "urn:a"}, {"name": "sparql_query"}
        >>> [is_iri(step, StepViews()) for step in steps]
        [True, False]
    """
    return views.shown_as(views.reference_view(reference)) == "iri"
