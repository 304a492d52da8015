"""Results on which a judge or a metric of the user failed: how many, and the first message."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.registry.metrics import OLDER_CORRECTNESS_ERROR
from graphrag_eval_lc.texts import counted, shortened

# Older names for other keys, and what a comparison without judges says.
_NOT_COUNTED = {OLDER_CORRECTNESS_ERROR, "comparison_error"}
_LONGEST_TEXT = 300


class JudgeFailures:
    """Counts the results that a judge or a function of the user failed on, and keeps the first message.

    Example:
        >>> failures = JudgeFailures()
        >>> failures.add({"question_id": "q1", "tone_error": "the model refused to answer"})
        >>> failures.add({"question_id": "q2", "tone_score": 0.5})
        >>> failures.warning()
        'a judge or a metric failed in 1 of 2 results; the first is q1, tone_error: the model refused to answer'
    """

    def __init__(self) -> None:
        self._number_of_results = 0
        self._number_of_failures = 0
        self._first = ""

    def add(self, result: Mapping[str, Any]) -> None:
        """Count a judged result."""
        self._number_of_results += 1
        key, text = next(_errors_in(result), (None, ""))
        if key is None:
            return
        self._number_of_failures += 1
        if not self._first:
            short = shortened(text, _LONGEST_TEXT, keeps_lines=True)
            self._first = f"{result.get('question_id')}, {key}: {short}"

    def warning(self) -> str | None:
        """Return one sentence on the failures; None if there are none."""
        if not self._number_of_failures:
            return None
        number = counted(self._number_of_results, "result")
        return f"a judge or a metric failed in {self._number_of_failures:,} of {number}; the first is {self._first}"


def _errors_in(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    steps = result.get("actual_steps")
    records = [result, *(steps if isinstance(steps, list) else ())]
    for record in records:
        for key, text in record.items() if isinstance(record, Mapping) else ():
            if str(key).endswith("_error") and key not in _NOT_COUNTED and isinstance(text, str):
                yield key, text
