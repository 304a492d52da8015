"""Columns with cells that cannot be read: they count only if they are required."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import compare_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS

OSLO = {"type": "literal", "value": "Oslo"}
URN = {"type": "uri", "value": "urn:a"}
TRIPLE = {"type": "triple", "value": {"s": URN, "p": URN, "o": URN}}
JUNK = [[1], {"type": "literal"}, TRIPLE, 5, "\ud800", {"type": "", "value": "x"}]
MODES: list[dict[str, Any]] = [{}, {"ordered": True}, {"ignore_duplicates": False}, {"strict": True}]


def select(variables: list[str], *bindings: Any) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": bindings and list(bindings)}}


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_columns_that_do_not_count_never_void_a_comparison(junk: Any, mode: dict[str, Any]) -> None:
    reference = select(["n", "free"], {"n": OSLO, "free": junk})
    assert (
        compare_sparql_results(reference, select(["free", "m"], {"free": junk, "m": OSLO}), ["n"], **mode).score == 1.0
    )
    found = compare_sparql_results(reference, select(["free", "m"], {"free": junk, "m": URN}), ["n"], **mode)
    assert (found.score, found.unreadable) == (0.0, None)


def test_too_few_columns_that_can_be_read_are_unreadable() -> None:
    reference = select(["m", "n"], {"m": URN, "n": OSLO})
    found = compare_sparql_results(reference, select(["m", "n"], {"m": URN, "n": [1]}))
    assert found.unreadable == "column `n` cannot be read: its cell in row 1 is a list instead of an RDF term"
    assert found.unreadable in found.reason
    fewer = compare_sparql_results(reference, select(["n"], {"n": [1]}))
    assert (fewer.score, fewer.unreadable) == (0.0, None)


@pytest.mark.parametrize("required", [None, ["n"]])
def test_a_required_column_that_cannot_be_read_is_the_fault_of_the_reference(required: list[str] | None) -> None:
    reference = select(["m", "n"], {"m": URN, "n": [1]})
    found = compare_sparql_results(reference, select(["n"], {"n": OSLO}), required)
    assert found.reason.startswith("The reference output in the dataset is at fault: its column `n` cannot be read")
    assert found.unreadable is None


def test_reasons_say_what_was_allowed() -> None:
    reference, untyped = select(["n"], {"n": OSLO}), select(["n"], {"n": {"value": "Oslo"}})
    note = '1 cell without a "type" (first: "n" in row 1)'
    assert compare_sparql_results(reference, untyped).reason.endswith(f"; read with allowances: {note}.")
    assert f"the reference was read with allowances: {note}" in compare_sparql_results(untyped, reference).reason


def test_a_drafted_step_requires_only_columns_that_can_be_read() -> None:
    assert ROWS.draft is not None
    output = select(["m", "n"], {"m": URN, "n": [1]})
    step = ROWS.draft({"name": "sparql_query", "args": {}, "output": json.dumps(output)}, [])
    assert step is not None
    assert step["required_columns"] == ["m"]
    assert StepView(step).get("output") is not None


CELLS: list[Any] = [OSLO, URN, {"type": "bnode", "value": "b"}, {"type": "literal", "value": "5"}, TRIPLE, None]
TABLES = st.lists(st.tuples(*[st.sampled_from(CELLS)] * 2), min_size=1, max_size=3)


def _rows(table: list[tuple[Any, ...]], names: str) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in zip(names, row, strict=True) if cell is not None} for row in table]


@given(TABLES, TABLES, st.sampled_from(JUNK), st.sampled_from(MODES))
def test_a_free_column_of_anything_never_changes_a_verdict(
    mine: list[tuple[Any, ...]], others: list[tuple[Any, ...]], junk: Any, mode: dict[str, Any]
) -> None:
    reference, actual = select(["a", "b"], *_rows(mine, "ab")), select(["x", "y"], *_rows(others, "xy"))
    before = compare_sparql_results(reference, actual, **mode).score
    free = select(["free", "a", "b"], *({**row, "free": junk} for row in _rows(mine, "ab")))
    assert compare_sparql_results(free, actual, ["a", "b"], **mode).score == before
    after = compare_sparql_results(
        reference, select(["x", "y", "free"], *({**row, "free": junk} for row in _rows(others, "xy"))), **mode
    )
    assert after.score == before or "free" in after.columns.values()
    assert compare_sparql_results(reference, reference, **mode).score == 1.0
