import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import ContextPrecision, ContextUtilization
from graphrag_eval_lc.judges.metrics import mean_precision
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError

QUESTION = "Where is the Eiffel Tower?"
REFERENCE = "The Eiffel Tower is in Paris."
PARIS = "The Eiffel Tower stands on the Champ de Mars in Paris."
BERLIN = "The Brandenburg Gate stands in Berlin."
VERDICTS = st.lists(st.integers(0, 1), max_size=12)


def verdict(value: int, reason: str = "Because.") -> dict[str, Any]:
    return {"reason": reason, "verdict": value}


def precision_of(verdicts: list[int], contexts: list[str | None]) -> Any:
    judge = ScriptedJudge(list(map(verdict, verdicts)))
    return ContextPrecision(judge).score(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=contexts)


def test_irrelevant_context_in_first_place_halves_the_score() -> None:
    assert precision_of([1, 0], [PARIS, BERLIN]).value == 1.0
    assert precision_of([0, 1], [BERLIN, PARIS]).value == 0.5


async def test_each_context_has_its_own_request() -> None:
    judge = ScriptedJudge([verdict(1, "It names Paris."), verdict(0, "It is about Berlin.")])
    score = await ContextPrecision(judge).ascore(
        user_input=QUESTION, reference=REFERENCE, retrieved_contexts=[PARIS, BERLIN]
    )
    assert [(PARIS in request.user, BERLIN in request.user) for request in judge.asked] == [
        (True, False),
        (False, True),
    ]
    assert all(QUESTION in request.user and REFERENCE in request.user for request in judge.asked)
    assert score.reason == "1. Of use: It names Paris.\n2. Of no use: It is about Berlin."
    assert score.details == {"verdicts": [1, 0], "reasons": ["It names Paris.", "It is about Berlin."]}
    assert score.cost == pytest.approx(0.02)


async def test_contexts_are_judged_concurrently() -> None:
    class Meeting(ScriptedJudge):
        async def aask(self, system: str, user: str, schema: Any) -> Any:
            answer = await super().aask(system, user, schema)
            if len(self.asked) == 3:
                everyone.set()
            await asyncio.wait_for(everyone.wait(), 30)
            return answer

    everyone = asyncio.Event()
    judge = Meeting([verdict(1)] * 3)
    score = await ContextPrecision(judge).ascore(
        user_input=QUESTION, reference=REFERENCE, retrieved_contexts=["a", "b", "c"]
    )
    assert score.value == 1.0


def test_prompts_share_a_prefix_that_providers_can_cache() -> None:
    judge = ScriptedJudge([verdict(1)] * 2)
    ContextPrecision(judge).score(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=[PARIS, BERLIN])
    beginnings = {request.user.partition("<context-")[0] for request in judge.asked}
    assert len(beginnings) == 1
    assert REFERENCE in beginnings.pop()


def test_without_any_text_there_is_no_value() -> None:
    score = precision_of([], [None, " "])
    assert (score.value, score.cost, score.reason) == (None, 0.0, "No retrieved context has a text.")


def test_blank_context_keeps_its_rank_and_is_not_useful() -> None:
    score = precision_of([1], [None, PARIS])
    assert (score.value, score.details["verdicts"], score.cost) == (0.5, [0, 1], 0.01)


async def test_error_on_one_context_is_raised_at_the_end_with_all_costs() -> None:
    judge = ScriptedJudge([JudgeError("refused"), verdict(1), UnusableAnswerError("cut off", cost=0.005)])
    metric = ContextPrecision(judge)
    with pytest.raises(UnusableAnswerError, match="refused") as raised:
        await metric.ascore(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=["a", "b", "c"])
    assert len(judge.asked) == 3
    assert raised.value.cost == pytest.approx(0.015)


async def test_other_exceptions_are_raised_unchanged() -> None:
    metric = ContextPrecision(ScriptedJudge([JudgeError("refused"), KeyError("bug")]))
    with pytest.raises(KeyError, match="bug"):
        await metric.ascore(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=["a", "b"])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"user_input": " "}, "user_input is blank"),
        ({"reference": ""}, "reference is blank"),
        ({"retrieved_contexts": "one text"}, "retrieved_contexts must be a list of texts, not str"),
        ({"retrieved_contexts": None}, "retrieved_contexts must be a list of texts, not NoneType"),
        ({"retrieved_contexts": ["a", {"text": "b"}]}, "retrieved context 2 must be a text, not dict"),
    ],
)
async def test_invalid_input_is_an_error_without_a_request(broken: dict[str, Any], message: str) -> None:
    judge = ScriptedJudge([])
    inputs: dict[str, Any] = {"user_input": QUESTION, "reference": REFERENCE, "retrieved_contexts": [PARIS]}
    with pytest.raises(JudgeError, match=message):
        await ContextPrecision(judge).ascore(**{**inputs, **broken})
    assert judge.asked == []


@given(VERDICTS)
def test_score_is_highest_with_useful_contexts_first_and_lowest_with_them_last(verdicts: list[int]) -> None:
    best, worst = mean_precision(sorted(verdicts, reverse=True)), mean_precision(sorted(verdicts))
    assert best == (1.0 if any(verdicts) else 0.0)
    assert worst <= mean_precision(verdicts) + 1e-12
    assert mean_precision(verdicts) <= best


@given(VERDICTS)
def test_utilization_equals_precision_with_the_answer_as_the_reference(verdicts: list[int]) -> None:
    answers = [{"reason": f"reason {rank}", "verdict": verdict} for rank, verdict in enumerate(verdicts)]
    contexts = [f"context {rank}" for rank in range(len(verdicts))]
    used, needed = ScriptedJudge(answers), ScriptedJudge(answers)
    utilization = ContextUtilization(used).score(user_input="Where?", response="Paris.", retrieved_contexts=contexts)
    precision = ContextPrecision(needed).score(user_input="Where?", reference="Paris.", retrieved_contexts=contexts)
    assert utilization == precision
    assert used.asked == needed.asked


async def test_utilization_of_a_blank_answer_is_zero_without_a_request() -> None:
    judge = ScriptedJudge([])
    score = await ContextUtilization(judge).ascore(user_input="Where?", response=" ", retrieved_contexts=["a"])
    assert (score.value, score.reason, score.cost) == (0.0, "The answer is blank.", 0.0)
    assert judge.asked == []
