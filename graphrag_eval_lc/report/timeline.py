"""What an agent did for one question: its calls in real time, one inside another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.registry.metrics import COST, ELAPSED_SEC, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.report.texts import args_text, shown_name, value_text, without_middle


def timeline(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the calls in their order, with seconds from the first of them and how deep they are nested."""
    begun = [_timestamp(step.get("execution_timestamp")) for step in steps]
    known = [time for time in begun if time is not None]
    first = min(known, default=0.0)
    depths = _depths(steps)
    return [
        {
            "kind": "tool",
            "name": shown_name(step.get("name")),
            "id": shown_name(step.get("id", at)),
            "start": None if time is None else round(time - first, 6),
            "duration": number(step.get(ELAPSED_SEC)),
            "depth": depth,
            "status": "error" if step.get("status") == "error" else "success",
            "args": args_text(step.get("args")),
            **_found(step),
        }
        for at, (step, time, depth) in enumerate(zip(steps, begun, depths, strict=True))
    ]


def model_rows(calls: Any) -> list[dict[str, Any]]:
    """Give the calls of each model together: how many, how many failed, tokens, seconds and cost as far as known."""
    if not isinstance(calls, list):
        return []
    models: dict[str, dict[str, Any]] = {}
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        name = shown_name(call.get("model") or "unknown model")
        row = models.setdefault(name, {"model": name, "calls": 0, "failed": 0})
        row["calls"] += 1
        row["failed"] += "error" in call
        sums = Counter(row)
        for key, metric in (("tokens", TOTAL_TOKENS), ("seconds", ELAPSED_SEC), ("usd", COST)):
            value = number(call.get(metric))
            if value is not None:
                row[key] = sums[key] + value
    return list(models.values())


def _found(step: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a call gave, how often it was tried, and how what it gave was judged."""
    found: dict[str, Any] = {}
    if step.get("output") is not None:
        found["output"] = value_text(step["output"])
    if step.get("error") is not None:
        found["error"] = without_middle(str(step["error"]))
        if step.get("output") == step["error"]:  # recorded runs carry the error in both
            del found["output"]
    attempts = step.get("attempts")
    if isinstance(attempts, int) and attempts > 1:
        found["attempts"] = attempts
    if step.get("comparison_error") is not None:
        found["note"] = without_middle(str(step["comparison_error"]))
    measures = [
        {"name": shown_name(key), "value": value}
        for key, value in step.items()
        if metric_spec(key).over == "steps" and number(value) is not None
    ]
    return {**found, "measures": measures} if measures else found


def _timestamp(text: object) -> float | None:
    """Give an ISO 8601 time in seconds; one without a zone is taken for UTC."""
    try:
        time = datetime.fromisoformat(str(text))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _depths(steps: Sequence[Mapping[str, Any]]) -> list[int]:
    """Give how many calls each call is inside; of several with one id the nearest before it is its parent."""
    depths: list[int] = []
    last_with_id: dict[str, int] = {}
    for at, step in enumerate(steps):
        parent = last_with_id.get(str(step["parent_id"])) if step.get("parent_id") is not None else None
        depths.append(0 if parent is None else depths[parent] + 1)
        if step.get("id") is not None:
            last_with_id[str(step["id"])] = at
    return depths
