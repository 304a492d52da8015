"""What a response says of the config of its run: tags and metadata, no longer than allowed, without secrets."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.capture.outputs import text_of, to_plain
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.texts import shortened

_MOST_TAGS = 100
_LONGEST_TAG = 200
_LONGEST_TEXT = 1_000
_LONGEST_SMALL = 200  # a few of these need not be measured
_LONGEST_METADATA = 10_000  # characters of it as JSON
_OWN_TAGS = ("graph:step:", "seq:step:")  # LangChain's and langgraph's, as the prefixes below
_OWN_PREFIXES = ("ls_", "lc_", "langgraph_", "__pregel")
_OWN_KEYS = frozenset({"question_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"})
_SCALARS = frozenset({str, int, bool, type(None)})


def kept_tags(tags: list[str] | None) -> list[str]:
    """Give the tags of a root run that a person gave it."""
    if not tags:
        return []
    own = [text_of(tag) for tag in tags[:_MOST_TAGS]]
    return [shortened(tag, _LONGEST_TAG, keeps_lines=True) for tag in own if not tag.startswith(_OWN_TAGS)]


def kept_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give the metadata of a root run, without the question's id and what LangChain and langgraph put there.

    It is a copy of plain JSON values, which later changes leave as it is. Of long texts the beginning is kept, and
    values that would make it longer than 10,000 characters are left out, which ``…`` says.

    Example:
        >>> kept_metadata({"question_id": "q1", "team": "grid", "ls_integration": "langgraph"})
        {'team': 'grid'}
    """
    if not metadata:
        return {}
    kept: dict[str, Any] = {}
    is_small = len(metadata) <= 16
    for key, value in metadata.items():
        name = key if type(key) is str else text_of(key)
        if name in _OWN_KEYS or name.startswith(_OWN_PREFIXES):
            continue
        if type(value) in _SCALARS and (type(value) is not str or len(value) <= _LONGEST_SMALL):
            kept[name] = value
        else:
            kept[name], is_small = _without_long_texts(to_plain(value)), False
    return kept if is_small else _bounded(kept)


def _bounded(metadata: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    left = _LONGEST_METADATA
    for key, value in metadata.items():
        length = len(json_text({key: value}))
        if length <= left:
            kept[key] = value
            left -= length
    if len(kept) < len(metadata):
        kept["…"] = f"{len(metadata) - len(kept)} left out, as they are longer than {_LONGEST_METADATA:,} characters"
    return kept


def _without_long_texts(value: Any) -> Any:
    if isinstance(value, str):
        return shortened(value, _LONGEST_TEXT, keeps_lines=True)
    if isinstance(value, list):
        return [_without_long_texts(item) for item in value]
    return {key: _without_long_texts(item) for key, item in value.items()} if isinstance(value, dict) else value


def shown_config(tags: list[str], metadata: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Give copies of tags and metadata in which secrets are masked.

    Example:
        >>> shown_config(["nightly"], {"api_key": "abc"})
        (['nightly'], {'api_key': '***'})
    """
    if not tags and not metadata:
        return [], {}
    masked = masked_values([tags, metadata])
    return masked[0], masked[1]
