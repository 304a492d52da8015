"""Plugins: modules that register metrics, step kinds and evaluators, and who registered what."""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, PluginError
from graphrag_eval_lc.registry.modules import loaded_module, module_of, place_of
from graphrag_eval_lc.registry.registrations import (
    Restore,
    declare_registry,
    forgotten_on_error,
    registered_now,
    saved_mappings,
)

Via = Literal["entry point", "--plugin", "--matchers", "config", "Python"]

GROUP: Final = "graphrag_eval_lc"
SWITCH: Final = "GRAPHRAG_EVAL_LC_NO_PLUGINS"
NOTHING_MEND: Final = (
    "Let it call register_metric, register_step_kind, register_evaluator or register_exporter when it is loaded."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A module that registered something, or was loaded to do so.

    Attributes:
        name: What loads it again: ``package.module``, or the path of a file as it was given.
        via: How it came: by the ``entry point`` of an installed package, ``--plugin``, ``--matchers``, the ``config``,
            or by an import in ``Python``.
        module: Its name in ``sys.modules``.
        entry_point: The name of its entry point.
        distribution: The installed package that has the entry point.
    """

    name: str
    via: Via
    module: str
    entry_point: str | None = None
    distribution: Distribution | None = None


_lock = threading.RLock()
_plugins: dict[str, Plugin] = {}  # by name
_givers: dict[str, tuple[Any, Plugin]] = {}  # what was registered while a plugin was loaded, with the function
_imported: dict[str, None] = {}  # the modules that were first imported as plugins
_installed: dict[str, bool] = {}  # empty until those of installed packages are loaded


def _saved() -> Restore:
    modules, restore = set(_imported), saved_mappings(_plugins, _givers, _imported, _installed)

    def restored() -> None:
        for module in _imported.keys() - modules:
            sys.modules.pop(module, None)
        restore()

    return restored


declare_registry(dict, _saved)


def load_plugins(names: Iterable[str], via: Via = "Python") -> list[Plugin]:
    """Load plugins; one that is loaded already stays as it is.

    Args:
        names: Each ``package.module`` (also looked up in the current folder) or ``path/to/file.py``.
        via: Who names them.

    Raises:
        PluginError: One of them does not exist, fails to load, or registers nothing.

    Example:
        >>> load_plugins(["graphrag_eval_lc.records"])
        Traceback (most recent call last):
        graphrag_eval_lc.errors.PluginError: the plugin graphrag_eval_lc.records registers nothing. Let it ...
    """
    return [_plugins[name] if name in _plugins else _checked(name, via) for name in names]


def loaded_plugin(name: str, via: Via) -> Plugin:
    """Load a module as a plugin, whether it registers something or not; a file is loaded anew each time.

    Raises:
        AgentError: It does not exist, or fails to load.
        GraphRAGEvalError: What it registers cannot be registered.
    """
    return _loaded(name, via, lambda: loaded_module(name))


def load_installed_plugins() -> None:
    """Load the plugins of installed packages, those of the entry-point group ``graphrag_eval_lc``, once a process.

    The environment variable ``GRAPHRAG_EVAL_LC_NO_PLUGINS`` switches it off.

    Raises:
        PluginError: One of them fails to load.
    """
    with _lock:
        if _installed or os.environ.get(SWITCH):
            return
        for entry_point in sorted(entry_points(group=GROUP), key=lambda each: (each.value, each.name)):
            if entry_point.module not in _plugins:
                _load_installed(entry_point)
        _installed[GROUP] = True  # only now, so that a broken one is told each time


def known_plugins() -> list[Plugin]:
    """Give all plugins: those that were loaded, and the modules that registered something otherwise."""
    givers = (plugin_of(name, function) for name, function in registered_now().items())
    return list({plugin.name: plugin for plugin in (*_plugins.values(), *givers)}.values())


def plugin_of(name: str, function: Any) -> Plugin:
    """Give the plugin that registered a function.

    It is the one in whose module the function is defined, else the one that was being loaded, else that module itself.

    Args:
        name: What the function is registered as, as ``registered_now`` has it.
        function: The function.
    """
    module = module_of(function)
    holders = [plugin for plugin in _plugins.values() if f"{module}.".startswith(f"{plugin.module}.")]
    if holders:
        return max(holders, key=lambda plugin: len(plugin.module))
    given, giver = _givers.get(name, (None, None))
    if giver is not None and given is function:
        return giver
    return Plugin(name=place_of(module), via="Python", module=module)


def _checked(name: str, via: Via) -> Plugin:
    place, _, attribute = name.rpartition(":")
    if place and attribute.isidentifier():
        raise PluginError(f"the plugin {name} names an attribute of a module", mend=f"Write {place}.")
    try:
        plugin = loaded_plugin(name, via)
    except AgentError as problem:
        raise PluginError(f"the plugin {name} cannot be used, as {problem.what}", mend=problem.mend) from problem
    if not any(plugin_of(each, function) == plugin for each, function in registered_now().items()):
        del _plugins[name]
        raise PluginError(f"the plugin {name} registers nothing", mend=NOTHING_MEND)
    return plugin


def _load_installed(entry_point: EntryPoint) -> None:
    distribution = entry_point.dist
    package = "an installed package" if distribution is None else f"the package {distribution.name}"
    try:
        _loaded(entry_point.module, "entry point", lambda: _module_of(entry_point), entry_point)
    except (Exception, SystemExit) as problem:
        cause = problem.what if isinstance(problem, GraphRAGEvalError) else f"{type(problem).__name__}: {problem}"
        raise PluginError(
            f"the plugin {entry_point.name} ({entry_point.value}) of {package} cannot be loaded, as {cause}",
            mend=f"Mend or uninstall the package, or set {SWITCH}=1 to do without the plugins of installed packages.",
        ) from problem


def _module_of(entry_point: EntryPoint) -> ModuleType:
    entry_point.load()
    return sys.modules[entry_point.module]


def _loaded(name: str, via: Via, load: Callable[[], ModuleType], entry_point: EntryPoint | None = None) -> Plugin:
    with _lock:
        before, modules = registered_now(), set(sys.modules)
        with forgotten_on_error():
            module = load().__name__
        plugin = Plugin(
            name=name,
            via=via,
            module=module,
            entry_point=None if entry_point is None else entry_point.name,
            distribution=None if entry_point is None else entry_point.dist,
        )
        if module not in modules:
            _imported[module] = None
        for each, function in registered_now().items():
            if before.get(each) is not function:
                _givers[each] = (function, plugin)
        _plugins[name] = plugin
        return plugin
