"""Calls graph factories as LangGraph's server does, and enters the context managers that they return."""

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncContextDecorator,
    AsyncExitStack,
    ContextDecorator,
)
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast, get_type_hints

from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config

from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.registry.modules import signature_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_CONFIG = frozenset({"RunnableConfig"})
_ANY = frozenset({"Any", "dict", "Dict", "Mapping"})
_RUNTIME = frozenset({"ServerRuntime", "_ExecutionRuntime", "_ReadRuntime"})
_MOST_ARGUMENTS = 2


def takes_server_arguments(function: Callable[..., Any]) -> bool:
    """Return whether a function is annotated as a graph factory: with ``RunnableConfig``, ``ServerRuntime`` or both.

    Example:
        >>> def make_graph(config: "RunnableConfig"): ...
        >>> takes_server_arguments(make_graph)
        True
    """
    known = [_names(each, _CONFIG | _RUNTIME) for each in _annotations(function).values()]
    return 0 < len(known) <= _MOST_ARGUMENTS and all(known)


def server_arguments(
    function: Callable[..., Any], name: str, config: Mapping[str, Any], store: object = None
) -> dict[str, Any]:
    """Return the arguments with which LangGraph's server calls a graph factory.

    Args:
        function: The factory. It accepts nothing, the config, a ``ServerRuntime``, or both. A single argument is the
            config unless it is annotated as ``ServerRuntime``.
        name: What it is called in messages.
        config: LangChain's config, as the benchmark's caller passed it.
        store: The store of the runtime.

    Raises:
        AgentError: It needs something else.
    """
    annotations = _annotations(function)
    runtimes = [key for key, annotation in annotations.items() if _names(annotation, _RUNTIME)]
    if len(annotations) > _MOST_ARGUMENTS or (len(annotations) == _MOST_ARGUMENTS and len(runtimes) != 1):
        raise AgentError(
            f"{name} takes {', '.join(annotations)}",
            hint="LangGraph calls a graph factory with a config, with an argument annotated as ServerRuntime, with "
            "these two, or with nothing.",
        )
    given = ensure_config(cast("RunnableConfig", {**config}))
    given["configurable"] = {**given.get("configurable", {}), "__is_for_execution__": True}  # as the server says it
    return {key: _Runtime(store) if key in runtimes else given for key in annotations}


def config_parameter(function: Callable[..., Any]) -> str | None:
    """Return the parameter after a function's first one that is for a RunnableConfig; None if there is none.

    It is called ``config``, as for LangChain's ``RunnableLambda``, or annotated with ``RunnableConfig``. One with a
    default other than None is something else, and so is ``config: MyConfig | None = None``.

    Example:
        >>> config_parameter(lambda question, config: "")
        'config'
        >>> config_parameter(lambda question, config="fast": "") is None
        True
    """
    try:
        parameters = list(signature_of(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    parameters = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    annotations = _annotations(function) if parameters else {}
    for each in parameters:
        annotation = annotations.get(each.name, each.empty)
        is_config = _names(annotation, _CONFIG)
        if each.name == "config":
            is_config |= each.default is each.empty or annotation is each.empty or _names(annotation, _ANY)
        if is_config and each.default in (each.empty, None):
            return each.name
    return None


async def opened(made: Any, stack: AsyncExitStack) -> Any:
    """Return what a factory made: awaited if it is awaitable, and entered if it is a context manager.

    Args:
        made: What the factory returned.
        stack: Closes what is entered.
    """
    if inspect.isawaitable(made):
        made = await made
    if not is_context_manager(made):
        return made
    return await stack.enter_async_context(made) if hasattr(made, "__aenter__") else stack.enter_context(made)


def is_context_manager(made: Any) -> bool:
    """Return whether something is to be entered, sync or async; a Runnable, a callable or a class is not."""
    if not isinstance(made, AbstractContextManager | AbstractAsyncContextManager) or isinstance(made, Runnable):
        return False
    return isinstance(made, ContextDecorator | AsyncContextDecorator) or not callable(made)  # contextlib's are callable


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function's arguments by name, as types if they can be looked up."""
    try:
        parameters = signature_of(function).parameters
    except (TypeError, ValueError):  # some builtins have none
        return {}
    try:
        hints = get_type_hints(function)
    except Exception:  # names that only a type checker imports
        hints = {}
    given = function.keywords if isinstance(function, partial) else {}
    return {name: hints.get(name, parameter.annotation) for name, parameter in parameters.items() if name not in given}


def _names(annotation: Any, names: frozenset[str]) -> bool:
    """Return whether an annotation names one of these types; it may have parameters, be optional or be a text."""
    text = annotation if isinstance(annotation, str) else f"{annotation!r} {getattr(annotation, '__name__', '')}"
    return not names.isdisjoint(re.findall(r"\w+", text))


@dataclass(frozen=True, slots=True)
class _Runtime:
    """What LangGraph's server passes to a graph factory as its ``ServerRuntime`` to run the graph, without a user."""

    store: object
    access_context: str = "threads.create_run"
    user: None = None
    context: None = None

    @property
    def execution_runtime(self) -> "_Runtime":
        """The runtime itself, as the graph is to run."""
        return self

    def ensure_user(self) -> NoReturn:
        """Refuse: a benchmark has no user.

        Raises:
            PermissionError: Always.
        """
        raise PermissionError("a benchmark has no authenticated user")
