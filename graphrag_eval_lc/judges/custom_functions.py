"""Runs evaluations that users write: Python functions, in our or agentevals' form, and prompts in the config."""

import asyncio
import functools
import inspect
import itertools
import json
import re
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from graphrag_eval_lc.config import CustomEvaluationConfig, is_reserved_key
from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.model_interface import JudgeModel, error_record, raise_if_cancelled
from graphrag_eval_lc.judges.prompts import fences, load_prompt, sendable_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import evaluators_of_users
from graphrag_eval_lc.registry.metric_spec import LARGEST, MetricSpec, error_key, reason_key
from graphrag_eval_lc.registry.metrics import metrics_of_users
from graphrag_eval_lc.registry.plugins import signature_of, without_partials
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil

Evaluator = Callable[..., Any]


class CustomFunction:
    """An evaluation that a user wrote in Python; raises an OptionError if it has no usable name.

    The function, async or not, has one of two forms. ``(question, response) -> float | str | bool | dict`` receives the
    dataset's question and the agent's response. agentevals' form receives any of the keywords ``inputs`` (the
    question's keys), ``outputs`` (the response) and ``reference_outputs`` (the reference), and returns ``{key, score,
    comment}`` or a list of these. ``outputs`` and ``reference_outputs`` also have ``messages`` in OpenAI's format, made
    from the steps and the answer.

    Args:
        function: The function.
        name: The key of a single value, and the prefix of ``{name}_error``; None for the function's name.
        spec: The declaration of a registered metric, ``(question, response) -> float | None``.
        registered_as: What it is registered as, such as ``evaluator tone``; None if it was passed.

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

        A single value is returned under the function's name, a dict as it is, and feedback of agentevals as ``{key}``
        and, with a comment, ``{key}_reason``. If the function fails or JSON cannot hold its value, there is only
        ``{name}_error``. ``names`` are step names by tool name: agentevals compares names, so its reference steps get
        the names of the tools.
        """
        try:
            returned = await self._returned(question, response, names or {})
            values = self._values_of(returned) if self.spec is None else self._number_of(returned, self.spec)
            # A copy of plain JSON values, as in results.
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
        """Return the number of a metric under its key; empty for None."""
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
    """Return the result or the exception of a call, since a future cannot hold a StopIteration."""
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
    """Return a numpy number as a Python number, and any other value unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def all_functions(passed: Iterable[Evaluator | CustomFunction]) -> list[CustomFunction]:
    """Return all functions that evaluate responses, with unique names: a second ``f`` is called ``f_2``.

    Registered functions come first and keep their names; one that is also passed counts once. Raises an OptionError if
    one cannot be an evaluator.
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


# --- agentevals' form ---

_KEYWORDS = ("inputs", "outputs", "reference_outputs")


def agentevals_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the agentevals keywords that a function accepts; empty if it accepts a question and a response.

    Example:
        >>> agentevals_parameters(lambda *, outputs, **more: True)
        ('inputs', 'outputs', 'reference_outputs')
    """
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    if not names & {"outputs", "reference_outputs"}:
        return ()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return tuple(name for name in _KEYWORDS if takes_any or name in names)


def agentevals_arguments(
    question: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return the values of the keywords. Reference steps get the names of tools, the only names that an agent knows."""
    reference = {key: value for key, value in question.items() if key in ("reference_answer", "reference_steps")}
    if groups := reference.get("reference_steps"):
        reference["reference_steps"] = _with_tool_names(groups, response, names)
    steps = [step for group in reference.get("reference_steps") or () for step in group]
    text = str(question.get("question_text", ""))
    actual = _messages(text, response.get("actual_steps") or (), response.get("actual_answer"))
    expected = _messages(text, steps, reference.get("reference_answer"))
    return {
        "inputs": {key: value for key, value in question.items() if key not in reference},
        "outputs": {**response, "messages": actual},
        "reference_outputs": {**reference, "messages": expected},
    }


def _with_tool_names(
    groups: Iterable[Iterable[Mapping[str, Any]]], response: Mapping[str, Any], names: Mapping[str, str]
) -> list[list[dict[str, Any]]]:
    """Return reference steps under the names of the tools that fulfil them; if several do, of the first one called."""
    called = [str(step.get("name")) for step in response.get("actual_steps") or ()]
    tools = list(dict.fromkeys([*called, *names]))

    def renamed(step: Mapping[str, Any]) -> dict[str, Any]:
        name = str(step.get("name"))
        exact = (tool for tool in tools if names.get(tool, tool) == name)
        others = (tool for tool in called if names.get(tool, tool) in names_that_fulfil(name))
        return {**step, "name": next(itertools.chain(exact, others), name)}

    return [[renamed(step) for step in group] for group in groups]


def _messages(question: str, steps: Iterable[Mapping[str, Any]], answer: object) -> list[dict[str, Any]]:
    """Return the question, each step as a tool call with its output, and the answer as OpenAI messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for index, step in enumerate(steps):
        identifier = str(step.get("id", index))
        function = {"name": step.get("name"), "arguments": _as_text(step.get("args") or {})}
        call = {"id": identifier, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        output = step.get("output", step.get("error", ""))
        messages.append({"role": "tool", "tool_call_id": identifier, "content": _as_text(output)})
    if answer is not None:
        messages.append({"role": "assistant", "content": _as_text(answer)})
    return messages


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


# --- evaluations of the config ---

_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # the names that every provider's schemas accept


class _MissingInputError(Exception):
    """A record lacks an input; the message is graphrag-eval's."""


class CustomEvaluation:
    """One custom evaluation of the config; ``names`` has step names by tool name, as in ``steps.names``."""

    def __init__(
        self, config: CustomEvaluationConfig, llm: JudgeModel, *, names: Mapping[str, str] | None = None
    ) -> None:
        self.name = config.name
        self.keys = config.keys
        self._config = config
        self._llm = llm
        self._step_names = names or {}
        outputs = config.outputs
        self._shown = [
            key if _PROPERTY.fullmatch(key) else f"output_{number}" for number, key in enumerate(outputs, start=1)
        ]
        # Numbered field names are valid whatever the outputs are called.
        fields: dict[str, Any] = {
            f"output_{position}": (_Value, Field(alias=name, description=description))
            for position, (name, description) in enumerate(zip(self._shown, outputs.values(), strict=True))
        }
        closed = ConfigDict(extra="forbid", strict=True)
        self._form: type[BaseModel] = create_model("CustomEvaluationOutputs", __config__=closed, **fields)

    async def aevaluate(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs and, if known, ``{name}_cost``; on failure None for each output, and ``{name}_error``."""
        nothing = dict.fromkeys(self._config.outputs)
        try:
            message = self._message(self._inputs(question, response))
            asked = await self._llm.aask(load_prompt("custom_evaluation").system, message, self._form)
        except _MissingInputError as problem:
            return {**nothing, self._config.error_key: str(problem)}
        except Exception as problem:
            record = error_record(self.name, problem)
            return {**nothing, **record} if record else {}
        values = asked.value.model_dump().values()
        outputs = {key: _json_or_text(value) for key, value in zip(self._config.outputs, values, strict=True)}
        return outputs if asked.cost is None else {**outputs, self._config.cost_key: asked.cost}

    def _inputs(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of all inputs; raise graphrag-eval's message for the first missing one."""
        texts: dict[str, str] = {}
        for name in self._config.inputs:
            owner, record = ("Actual output", response) if name.startswith("actual_") else ("Reference", question)
            key = "question_text" if name == "question" else str(name)
            value = record.get(key)
            if value is None:
                raise _MissingInputError(f"{owner} missing key '{key}'")
            if name == "reference_steps":
                texts[name] = "\n\n".join(self._steps_text(group) for group in value)
            elif name == "actual_steps":
                texts[name] = self._steps_text(value)
            else:
                texts[name] = value if isinstance(value, str) else json_text(value, indent=2)
        return texts

    def _steps_text(self, steps: Iterable[Mapping[str, Any]]) -> str:
        keys = dict.fromkeys(self._config.steps_keys or ())
        named = (
            step
            for step in steps
            if self._config.steps_name in (name := str(step.get("name")), self._step_names.get(name))
        )
        return json_text([{key: _json_or_text(step.get(key)) for key in keys} for step in named], indent=2)

    def _message(self, inputs: Mapping[str, str]) -> str:
        outputs = [
            f"- {shown}: {description}" if shown == key else f"- {shown} ({key}): {description}"
            for shown, (key, description) in zip(self._shown, self._config.outputs.items(), strict=True)
        ]
        parts = [
            f"# Instructions\n{self._config.instructions.strip()}",
            "# Outputs\n" + "\n".join(outputs),
            "# Material",
            *fences(inputs),
        ]
        return sendable_text("\n\n".join(parts))


def _json_or_text(value: Any) -> Any:
    """Return the value of a JSON text, and any other text unchanged, as graphrag-eval does."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, allow_nan=False)
    except (ValueError, RecursionError):
        return value
    return parsed
