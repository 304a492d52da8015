"""Loads modules and plugins, keeps everything that users register, and can restore an earlier state of it."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, PluginError, where_it_failed

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
    """Return the module that was last loaded from a file or name, or None."""
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
        ('graphrag_eval_lc.registry.plugins:spec_of', 'builtins:int')
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


Via = Literal["entry point", "--plugin", "config", "Python"]

GROUP: Final = "graphrag_eval_lc"
SWITCH: Final = "GRAPHRAG_EVAL_LC_NO_PLUGINS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A module that registered something, or was loaded to do so."""

    name: str  # loads it again: ``package.module``, or the path of a file as the user wrote it
    via: Via  # how it was loaded; "Python" is an import
    module: str  # its name in ``sys.modules``
    entry_point: EntryPoint | None = None  # in an installed package


# Everything that users registered: for each kind of object, the declarations by key.
declared: Final[dict[str, dict[Any, Any]]] = {"evaluator": {}, "exporter": {}, "metric": {}, "step kind": {}}

_lock = threading.RLock()
_plugins: dict[str, Plugin] = {}  # by name
_registered_by: dict[str, tuple[Any, Plugin]] = {}  # what was registered while a plugin was loaded
_imported: dict[str, None] = {}  # modules that were first imported as plugins
_installed: dict[str, bool] = {}  # empty until the plugins of installed packages are loaded
_STATE = (*declared.values(), _plugins, _registered_by, _imported, _installed)


def registered_name(key: Any, kind: str = "step kind") -> str:
    """Return the name under which ``registered_now`` lists a key; the key of a step kind is a name and a media type."""
    return f"{kind} {key if isinstance(key, str) else ' with '.join(part for part in key if part is not None)}"


def registered_now() -> dict[str, Any]:
    """Return all functions that users registered, by kind and key (such as ``metric saved_sec``), sorted by kind."""
    return {
        registered_name(key, kind): getattr(each, "matcher", None) or getattr(each, "function", each)
        for kind, known in declared.items()
        for key, each in known.items()
    }


def saved_registrations() -> Callable[[], None]:
    """Return a function that restores the present registrations, and forgets plugin modules imported after this."""
    copies = [dict(each) for each in _STATE]
    modules = set(_imported)

    def restore() -> None:
        for module in _imported.keys() - modules:
            sys.modules.pop(module, None)
        for each, copied in zip(_STATE, copies, strict=True):
            each.clear()
            each.update(copied)

    return restore


@contextmanager
def registered_only_here() -> Iterator[None]:
    """Forget, at the end of a block, everything that was registered in it, including plugins; for tests and notebooks.

    Earlier registrations stay available in the block and after it. Modules that were first imported in the block and
    registered something are forgotten too, so that their next import registers it again. The block affects the whole
    process, including other threads.

    Example:
        >>> from graphrag_eval_lc import register_metric
        >>> with registered_only_here():
        ...     @register_metric(key="words", unit="words")
        ...     def words(question, response):
        ...         return len(response["actual_answer"].split())
    """
    before, modules, restore = registered_now(), set(sys.modules), saved_registrations()
    try:
        yield
    finally:
        for name in {module_of(function) for _, function in _new_since(before)}:
            while name:  # its packages too, or they would not import it again
                if name not in modules:
                    sys.modules.pop(name, None)
                name = name.rpartition(".")[0]
        restore()


def _new_since(before: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, function) for name, function in registered_now().items() if before.get(name) is not function]


# --- loading ---------------------------------------------------------------------------------------------------------


def load_plugins(names: Iterable[str], via: Via = "Python") -> list[Plugin]:
    """Load plugins, unless they are loaded: ``package.module`` (also in the current folder) or ``path/to/file.py``.

    Raises:
        PluginError: One of them does not exist, fails to load, or registers nothing.
    """
    return [_plugins[name] if name in _plugins else _checked_plugin(name, via) for name in names]


def _checked_plugin(name: str, via: Via) -> Plugin:
    place, _, attribute = name.rpartition(":")
    if place and attribute.isidentifier():
        raise PluginError(f"the plugin {name} names an attribute of a module", hint=f"Write {place}.")
    try:
        plugin = loaded_plugin(name, via)
    except AgentError as problem:
        raise PluginError(f"the plugin {name} cannot be used, as {problem.what}", hint=problem.hint) from problem
    if not any(plugin_of(each, function) == plugin for each, function in registered_now().items()):
        del _plugins[name]
        names = "register_metric, register_step_kind, register_evaluator or register_exporter"
        raise PluginError(f"the plugin {name} registers nothing", hint=f"Let it call {names} when it is loaded.")
    return plugin


def loaded_plugin(name: str, via: Via, entry_point: EntryPoint | None = None) -> Plugin:
    """Load a module as a plugin, even if it registers nothing; a file is reloaded each time.

    Raises an AgentError if it does not exist or fails to load, and passes on errors of its registrations.
    """
    with _lock:
        before, modules, restore = registered_now(), set(sys.modules), saved_registrations()
        try:
            if entry_point is not None:
                entry_point.load()
            module = loaded_module(name).__name__ if entry_point is None else entry_point.module
        except BaseException:  # nothing of a failed plugin is kept
            restore()
            raise
        plugin = Plugin(name=name, via=via, module=module, entry_point=entry_point)
        if module not in modules:
            _imported[module] = None
        _registered_by.update({each: (function, plugin) for each, function in _new_since(before)})
        _plugins[name] = plugin
        return plugin


def load_installed_plugins() -> None:
    """Load the plugins of installed packages (entry-point group ``graphrag_eval_lc``) once a process.

    The environment variable ``GRAPHRAG_EVAL_LC_NO_PLUGINS`` switches it off. Raises a PluginError if one fails to load.
    """
    with _lock:
        if _installed or os.environ.get(SWITCH):
            return
        for entry_point in sorted(entry_points(group=GROUP), key=lambda each: (each.value, each.name)):
            if entry_point.module in _plugins:
                continue
            try:
                loaded_plugin(entry_point.module, "entry point", entry_point)
            except (Exception, SystemExit) as problem:
                package = f"the package {entry_point.dist.name}" if entry_point.dist else "an installed package"
                cause = (
                    problem.what if isinstance(problem, GraphRAGEvalError) else f"{type(problem).__name__}: {problem}"
                )
                hint = (
                    f"Fix or uninstall the package, or set {SWITCH}=1 to do without the plugins of installed packages."
                )
                what = f"the plugin {entry_point.name} ({entry_point.value}) of {package} cannot be loaded, as {cause}"
                raise PluginError(what, hint=hint) from problem
        _installed[GROUP] = True


# --- records of plugins ----------------------------------------------------------------------------------------------


def known_plugins() -> list[Plugin]:
    """Return the loaded plugins, and the other modules that registered something."""
    others = (plugin_of(name, function) for name, function in registered_now().items())
    return list({plugin.name: plugin for plugin in (*_plugins.values(), *others)}.values())


def plugin_of(name: str, function: Any) -> Plugin:
    """Return the plugin that registered a function; ``name`` is the function's name in ``registered_now``.

    It is the plugin whose module or package defines the function, then the plugin that was being loaded at the time,
    then the function's module.
    """
    module = module_of(function)
    owners = [plugin for plugin in _plugins.values() if f"{module}.".startswith(f"{plugin.module}.")]
    if owners:
        return max(owners, key=lambda plugin: len(plugin.module))
    known, plugin = _registered_by.get(name, (None, None))
    if plugin is not None and known is function:
        return plugin
    return Plugin(name=place_of(module), via="Python", module=module)


def plugin_records(used: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries in run.json for the plugins whose functions a run used, each plugin once."""
    gives: dict[str, list[str]] = {}
    plugins: dict[str, Plugin] = {}
    for name, function in used.items():
        plugin = plugin_of(name, function)
        plugins[plugin.name] = plugin
        gives.setdefault(plugin.name, []).append(name)
    return [plugin_record(plugin, gives[name]) for name, plugin in plugins.items()]


def plugin_record(plugin: Plugin, gives: Iterable[str]) -> dict[str, Any]:
    """Return the entry of a plugin in run.json: its installed package, if any, and the SHA-256 of its files."""
    record: dict[str, Any] = {"name": plugin.name, "via": plugin.via}
    if plugin.entry_point is not None:
        record["entry_point"] = plugin.entry_point.name
        if (distribution := plugin.entry_point.dist) is not None:
            record |= {"distribution": distribution.name, "version": distribution.version}
    digest = _digest(plugin.module)
    return {**record, **({} if digest is None else {"sha256": digest}), "gives": list(gives)}


def _digest(module: str) -> str | None:
    """Return the SHA-256 of a module's file, or of a package's Python files and their relative paths."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    path, digest = Path(file), hashlib.sha256()
    try:
        if path.name != "__init__.py":
            return hashlib.sha256(path.read_bytes()).hexdigest()
        for each in sorted(path.parent.rglob("*.py")):
            digest.update(each.relative_to(path.parent).as_posix().encode() + b"\0" + each.read_bytes())
    except OSError:
        return None
    return digest.hexdigest()
