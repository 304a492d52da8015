"""The plugins that the record of a run names: how to give one again, and which are others now."""

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.registry.plugins import SWITCH

_DIGITS = 12  # of a digest, as people see it


def giver_of(run: Mapping[str, Any], thing: str) -> Mapping[str, Any] | None:
    """Give what a run.json says of the plugin that gave something, such as ``metric saved_sec``.

    Example:
        >>> run = {"plugins": [{"name": "my_package.metrics", "gives": ["metric saved_sec"]}]}
        >>> giver_of(run, "metric saved_sec")["name"]
        'my_package.metrics'
    """
    return _givers(run).get(thing)


def option_of(plugin: Mapping[str, Any]) -> str | None:
    """Give the option that loads a plugin again; None for what was registered by the program itself.

    Example:
        >>> option_of({"name": "my plugin.py", "via": "--plugin"})
        "--plugin 'my plugin.py'"
    """
    name = str(plugin.get("name"))
    return None if name == "__main__" else f"--plugin {shlex.quote(name)}"


def otherwise_of(plugin: Mapping[str, Any]) -> str:
    """Give how a plugin is had again without the option."""
    if plugin.get("via") == "entry point" and plugin.get("distribution"):
        version = f"=={plugin['version']}" if plugin.get("version") else ""
        package = shlex.quote(str(plugin["distribution"]) + version)
        return f"unset {SWITCH}, with {package} installed" if os.environ.get(SWITCH) else f"pip install {package}"
    return "in Python, import the module that registers it"


def plugin_warnings(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say which plugins of a run have another version or content than when it was scored before.

    Args:
        earlier: The run.json of the run.
        now: The same, or what ``scored_with`` gives, as it is now.
    """
    before, after = _givers(earlier), _givers(now)
    changes = {
        (_told(before[thing]), _told(after[thing])): None
        for thing in before
        if thing in after and _content(before[thing]) != _content(after[thing])
    }
    return [f"scored with the plugin {new} now, and with {old} before" for old, new in changes]


def plugins_text(run: Mapping[str, Any]) -> str:
    """Give the plugins of a run with their versions, for people.

    Example:
        >>> plugins_text({"plugins": [{"name": "my_package.metrics", "distribution": "my-package", "version": "1.2"}]})
        'my_package.metrics (my-package 1.2)'
    """
    return ", ".join(map(_told, _records(run)))


def _givers(run: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(thing): plugin for plugin in _records(run) for thing in _list(plugin.get("gives"))}


def _records(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (each for each in _list(run.get("plugins")) if isinstance(each, Mapping))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _content(plugin: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(plugin.get(key) for key in ("distribution", "version", "sha256"))


def _told(plugin: Mapping[str, Any]) -> str:
    known = [str(plugin[key]) for key in ("distribution", "version") if plugin.get(key)]
    known += [f"sha256 {str(plugin['sha256'])[:_DIGITS]}"] if plugin.get("sha256") else []
    return f"{plugin.get('name')} ({' '.join(known) or 'of unknown content'})"
