import re
from typing import Any

import pytest
from support.scripted_judges import ScriptedJudge

from graphrag_eval_lc.judges import ContextRecall
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError

GIVEN: dict[str, Any] = {
    "user_input": "Where is it?",
    "reference": "In Paris, on the Champ de Mars.",
    "retrieved_contexts": ["It stands in Paris.", "It was built in 1889."],
}


def statements(*attributed: int) -> dict[str, Any]:
    return {
        "statements": [
            {"statement": f"Statement {number}.", "reason": f"Reason {number}.", "attributed": value}
            for number, value in enumerate(attributed, start=1)
        ]
    }


async def test_value_is_the_share_of_statements_that_the_contexts_support() -> None:
    score = await ContextRecall(ScriptedJudge([statements(1, 0)])).ascore(**GIVEN)
    assert (score.value, score.cost) == (0.5, 0.01)
    assert score.reason == "Covered: Statement 1. Reason 1.\nNot covered: Statement 2. Reason 2."
    assert score.details == statements(1, 0)


async def test_all_contexts_are_in_one_request_each_in_its_own_fence() -> None:
    judge = ScriptedJudge([statements(1)])
    await ContextRecall(judge).ascore(**GIVEN)
    (request,) = judge.asked
    for name, text in {
        "question": GIVEN["user_input"],
        "reference_answer": GIVEN["reference"],
        "context_1": GIVEN["retrieved_contexts"][0],
        "context_2": GIVEN["retrieved_contexts"][1],
    }.items():
        assert re.search(rf"<({name}-\w+)>\n{re.escape(text)}\n</\1>", request.user)


async def test_blank_context_is_left_out() -> None:
    judge = ScriptedJudge([statements(1)])
    await ContextRecall(judge).ascore(**{**GIVEN, "retrieved_contexts": [None, "It stands in Paris.", " "]})
    assert "<context_1-" in judge.asked[0].user
    assert "<context_2-" not in judge.asked[0].user


@pytest.mark.parametrize(
    ("contexts", "value", "reason"),
    [([], 0.0, "Nothing was retrieved."), ([None, ""], None, "No retrieved context has a text.")],
)
async def test_without_text_there_is_no_request(contexts: Any, value: Any, reason: str) -> None:
    judge = ScriptedJudge([])
    score = await ContextRecall(judge).ascore(**{**GIVEN, "retrieved_contexts": contexts})
    assert (score.value, score.reason, score.cost) == (value, reason, 0.0)
    assert judge.asked == []


async def test_sentences_of_the_reference_are_used_if_the_model_lists_no_statements() -> None:
    judge = ScriptedJudge([statements(), statements(1, 0)])
    score = await ContextRecall(judge).ascore(**{**GIVEN, "reference": "- It is in Paris.\n- It is of iron."})
    assert (score.value, score.cost) == (0.5, 0.02)
    assert "It is in Paris.\nIt is of iron.\n</statements-" in judge.asked[1].user
    with pytest.raises(UnusableAnswerError, match="listed no statement of the reference answer, twice") as caught:
        await ContextRecall(ScriptedJudge([statements(), statements()])).ascore(**GIVEN)
    assert caught.value.cost == 0.02
