"""Questions in separate processes: one that blocks, leaks or crashes fails alone, and everything else is unchanged."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from loky import ProcessPoolExecutor
from support.openai_stub import OpenAIStub, rate_limit

from graphrag_eval_lc import BenchmarkRun, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.errors import AgentError

pytestmark = pytest.mark.full

AGENT = """
import asyncio, ctypes, os, threading, time

async def agent(question):
    if question == "crash":
        ctypes.string_at(0)
    if question == "exit":
        os._exit(3)
    if question == "kill":
        os.kill(os.getpid(), 9)
    if question == "block":
        time.sleep(600)
    if question == "hang":
        await asyncio.sleep(60)
    await asyncio.sleep(0.02)
    return f"{question} by {os.getpid()}"

def in_thread(question):
    if question == "block":
        while True:
            open("beats.txt", "a").write(".")
            time.sleep(0.05)
    return question

def broken():
    raise RuntimeError("no database here")
"""

PRICES = {"gpt-4o-mini": {"input": 2.0, "output": 8.0}}
ASKING = """
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

def agent():
    model = ChatOpenAI(model="gpt-4o-mini", base_url="{url}", api_key="k", max_retries=0, max_tokens=50)
    async def answer(state: MessagesState):
        return {{"messages": [await model.ainvoke(state["messages"])]}}
    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()

def in_thread():
    model = ChatOpenAI(model="gpt-4o-mini", base_url="{url}", api_key="k", max_retries=0, max_tokens=50)
    def answer(state: MessagesState):
        return {{"messages": [model.invoke(state["messages"])]}}
    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT, encoding="utf-8")
    return tmp_path


def isolated(*texts: str, agent: Any = "agent.py:agent", **options: Any) -> BenchmarkRun:
    questions = [{"id": f"q{number}", "question_text": text} for number, text in enumerate(texts)]
    given: dict[str, Any] = {"isolate": True, "progress": "off", "max_concurrency": 4, **options}
    return run_benchmark(agent, [{"template_id": "t", "questions": questions}], **given)


def errors_of(run: BenchmarkRun) -> list[str | None]:
    return [response.get("error") for response in run.responses]


def test_question_that_ends_its_process_fails_alone() -> None:
    run = isolated("one", "crash", "two", "exit", "kill", *(str(number) for number in range(10)))
    lost = [error for error in errors_of(run) if error]
    assert lost == [
        "WorkerLostError: the worker process was killed by SIGSEGV (Segmentation fault)",
        "WorkerLostError: the worker process exited with code 3",
        "WorkerLostError: the worker process was killed by SIGKILL (Killed); the system does that if memory runs out",
    ]
    assert run.aggregates["micro"]["number_of_success_samples"] == 12


def test_idle_process_that_ends_fails_no_question() -> None:
    Path("agent.py").write_text(
        "import os, threading\ndef agent(question):\n    threading.Timer(0.3, os._exit, [3]).start()\n"
        "    return question\n",
        encoding="utf-8",
    )
    run = isolated(*"abc", max_concurrency=1, requests_per_minute=40)
    assert errors_of(run) == [None] * 3


def test_system_exit_in_a_graph_is_the_error_of_its_question() -> None:
    Path("agent.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\ndef leave(state):\n    raise SystemExit(3)\n"
        'agent = StateGraph(MessagesState).add_node("leave", leave).add_edge(START, "leave").compile()\n',
        encoding="utf-8",
    )
    assert errors_of(isolated(*"ab", max_concurrency=1)) == ["SystemExit: 3"] * 2


def test_endless_agent_thread_does_not_block_the_run() -> None:
    Path("agent.py").write_text(
        "import threading, time\ndef agent(question):\n    threading.Thread(target=time.sleep, args=[600]).start()\n"
        "    return question\n",
        encoding="utf-8",
    )
    began = time.monotonic()
    assert errors_of(isolated("a")) == [None]
    assert time.monotonic() - began < 120


def test_timeout_ends_blocking_and_hanging_questions() -> None:
    began = time.monotonic()
    run = isolated("block", "hang", "one", timeout=1.0)
    assert time.monotonic() - began < 300
    blocked, hung, answered = errors_of(run)
    assert blocked is not None
    assert blocked.startswith("QuestionTimeoutError: no answer within 1 s, the run's timeout; its process was ended")
    assert hung == "QuestionTimeoutError: no answer within 1 s, the run's timeout"
    assert answered is None


STEPS = """
import ctypes, os, time
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self

@tool
async def look_up(name: str) -> str:
    "Look up."
    if name == "crash":
        ctypes.string_at(0)
    if name == "block":
        time.sleep(60)
    return name * 3

def said(text, tokens, *names):
    calls = [{"name": "look_up", "args": {"name": name}, "id": f"call {name}"} for name in names]
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return AIMessage(text, tool_calls=calls, usage_metadata=usage)

async def agent(question):
    messages = [said("", 10, "one"), said("", 20, "two"), said("", 30, question), said("done", 40)]
    graph = create_agent(Model(messages=iter(messages)), [look_up])
    return await graph.ainvoke({"messages": [("user", question)]})
"""


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("crash", "WorkerLostError: the worker process was killed by SIGSEGV (Segmentation fault)"),
        ("block", "QuestionTimeoutError: no answer within 2 s, the run's timeout; its process was ended"),
    ],
)
def test_steps_and_tokens_before_a_process_loss_are_kept(question: str, reason: str) -> None:
    Path("agent.py").write_text(STEPS, encoding="utf-8")
    lost, whole = isolated(question, "three", timeout=2.0, agent="agent.py:agent").responses
    assert str(lost.get("error")).startswith(reason)
    assert [(step["name"], step["args"], step.get("output")) for step in lost["actual_steps"]] == [
        ("look_up", {"name": "one"}, "oneoneone"),
        ("look_up", {"name": "two"}, "twotwotwo"),
        ("look_up", {"name": question}, None),
    ]
    assert lost["actual_steps"][-1]["error"] == lost["error"]
    assert (lost["input_tokens"], lost["output_tokens"]) == (60, 3)
    assert [list(step) for step in lost["actual_steps"][:2]] == [list(step) for step in whole["actual_steps"][:2]]
    assert lost["question_text"] == question
    assert lost["elapsed_sec"] >= sum(step.get("elapsed_sec", 0.0) for step in lost["actual_steps"])


def test_unfinished_model_call_of_a_lost_process_is_reported() -> None:
    crashing = "ctypes.string_at(0)\n"
    source = STEPS.replace("return self\n", f"return self\n    def _generate(self, *_, **__):\n        {crashing}", 1)
    Path("agent.py").write_text(source, encoding="utf-8")
    (lost,) = isolated("one").responses
    assert [call.get("error") for call in lost["llm_calls"]] == [lost["error"]]


def test_agent_has_time_to_cancel_at_its_server_after_a_timeout() -> None:
    Path("agent.py").write_text(
        "import asyncio\nfrom langchain_core.runnables import Runnable\n"
        "class Remote(Runnable):  # tells no callback of what it does, as a deployed graph\n"
        "    def invoke(self, state, config=None): return None\n"
        "    async def ainvoke(self, state, config=None): await asyncio.sleep(60)\n"
        "    async def aget_state(self, config): await asyncio.sleep(4)\n"
        "agent = Remote()\n",
        encoding="utf-8",
    )
    assert errors_of(isolated("one", timeout=0.5)) == [
        "QuestionTimeoutError: no answer within 0.5 s, the run's timeout"
    ]


def test_killed_run_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(Path("tmp").absolute()))
    Path("tmp").mkdir()
    Path("qa.json").write_text('[{"template_id": "t", "questions": [{"id": "q", "question_text": "hang"}]}]')
    command = [sys.executable, "-m", "graphrag_eval_lc", "run", "qa.json", "-a", "agent.py:agent", "-o", "run"]
    process = subprocess.Popen([*command, "--isolate", "--log-file", "log"], stderr=subprocess.DEVNULL)
    wait_for(lambda: "attempt_started" in read("log") and any(Path("tmp").glob("graphrag-eval-lc-*")))
    time.sleep(1.0)
    process.kill()
    process.wait()
    wait_for(lambda: not any(Path("tmp").glob("graphrag-eval-lc-*")))


def test_requests_per_minute_are_counted_once_a_process_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("agent.py").write_text(
        "import asyncio, time\n"
        "open('loading.txt', 'a').write('.')\n"
        "end = time.monotonic() + 10\n"
        "while len(open('loading.txt').read()) % 2 and time.monotonic() < end:  # two processes are ready together\n"
        "    time.sleep(0.01)\n"
        "async def agent(question):\n"
        "    open('asked.txt', 'a').write(question)\n"
        "    await asyncio.sleep(2)\n"
        "    return question\n",
        encoding="utf-8",
    )
    sent: list[float] = []  # when the driver sent a question; on a busy machine, processes receive them later
    submit = ProcessPoolExecutor.submit

    def timed_submit(pool: ProcessPoolExecutor, work: Any, *arguments: Any) -> Any:
        if arguments:  # loading and closing have none
            sent.append(time.monotonic())
        return submit(pool, work, *arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", timed_submit)
    isolated(*"abcdef", max_concurrency=4, requests_per_minute=120)
    assert sorted(read("asked.txt")) == [*"abcdef"]
    assert len(sent) == 6
    assert sent[-1] - sent[0] > 5 * 0.45  # every half second
    assert min(later - earlier for earlier, later in pairwise(sent)) > 0.2  # sooner after a late one


def test_processes_are_started_as_needed() -> None:
    run = isolated(*"abcd", max_concurrency=4, requests_per_minute=20)  # one is free again before the next question
    assert len({str(response.get("actual_answer")).split()[-1] for response in run.responses}) <= 2


def read(name: str) -> str:
    return Path(name).read_text(encoding="utf-8") if Path(name).exists() else ""


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_thread_that_continues_after_the_timeout_is_ended() -> None:
    isolated("block", "one", agent="agent.py:in_thread", timeout=0.5)
    beats = Path("beats.txt").read_text(encoding="utf-8")
    time.sleep(0.3)
    assert Path("beats.txt").read_text(encoding="utf-8") == beats


def test_processes_are_reused_and_none_is_left() -> None:
    run = isolated(*map(str, range(40)))
    pids = {int(str(response.get("actual_answer")).split()[-1]) for response in run.responses}
    assert 1 <= len(pids) <= 4
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_demo_has_the_same_results_with_isolation() -> None:
    events: dict[bool, list[str]] = {}
    runs = {}
    for isolate in (False, True):
        log = events.setdefault(isolate, [])
        runs[isolate] = run_benchmark(
            "graphrag_eval_lc.demo.agent:create_demo_agent",
            DATASET_PATH,
            isolate=isolate,
            progress="off",
            on_event=lambda event, log=log: log.append(f"{event.kind} {event.fields.get('question_id')}"),
        )
    assert sorted(events[True]) == sorted(events[False])
    assert runs[True].warnings == runs[False].warnings
    plain, isolated = (json.loads(json.dumps(runs[each].responses, default=str)) for each in (False, True))
    assert [_without_times(each) for each in isolated] == [_without_times(each) for each in plain]


def _without_times(value: Any) -> Any:
    """Return a record without values that differ between runs."""
    varying = (
        "attempt_id",
        "thread_id",
        "elapsed_sec",
        "started_at",
        "run_id",
        "run_ids",
        "trace_ids",
        "id",
        "execution_timestamp",
        "first_token_sec",
    )
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in varying}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


SCRIPT = """
import multiprocessing  # which has the script under another name too
from langgraph.graph import START, MessagesState, StateGraph
from graphrag_eval_lc import run_benchmark

def answer(question):
    return f"{question}!"

async def answer_async(question):
    return f"{question}?"

class Agent:
    def __init__(self, ending):
        self.ending = ending

    def __call__(self, question):
        return question + self.ending

def say(state):
    return {"messages": [("ai", "hello")]}

graph = StateGraph(MessagesState).add_node("say", say).add_edge(START, "say").compile()
dataset = [{"template_id": "t", "questions": [{"id": "q", "question_text": "you"}]}]
for agent in (answer, answer_async, Agent("."), lambda question: "fine", graph, lambda: graph):
    run = run_benchmark(agent, dataset, isolate=True, progress="off")
    print(run.responses[0].get("actual_answer") or run.responses[0])
"""


@pytest.mark.parametrize("way", ["file", "stdin", "-c"])
def test_objects_of_a_script_are_sent_by_value(way: str) -> None:
    Path("script.py").write_text(SCRIPT, encoding="utf-8")
    given = {"file": ["script.py"], "stdin": ["-"], "-c": ["-c", SCRIPT]}[way]
    ended = subprocess.run([sys.executable, *given], input=SCRIPT, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["you!", "you?", "you.", "fine", "hello", "hello"], ended.stderr[-2000:]


def test_unloadable_agent_is_one_error() -> None:
    with pytest.raises(AgentError, match="no database here"):
        isolated("one", agent="agent.py:broken")


def test_unpicklable_agent_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.Lock()

    def agent(question: str) -> str:
        with lock:
            return question

    with pytest.raises(AgentError, match=r"the agent cannot be sent to another process .*my_agent\.py:agent"):
        isolated("one", agent=agent)


def test_objects_of_a_module_are_sent_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    source = "from langgraph.graph import START, MessagesState, StateGraph\n"
    source += (
        "b = StateGraph(MessagesState).add_node('a', lambda s: {'messages': [('ai', 'yes')]}).add_edge(START, 'a')\n"
    )
    Path("sent_by_name.py").write_text(f"{source}graph = b.compile()\n", encoding="utf-8")
    module = __import__("sent_by_name")
    run = isolated("one", agent=module.graph)
    assert [response.get("actual_answer") for response in run.responses] == ["yes"]


def test_question_is_retried_after_a_server_error() -> None:
    Path("agent.py").write_text(
        "import os\ndef agent(question):\n"
        "    open('asked.txt', 'a').write('x')\n"
        "    if os.path.getsize('asked.txt') < 2:\n        raise ConnectionResetError('gone')\n"
        "    return question\n",
        encoding="utf-8",
    )
    run = isolated("one")
    assert errors_of(run) == [None]
    assert len(run.responses[0]["failed_attempts"]) == 1  # type: ignore[typeddict-item]


@pytest.fixture
def stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as server:
        yield server


def test_rate_limit_of_one_process_slows_all(stub: OpenAIStub) -> None:
    stub.chat_faults.append(rate_limit(**{"Retry-After": "0.2"}))
    Path("agent.py").write_text(ASKING.format(url=stub.base_url), encoding="utf-8")
    kinds: list[Any] = []
    run = isolated(*map(str, range(12)), on_event=lambda event: kinds.append(event))
    assert run.aggregates["micro"]["number_of_success_samples"] == 12
    assert next(event.fields["limit"] for event in kinds if event.kind == "limit_changed") == 2


@pytest.mark.parametrize("agent", ["agent.py:agent", "agent.py:in_thread"])
def test_processes_share_one_cost_budget(stub: OpenAIStub, agent: str) -> None:
    Path("agent.py").write_text(ASKING.format(url=stub.base_url), encoding="utf-8")
    stub.latency_sec = 0.02
    most = 0.012
    run = isolated(*map(str, range(60)), agent=agent, max_cost=most, config={"prices": PRICES}, output_dir="run")
    costs = [response.get("agent_cost") or 0.0 for response in run.responses]
    assert 0 < sum(costs) <= most + 4 * max(costs)  # requests in flight may exceed it
    assert run.stopped is not None
    assert run.stopped["reason"] == "max_cost"
    assert len(stub.requests) == sum(bool(response.get("llm_calls")) for response in run.responses)


def test_cost_of_a_crashed_question_counts_once(stub: OpenAIStub) -> None:
    asking = ASKING.replace("        return", "        message =", 1).replace("])]}}", "])]}}\n        os._exit(3)", 1)
    Path("agent.py").write_text("import os\n" + asking.format(url=stub.base_url), encoding="utf-8")
    run = isolated(*"abcdef", max_cost=0.0175, max_concurrency=1, config={"prices": PRICES})
    assert [response["agent_cost"] for response in run.responses] == [0.0028] * 6
    assert len(stub.requests) == 6
    assert run.stopped is None
