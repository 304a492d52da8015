"""How a job travels to other processes: pickled, or by a name under which it can be imported there."""

import io
import pickle
import sys
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import cloudpickle

from graphrag_eval_lc.benchmark.workers.worker import Job
from graphrag_eval_lc.errors import AgentError

_NAMES = {
    "agent": "the agent",
    "agent_config": "agent_config",
    "input_fn": "input_fn",
    "answer_fn": "answer_fn",
    "capture": "capture",
    "retry": "retry_on",
}


def packed(job: Job) -> bytes:
    """Return a job as bytes, for ``pickle.loads`` in a process that has the same modules.

    An agent that cannot be pickled goes by its name, where a module has it. What only the running program has is
    pickled by its value.

    Raises:
        AgentError: A part of the job cannot be sent; it names the part and what to do.
    """
    try:
        return _pickled(job)
    except Exception:
        job = replace(job, agent=_spec_of(job.agent) or job.agent)
    try:
        return pickled(job)
    except Exception as problem:
        raise _not_sendable(job, problem) from problem


def pickled(value: Any) -> bytes:
    """Return a value as bytes, for ``pickle.loads`` in a process that has the same modules.

    What only the running program has goes by its value.

    Raises:
        Exception: It cannot be pickled.

    Example:
        >>> pickle.loads(pickled({"a": 1.5}))
        {'a': 1.5}
    """
    try:
        return _pickled(value)
    except Exception:
        data = io.BytesIO()
        _ByValue(data, pickle.HIGHEST_PROTOCOL).dump(value)
        return data.getvalue()


class _Pickler(pickle.Pickler):
    """Refuses what only the running program has: another process has another ``__main__``."""

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the running program")
        return NotImplemented


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles what only the running program has by its value.

    A module's sentinel (``SKIP = object()``) goes by its name: graphs of LangGraph compare with theirs by ``is``.
    """

    def reducer_override(self, value: Any) -> Any:
        name = _name_of(value) if type(value) is object else None
        return super().reducer_override(value) if name is None else (_named, name)


def _pickled(value: Any) -> bytes:
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(value)
    return data.getvalue()


def _spec_of(agent: Any) -> str | None:
    """Return the spec of an agent that a module has under a name; None where none has it."""
    name = None if isinstance(agent, str) else _name_of(agent)
    return None if name is None else ":".join(name)


def _name_of(wanted: object) -> tuple[str, str] | None:
    """Return the module that has an object, and its name there; None where another process would find it in none."""
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


def _not_sendable(job: Job, problem: Exception) -> AgentError:
    """Return the error that names the part of a job that cannot be sent."""
    part = "the agent"
    for each in fields(job):
        try:
            pickled(getattr(job, each.name))
        except Exception as own:
            part, problem = _NAMES.get(each.name, each.name), own
            break
    hint = "Put it into a file, and give its spec (my_agent.py:agent), or a function that makes it."
    return AgentError(f"{part} cannot be sent to another process ({str(problem).rstrip('.')})", hint=hint)
