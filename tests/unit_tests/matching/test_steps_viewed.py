from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import match_viewed_steps

CONFIG = EvaluationConfig.model_validate({"steps": {"scoring": "all_groups", "names": {"lookup": "find"}}})
REFERENCE = [[{"name": "find", "output": "a"}], [{"name": "add", "output": "3"}]]
RESPONSES = [
    [("lookup", "a"), ("add", "3")],
    [("add", "3"), ("find", "a")],
    [("lookup", "b")],
]


def steps_of(calls: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "args": {}, "id": str(at), "status": "success", "output": output}
        for at, (name, output) in enumerate(calls)
    ]


@pytest.mark.parametrize("calls", RESPONSES)
def test_views_made_once_match_as_those_made_for_each_question(calls: list[tuple[str, str]]) -> None:
    views = StepViews(CONFIG.steps, CONFIG.sparql, CONFIG.retrieval)
    for _ in range(2):
        viewed = match_viewed_steps(REFERENCE, steps_of(calls), CONFIG.steps, views)
        alone = match_steps(REFERENCE, steps_of(calls), scoring="all_groups", names={"lookup": "find"})

        assert viewed.steps_score == alone.steps_score
        assert viewed.matches == alone.matches
        assert viewed.diagnosis == alone.diagnosis
