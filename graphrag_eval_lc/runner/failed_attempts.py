"""What failed attempts spent: kept on the response that came of them at last."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, STALLED_SEC, TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.run_folder import Key

_KEPT = (
    "error", "started_at", ELAPSED_SEC, STALLED_SEC, "run_id", "run_ids", *TOKENS, AGENT_COST,
    "actual_steps", "llm_calls", "llm_messages", "llm_tools",
)  # fmt: skip


def failed_attempt(response: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is kept of a failed attempt."""
    return {key: response[key] for key in _KEPT if key in response}


def superseded(key: Key) -> dict[str, Any]:
    """Give the record that takes the place of a response to another text of its question, which is asked again."""
    question_id, repeat = key
    record = {"question_id": question_id} | ({"repeat": repeat} if repeat > 1 else {})
    error = "answered with another text of the question"
    return {**record, "status": "error", "error": error, "interrupted": True, "superseded": True}


def attempts_in(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the attempts that an earlier response stands for, itself the last, to be kept on the one that follows."""
    if response.get("superseded"):
        return []
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
        if attempt.get(TOTAL_TOKENS) is not None:
            spent += attempt[TOTAL_TOKENS]
        elif any("error" not in call for call in attempt.get("llm_calls") or ()):
            return None
    return spent


def cost_spent(response: Mapping[str, Any]) -> float | None:
    """Give the USD that a response cost the agent with all its attempts; None where some are not known.

    An attempt that spent no tokens cost nothing.

    Example:
        >>> cost_spent({"agent_cost": 0.5, "failed_attempts": [{"agent_cost": 0.25}, {"llm_calls": []}]})
        0.75
    """
    attempts: Sequence[Mapping[str, Any]] = [response, *response.get("failed_attempts", ())]
    spent = 0.0
    for attempt in attempts:
        if attempt.get(AGENT_COST) is not None:
            spent += attempt[AGENT_COST]
        elif _spent_tokens(attempt) or any(
            "error" not in call or _spent_tokens(call) for call in attempt.get("llm_calls") or ()
        ):
            return None
    return spent


def seconds_spent(response: Mapping[str, Any]) -> float:
    """Give the seconds that a response took with all its attempts, without the waits between them."""
    attempts = [response, *response.get("failed_attempts", ())]
    return sum(attempt.get(ELAPSED_SEC) or 0.0 for attempt in attempts)


def seconds_stalled(response: Mapping[str, Any]) -> float:
    """Give those of the spent seconds for which the event loop stood still by the fault of others."""
    attempts = [response, *response.get("failed_attempts", ())]
    return sum(attempt.get(STALLED_SEC) or 0.0 for attempt in attempts)


def _spent_tokens(record: Mapping[str, Any]) -> bool:
    return any(record.get(key) for key in TOKENS)
