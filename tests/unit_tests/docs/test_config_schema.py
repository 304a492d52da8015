"""The configuration's JSON Schema and key descriptions, both generated from the sections' docstrings."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH
from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.errors import ConfigError

SCHEMA = json.loads(CONFIG_SCHEMA_PATH.read_text(encoding="utf-8"))

FULL: dict[str, Any] = {
    "run": {"agent": "a.py:agent", "dataset": "qa.yaml", "output": "runs", "max_concurrency": 4, "tag": ["a"]},
    "steps": {
        "names": {"ask": "sparql_query"},
        "outputs": {"ask": {"format": "csv"}, "look": {"path": "result.rows", "artifact": True}},
        "kinds": {"find": "rows"},
        "rows": {"node_keys": ["iri"], "list_order": False},
        "grading": "graded",
    },
    "sparql": {"strict": False, "tolerance": {"float": 1e-4}, "values": {"times": False}},
    "aggregates": {"errors": "include"},
    "repeats": {"threshold": 0.5},
    "retrieval": {"measures": ["P@5"], "steps": ["search", {"name": "query", "column": "doc"}], "missing": "zero"},
    "judges": {"batch": 10, "timeout": 5},
    "llm": {"generation": {"model": "m", "api_key": "${KEY}", "top_p": 0.5}, "embedding": {}},
    "custom_evaluations": [
        {"name": "focus", "inputs": ["question"], "instructions": "Look.", "outputs": {"focus": "0 to 1"}}
    ],
    "prices": {"m": {"input": 1, "output": 2.5}},
    "gates": [{"under": 0.5}, {"metric": "total_tokens", "over": "+10%"}],
    "capture": {"retrieval_documents": ["search"], "max_output_chars": 100},
    "plugins": [],
}


@pytest.fixture
def _made_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[3] / "docs"), *sys.path])


@pytest.mark.usefixtures("_made_by")
def test_schema_files_are_up_to_date() -> None:
    from made_by.config_schema import config_schema_text, format_schema_text

    assert CONFIG_SCHEMA_PATH.read_text(encoding="utf-8") == config_schema_text(), "make schemas"
    for name, path in SCHEMA_PATHS.items():
        assert path.read_text(encoding="utf-8") == format_schema_text(name), "make schemas"


@pytest.mark.usefixtures("_made_by")
def test_types_and_defaults_are_described_in_words() -> None:
    from made_by.config_keys import described_keys

    keys = {key.path: (key.takes, key.default) for key in described_keys()}
    expected = {
        "steps.grading": ("`binary` or `graded`", '"binary"'),
        "judges.batch": ("whole number, ≥ 1", "1"),
        "judges.timeout": ("number, > 0", "120.0"),
        "llm.generation.base_url": ("text or null", "null"),
        "llm.generation.temperature": ("number or null, ≥ 0, ≤ 2", "0.0"),
        "gates": ("list of sections", "[]"),
        "gates[].max_lost": ("whole number or null, ≥ 0", "null"),
        "prices.<name>.input": ("number, ≥ 0", None),
        "steps.outputs.<name>.artifact": ("true or false", "false"),
    }
    assert {path: keys[path] for path in expected} == expected


def test_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_key_is_described() -> None:
    sections = [SCHEMA, *SCHEMA["$defs"].values()]
    assert [key for each in sections for key, value in each["properties"].items() if not value.get("description")] == []
    assert set(SCHEMA["properties"]) == set(EvaluationConfig.model_fields)


@pytest.mark.parametrize("config", [{}, FULL, *({key: value} for key, value in FULL.items())], ids=repr)
def test_loadable_config_conforms_to_the_schema(config: dict[str, Any]) -> None:
    if "custom_evaluations" in config:
        config = {**config, "llm": FULL["llm"]}
    load_config(config)
    jsonschema.validate(config, SCHEMA)


@pytest.mark.parametrize(
    "config",
    [
        {"stepps": {}},
        {"steps": {"scoring": "last"}},
        {"judges": {"batch": 0}},
        {"gates": {"under": 1}},
        {"retrieval": {"steps": [5]}},
        {"steps": {"outputs": {"a": {"format": "xls"}}}},
        {"prices": {"m": {"input": -1, "output": 0}}},
        {"run": "agent.py:agent"},
    ],
    ids=repr,
)
def test_invalid_config_violates_the_schema(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        load_config(config)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, SCHEMA)
