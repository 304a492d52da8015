import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_judges import ScriptedEmbeddings, ScriptedJudge

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import AnswerRelevance, JudgeScore
from graphrag_eval_lc.judges.metrics import cosine_similarity
from graphrag_eval_lc.judges.model_interface import Asked, UnusableAnswerError

VECTORS = {"Where?": (1.0, 0.0), "a": (2.0, 0.0), "b": (0.0, 3.0), "c": (-1.0, 0.0), "none": (0.0, 0.0)}


def written(*questions: str, noncommittal: int = 0) -> dict[str, Any]:
    return {"questions": list(questions), "noncommittal": noncommittal}


async def relevance(judge: ScriptedJudge, embeddings: ScriptedEmbeddings, response: str = "Paris.") -> JudgeScore:
    return await AnswerRelevance(judge, embeddings).ascore(user_input="Where?", response=response)


async def test_value_is_the_mean_similarity_to_the_actual_question() -> None:
    judge, embeddings = ScriptedJudge([written(*"aab")]), ScriptedEmbeddings(VECTORS)
    score = await relevance(judge, embeddings)
    assert score.value == pytest.approx(2 / 3)
    assert score.cost == pytest.approx(0.011)
    assert score.reason == "The answer replies to:\na\na\nb"
    assert score.details == {"questions": ["a", "a", "b"], "noncommittal": 0, "similarities": [1.0, 1.0, 0.0]}


OTHERS = {"far": (0.0, 1.0), "near": (1.0, 0.1), "away": (-1.0, 0.0), "up": (0.0, 2.0), "down": (0.0, -1.0)}


async def test_other_questions_provide_a_baseline_and_a_rank() -> None:
    embeddings = ScriptedEmbeddings({**VECTORS, **OTHERS})
    judge = ScriptedJudge([written("a", "a", "a"), written("near", "near", "near")])
    metric = AnswerRelevance(judge, embeddings)
    questions = ("Where?", *OTHERS)
    first, second = [await metric.ascore(user_input="Where?", response="x", others=questions) for _ in range(2)]
    near = 1 / math.hypot(1.0, 0.1)
    assert first.details["baseline"] == pytest.approx((0 + near - 1 + 0 + 0) / 5)
    assert (first.details["rank"], second.details["rank"]) == (1, 2)
    assert second.value == pytest.approx(near)
    # All questions are embedded once, and each answer is charged its share.
    assert embeddings.asked == [["Where?", "a", "a", "a"], [*questions], ["Where?", "near", "near", "near"]]
    assert (first.cost, second.cost) == (pytest.approx(0.011 + 0.001 / 6),) * 2


async def test_with_few_other_questions_there_is_no_baseline() -> None:
    embeddings = ScriptedEmbeddings(VECTORS)
    score = await AnswerRelevance(ScriptedJudge([written(*"aab")]), embeddings).ascore(
        user_input="Where?", response="x", others=["Where?", "a", "b", "c", "none"]
    )
    assert "baseline" not in score.details
    assert len(embeddings.asked) == 1


async def test_unusable_vectors_of_other_questions_do_not_affect_the_value() -> None:
    vectors = {**VECTORS, **OTHERS, "up": (0.0, 0.0)}
    score = await AnswerRelevance(ScriptedJudge([written(*"aab")]), ScriptedEmbeddings(vectors)).ascore(
        user_input="Where?", response="x", others=list(OTHERS)
    )
    assert score.value == pytest.approx(2 / 3)
    assert "baseline" not in score.details


async def test_at_most_200_other_questions_are_embedded() -> None:
    questions = [f"question {number}" for number in range(450)]
    embeddings = ScriptedEmbeddings({**VECTORS, **dict.fromkeys(questions, (1.0, 1.0))})
    await AnswerRelevance(ScriptedJudge([written(*"aab")]), embeddings).ascore(
        user_input="Where?", response="x", others=questions
    )
    assert embeddings.asked[1] == questions[::3]


async def test_model_does_not_see_the_actual_question() -> None:
    judge = ScriptedJudge([written(*"abc")])
    await relevance(judge, ScriptedEmbeddings(VECTORS))
    assert "Where?" not in judge.asked[0].system + judge.asked[0].user


async def test_noncommittal_answer_scores_zero_without_embeddings() -> None:
    embeddings = ScriptedEmbeddings({})
    score = await relevance(ScriptedJudge([written(*"aaa", noncommittal=1)]), embeddings)
    assert (score.value, score.reason, score.cost) == (0.0, "The answer is noncommittal.", 0.01)
    assert embeddings.asked == []


@pytest.mark.parametrize("questions", [(), ("", " ")])
async def test_without_generated_questions_the_score_is_zero(questions: tuple[str, ...]) -> None:
    score = await relevance(ScriptedJudge([written(*questions)]), ScriptedEmbeddings({}))
    assert (score.value, score.reason) == (0.0, "The model found no question that it replies to.")


async def test_blank_answer_scores_zero_without_a_request() -> None:
    judge = ScriptedJudge([])
    score = await relevance(judge, ScriptedEmbeddings({}), response="\n")
    assert (score.value, score.reason, score.cost) == (0.0, "The answer is blank.", 0.0)
    assert judge.asked == []


@pytest.mark.parametrize("vector", [(0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)])
async def test_zero_vector_is_an_error_and_not_nan(vector: tuple[float, float]) -> None:
    with pytest.raises(JudgeError, match="without a direction"):
        await relevance(ScriptedJudge([written("a")]), ScriptedEmbeddings({**VECTORS, "a": vector}))


async def test_error_of_the_embedding_model_has_the_cost_of_the_questions() -> None:
    class Broken(ScriptedEmbeddings):
        async def aembed(self, texts: Sequence[str]) -> Asked:
            raise JudgeError("endpoint gone")

    with pytest.raises(UnusableAnswerError, match="endpoint gone") as raised:
        await relevance(ScriptedJudge([written("a")]), Broken({}))
    assert raised.value.cost == 0.01


NUMBERS = st.floats(-1e3, 1e3).filter(lambda number: abs(number) > 1e-3)
PAIRS = st.integers(1, 8).flatmap(lambda size: st.tuples(*[st.lists(NUMBERS, min_size=size, max_size=size)] * 2))


@given(PAIRS, st.floats(0.1, 1e3))
def test_cosine_is_symmetric_bounded_and_scale_invariant(
    vectors: tuple[list[float], list[float]], scale: float
) -> None:
    left, right = vectors
    cosine = cosine_similarity(left, right)
    assert -1.0 <= cosine <= 1.0
    assert cosine == pytest.approx(cosine_similarity(right, left))
    assert cosine_similarity(left, left) == pytest.approx(1.0)
    assert cosine_similarity([scale * number for number in left], right) == pytest.approx(cosine, abs=1e-9)
