"""The stub of OpenAI's models answers every request of the judges over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.demo.stub_judge import StubJudge
from graphrag_eval_lc.judges import AnswerCorrectness, AnswerRelevance, ContextPrecision, ContextRecall

REFERENCE = "OSLO T1 has 1000 MVA. OSLO T3 has 300 MVA."


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubJudge]:
    started = StubJudge()
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    yield started
    started.close()


def test_claims_are_classified_by_shared_words() -> None:
    score = AnswerCorrectness("gpt-4o-mini").score(
        user_input="Transformers?", reference=REFERENCE, response="OSLO T1 has 1000 MVA. OSLO T3 has 250 MVA."
    )
    assert score.value == 0.5
    assert score.details["false_positives"] == ["OSLO T3 has 250 MVA."]
    assert score.cost is not None


def test_claim_of_short_words_only_is_compared_by_them() -> None:
    judge = AnswerCorrectness("gpt-4o-mini")
    assert judge.score(user_input="Who?", reference="Bob", response="Eve").value == 0
    assert judge.score(user_input="Who?", reference="Ann", response="Ann").value == 1


def test_custom_evaluation_gets_the_outputs_it_declares() -> None:
    evaluation = {
        "name": "economy",
        "inputs": ["question", "actual_steps"],
        "steps_name": "sql",
        "steps_keys": ["args"],
        "instructions": "Find queries that read too much.",
        "outputs": {"query_economy": "from 0 to 1", "query_economy_reason": "why"},
    }
    step = {"name": "sql", "id": "1", "args": {"query": "transformers of OSLO"}, "status": "success", "output": "[]"}
    [result] = run_evaluation(
        [{"template_id": "t", "questions": [{"id": "q", "question_text": "Which transformers are there?"}]}],
        [{"question_id": "q", "actual_answer": "Three.", "actual_steps": [step]}],
        {"llm": {}, "custom_evaluations": [evaluation]},
    )
    assert result["query_economy"] == 1.0
    assert result["query_economy_reason"] == "1 of 1 claims share a word with the question."
    assert "economy_error" not in result


def test_contexts_are_useful_if_they_state_the_answer() -> None:
    options: Any = {"user_input": "Transformers?", "reference": REFERENCE, "retrieved_contexts": ["Snow.", REFERENCE]}
    assert ContextPrecision("gpt-4o-mini").score(**options).value == 0.5
    assert ContextRecall("gpt-4o-mini").score(**options).value == 1.0


def test_embeddings_reflect_shared_words() -> None:
    relevance = AnswerRelevance("gpt-4o-mini", embeddings="text-embedding-3-small")
    direct = relevance.score(user_input="Where is the Eiffel Tower?", response="The Eiffel Tower is in Paris.")
    evasive = relevance.score(user_input="Where is the Eiffel Tower?", response="I cannot say.")
    assert direct.value is not None
    assert direct.value > 0
    assert evasive.value == 0


def test_closed_stub_no_longer_answers() -> None:
    closed = StubJudge()
    closed.close()
    with pytest.raises(httpx.ConnectError):
        httpx.post(closed.environment["OPENAI_BASE_URL"], json={})
