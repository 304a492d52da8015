"""What failed attempts spent: kept on the response that came of them at last."""

from collections.abc import Mapping, Sequence
from typing import Any

_KEPT = ("error", "elapsed_sec", "input_tokens", "output_tokens", "total_tokens", "actual_steps", "llm_calls")


def failed_attempt(response: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is kept of a failed attempt."""
    return {key: response[key] for key in _KEPT if key in response}


def attempts_in(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the attempts that an earlier response stands for, itself the last, to be kept on the one that follows."""
    return [*response.get("failed_attempts", ()), failed_attempt(response)]


def tokens_spent(response: Mapping[str, Any]) -> int | None:
    """Give the tokens of a response with all its attempts; None where some are not known.

    An attempt that made no model call spent none, and a call that failed without a figure is not counted.

    Example:
        >>> tokens_spent({"total_tokens": 7, "failed_attempts": [{"total_tokens": 5}, {"llm_calls": []}]})
        12
    """
    attempts: Sequence[Mapping[str, Any]] = [response, *response.get("failed_attempts", ())]
    spent = 0
    for attempt in attempts:
        if attempt.get("total_tokens") is not None:
            spent += attempt["total_tokens"]
        elif any("error" not in call for call in attempt.get("llm_calls") or ()):
            return None
    return spent


def seconds_spent(response: Mapping[str, Any]) -> float:
    """Give the seconds that a response took with all its attempts, without the waits between them."""
    attempts = [response, *response.get("failed_attempts", ())]
    return sum(attempt.get("elapsed_sec") or 0.0 for attempt in attempts)
