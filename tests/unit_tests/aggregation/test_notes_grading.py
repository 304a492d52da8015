import pytest

from graphrag_eval_lc.aggregation.notes import grading_change, grading_note
from graphrag_eval_lc.config import EvaluationConfig

GRADED = {"steps": {"grading": "graded"}}


def test_only_graded_steps_need_a_word() -> None:
    assert grading_note(EvaluationConfig()) is None


@pytest.mark.parametrize("unsaid", [{}, {"steps": {}}, {"steps": None}, {"steps": {"grading": "binary"}}])
def test_a_config_that_does_not_say_is_binary(unsaid: dict[str, object]) -> None:
    assert grading_change(unsaid, {"steps": {"grading": "binary"}}) is None
    assert "graded now and were binary before" in str(grading_change(unsaid, GRADED))
    assert "binary now and were graded before" in str(grading_change(GRADED, unsaid))
