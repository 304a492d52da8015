"""The form of agentevals' evaluators: which keywords a function takes, and a question and its response as these."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.modules import signature_of
from graphrag_eval_lc.registry.step_kinds import names_that_fulfil

_KEYWORDS = ("inputs", "outputs", "reference_outputs")


def agentevals_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the agentevals keywords that a function takes; none if it takes a question and a response.

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
    """Return the values of the keywords. Reference steps are named as the tools, as an agent knows no other names.

    Args:
        question: The dataset's question.
        response: The agent's response.
        names: The names of reference steps by the tools' own.
    """
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
    """Return reference steps that are called as the tools that fulfil them; of several, the one called first."""
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
