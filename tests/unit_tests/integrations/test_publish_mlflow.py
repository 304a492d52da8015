"""Publishing scores to MLflow's traces and run, with the real client and tracer, on SQLite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("mlflow")
pytest.importorskip("alembic")

# Runs in a separate process: MLflow keeps one store and one tracer per process.
SCRIPT = """
import mlflow, mlflow.langchain
from pathlib import Path
from langchain_core.runnables import RunnableLambda
from graphrag_eval_lc import capture_run, publish_scores, run_benchmark

mlflow.langchain.autolog()
steps = [[{"name": "add", "args": {}, "output": "2"}]]
questions = [{"id": f"q{n}", "question_text": f"{n} + 1?", "reference_steps": steps} for n in (1, 2, 3)]
dataset = [{"template_id": "sums", "questions": questions}]
run = run_benchmark(RunnableLambda(lambda q: "2"), dataset, output_dir="run", progress="off", tags=["nightly"])
client = mlflow.MlflowClient()
for _ in range(2):
    published = publish_scores(run, to="mlflow")
    assert (published.sent, published.unplaced, published.notes) == (3, [], []), published
    Path("run/published.jsonl").unlink()

traces = client.search_traces(locations=["0"])
assert len(traces) == 3
for trace in traces:
    (feedback,) = trace.info.assessments  # one, although it was published twice
    question = trace.data.spans[0].attributes["metadata"]["question_id"]
    assert (feedback.name, feedback.value, feedback.metadata["question_id"]) == ("steps_score", 0.0, question)
    assert feedback.rationale.startswith("add: the agent did not call add")

(logged,) = client.search_runs(["0"])
assert logged.data.metrics["steps_score"] == 0.0 and logged.data.metrics["samples_wrong"] == 3.0
assert logged.data.params["dataset.questions"] == "3"
assert logged.data.tags["graphrag_eval_lc.nightly"] == "true"
assert [each.path for each in client.list_artifacts(logged.info.run_id)] == ["report.html"]
assert len(client.get_metric_history(logged.info.run_id, "steps_score")) == 1

with capture_run(question_id="q1") as handler:
    RunnableLambda(str.upper).invoke("why?")
assert handler.response("q1")["trace_ids"]["mlflow"].startswith("tr-")
print("all is well")
"""


def test_traces_get_feedback_and_the_experiment_gets_one_run(tmp_path: Path) -> None:
    store = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=os.environ | store,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "all is well" in done.stdout, done.stderr
