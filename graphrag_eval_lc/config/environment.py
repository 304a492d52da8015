"""Environment variables in the configuration: ``${NAME}``, put in only where a value is used."""

import os
import re
from typing import Any, TypeVar, cast

from pydantic import BaseModel, SecretStr

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.masking import MASK

Value = TypeVar("Value")

_REFERENCE = re.compile(r"\$(?P<escape>\$?)\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def is_reference(text: str) -> bool:
    """Tell whether a text is nothing but a reference, so that it shows no secret.

    Example:
        >>> is_reference("${OPENAI_API_KEY}"), is_reference("sk-${SUFFIX}")
        (True, False)
    """
    return _REFERENCE.fullmatch(text) is not None


def expanded(value: Value, key: str) -> Value:
    """Give a value with the environment's variables in all its strings.

    Args:
        value: A section, or strings in dicts and lists; it is not changed. ``$${NAME}`` stands for the text
            ``${NAME}``.
        key: The key under which the value stands, for messages.

    Raises:
        ConfigError: A variable is not set or empty, or a value was masked when it was written to a run's folder.

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
            mend="Give the config again (-c, config=...), with a reference such as ${OPENAI_API_KEY}.",
        )

    def value_of(match: re.Match[str]) -> str:
        name = match["name"]
        if match["escape"]:
            return f"${{{name}}}"
        value = os.environ.get(name)
        if not value:
            state = "not set" if value is None else "empty"
            raise ConfigError(f"the environment variable {name} is {state}", key=key, mend=f"Set it: export {name}=...")
        return value

    return _REFERENCE.sub(value_of, text)
