"""The keys that results and aggregates have of themselves, so that no evaluation of a user's may give them."""

from graphrag_eval_lc.records import Question, Response, Result
from graphrag_eval_lc.registry.metrics import RETRIEVAL_IDS, RETRIEVAL_TEXT

_RETRIEVAL = (
    "retrieval_answer_recall",
    "retrieval_answer_precision",
    "retrieval_answer_f1",
    "retrieval_context_recall",
    "retrieval_context_precision",
    "retrieval_context_f1",
    "retrieval_utilization",
)
_JUDGED = ("answer_correctness", "answer_relevance", *_RETRIEVAL)

RESERVED_KEYS = frozenset(
    {
        *Result.__annotations__,
        *Response.__annotations__,
        *Question.__annotations__,
        "agent_cost",
        "custom_metrics",
        "repeat",
        "interrupted",
        "attempts",
        "failed_attempts",
        "steps_diagnosis",
        "steps_counts",
        "answer_true_positives",
        "answer_false_positives",
        "answer_false_negatives",
        "answer_reference_claims_count",
        "answer_actual_claims_count",
        "answer_matching_claims_count",
        "answer_recall",
        "answer_precision",
        "answer_f1",
        "answer_eval_error",
        *_JUDGED,
        *(f"{metric}{suffix}" for metric in _JUDGED for suffix in ("_reason", "_cost", "_error")),
        "steps",
        "repeats",
        "totals",
        "per_template",
        "micro",
        "macro",
        "number_of_samples",
        "number_of_questions",
        "number_of_error_samples",
        "number_of_success_samples",
    }
)


def is_reserved_key(key: str) -> bool:
    """Tell whether a key is one that results and aggregates have of themselves.

    Example:
        >>> is_reserved_key("steps_score"), is_reserved_key("retrieval_ids_ndcg@10"), is_reserved_key("politeness")
        (True, True, False)
    """
    return key in RESERVED_KEYS or key.startswith((RETRIEVAL_IDS, RETRIEVAL_TEXT))
