"""What can be asked: graphs, other Runnables and functions, each made into one kind of agent."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_type_hints

from langchain_core.runnables import Runnable

from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError
from graphrag_eval_lc.runner.agent_specs import named_by
from graphrag_eval_lc.runner.function_runnable import FunctionRunnable

Takes = Literal["messages", "text"]

_KINDS = "Give a compiled graph, another Runnable, a function that takes a question, or one that gives either of these."


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is ready to be asked.

    Attributes:
        runnable: What is asked.
        takes: Its input where no function makes it: the question as the one user message of a messages state, or
            its bare text.
        name: What it is called in messages.
        is_function: Whether it is a bare function, whose output is the answer.
    """

    runnable: Runnable[Any, Any]
    takes: Takes
    name: str
    is_function: bool = False

    def input_for(self, question_text: str) -> Any:
        """Give the input that it takes by default."""
        if self.takes == "text":
            return question_text
        return {"messages": [{"role": "user", "content": question_text}]}


async def aload_agent(candidate: Any, *, has_input_fn: bool = False) -> Agent:
    """Give the agent that ``candidate`` is, makes, or names.

    Args:
        candidate: One of: a compiled graph or another Runnable; a function, async or not, that takes a question's
            text and gives the answer or a state; a function that can be called without arguments and gives one of
            these; the spec of any of them as text (``package.module:attribute`` or ``path/to/file.py:attribute``).
        has_input_fn: Whether a function makes the agent's input, so that it may be of any shape.

    Raises:
        AgentError: It is none of these, the function fails, or the graph's state has no messages.

    Example:
        >>> import asyncio
        >>> asyncio.run(aload_agent(lambda question: "42")).takes
        'text'
    """
    spec = candidate if isinstance(candidate, str) else None
    if spec is not None:
        candidate = named_by(spec)
    name = spec or str(getattr(candidate, "__name__", type(candidate).__name__))
    if _is_factory(candidate, name):
        candidate = await _made_by(candidate, name)
        name = f"{name}()"
        if _is_factory(candidate, name):
            raise AgentError(f"{name} gave {type(candidate).__name__}, no agent", mend=_KINDS)
    if isinstance(candidate, Runnable):
        return Agent(candidate, "messages" if has_input_fn else _input_of(candidate, name), name)
    return Agent(FunctionRunnable(candidate), "text", name, is_function=True)


def _is_factory(candidate: Any, name: str) -> bool:
    """Tell whether ``candidate`` is called without arguments to give the agent; refuse what is no agent at all."""
    if isinstance(candidate, Runnable):
        return False
    if hasattr(candidate, "compile") and not inspect.isclass(candidate):
        raise AgentError(f"{name} is a graph that is not compiled", mend="Give graph.compile().")
    if not callable(candidate):
        raise AgentError(f"{name} is {type(candidate).__name__}, no agent", mend=_KINDS)
    try:
        signature = inspect.signature(candidate)
    except (TypeError, ValueError):  # some builtins have none
        return False
    if _binds(signature):
        return True
    if not _binds(signature, "question"):
        raise AgentError(
            f"{name}{signature} can be called neither with a question nor without arguments",
            mend="Give a function of one argument, or functools.partial with the others filled in.",
        )
    return False


def _binds(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


async def _made_by(factory: Callable[[], Any], name: str) -> Any:
    try:
        made = factory()
        return await made if inspect.isawaitable(made) else made
    except GraphRAGEvalError:
        raise
    except Exception as problem:
        raise AgentError(
            f"{name}() failed with {type(problem).__name__}: {problem}", mend="Run it with --debug for the traceback."
        ) from problem


def _input_of(runnable: Runnable[Any, Any], name: str) -> Takes:
    """Give what a Runnable takes: a messages state, unless its input schema says a text."""
    try:
        given = runnable.get_input_jsonschema()
    except Exception:  # pydantic takes no typing.TypedDict before Python 3.12, or types cannot be looked up from here
        given = {}
    schema = _resolved(given, given)
    alternatives = [_resolved(each, given) for each in schema.get("anyOf", ())]
    if schema.get("type") == "string" or any(each.get("type") == "string" for each in alternatives):
        return "text"
    keys = list(schema.get("properties") or _state_keys(runnable))
    if keys and "messages" not in keys:
        raise AgentError(
            f"{name} takes {', '.join(keys)}, but no messages",
            mend="Pass input_fn, a function that makes its input from a question, or give a graph over a state with "
            "messages, such as MessagesState.",
        )
    return "messages"


def _state_keys(runnable: Runnable[Any, Any]) -> list[str]:
    """Give the keys of a graph's input state as Python knows them; none where they cannot be looked up."""
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
