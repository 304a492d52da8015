"""What run.json says of a plugin: what loaded it, and its version or content."""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from graphrag_eval_lc.registry.plugins import Plugin, plugin_of


def plugin_records(used: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what run.json says of the plugins that a run used, each once.

    Args:
        used: The functions that it used, by what they are, as in ``registered_now``.
    """
    gives: dict[str, list[str]] = {}
    plugins: dict[str, Plugin] = {}
    for name, function in used.items():
        plugin = plugin_of(name, function)
        plugins[plugin.name] = plugin
        gives.setdefault(plugin.name, []).append(name)
    return [plugin_record(plugin, gives[name]) for name, plugin in plugins.items()]


def plugin_record(plugin: Plugin, gives: Iterable[str]) -> dict[str, Any]:
    """Return what run.json says of a plugin.

    Returns:
        ``name``, ``via``, ``entry_point``; ``distribution`` and ``version`` where an installed package holds it;
        ``sha256`` of its file, or of all Python files of its package, where it has no version or is edited in place;
        ``gives``.
    """
    entry_point = plugin.entry_point
    distribution = (entry_point and entry_point.dist) or _distribution_of(plugin.module)
    record: dict[str, Any] = {"name": plugin.name, "via": plugin.via}
    if entry_point is not None:
        record["entry_point"] = entry_point.name
    if distribution is not None:
        record |= {"distribution": distribution.name, "version": distribution.version}
    digest = _digest(plugin.module) if distribution is None or _is_editable(distribution) else None
    if digest is not None:
        record["sha256"] = digest
    return {**record, "gives": list(gives)}


def _distribution_of(module: str) -> Distribution | None:
    """Return the installed package that holds a module's file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    depth = module.count(".") + (path.name == "__init__.py")
    if depth >= len(path.parents):
        return None
    root = path.parents[depth]
    inside = f"{path.relative_to(root).as_posix()},"
    return next((each for each in distributions(path=[str(root)]) if _has_file(each, inside)), None)


def _has_file(distribution: Distribution, line: str) -> bool:
    """Return whether a package's list of files has a line; as a text it is read many times as fast as parsed."""
    record = distribution.read_text("RECORD") or ""
    return record.startswith(line) or f"\n{line}" in record


def _is_editable(distribution: Distribution) -> bool:
    """Return whether a package is installed with ``pip install --editable``, so that its version says little."""
    try:
        source = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return False
    directory = source.get("dir_info") if isinstance(source, dict) else None
    return isinstance(directory, dict) and bool(directory.get("editable"))


def _digest(module: str) -> str | None:
    """Return the SHA-256 of a module's file, or of a package's Python files; None where none can be read."""
    digest = hashlib.sha256()
    try:
        for name, file in _files(module):
            digest.update(name.encode() + b"\0" if name else b"")
            digest.update(file.read_bytes())
    except OSError:
        return None
    return digest.hexdigest() if digest.digest() != hashlib.sha256().digest() else None


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """Yield the Python files of a module; those of a package with their paths in it."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is not None and Path(file).name == "__init__.py":
        folder = Path(file).parent
        yield from ((path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*.py")))
    elif file is not None:
        yield "", Path(file)
