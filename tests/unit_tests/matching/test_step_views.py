"""How ``steps.kinds`` sets the kind of reference steps: it overrides media types and names, but not retrieval."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig, RetrievalConfig, StepsConfig, load_config
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.matching import StepKind, match_steps, register_step_kind
from graphrag_eval_lc.matching.step_views import StepViews

ROWS = json.dumps([{"name": "Oslo", "n": 5}, {"name": "Bergen", "n": 3}])
RENAMED = json.dumps([{"m": 3, "city": "Bergen"}, {"m": 5, "city": "Oslo"}])


def score(reference: dict[str, Any], output: str, tool: str = "graph", **options: Any) -> float | None:
    actual = {"name": tool, "args": {}, "id": "c1", "status": "success", "output": output}
    return match_steps([[{"name": "graph", **reference}]], [actual], **options).steps_score


@pytest.mark.parametrize("media_type", [None, "application/json", "text/plain"])
def test_config_makes_steps_rows_whatever_their_media_type(media_type: str | None) -> None:
    reference = {"output": ROWS, "output_media_type": media_type}
    assert (score(reference, RENAMED), score(reference, RENAMED, kinds={"graph": "rows"})) == (0.0, 1.0)


def test_step_with_ids_is_retrieval_and_otherwise_rows() -> None:
    retrieval = RetrievalConfig.model_validate({"steps": [{"name": "graph", "column": "id"}]})
    views = StepViews(StepsConfig(kinds={"graph": "rows"}), retrieval=retrieval)
    found = [
        views.kind_of(views.reference_view({"name": "graph", "output": json.dumps([row])})).key
        for row in ({"id": "d1"}, {"name": "Oslo"})
    ]
    assert found == ["retrieval", "rows"]


@pytest.mark.usefixtures("forget_matchers")
def test_registered_kinds_can_be_named() -> None:
    def match(reference: Any, actual: Any) -> float:
        return 0.5

    register_step_kind(StepKind(key="half", serves=(("half_step", None),), matcher=match))
    assert load_config({"steps": {"kinds": {"graph": "half"}}}).steps.kinds == {"graph": "half"}
    assert score({"output": "a"}, "b", kinds={"graph": "half"}) == 0.5


KNOWN = "There are rows, iri_discovery"


@pytest.mark.parametrize(
    ("config", "key", "what"),
    [
        (
            {"steps": {"kinds": {"graph": "row"}}},
            "steps.kinds.graph",
            r"unknown step kind 'row'.*Did you mean rows\? " + KNOWN,
        ),
        ({"steps": {"kinds": {"graph": "qqq"}}}, "steps.kinds.graph", rf"unknown step kind 'qqq'.*{KNOWN}.*--plugin"),
        (
            {"steps": {"kinds": {"find": "retrieval"}}},
            "steps.kinds.find",
            r"cannot be made retrieval here.*retrieval\.steps",
        ),
        (
            {"steps": {"kinds": {"retrieval": "json"}}},
            "steps.kinds.retrieval",
            "steps of retrieval are compared by their documents. Remove it here",
        ),
        (
            {"steps": {"kinds": {"docs": "json"}}, "retrieval": {"steps": ["docs"]}},
            "steps.kinds.docs",
            "steps of docs are compared by their documents",
        ),
    ],
)
def test_unknown_kind_is_one_error_with_the_nearest_name(config: Any, key: str, what: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){what}") as raised:
        load_config(config)
    assert raised.value.key == key


def test_steps_are_read_without_their_kinds_if_the_plugin_is_missing() -> None:
    config = EvaluationConfig.model_validate({"steps": {"kinds": {"graph": "of_a_plugin"}}})
    views = StepViews(config.steps)
    assert views.kind_of(views.reference_view({"name": "graph"})).key == "text"
