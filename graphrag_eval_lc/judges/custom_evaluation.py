"""Evaluations of the config: a model follows the user's instructions, and returns a value for each output."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from graphrag_eval_lc.config import CustomEvaluationConfig
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.model_interface import JudgeModel
from graphrag_eval_lc.judges.prompts import fences, load_prompt, sendable_text
from graphrag_eval_lc.judges.scores import error_record

_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # the names that every provider's schemas accept


class _MissingInputError(Exception):
    """A record lacks an input; the text is graphrag-eval's."""


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
        self.keys = config.keys
        self._config = config
        self._llm = llm
        self._step_names = names or {}
        outputs = config.outputs
        self._shown = [
            key if _PROPERTY.fullmatch(key) else f"output_{number}" for number, key in enumerate(outputs, start=1)
        ]
        self._form = _form_of(dict(zip(self._shown, outputs.values(), strict=True)))

    async def aevaluate(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate one response.

        Returns:
            The outputs and, if known, ``{name}_cost``. If it cannot be evaluated, the outputs are None and
            ``{name}_error`` says why.
        """
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
        outputs = {key: _read(value) for key, value in zip(self._config.outputs, values, strict=True)}
        return outputs if asked.cost is None else {**outputs, self._config.cost_key: asked.cost}

    def _inputs(self, question: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of all inputs, or raise graphrag-eval's message on the first missing one."""
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


def _form_of(descriptions: Mapping[str, str]) -> type[BaseModel]:
    """Return the form of an answer. Its fields' names are safe however the outputs are called."""
    fields: dict[str, Any] = {
        f"output_{position}": (_Value, Field(alias=name, description=description))
        for position, (name, description) in enumerate(descriptions.items())
    }
    return create_model("CustomEvaluationOutputs", __config__=ConfigDict(extra="forbid", strict=True), **fields)


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
