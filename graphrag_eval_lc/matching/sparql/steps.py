"""The matcher of ``sparql_query`` steps."""

from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.sparql.comparison import compare_sparql_results
from graphrag_eval_lc.matching.sparql.results import parse_sparql_results


def match_sparql_steps(reference: StepView, actual: StepView) -> Comparison:
    """Compare the outputs of two ``sparql_query`` steps.

    Args:
        reference: A reference step; its keys ``required_columns``, ``ordered``, ``ignore_duplicates`` and
            ``strict`` say how to compare.
        actual: The step of the agent.
    """
    options = {"ordered": False, "ignore_duplicates": True, "strict": False}
    options |= {key: reference[key] for key in options if reference.get(key) is not None}
    wrong = [f"`{key}`" for key, value in options.items() if not isinstance(value, bool)]
    if wrong:
        return explained(0.0, f"The reference step in the dataset is at fault: {wrong[0]} is neither true nor false.")
    compared = compare_sparql_results(_parsed(reference), _parsed(actual), reference.get("required_columns"), **options)
    return Comparison(compared.score, lambda: compared.reason, lambda: compared.closeness, compared.unreadable)


def _parsed(step: StepView) -> Any:
    """Give the results of a step, or its output where that is unreadable, for the comparison to say so."""
    try:
        return step.parsed(parse_sparql_results)
    except UnreadableOutput:
        return step.get("output")
