"""The keys that results and aggregates have of themselves, so that no evaluation of a user's may give them."""

from graphrag_eval_lc.records import Question, Response, Result
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    JUDGES,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
)

# What stands beside the metrics, and is no key of the records.
_OF_RESULTS = (
    "custom_metrics",
    "repeat",
    "interrupted",
    "attempts",
    "failed_attempts",
    "steps_diagnosis",
    "steps_counts",
)
_OF_AGGREGATES = (
    "steps",
    "repeats",
    "totals",
    "per_template",
    "micro",
    "macro",
    NUMBER_OF_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
)
# What is told of those that are judged at once, also where it is not told today.
_ENDINGS = ("", "_reason", "_cost", "_error")
_JUDGED = {spec.cost_key.removesuffix("_cost") for spec in BUILT_IN if spec.cost_key is not None}
_RESERVED = frozenset(
    {
        *Result.__annotations__,
        *Response.__annotations__,
        *Question.__annotations__,
        *_OF_RESULTS,
        *_OF_AGGREGATES,
        *(key for spec in BUILT_IN for key in spec.keys),
        *(key for judge in JUDGES for key in judge.keys),
        *(f"{key}{ending}" for key in _JUDGED for ending in _ENDINGS),
    }
)
_FAMILIES = tuple(spec.key for spec in BUILT_IN if spec.is_family)


def is_reserved_key(key: str) -> bool:
    """Tell whether a key is one that results and aggregates have of themselves.

    Example:
        >>> is_reserved_key("steps_score"), is_reserved_key("retrieval_ids_ndcg@10"), is_reserved_key("politeness")
        (True, True, False)
    """
    return key in _RESERVED or key.startswith(_FAMILIES)
