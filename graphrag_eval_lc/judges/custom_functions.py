"""Evaluations of users: functions in Python, passed or registered, and the config's, which a model makes."""

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
from graphrag_eval_lc.judges.model_interface import JudgeModel
from graphrag_eval_lc.judges.prompts import fences, load_prompt, sendable_text
from graphrag_eval_lc.judges.scores import error_record, raise_if_cancelled
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import evaluators_of_users
from graphrag_eval_lc.registry.metric_spec import LARGEST, error_key, reason_key
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users
from graphrag_eval_lc.registry.modules import signature_of
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil

Evaluator = Callable[..., Any]

_AGENTEVALS = ("inputs", "outputs", "reference_outputs")


class CustomFunction:
    """An evaluation that a user wrote in Python.

    Args:
        function: A function or async function, in one of two forms. ``(question, response) -> float | str | bool |
            dict`` takes the dataset's question and the agent's response. agentevals' form takes any of the keywords
            ``inputs`` (the question's own keys), ``outputs`` (the response) and ``reference_outputs`` (the
            reference), and returns ``{key, score, comment}`` or a list of these. ``outputs`` and
            ``reference_outputs`` also have ``messages`` in OpenAI's format, made from the steps and the answer.
        name: The key of a single value, and the prefix of ``{name}_error``; None for the function's name.

    Attributes:
        name: The name.
        function: The function.
        registered_as: What it is registered as, such as ``evaluator tone``; None where it was passed.

    Raises:
        OptionError: It cannot be called, has no name, or its name is a key of the results.

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
            ``{key}_reason``. Only ``{name}_error`` where the function fails or its value is no JSON.
        """
        try:
            values = self._values_of(await self._given(question, response, names or {}))
            # A copy, and JSON, as results are.
            kept: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False, default=_plain))
        except JudgeError as problem:
            return {error_key(self.name): str(problem)}
        except (Exception, SystemExit, CancelledError) as problem:
            raise_if_cancelled(problem)
            return {error_key(self.name): masked_text(f"{type(problem).__name__}: {problem}")}
        return kept

    async def _given(self, question: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str]) -> Any:
        if self._takes:
            records = _agentevals_arguments(_with_tool_names(question, response, names), response)
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


def _name_of(function: Evaluator) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise OptionError("a lambda has no name to stand in the results", hint="Write the evaluator with def.")
    return str(name)


def _agentevals_parameters(function: Evaluator) -> tuple[str, ...]:
    """Return the agentevals keywords that a function takes; none where it takes a question and a response."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    if not names & {"outputs", "reference_outputs"}:
        return ()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return tuple(name for name in _AGENTEVALS if takes_any or name in names)


def _with_tool_names(
    question: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return a question whose reference steps are called as the tools that fulfil them, as an agent knows no others.

    Of several tools the one that was called first counts.
    """
    groups = question.get("reference_steps")
    if not groups:
        return question
    called = [str(step.get("name")) for step in response.get("actual_steps") or ()]
    tools = list(dict.fromkeys([*called, *names]))

    def renamed(step: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(step.get("name"))
        exact = (tool for tool in tools if names.get(tool, tool) == name)
        others = (tool for tool in called if names.get(tool, tool) in names_that_fulfil(name))
        return {**step, "name": next(itertools.chain(exact, others), name)}

    return {**question, "reference_steps": [[renamed(step) for step in group] for group in groups]}


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
    """Return the question, each step as a tool call with its output, and the answer as OpenAI messages."""
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
    """Return what a call returns or raises: a future cannot hold a StopIteration."""
    try:
        return call(), None
    except (Exception, SystemExit) as problem:
        return None, problem


def _plain(value: object) -> Any:
    plain = _python_number(value)
    if plain is value:
        raise JudgeError(f"an evaluator gave {type(value).__name__}, which a result cannot hold")
    return plain


def _python_number(value: Any) -> Any:
    """Return a numpy number as Python's, and any other value as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


class MetricFunction(CustomFunction):
    """A metric that a user registered: ``(question, response) -> float | None``."""

    def __init__(self, metric: RegisteredMetric) -> None:
        super().__init__(metric.function, metric.spec.key)
        self._takes = ()  # whatever its parameters are called
        self.spec = metric.spec
        self.registered_as = f"metric {self.name}"

    def _values_of(self, given: Any) -> dict[str, Any]:
        """Return the number under the metric's key; no key for None."""
        if given is None:
            return {}
        value = _python_number(given)
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
    """Return all functions that evaluate each response, each with its own name: a second ``f`` is ``f_2``.

    Args:
        passed: Functions beside the registered ones, which go first and keep their names. One that is also
            registered counts once.

    Raises:
        OptionError: One of them cannot be an evaluator.
    """
    if not isinstance(passed, Iterable):
        raise OptionError(f"evaluators cannot be {passed!r}", key="evaluators", hint="Give a list of functions.")
    evaluators: list[CustomFunction] = [MetricFunction(metric) for metric in metrics_of_users.values()]
    evaluators += [_evaluator(name, function) for name, function in evaluators_of_users.items()]
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


def _evaluator(name: str, function: Evaluator) -> CustomFunction:
    evaluator = CustomFunction(function, name)
    evaluator.registered_as = f"evaluator {name}"
    return evaluator


# --- evaluations of the config ---

_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # the names that every provider's schemas take


class _MissingInputError(Exception):
    """A record lacks an input; the text is graphrag-eval's."""


class CustomEvaluation:
    """One evaluation of the config: a model follows its instructions and gives a value for each output.

    Args:
        config: The evaluation.
        llm: The model.
        names: Step names by tool name, as in ``steps.names`` of the config.
    """

    def __init__(
        self, config: CustomEvaluationConfig, llm: JudgeModel, *, names: Mapping[str, str] | None = None
    ) -> None:
        self.name = config.name
        self.keys = config.keys
        self._config = config
        self._llm = llm
        self._names = names or {}
        self._shown, self._schema = _answer_of(config.outputs)

    async def aevaluate(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate one response.

        Returns:
            The outputs and, where known, ``{name}_cost``. Where it cannot be evaluated, the outputs are None and
            ``{name}_error`` says why.
        """
        nothing = dict.fromkeys(self._config.outputs)
        try:
            message = self._message(self._inputs(question, response))
            asked = await self._llm.aask(load_prompt("custom_evaluation").system, message, self._schema)
        except _MissingInputError as problem:
            return {**nothing, self._config.error_key: str(problem)}
        except Exception as problem:
            record = error_record(self.name, problem)
            return {**nothing, **record} if record else {}
        values = asked.values[0].model_dump().values()
        outputs = {key: _read(value) for key, value in zip(self._config.outputs, values, strict=True)}
        return outputs if asked.cost is None else {**outputs, self._config.cost_key: asked.cost}

    def _inputs(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of all inputs, or raise graphrag-eval's message on the first missing one."""
        inputs: dict[str, Any] = {}
        key: str
        for name in self._config.inputs:
            owner, record = ("Actual output", response) if name.startswith("actual_") else ("Reference", question)
            key = "question_text" if name == "question" else name
            inputs[name] = record.get(key)
            if inputs[name] is None:
                raise _MissingInputError(f"{owner} missing key '{key}'")
        texts: dict[str, str] = {}
        for key, value in inputs.items():
            if key == "reference_steps":
                texts[key] = "\n\n".join(self._steps_text(group) for group in value)
            elif key == "actual_steps":
                texts[key] = self._steps_text(value)
            else:
                texts[key] = value if isinstance(value, str) else json_text(value, indent=2)
        return texts

    def _steps_text(self, steps: Iterable[Mapping[str, Any]]) -> str:
        keys = dict.fromkeys(self._config.steps_keys or ())
        named = (
            step for step in steps if self._config.steps_name in (name := str(step.get("name")), self._names.get(name))
        )
        return json_text([{key: _read(step.get(key)) for key in keys} for step in named], indent=2)

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


def _answer_of(outputs: Mapping[str, str]) -> tuple[list[str], type[BaseModel]]:
    """Return the name of each output in the answer, and the answer's form.

    An output has its own name if a schema can have it, else one by its position.
    """
    shown: list[str] = []
    for position, key in enumerate(outputs, start=1):
        name = key if _PROPERTY.fullmatch(key) else f"output_{position}"
        while name != key and name in outputs:
            name += "_"
        shown.append(name)
    # The fields' names are safe whatever the outputs are called; models see the aliases.
    fields: dict[str, Any] = {
        f"output_{position}": (_Value, Field(alias=name, description=description))
        for position, (name, description) in enumerate(zip(shown, outputs.values(), strict=True))
    }
    form = create_model("CustomEvaluationOutputs", __config__=ConfigDict(extra="forbid", strict=True), **fields)
    return shown, form


def _read(value: Any) -> Any:
    """Return the value of a JSON text, and any other text as it is, as graphrag-eval does."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, allow_nan=False)
    except (ValueError, RecursionError):
        return value
    return parsed
