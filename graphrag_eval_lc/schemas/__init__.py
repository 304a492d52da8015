"""The JSON Schemas of reference datasets and responses, for editors, made from the models that check them.

An editor with a YAML language server takes a schema from the first line of a dataset:
``# yaml-language-server: $schema=path/to/dataset.schema.json``.

Attributes:
    SCHEMA_PATHS: The schema files by format, ``dataset`` and ``responses``.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from graphrag_eval_lc.dataset import RESPONSES, TEMPLATES

SCHEMA_PATHS = {name: Path(__file__).parent / f"{name}.schema.json" for name in ("dataset", "responses")}

_SOURCES: dict[str, tuple[TypeAdapter[Any], str]] = {
    "dataset": (TEMPLATES, "A reference dataset in graphrag-eval's format: templates with their questions."),
    "responses": (RESPONSES, "Responses of an agent in graphrag-eval's format."),
}


def format_schema(name: str) -> dict[str, Any]:
    """Give the JSON Schema (draft 2020-12) of a format.

    Args:
        name: ``dataset`` or ``responses``.

    Example:
        >>> format_schema("dataset")["type"]
        'array'
    """
    adapter, description = _SOURCES[name]
    schema = _without_noise(adapter.json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "description": description, **schema}


def format_schema_text(name: str) -> str:
    """Give the JSON Schema of a format as the text of its file."""
    return json.dumps(format_schema(name), indent=2, ensure_ascii=False) + "\n"


def _without_noise(schema: Any) -> Any:
    """Leave out the titles and null defaults that pydantic adds; editors would show them beside the descriptions."""
    if isinstance(schema, list):
        return [_without_noise(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_noise(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
