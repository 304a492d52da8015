"""Other tools' runners, with this package's agent and scorer, score the same questions the same."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from typing import Any

import langsmith
import pytest
from support.tool_stubs import tool_stub

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

pytestmark = pytest.mark.full
Scores = dict[str, float]
Recorded = dict[str, dict[str, Any]]
METRICS = ["steps_score"]


@pytest.fixture(scope="module")
def recorded() -> tuple[Recorded, Scores]:
    run = run_benchmark(create_demo_agent, DATASET_PATH, progress="off")
    scores = {result["question_id"]: result["steps_score"] for result in run.results}
    return {response["question_id"]: dict(response) for response in run.responses}, scores


def with_langsmith(responses: Recorded) -> Scores:
    from graphrag_eval_lc.integrations.langsmith import examples, scorer

    found = langsmith.evaluate(
        lambda inputs: responses[inputs["question_id"]],
        data=examples(DATASET_PATH),
        evaluators=[scorer(metrics=METRICS)],
        upload_results=False,
    )
    return {row["example"].inputs["question_id"]: row["evaluation_results"]["results"][0].score for row in found}


def with_langfuse(responses: Recorded) -> Scores:
    langfuse = pytest.importorskip("langfuse")
    from graphrag_eval_lc.integrations.langfuse import examples, scorer

    client = langfuse.Langfuse(public_key="pk-lf-runners", secret_key="sk-lf-runners", tracing_enabled=False)
    found = client.run_experiment(
        name="demo",
        data=examples(DATASET_PATH),
        task=lambda *, item, **_: responses[item["input"]["question_id"]],
        evaluators=[scorer(metrics=METRICS)],
    )
    return {each.item["metadata"]["question_id"]: each.evaluations[0].value for each in found.item_results}


def with_pydantic_evals(responses: Recorded) -> Scores:
    evals = pytest.importorskip("pydantic_evals")
    from graphrag_eval_lc.integrations.pydantic_evals import examples, scorer

    dataset = evals.Dataset(name="demo", cases=examples(DATASET_PATH), evaluators=[scorer(metrics=METRICS)])
    report = dataset.evaluate_sync(lambda inputs: responses[inputs["question_id"]], progress=False)
    return {case.name: case.scores["steps_score"].value for case in report.cases}


def with_inspect(responses: Recorded) -> Scores:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.solver import solver

    from graphrag_eval_lc.integrations.inspect_ai import examples, scorer

    @solver
    def recorded_responses() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.metadata["response"] = responses[str(state.sample_id)]
            return state

        return solve

    task = inspect_ai.Task(examples(DATASET_PATH), solver=recorded_responses(), scorer=scorer(metrics=METRICS))
    with tempfile.TemporaryDirectory() as folder:
        (log,) = inspect_ai.eval(task, model="mockllm/model", display="none", log_dir=folder)
        return {str(sample.id): sample.scores["graphrag_eval"].value["steps_score"] for sample in log.samples}


def with_mlflow(responses: Recorded) -> Scores:
    pytest.importorskip("pandas")
    genai = pytest.importorskip("mlflow.genai")
    mlflow = pytest.importorskip("mlflow")
    if not hasattr(genai, "evaluate"):
        pytest.skip("mlflow-skinny has no genai.evaluate")
    from graphrag_eval_lc.integrations.mlflow import examples, scorer

    def ask(question: str, question_id: str, template_id: str) -> Any:
        return responses[question_id]

    os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = "1"  # several workers wait for each other's writes to SQLite
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # artifacts are written to the current folder
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        found = genai.evaluate(data=examples(DATASET_PATH), predict_fn=ask, scorers=[scorer(metrics=METRICS)])
        rows = [row for _, row in found.result_df.iterrows()]
    return {row["request"]["question_id"]: row["steps_score/value"] for row in rows}


@pytest.mark.parametrize("run", [with_langsmith, with_langfuse, with_pydantic_evals, with_inspect, with_mlflow])
def test_all_runners_score_the_demo_the_same(
    run: Callable[[Recorded], Scores], recorded: tuple[Recorded, Scores]
) -> None:
    responses, expected = recorded
    found = run(responses)
    assert found == {question: expected[question] for question in found}
    assert len(found) == 48
    assert 0 < sum(expected.values()) < 48


LEAK = """
import sys
from langsmith import evaluate
from graphrag_eval_lc.integrations.langsmith import examples, scorer, target
from langchain_core.runnables import RunnableLambda
dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?", "reference_answer": "2"}]}]
agent = RunnableLambda(lambda question: "2")
ask = target(agent) if sys.argv[1] == "target" else lambda inputs: {"answer": agent.invoke(inputs["question"])}
list(evaluate(ask, data=examples(dataset), evaluators=[scorer()], upload_results=False))
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""


@pytest.mark.parametrize(("how", "has_leak"), [("target", False), ("plain", True)])
def test_target_sends_nothing_to_langsmith(how: str, has_leak: bool) -> None:
    with tool_stub(lambda method, path, body: (200, {"version": "0.16.1"})) as server:
        settings = {"LANGSMITH_ENDPOINT": server.url, "LANGSMITH_API_KEY": "k", "LANGSMITH_TRACING": "false"}
        subprocess.run([sys.executable, "-c", LEAK, how], env=os.environ | settings, check=True, timeout=120)
        posted = [path for method, path, _ in server.seen if method != "GET"]
    assert bool(posted) is has_leak
