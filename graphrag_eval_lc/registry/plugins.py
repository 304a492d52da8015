"""Plugins: modules that register something when they are loaded, and how that is undone."""

import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, PluginError, where_it_failed

Restore = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Registry:
    """A registry: its functions, what makes a restore point of it, and the restore point of its first state."""

    registered: Callable[[], Mapping[str, Any]]
    saved: Callable[[], Restore]
    forget: Restore


_registries: list[_Registry] = []


def declare_registry(registered: Callable[[], Mapping[str, Any]], saved: Callable[[], Restore]) -> None:
    """Declare a registry, which holds nothing of users yet.

    Args:
        registered: Returns the functions that users registered in it, by what they are, such as ``metric saved_sec``.
        saved: Returns a function that restores the registry's state of now.
    """
    _registries.append(_Registry(registered, saved, saved()))


def saved_mappings(*mappings: dict[Any, Any]) -> Restore:
    """Return a function that restores what mappings hold now.

    Example:
        >>> known = {"a": 1}
        >>> restore = saved_mappings(known)
        >>> known["b"] = 2
        >>> restore()
        >>> known
        {'a': 1}
    """
    copies = [dict(mapping) for mapping in mappings]

    def restore() -> None:
        for mapping, copied in zip(mappings, copies, strict=True):
            mapping.clear()
            mapping.update(copied)

    return restore


def registered_now() -> dict[str, Any]:
    """Return all functions that users registered, by what they are, such as ``metric saved_sec``; sorted by kind."""
    registered = [each for registry in _registries for each in registry.registered().items()]
    return dict(sorted(registered, key=lambda each: each[0].partition(" ")[0]))


@contextmanager
def registered_only_here() -> Iterator[None]:
    """Forget at the end of a block what is registered in it, plugins included; for tests and notebooks.

    What was registered before is there in the block and after it. Modules that were first imported in the block and
    registered something are forgotten too, so that their next import registers it again. It counts for the whole
    process, other threads included.

    Example:
        >>> from graphrag_eval_lc import register_metric
        >>> with registered_only_here():
        ...     @register_metric(key="words", unit="words")
        ...     def words(question, response):
        ...         return len(response["actual_answer"].split())
    """
    before, modules = registered_now(), set(sys.modules)
    known = len(_registries)
    with ExitStack() as stack:
        for registry in _registries:
            stack.callback(registry.saved())
        try:
            yield
        finally:
            for name in {module_of(function) for _, function in _new_since(before)}:
                while name:  # its packages too, which would not import it again otherwise
                    if name not in modules:
                        sys.modules.pop(name, None)
                    name = name.rpartition(".")[0]
            for registry in _registries[known:]:
                registry.forget()


def _new_since(before: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, function) for name, function in registered_now().items() if before.get(name) is not function]


Via = Literal["entry point", "--plugin", "config", "Python"]

GROUP: Final = "graphrag_eval_lc"
SWITCH: Final = "GRAPHRAG_EVAL_LC_NO_PLUGINS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A module that registered something, or was loaded to do so.

    Attributes:
        name: What loads it again: ``package.module``, or the path of a file as it was given.
        via: What loaded it: the ``entry point`` of an installed package, ``--plugin``, the ``config``,
            or an import in ``Python``.
        module: Its name in ``sys.modules``.
        entry_point: Its entry point in an installed package, if any.
    """

    name: str
    via: Via
    module: str
    entry_point: EntryPoint | None = None


_lock = threading.RLock()
_plugins: dict[str, Plugin] = {}  # by name
_registered_by: dict[str, tuple[Any, Plugin]] = {}  # what was registered while a plugin was loaded
_imported: dict[str, None] = {}  # modules that were first imported as plugins
_installed: dict[str, bool] = {}  # empty until the plugins of installed packages are loaded
# Why plugins of installed packages are left out, by their modules, if that is allowed.
_left_out: ContextVar[dict[str, PluginError]] = ContextVar("_left_out")


def _saved_plugins() -> Restore:
    modules, restore = set(_imported), saved_mappings(_plugins, _registered_by, _imported, _installed)

    def restored() -> None:
        for module in _imported.keys() - modules:
            sys.modules.pop(module, None)
        restore()

    return restored


declare_registry(dict, _saved_plugins)


def load_plugins(names: Iterable[str], via: Via = "Python") -> list[Plugin]:
    """Load plugins, unless they are loaded already.

    Args:
        names: Each ``package.module`` (also looked up in the current folder) or ``path/to/file.py``.
        via: What names them.

    Raises:
        PluginError: One of them does not exist, fails to load, or registers nothing.

    Example:
        >>> load_plugins(["graphrag_eval_lc.records"])
        Traceback (most recent call last):
        graphrag_eval_lc.errors.PluginError: the plugin graphrag_eval_lc.records registers nothing. Let it ...
    """
    return [_plugins[name] if name in _plugins else _checked_plugin(name, via) for name in names]


def loaded_plugin(name: str, via: Via, entry_point: EntryPoint | None = None) -> Plugin:
    """Load a module as a plugin, also one that registers nothing; a file is loaded anew each time.

    Raises:
        AgentError: It does not exist, or fails to load.
        GraphRAGEvalError: What it registers cannot be registered.
    """
    with _lock:
        before, modules = registered_now(), set(sys.modules)
        restores = [registry.saved() for registry in _registries]
        try:
            if entry_point is not None:
                entry_point.load()
            module = loaded_module(name).__name__ if entry_point is None else entry_point.module
        except BaseException:  # half of a plugin is none
            for restore in restores:
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

    The environment variable ``GRAPHRAG_EVAL_LC_NO_PLUGINS`` switches it off.

    Raises:
        PluginError: One of them fails to load; in ``broken_plugins_left_out`` it is left out.
    """
    with _lock:
        if _installed or os.environ.get(SWITCH):
            return
        left_out = _left_out.get(None)
        for entry_point in sorted(entry_points(group=GROUP), key=lambda each: (each.value, each.name)):
            if entry_point.module in _plugins or entry_point.module in (left_out or ()):
                continue
            try:
                _load_installed(entry_point)
            except PluginError as problem:
                if left_out is None:
                    raise
                left_out[entry_point.module] = problem
        if not left_out:  # else the next one that needs them all complains
            _installed[GROUP] = True


@contextmanager
def broken_plugins_left_out() -> Iterator[None]:
    """Do without plugins of installed packages that fail to load, in a block or in a decorated function.

    What only reads runs needs them less: their records declare the metrics. It counts for this thread or task.
    """
    if _left_out.get(None) is not None:  # one block for all in it, so that each is loaded once
        yield
        return
    token = _left_out.set({})
    try:
        yield
    finally:
        _left_out.reset(token)


def broken_plugins() -> list[str]:
    """Return why plugins are left out in this ``broken_plugins_left_out``."""
    return [str(problem) for problem in _left_out.get({}).values()]


def known_plugins() -> list[Plugin]:
    """Return the loaded plugins, and the other modules that registered something."""
    others = (plugin_of(name, function) for name, function in registered_now().items())
    return list({plugin.name: plugin for plugin in (*_plugins.values(), *others)}.values())


def plugin_of(name: str, function: Any) -> Plugin:
    """Return the plugin that registered a function.

    That is the one whose module or package defines it, else the one that was being loaded, else its module.

    Args:
        name: What the function is, as in ``registered_now``.
        function: The function.
    """
    module = module_of(function)
    owners = [plugin for plugin in _plugins.values() if f"{module}.".startswith(f"{plugin.module}.")]
    if owners:
        return max(owners, key=lambda plugin: len(plugin.module))
    known, plugin = _registered_by.get(name, (None, None))
    if plugin is not None and known is function:
        return plugin
    return Plugin(name=place_of(module), via="Python", module=module)


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


def _load_installed(entry_point: EntryPoint) -> None:
    distribution = entry_point.dist
    package = "an installed package" if distribution is None else f"the package {distribution.name}"
    try:
        loaded_plugin(entry_point.module, "entry point", entry_point)
    except (Exception, SystemExit) as problem:
        cause = problem.what if isinstance(problem, GraphRAGEvalError) else f"{type(problem).__name__}: {problem}"
        raise PluginError(
            f"the plugin {entry_point.name} ({entry_point.value}) of {package} cannot be loaded, as {cause}",
            hint=f"Fix or uninstall the package, or set {SWITCH}=1 to do without the plugins of installed packages.",
        ) from problem


# The files that modules were loaded from, as they were given, by the modules' names.
_file_of_module: dict[str, str] = {}


def loaded_module(
    place: str, *, hint: str = "Write package.module or path/to/file.py.", adds_folder: bool = True
) -> ModuleType:
    """Load a module named as ``package.module`` (also looked up in the current folder) or ``path/to/file.py``.

    Args:
        place: The module or the file; a file is loaded anew each time.
        hint: The hint of messages: how such a name is written.
        adds_folder: Whether the current folder, or the file's, is put first on ``sys.path``.

    Raises:
        AgentError: It does not exist, or fails to load.
    """
    is_file = place.endswith(".py")
    folder = str(Path(place).resolve().parent if is_file else Path.cwd())
    if adds_folder and folder not in sys.path:
        sys.path.insert(0, folder)
    return _module_of_file(place, hint) if is_file else _module_of_name(place, hint)


def spec_of(function: Any) -> str:
    """Return the spec ``place:name`` of a function, or of another object's type; it is the same in each process.

    The place is a module, or the file that it was loaded from. Inner functions have a spec too, but cannot be loaded
    by it.

    Example:
        >>> spec_of(spec_of), spec_of(functools.partial(int, "3"))
        ('graphrag_eval_lc.registry.plugins:spec_of', 'builtins:int')
    """
    named = _named(function)
    return f"{place_of(named.__module__)}:{named.__qualname__}"


def module_of(function: Any) -> str:
    """Return the name of the module in which a function, or another object's type, is defined."""
    return str(_named(function).__module__)


def place_of(module: str) -> str:
    """Return what loads a module again: the file that it was loaded from, as given, else its name.

    Example:
        >>> place_of("graphrag_eval_lc.records")
        'graphrag_eval_lc.records'
    """
    return _file_of_module.get(module, module)


def module_from(place: str) -> ModuleType | None:
    """Return the module that ``loaded_module`` loaded last from a place; None if there is none.

    Example:
        >>> module_from("graphrag_eval_lc.records").__name__
        'graphrag_eval_lc.records'
    """
    names = (name for name, file in reversed(_file_of_module.items()) if file == place)
    return sys.modules.get(next(names, place))


def without_partials(function: Any) -> Any:
    """Return the function that partials wrap."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _named(function: Any) -> Any:
    function = without_partials(function)
    return function if hasattr(function, "__qualname__") else type(function)


def _module_of_name(name: str, hint: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as problem:
        missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise AgentError(f"there is no module {name}", hint=hint) from problem
        raise _failed_import(name, problem) from problem


def _module_of_file(place: str, hint: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise AgentError(f"there is no file {place}", hint=hint)
    # A name of its own for each file, as two agents to compare often have files of one name.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", hint=hint)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    _file_of_module.pop(name, None)  # the last one comes last
    _file_of_module[name] = place
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
        hint=where_it_failed(problem),
    )
