"""The JSON Schemas of what `--json` prints."""

import json

import pytest

from graphrag_eval_lc.report.json_documents import DOCUMENT_SCHEMA_PATHS, document_schema_text


@pytest.mark.parametrize("name", sorted(DOCUMENT_SCHEMA_PATHS))
def test_schema_that_ships_is_that_of_the_documents(name: str) -> None:
    assert DOCUMENT_SCHEMA_PATHS[name].read_text(encoding="utf-8") == document_schema_text(name), "run: make schemas"


@pytest.mark.parametrize("name", sorted(DOCUMENT_SCHEMA_PATHS))
def test_each_key_is_described(name: str) -> None:
    schema = json.loads(document_schema_text(name))
    for part in (schema, *schema.get("$defs", {}).values()):
        assert [key for key, value in part["properties"].items() if not value.get("description")] == []
