"""How a job and the step kinds of users travel to other processes: by name, by their plugin, or by their value."""

import io
import pickle
import sys
from collections.abc import Iterable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import cloudpickle

from graphrag_eval_lc.benchmark.workers.worker import Job
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.registry.plugins import loaded_plugin, plugin_of, registered_name
from graphrag_eval_lc.registry.step_kinds import StepKind, custom_step_kinds, register_step_kind

_PARTS = {"agent": "the agent", "retry": "retry_on"}


def packed(job: Job) -> bytes:
    """Return a job as bytes, for ``pickle.loads`` in a process that has the same modules.

    Functions and classes of modules go by their names, and so does an agent that a module has under a name. What only
    the running program has goes by its value.

    Raises:
        AgentError: A part of the job cannot be sent; it names the part and what to do.
    """
    if not isinstance(job.agent, str) and not hasattr(job.agent, "__qualname__") and (name := _name_of(job.agent)):
        job = replace(job, agent=":".join(name))
    try:
        return pickled(job)
    except Exception as whole:
        part, problem = "the agent", whole
        for each in fields(job):
            try:
                pickled(getattr(job, each.name))
            except Exception as own:
                part, problem = _PARTS.get(each.name, each.name), own
                break
        what = f"{part} cannot be sent to another process ({str(problem).rstrip('.')})"
        hint = "Put it into a file, and give its spec (my_agent.py:agent), or a function that makes it."
        raise AgentError(what, hint=hint) from problem


def pickled(value: Any) -> bytes:
    """Return a value as bytes, for ``pickle.loads`` in a process that has the same modules.

    Raises:
        Exception: It cannot be pickled.

    Example:
        >>> pickle.loads(pickled({"a": 1.5}))
        {'a': 1.5}
    """
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(value)
    return data.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Sends a module's sentinel (``SKIP = object()``) by its name: LangGraph compares with its own by ``is``."""

    def reducer_override(self, value: Any) -> Any:
        name = _name_of(value) if type(value) is object else None
        return super().reducer_override(value) if name is None else (_named, name)


def _name_of(wanted: object) -> tuple[str, str] | None:
    """Return the module that has an object, and its name there; None if another process would find it in none."""
    running = sys.modules.get("__main__")  # which is __mp_main__ too, once multiprocessing is imported
    for name, module in list(sys.modules.items()):
        if module is None or module is running or getattr(module, "__file__", None) is None:
            continue
        for attribute, value in list(vars(module).items()):
            if value is wanted:
                return name, attribute
    return None


def _named(module: str, attribute: str) -> Any:
    return getattr(import_module(module), attribute)


# --- step kinds of users ---------------------------------------------------------------------------------------------


class ShippedKinds(NamedTuple):
    """The step kinds of users, for a process that knows only those of this package.

    Attributes:
        plugins: The modules and files that register some, each with the file's content; None for a module.
        by_value: The kinds that only the driver's program registered, pickled.
    """

    plugins: dict[str, bytes | None]
    by_value: bytes

    @classmethod
    def of_this_process(cls) -> "ShippedKinds":
        """Return the kinds that users registered in this process.

        Raises:
            OptionError: One of them cannot be sent.
        """
        plugins: dict[str, bytes | None] = {}
        by_value: dict[StepKind, None] = {}
        for key, kind in custom_step_kinds().items():
            plugin = plugin_of(registered_name(key), kind.matcher)
            if plugin.name.endswith(".py"):
                plugins[str(Path(plugin.name).resolve())] = _content(plugin.name)
            elif plugin.via != "Python":
                plugins[plugin.module if plugin.entry_point is not None else plugin.name] = None
            else:
                by_value[kind] = None
        return cls(plugins, _pickled_kinds(by_value))

    def register(self) -> None:
        """Register the kinds in this process; a plugin's file that is missing or different here is written for it.

        Raises:
            GraphRAGEvalError: A plugin cannot be loaded here.
        """
        for name, content in self.plugins.items():
            path = Path(name)
            if content is None or (path.is_file() and path.read_bytes() == content):
                loaded_plugin(name, "Python")
                continue
            with TemporaryDirectory() as folder:
                copy = Path(folder, path.name)
                copy.write_bytes(content)
                loaded_plugin(str(copy), "Python")
        for kind in pickle.loads(self.by_value):
            register_step_kind(kind)


def _content(plugin: str) -> bytes:
    try:
        return Path(plugin).read_bytes()
    except OSError as problem:
        raise OptionError(f"the plugin {plugin} cannot be read again: {problem}", key="engine") from problem


def _pickled_kinds(kinds: Iterable[StepKind]) -> bytes:
    for kind in kinds:
        try:
            pickled(kind)
        except Exception as problem:
            reason = (str(problem) or type(problem).__name__).splitlines()[0].rstrip(".")
            what = f"the matcher of {kind.title} cannot be sent to another process ({reason})"
            hint = "Put it into a file, and name that as a plugin: --plugin FILE, or plugins in the config."
            raise OptionError(what, key="engine", hint=hint) from problem
    return pickled(list(kinds))
