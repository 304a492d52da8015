"""The objects in which Neo4j's HTTP APIs wrap rows: the Query API, and the transactional API before it."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.matching.rows.tabular_json import NamedRows


def neo4j_rows(value: Mapping[Any, Any]) -> NamedRows | None:
    """Return the rows in an object of Neo4j's HTTP APIs; None where it is none of theirs.

    Example:
        >>> neo4j_rows({"data": {"fields": ["n"], "values": [[1], [2]]}}).rows
        [[1], [2]]
        >>> neo4j_rows({"results": [{"columns": ["n"], "data": [{"row": [1], "meta": [None]}]}], "errors": []}).names
        ['n']
    """
    data = value.get("data")
    if isinstance(data, Mapping) and "fields" in data:
        return _checked(data["fields"], data.get("values"), "Neo4j's Query API")
    if "fields" in value and "values" in value:
        return _checked(value["fields"], value["values"], "Neo4j's Query API")
    results = value.get("results")
    statement = results[0] if isinstance(results, list) and len(results) == 1 else value
    if not isinstance(statement, Mapping) or "columns" not in statement or not isinstance(statement.get("data"), list):
        return None
    rows = statement["data"]
    if not all(isinstance(row, Mapping) and isinstance(row.get("row"), list) for row in rows):
        return None
    return _checked(statement["columns"], [_with_kinds(row) for row in rows], "Neo4j's HTTP API")


def _checked(names: Any, rows: Any, form: str) -> NamedRows | None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return NamedRows(names, rows, form) if names and len(set(names)) == len(names) else None


def _with_kinds(row: Mapping[Any, Any]) -> list[Any]:
    """Return the cells of a row, in which relationships are told from maps where its ``meta`` says so."""
    cells, meta = row["row"], row.get("meta")
    if not isinstance(meta, list) or len(meta) != len(cells):
        return list(cells)
    return [_with_kind(cell, about) for cell, about in zip(cells, meta, strict=True)]


def _with_kind(cell: Any, about: Any) -> Any:
    if isinstance(cell, list) and isinstance(about, list) and len(cell) == len(about):
        return [_with_kind(each, its) for each, its in zip(cell, about, strict=True)]
    if isinstance(cell, Mapping) and isinstance(about, Mapping) and about.get("type") == "relationship":
        return {"$type": "Relationship", "_value": {"_properties": cell}}
    return cell
