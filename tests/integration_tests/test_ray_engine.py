"""Runs on workers of real local Ray clusters: they share the limits of a single process, and lose nothing."""

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, rate_limit
from support.ray_clusters import connected, one_cluster_at_a_time, ray, started_cluster  # noqa: F401

from graphrag_eval_lc import BenchmarkRun, run_benchmark
from graphrag_eval_lc.errors import AgentError, OptionError

pytestmark = pytest.mark.full

KILLED_DRIVERS = int(os.environ.get("GRAPHRAG_EVAL_LC_KILLED_DRIVERS", "1"))  # `make test-kills` uses 5

# A cluster has a different folder and environment than the run.
AGENT = """
import asyncio, os, time
from pathlib import Path

os.chdir({folder!r})

async def agent(question):
    with open("pids.txt", "a") as file:
        file.write(f"{{os.getpid()}} {{question}} {{time.time()}}\\n")
    if question == "once":
        if not Path("done.txt").exists():
            Path("done.txt").touch()
            os._exit(1)
    if question == "always":
        os._exit(1)
    await asyncio.sleep(0.05)
    return f"{{question}} by {{os.getpid()}}"
"""
PRICES = {"gpt-4o-mini": {"input": 2.0, "output": 8.0}}
ASKING = """
from langchain_openai import ChatOpenAI

def agent():
    model = ChatOpenAI(model="gpt-4o-mini", base_url="{url}", api_key="k", max_retries=0, max_tokens=50)
    async def answer(question: str):
        return (await model.ainvoke(question)).text
    return answer
"""
# Each attempt is recorded on disk before and after.
RECORDING = """
os.chdir({folder!r})
os.environ["ASKED_FILE"] = "asked.txt"

async def answer(state, config: RunnableConfig):
    note(config)
    await asyncio.sleep(0.1)
    descriptor = os.open("ended.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f'{{config["metadata"]["question_id"]}} {{os.getpid()}}\\n'.encode())
    os.fsync(descriptor)
    os.close(descriptor)
    return {{"messages": [AIMessage("fine")]}}

graph = graph_of(answer)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    Path("agent.py").write_text(AGENT.format(folder=str(tmp_path)), encoding="utf-8")
    return tmp_path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def client_port() -> int:
    """The port of the cluster for clients on other machines."""
    return free_port()


@pytest.fixture(scope="module")
def cluster(client_port: int) -> Iterator[str]:
    """A cluster to which runs connect by address."""
    yield from started_cluster(ray_client_server_port=client_port)


def by_ray(*texts: str, agent: Any = "agent.py:agent", **options: Any) -> BenchmarkRun:
    questions = [{"id": f"q{number}", "question_text": text} for number, text in enumerate(texts)]
    given: dict[str, Any] = {"engine": "ray", "workers": 2, "progress": "off", **options}
    dataset: Any = [{"template_id": "t", "questions": questions}]
    return run_benchmark(agent, dataset, **given)


def successes(run: BenchmarkRun) -> int:
    return int(run.aggregates["micro"]["number_of_success_samples"])


def test_own_cluster_ends_with_its_run_and_outlives_an_idle_thread() -> None:
    run = by_ray(*map(str, range(20)))
    assert successes(run) == 20
    assert run.warnings == []
    Path("slow.py").write_text("import time\ndef agent(question):\n    time.sleep(14)\n    return question\n")
    assert successes(by_ray("one", agent="slow.py:agent")) == 1
    assert not ray.is_initialized()


def test_ctrl_c_in_a_terminal_reaches_an_own_cluster(run_on_disk: Any) -> None:
    run = run_on_disk(RECORDING.format(folder=str(Path.cwd())), 60)
    process = run.start(run.command("-j", "4", "--engine", "ray", "--workers", "2"), before=os.setsid)
    run.wait(process, lambda: run.attempt_count >= 6)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert set(run.attempts()) == run.answered()
    assert "Traceback" not in stderr


def test_ctrl_c_during_cluster_start_ends_the_run_and_the_cluster(run_on_disk: Any) -> None:
    run = run_on_disk(RECORDING.format(folder=str(Path.cwd())), 5)
    log = Path("events.jsonl")
    command = run.command("--engine", "ray", "--workers", "2", "--log-file", str(log))
    process = run.start(command, before=os.setsid)
    run.wait(process, lambda: log.exists() and "workers_starting" in log.read_text(encoding="utf-8"))
    run.wait(process, lambda: len(_processes_of(run)) > 1)  # the cluster's first processes
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert run.attempt_count == 0
    deadline = time.monotonic() + 20
    while left := _processes_of(run):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_unreachable_address_is_reported_immediately() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(OptionError, match=rf"no Ray cluster can be reached .* nothing answers at {address} \("):
        by_ray("one", ray_address=address)


class TestOnACluster:
    """The cluster has two nodes and three processors."""

    def test_workers_share_rate_limits_and_budget(self, cluster: str) -> None:
        with OpenAIStub() as stub:
            stub.latency_sec = 0.02
            stub.chat_faults.append(rate_limit(**{"Retry-After": "0.2"}))
            Path("agent.py").write_text(ASKING.format(url=stub.base_url), encoding="utf-8")
            limits: list[int] = []
            most = 0.02
            run = by_ray(
                *map(str, range(100)),
                ray_address=cluster,
                max_cost=most,
                config={"prices": PRICES},
                on_event=lambda event: limits.append(event.fields["limit"]) if event.kind == "limit_changed" else None,
            )
        assert limits[0] == 4
        costs = [response.get("agent_cost") or 0.0 for response in run.responses]
        assert 0 < sum(costs) <= most + 8 * max(costs)  # requests in flight may exceed it
        assert run.stopped is not None
        assert run.stopped["reason"] == "max_cost"

    def test_ctrl_c_lets_questions_in_flight_finish(self, cluster: str, run_on_disk: Any) -> None:
        run = run_on_disk(RECORDING.format(folder=str(Path.cwd())), 60)
        options = run.command("-j", "4", "--engine", "ray", "--workers", "2", "--ray-address", cluster)
        process = run.start(options, is_new=True)  # a fork starts before the cluster has closed the previous client
        run.wait(process, lambda: run.attempt_count >= 6)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert set(run.attempts()) == run.answered()

    def test_immediate_stop_of_a_remote_client_prints_nothing_about_ray(
        self, cluster: str, client_port: int, run_on_disk: Any
    ) -> None:
        run = run_on_disk(RECORDING.format(folder=str(Path.cwd())), 60)
        address = ("--ray-address", f"ray://127.0.0.1:{client_port}")
        options = run.command("-j", "4", "--engine", "ray", "--workers", "2", *address)

        def started(*, is_stopped: bool) -> tuple[int, str]:
            """Run the command, and retry it while the cluster is too busy to accept a client."""
            for _ in range(4):
                process = run.start(options, is_new=True)
                if is_stopped:
                    run.wait(process, lambda: run.attempt_count >= 6)
                    process.send_signal(signal.SIGTERM)
                    time.sleep(0.1)
                    process.send_signal(signal.SIGTERM)
                _, stderr = process.communicate(timeout=120)
                if "no Ray cluster can be reached" not in stderr:
                    break
                time.sleep(5)
            return process.returncode, stderr

        exit_code, stderr = started(is_stopped=True)
        assert exit_code == 143, stderr
        assert "Traceback" not in stderr, stderr
        exit_code, stderr = started(is_stopped=False)
        assert exit_code == 0, stderr
        run.check_complete()

    def test_folder_too_large_to_be_sent_is_one_error(self, cluster: str) -> None:
        with Path("data.bin").open("wb") as file:
            file.truncate(600 * 2**20)
        with pytest.raises(OptionError, match=r"agent's folder cannot be sent .*Package size.*in .*\.rayignore"):
            by_ray("one", ray_address=cluster)

    def test_repeatedly_killed_workers_and_drivers_lose_and_repeat_nothing(
        self, cluster: str, run_on_disk: Any
    ) -> None:
        draw = random.Random(20261123)
        run = run_on_disk(RECORDING.format(folder=str(Path.cwd())), 400)
        options = run.command("-j", "6", "--engine", "ray", "--workers", "2", "--ray-address", cluster)
        kills: Counter[str] = Counter()
        confirmed: list[tuple[set[Any], int]] = []
        for _ in range(KILLED_DRIVERS):
            process = run.start(options, is_new=True)
            for number in range(4):
                wanted = run.attempt_count + draw.randint(5, 15)
                run.wait(process, lambda wanted=wanted: run.attempt_count >= wanted)
                confirmed.append((run.answered(), run.attempt_count))
                if number < 3:
                    kills["worker"] += _kill_worker(run, draw)
            kills["driver"] += run.kill(process)
        # A question that three workers lost is an error, and is retried on request.
        failed = {key for key, record in run.responses().items() if record["status"] == "error"}
        outcome = run.run([*options, "--retry-errors"], is_new=True)
        assert outcome.returncode == 0, outcome.stderr
        assert kills == {"worker": 3 * KILLED_DRIVERS, "driver": KILLED_DRIVERS}
        run.check_complete()
        for known, position in confirmed:
            assert not (known - failed) & set(run.attempts()[position:])


@pytest.mark.usefixtures("connected")
class TestOnAConnectedCluster:
    """This process is connected to the cluster already; each run uses that connection and its workers."""

    def test_agent_of_this_program_is_sent_by_value(self, cluster: str) -> None:
        greeting = "hello"
        run = by_ray("one", "two", agent=lambda question: f"{greeting} {question}", ray_address=cluster)
        assert [response.get("actual_answer") for response in run.responses] == ["hello one", "hello two"]

    def test_edited_agent_file_is_loaded_again_for_each_run(self, cluster: str) -> None:
        for answer in ("before", "after"):
            Path("agent.py").write_text(f"def agent(question):\n    return {answer!r}\n", encoding="utf-8")
            assert by_ray("one", ray_address=cluster).responses[0].get("actual_answer") == answer

    def test_unpicklable_agent_is_one_error(self, cluster: str) -> None:
        lock = threading.Lock()

        def agent(question: str) -> str:
            with lock:
                return question

        with pytest.raises(AgentError, match=r"the agent cannot be sent to another process .*my_agent\.py:agent"):
            by_ray("one", agent=agent, ray_address=cluster)

    def test_questions_of_a_lost_worker_are_retried(self, cluster: str) -> None:
        run = by_ray("once", *map(str, range(30)), ray_address=cluster, max_concurrency=6)
        assert successes(run) == 31
        assert run.warnings == []

    def test_question_that_ends_every_worker_fails_alone(self, cluster: str) -> None:
        run = by_ray("always", *map(str, range(10)), ray_address=cluster, max_concurrency=3)
        assert [response.get("error") for response in run.responses if response["status"] == "error"] == [
            "WorkerLostError: 3 workers were lost while they asked it"
        ]
        assert successes(run) == 10

    def test_workers_share_one_request_limit(self, cluster: str) -> None:
        run = by_ray(*map(str, range(20)), ray_address=cluster, workers=3, requests_per_minute=600)
        assert successes(run) == 20
        starts = sorted(float(line.split()[-1]) for line in Path("pids.txt").read_text(encoding="utf-8").splitlines())
        assert starts[-1] - starts[0] >= 19 * 0.1 * 0.9


def _processes_of(run: Any) -> list[str]:
    """Return the commands of all processes that a run started, found by their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if f"ASKED_FILE={run.folder}/".encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def _ended(run: Any) -> dict[str, int]:
    """Return the questions with finished attempts and their processes, in order."""
    lines = (run.folder / "ended.txt").read_text(encoding="utf-8").splitlines()
    return {question: int(pid) for question, pid in map(str.split, lines)}


def _kill_worker(run: Any, draw: random.Random) -> bool:
    """Kill one of the agent's processes and return whether it existed."""
    pids = sorted({pid for pid in _ended(run).values() if Path(f"/proc/{pid}").exists()})
    os.kill(draw.choice(pids), signal.SIGKILL)
    return True
