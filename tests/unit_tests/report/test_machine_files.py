"""The JSON Schemas of `--json` output."""

import json

import pytest

from graphrag_eval_lc.report.machine_files import DOCUMENT_SCHEMA_PATHS


@pytest.mark.parametrize("name", sorted(DOCUMENT_SCHEMA_PATHS))
def test_all_keys_are_described_and_others_are_rejected(name: str) -> None:
    schema = json.loads(DOCUMENT_SCHEMA_PATHS[name].read_text(encoding="utf-8"))
    for part in (schema, *schema.get("$defs", {}).values()):
        assert [key for key, value in part["properties"].items() if not value.get("description")] == []
        assert part["additionalProperties"] is False
