"""Loads modules by name or file path, and returns the spec by which a function can be loaded again."""

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

# By module name: the file from which it was loaded, as the user wrote it.
_file_of_module: dict[str, str] = {}


def loaded_module(
    place: str, *, hint: str = "Write package.module or path/to/file.py.", adds_folder: bool = True
) -> ModuleType:
    """Load a module named as ``package.module`` (also looked up in the current folder) or ``path/to/file.py``.

    A file is reloaded each time. With ``adds_folder``, the current folder or the file's is put first on ``sys.path``.
    An AgentError with the hint is raised if it does not exist or fails to load.
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
    # Each file has its own module name, as two agents under comparison often have files of the same name.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", hint=hint)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    _file_of_module.pop(name, None)  # so that the newest entry comes last
    _file_of_module[name] = place
    specification.loader.exec_module(module)
    return module


def module_from(place: str) -> ModuleType | None:
    """Return the module that was last loaded from a file or name; None if there is none."""
    names = (name for name, file in reversed(_file_of_module.items()) if file == place)
    return sys.modules.get(next(names, place))


def place_of(module: str) -> str:
    """Return the argument that loads a module again: its file, as the user wrote it, otherwise its name."""
    return _file_of_module.get(module, module)


def spec_of(function: Any) -> str:
    """Return the spec ``module:name`` of a function, or of another object's type; it is the same in every process.

    If the module was loaded from a file, the spec has the file in its place. Inner functions have a spec too, but it
    cannot load them.

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
    """Return the signature of a function, even if names in its annotations do not exist at run time.

    Since Python 3.14, annotations without quotes are evaluated when they are read, so names that are imported only for
    type checkers would raise a NameError. A TypeError means that the object is not callable, a ValueError that it has
    no signature.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
