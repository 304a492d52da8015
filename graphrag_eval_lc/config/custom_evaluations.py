"""The section on evaluations that a user words: what a model is told, what it sees, and what it gives."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from graphrag_eval_lc.config.section import Section, mistake
from graphrag_eval_lc.registry.reserved_keys import is_reserved_key

CustomInput = Literal["question", "reference_answer", "reference_steps", "actual_answer", "actual_steps"]
StepsKey = Literal["args", "output"]


class CustomEvaluationConfig(Section):
    """One evaluation.

    Attributes:
        name: Its name; ``{name}_error`` and ``{name}_cost`` stand in the results.
        inputs: What the model sees, of ``question``, ``reference_answer``, ``reference_steps``, ``actual_answer``
            and ``actual_steps``.
        instructions: What the model is told to do.
        outputs: What it gives: the results' keys, each with the description of its value.
        steps_name: The name of the steps that it sees; needed with steps in ``inputs``.
        steps_keys: What it sees of them, of ``args`` and ``output``; needed with steps in ``inputs``.
    """

    name: str = Field(min_length=1)
    inputs: list[CustomInput] = Field(min_length=1)
    instructions: str = Field(min_length=1)
    outputs: dict[Annotated[str, Field(min_length=1)], str] = Field(min_length=1)
    steps_name: str | None = Field(default=None, min_length=1)
    steps_keys: list[StepsKey] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _steps_are_described(self) -> Self:
        if {"reference_steps", "actual_steps"} & set(self.inputs):
            for key in ("steps_name", "steps_keys"):
                if getattr(self, key) is None:
                    raise mistake(f"{key} is required when steps are in inputs", f"Add {key}.", key)
        return self

    @model_validator(mode="after")
    def _keys_are_free(self) -> Self:
        own = {f"{self.name}_error", f"{self.name}_cost"}
        if any(map(is_reserved_key, own)):
            raise mistake(f"the name {self.name} is reserved, as its keys are used otherwise", "Rename it.", "name")
        for key in self.outputs:
            if is_reserved_key(key) or key in own:
                raise mistake(f"the output key {key} is reserved", "Rename it.", "outputs", key)
        return self
