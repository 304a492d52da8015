"""Loads what users give as an agent, and makes a Runnable of it that is asked questions."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import Runnable

from graphrag_eval_lc.benchmark.graph_factories import (
    config_parameter,
    is_context_manager,
    opened,
    server_arguments,
    takes_server_arguments,
)
from graphrag_eval_lc.benchmark.ready_agents import CLOSING_SEC, Agent, FunctionRunnable, input_of
from graphrag_eval_lc.benchmark.specs import named_by
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, OptionError, where_it_failed
from graphrag_eval_lc.registry.signatures import signature_of
from graphrag_eval_lc.retrying import masked_error_text

_SPECS = (
    "Write package.module:attribute, path/to/file.py:attribute, langgraph.json:graph or http://127.0.0.1:2024/agent."
)
_KINDS = "Give a compiled graph, another Runnable, a function that takes a question, or one that gives either of these."


async def aload_agent(
    candidate: Any,
    *,
    has_input_fn: bool = False,
    agent_config: Mapping[str, Any] | None = None,
    key_variable: str | None = None,
) -> Agent:
    """Return the agent that ``candidate`` is, makes, or names; its ``aclose`` is to be awaited in the end.

    Args:
        candidate: One of: a compiled graph or another Runnable; a function, async or not, that takes a question's
            text and gives the answer or a state; a function that can be called without arguments, or with the
            arguments of LangGraph's graph factories, and gives one of these or a context manager around it; the spec
            of any of them as text (``package.module:attribute`` or ``path/to/file.py:attribute``); a graph of a
            ``langgraph.json`` (``langgraph.json:graph``, or ``graph`` where that is in the current folder); the
            address of an assistant on a LangGraph server.
        has_input_fn: Whether a function makes the agent's input, so that it may be of any shape.
        agent_config: LangChain's config, for factories that take it.
        key_variable: The environment variable with the key of such a server; None: LANGSMITH_API_KEY.

    Raises:
        AgentError: It is none of these, the function fails, the graph's state has no messages, or the server is not
            there, refuses the key or has no such assistant.
        OptionError: The key's variable is not set, or the agent is not behind an address.

    Example:
        >>> import asyncio
        >>> asyncio.run(aload_agent(lambda question: "42")).takes
        'text'
    """
    resources = AsyncExitStack()
    loading = _Loading(resources, has_input_fn, agent_config or {}, key_variable)
    try:
        return replace(await loading.agent_of(candidate), given=candidate)
    except BaseException:
        with contextlib.suppress(Exception):  # what failed first is told
            async with asyncio.timeout(CLOSING_SEC):
                await resources.aclose()
        raise


@dataclass(frozen=True, slots=True)
class _Loading:
    """Loads agents; ``aload_agent`` says what the attributes are."""

    resources: AsyncExitStack
    has_input_fn: bool
    agent_config: Mapping[str, Any]
    key_variable: str | None

    async def agent_of(self, candidate: Any) -> Agent:
        spec = candidate if isinstance(candidate, str) else None
        if spec is not None and "://" in spec:
            from graphrag_eval_lc.benchmark.deployed_agents import aconnect  # as few need the SDK of the server

            return await aconnect(spec, self.key_variable, self.resources, has_input_fn=self.has_input_fn)
        if self.key_variable is not None:
            what = "there is no server to give the key to: the agent is not named by its address"
            raise OptionError(what, key="agent_key_env", hint="Give an address such as http://127.0.0.1:2024/agent.")
        if spec is not None and (":" not in spec or spec.rpartition(":")[0].lower().endswith(".json")):
            return await self._of_langgraph_config(spec)
        if spec is not None:
            candidate = named_by(spec)
        name = spec or str(getattr(candidate, "__name__", type(candidate).__name__))
        if is_context_manager(candidate):
            candidate = await self._called(lambda: candidate, name)
        elif _is_factory(candidate, name):
            candidate = await self._called(candidate, name)
            name = f"{name}()"
            if _is_factory(candidate, name):
                raise AgentError(f"{name} gave {type(candidate).__name__}, no agent", hint=_KINDS)
        return self._asked(candidate, name)

    def _asked(self, candidate: Any, name: str, **described: Any) -> Agent:
        if isinstance(candidate, Runnable):
            takes = "messages" if self.has_input_fn else input_of(candidate, name)
            return Agent(candidate, takes, name, resources=self.resources, **described)
        return Agent(FunctionRunnable(candidate), "text", name, is_function=True, resources=self.resources)

    async def _called(self, factory: Callable[..., Any], name: str) -> Any:
        given = server_arguments(factory, name, self.agent_config) if takes_server_arguments(factory) else {}
        try:
            return await opened(factory(**given), self.resources)
        except GraphRAGEvalError:
            raise
        except (Exception, SystemExit) as problem:
            what = f"{name}() failed with {masked_error_text(problem)}"
            raise AgentError(what, hint=where_it_failed(problem)) from problem

    async def _of_langgraph_config(self, spec: str) -> Agent:
        # Imported here since few agents need it: it takes LangGraph, which a function as an agent does without.
        from graphrag_eval_lc.benchmark.langgraph_config import aopen_graph, is_graph_spec, read_graph_spec

        if not is_graph_spec(spec):
            raise AgentError(f"{spec!r} is no spec of an agent, and there is no langgraph.json here", hint=_SPECS)
        found = read_graph_spec(spec)
        graph = await aopen_graph(found, self.agent_config, self.resources)
        return self._asked(graph, found.spec, spec=found.spec, source=found.source, warnings=found.warnings)


def _is_factory(candidate: Any, name: str) -> bool:
    """Return whether ``candidate`` makes the agent when it is called; refuse what is no agent at all."""
    if isinstance(candidate, Runnable):
        return False
    if hasattr(candidate, "compile") and not inspect.isclass(candidate):
        raise AgentError(f"{name} is a graph that is not compiled", hint="Give graph.compile().")
    if not callable(candidate):
        raise AgentError(f"{name} is {type(candidate).__name__}, no agent", hint=_KINDS)
    if takes_server_arguments(candidate):
        return True
    try:
        signature = signature_of(candidate)
    except (TypeError, ValueError):  # some builtins have none
        return False
    if _binds(signature):
        return True
    name_of_config = config_parameter(candidate)
    if not _binds(signature, "question", **({} if name_of_config is None else {name_of_config: {}})):
        raise AgentError(
            f"{name}{signature} can be called neither with a question nor without arguments",
            hint="Give a function of a question, or of a question and a config; functools.partial fills in others.",
        )
    return False


def _binds(signature: inspect.Signature, *arguments: object, **keywords: object) -> bool:
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return False
    return True
