"""The agent's steps beside the reference steps, and where their results differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import StepView, compare_sparql_results
from graphrag_eval_lc.matching.sparql import SPARQL_RESULTS
from graphrag_eval_lc.matching.sparql.comparison import comparison_options
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.registry.step_kinds import ShownAs, names_that_fulfil, shown_as
from graphrag_eval_lc.report.formats import args_text, shown_name, shown_value, visible, without_middle
from graphrag_eval_lc.tables.fulfilling_steps import Fits, Step, fulfilling_steps, named_step


def step_groups(result: Mapping[str, Any], config: EvaluationConfig) -> list[list[dict[str, Any]]]:
    """Return the groups of reference steps, each step with what became of it."""
    groups = result.get("reference_steps") or []
    actual_steps = result.get("actual_steps") or []
    fits = _fits(config)
    fulfilling = fulfilling_steps(result, fits)

    def record(step: Step, diagnosis: Step, group: int, place: int) -> dict[str, Any]:
        at, nearest = fulfilling.get((group, place)), diagnosis.get("nearest")
        if at is None and nearest is not None:
            at = named_step(nearest, step, actual_steps, fits)
        actual = None if at is None else (at, actual_steps[at])
        return _step_record(step, diagnosis, actual, config, scored=is_scored(group, groups, config))

    return [
        [
            record(step, diagnosis, at, place)
            for place, (step, diagnosis) in enumerate(_with_diagnoses(group, result.get("steps_diagnosis") or (), at))
        ]
        for at, group in enumerate(groups)
    ]


def uses_of(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[int, str]:
    """Say for each actual step that fulfils a reference step which one that is."""
    return {
        step["actual"]: f"group {at} step {place}"
        for at, group in enumerate(groups, start=1)
        for place, step in enumerate(group, start=1)
        if step["status"] == "matched" and step["actual"] is not None
    }


def extra_steps(groups: Sequence[Sequence[Mapping[str, Any]]], actual_steps: Sequence[Step]) -> list[int]:
    """Return the indices of the successful steps that fit no reference step."""
    fitting = {step["actual"] for group in groups for step in group if step["score"] > 0}
    return [at for at, step in enumerate(actual_steps) if step.get("status") == "success" and at not in fitting]


def _with_diagnoses(group: Sequence[Step], diagnoses: Sequence[Any], at: int) -> Iterator[tuple[Step, Step]]:
    known = diagnoses[at] if at < len(diagnoses) else ()
    for place, step in enumerate(group):
        yield step, known[place] if place < len(known) else {}


def _step_record(
    reference: Step, diagnosis: Step, actual: tuple[int, Step] | None, config: EvaluationConfig, *, scored: bool
) -> dict[str, Any]:
    is_matched, score = bool(diagnosis.get("matched")), diagnosis.get("score", 0.0)
    status = "matched" if is_matched else "unscored" if not scored else "missing" if actual is None else "near"
    record: dict[str, Any] = {
        "name": shown_name(reference.get("name")),
        "scored": scored,
        "status": status,
        "score": score,
        "reason": without_middle(str(diagnosis.get("reason", ""))),
        "reference": {"args": args_text(reference.get("args")), "output": shown_value(reference.get("output", ""))},
        "actual": None if actual is None else actual[0],
    }
    if actual is not None and score < 1.0:
        rows = _unlike_rows(reference, actual[1], config)
        if rows is not None:
            record["rows"] = rows
    return record


def _fits(config: EvaluationConfig) -> Fits:
    return lambda reference, actual: step_name(actual, config) in names_that_fulfil(str(reference.get("name")))


def _unlike_rows(reference: Step, actual: Step, config: EvaluationConfig) -> dict[str, Any] | None:
    """Return the rows that two SPARQL results do not share; None where they are none, or cannot be compared."""
    if (
        reference.get("output_media_type") != SPARQL_RESULTS
        or not is_query(reference)
        or step_name(actual, config) != reference.get("name")
        or actual.get("status") != "success"
    ):
        return None
    try:
        options = comparison_options(StepView(reference, config.sparql.step_defaults()))
    except ValueError:
        return None
    compared = compare_sparql_results(
        reference.get("output", ""), actual.get("output", ""), reference.get("required_columns"), **options
    )
    if not compared.missing_row_count and not compared.extra_row_count:
        return None
    columns = compared.columns
    required = list(dict.fromkeys(reference.get("required_columns") or columns))
    return {
        "columns": [[visible(name), visible(columns[name]) if name in columns else None] for name in required],
        "missing": [_cells(row) for row in compared.missing_rows],
        "extra": [_cells(row) for row in compared.extra_rows],
        "missing_count": compared.missing_row_count,
        "extra_count": compared.extra_row_count,
    }


def _cells(row: Sequence[str | None]) -> list[str | None]:
    return [None if text is None else visible(text) for text in row]


def step_name(step: Mapping[str, Any], config: EvaluationConfig) -> str:
    """Return the name under which an actual step fulfils a reference step, as the config maps the tools."""
    name = str(step.get("name"))
    return config.steps.names.get(name, name)


def is_query(reference: Mapping[str, Any]) -> bool:
    """Return whether a reference step is a query of the graph: by its name, or by the media type of its output.

    Example:
        >>> results = "application/sparql-results+json"
        >>> is_query({"name": "run_sparql", "output_media_type": results}), is_query({"name": "run_sparql"})
        (True, False)
    """
    return _shown_as(reference) == "rows"


def is_iri(reference: Mapping[str, Any]) -> bool:
    """Return whether a reference step is an IRI that has to be found before a query can use it.

    Example:
        >>> is_iri({"name": "iri_discovery", "output": "urn:a"}), is_iri({"name": "sparql_query"})
        (True, False)
    """
    return _shown_as(reference) == "iri"


def _shown_as(reference: Mapping[str, Any]) -> ShownAs:
    return shown_as(str(reference.get("name")), reference.get("output_media_type"))


def is_scored(group: int, groups: Sequence[Sequence[Any]], config: EvaluationConfig) -> bool:
    """Return whether the group at an index counts for the score.

    Example:
        >>> is_scored(0, [["a"], ["b"], []], EvaluationConfig()), is_scored(1, [["a"], ["b"], []], EvaluationConfig())
        (False, True)
    """
    return group in scored_groups(groups, config.steps.scoring)
