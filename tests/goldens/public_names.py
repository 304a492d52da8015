"""The public names of all packages of the project, with their signatures and the first lines of their docstrings."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

_MODULES = re.compile(r"\b(graphrag_eval_lc|pydantic|collections|pathlib|langchain_core)(\.\w+)*\.(?=\w)")
_ADDRESSES = re.compile(r" at 0x[0-9a-f]+")


def public_names() -> Iterator[tuple[str, str]]:
    """Return each package with public names, with one line per name."""
    root = importlib.import_module("graphrag_eval_lc")
    packages = [root.__name__]
    packages += [each.name for each in pkgutil.walk_packages(root.__path__, "graphrag_eval_lc.") if each.ispkg]
    for package in packages:
        module = importlib.import_module(package)
        names = sorted(getattr(module, "__all__", ()))
        if names:
            yield package, "".join(f"{line}\n" for name in names for line in _lines(name, getattr(module, name)))


def _lines(name: str, value: Any) -> Iterator[str]:
    yield f"{name}{_signature(value)}: {_first_line(value)}"
    if not inspect.isclass(value):
        return
    for field, annotation in getattr(value, "__annotations__", {}).items():
        if not field.startswith("_"):
            yield f"{name}.{field}: {_plain(inspect.formatannotation(annotation))}"
    for key, member in vars(value).items():
        if key.startswith("_"):
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            yield f"{name}.{key} (property): {_first_line(member)}"
        elif callable(member) or isinstance(member, classmethod | staticmethod):
            yield f"{name}.{key}{_signature(getattr(value, key))}: {_first_line(getattr(value, key))}"


def _signature(value: Any) -> str:
    if not callable(value):
        shown = sorted(value) if isinstance(value, set | frozenset) else value
        return f" = {_plain(repr(shown))[:2000]}"
    try:
        return _plain(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return " (no signature)"


def _plain(text: str) -> str:
    """Return a text without module names and addresses."""
    return _ADDRESSES.sub("", _MODULES.sub("", text))


def _first_line(value: Any) -> str:
    is_of_its_type = not (inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property))
    return "" if is_of_its_type and not hasattr(value, "func") else (inspect.getdoc(value) or "").split("\n")[0]
