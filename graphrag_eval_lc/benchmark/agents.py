"""Loads the agent that a user passes (an object, factory, spec or address), and wraps it as a Runnable."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable

from graphrag_eval_lc.benchmark.options import named_by
from graphrag_eval_lc.benchmark.ready_agents import (
    CLOSING_SEC,
    Agent,
    FunctionRunnable,
    config_parameter,
    input_of,
    is_context_manager,
    opened,
    server_arguments,
    takes_server_arguments,
)
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, OptionError, where_it_failed
from graphrag_eval_lc.registry.plugins import module_from, signature_of
from graphrag_eval_lc.retrying import masked_error_text

_KINDS = (
    "Give a compiled graph, another Runnable, a function that takes a question, or one that returns either of these."
)


async def aload_agent(
    candidate: Any,
    *,
    has_input_fn: bool = False,
    agent_config: Mapping[str, Any] | None = None,
    key_variable: str | None = None,
) -> Agent:
    """Return the agent that ``candidate`` is, returns or names; the caller awaits its ``aclose`` at the end.

    Example:
        >>> import asyncio
        >>> asyncio.run(aload_agent(lambda question: "42")).takes
        'text'
    """
    resources = AsyncExitStack()
    try:
        if isinstance(candidate, str) and "://" in candidate:
            from graphrag_eval_lc.benchmark.deployed_agents import aconnect  # few agents need the SDK of the server

            agent = await aconnect(candidate, key_variable, resources, has_input_fn=has_input_fn)
        elif key_variable is not None:
            what = "the key belongs to a server, and the agent is not named by its address"
            raise OptionError(what, key="agent_key_env", hint="Give an address such as http://127.0.0.1:2024/agent.")
        else:
            agent = await _agent_here(candidate, resources, agent_config or {}, has_input_fn)
    except BaseException:
        with contextlib.suppress(Exception):  # the first failure is reported
            async with asyncio.timeout(CLOSING_SEC):
                await resources.aclose()
        raise
    return replace(agent, given=candidate, resources=resources)


async def _agent_here(
    candidate: Any, resources: AsyncExitStack, config: Mapping[str, Any], has_input_fn: bool
) -> Agent:
    """Return an agent that runs in this process."""
    name = candidate if isinstance(candidate, str) else str(getattr(candidate, "__name__", type(candidate).__name__))
    described: dict[str, Any] = {}
    if isinstance(candidate, str) and (":" not in candidate or candidate.rpartition(":")[0].lower().endswith(".json")):
        from graphrag_eval_lc.benchmark.langgraph_config import aopen_graph  # a function as an agent needs no LangGraph

        candidate, name, described = await aopen_graph(candidate, config, resources)
    elif isinstance(candidate, str):
        candidate = named_by(name)
        described = {"module": module_from(name.rpartition(":")[0])}
    if is_context_manager(candidate):
        candidate = await _called(lambda: candidate, name, config, resources)
    elif _is_factory(candidate, name):
        candidate = await _called(candidate, name, config, resources)
        name = f"{name}()"
        if _is_factory(candidate, name):
            raise AgentError(f"{name} gave {type(candidate).__name__}, not an agent", hint=_KINDS)
    if not isinstance(candidate, Runnable):
        return Agent(FunctionRunnable(candidate), "text", name, is_function=True, **described)
    return Agent(candidate, "messages" if has_input_fn else input_of(candidate, name), name, **described)


async def _called(factory: Callable[..., Any], name: str, config: Mapping[str, Any], resources: AsyncExitStack) -> Any:
    given = server_arguments(factory, name, config) if takes_server_arguments(factory) else {}
    try:
        return await opened(factory(**given), resources)
    except GraphRAGEvalError:
        raise
    except (Exception, SystemExit) as problem:
        what = f"{name}() failed with {masked_error_text(problem)}"
        raise AgentError(what, hint=where_it_failed(problem)) from problem


def _is_factory(candidate: Any, name: str) -> bool:
    """Return whether ``candidate`` is a factory that returns the agent; reject anything that is not an agent."""
    if isinstance(candidate, Runnable):
        return False
    if hasattr(candidate, "compile") and not inspect.isclass(candidate):
        raise AgentError(f"{name} is a graph that is not compiled", hint="Give graph.compile().")
    if not callable(candidate):
        raise AgentError(f"{name} is {type(candidate).__name__}, not an agent", hint=_KINDS)
    if takes_server_arguments(candidate):
        return True
    try:
        signature = signature_of(candidate)
    except (TypeError, ValueError):  # some builtins have none
        return False
    with contextlib.suppress(TypeError):
        signature.bind()
        return True
    name_of_config = config_parameter(candidate)
    try:
        signature.bind("question", **({} if name_of_config is None else {name_of_config: {}}))
    except TypeError:
        raise AgentError(
            f"{name}{signature} cannot be called with a question or without arguments",
            hint="Give a function of a question, or of a question and a config; functools.partial fills in others.",
        ) from None
    return False
