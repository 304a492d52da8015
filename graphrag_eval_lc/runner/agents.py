"""Loading an agent from a spec such as ``package.module:attribute``, and checking that it can be asked."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from langchain_core.runnables import Runnable

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError

_SPEC_MEND = "Write package.module:attribute or path/to/file.py:attribute."

Agent = Runnable[Any, Any]


def load_agent(spec: str) -> Agent:
    """Load an agent from its spec.

    Args:
        spec: ``package.module:attribute`` (also looked up in the current folder) or ``path/to/file.py:attribute``.
            The attribute is a compiled graph, or a function without arguments that gives one.

    Raises:
        AgentError: The module or the attribute does not exist, fails to load, or is no agent.

    Example:
        >>> load_agent("graphrag_eval_lc.demo.agent:create_demo_agent")  # doctest: +SKIP
    """
    place, separator, attribute = spec.rpartition(":")
    if not separator or not place or not attribute:
        raise AgentError(f"{spec!r} is no spec of an agent", mend=_SPEC_MEND)
    module = _module_of_file(place) if place.endswith(".py") else _module_of_name(place)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AgentError(
                f"{place} has no attribute {attribute}",
                mend=f"It has: {', '.join(_public_names(module)) or 'nothing public'}.",
            )
        found = getattr(found, part)
    return as_agent(found, spec)


def as_agent(candidate: Any, spec: str | None = None) -> Agent:
    """Give the agent that ``candidate`` is or makes.

    Args:
        candidate: A compiled graph, another Runnable over a messages state, or a function that gives one.
        spec: Where it comes from, for messages.

    Raises:
        AgentError: It is neither, or the function fails.
    """
    name = spec or str(getattr(candidate, "__name__", type(candidate).__name__))
    if isinstance(candidate, Runnable):
        return _with_messages(candidate, name)
    if hasattr(candidate, "compile") and not inspect.isclass(candidate):
        raise AgentError(f"{name} is a graph that is not compiled", mend="Give graph.compile().")
    if not callable(candidate):
        raise AgentError(
            f"{name} is {type(candidate).__name__}, no agent",
            mend="Give a compiled graph or a function that gives one.",
        )
    made = _made_by(candidate, name)
    if isinstance(made, Runnable):
        return _with_messages(made, name)
    raise AgentError(
        f"{name}() gave {type(made).__name__}, no agent", mend="The function must return a compiled graph."
    )


def _with_messages(agent: Agent, name: str) -> Agent:
    """Refuse a graph whose state has no messages: it would run without ever seeing the question."""
    state = getattr(getattr(agent, "builder", None), "input_schema", None)
    try:
        keys = list(get_type_hints(state))
    except Exception:  # no state graph, or a state whose types cannot be looked up from here
        return agent
    if keys and "messages" not in keys:
        raise AgentError(
            f"{name} takes {', '.join(keys)}, but no messages",
            mend="Give a graph over a state with messages, such as MessagesState; the question is its one message.",
        )
    return agent


def _made_by(factory: Callable[[], Any], name: str) -> Any:
    try:
        signature = inspect.signature(factory)
        signature.bind()
    except (TypeError, ValueError) as problem:
        raise AgentError(
            f"{name} cannot be called without arguments ({problem})",
            mend="Give a compiled graph, or a function without required arguments that returns one.",
        ) from problem
    try:
        return factory()
    except GraphRAGEvalError:
        raise
    except Exception as problem:
        raise AgentError(
            f"{name}() failed with {type(problem).__name__}: {problem}", mend="Run it with --debug for the traceback."
        ) from problem


def _module_of_name(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(f"{problem.name}.")):
            raise AgentError(f"there is no module {name}", mend=_SPEC_MEND) from problem
        raise _failed_import(name, problem) from problem
    except Exception as problem:
        raise _failed_import(name, problem) from problem


def _module_of_file(place: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise AgentError(f"there is no file {place}", mend=_SPEC_MEND)
    # A name of its own for each file, since two agents to compare are often called alike.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise AgentError(f"{place} cannot be loaded as Python", mend=_SPEC_MEND)
    module = importlib.util.module_from_spec(specification)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as problem:
        raise _failed_import(place, problem) from problem
    return module


def _failed_import(place: str, problem: Exception) -> GraphRAGEvalError:
    if isinstance(problem, GraphRAGEvalError):
        return problem
    return AgentError(
        f"loading {place} failed with {type(problem).__name__}: {problem}",
        mend="Run it with --debug for the traceback.",
    )


def _public_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and (isinstance(value, Runnable) or inspect.isfunction(value))
    ]
