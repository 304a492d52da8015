"""The step kind rows: comparing, checking and drafting the steps that query a graph or a database."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import RowsConfig, ValuesConfig
from graphrag_eval_lc.matching.matchers import Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.rows.comparison import (
    SparqlComparison,
    compare_sparql_results,
    comparison_without_results,
)
from graphrag_eval_lc.matching.rows.cut_rows import rows_before_cut_of
from graphrag_eval_lc.matching.rows.grade import grade_before_cut
from graphrag_eval_lc.matching.rows.media_types import (
    FORMS,
    MEDIA_TYPES,
    REQUIRED_COLUMNS,
    SERVED_WHERE,
    actual_results,
    media_type_of_form,
    names_no_columns,
    reference_results,
)
from graphrag_eval_lc.matching.rows.media_types import SPARQL_QUERY as SPARQL_QUERY
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.reference_check import check_rows_step
from graphrag_eval_lc.matching.rows.results import SPARQL_RESULTS, SparqlResults, parse_sparql_results
from graphrag_eval_lc.records import relative_tolerance
from graphrag_eval_lc.registry.step_kinds import StepKind


def match_row_steps(reference: StepView, actual: StepView) -> StepScore:
    """Compare the outputs of two ``sparql_query`` steps.

    Args:
        reference: A reference step; its keys ``required_columns``, ``ordered``, ``ignore_duplicates``, ``strict``
            and ``tolerance`` say how to compare.
        actual: The step of the agent.
    """
    try:
        options = comparison_options(reference)
    except ValueError as problem:
        return explained(0.0, f"The reference step in the dataset is at fault: {problem}.")
    compared = compare_row_steps(reference, actual, options)
    return StepScore(
        compared.score,
        lambda: compared.reason,
        lambda: compared.closeness,
        compared.unreadable,
        compared.is_undecided,
        compared.cut,
        lambda: compared.grade,
        lambda: compared.grade_reason,
    )


def compare_row_steps(reference: StepView, actual: StepView, options: Mapping[str, Any]) -> SparqlComparison:
    """Compare the results of two steps, the actual ones read as ``steps.outputs`` declares.

    Args:
        reference: The reference step.
        actual: The step of the agent.
        options: The ``comparison_options`` of the reference step.
    """
    expected, required = _parsed(reference), reference.get(REQUIRED_COLUMNS)
    if isinstance(expected, SparqlResults) and names_no_columns(expected):
        required = None  # such as an empty array of row objects, which need not have them
    try:
        found = actual_results(actual, reference)
    except UnreadableOutput as problem:
        if isinstance(expected, SparqlResults):
            return comparison_without_results(
                problem,
                lambda: grade_before_cut(
                    expected,
                    rows_before_cut_of(actual),
                    lambda rows: compare_sparql_results(expected, rows, required, **options).graded,
                ),
            )
        found = SparqlResults({}, 0)  # the reference is at fault, whatever the step gave
    return compare_sparql_results(expected, found, required, **options)


def _parsed(step: StepView) -> Any:
    """Return the results of a reference step, or its unreadable output, for the comparison to say so."""
    try:
        return reference_results(step)
    except UnreadableOutput:
        return step.get("output")


def comparison_options(reference: StepView) -> dict[str, Any]:
    """Return how a reference step says to compare, as arguments of ``compare_sparql_results``.

    Raises:
        ValueError: A key has a value that it cannot have.

    Example:
        >>> options = comparison_options(StepView({"name": "sparql_query", "ordered": True, "tolerance": "1e-6"}))
        >>> options["ordered"], options["tolerance"], options["node_keys"]
        (True, 1e-06, ())
    """
    options = {"ordered": False, "ignore_duplicates": True, "strict": False}
    options |= {key: reference[key] for key in options if reference.get(key) is not None}
    wrong = [f"`{key}`" for key, value in options.items() if not isinstance(value, bool)]
    if wrong:
        raise ValueError(f"{wrong[0]} is neither true nor false")
    tolerance = reference.get("tolerance")
    if tolerance is not None and not isinstance(tolerance, Mapping):  # the config's is by datatype
        try:
            tolerance = relative_tolerance(tolerance)
        except ValueError as problem:
            raise ValueError(f"`tolerance` is {tolerance!r:.40}: {problem}") from None
    values = reference.get("values")
    rows = reference.rows or RowsConfig()
    return {
        **options,
        "tolerance": tolerance,
        "values": values if isinstance(values, ValuesConfig) else None,
        "node_keys": tuple(rows.node_keys),
        "list_order": rows.list_order,
    }


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for a query; None where its results have no rows."""
    del later
    results = read_sparql_results(step["output"])
    if results.boolean is None and not results.row_count:
        return None
    kept = {key: step[key] for key in ("name", "args", "output")}
    media_type = media_type_of_form(results, step["output"])
    declared = {} if media_type is None else {"output_media_type": media_type}
    return {**kept, **declared, REQUIRED_COLUMNS: list(results.columns)}


ROWS = StepKind(
    key="rows",
    title="SPARQL results",
    serves=((SPARQL_QUERY, SPARQL_RESULTS), *((None, media_type) for media_type in MEDIA_TYPES)),
    serves_where=SERVED_WHERE,
    forms=FORMS,
    matcher=match_row_steps,
    parse=parse_sparql_results,
    check=check_rows_step,
    draft=_draft_step,
    shown_as="rows",
)
