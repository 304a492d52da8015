import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import ContextPrecision, ContextUtilization

VERDICTS = st.lists(st.integers(0, 1), max_size=8)


@given(VERDICTS)
def test_utilization_is_precision_with_the_answer_as_the_reference(verdicts: list[int]) -> None:
    answers = [{"reason": f"reason {rank}", "verdict": verdict} for rank, verdict in enumerate(verdicts)]
    contexts = [f"context {rank}" for rank in range(len(verdicts))]
    used, needed = ScriptedJudge(answers), ScriptedJudge(answers)
    utilization = ContextUtilization(used).score(user_input="Where?", response="Paris.", retrieved_contexts=contexts)
    precision = ContextPrecision(needed).score(user_input="Where?", reference="Paris.", retrieved_contexts=contexts)
    assert utilization == precision
    assert used.asked == needed.asked


async def test_blank_answer_scores_zero_without_a_request() -> None:
    judge = ScriptedJudge([])
    score = await ContextUtilization(judge).ascore(user_input="Where?", response=" ", retrieved_contexts=["a"])
    assert (score.value, score.reason, score.cost) == (0.0, "The answer is blank.", 0.0)
    assert judge.asked == []


async def test_blank_question_is_an_error() -> None:
    with pytest.raises(JudgeError, match="user_input is blank"):
        await ContextUtilization(ScriptedJudge([])).ascore(user_input="", response="a", retrieved_contexts=["a"])
