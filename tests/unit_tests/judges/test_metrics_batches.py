"""Contexts in batches: each has its verdict, and the requests stay few."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges import ContextPrecision
from graphrag_eval_lc.judges.metrics import NumberedVerdicts
from graphrag_eval_lc.judges.model_interface import Asked, CutAnswerError, TooLongError, UnusableAnswerError

USEFUL = "PARIS"


class ReadingJudge:
    """Finds contexts with a keyword useful; limits message length and verdicts per request, and can omit verdicts."""

    name = "reading:judge"

    def __init__(self, *, max_length: int | None = None, forgets: int = 0, max_verdicts: int | None = None) -> None:
        self.messages: list[str] = []
        self.refused = 0
        self._longest = max_length
        self._forgets = forgets
        self._most = max_verdicts

    async def aask(self, system: str, user: str, schema: Any) -> Asked[Any]:
        if self._longest is not None and len(user) > self._longest:
            self.refused += 1
            raise TooLongError("the texts are too long for reading:judge", cost=0.0)
        self.messages.append(user)
        contexts = re.findall(r"<(context[_\d]*-\w+)>\n(.*?)\n</\1>", user, re.DOTALL)
        verdicts = [
            {"context": number, "reason": "Read.", "verdict": int(USEFUL in text)}
            for number, (_, text) in enumerate(contexts, start=1)
        ]
        if schema is not NumberedVerdicts:
            verdicts[0].pop("context")
            return Asked(schema.model_validate(verdicts[0]), 0.01)
        if self._most is not None and len(verdicts) > self._most:
            raise CutAnswerError("it did not come to its end", cost=0.01)
        returned, self._forgets = verdicts[: max(0, len(verdicts) - self._forgets)], 0
        return Asked(schema.model_validate({"verdicts": returned}), 0.01)


def judged(judge: ReadingJudge, texts: list[str], batch: int, answer: str = "It is in PARIS.") -> list[int]:
    metric = ContextPrecision(judge, batch=batch)
    score = run_sync(lambda: metric.ascore(user_input="Where?", reference=answer, retrieved_contexts=texts))
    return list(score.details["verdicts"])


TEXTS = st.lists(st.sampled_from(["", USEFUL, "Rome", f"Rome and {USEFUL}"]), max_size=12).filter(any)


@given(texts=TEXTS, batch=st.integers(1, 14), forgets=st.integers(0, 5), max_verdicts=st.integers(2, 9))
def test_each_context_gets_a_verdict_whatever_the_batch_size_and_omissions(
    texts: list[str], batch: int, forgets: int, max_verdicts: int
) -> None:
    judge = ReadingJudge(forgets=forgets, max_verdicts=max_verdicts)
    assert judged(judge, texts, batch) == [int(USEFUL in text) for text in texts]


def test_batch_is_one_request_that_contains_the_answer_once() -> None:
    judge = ReadingJudge()
    judged(judge, [f"Context {number}." for number in range(30)], batch=10)
    assert len(judge.messages) == 3
    assert [message.count("It is in PARIS.") for message in judge.messages] == [1, 1, 1]


@pytest.mark.parametrize(
    "verdicts",
    [
        [{"context": 1, "reason": "Yes.", "verdict": 1}, {"context": 1, "reason": "No.", "verdict": 0}],
        [{"context": 3, "reason": "Yes.", "verdict": 1}, {"context": 0, "reason": "No.", "verdict": 0}],
        [],
    ],
)
def test_contexts_without_exactly_one_verdict_are_judged_individually(verdicts: list[dict[str, Any]]) -> None:
    class Confused(ReadingJudge):
        async def aask(self, system: str, user: str, schema: Any) -> Asked[Any]:
            if schema is NumberedVerdicts:
                return Asked(schema.model_validate({"verdicts": verdicts}), 0.01)
            return await super().aask(system, user, schema)

    judge = Confused()
    assert judged(judge, ["Rome", USEFUL], batch=2) == [0, 1]
    assert len(judge.messages) == 2


@pytest.mark.parametrize("batch", [1, 3])
def test_context_that_is_too_long_is_an_error(batch: int) -> None:
    with pytest.raises(JudgeError, match="too long for reading:judge"):
        judged(ReadingJudge(max_length=800), ["Oslo", "Rome " * 200, "Bergen"], batch)


def test_contexts_of_a_batch_that_is_too_long_are_judged_individually() -> None:
    assert judged(ReadingJudge(max_length=800), ["Oslo " * 60, USEFUL, "Rome " * 60], batch=3) == [0, 1, 0]


def test_cost_includes_requests_with_truncated_answers() -> None:
    metric = ContextPrecision(ReadingJudge(max_verdicts=2), batch=3)
    score = metric.score(user_input="Where?", reference="It is in PARIS.", retrieved_contexts=["Oslo", USEFUL, "Rome"])
    assert score.cost == pytest.approx(0.04)  # for the batch and for each context


def test_error_has_the_cost_of_all_requests() -> None:
    class Failing(ReadingJudge):
        async def aask(self, system: str, user: str, schema: Any) -> Asked[Any]:
            if len(self.messages) == 2:
                raise UnusableAnswerError("no", cost=0.5)
            return await super().aask(system, user, schema)

    with pytest.raises(UnusableAnswerError) as caught:
        judged(Failing(), ["a", "b", "c"], batch=1)
    assert caught.value.cost == pytest.approx(0.52)
