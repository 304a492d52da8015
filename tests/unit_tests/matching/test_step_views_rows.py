"""How rows are compared, as the config says, reaches the comparison and touches no key of a step."""

import json
from typing import Any

from graphrag_eval_lc.config import RowsConfig, StepsConfig
from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.matching.step_views import StepViews


def score(reference: Any, actual: Any, rows: RowsConfig) -> float | None:
    step = {"name": "cypher_query", "output": json.dumps([{"n": reference}])}
    made = {"name": "cypher_query", "args": {}, "status": "success", "output": json.dumps([{"n": actual}])}
    return match_steps([[step]], [made], rows=rows).steps_score


def test_node_keys_tell_which_properties_of_nodes_are_compared() -> None:
    one, other = {"iri": "urn:a", "seen": 1}, {"iri": "urn:a", "seen": 2}
    assert score(one, other, RowsConfig()) == 0.0
    assert score(one, other, RowsConfig(node_keys=["iri"])) == 1.0


def test_list_order_tells_whether_the_order_in_lists_counts() -> None:
    assert score(["a", "b"], ["b", "a"], RowsConfig()) == 0.0
    assert score(["a", "b"], ["b", "a"], RowsConfig(list_order=False)) == 1.0


def test_keys_of_a_step_stay_its_own() -> None:
    views = StepViews(StepsConfig(rows=RowsConfig(node_keys=["iri"])))
    assert views.reference_view({"name": "add", "output": "3", "rows": ["b"]}).get("rows") == ["b"]
    assert "rows" not in views.reference_view({"name": "cypher_query", "output": "[]"})
