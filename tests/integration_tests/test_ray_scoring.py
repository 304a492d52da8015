"""Scoring by workers of real local Ray clusters has the same results as a single process, key by key."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.ray_clusters import connected, one_cluster_at_a_time, ray, started_cluster  # noqa: F401
from typer.testing import CliRunner

from graphrag_eval_lc import BenchmarkRun, run_benchmark, score_responses, score_run
from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.stub_judge import StubJudge
from graphrag_eval_lc.errors import GraphRAGEvalError, MatcherError, OptionError, RunFolderError
from graphrag_eval_lc.matching import register_matcher
from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import load_plugins

pytestmark = pytest.mark.full

PLUGIN = """
from functools import lru_cache
from graphrag_eval_lc.matching import register_matcher

@lru_cache
def half(text):
    return 0.5

@register_matcher(name="guess")
def match_half(reference, actual):
    return half(actual["output"])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with registered_only_here():
        yield tmp_path


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A cluster to which runs connect by address."""
    yield from started_cluster()


def guesses(number: int) -> tuple[Any, dict[str, Any]]:
    """Return a dataset whose steps need a custom matcher, and responses to it."""
    step = {"name": "guess", "output": "1"}
    asked = [
        {"id": f"q{each}", "question_text": f"{each}?", "reference_steps": [[step]], "weight": each / 7}
        for each in range(number)
    ]
    answered = {
        f"q{each}": {
            "question_id": f"q{each}",
            "actual_answer": str(each),
            "actual_steps": [{"name": "guess", "output": str(each), "status": "success", "score": 0.1 + each}],
        }
        for each in range(number)
    }
    return [{"template_id": "t", "questions": asked}], answered


def written(run: BenchmarkRun) -> list[str]:
    """Return the results as written to a file, to compare the order of keys and all digits."""
    return [json.dumps(result) for result in run.results]


def scored(dataset: Any, responses: Any, **options: Any) -> BenchmarkRun:
    given: dict[str, Any] = {"engine": "ray", "workers": 2, **options}
    return score_responses(dataset, responses, **given)


def check_same(one: BenchmarkRun, other: BenchmarkRun) -> None:
    assert written(one) == written(other)
    assert json.dumps(one.aggregates) == json.dumps(other.aggregates)
    assert one.warnings == other.warnings


@pytest.fixture
def demo_run(folder: Path) -> Path:
    """A run of the demo's agent with two repeats."""
    agent = "graphrag_eval_lc.demo.agent:create_demo_agent"
    run_benchmark(agent, DATASET_PATH, output_dir="demo", repeats=2, progress="off")
    return folder / "demo"


def test_own_cluster_scores_twice() -> None:
    dataset, responses = guesses(70)
    one = score_responses(dataset, responses)
    for _ in range(2):
        check_same(scored(dataset, responses), one)
    assert not ray.is_initialized()


class TestOnACluster:
    """The cluster has two nodes and three processors."""

    def test_results_equal_a_single_process_with_judges_and_repeats(
        self, cluster: str, demo_run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stub = StubJudge()
        for name, value in stub.environment.items():
            monkeypatch.setenv(name, value)
        options: dict[str, Any] = {"config": {"llm": {"generation": {"model": "gpt-4o-mini"}}}, "judge_cache": False}
        one = score_run(demo_run, **options)
        assert not any("a judge or a metric failed" in warning for warning in one.warnings)
        check_same(score_run(demo_run, **options, engine="ray", workers=2, ray_address=cluster), one)

    def test_command_line_scores_with_a_plugin(self, cluster: str) -> None:
        Path("half.py").write_text(PLUGIN, encoding="utf-8")
        dataset, responses = guesses(9)
        Path("qa.json").write_text(json.dumps(dataset), encoding="utf-8")
        Path("responses.json").write_text(json.dumps(responses), encoding="utf-8")
        command = ["score", "qa.json", "responses.json", "--plugin", "half.py", "--no-report", "-o"]
        engine = ["--engine", "ray", "--workers", "2", "--ray-address", cluster]
        for options in (["one"], ["many", *engine], ["dry", "--dry-run", "--engine", "ray", "--ray-address", "no:1"]):
            outcome = CliRunner().invoke(app, [*command, *options])
            assert outcome.exit_code == 0, outcome.output
        assert Path("many/results.jsonl").read_bytes() == Path("one/results.jsonl").read_bytes()
        assert json.loads(Path("many/run.json").read_text(encoding="utf-8"))["engine"] == "ray"
        again = CliRunner().invoke(app, ["score", "many", "--plugin", "half.py", "--dataset", "qa.json", *engine])
        assert again.exit_code == 0, again.output
        assert Path("many/results.jsonl").read_bytes() == Path("one/results.jsonl").read_bytes()


@pytest.mark.usefixtures("connected")
class TestOnAConnectedCluster:
    """This process is connected to the cluster already; each scoring uses that connection and its workers."""

    def test_results_equal_a_single_process_without_judges(self, cluster: str, demo_run: Path) -> None:
        one = score_run(demo_run)
        files = ("results.jsonl", "aggregates.yaml")
        before = [(demo_run / name).read_bytes() for name in files]
        check_same(score_run(demo_run, engine="ray", ray_address=cluster), one)
        assert [(demo_run / name).read_bytes() for name in files] == before

    def test_matcher_of_a_plugin_file_runs_on_workers(self, cluster: str) -> None:
        Path("half.py").write_text(PLUGIN, encoding="utf-8")
        load_plugins(["half.py"], via="--plugin")
        dataset, responses = guesses(9)
        run = scored(dataset, responses, ray_address=cluster)
        check_same(run, score_responses(dataset, responses))
        assert {result["steps_score"] for result in run.results} == {0.5}

    def test_matcher_of_this_program_is_sent_by_value(self, cluster: str) -> None:
        most = 0.25
        driver = os.getpid()

        @register_matcher(name="guess")
        def match(reference: Any, actual: Any) -> float:
            return 0.0 if os.getpid() == driver else most

        run = scored(*guesses(9), ray_address=cluster)
        assert {result["steps_score"] for result in run.results} == {0.25}

    def test_unpicklable_matcher_is_one_error(self, cluster: str) -> None:
        lock = threading.Lock()

        @register_matcher(name="guess")
        def match(reference: Any, actual: Any) -> float:
            with lock:
                return 1.0

        with pytest.raises(OptionError, match=r"the matcher of guess cannot be sent .*--plugin FILE"):
            scored(*guesses(2), ray_address=cluster)

    def test_unpicklable_response_is_one_error(self, cluster: str) -> None:
        dataset, responses = guesses(3)
        responses["q1"]["note"] = threading.Lock()
        with pytest.raises(OptionError, match=r"question q1: .*cannot be sent to another process"):
            scored(dataset, responses, ray_address=cluster)

    def test_failing_matcher_raises_as_in_a_single_process(self, cluster: str) -> None:
        @register_matcher(name="guess")
        def match(reference: Any, actual: Any) -> float:
            return 7.0 if actual["output"] == "5" else 1.0

        dataset, responses = guesses(40)
        with pytest.raises(MatcherError) as alone:
            score_responses(dataset, responses, output_dir="alone")
        with pytest.raises(MatcherError) as there:
            scored(dataset, responses, output_dir="there", ray_address=cluster)
        assert str(there.value) == str(alone.value)
        assert Path("there/results.jsonl").exists() == Path("alone/results.jsonl").exists()

    def test_responses_of_a_killed_worker_are_retried(self, cluster: str, folder: Path) -> None:
        killed = folder / "killed"

        @register_matcher(name="guess")
        def match(reference: Any, actual: Any) -> float:
            if actual["output"] == "100" and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return 0.5

        dataset, responses = guesses(300)
        run = scored(dataset, responses, ray_address=cluster)
        assert killed.exists()
        assert written(run) == written(score_responses(dataset, responses))

    def test_workers_that_are_lost_repeatedly_are_one_error(self, cluster: str) -> None:
        driver = os.getpid()

        @register_matcher(name="guess")
        def match(reference: Any, actual: Any) -> float:
            if os.getpid() != driver:
                os._exit(1)
            return 0.5

        with pytest.raises(GraphRAGEvalError, match="lost"):
            scored(*guesses(40), ray_address=cluster)

    def test_plugin_that_workers_cannot_load_is_one_error(self, cluster: str, folder: Path) -> None:
        text = f"import os\nif os.getpid() != {os.getpid()}:\n    raise RuntimeError('no GPU here')\n{PLUGIN}"
        Path("half.py").write_text(text, encoding="utf-8")
        load_plugins(["half.py"], via="--plugin")
        with pytest.raises(OptionError, match=r"the workers cannot compare: .*half\.py failed with .*no GPU here"):
            scored(*guesses(9), ray_address=cluster)

    def test_scoring_works_in_a_running_event_loop(self, cluster: str) -> None:
        async def inside() -> BenchmarkRun:
            return scored(*guesses(9), ray_address=cluster)

        assert len(asyncio.run(inside()).results) == 9


def test_folder_with_a_run_is_rejected_before_connecting(folder: Path) -> None:
    dataset, responses = guesses(3)
    score_responses(dataset, responses, output_dir="run", progress="off")
    with pytest.raises(RunFolderError, match="holds a run already"):
        score_responses(dataset, responses, output_dir="run", engine="ray", ray_address="no:1", progress="off")


SLOW = """
import time
from graphrag_eval_lc.matching import register_matcher

@register_matcher(name="guess")
def match_slowly(reference, actual):
    time.sleep(0.2)
    return 1.0
"""


def test_ctrl_c_in_a_terminal_ends_the_scoring(folder: Path) -> None:
    Path("slow.py").write_text(SLOW, encoding="utf-8")
    dataset, responses = guesses(400)
    Path("qa.json").write_text(json.dumps(dataset), encoding="utf-8")
    Path("responses.json").write_text(json.dumps(responses), encoding="utf-8")
    command = ["score", "qa.json", "responses.json", "-o", "run", "--plugin", "slow.py", "--engine", "ray"]
    process = subprocess.Popen(
        [sys.executable, "-m", "graphrag_eval_lc", *command, "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    written = folder / "run" / "responses.jsonl"
    deadline = time.monotonic() + 60
    while not written.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(4.0)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
