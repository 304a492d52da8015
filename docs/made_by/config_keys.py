"""Every key of the configuration with its type, default and meaning, as declared in the sections."""

import inspect
import json
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from graphrag_eval_lc.config import EvaluationConfig

_ATTRIBUTE = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.*(?:\n {8,}.*|\n\n(?= {8}))*)", re.MULTILINE)
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything", SecretStr: "text"}
_BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}"}


@dataclass(frozen=True, slots=True)
class DescribedKey:
    """A key of the configuration.

    Attributes:
        path: The key with those above it, such as ``steps.scoring``; ``<name>`` and ``[]`` are any name or index.
        takes: What it accepts, in words.
        default: Its default as JSON; None if the key is required.
        about: What it means, as its section's docstring says.
        section: The section that it holds, if it is one.
    """

    path: str
    takes: str
    default: str | None
    about: str
    section: type[BaseModel] | None


def described_keys(section: type[BaseModel] = EvaluationConfig, above: str = "") -> Iterator[DescribedKey]:
    """Yield every key of a section; keys of subsections follow their own.

    Example:
        >>> keys = {key.path: key for key in described_keys()}
        >>> keys["steps.scoring"].takes, keys["steps.scoring"].default
        ('`last_group` or `all_groups`', '"last_group"')
    """
    texts = attribute_texts(section)
    for name, field in section.model_fields.items():
        path = f"{above}{name}"
        inner, place = _section_of(field.annotation)
        yield DescribedKey(path, _type_text(field), _default_text(field), texts.get(name, ""), inner)
        if inner is not None:
            yield from described_keys(inner, f"{path}{place}.")


def attribute_texts(section: type[BaseModel]) -> dict[str, str]:
    """Return the texts about the attributes in the docstrings of a section and its base classes.

    Example:
        >>> from graphrag_eval_lc.config import RepeatsConfig
        >>> sorted(attribute_texts(RepeatsConfig))
        ['metric', 'threshold']
    """
    texts: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            _, _, attributes = inspect.cleandoc(each.__doc__ or "").partition("\nAttributes:\n")
            attributes = re.split(r"\n(?=\S)", attributes, maxsplit=1)[0]
            texts |= {found["name"]: " ".join(found["text"].split()) for found in _ATTRIBUTE.finditer(attributes)}
    return texts


def _section_of(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the section in a type, and the path between its key and the keys in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _section_of(arguments[0])
    place = {list: "[]", dict: ".<name>"}.get(origin) if origin is not None else ""
    for part in arguments:
        inner, further = _section_of(part)
        if inner is not None:
            return inner, f"{place or ''}{further}"
    return None, ""


def _default_text(field: FieldInfo) -> str | None:
    if field.is_required():
        return None
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return None
    if isinstance(default, BaseModel):
        return ""
    return json.dumps(default, ensure_ascii=False, default=str)


def _type_text(field: FieldInfo) -> str:
    bounds = [
        text.format(f"{bound:g}" if isinstance(bound, int | float) else bound)
        for mark in field.metadata
        for name, text in _BOUNDS.items()
        if (bound := getattr(mark, name, None)) is not None
    ]
    return ", ".join([_type_words(field.annotation), *bounds])


def _type_words(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if annotation is type(None):
        return "null"
    if origin is Annotated:
        return _type_words(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_type_words, arguments)))
    if origin is list:
        return f"list of {_plural(_type_words(arguments[0]))}"
    if origin is dict:
        return f"{_type_words(arguments[1])} by name"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return getattr(annotation, "__name__", str(annotation))


def _plural(words: str) -> str:
    return words if words.endswith("`") or " or " in words else f"{words}s"
