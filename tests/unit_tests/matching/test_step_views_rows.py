"""Which steps are told how rows are compared."""

from typing import Any

import pytest

from graphrag_eval_lc.config import RowsConfig, StepsConfig
from graphrag_eval_lc.matching.step_views import StepViews

ROWS = RowsConfig(node_keys=["iri"])
RESULTS = '{"head": {"vars": []}, "results": {"bindings": []}}'
QUERY = {"name": "sparql_query", "output": RESULTS}


def rows_of(step: dict[str, Any], rows: RowsConfig) -> Any:
    return StepViews(StepsConfig(rows=rows)).reference_view(step).get("rows")


def test_a_step_of_rows_is_told_by_which_keys_nodes_are_compared() -> None:
    assert rows_of(QUERY, ROWS) is ROWS
    assert rows_of({**QUERY, "rows": ["of somebody's own"]}, ROWS) is ROWS


@pytest.mark.parametrize("rows", [ROWS, RowsConfig()])
def test_a_step_of_another_kind_keeps_its_own_key(rows: RowsConfig) -> None:
    assert rows_of({"name": "add", "output": "3"}, rows) is None
    assert rows_of({"name": "add", "output": "3", "rows": ["b"]}, rows) == ["b"]


def test_nothing_is_told_where_nothing_is_said() -> None:
    assert rows_of(QUERY, RowsConfig()) is None
