"""The record of a question that was asked several times: what failed attempts keep, and what all of them spent."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, TOKENS, TOTAL_TOKENS

_KEPT = (
    "error", "started_at", ELAPSED_SEC, "run_id", "run_ids", *TOKENS, AGENT_COST,
    "actual_steps", "llm_calls", "llm_messages", "llm_tools",
)  # fmt: skip


def failed_attempt(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a failed attempt on the response that follows."""
    return {key: response[key] for key in _KEPT if key in response}


def attempts_in(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the attempts of an earlier response, itself the last, as they are kept on the response that follows."""
    return [*response.get("failed_attempts", ()), failed_attempt(response)]


def completed(sample: Sample, response: Mapping[str, Any], repeats: int) -> dict[str, Any]:
    """Return a response with the question's id, and its repeat where each question is asked more than once."""
    complete: dict[str, Any] = {"question_id": sample.key[0]}
    if repeats > 1:
        complete["repeat"] = sample.repeat
    return {**complete, **{key: value for key, value in response.items() if key not in ("question_id", "repeat")}}


def _all_attempts(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [response, *response.get("failed_attempts", ())]


def tokens_spent(response: Mapping[str, Any]) -> int | None:
    """Return the tokens of a response with all its attempts; None where some are not known.

    An attempt without a model call spent none. A failed call whose tokens are not known is not counted.

    Example:
        >>> tokens_spent({"total_tokens": 7, "failed_attempts": [{"total_tokens": 5}, {"llm_calls": []}]})
        12
    """
    spent = 0
    for attempt in _all_attempts(response):
        if attempt.get(TOTAL_TOKENS) is not None:
            spent += attempt[TOTAL_TOKENS]
        elif any("error" not in call for call in attempt.get("llm_calls") or ()):
            return None
    return spent


def cost_spent(response: Mapping[str, Any]) -> float | None:
    """Return the USD that the agent's model calls of all attempts cost; None where some are not known.

    An attempt that spent no tokens cost nothing.

    Example:
        >>> cost_spent({"agent_cost": 0.5, "failed_attempts": [{"agent_cost": 0.25}, {"llm_calls": []}]})
        0.75
    """
    spent = 0.0
    for attempt in _all_attempts(response):
        if attempt.get(AGENT_COST) is not None:
            spent += attempt[AGENT_COST]
        elif _spent_tokens(attempt) or any(
            "error" not in call or _spent_tokens(call) for call in attempt.get("llm_calls") or ()
        ):
            return None
    return spent


def seconds_spent(response: Mapping[str, Any]) -> float:
    """Return the seconds that a response took with all its attempts, without the waits between them."""
    return sum(attempt.get(ELAPSED_SEC) or 0.0 for attempt in _all_attempts(response))


def _spent_tokens(record: Mapping[str, Any]) -> bool:
    return any(record.get(key) for key in TOKENS)
