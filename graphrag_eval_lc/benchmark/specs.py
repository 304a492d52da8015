"""Loads what specs such as ``package.module:attribute`` or ``path/to/file.py:attribute`` name: agents, evaluators."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.registry.modules import loaded_module
from graphrag_eval_lc.texts import listed

_SPEC_HINT = "Write package.module:attribute or path/to/file.py:attribute."
MOST_NAMED = 20


def named_by(spec: str, what: str = "an agent") -> Any:
    """Import and return the object that a spec names.

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
        raise AgentError(f"{spec!r} is not the spec of {what}", hint=_SPEC_HINT)
    module = loaded_module(place, hint=_SPEC_HINT)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = listed(nearest_first(attribute, _public_names(module)), MOST_NAMED)
            raise AgentError(f"{place} has no attribute {attribute}", hint=f"It has: {names or 'nothing public'}.")
        found = getattr(found, part)
    return found


def evaluators_of(given: Any) -> tuple[Callable[..., Any], ...]:
    """Return evaluators as functions; those that are given as specs are loaded.

    Raises:
        OptionError: It is not a list of functions and specs.
        AgentError: What a spec names cannot be loaded.
    """
    if given is None:
        return ()
    if not isinstance(given, str | bytes | Mapping) and isinstance(given, Iterable):
        found = tuple(named_by(each, "an evaluator") if isinstance(each, str) else each for each in given)
        if all(map(callable, found)):
            return found
    raise OptionError(f"evaluators cannot be {given!r}", key="evaluators", hint="Give a list of functions.")


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
        # What has invoke is a Runnable: scoring reads specs too, and loads no LangChain.
        if not name.startswith("_") and (hasattr(type(value), "invoke") or inspect.isfunction(value))
    ]
