"""Specs such as ``package.module:attribute`` or ``path/to/file.py:attribute``: what they name, and what names them."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError
from graphrag_eval_lc.texts import listed

_SPEC_MEND = "Write package.module:attribute or path/to/file.py:attribute."
_MODULE_MEND = "Write package.module or path/to/file.py."
MOST_NAMED = 20

# The files that modules were loaded from, as they were given, by the modules' names.
_files: dict[str, str] = {}


def named_by(spec: str, what: str = "an agent") -> Any:
    """Give what a spec names.

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
        raise AgentError(f"{spec!r} is no spec of {what}", mend=_SPEC_MEND)
    module = loaded_module(place, mend=_SPEC_MEND)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = listed(nearest_first(attribute, _public_names(module)), MOST_NAMED)
            raise AgentError(f"{place} has no attribute {attribute}", mend=f"It has: {names or 'nothing public'}.")
        found = getattr(found, part)
    return found


def loaded_module(place: str, *, mend: str = _MODULE_MEND, adds_folder: bool = True) -> ModuleType:
    """Load the module that ``package.module`` (also looked up in the current folder) or ``path/to/file.py`` names.

    Args:
        place: The module or the file; a file is loaded anew each time.
        mend: How such a name is written, for messages.
        adds_folder: Whether the current folder, or the file's, comes first on ``sys.path``.

    Raises:
        AgentError: It does not exist, or fails to load.
    """
    is_file = place.endswith(".py")
    folder = str(Path(place).resolve().parent if is_file else Path.cwd())
    if adds_folder and folder not in sys.path:
        sys.path.insert(0, folder)
    return _module_of_file(place, mend) if is_file else _module_of_name(place, mend)


def spec_of(function: Any) -> str:
    """Give the spec of a function or of another object's type, the same in each process.

    What a spec of this process loaded from a file is named by that file. Functions inside of others have a spec too,
    by which nothing can be found.

    Example:
        >>> spec_of(spec_of), spec_of(functools.partial(int, "3"))
        ('graphrag_eval_lc.runner.agent_specs:spec_of', 'builtins:int')
    """
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{_files.get(named.__module__, named.__module__)}:{named.__qualname__}"


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Give the names of what there is, those first that are most like one that is not there.

    Example:
        >>> nearest_first("agnt", ["router", "agent"])
        ['agent', 'router']
    """
    return sorted(known, key=lambda each: -SequenceMatcher(None, name.lower(), each.lower()).ratio())


def _module_of_name(name: str, mend: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(f"{problem.name}.")):
            raise AgentError(f"there is no module {name}", mend=mend) from problem
        raise _failed_import(name, problem) from problem
    except (Exception, SystemExit) as problem:
        raise _failed_import(name, problem) from problem


def _module_of_file(place: str, mend: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise AgentError(f"there is no file {place}", mend=mend)
    # A name of its own for each file, since two agents to compare are often called alike.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", mend=mend)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    _files[name] = place
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise _failed_import(place, problem) from problem
    return module


def _failed_import(place: str, problem: Exception | SystemExit) -> GraphRAGEvalError:
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
        if not name.startswith("_") and (_is_runnable(value) or inspect.isfunction(value))
    ]


def _is_runnable(value: Any) -> bool:
    """Tell whether a value has what a Runnable has; scoring, which loads no LangChain, reads specs too."""
    return hasattr(type(value), "invoke")
