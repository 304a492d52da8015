"""A loaded agent that can be run and closed, and how functions are called, as agents and as graph factories."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncContextDecorator,
    AsyncExitStack,
    ContextDecorator,
)
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn, cast, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    patch_config,
    run_in_executor,
    var_child_runnable_config,
)

from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.registry.plugins import signature_of
from graphrag_eval_lc.retrying import masked_error_text

Takes = Literal["messages", "text"]
CLOSING_SEC = 10.0


class FunctionRunnable(Runnable[str, Any]):
    """A Runnable for a function ``question -> answer or state``, which may also accept the config.

    LangChain's ``RunnableLambda`` would inspect the function's signature several times in each call.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._config_name = config_parameter(function)
        call = getattr(function, "__call__", None)  # noqa: B004  # a callable object may be async too
        self._is_async = any(
            kind(each)
            for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
            for each in (function, call)
        )

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the function and wait for its answer."""
        return run_sync(lambda: self.ainvoke(input, config))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the function."""
        config = ensure_config(config)
        run = await get_async_callback_manager_for_config(config).on_chain_start(None, input, name=self.name)
        # Runnables that the function invokes inherit their callbacks from this context.
        child = {key: value for key, value in config.items() if key not in ("run_name", "run_id")}  # of this run alone
        child["callbacks"] = run.get_child()
        token = var_child_runnable_config.set(cast("RunnableConfig", child))
        try:
            given: dict[str, Any] = {}
            if self._config_name is not None:
                callbacks = run.get_child() if self._is_async else run.get_sync().get_child()
                given[self._config_name] = patch_config(config, callbacks=callbacks)
            if self._is_async:
                output = self._function(input, **given)
            else:
                output = await run_in_executor(None, self._function, input, **given)
            if inspect.isawaitable(output):
                output = await output
            if not isinstance(output, str):  # which most answers are
                output = await self._whole(output)
        except BaseException as problem:
            await run.on_chain_error(problem)
            raise
        finally:
            var_child_runnable_config.reset(token)
        await run.on_chain_end(output)
        return output

    async def _whole(self, output: Any) -> Any:
        """Return what a function returned, or all that a generator yields; reject an agent, which is not an answer."""
        if isinstance(output, Runnable) or is_context_manager(output):
            raise AgentError(
                f"{self.name} was asked a question and gave {type(output).__name__}: it makes an agent and is none",
                hint="Let it take no argument, or annotate its argument as LangGraph's: config: RunnableConfig.",
            )
        if isinstance(output, AsyncIterator):
            return _joined([part async for part in output])
        return _joined(await run_in_executor(None, list, output)) if isinstance(output, Iterator) else output


def _joined(parts: list[Any]) -> Any:
    """Join the parts that a generator yielded, if all are texts; otherwise return them as a list."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


@dataclass(frozen=True, slots=True)
class Agent:
    """A loaded agent, with what is known about its input, source and resources."""

    runnable: Runnable[Any, Any]
    takes: Takes
    name: str
    is_function: bool = False
    spec: str | None = None
    source: str | None = None
    warnings: tuple[str, ...] = ()
    resources: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False, compare=False)
    acancel: Callable[[str], Awaitable[None]] | None = field(default=None, repr=False, compare=False)
    given: Any = field(default=None, repr=False, compare=False)
    module: ModuleType | None = field(default=None, repr=False, compare=False)
    config_file: Path | None = None

    def input_for(self, question_text: str) -> Any:
        """Return the agent's default input for a question: the text, or a state with one message."""
        if self.takes == "text":
            return question_text
        return {"messages": [{"role": "user", "content": question_text}]}

    async def aclose(self) -> str | None:
        """Close the agent's resources; await it in the task that loaded the agent. Returns a warning, or None."""
        try:
            async with asyncio.timeout(CLOSING_SEC):
                await self.resources.aclose()
        except TimeoutError:
            return f"{self.name} was not closed within {CLOSING_SEC:g} s"
        except (Exception, SystemExit) as problem:
            return f"closing {self.name} failed with {masked_error_text(problem)}"
        return None


def input_of(runnable: Runnable[Any, Any], name: str) -> Takes:
    """Return the input that a Runnable expects: a state with messages, unless its input schema is a text."""
    try:
        given = runnable.get_input_jsonschema()
    except Exception:  # unresolvable types, or a typing.TypedDict before Python 3.12
        given = {}
    return taken_by(given, name, runnable)


def taken_by(given: Mapping[str, Any], name: str, runnable: Runnable[Any, Any] | None = None) -> Takes:
    """Return the input that an agent expects, from the JSON Schema of its input."""
    schema = _resolved(given, given)
    alternatives = [_resolved(each, given) for each in schema.get("anyOf", ())]
    if schema.get("type") == "string" or any(each.get("type") == "string" for each in alternatives):
        return "text"
    keys = list(schema.get("properties") or _state_keys(runnable))
    if keys and "messages" not in keys:
        raise AgentError(
            f"{name} takes {', '.join(keys)}, but no messages",
            hint="Pass input_fn, a function that makes its input from a question, or give a graph over a state with "
            "messages, such as MessagesState.",
        )
    return "messages"


def _state_keys(runnable: Runnable[Any, Any] | None) -> list[str]:
    """Return the keys of a graph's input state from its type hints; none if they cannot be resolved."""
    state = getattr(getattr(runnable, "builder", None), "input_schema", None)
    try:
        return list(get_type_hints(state))
    except Exception:
        return []


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    definitions = root.get("$defs") or {}
    return cast("Mapping[str, Any]", definitions.get(reference.rpartition("/")[2], {}))


# --- graph factories, called in the way of LangGraph's server ---------------------------------------------------------

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
    """Return the arguments with which LangGraph's server calls a graph factory."""
    annotations = _annotations(function)
    runtimes = [key for key, annotation in annotations.items() if _names(annotation, _RUNTIME)]
    if len(annotations) > _MOST_ARGUMENTS or (len(annotations) == _MOST_ARGUMENTS and len(runtimes) != 1):
        raise AgentError(
            f"{name} takes {', '.join(annotations)}",
            hint="LangGraph calls a graph factory with a config, with an argument annotated as ServerRuntime, with "
            "these two, or with nothing.",
        )
    given = ensure_config(cast("RunnableConfig", {**config}))
    given["configurable"] = {**given.get("configurable", {}), "__is_for_execution__": True}  # as the server sets it
    return {key: _Runtime(store) if key in runtimes else given for key in annotations}


def config_parameter(function: Callable[..., Any]) -> str | None:
    """Return the parameter after a function's first one that is for a RunnableConfig, or None.

    Such a parameter is named ``config``, as for LangChain's ``RunnableLambda``, or annotated with ``RunnableConfig``. A
    parameter with a default other than None does not count. ``config: MyConfig | None = None`` does not count either.

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
    """Return the agent that a factory made: await it if it is awaitable, and enter it if it is a context manager."""
    if inspect.isawaitable(made):
        made = await made
    if not is_context_manager(made):
        return made
    return await stack.enter_async_context(made) if hasattr(made, "__aenter__") else stack.enter_context(made)


def is_context_manager(made: Any) -> bool:
    """Return whether to enter an object as a (sync or async) context manager; not a Runnable, callable or class."""
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
    """Return whether an annotation names one of some types, also with parameters, as optional, or as a text."""
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
        """The runtime itself: the graph is to be run, not only inspected."""
        return self

    def ensure_user(self) -> NoReturn:
        """Refuse: a benchmark has no user."""
        raise PermissionError("a benchmark has no authenticated user")
