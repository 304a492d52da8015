"""The form of an answer, as the closed JSON schema that endpoints with strict structured outputs take."""

import re
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

_Schema = dict[str, Any]


@lru_cache(maxsize=64)
def closed_schema(form: type[BaseModel]) -> _Schema:
    """Give the JSON schema of a form in which objects have all their keys and no others, and nothing is referred to.

    Titles and defaults are left out, as they say nothing to a model that has to give all keys. The schema is kept for
    the next call: it must not be changed.

    Raises:
        ValueError: The form contains itself.

    Example:
        >>> class Verdict(BaseModel):
        ...     useful: bool = False
        >>> schema = closed_schema(Verdict)
        >>> schema["required"], schema["additionalProperties"]
        (['useful'], False)
    """
    schema = form.model_json_schema()
    return _closed(schema, schema.get("$defs", {}), ())


def form_name(form: type[BaseModel]) -> str:
    """Give a name that endpoints take: up to 64 letters, digits, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", form.__name__)[:64]


def _closed(schema: _Schema, definitions: dict[str, _Schema], inside: tuple[str, ...]) -> _Schema:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name in inside:
            raise ValueError(f"an answer's form cannot contain itself, as {name} does")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_closed(definitions[name], definitions, (*inside, name)), **_closed(beside, definitions, inside)}
    closed: _Schema = {}
    for key, value in schema.items():
        if key in {"type", "description", "enum", "minItems", "maxItems"}:
            closed[key] = value
        elif key == "const":
            closed["enum"] = [value]
        elif key == "properties":
            closed[key] = {name: _closed(part, definitions, inside) for name, part in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            closed[key] = _closed(value, definitions, inside)
        elif key in {"anyOf", "oneOf"}:
            closed["anyOf"] = [_closed(part, definitions, inside) for part in value]
    if "properties" in closed or schema.get("type") == "object":
        closed.setdefault("properties", {})
        closed["required"] = list(closed["properties"])
        closed.setdefault("additionalProperties", False)
    return closed
