"""Evaluations in the user's words: a model follows the config's instructions and gives a value for each output."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from graphrag_eval_lc.config import CustomEvaluationConfig, CustomInput
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.model_interface import JudgeModel
from graphrag_eval_lc.judges.prompts import fences, load_prompt, sendable_text
from graphrag_eval_lc.judges.scores import error_record

_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # the names that every provider's schemas take


class CustomEvaluation:
    """One evaluation of the config.

    Args:
        config: The evaluation.
        llm: The model.
        names: Step names by tool name, as in ``steps.names`` of the config.
    """

    def __init__(
        self, config: CustomEvaluationConfig, llm: JudgeModel, *, names: Mapping[str, str] | None = None
    ) -> None:
        self.name = config.name
        self._config = config
        self._llm = llm
        self._names = names or {}
        self._properties = _properties(config.outputs)
        self._schema = _schema(config.outputs, self._properties)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it may write."""
        return self._config.keys

    async def aevaluate(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate one response.

        Returns:
            The outputs and, where known, ``{name}_cost``. Where it cannot be evaluated, the outputs are None and
            ``{name}_error`` says why.
        """
        missing = self._missing_input(question, response)
        if missing is not None:
            return {**dict.fromkeys(self._config.outputs), self._config.error_key: missing}
        try:
            message = self._message(self._inputs(question, response))
            asked = await self._llm.aask(load_prompt("custom_evaluation").system, message, self._schema)
        except Exception as problem:
            record = error_record(self.name, problem)
            return {**dict.fromkeys(self._config.outputs), **record} if record else {}
        answer = asked.values[0]
        outputs = {key: _parsed(getattr(answer, _field(index))) for index, key in enumerate(self._config.outputs)}
        return outputs if asked.cost is None else {**outputs, self._config.cost_key: asked.cost}

    def _missing_input(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> str | None:
        """Return graphrag-eval's message on the first missing input, or None."""
        for name in self._config.inputs:
            owner, record, key = _place_of(name, question, response)
            if record.get(key) is None:
                return f"{owner} missing key '{key}'"
        return None

    def _inputs(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, str]:
        inputs: dict[str, str] = {}
        for name in self._config.inputs:
            _, record, key = _place_of(name, question, response)
            if name == "reference_steps":
                inputs[name] = "\n\n".join(self._steps_text(group) for group in record[key])
            elif name == "actual_steps":
                inputs[name] = self._steps_text(record[key])
            else:
                inputs[name] = record[key] if isinstance(record[key], str) else json_text(record[key], indent=2)
        return inputs

    def _message(self, inputs: Mapping[str, str]) -> str:
        outputs = [
            f"- {name}: {description}" if name == key else f"- {name} ({key}): {description}"
            for name, (key, description) in zip(self._properties, self._config.outputs.items(), strict=True)
        ]
        parts = [
            f"# Instructions\n{self._config.instructions.strip()}",
            "# Outputs\n" + "\n".join(outputs),
            "# Material",
            *fences(inputs),
        ]
        return sendable_text("\n\n".join(parts))

    def _steps_text(self, steps: Iterable[Mapping[str, Any]]) -> str:
        keys = dict.fromkeys(self._config.steps_keys or ())
        shown = [{key: _parsed(step.get(key)) for key in keys} for step in steps if self._is_shown(step)]
        return json_text(shown, indent=2)

    def _is_shown(self, step: Mapping[str, Any]) -> bool:
        name = str(step.get("name"))
        return self._config.steps_name in (name, self._names.get(name))


def _place_of(
    name: CustomInput, question: Mapping[str, Any], response: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], str]:
    """Return the place of an input: the record's name for messages, the record and the key."""
    if name.startswith("actual_"):
        return "Actual output", response, name
    return "Reference", question, "question_text" if name == "question" else name


def _field(index: int) -> str:
    return f"output_{index}"


def _properties(outputs: Mapping[str, str]) -> list[str]:
    """Return the name of each output in the schema: its own where a schema takes it, else one by its position."""
    names = []
    for index, key in enumerate(outputs):
        name = key if _PROPERTY.fullmatch(key) else f"output_{index + 1}"
        while name != key and name in outputs:
            name += "_"
        names.append(name)
    return names


def _schema(outputs: Mapping[str, str], properties: Iterable[str]) -> type[BaseModel]:
    # The fields' own names are safe whatever the outputs are called; models see the aliases.
    fields: dict[str, Any] = {
        _field(index): (_Value, Field(alias=name, description=description))
        for index, (name, description) in enumerate(zip(properties, outputs.values(), strict=True))
    }
    return create_model("CustomEvaluationOutputs", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _parsed(value: Any) -> Any:
    """Return the value of a JSON text, and any other text as it is, as graphrag-eval does."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, allow_nan=False)
    except (ValueError, RecursionError):
        return value
    return parsed
