"""The base class of all configuration sections, the form of their errors, and the expansion of ``${NAME}``."""

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.masking import MASK, masked_values

MISTAKE = "mistake"
_NUMBER_WITH_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values are not converted, secrets are not printed."""

    model_config = ConfigDict(extra="forbid", strict=True, validate_assignment=True, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def _read_exponent(cls, value: Any, info: ValidationInfo) -> Any:
        """Read 1e-6 as a number if a number is expected; YAML 1.1 reads it as text, as it has no decimal point."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, str) and annotation in (float, float | None) and _NUMBER_WITH_EXPONENT.fullmatch(value):
            return float(value)
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, value if name is None else masked_values({name: value})[name]


def mistake(what: str, hint: str, *key: str) -> PydanticCustomError:
    """Return an error for a rule beyond pydantic's own; ``key`` is the path in the section that is checked."""
    return PydanticCustomError(MISTAKE, "{what}. {hint}", {"what": what, "hint": hint, "key": key})


def named(known: Sequence[str], name: str, near: str | None = None) -> str:
    """Return the hint for an unknown name: the nearest known name (``near``, by default by spelling), and all others.

    Example:
        >>> named(["recall", "precision"], "recal")
        'Did you mean recall? There are recall, precision'
    """
    near = near or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)
    question = "" if near is None else f"Did you mean {near}? "
    return f"{question}There are {', '.join(known)}"


Value = TypeVar("Value")


_VARIABLE = re.compile(r"\$(?P<escape>\$?)\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def is_reference(text: str) -> bool:
    """Return whether a text is nothing but a reference such as ``${NAME}``, which is safe to show."""
    return _VARIABLE.fullmatch(text) is not None


def expanded(value: Value, key: str) -> Value:
    """Return a copy of a section, dict or list in which ``${NAME}`` in strings is replaced by environment variables.

    ``$${NAME}`` becomes the text ``${NAME}``. A ConfigError with the key is raised if a variable is unset or empty, or
    if the value was masked when it was written to a run's folder.

    Example:
        >>> os.environ["MODEL_OF_TODAY"] = "gpt-4o-mini"
        >>> expanded({"model": "${MODEL_OF_TODAY}"}, "llm.generation")
        {'model': 'gpt-4o-mini'}
    """
    return cast("Value", _expanded(value, key))


def _expanded(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return _expanded_text(value, key)
    if isinstance(value, SecretStr):
        return SecretStr(_expanded_text(value.get_secret_value(), key))
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _expanded(item, f"{key}.{name}") for name, item in value})
    if isinstance(value, dict):
        return {name: _expanded(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, f"{key}[{index}]") for index, item in enumerate(value)]
    return value


def _expanded_text(text: str, key: str) -> str:
    if text == MASK or f":{MASK}@" in text:
        raise ConfigError(
            "the value was masked when the run was written",
            key=key,
            hint="Pass the config again (-c, config=...), with a reference such as ${OPENAI_API_KEY}.",
        )

    def value_of(match: re.Match[str]) -> str:
        name = match["name"]
        if match["escape"]:
            return f"${{{name}}}"
        value = os.environ.get(name)
        if not value:
            state = "not set" if value is None else "empty"
            raise ConfigError(f"the environment variable {name} is {state}", key=key, hint=f"Set it: export {name}=...")
        return value

    return _VARIABLE.sub(value_of, text)
