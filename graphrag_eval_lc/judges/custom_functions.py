"""Evaluations in Python, passed or registered: functions of a question and its response, or as agentevals has them."""

import asyncio
import functools
import inspect
import json
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from graphrag_eval_lc.config import is_reserved_key
from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.scores import raise_if_cancelled
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import registered_evaluators
from graphrag_eval_lc.registry.metric_spec import LARGEST, error_key, reason_key
from graphrag_eval_lc.registry.metrics import RegisteredMetric, registered_metrics

Evaluator = Callable[..., Any]

_AGENTEVALS = ("inputs", "outputs", "reference_outputs")


class CustomFunction:
    """An evaluation that a user wrote in Python.

    Args:
        function: A function or async function. Either ``(question, response) -> float | str | bool | dict``, which
            gets the dataset's question and the agent's response; or with the keyword parameters ``inputs``,
            ``outputs`` and ``reference_outputs`` of agentevals (any of them), which gives ``{key, score, comment}``
            or a list of these. There ``inputs`` are the question's own keys, ``outputs`` the response and
            ``reference_outputs`` the reference; the latter two have ``messages`` too, in OpenAI's format, made from
            the steps and the answer.
        name: The key of a single value, and the beginning of ``{name}_error``; None for the function's name.

    Attributes:
        name: The name.
        function: The function.
        registered_as: What it is registered as, such as ``evaluator tone``; None where it was passed.

    Raises:
        OptionError: It cannot be called, has no name, or one that is a key of the results.

    Example:
        >>> def is_short(question, response):
        ...     return len(response["actual_answer"]) < 100
        >>> asyncio.run(CustomFunction(is_short).acall({"id": "q1"}, {"actual_answer": "Four."}))
        {'is_short': True}
    """

    registered_as: str | None = None

    def __init__(self, function: Evaluator, name: str | None = None) -> None:
        if not callable(function):
            raise OptionError(f"an evaluator cannot be {type(function).__name__}", hint="Give a function.")
        self.name = name if name is not None else _name_of(function)
        if is_reserved_key(self.name) or is_reserved_key(error_key(self.name)):
            raise OptionError(f"an evaluator cannot be called {self.name}, a key of the results", hint="Rename it.")
        self.function = function
        self._takes = _agentevals_parameters(function)

    async def acall(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate one response.

        A synchronous function runs in a thread.

        Returns:
            A single value under the function's name, the keys of a dict as they are, and for agentevals
            ``{key}`` and, with a comment, ``{key}_reason``. Where the function fails or gives what no result can
            hold, only ``{name}_error``.
        """
        try:
            values = self._values_of(await self._given(question, response))
            # What is kept is a copy that can be written: results are JSON.
            kept: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False, default=_plain))
        except JudgeError as problem:
            return {error_key(self.name): str(problem)}
        except (Exception, SystemExit, CancelledError) as problem:
            raise_if_cancelled(problem)
            return {error_key(self.name): masked_text(f"{type(problem).__name__}: {problem}")}
        return kept

    async def _given(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> Any:
        if self._takes:
            records = _agentevals_arguments(question, response)
            call = functools.partial(self.function, **{name: records[name] for name in self._takes})
        else:
            call = functools.partial(self.function, dict(question), dict(response))
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(type(self.function).__call__):
            return await call()
        given, problem = await asyncio.to_thread(_outcome, call)
        if problem is not None:
            raise problem
        return await given if isinstance(given, Awaitable) else given

    def _values_of(self, given: Any) -> dict[str, Any]:
        if isinstance(given, Mapping):
            return self._items_of(given)
        if isinstance(given, list | tuple):
            if not all(isinstance(each, Mapping) and _is_feedback(each) for each in given):
                raise JudgeError(f"{self.name} gave a list of something else than {{key, score, comment}}")
            return {key: value for each in given for key, value in self._items_of(each).items()}
        return {self.name: given}

    def _items_of(self, given: Mapping[Any, Any]) -> dict[str, Any]:
        values = dict(given)
        if _is_feedback(given):
            key = str(given["key"])
            values = {key: given["score"]}
            if given.get("comment") is not None:
                values[reason_key(key)] = given["comment"]
        for key in values:
            if not isinstance(key, str) or not key or is_reserved_key(key):
                raise JudgeError(f"{self.name} gave the key {key!r}, which is reserved for the results' own or no text")
        return values


def custom_functions(functions: Iterable[Evaluator | CustomFunction]) -> list[CustomFunction]:
    """Return functions as evaluators with a name of its own for each: a second ``f`` is ``f_2``.

    Raises:
        OptionError: One of them cannot be an evaluator.
    """
    if not isinstance(functions, Iterable):
        raise OptionError(f"evaluators cannot be {functions!r}", key="evaluators", hint="Give a list of functions.")
    named: dict[str, CustomFunction] = {}
    for function in functions:
        evaluator = function if isinstance(function, CustomFunction) else CustomFunction(function)
        name, number = evaluator.name, 1
        while name in named:
            number += 1
            name = f"{evaluator.name}_{number}"
        named[name] = evaluator if name == evaluator.name else CustomFunction(evaluator.function, name)
    return list(named.values())


def _name_of(function: Evaluator) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise OptionError("a lambda has no name to stand in the results", hint="Write the evaluator with def.")
    return str(name)


def _agentevals_parameters(function: Evaluator) -> tuple[str, ...]:
    """Return those of agentevals' parameters that a function takes; none where it is called with positions."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    if not names & {"outputs", "reference_outputs"}:
        return ()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return tuple(name for name in _AGENTEVALS if takes_any or name in names)


def _agentevals_arguments(question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    reference = {key: value for key, value in question.items() if key in ("reference_answer", "reference_steps")}
    asked = {key: value for key, value in question.items() if key not in reference}
    text = str(question.get("question_text", ""))
    groups = question.get("reference_steps") or ()
    return {
        "inputs": asked,
        "outputs": {
            **response,
            "messages": _messages(text, response.get("actual_steps") or (), response.get("actual_answer")),
        },
        "reference_outputs": {
            **reference,
            "messages": _messages(
                text, (step for group in groups for step in group), reference.get("reference_answer")
            ),
        },
    }


def _messages(question: str, steps: Iterable[Mapping[str, Any]], answer: object) -> list[dict[str, Any]]:
    """Return a conversation in OpenAI's format: the question, each step as a tool call with its output, the answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for index, step in enumerate(steps):
        identifier = str(step.get("id", index))
        function = {"name": step.get("name"), "arguments": _text(step.get("args") or {})}
        call = {"id": identifier, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        output = step.get("output", step.get("error", ""))
        messages.append({"role": "tool", "tool_call_id": identifier, "content": _text(output)})
    if answer is not None:
        messages.append({"role": "assistant", "content": _text(answer)})
    return messages


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _is_feedback(given: Mapping[Any, Any]) -> bool:
    return "key" in given and "score" in given


def _outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return what a call returns or raises; a StopIteration could not be handed over from a thread otherwise."""
    try:
        return call(), None
    except (Exception, SystemExit) as problem:
        return None, problem


def _plain(value: object) -> Any:
    """Return numpy's numbers as Python's."""
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise JudgeError(f"an evaluator gave {type(value).__name__}, which a result cannot hold")


class MetricFunction(CustomFunction):
    """A metric that a user registered: ``(question, response) -> float | None``.

    Args:
        metric: The metric.

    Attributes:
        spec: Its declaration.
    """

    def __init__(self, metric: RegisteredMetric) -> None:
        super().__init__(metric.function, metric.spec.key)
        self._takes = ()  # whatever its parameters are called
        self.spec = metric.spec
        self.registered_as = f"metric {self.name}"

    def _values_of(self, given: Any) -> dict[str, Any]:
        """Return the number under the metric's key, and nothing for None."""
        if given is None:
            return {}
        item = getattr(given, "item", None)  # numpy's numbers
        value = item() if callable(item) else given
        if not isinstance(value, int | float):
            raise JudgeError(f"the metric {self.name} gave {given!r:.80}, which is neither a number nor None")
        low, high = self.spec.range
        if not abs(value) <= LARGEST:  # NaN and infinities, too
            raise JudgeError(f"the metric {self.name} gave {value:g}; where there is nothing to measure it gives None")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {'-∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"
            raise JudgeError(f"the metric {self.name} gave {value}, and is declared with a range {bounds}")
        return {self.name: value}


def all_functions(passed: Iterable[Evaluator | CustomFunction]) -> list[CustomFunction]:
    """Return all functions that evaluate each response, each with a name of its own.

    Args:
        passed: Those that are passed beside the registered ones, which go before and keep their names; one that is
            registered too counts once.

    Raises:
        OptionError: One of them cannot be an evaluator.
    """
    if not isinstance(passed, Iterable):
        raise OptionError(f"evaluators cannot be {passed!r}", key="evaluators", hint="Give a list of functions.")
    registered: list[CustomFunction] = [MetricFunction(metric) for metric in registered_metrics().values()]
    registered += [_evaluator(name, function) for name, function in registered_evaluators().items()]
    known = [each.function for each in registered]
    return custom_functions([*registered, *(each for each in passed if not any(each is one for one in known))])


def has_registered_functions() -> bool:
    """Return whether there is a registered metric or evaluator."""
    return bool(registered_metrics() or registered_evaluators())


def _evaluator(name: str, function: Evaluator) -> CustomFunction:
    evaluator = CustomFunction(function, name)
    evaluator.registered_as = f"evaluator {name}"
    return evaluator
