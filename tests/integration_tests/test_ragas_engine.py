"""The ragas engine with ragas itself, against a server that answers both engines in the same way."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest, finish_reason, missing_usage, rate_limit, refusal
from support.ragas_environment import output_of

pytestmark = pytest.mark.full

SCRIPT = """
import json, sys
from graphrag_eval_lc import run_evaluation
print(json.dumps(run_evaluation(**json.load(sys.stdin))))
"""
CONTEXTS_PRECISION = ("retrieval_answer_precision", "retrieval_context_precision", "retrieval_utilization")
METRICS = ("answer_relevance", "retrieval_answer_recall", "retrieval_context_recall", *CONTEXTS_PRECISION)


class Answering:
    """Answers by marks in the texts, whatever the wording and schema of the prompt."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __call__(self, request: StubRequest) -> dict[str, Any]:
        form = json.dumps(request.schema) if request.schema else request.system + request.user
        if "true_positives" in form:
            return {"reason": "R.", "true_positives": ["C."], "false_positives": [], "false_negatives": []}
        if "attributed" in form:
            marks = re.findall(r"MARK-([01]+)", request.user)[-1]
            statements = [{"statement": "S.", "reason": "R.", "attributed": int(mark)} for mark in marks]
            return {"classifications" if "classifications" in form else "statements": statements}
        if "noncommittal" in form:
            marks = re.findall(r"QUESTIONS-([0-9]+)", request.user)[-1]
            if "questions" in form:
                written = [f"Question {mark}?" for mark in marks[:3]]
                return {"questions": written, "noncommittal": int(min(marks[:3]) > "6")}
            time = self._asked[marks]
            self._asked[marks] += 1
            return {"question": f"Question {marks[time % 3]}?", "noncommittal": int(marks[time % 3] > "6")}
        return {"reason": "R.", "verdict": int("USEFUL" in request.user)}


def case(number: int, chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a question and its response, with marks for the model's findings."""

    def marks() -> str:
        return "MARK-" + "".join(chance.choice("01") for _ in range(chance.randint(1, 5)))

    contexts = [{"id": f"d{rank}", "text": chance.choice(["USEFUL text.", "Text."])} for rank in range(5)]
    reference = json.dumps([{"id": "d1", "text": marks()}])
    questions = f"{number % 10}{chance.randint(0, 9)}{chance.randint(0, 9)}" if number else "789"
    question = {
        "id": f"q{number}",
        "question_text": f"Question {number}?",
        "reference_answer": marks(),
        "reference_steps": [[{"name": "retrieval", "args": {}, "output": reference}]],
    }
    step = {"name": "retrieval", "id": "s", "status": "success", "args": {}, "output": json.dumps(contexts)}
    answer = f"Answer {number}. QUESTIONS-{questions}{number:02}"
    return question, {"question_id": f"q{number}", "actual_answer": answer, "actual_steps": [step]}


def evaluated(python: Path, stub: OpenAIStub, count: int, engine: str, **judges: Any) -> list[dict[str, Any]]:
    """Return the judged values of some questions, of the step and of the answer."""
    chance = random.Random(6)
    cases = [case(number, chance) for number in range(count)]
    model = {"base_url": stub.base_url, "api_key": "k"}
    config = {"llm": {"generation": model, "embedding": model}, "judges": {"engine": engine, **judges}}
    stub.answer = Answering()
    request = {
        "qa_dataset": [{"template_id": "t", "questions": [question for question, _ in cases]}],
        "responses": {response["question_id"]: response for _, response in cases},
        "config": config,
    }
    results = json.loads(output_of(python, SCRIPT, json.dumps(request)))
    return [{**result, **result["actual_steps"][0]} for result in results]


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as running:
        yield running


def test_both_engines_have_the_same_values(ragas_python: Path, stub: OpenAIStub) -> None:
    native = evaluated(ragas_python, stub, 20, "native")
    stub.requests.clear()
    ragas = evaluated(ragas_python, stub, 20, "ragas")
    assert any("Give verdict as" in request.user for request in stub.chat_requests)
    for ours, theirs in zip(native, ragas, strict=True):
        assert not [key for key in theirs if key.endswith("_error")]
        for metric in METRICS:
            assert theirs[metric] == pytest.approx(ours[metric], rel=0, abs=1e-9), (metric, ours["question_id"])
        assert theirs["answer_f1"] == ours["answer_f1"]
    assert native[0]["answer_relevance"] == 0


def test_costs_are_those_of_the_requests(ragas_python: Path, stub: OpenAIStub) -> None:
    (result,) = evaluated(ragas_python, stub, 1, "ragas")
    one = 1000 * 0.15e-6 + 100 * 0.6e-6
    assert result["retrieval_answer_recall_cost"] == pytest.approx(one)
    assert result["retrieval_utilization_cost"] == pytest.approx(5 * one)
    assert result["answer_relevance_cost"] == pytest.approx(3 * one + 2 * 50 * 0.02e-6)


def test_request_without_usage_is_unpriced(ragas_python: Path, stub: OpenAIStub) -> None:
    stub.chat_faults.extend([missing_usage()] * 5)
    (result,) = evaluated(ragas_python, stub, 1, "ragas", metrics=["retrieval_utilization"])
    assert "retrieval_utilization" in result
    assert "retrieval_utilization_cost" not in result


def test_requests_respect_the_limit_and_are_retried_after_a_rate_limit(ragas_python: Path, stub: OpenAIStub) -> None:
    stub.latency_sec = 0.02
    stub.chat_faults.append(rate_limit(retry_after_ms="20"))
    results = evaluated(ragas_python, stub, 10, "ragas", max_concurrency=3)
    assert not [key for result in results for key in result if key.endswith("_error")]
    assert stub.most_in_flight == 3


@pytest.mark.parametrize(
    ("fault", "error"),
    [(refusal("No."), "refused"), (finish_reason("content_filter"), "filter")],
)
def test_unfinished_answers_are_not_retried(fault: Any, error: str, ragas_python: Path, stub: OpenAIStub) -> None:
    stub.chat_faults.append(fault)
    (result,) = evaluated(ragas_python, stub, 1, "ragas", metrics=["retrieval_utilization"])
    assert error in result["retrieval_utilization_error"]
    assert result["retrieval_utilization_cost"] == pytest.approx(1000 * 0.15e-6 + 100 * 0.6e-6)
    assert len(stub.requests) == 1


def test_answer_that_violates_the_schema_is_retried_once(ragas_python: Path, stub: OpenAIStub) -> None:
    stub.answers.append("no JSON")
    (result,) = evaluated(ragas_python, stub, 1, "ragas", metrics=["retrieval_utilization"])
    assert "retrieval_utilization" in result
    assert len(stub.requests) == 6
    stub.requests.clear()
    stub.answers.extend(["no JSON"] * 2)
    (result,) = evaluated(ragas_python, stub, 1, "ragas", metrics=["retrieval_utilization"])
    assert result["retrieval_utilization_error"].startswith("openai:gpt-4o-mini twice returned an answer")
    assert len(stub.requests) == 2
