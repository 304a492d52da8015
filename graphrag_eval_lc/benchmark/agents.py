"""Loads what users give as an agent, and makes a Runnable of it that is asked questions."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    patch_config,
    run_in_executor,
    var_child_runnable_config,
)

from graphrag_eval_lc.benchmark.graph_factories import (
    config_parameter,
    is_context_manager,
    opened,
    server_arguments,
    takes_server_arguments,
)
from graphrag_eval_lc.benchmark.specs import named_by
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, OptionError, where_it_failed
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.registry.signatures import signature_of
from graphrag_eval_lc.retrying import masked_error_text


class FunctionRunnable(Runnable[str, Any]):
    """A function ``question -> answer or state``, which may take the config too.

    LangChain's ``RunnableLambda`` would look at the function's signature several times a call.

    Args:
        function: An async function runs in the event loop, another one in a thread. It may return an awaitable, or an
            iterator over the parts of a text. A parameter that ``config_parameter`` finds gets the ``RunnableConfig``,
            with the callbacks and the metadata of the attempt.
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
        # What is invoked inside of the function takes its callbacks from here.
        token = var_child_runnable_config.set(patch_config(config, callbacks=run.get_child()))
        try:
            given: dict[str, Any] = {}
            if self._config_name is not None:
                callbacks = run.get_child() if self._is_async else run.get_sync().get_child()
                given[self._config_name] = patch_config(config, callbacks=callbacks)
            output = await self._call(input, given)
        except BaseException as problem:
            await run.on_chain_error(problem)
            raise
        finally:
            var_child_runnable_config.reset(token)
        await run.on_chain_end(output)
        return output

    async def _call(self, question: str, given: Mapping[str, Any]) -> Any:
        if self._is_async:
            output = self._function(question, **given)
        else:
            output = await run_in_executor(None, self._function, question, **given)
        if inspect.isawaitable(output):
            output = await output
        if isinstance(output, Runnable) or is_context_manager(output):
            raise AgentError(
                f"{self.name} was asked a question and gave {type(output).__name__}: it makes an agent and is none",
                hint="Let it take no argument, or annotate its argument as LangGraph's: config: RunnableConfig.",
            )
        if isinstance(output, AsyncIterator):
            return _joined([part async for part in output])
        if isinstance(output, Iterator):
            return _joined(await run_in_executor(None, list, output))
        return output


def _joined(parts: list[Any]) -> Any:
    """Join the parts of a streamed text; other parts stay a list."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


Takes = Literal["messages", "text"]

_CLOSING_SEC = 10.0
_SPECS = (
    "Write package.module:attribute, path/to/file.py:attribute, langgraph.json:graph or http://127.0.0.1:2024/agent."
)
_KINDS = "Give a compiled graph, another Runnable, a function that takes a question, or one that gives either of these."


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is ready to be asked.

    Attributes:
        runnable: What is asked.
        takes: Its input unless ``input_fn`` makes it: a messages state with the question as user message, or the
            question's text.
        name: What it is called in messages.
        is_function: Whether it is a bare function, whose output is the answer.
        spec: How run.json names it, where a spec names it in more than one way; None: as it was given.
        source: What its spec stands for now, where that may change while the spec stays the same.
        warnings: What the user should know of it.
        resources: What is open as long as it is asked.
        acancel: Ends what still runs for a thread id elsewhere, as at a server.
        given: What it was loaded from.
    """

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

    def input_for(self, question_text: str) -> Any:
        """Return the input that it takes by default."""
        if self.takes == "text":
            return question_text
        return {"messages": [{"role": "user", "content": question_text}]}

    async def aclose(self) -> str | None:
        """Close what is open, in the task that loaded the agent; return what went wrong."""
        try:
            async with asyncio.timeout(_CLOSING_SEC):
                await self.resources.aclose()
        except TimeoutError:
            return f"{self.name} was not closed within {_CLOSING_SEC:g} s"
        except (Exception, SystemExit) as problem:
            return f"closing {self.name} failed with {masked_error_text(problem)}"
        return None


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
            async with asyncio.timeout(_CLOSING_SEC):
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
            takes = "messages" if self.has_input_fn else _input_of(candidate, name)
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


def _input_of(runnable: Runnable[Any, Any], name: str) -> Takes:
    """Return what a Runnable takes: a messages state, unless its input schema is a text."""
    try:
        given = runnable.get_input_jsonschema()
    except Exception:  # pydantic takes no typing.TypedDict before Python 3.12, or types cannot be looked up from here
        given = {}
    return taken_by(given, name, runnable)


def taken_by(given: Mapping[str, Any], name: str, runnable: Runnable[Any, Any] | None = None) -> Takes:
    """Return what an agent takes, by the JSON Schema of its input."""
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
    """Return the keys of a graph's input state as Python knows them; none where they cannot be looked up."""
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
