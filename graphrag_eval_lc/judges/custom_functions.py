"""Evaluations that users wrote in Python, passed or registered: how they are called, and what they may return."""

import asyncio
import functools
import inspect
import json
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from graphrag_eval_lc.config import is_reserved_key
from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.judges.agentevals_form import agentevals_arguments, agentevals_parameters
from graphrag_eval_lc.judges.scores import raise_if_cancelled
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import evaluators_of_users
from graphrag_eval_lc.registry.metric_spec import LARGEST, MetricSpec, error_key, reason_key
from graphrag_eval_lc.registry.metrics import metrics_of_users
from graphrag_eval_lc.registry.modules import without_partials

Evaluator = Callable[..., Any]


class CustomFunction:
    """An evaluation that a user wrote in Python.

    Args:
        function: A function or async function, in one of two forms. ``(question, response) -> float | str | bool |
            dict`` takes the dataset's question and the agent's response. agentevals' form takes any of the keywords
            ``inputs`` (the question's own keys), ``outputs`` (the response) and ``reference_outputs`` (the
            reference), and returns ``{key, score, comment}`` or a list of these. ``outputs`` and
            ``reference_outputs`` also have ``messages`` in OpenAI's format, made from the steps and the answer.
        name: The key of a single value, and the prefix of ``{name}_error``; None for the function's name.
        spec: The declaration of a registered metric, ``(question, response) -> float | None``.
        registered_as: What it is registered as, such as ``evaluator tone``; None if it was passed.

    Raises:
        OptionError: It cannot be called, has no name, or its name is a key of the results.

    Example:
        >>> def is_short(question, response):
        ...     return len(response["actual_answer"]) < 100
        >>> asyncio.run(CustomFunction(is_short).acall({"id": "q1"}, {"actual_answer": "Four."}))
        {'is_short': True}
    """

    def __init__(
        self,
        function: Evaluator,
        name: str | None = None,
        *,
        spec: MetricSpec | None = None,
        registered_as: str | None = None,
    ) -> None:
        if not callable(function):
            raise OptionError(f"an evaluator cannot be {type(function).__name__}", hint="Pass a function.")
        self.name = name if name is not None else _name_of(function)
        if is_reserved_key(self.name) or is_reserved_key(error_key(self.name)):
            raise OptionError(f"an evaluator cannot be called {self.name}, a key of the results", hint="Rename it.")
        self.function = function
        self.spec = spec
        self.registered_as = registered_as
        self._keywords = agentevals_parameters(function) if spec is None else ()

    async def acall(
        self, question: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Evaluate one response; a synchronous function runs in a thread.

        Args:
            question: The dataset's question.
            response: The agent's response.
            names: The names of reference steps by the tools' own. An evaluator of agentevals, which compares names,
                gets the reference with the names of the tools.

        Returns:
            A single value under the function's name; a dict as it is; for agentevals ``{key}`` and, with a comment,
            ``{key}_reason``. Only ``{name}_error`` if the function fails or its value cannot be JSON.
        """
        try:
            returned = await self._returned(question, response, names or {})
            values = self._values_of(returned) if self.spec is None else self._number_of(returned, self.spec)
            # A copy, and JSON, as results are.
            kept: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False, default=_plain))
        except JudgeError as problem:
            return {error_key(self.name): str(problem)}
        except (Exception, SystemExit, CancelledError) as problem:
            raise_if_cancelled(problem)
            return {error_key(self.name): masked_text(f"{type(problem).__name__}: {problem}")}
        return kept

    async def _returned(
        self, question: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str]
    ) -> Any:
        if self._keywords:
            arguments = agentevals_arguments(question, response, names)
            call = functools.partial(self.function, **{name: arguments[name] for name in self._keywords})
        else:
            call = functools.partial(self.function, dict(question), dict(response))
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(type(self.function).__call__):
            return await call()
        returned, problem = await asyncio.to_thread(_outcome, call)
        if problem is not None:
            raise problem
        return await returned if isinstance(returned, Awaitable) else returned

    def _values_of(self, returned: Any) -> dict[str, Any]:
        """Return the values of an evaluator by their keys."""
        if not isinstance(returned, Mapping | list | tuple):
            return {self.name: returned}
        items = [returned] if isinstance(returned, Mapping) else returned
        if items is returned and not all(map(_is_feedback, items)):
            raise JudgeError(f"{self.name} returned a list of something else than {{key, score, comment}}")
        values: dict[Any, Any] = {}
        for item in items:
            if not _is_feedback(item):
                values |= item
                continue
            values[str(item["key"])] = item["score"]
            if item.get("comment") is not None:
                values[reason_key(str(item["key"]))] = item["comment"]
        for key in values:
            if not isinstance(key, str) or not key or is_reserved_key(key):
                raise JudgeError(f"{self.name} returned the key {key!r}, which is not a text or a key of the results")
        return values

    def _number_of(self, returned: Any, spec: MetricSpec) -> dict[str, Any]:
        """Return the number of a metric under its key; no key for None."""
        if returned is None:
            return {}
        value = _python_number(returned)
        if not isinstance(value, int | float):
            raise JudgeError(f"the metric {self.name} returned {returned!r:.80} instead of a number or None")
        low, high = spec.range
        if not abs(value) <= LARGEST:  # NaN and infinities, too
            raise JudgeError(f"the metric {self.name} returned {value:g}; return None if there is nothing to measure")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {'-∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"
            raise JudgeError(f"the metric {self.name} returned {value}, and is declared with a range {bounds}")
        return {self.name: value}


def _name_of(function: Evaluator) -> str:
    inner = without_partials(function)
    name = getattr(inner, "__name__", type(inner).__name__)
    if name == "<lambda>":
        raise OptionError("a lambda has no name for the results", hint="Write the evaluator with def.")
    return str(name)


def _is_feedback(returned: Any) -> bool:
    return isinstance(returned, Mapping) and "key" in returned and "score" in returned


def _outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return what a call returns or raises: a future cannot hold a StopIteration."""
    try:
        return call(), None
    except (Exception, SystemExit) as problem:
        return None, problem


def _plain(value: object) -> Any:
    plain = _python_number(value)
    if plain is value:
        raise JudgeError(f"an evaluator returned {type(value).__name__}, which a result cannot hold")
    return plain


def _python_number(value: Any) -> Any:
    """Return a numpy number as Python's, and any other value as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def all_functions(passed: Iterable[Evaluator | CustomFunction]) -> list[CustomFunction]:
    """Return all functions that evaluate each response, each with its own name: a second ``f`` is ``f_2``.

    Args:
        passed: Functions in addition to the registered ones, which come first and keep their names. One that is also
            registered counts once.

    Raises:
        OptionError: One of them cannot be an evaluator.
    """
    if not isinstance(passed, Iterable):
        raise OptionError(f"evaluators cannot be {passed!r}", key="evaluators", hint="Pass a list of functions.")
    evaluators = [
        CustomFunction(metric.function, key, spec=metric.spec, registered_as=f"metric {key}")
        for key, metric in metrics_of_users.items()
    ]
    evaluators += [
        CustomFunction(function, name, registered_as=f"evaluator {name}")
        for name, function in evaluators_of_users.items()
    ]
    known = [each.function for each in evaluators]
    evaluators += [
        each if isinstance(each, CustomFunction) else CustomFunction(each)
        for each in passed
        if not any(each is one for one in known)
    ]
    named: dict[str, CustomFunction] = {}
    for evaluator in evaluators:
        name, number = evaluator.name, 1
        while name in named:
            number += 1
            name = f"{evaluator.name}_{number}"
        named[name] = evaluator if name == evaluator.name else CustomFunction(evaluator.function, name)
    return list(named.values())


def has_registered_functions() -> bool:
    """Return whether there is a registered metric or evaluator."""
    return bool(metrics_of_users or evaluators_of_users)
