"""How the media type of a reference step is interpreted: case, parameters, misspellings, and none."""

from collections.abc import Callable
from typing import Any

import pytest

from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.matching import StepKind, match_steps, register_step_kind
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.step_views import media_type_of
from graphrag_eval_lc.registry.step_kinds import near_media_types

SPARQL = "application/sparql-results+json"


def rows(column: str) -> str:
    head, cell = f'{{"vars": ["{column}"]}}', f'{{"{column}": {{"type": "literal", "value": "x"}}}}'
    return f'{{"head": {head}, "results": {{"bindings": [{cell}]}}}}'


ROWS = rows("n")


def interpreted(media_type: Any, name: str = "run_sparql", output: Any = ROWS) -> str | None:
    return media_type_of(StepView({"name": name, "output": output, "output_media_type": media_type}))


@pytest.mark.parametrize(
    "media_type",
    [
        SPARQL,
        "application/sparql-results+json; charset=utf-8",
        "Application/SPARQL-Results+JSON",
        " application/sparql-results+json",
        "aplication/sparql-results+json",
        "application/sparql-result+json",
        "application/sparql-resluts+json",
        "application/sparql+json",
        "application/sparql-results",
    ],
)
def test_sparql_results_with_a_misspelt_media_type_are_compared_as_rows(media_type: str) -> None:
    assert interpreted(media_type) == SPARQL
    reference = {"name": "run_sparql", "output": rows("n"), "output_media_type": media_type}
    actual = {"name": "run_sparql", "output": rows("other_name"), "status": "success"}
    assert match_steps([[reference]], [actual]).steps_score == 1.0


def constant(score: float) -> Callable[[Any, Any], float]:
    return lambda reference, actual: score


@pytest.mark.usefixtures("forget_matchers")
def test_failed_parse_of_a_registered_kind_does_not_fail_the_comparison() -> None:
    def broken(output: Any) -> Any:
        raise KeyError(output)

    register_step_kind(StepKind(key="t", serves=((None, "text/mine"),), matcher=constant(1.0), parse=broken))
    assert interpreted("text/mines") == "text/mines"
    assert near_media_types("text/mines") == ["text/mine"]


# --- statuses and names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [["add"], {"add": 1}])
def test_list_as_a_step_name_is_one_clear_error(name: Any) -> None:
    with pytest.raises(DatasetError, match=r"key reference_steps\[0\]\[0\]\.name: the name of a reference step is"):
        match_steps([[{"name": name, "output": "3"}]], [])
