from typing import Any

from support.report_samples import step, table

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.questions import answer_values
from graphrag_eval_lc.report.steps import SampleSteps

AT = "call_sparql_query/row"


def shown(*values: Any) -> Any:
    steps = [step("lookup", "x"), step("sparql_query", table("T1", "T2\u202e"))]
    return answer_values(SampleSteps({"actual_steps": steps, "answer_values": list(values)}, load_config(None)))


def value(text: str, verdict: str, at: str | None = None) -> dict[str, Any]:
    return {"text": text, "kind": "name", "verdict": verdict} | ({} if at is None else {"at": at})


def test_values_are_linked_to_their_rows_without_duplicate_rows() -> None:
    found = shown(
        value("T1", "row", f"{AT} 1/name"),
        value("t1", "row", f"{AT} 1/name"),
        value("T2", "row", f"{AT} 2/name"),
        value("2", "count", "call_sparql_query/rows"),
        value("T9", "none"),
    )
    assert [(each.get("row"), each.get("column")) for each in found["values"]] == [
        (0, "name"), (0, "name"), (1, "name"), (None, None), (None, None),
    ]  # fmt: skip
    assert found["rows"] == [
        {"address": "sparql_query, call 2, row 1", "columns": ["name"], "cells": ["T1"]},
        {"address": "sparql_query, call 2, row 2", "columns": ["name"], "cells": ["T2⟨U+202E⟩"]},
    ]


def test_malformed_or_missing_evidence_is_skipped() -> None:
    found = shown("T1", {"text": 5}, value("T1", "row", f"{AT} 99/name"), value("T2\u202e", "row", "gone/row 1/name"))
    assert [each["text"] for each in found["values"]] == ["T1", "T2⟨U+202E⟩"]
    assert found["rows"] == []
    assert shown() is None
