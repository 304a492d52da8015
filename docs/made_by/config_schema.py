"""The JSON Schemas of the configuration, datasets and responses, which editors use for completion and checks."""

import json
import re
from typing import Any

from pydantic import BaseModel, TypeAdapter

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.config.loading import RUN_SECTION
from graphrag_eval_lc.dataset import RESPONSES, TEMPLATES
from made_by.config_keys import attribute_texts, described_keys

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_FORMATS: dict[str, tuple[TypeAdapter[Any], str]] = {
    "dataset": (TEMPLATES, "A reference dataset in graphrag-eval's format: templates with their questions."),
    "responses": (RESPONSES, "Responses of an agent in graphrag-eval's format."),
}
_ABOUT_RUN = {
    "agent": "The agent, such as my_agent.py:agent, langgraph.json:graph or an address.",
    "dataset": "The reference dataset.",
    "output": "The folder in which each run gets a folder of its own.",
}


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the configuration.

    Example:
        >>> config_schema()["properties"]["gates"]["description"]
        'What a run must reach, alone or compared with a baseline.'
    """
    schema = EvaluationConfig.model_json_schema()
    sections = {key.section.__name__: key.section for key in described_keys() if key.section is not None}
    for name, definition in schema["$defs"].items():
        _describe(definition, sections[name])
    _describe(schema, EvaluationConfig)
    # In a file, the name of a tool is enough.
    steps = schema["$defs"]["RetrievalConfig"]["properties"]["steps"]
    steps["items"] = {"anyOf": [{"type": "string", "minLength": 1}, steps["items"]]}
    options = {key: {"type": "string", "description": text} for key, text in _ABOUT_RUN.items()}
    run = schema["properties"][RUN_SECTION]
    schema["properties"][RUN_SECTION] = {
        "type": ["object", "null"],
        "description": run["description"],
        "properties": options,
    }
    about = "The configuration of graphrag_eval_lc: graphrag_eval.yaml, or a file of --config."
    return {"$schema": _DRAFT, **_plain(schema), "description": about}


def config_schema_text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def format_schema_text(name: str) -> str:
    """Return the JSON Schema of ``dataset`` or ``responses`` as the text of its file."""
    adapter, about = _FORMATS[name]
    schema = {"$schema": _DRAFT, "description": about, **_plain(adapter.json_schema())}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _describe(definition: dict[str, Any], section: type[BaseModel]) -> None:
    """Add the texts of a section's docstring to its schema and its keys."""
    first, _, _ = (section.__doc__ or "").strip().partition("\n")
    definition["description"] = _text(first)
    for key, text in attribute_texts(section).items():
        if key in definition.get("properties", {}):
            definition["properties"][key]["description"] = _text(text)


def _text(text: str) -> str:
    return re.sub(r"\bNone\b", "null", text.replace("``", "`"))


def _plain(schema: Any) -> Any:
    """Return a schema without what editors would show next to descriptions: titles, null defaults, hidden fields."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _plain(value)
        for key, value in schema.items()
        if not (key in ("title", "format") and isinstance(value, str))
        and not (key == "default" and value is None)
        and key != "writeOnly"
    }
