"""How a job travels to other processes: pickled, or by a name under which it can be imported there."""

import io
import pickle
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from graphrag_eval_lc.benchmark.workers.messages import Job
from graphrag_eval_lc.errors import AgentError

_NAMES = {
    "agent": "the agent",
    "agent_config": "agent_config",
    "input_fn": "input_fn",
    "answer_fn": "answer_fn",
    "capture": "capture",
    "retry": "retry_on",
}


def packed(job: Job, by_value: Callable[[Any], bytes] | None = None) -> bytes:
    """Return a job as bytes, for ``pickle.loads`` in a process that has the same modules.

    An agent that cannot be pickled goes by its name, where a module has it. What only the running program has is
    pickled by its value.

    Args:
        job: The job.
        by_value: Pickles functions and classes by their value; None: cloudpickle, where it is installed.

    Raises:
        AgentError: A part of the job cannot be sent; it names the part and what to do.
    """
    try:
        return _pickled(job)
    except Exception:
        job = replace(job, agent=_spec_of(job.agent) or job.agent)
    try:
        return _pickled(job)
    except Exception as problem:
        if by_value is None and find_spec("cloudpickle") is None:
            raise _not_sendable(job, problem, "or install cloudpickle") from problem
    try:
        return bytes((by_value or import_module("cloudpickle").dumps)(job))
    except Exception as problem:
        raise _not_sendable(job, problem, "or a function that makes it") from problem


def pickled(value: Any, by_value: Callable[[Any], bytes]) -> bytes:
    """Return a value as bytes, for ``pickle.loads`` in a process that has the same modules.

    Args:
        value: The value.
        by_value: Pickles what only the running program has.

    Example:
        >>> pickle.loads(pickled({"a": 1.5}, pickle.dumps))
        {'a': 1.5}
    """
    try:
        return _pickled(value)
    except Exception:
        return bytes(by_value(value))


class _Pickler(pickle.Pickler):
    """Refuses what only the running program has: another process has another ``__main__``."""

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the running program")
        return NotImplemented


def _pickled(value: Any) -> bytes:
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(value)
    return data.getvalue()


def _spec_of(agent: Any) -> str | None:
    """Return the spec of an agent that a module has under a name; None where none has it."""
    if isinstance(agent, str):
        return None
    for name, module in list(sys.modules.items()):
        if name == "__main__" or module is None or getattr(module, "__file__", None) is None:
            continue
        for attribute, value in list(vars(module).items()):
            if value is agent:
                return f"{name}:{attribute}"
    return None


def _not_sendable(job: Job, problem: Exception, otherwise: str) -> AgentError:
    """Return the error that names the part of a job that cannot be sent."""
    part = "the agent"
    for each in fields(job):
        try:
            _pickled(getattr(job, each.name))
        except Exception as own:
            part, problem = _NAMES.get(each.name, each.name), own
            break
    hint = f"Put it into a file, and give its spec (my_agent.py:agent), {otherwise}."
    return AgentError(f"{part} cannot be sent to another process ({str(problem).rstrip('.')})", hint=hint)
