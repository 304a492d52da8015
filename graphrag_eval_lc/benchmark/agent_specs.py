"""Loads what specs such as ``package.module:attribute`` or ``path/to/file.py:attribute`` name."""

import inspect
import os
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.registry.plugins import loaded_module
from graphrag_eval_lc.texts import listed

_SPEC_HINT = "Write package.module:attribute or path/to/file.py:attribute."
_RECORDS = (".yaml", ".yml", ".json", ".jsonl")
MOST_NAMED = 20


def named_by(spec: str, what: str = "an agent") -> Any:
    """Return what a spec names.

    Args:
        spec: ``package.module:attribute`` (also looked up in the current folder) or ``path/to/file.py:attribute``.
        what: What it should name, for messages.

    Raises:
        AgentError: The module or the attribute does not exist, or fails to load.

    Example:
        >>> named_by("string:ascii_lowercase")[:3]
        'abc'
    """
    place, separator, attribute = spec.rpartition(":")
    if not separator or not place or not attribute:
        raise AgentError(f"{spec!r} is no spec of {what}", hint=_SPEC_HINT)
    module = loaded_module(place, hint=_SPEC_HINT)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = listed(nearest_first(attribute, _public_names(module)), MOST_NAMED)
            raise AgentError(f"{place} has no attribute {attribute}", hint=f"It has: {names or 'nothing public'}.")
        found = getattr(found, part)
    return found


def refuse_dataset_as_agent(agent: Any) -> None:
    """Refuse a dataset where an agent is needed, as where the two are swapped.

    Raises:
        AgentError: It is a list of templates, or the path of a file with records.

    Example:
        >>> refuse_dataset_as_agent([{"template_id": "t"}])
        Traceback (most recent call last):
        ...
        graphrag_eval_lc.errors.AgentError: a dataset stands where the agent is needed. Write ...
    """
    is_path = isinstance(agent, str | PathLike) and Path(agent).suffix.lower() in _RECORDS and Path(agent).is_file()
    if (isinstance(agent, Sequence) and not isinstance(agent, str | bytes)) or is_path:
        shown = f"{os.fspath(agent)!r:.80}" if is_path else "a dataset"
        hint = "Write run_benchmark(agent, dataset), on the command line: run DATASET --agent SPEC."
        raise AgentError(f"{shown} stands where the agent is needed", hint=hint)


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return known names, those first that are most like one that is not known.

    Example:
        >>> nearest_first("agnt", ["router", "agent"])
        ['agent', 'router']
    """
    return sorted(known, key=lambda each: -SequenceMatcher(None, name.lower(), each.lower()).ratio())


def _public_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (_is_runnable(value) or inspect.isfunction(value))
    ]


def _is_runnable(value: Any) -> bool:
    """Return whether a value looks like a Runnable; scoring reads specs too, and loads no LangChain."""
    return hasattr(type(value), "invoke")
