"""A module or a file that a user names goes in, the loaded module comes out; and from functions, what loads them."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, where_it_failed

# The files that modules were loaded from, as they were given, by the modules' names.
_file_of_module: dict[str, str] = {}


def loaded_module(
    place: str, *, hint: str = "Write package.module or path/to/file.py.", adds_folder: bool = True
) -> ModuleType:
    """Load a module named as ``package.module`` (also looked up in the current folder) or ``path/to/file.py``.

    A file is loaded again each time. With ``adds_folder`` the current folder, or the file's, is first on ``sys.path``.
    Raises an AgentError with the hint if it does not exist, or fails to load.
    """
    is_file = place.endswith(".py")
    folder = str(Path(place).resolve().parent if is_file else Path.cwd())
    if adds_folder and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _module_of_file(place, hint) if is_file else importlib.import_module(place)
    except GraphRAGEvalError:
        raise
    except (Exception, SystemExit) as problem:
        missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
        if missing and not is_file and f"{place}.".startswith(f"{missing}."):
            raise AgentError(f"the module {place} was not found", hint=hint) from problem
        what = f"loading {place} failed with {type(problem).__name__}: {problem}"
        raise AgentError(what, hint=where_it_failed(problem)) from problem


def _module_of_file(place: str, hint: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise AgentError(f"the file {place} was not found", hint=hint)
    # Each file has its own module name, as two agents to compare often have files of the same name.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", hint=hint)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    _file_of_module.pop(name, None)  # the last one comes last
    _file_of_module[name] = place
    specification.loader.exec_module(module)
    return module


def module_from(place: str) -> ModuleType | None:
    """Return the module that ``loaded_module`` loaded last from a place; None if there is none."""
    names = (name for name, file in reversed(_file_of_module.items()) if file == place)
    return sys.modules.get(next(names, place))


def place_of(module: str) -> str:
    """Return what loads a module again: the file that it was loaded from, as given, else its name."""
    return _file_of_module.get(module, module)


def spec_of(function: Any) -> str:
    """Return the spec ``place:name`` of a function, or of another object's type; it is the same in each process.

    The place is a module, or the file that it was loaded from. Inner functions have a spec too, but cannot be loaded
    by it.

    Example:
        >>> spec_of(spec_of), spec_of(functools.partial(int, "3"))
        ('graphrag_eval_lc.registry.modules:spec_of', 'builtins:int')
    """
    return f"{place_of(module_of(function))}:{_named(function).__qualname__}"


def module_of(function: Any) -> str:
    """Return the name of the module in which a function, or another object's type, is defined."""
    return str(_named(function).__module__)


def without_partials(function: Any) -> Any:
    """Return the function that partials wrap."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _named(function: Any) -> Any:
    function = without_partials(function)
    return function if hasattr(function, "__qualname__") else type(function)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, also if names in its annotations do not exist.

    From Python 3.14 annotations without quotes are evaluated when they are read, so that names that only a type checker
    imports would be a ``NameError``. A TypeError says that it is not callable, a ValueError that it has none.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
