"""How a reference step says that its SPARQL results are compared."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.records import relative_tolerance


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
