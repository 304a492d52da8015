"""The page on the formats, generated from their JSON Schemas."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.report.machine_files import DOCUMENT_SCHEMA_PATHS

_PACKAGE = Path(__file__).parents[2]
_HEAD = """\
# File formats

This page lists the keys of datasets, responses, results and run folders, with their JSON Schemas. Datasets and
responses have graphrag-eval's format, to the key; additional keys are kept and passed through. The schemas (draft
2020-12) are in the package. If a YAML file begins with `# yaml-language-server: $schema=dataset.schema.json`,
editors that support the YAML language server complete and check it.

A run's folder has these files:

| File | Contents |
|---|---|
| `run.json` | who, what and when: agent, dataset and its digest, selection, config, versions, times, totals |
| `responses.jsonl` | the journal: one response per line as it ends; the last line of a question and repeat counts |
| `results.jsonl` | one scored question per line, in the dataset's order |
| `aggregates.yaml` | the statistics per template, over all questions (micro) and over the templates (macro) |
| `judge_cache.jsonl` | a cache of the judges' answers, so that scoring again sends only new requests |
| `published.jsonl` | which scores were sent to other tools, so that none is sent twice |
| `report.html` | the report, one file |
"""


def formats_page() -> str:
    """Return the page in Markdown: a section for each format, with a table for each of its records."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for name, path in {**SCHEMA_PATHS, **DOCUMENT_SCHEMA_PATHS}.items():
        schema = json.loads(path.read_text(encoding="utf-8"))
        yield ""
        yield f"## {name}"
        yield ""
        about = schema.get("description") or schema.get("title") or ""
        yield f"{_one_line(about)} Schema: `{path.relative_to(_PACKAGE)}`."
        records = {"": schema, **schema.get("$defs", {})}
        for title, record in records.items():
            if record.get("properties"):
                yield from _table(title or name, record, name)


def _table(title: str, record: Mapping[str, Any], format_name: str) -> Iterator[str]:
    yield ""
    yield f"### {title}" if title != format_name else f"### The whole {title}"
    yield ""
    if record.get("description"):
        yield _one_line(record["description"])
        yield ""
    yield "| Key | Type | Meaning |"
    yield "|---|---|---|"
    needed = record.get("required", ())
    for key, value in record["properties"].items():
        about = _one_line(value.get("description", ""))
        yield f"| `{key}`{', required' if key in needed else ''} | {_cell(_type(value))} | {_cell(about)} |"


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "enum" in value:
        return " or ".join(f"`{json.dumps(each)}`" for each in value["enum"])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    alternatives = value.get("anyOf") or value.get("oneOf") or value.get("allOf")
    if alternatives:
        return " or ".join(dict.fromkeys(map(_type, alternatives)))
    kind = value.get("type")
    if kind == "array":
        items = value.get("items")
        return f"array of {_type(items)}" if items else "array"
    if isinstance(kind, list):
        return " or ".join(kind)
    return str(kind or "anything")


def _one_line(text: str) -> str:
    return " ".join(str(text).replace("``", "`").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
