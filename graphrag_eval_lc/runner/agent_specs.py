"""Finding what a spec such as ``package.module:attribute`` or ``path/to/file.py:attribute`` names."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from langchain_core.runnables import Runnable

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError

_SPEC_MEND = "Write package.module:attribute or path/to/file.py:attribute."


def named_by(spec: str) -> Any:
    """Give what a spec names.

    Args:
        spec: ``package.module:attribute`` (also looked up in the current folder) or ``path/to/file.py:attribute``.

    Raises:
        AgentError: The module or the attribute does not exist, or fails to load.

    Example:
        >>> named_by("string:ascii_lowercase")[:3]
        'abc'
    """
    place, separator, attribute = spec.rpartition(":")
    if not separator or not place or not attribute:
        raise AgentError(f"{spec!r} is no spec of an agent", mend=_SPEC_MEND)
    module = _module_of_file(place) if place.endswith(".py") else _module_of_name(place)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AgentError(
                f"{place} has no attribute {attribute}",
                mend=f"It has: {', '.join(_public_names(module)) or 'nothing public'}.",
            )
        found = getattr(found, part)
    return found


def _module_of_name(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(f"{problem.name}.")):
            raise AgentError(f"there is no module {name}", mend=_SPEC_MEND) from problem
        raise _failed_import(name, problem) from problem
    except Exception as problem:
        raise _failed_import(name, problem) from problem


def _module_of_file(place: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise AgentError(f"there is no file {place}", mend=_SPEC_MEND)
    # A name of its own for each file, since two agents to compare are often called alike.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", mend=_SPEC_MEND)
    module = importlib.util.module_from_spec(specification)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as problem:
        raise _failed_import(place, problem) from problem
    return module


def _failed_import(place: str, problem: Exception) -> GraphRAGEvalError:
    if isinstance(problem, GraphRAGEvalError):
        return problem
    return AgentError(
        f"loading {place} failed with {type(problem).__name__}: {problem}",
        mend="Run it with --debug for the traceback.",
    )


def _public_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (isinstance(value, Runnable) or inspect.isfunction(value))
    ]
