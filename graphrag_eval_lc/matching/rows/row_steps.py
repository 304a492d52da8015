"""The step kind rows: comparing, checking and drafting the steps that query a graph or a database."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import Step, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.rows.comparison import (
    SparqlComparison,
    compare_sparql_results,
    comparison_without_results,
)
from graphrag_eval_lc.matching.rows.readers import read_sparql_results, step_results
from graphrag_eval_lc.matching.rows.reference_check import check_rows_step
from graphrag_eval_lc.matching.rows.results import SPARQL_RESULTS, SparqlResults, parse_sparql_results
from graphrag_eval_lc.matching.rows.sql_texts import no_rows_of
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
    )


def compare_row_steps(reference: StepView, actual: StepView, options: Mapping[str, Any]) -> SparqlComparison:
    """Compare the results of two steps, the actual ones read as ``steps.outputs`` declares.

    Args:
        reference: The reference step.
        actual: The step of the agent.
        options: The ``comparison_options`` of the reference step.
    """
    expected = _parsed(reference)
    try:
        found = step_results(actual)
    except UnreadableOutput as problem:
        if isinstance(expected, SparqlResults):
            return comparison_without_results(problem)
        found = SparqlResults({}, 0)  # the reference is at fault, whatever the step gave
    return compare_sparql_results(expected, found, reference.get("required_columns"), **options)


def _parsed(step: StepView) -> Any:
    """Return the results of a reference step, or its unreadable output, for the comparison to say so."""
    try:
        return no_rows_of(step) or step.parsed(read_sparql_results)
    except UnreadableOutput:
        return step.get("output")


def comparison_options(reference: StepView) -> dict[str, Any]:
    """Return how a reference step says to compare, as arguments of ``compare_sparql_results``.

    Raises:
        ValueError: A key has a value that it cannot have.

    Example:
        >>> comparison_options(StepView({"name": "sparql_query", "ordered": True, "tolerance": "1e-6"}))
        {'ordered': True, 'ignore_duplicates': True, 'strict': False, 'tolerance': 1e-06, 'values': None}
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
    return {**options, "tolerance": tolerance, "values": values if isinstance(values, ValuesConfig) else None}


def _draft_step(step: Step, later: Sequence[Step]) -> dict[str, Any] | None:
    """Return a reference step for a query; None where its results have no rows."""
    del later
    results = read_sparql_results(step["output"])
    if results.boolean is None and not results.row_count:
        return None
    kept = {key: step[key] for key in ("name", "args", "output")}
    return {**kept, "output_media_type": SPARQL_RESULTS, "required_columns": list(results.columns)}


SPARQL_QUERY: Final = "sparql_query"

ROWS = StepKind(
    key="rows",
    title="SPARQL results",
    serves=((SPARQL_QUERY, SPARQL_RESULTS), (None, SPARQL_RESULTS)),
    matcher=match_row_steps,
    parse=parse_sparql_results,
    check=check_rows_step,
    draft=_draft_step,
    shown_as="rows",
)
