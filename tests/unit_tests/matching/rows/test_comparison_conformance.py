"""The comparator gives the scores of the shared vectors."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import SparqlComparison, compare_sparql_results, match_row_steps

FOLDER = os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR")
KEY_OF_MODE = {False: "correct_if_kind_datatype_lang_ignored", True: "correct"}

pytestmark = pytest.mark.skipif(FOLDER is None, reason="GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set")


def vectors(name: str) -> list[Any]:
    if FOLDER is None:
        return []
    cases = json.loads((Path(FOLDER) / "vectors" / name).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["id"]) for case in cases]


IN_NFC = {"sparql-text-002"}
"""Texts that are equal in the Unicode normal form C, which the vectors do not know."""


def compared(case: dict[str, Any], strict: bool) -> SparqlComparison:
    given = case["input"]
    return compare_sparql_results(
        given["reference"],
        given["actual"],
        given["required_columns"],
        ordered=given["ordered"],
        ignore_duplicates=given["ignore_duplicates"],
        strict=strict,
        values={"nfc": case["id"] not in IN_NFC},
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["sparql_match.json", "sparql_disagreements.json"])
def test_vectors_that_are_settled(name: str, strict: bool) -> None:
    cases = [case for param in vectors(name) for case in param.values if not case["expected"]["ambiguous"]]
    assert len(cases) >= 60
    scores = {case["id"]: compared(case, strict).score for case in cases}
    assert scores == {case["id"]: case["expected"][KEY_OF_MODE[strict]] for case in cases}


@pytest.mark.parametrize("case", vectors("sparql_match.json") + vectors("sparql_disagreements.json"))
def test_no_vector_raises_and_each_has_a_reason(case: dict[str, Any]) -> None:
    for strict in (False, True):
        found = compared(case, strict)
        assert found.reason.endswith(".")
        assert (found.row_f1 == 1.0) >= (found.score == 1.0)
    if case["id"] in IN_NFC:
        return
    steps = match_row_steps(
        StepView({"name": "sparql_query", "output": json.dumps(case["input"]["reference"]), **case["input"]}),
        StepView({"name": "sparql_query", "output": json.dumps(case["input"]["actual"])}),
    )
    assert steps.score == compared(case, strict=False).score
    assert (steps.closeness() == 1.0) == (steps.score == 1.0)
