"""Environment variables that hold for a while, such as those of a ``langgraph.json`` while its agent is open."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from graphrag_eval_lc.masking import remember_secrets_of

Variables = Mapping[str, str | None]

# Agents may be open at the same time and end in any order: the last one that sets a variable wins, and once none does
# it is again what it was.
_lock = threading.Lock()
_layers: list[Variables] = []
_before: dict[str, str | None] = {}


@contextmanager
def environment_variables(variables: Variables) -> Iterator[None]:
    """Set environment variables of this process, and put them back at the end.

    The values of those that are secrets by their names are masked from now on.

    Args:
        variables: Values by name; None unsets one.

    Example:
        >>> with environment_variables({"MODEL_OF_TODAY": "gpt-4o-mini"}):
        ...     os.environ["MODEL_OF_TODAY"]
        'gpt-4o-mini'
    """
    layer = dict(variables)
    remember_secrets_of({name: value for name, value in layer.items() if value is not None})
    try:
        with _lock:
            for name in layer:
                _before.setdefault(name, os.environ.get(name))
            _layers.append(layer)
            _apply(layer)
        yield
    finally:
        with _lock:
            _layers[:] = [other for other in _layers if other is not layer]
            _apply(layer)


def _apply(names: Variables) -> None:
    for name in names:
        setting = [layer for layer in _layers if name in layer]
        value = setting[-1][name] if setting else _before.pop(name)
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
