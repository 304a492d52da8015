from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.matching.step_views import StepViews

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
def test_a_result_is_the_same_with_views_made_once(calls: list[tuple[str, str]]) -> None:
    views = StepViews(CONFIG.steps, CONFIG.sparql, CONFIG.retrieval)
    question: Any = {"id": "q", "question_text": "?", "reference_steps": REFERENCE}
    template: Any = {"template_id": "t", "questions": [question]}
    response: Any = {"question_id": "q", "actual_steps": steps_of(calls)}

    assert evaluate_question(template, question, response, CONFIG, views=views) == evaluate_question(
        template, question, response, CONFIG
    )
