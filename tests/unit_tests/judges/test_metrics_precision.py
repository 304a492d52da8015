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


def test_eiffel_tower_contexts_score_one_and_half_with_the_irrelevant_one_first() -> None:
    assert precision_of([1, 0], [PARIS, BERLIN]).value == 1.0
    assert precision_of([0, 1], [BERLIN, PARIS]).value == 0.5


async def test_one_request_is_sent_for_each_context_with_only_that_context_in_it() -> None:
    judge = ScriptedJudge([verdict(1, "It names Paris."), verdict(0, "It is about Berlin.")])
    score = await ContextPrecision(judge).ascore(
        user_input=QUESTION, reference=REFERENCE, retrieved_contexts=[PARIS, BERLIN]
    )
    assert [(PARIS in asked.user, BERLIN in asked.user) for asked in judge.asked] == [(True, False), (False, True)]
    assert all(QUESTION in asked.user and REFERENCE in asked.user for asked in judge.asked)
    assert score.reason == "1. Of use: It names Paris.\n2. Of no use: It is about Berlin."
    assert score.details == {"verdicts": [1, 0], "reasons": ["It names Paris.", "It is about Berlin."]}
    assert score.cost == pytest.approx(0.02)


async def test_contexts_are_asked_about_at_the_same_time() -> None:
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


def test_beginning_of_the_prompt_is_the_same_for_all_contexts_so_that_a_provider_can_cache_it() -> None:
    judge = ScriptedJudge([verdict(1)] * 2)
    ContextPrecision(judge).score(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=[PARIS, BERLIN])
    beginnings = {asked.user.partition("<context-")[0] for asked in judge.asked}
    assert len(beginnings) == 1
    assert REFERENCE in beginnings.pop()


def test_contexts_without_any_text_are_not_measured() -> None:
    score = precision_of([], [None, " "])
    assert (score.value, score.cost, score.reason) == (None, 0.0, "No retrieved context has a text.")


def test_context_without_a_text_keeps_its_rank_and_is_of_no_use() -> None:
    score = precision_of([1], [None, PARIS])
    assert (score.value, score.details["verdicts"], score.cost) == (0.5, [0, 1], 0.01)


async def test_error_on_one_context_is_raised_after_all_answers_are_in_with_what_they_cost() -> None:
    judge = ScriptedJudge([JudgeError("refused"), verdict(1), UnusableAnswerError("cut off", cost=0.005)])
    metric = ContextPrecision(judge)
    with pytest.raises(UnusableAnswerError, match="refused") as raised:
        await metric.ascore(user_input=QUESTION, reference=REFERENCE, retrieved_contexts=["a", "b", "c"])
    assert len(judge.asked) == 3
    assert raised.value.cost == pytest.approx(0.015)


async def test_error_that_is_not_of_the_judge_is_handed_on_as_it_is() -> None:
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
async def test_input_that_cannot_be_judged_is_an_error_without_a_request(broken: dict[str, Any], message: str) -> None:
    judge = ScriptedJudge([])
    given_input: dict[str, Any] = {"user_input": QUESTION, "reference": REFERENCE, "retrieved_contexts": [PARIS]}
    with pytest.raises(JudgeError, match=message):
        await ContextPrecision(judge).ascore(**{**given_input, **broken})
    assert judge.asked == []


@given(VERDICTS)
def test_best_order_has_the_useful_first_and_the_worst_has_them_last(verdicts: list[int]) -> None:
    best, worst = mean_precision(sorted(verdicts, reverse=True)), mean_precision(sorted(verdicts))
    assert best == (1.0 if any(verdicts) else 0.0)
    assert worst <= mean_precision(verdicts) + 1e-12
    assert mean_precision(verdicts) <= best


@given(VERDICTS)
def test_utilization_is_precision_with_the_answer_as_the_reference(verdicts: list[int]) -> None:
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
