"""What makes two run.json those of one run: shards on several machines share it without knowing of each other."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.benchmark.kept_answers import DIGESTS, digests_in
from graphrag_eval_lc.config import CaptureConfig
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.json_values import json_text, parse_json

DATASET = "dataset"
CONFIG = "config"
SELECTION = "selection"
REPEATS = "repeats"
LIMITS = "limits"
_CAPTURE = "capture"
_AGENT = ("agent", "agent_source", "agent_config")
_OF_MACHINE = ("max_concurrency",)  # a smaller machine asks fewer at once
_DIGEST_LENGTH = 16


def identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all shards of a run have in common, by its name.

    These are the dataset's digest, the agent with its source, the digests of its files and its config, how it is
    captured, the selection, the repeats, the limits without those of one machine, and the configuration.

    Args:
        record: A run.json.
    """
    repeats = record.get(REPEATS)
    limits = {key: value for key, value in _mapping(record.get(LIMITS)).items() if key not in _OF_MACHINE}
    return {
        DATASET: _mapping(record.get(DATASET)).get("sha256"),
        **{key: record.get(key) for key in _AGENT},
        DIGESTS: digests_in(record) or None,
        _CAPTURE: {**CaptureConfig().model_dump(), **_mapping(record.get(_CAPTURE))},
        SELECTION: _mapping(record.get(SELECTION)),
        REPEATS: 1 if repeats is None else repeats,
        LIMITS: limits,
        CONFIG: record.get(CONFIG),
    }


def identity_digest(record: Mapping[str, Any]) -> str:
    """Return a digest of what all shards of a run have in common: 16 hexadecimal digits."""
    text = json_text(_sorted(parse_json(json_text(identity(record)))))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def shard_record(shard: Shard, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what run.json says of a shard: which it is, of how many, and of which run.

    Args:
        shard: The shard.
        record: What run.json says else.
    """
    return {"number": shard.number, "of": shard.of, "run": identity_digest(record)}


def differences(before: Any, after: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the values that differ, each by its dotted name; mappings are compared key by key.

    Example:
        >>> list(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}))
        [('a.c', 2, 3)]
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{name}.{key}" if name else str(key)
            yield from differences(before.get(key), after.get(key), inner)
    elif before != after:
        yield name, before, after


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
