"""Publishing scores as feedback on LangSmith runs, with the real client and tracer and a stub server."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client
from support.tool_stubs import SUMS, Answer, ToolStub, tool_stub

from graphrag_eval_lc import publish_scores, run_benchmark
from graphrag_eval_lc.errors import PublishError

PROJECT = "11111111-1111-4111-8111-111111111111"


class LangSmithStub:
    """Answers like LangSmith; its runs are those that LangSmith's tracer posts."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}
        self.feedback: dict[str, Any] = {}
        self.limited = 0  # how many requests get a 429
        self.key_is_wrong = False

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path.startswith("/info"):
            return 200, {"version": "0.16.1"}
        if self.key_is_wrong:
            return 401, {"detail": "Invalid token"}
        if path.startswith("/sessions"):
            project = {"id": PROJECT, "name": "p", "tenant_id": PROJECT, "start_time": "2026-01-01T00:00:00"}
            return 200, [{**project, "reference_dataset_id": None}]
        if method == "POST" and path == "/runs":
            self.runs[body["id"]] = body
            return 202, {}
        if path == "/runs/query":
            roots = [run for run in self.runs.values() if run.get("parent_run_id") is None]
            fields = ("id", "name", "start_time", "extra", "run_type", "trace_id", "dotted_order", "inputs")
            runs = [{**{key: run.get(key) for key in fields}, "session_id": PROJECT} for run in roots]
            return 200, {"runs": runs, "cursors": {}}
        if path == "/feedback" and self.limited:
            self.limited -= 1
            return 429, {"detail": "slow down"}, {"retry_after": "0"}
        if path == "/feedback" and body["run_id"] not in self.runs:
            return 404, {"detail": "Run not found"}
        if path == "/feedback" and body["id"] in self.feedback:
            return 409, {"detail": "exists"}
        if path == "/feedback":
            self.feedback[body["id"]] = body
        elif method == "PATCH" and path.startswith("/feedback/"):
            self.feedback[path.removeprefix("/feedback/")] |= body
        return 200, {}


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Any:
    stub = LangSmithStub()
    with tool_stub(stub.answer) as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "of-the-tests")
        monkeypatch.setenv("LANGSMITH_PROJECT", "p")
        yield stub, server


def add(question: str) -> str:
    if question.startswith("3"):
        raise ValueError("password=hunter22 was wrong")
    return "2"


def traced_run(folder: Path, server: ToolStub, *, is_traced: bool = True) -> Any:
    client = Client(auto_batch_tracing=False)
    agent = RunnableLambda(add)
    if is_traced:
        agent = agent.with_config(callbacks=[LangChainTracer(project_name="p", client=client)])
    return run_benchmark(agent, SUMS, output_dir=folder, progress="off", max_retries=0)


def test_each_score_is_feedback_on_the_run_of_its_question(tmp_path: Path, langsmith: Any) -> None:
    stub, server = langsmith
    run = traced_run(tmp_path / "run", server)
    published = publish_scores(run, to="langsmith", report_url="https://ci.example/report.html")
    assert (published.sent, published.unplaced) == (3, [])
    roots = {
        run["extra"]["metadata"]["question_id"]: id_ for id_, run in stub.runs.items() if not run.get("parent_run_id")
    }
    sent = {each["feedback_source"]["metadata"]["question_id"]: each for each in stub.feedback.values()}
    assert {question: each["run_id"] for question, each in sent.items()} == roots
    assert {(each["key"], each["score"], each["session_id"]) for each in sent.values()} == {
        ("steps_score", 0.0, PROJECT)
    }
    assert sent["q1"]["comment"].startswith("add: the agent did not call add")
    assert sent["q1"]["comment"].endswith("\nhttps://ci.example/report.html#q=q1")
    assert "hunter22" not in str(stub.feedback)
    assert "ValueError" in sent["q3"]["comment"]


def test_publishing_is_idempotent(tmp_path: Path, langsmith: Any) -> None:
    stub, server = langsmith
    traced_run(tmp_path / "run", server)
    publish_scores(tmp_path / "run", to="langsmith")
    before = dict(stub.feedback)
    second = publish_scores(tmp_path / "run", to="langsmith")
    assert (second.sent, second.unchanged, stub.feedback) == (0, 3, before)
    (tmp_path / "run" / "published.jsonl").unlink()  # without the record nothing is duplicated either
    assert publish_scores(tmp_path / "run", to="langsmith").sent == 3
    assert stub.feedback.keys() == before.keys()


def test_rate_limit_is_retried_and_missing_runs_are_listed(tmp_path: Path, langsmith: Any) -> None:
    stub, server = langsmith
    traced_run(tmp_path / "run", server)
    stub.limited = 1
    del stub.runs[next(id_ for id_, run in stub.runs.items() if "q2" in str(run["extra"]))]
    published = publish_scores(tmp_path / "run", to="langsmith")
    assert published.sent == 2
    (lost,) = published.unplaced
    assert (lost.key, lost.metrics) == ("q2", ("steps_score",))
    assert "has no run" in lost.reason


def test_wrong_key_is_one_clear_error(tmp_path: Path, langsmith: Any) -> None:
    stub, server = langsmith
    traced_run(tmp_path / "run", server)
    stub.key_is_wrong = True
    with pytest.raises(PublishError, match=r"langsmith cannot be used: .*401.* Check the key"):
        publish_scores(tmp_path / "run", to="langsmith")


def test_dry_run_sends_nothing(tmp_path: Path, langsmith: Any) -> None:
    _, server = langsmith
    run = traced_run(tmp_path / "run", server, is_traced=False)
    assert str(publish_scores(run, to="langsmith", dry_run=True)) == "3 scores would be sent to langsmith"
    assert not server.seen
