"""The matcher of ``sparql_query`` steps."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.sparql.comparison import compare_sparql_results
from graphrag_eval_lc.matching.sparql.results import parse_sparql_results
from graphrag_eval_lc.records import relative_tolerance


def match_sparql_steps(reference: StepView, actual: StepView) -> Comparison:
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
    compared = compare_sparql_results(_parsed(reference), _parsed(actual), reference.get("required_columns"), **options)
    return Comparison(compared.score, lambda: compared.reason, lambda: compared.closeness, compared.unreadable)


def comparison_options(reference: StepView) -> dict[str, Any]:
    """Give the keys of a reference step that say how to compare, as arguments of ``compare_sparql_results``.

    Raises:
        ValueError: A key has a value that it cannot have.

    Example:
        >>> comparison_options(StepView({"name": "sparql_query", "ordered": True, "tolerance": "1e-6"}))
        {'ordered': True, 'ignore_duplicates': True, 'strict': False, 'tolerance': 1e-06}
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
    return {**options, "tolerance": tolerance}


def _parsed(step: StepView) -> Any:
    """Give the results of a step, or its output where that is unreadable, for the comparison to say so."""
    try:
        return step.parsed(parse_sparql_results)
    except UnreadableOutput:
        return step.get("output")
