"""The judges with a real model behind an OpenAI-compatible endpoint; skipped without one.

Run: ``make test-judge``. Set GRAPHRAG_EVAL_LC_JUDGE_BASE_URL, and GRAPHRAG_EVAL_LC_JUDGE_MODEL if the endpoint has
several models; GRAPHRAG_EVAL_LC_JUDGE_EMBEDDING_MODEL adds answer relevance. A small model is a weak judge, so only
what no judge may do is checked: full marks for a wrong answer, or a metric without a score or reason. The rest is
printed.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import (
    AnswerCorrectness,
    AnswerRelevance,
    ContextPrecision,
    ContextRecall,
    ContextUtilization,
    JudgeScore,
)
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model

PREFIX = "GRAPHRAG_EVAL_LC_JUDGE_"
TIMEOUT_SEC = 900.0

pytestmark = [
    pytest.mark.skipif(f"{PREFIX}BASE_URL" not in os.environ, reason=f"{PREFIX}BASE_URL is not set"),
    pytest.mark.full,
]

NO5 = ("Which substations are in NO5?", "NO5 has 4 substations: AURLAND, BERGEN, MODALEN, SOGNDAL.")
HASLE = ("Where is Hasle, and at which voltage?", "Hasle is in NO1. Hasle has 420 kV.")
RIGHT = [
    (*NO5, "AURLAND, BERGEN, MODALEN and SOGNDAL are in NO5."),
    (*HASLE, "Hasle lies in the bidding zone NO1 and has a voltage of 420 kV."),
]
WRONG = [
    (*NO5, "OSLO and TRONDHEIM are in NO5."),
    (*NO5, "AURLAND, BERGEN, MODALEN, SOGNDAL and OSLO are in NO5."),
    (*NO5, "AURLAND and BERGEN are in NO5."),
    (*HASLE, "Hasle is in NO1. Hasle has 300 kV."),
    (*HASLE, "I do not know."),
]


def settings(**more: Any) -> dict[str, Any]:
    key = os.environ.get(f"{PREFIX}API_KEY", "none")
    return {"base_url": os.environ[f"{PREFIX}BASE_URL"], "api_key": key, **more}


def generation() -> dict[str, Any]:
    return settings(model=os.environ.get(f"{PREFIX}MODEL", "default"), max_tokens=1024)


def embedding() -> dict[str, Any] | None:
    model = os.environ.get(f"{PREFIX}EMBEDDING_MODEL")
    return None if model is None else settings(model=model)


@pytest.fixture(scope="module")
def model() -> Any:
    return as_judge_model(GenerationConfig(**generation()), timeout=TIMEOUT_SEC)


def show(name: str, score: JudgeScore) -> None:
    report(f"{name}: {score.value}\n  {score.reason}\n  {dict(score.details)}")


def report(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


@pytest.mark.parametrize(("question", "reference", "answer"), RIGHT)
def test_right_answer_has_a_score(question: str, reference: str, answer: str, model: Any) -> None:
    score = AnswerCorrectness(model).score(user_input=question, reference=reference, response=answer)
    show(f"right: {answer}", score)
    assert score.value is not None


@pytest.mark.parametrize(("question", "reference", "answer"), WRONG)
def test_wrong_answer_has_no_full_marks(question: str, reference: str, answer: str, model: Any) -> None:
    score = AnswerCorrectness(model).score(user_input=question, reference=reference, response=answer)
    show(f"wrong: {answer}", score)
    assert score.value is not None
    assert score.value < 1


def outcome_of_recall(metric: ContextRecall, **asked: Any) -> float | str | None:
    """Return the score, or the one-line error of a weak model."""
    try:
        return metric.score(**asked).value
    except JudgeError as problem:
        return str(problem)


def test_each_other_judge_has_a_score_and_a_reason(model: Any) -> None:
    question, reference = NO5
    contexts = ["AURLAND, BERGEN, MODALEN and SOGNDAL are substations of NO5.", "Norway has five bidding zones."]
    asked = {"user_input": question, "retrieved_contexts": contexts}
    show("context precision", ContextPrecision(model).score(reference=reference, **asked))
    show("context utilization", ContextUtilization(model).score(response=RIGHT[0][2], **asked))
    recall = outcome_of_recall(ContextRecall(model), reference=reference, **asked)
    report(f"context recall: {recall}")
    assert isinstance(recall, float) or "twice" in str(recall)
    if (section := embedding()) is not None:
        embeddings = as_embedding_model(EmbeddingConfig(**section))
        for answer in (RIGHT[0][2], "I do not know."):
            relevance = AnswerRelevance(model, embeddings).score(user_input=question, response=answer)
            show(f"answer relevance: {answer}", relevance)


def test_first_ten_questions_of_the_demo_are_judged(tmp_path: Path) -> None:
    llm = {"generation": generation()} | ({} if embedding() is None else {"embedding": embedding()})
    config = {"llm": llm, "judges": {"max_concurrency": 1, "timeout": TIMEOUT_SEC}}
    run = run_benchmark(create_demo_agent(), DATASET_PATH, output_dir=tmp_path, config=config, limit=10, progress="off")
    for result in run.results:
        report(f"{result['question_id']}: {judged(result)}")
    assert len(run.results) == 10
    for result in run.results:
        assert "answer_f1" in result or "answer_correctness_error" in result


def judged(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key.startswith("answer_")} | dict(_steps(result))


def _steps(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for step in result["actual_steps"]:
        yield from ((key, value) for key, value in step.items() if key.startswith("retrieval_"))
