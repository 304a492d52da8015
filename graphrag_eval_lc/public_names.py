"""Limits what ``dir()`` and tab completion show of a package to its public names, without imported ones."""

from collections.abc import Callable, Collection, Mapping
from typing import Any


def only_public(names: Mapping[str, Any], *, packages: Collection[str] = ()) -> Callable[[], list[str]]:
    """Make the ``__dir__`` of a module: the names in its ``__all__``, and those that Python adds to each module.

    Args:
        names: The module's ``globals()``.
        packages: The names of its public packages, each of which is shown once it is loaded.

    Example:
        >>> only_public({"__all__": ["score"], "__doc__": "Scores.", "Any": Any, "score": None})()
        ['__doc__', 'score']
    """

    def shown() -> list[str]:
        of_python = (name for name in names if name.startswith("__") and name.endswith("__") and name != "__all__")
        return sorted({*names["__all__"], *of_python, *names.keys() & set(packages)})

    return shown
