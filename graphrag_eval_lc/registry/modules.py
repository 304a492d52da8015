"""Modules that users name, by their names or their files, and the names of what is in them."""

import functools
import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError

_MEND = "Write package.module or path/to/file.py."

# The files that modules were loaded from, as they were given, by the modules' names.
_files: dict[str, str] = {}


def loaded_module(place: str, *, mend: str = _MEND, adds_folder: bool = True) -> ModuleType:
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
        ('graphrag_eval_lc.registry.modules:spec_of', 'builtins:int')
    """
    named = _named(function)
    return f"{place_of(named.__module__)}:{named.__qualname__}"


def module_of(function: Any) -> str:
    """Give the name of the module in which a function, or another object's type, is defined."""
    return str(_named(function).__module__)


def place_of(module: str) -> str:
    """Give what loads a module again: the file that it was loaded from, as it was given, else its name.

    Example:
        >>> place_of("graphrag_eval_lc.records")
        'graphrag_eval_lc.records'
    """
    return _files.get(module, module)


def _named(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


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
