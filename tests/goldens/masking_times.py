"""Remove values that differ between two runs of the same commit: times, random ids, versions and paths.

``masked`` replaces them by marks. ``frozen`` replaces them by constant values, so that outputs derived from them can be
compared byte by byte.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any
from zlib import crc32

SECONDS = frozenset({"elapsed_sec", "first_token_sec"})
MOMENTS = frozenset({"execution_timestamp", "started_at", "started", "finished", "scored"})
IDS = frozenset({"run_id", "thread_id"})
# If two repeats request the same embedding in parallel, either one may pay.
CHANCE_COSTS = "answer_relevance_cost"
_VERSIONS = "versions"


def masked(value: Any, key: str = "") -> Any:
    """Return a record with marks in place of values that differ between runs."""
    if key in SECONDS and isinstance(value, dict):  # aggregated seconds
        return dict.fromkeys(value, "<seconds>")
    if key == _VERSIONS and isinstance(value, dict):
        return dict.fromkeys(value, "<version>")
    if key in SECONDS:
        return "<seconds>"
    if key in MOMENTS:
        return "<moment>"
    if key == CHANCE_COSTS:
        return dict.fromkeys(value, "<cost>") if isinstance(value, dict) else "<cost>"
    if key in IDS:
        return "<id>"
    if key == "run_ids":
        return ["<id>"] * len(value)
    if key == "attempt_id":
        return "/".join(["<run>", *value.split("/")[1:]])
    if isinstance(value, dict):
        return {name: masked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def frozen(responses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return responses in the order of their keys, with constant times and ids."""
    ticks = count()
    ordered = sorted(responses, key=lambda each: (each["question_id"], each.get("repeat", 1)))
    return [_frozen(each, ticks, f"{each['question_id']}/{each.get('repeat', 1)}", "") for each in ordered]


def _frozen(value: Any, ticks: Iterator[int], place: str, key: str) -> Any:
    if key in SECONDS and isinstance(value, float | int):
        return round(0.1 + crc32(place.encode()) % 4000 / 1000, 3)
    if key in MOMENTS:
        tick = next(ticks)
        return f"2026-01-01T{tick // 3600:02}:{tick // 60 % 60:02}:{tick % 60:02}.000000Z"
    if key in IDS:
        return f"{key} of {place.split('/')[0]}"
    if key == "attempt_id":
        return "/".join(["run", *value.split("/")[1:]])
    if isinstance(value, dict):
        return {name: _frozen(item, ticks, f"{place}/{name}", name) for name, item in value.items()}
    if isinstance(value, list):
        return [_frozen(item, ticks, f"{place}/{number}", "") for number, item in enumerate(value)]
    return value
