"""Why a question did not score in full, in one line."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import is_error
from graphrag_eval_lc.texts import shortened

_SHOWN_REASON = 270


def reason_of(result: Mapping[str, Any]) -> str:
    """Say in one line why a question did not score in full.

    That is its error, else the diagnosis of the first reference step of the last groups that nothing fulfils.

    Example:
        >>> reason_of({"status": "error", "error": "TimeoutError: no answer in 600 s"})
        'TimeoutError: no answer in 600 s'
    """
    if is_error(result):
        return shortened(str(result.get("error") or "failed without a message"), _SHOWN_REASON)
    for group, diagnoses in reversed(list(enumerate(result.get("steps_diagnosis", ())))):
        for index, diagnosis in enumerate(diagnoses):
            if diagnosis["matched"] and diagnosis["score"] == 1.0:
                continue
            name = result["reference_steps"][group][index]["name"]
            nearest = f" (nearest: {diagnosis['nearest']})" if "nearest" in diagnosis else ""
            return shortened(f"{name}{nearest}: {diagnosis['reason']}", _SHOWN_REASON)
    return ""
