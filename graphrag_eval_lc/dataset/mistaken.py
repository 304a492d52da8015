"""Records that are mistaken for others: responses where a dataset is needed, and a dataset where responses are."""

from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding

_ORDER: Final = "Where both are given, the dataset comes first: score DATASET RESPONSES."
_OF_RESPONSES: Final = ("question_id", "actual_answer", "actual_steps")
_OF_RESULTS: Final = ("template_id", "status")


def mistaken_for_dataset(values: Any) -> Finding | None:
    """Return what is wrong where responses or results stand for a dataset; None where they do not.

    Example:
        >>> mistaken_for_dataset([{"question_id": "q", "actual_answer": "2"}]).what
        'these are responses, not a reference dataset'
    """
    records = list(values.values())[:1] if isinstance(values, Mapping) and "template_id" not in values else values
    first = _first_of(records)
    if "questions" in first or not any(key in first for key in _OF_RESPONSES):
        return None
    what = "results" if all(key in first for key in _OF_RESULTS) else "responses"
    return Finding(f"these are {what}, not a reference dataset", _ORDER)


def mistaken_for_responses(values: Any) -> Finding | None:
    """Return what is wrong where a dataset stands for responses; None where it does not.

    Example:
        >>> mistaken_for_responses([{"template_id": "t", "questions": []}]).what
        'this is a reference dataset, not responses'
    """
    first = _first_of(values)
    is_template = "template_id" in first and "question_id" not in first
    return Finding("this is a reference dataset, not responses", _ORDER) if is_template else None


def _first_of(values: Any) -> Mapping[str, Any]:
    first = values[0] if isinstance(values, list | tuple) and values else None
    return first if isinstance(first, Mapping) else {}
