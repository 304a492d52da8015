"""Records that are mistaken for others: responses for a dataset, a dataset for responses, a dataset with older keys."""

from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.files.record_file import Finding

_ORDER: Final = "Where both are given, the dataset comes first: score DATASET RESPONSES."
_OF_RESPONSES: Final = ("question_id", "actual_answer", "actual_steps")
_OF_RESULTS: Final = ("template_id", "status")
# Keys of older datasets of Talk2PowerSystem, and what they are called now.
_OLD_KEYS: Final = {
    "nl_question": "question_text",
    "expected_steps": "reference_steps",
    "expected_answer": "reference_answer",
}


def old_keys(values: Any) -> Finding | None:
    """Return how to convert a dataset whose questions have the keys of older datasets; None if they have not.

    Example:
        >>> old_keys([{"template_id": "t", "questions": [{"id": "q", "nl_question": "Why?"}]}]).hint
        'Rename nl_question to question_text, in the whole file.'
    """
    templates = [each for each in (values if isinstance(values, list) else [values]) if isinstance(each, Mapping)]
    inside = [each for template in templates if isinstance(part := template.get("questions"), list) for each in part]
    # Records with nl_question alone can be imported.
    questions = [*inside, *(each for each in templates if "expected_steps" in each)]
    keys = {key for question in questions if isinstance(question, Mapping) for key in question}
    found = {old: new for old, new in _OLD_KEYS.items() if old in keys and new not in keys}
    if found.keys() <= {"expected_answer"}:  # which may be a key of the user's
        return None
    renamed = ", ".join(f"{old} to {new}" for old, new in found.items())
    return Finding(f"the questions have older keys: {', '.join(found)}", f"Rename {renamed}, in the whole file.")


def mistaken_for_dataset(values: Any) -> Finding | None:
    """Return what is wrong if responses, results or a dataset with older keys stand for a dataset; None if not.

    Example:
        >>> mistaken_for_dataset([{"question_id": "q", "actual_answer": "2"}]).what
        'these are responses, not a reference dataset'
    """
    if (found := old_keys(values)) is not None:
        return found
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
