"""What a judge found of one answer, as the cells of a row."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_F1

ANSWER_COLUMNS = ("Question", "Reference answer", "Actual answer")

_KEYS = {
    "#Reference": "answer_reference_claims_count",
    "#PTarget": "answer_actual_claims_count",
    "#Matching": "answer_matching_claims_count",
    "Reasoning": f"{ANSWER_CORRECTNESS}_reason",
    "Error": f"{ANSWER_CORRECTNESS}_error",
    "True positives": "answer_true_positives",
    "False positives": "answer_false_positives",
    "False negatives": "answer_false_negatives",
}
JUDGED_COLUMNS = tuple(_KEYS)
_COUNTS = JUDGED_COLUMNS[:3]

Cells = Mapping[str, str]


def cells_of(record: Mapping[str, Any]) -> Cells:
    """Give the cells of answer correctness, by column.

    Args:
        record: The keys of a result. What is absent is a blank cell; lists become JSON.

    Example:
        >>> cells = cells_of({"answer_matching_claims_count": 1, "answer_true_positives": ["Oslo is in NO1."]})
        >>> cells["#Matching"], cells["True positives"], cells["Error"]
        ('1', '["Oslo is in NO1."]', '')
    """
    return {column: _text(record.get(key)) for column, key in _KEYS.items()}


def is_judged(cells: Cells) -> bool:
    """Tell whether a row has its counts and no error."""
    return not cells["Error"].strip() and all(cells[column].isdecimal() for column in _COUNTS)


def score_in(cells: Cells, metric: str) -> float | None:
    """Give the score of a judged row.

    Args:
        cells: Its cells; see ``is_judged``.
        metric: ``answer_f1``, which is ``2 · #Matching / (#Reference + #PTarget)``, or ``answer_recall``, which is
            ``#Matching / #Reference``.

    Returns:
        0 to 1; None where there are no claims to count.

    Example:
        >>> score_in({"#Reference": "3", "#PTarget": "3", "#Matching": "2"}, "answer_f1")
        0.6666666666666666
    """
    reference, actual, matching = (int(cells[column]) for column in _COUNTS)
    part, whole = (2 * matching, reference + actual) if metric == ANSWER_F1 else (matching, reference)
    return part / whole if whole else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)
