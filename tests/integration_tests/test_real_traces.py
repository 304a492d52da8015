"""Traces of real instrumentations, read back: the responses equal those of the capture handler in the same run."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_dataset, read_traces, run_evaluation
from graphrag_eval_lc.demo import DATASET_PATH

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::graphrag_eval_lc.GraphRAGEvalWarning")]

AGENTS = Path(__file__).parent.parent / "traced_agents"
sys.path.append(str(AGENTS))
from stations import NO_DATA, PLANS, answer_to  # noqa: E402  # from a folder of scripts

PACKAGES = {
    "traceloop": "opentelemetry.instrumentation.langchain",
    "openinference": "openinference.instrumentation.langchain",
    "both": "openinference.instrumentation.langchain",
    "langfuse": "langfuse",
    "langsmith": "langsmith",
    "pydantic-ai": "pydantic_ai",
    "openai-agents": "openinference.instrumentation.openai_agents",
    "smolagents": "openinference.instrumentation.smolagents",
    "llama-index": "openinference.instrumentation.llama_index",
}
RESPONSE_KEYS = ("question_text", "status", "actual_answer", "input_tokens", "output_tokens", "total_tokens")
STEP_KEYS = ("name", "args", "id", "status", "output", "error", "parent_id")
FORMS = ("otlp.json", "otlp.jsonl", "protobuf.json", "printed.txt")
STATIONS: list[Any] = [
    {"template_id": "t", "questions": [{"id": question, "question_text": question} for question in PLANS]}
]


def made(script: str, tracer: str, target: Path) -> None:
    """Run a script in a separate process, as instrumentations patch their libraries."""
    if not _is_there(PACKAGES[tracer]):
        pytest.skip(f"{PACKAGES[tracer]} is not installed")
    environment = {**os.environ, "OPENAI_AGENTS_DISABLE_TRACING": "", "OTEL_SDK_DISABLED": ""}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(AGENTS / script), tracer, str(target)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="module", params=["traceloop", "openinference", "both", "langfuse", "langsmith"])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tracer's traces of the demo, and the handler's responses."""
    folder = tmp_path_factory.mktemp(request.param)
    made("demo.py", request.param, folder)
    return folder


def files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name != "handler.jsonl"]


def essentials(response: Any) -> dict[str, Any]:
    steps = [{key: step.get(key) for key in STEP_KEYS} for step in response["actual_steps"]]
    return {**{key: response.get(key) for key in RESPONSE_KEYS}, "steps": steps}


def test_each_format_has_the_responses_of_the_handler(demo: Path) -> None:
    lines = (demo / "handler.jsonl").read_text().splitlines()
    expected = {response["question_id"]: response for response in map(json.loads, lines)}
    assert sum(len(response["actual_steps"]) for response in expected.values()) == 117
    assert {path.name for path in files(demo)} in ({*FORMS}, {"trees.json", "runs.jsonl"})
    for path in files(demo):
        found: dict[Any, Any] = {response["question_id"]: response for response in read_traces(path, DATASET_PATH)}
        assert found.keys() == expected.keys()
        for question_id, response in expected.items():
            assert essentials(found[question_id]) == essentials(response), (path.name, question_id)


def test_question_without_an_id_is_found_by_its_text(demo: Path) -> None:
    path = files(demo)[0]
    text = path.read_text()
    nameless = path.with_name(f"nameless_{path.name}")
    nameless.write_text(text.replace("question_id", "question_is"))
    try:
        found = {response["question_id"] for response in read_traces(nameless, DATASET_PATH)}
    finally:
        nameless.unlink()
    assert found == {question["id"] for template in load_dataset(DATASET_PATH) for question in template["questions"]}


def test_scores_equal_those_of_the_handler(demo: Path) -> None:
    dataset = load_dataset(DATASET_PATH)
    lines = (demo / "handler.jsonl").read_text().splitlines()
    expected: Any = [json.loads(line) for line in lines]
    found = run_evaluation(dataset, read_traces(files(demo)[0], DATASET_PATH))
    scores = [result.get("steps_score") for result in run_evaluation(dataset, expected)]
    assert [result.get("steps_score") for result in found] == scores


@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents", "smolagents", "llama-index"])
def test_traces_of_other_frameworks_are_read(framework: str, tmp_path: Path) -> None:
    made("frameworks.py", framework, tmp_path / "otlp.json")
    responses: dict[Any, Any] = {each["question_id"]: each for each in read_traces(tmp_path / "otlp.json", STATIONS)}
    assert list(responses) == list(PLANS)
    for question, plan in PLANS.items():
        response = responses[question]
        calls = [(step["name"], step["args"]) for step in response["actual_steps"]]
        expected = [(name, args) for answer in plan for name, args in answer]
        assert calls[: len(expected)] == expected
        # An agent may retry a failed call, some until their limit.
        assert all(call == ("check", {"name": "TROMSO"}) for call in calls[len(expected) :])
        if "broken" not in question:
            assert response["actual_answer"] == answer_to(question)
            assert len(calls) == len(expected)
            assert response["total_tokens"] == 18 * (len(plan) + 1)
            assert {step["status"] for step in response["actual_steps"]} == {"success"}
    outputs = [step["output"] for question in list(PLANS)[:2] for step in responses[question]["actual_steps"]]
    assert outputs == ['{"iri": "urn:OSLO"}', '{"iri": "urn:BERGEN"}', "1000.5"]
    (failed, *_) = responses["Is TROMSO broken?"]["actual_steps"]
    assert failed["status"] == "error"
    if framework != "openai-agents":  # it hides the error's details
        assert NO_DATA in failed["error"]
