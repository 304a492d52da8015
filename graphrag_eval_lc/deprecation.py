"""Old public names, which work for one more version and warn with the new name."""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def warn_renamed(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that a name is old.

    Args:
        old: The old name.
        new: The new one.
        stacklevel: The number of calls between the code that used the name and this one.
    """
    message = f"{old} is now called {new}; the old name goes with the next version"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


def renamed_attribute(old: str, new: str) -> Any:
    """Make a property that reads an attribute under its old name.

    Example:
        >>> class Problem:
        ...     hint = "Write it."
        ...     mend = renamed_attribute("mend", "hint")
    """

    def value(self: Any) -> Any:
        warn_renamed(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)

    def set_value(self: Any, given: Any) -> None:
        warn_renamed(f"{type(self).__name__}.{old}", new)
        setattr(self, new, given)

    return property(value, set_value, doc=f"The old name of ``{new}``.")


def renamed_names(module: str, new_names: Mapping[str, str], *, stacklevel: int = 1) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a module whose names have changed.

    Args:
        module: The module's ``__name__``.
        new_names: The new place of each old name: ``name``, or ``package.module:name``.
        stacklevel: The number of calls between the code that used the name and the returned function.
    """

    def value_of(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = new_names[name].rpartition(":")
        warn_renamed(f"{module}.{name}", f"{place or module}.{new}", stacklevel=stacklevel + 1)
        return getattr(import_module(place or module), new)

    return value_of
