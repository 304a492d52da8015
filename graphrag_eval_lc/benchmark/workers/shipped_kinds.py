"""How the step kinds and matchers of users come to workers that compare: by their plugin, or by their value."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_eval_lc.benchmark.workers.shipping import pickled
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.plugins import Plugin, loaded_plugin, plugin_of
from graphrag_eval_lc.registry.step_kinds import StepKind, custom_step_kinds, register_step_kind, registered_name

_HINT = "Put it into a file, and name that as a plugin: --plugin FILE, or plugins in the config."


@dataclass(frozen=True, slots=True)
class ShippedPlugin:
    """A plugin that a worker loads.

    Attributes:
        name: The module, or the whole path of its file.
        source: What stands in the file; None for a module.
    """

    name: str
    source: bytes | None = None


@dataclass(frozen=True, slots=True)
class ShippedKinds:
    """The step kinds of users, for a process that knows only those of this package.

    Attributes:
        plugins: Those that register some, in the order in which they were loaded.
        by_value: The kinds that only the driver's program registered, each pickled.
    """

    plugins: tuple[ShippedPlugin, ...] = ()
    by_value: tuple[bytes, ...] = ()

    @classmethod
    def of_this_process(cls) -> "ShippedKinds":
        """Return the kinds that users registered in this process.

        Raises:
            OptionError: One of them cannot be sent.
        """
        plugins: dict[str, ShippedPlugin] = {}
        by_value: dict[StepKind, bytes] = {}
        for key, kind in custom_step_kinds().items():
            plugin = plugin_of(registered_name(key), kind.matcher)
            if plugin.via != "Python" or plugin.name.endswith(".py"):
                plugins[plugin.name] = _shipped(plugin)
            elif kind not in by_value:
                by_value[kind] = _pickled(kind)
        return cls(tuple(plugins.values()), tuple(by_value.values()))

    def register(self) -> None:
        """Register the kinds in this process.

        Raises:
            GraphRAGEvalError: A plugin cannot be loaded here.
        """
        for plugin in self.plugins:
            _load(plugin)
        for kind in self.by_value:
            register_step_kind(pickle.loads(kind))


def _shipped(plugin: Plugin) -> ShippedPlugin:
    path = Path(plugin.name)
    if path.suffix != ".py":
        return ShippedPlugin(plugin.module if plugin.entry_point is not None else plugin.name)
    try:
        return ShippedPlugin(str(path.resolve()), path.read_bytes())
    except OSError as problem:
        raise OptionError(f"the plugin {plugin.name} cannot be read again: {problem}", key="engine") from problem


def _pickled(kind: StepKind) -> bytes:
    try:
        return pickled(kind)
    except Exception as problem:
        reason = (str(problem) or type(problem).__name__).splitlines()[0].rstrip(".")
        what = f"the matcher of {kind.title} cannot be sent to another process ({reason})"
        raise OptionError(what, key="engine", hint=_HINT) from problem


def _load(plugin: ShippedPlugin) -> None:
    """Load a plugin; a file that this machine does not have, or has otherwise, is written for it."""
    path = Path(plugin.name)
    if plugin.source is None or _is_same(path, plugin.source):
        loaded_plugin(plugin.name, "Python")
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(plugin.source)
        loaded_plugin(str(copy), "Python")


def _is_same(path: Path, source: bytes) -> bool:
    try:
        return path.read_bytes() == source
    except OSError:
        return False
