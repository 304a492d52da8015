"""The overhead of the benchmark harness, compared with a bare asyncio.gather and the usual sequential loop.

Run it as ``python benchmarks/harness.py``. Up to 2,000 questions go to agents that wait 50 ms: an async function, a
LangGraph graph of one node, and a graph in which a model calls a tool and then answers. ``gather`` runs under an
asyncio.Semaphore and keeps the outputs. The harness captures, journals and scores all responses into a folder. Both
alternate and medians count. The sequential loop is measured on 100 questions and extrapolated.

The CPU time of the process is compared too. A graph itself keeps a core busy for a millisecond or more, so 64 at a time
take longer than 50 ms in any harness. The goal for the graph is therefore set for 16 at a time.

Memory is measured in a separate process, on Linux: the peak above the memory used once the dataset is loaded, while
50,000 responses of 20 kB arrive. They take 2 GB in the temporary folder. ``--quick`` uses a quarter of the questions, a
tenth of the responses and fewer repeats. The exit code is 1 if a goal is missed.
"""

import argparse
import asyncio
import contextlib
import gc
import io
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from graphrag_eval_lc import load_dataset, run_benchmark
from graphrag_eval_lc.dataset import questions_of
from graphrag_eval_lc.records import Template

QUESTIONS, RESPONSES = 2_000, 50_000
AGENT_SEC = 0.05
RESPONSE_BYTES = 20_000
QUESTIONS_OF_A_TEMPLATE = 100
WALL_GOAL = 1.15  # upper limit relative to gather
MEMORY_GOAL_MB = 50.0

Agent = Any
Ask = Callable[[str], Awaitable[Any]]
Progress = Literal["off", "bar"]


class Cost(NamedTuple):
    """Seconds that one way of running all questions takes."""

    wall: float
    cpu: float


def rows_text(question_text: str, rows: int) -> str:
    """Return the SPARQL results that answer a question, as JSON."""
    bindings = [{"line": {"type": "uri", "value": f"urn:line:{question_text[-8:]}:{row}"}} for row in range(rows)]
    return json.dumps({"head": {"vars": ["line"]}, "results": {"bindings": bindings}})


def dataset_of(questions: int, rows: int) -> list[dict[str, Any]]:
    """Return templates whose questions have one reference step with some rows."""
    templates: dict[int, list[dict[str, Any]]] = {}
    for number in range(questions):
        text = f"Which lines start at substation {number:08}?"
        step = {
            "name": "query",
            "args": {"question": text},
            "output": rows_text(text, rows),
            "output_media_type": "application/sparql-results+json",
            "required_columns": ["line"],
        }
        templates.setdefault(number // QUESTIONS_OF_A_TEMPLATE, []).append(
            {"id": f"q{number:08}", "question_text": text, "reference_steps": [[step]]}
        )
    return [{"template_id": f"t{number}", "questions": each} for number, each in templates.items()]


# --- agents ----------------------------------------------------------------------------------------------------------


async def function(question: str) -> str:
    """Answer after a wait."""
    await asyncio.sleep(AGENT_SEC)
    return f"The answer to {question}"


async def answer(state: MessagesState) -> dict[str, Any]:
    """Answer after a wait, as a node of a graph."""
    return {"messages": [AIMessage(await function(state["messages"][-1].text))]}


@tool
async def query(question: str) -> str:
    """Ask the graph database."""
    await asyncio.sleep(AGENT_SEC / 5)
    return rows_text(question, 3)


class ScriptedModel(BaseChatModel):
    """Calls the tool with the question, then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        call = {"name": "query", "args": {"question": messages[0].text}, "id": "call_1", "type": "tool_call"}
        message = AIMessage(
            "" if len(messages) == 1 else "These lines.",
            tool_calls=[call] if len(messages) == 1 else [],
            usage_metadata={"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(2 * AGENT_SEC / 5)
        return self._generate(messages)


MODEL = ScriptedModel()


async def model(state: MessagesState) -> dict[str, Any]:
    """Call the model."""
    return {"messages": [await MODEL.ainvoke(state["messages"])]}


def graph_of_one_node() -> Agent:
    """Return a graph whose node waits and answers."""
    return StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()


def graph_with_tool() -> Agent:
    """Return a graph in which a model calls a tool once."""
    graph = StateGraph(MessagesState).add_node(model).add_node("tools", ToolNode([query]))
    graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    return graph.compile()


def ask_of(agent: Agent) -> Ask:
    """Return a function that runs an agent without the harness."""

    async def ask(question: str) -> Any:
        if agent is function:
            return await function(question)
        return await agent.ainvoke({"messages": [{"role": "user", "content": question}]})

    return ask


# --- speed -----------------------------------------------------------------------------------------------------------


async def gathered(ask: Ask, questions: Sequence[str], concurrency: int) -> None:
    """Run all questions with limited concurrency, and keep the outputs."""
    places = asyncio.Semaphore(concurrency)

    async def asked(question: str) -> Any:
        async with places:
            return await ask(question)

    await asyncio.gather(*map(asked, questions))


async def one_by_one(ask: Ask, questions: Sequence[str]) -> None:
    """Run one question after the other."""
    for question in questions:
        await ask(question)


def cost_of(work: Callable[[], Any]) -> Cost:
    """Return the time that some work takes."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def harness_cost(agent: Agent, templates: list[Template], concurrency: int, progress: Progress) -> Cost:
    """Return the cost of the harness; the progress bar's output is dropped."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        cost = cost_of(
            lambda: run_benchmark(
                agent, templates, output_dir=folder, max_concurrency=concurrency, progress=progress, max_retries=0
            )
        )
        lines = Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
    if sum(json.loads(line)["status"] == "success" for line in lines) < len(questions_in(templates)):
        raise SystemExit("The harness lost questions.")
    return cost


def questions_in(templates: list[Template]) -> list[str]:
    """Return the texts of all questions."""
    return [question["question_text"] for _, question in questions_of(templates)]


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the medians."""
    return Cost(statistics.median(cost.wall for cost in costs), statistics.median(cost.cpu for cost in costs))


def measure_speed(
    name: str, agent: Agent, templates: list[Template], repeats: int, *, concurrency: int, has_goal: bool
) -> bool:
    """Print the cost of each way of running an agent, and return whether the goal is met."""
    ask, questions = ask_of(agent), questions_in(templates)
    first = questions[:100]
    asyncio.run(gathered(ask, first, concurrency))
    sequential = cost_of(lambda: asyncio.run(one_by_one(ask, first))).wall / len(first) * len(questions)
    ways: dict[str, Callable[[], Cost]] = {
        "gather": lambda: cost_of(lambda: asyncio.run(gathered(ask, questions, concurrency))),
        "harness": lambda: harness_cost(agent, templates, concurrency, "off"),
        "harness with a bar": lambda: harness_cost(agent, templates, concurrency, "bar"),
    }
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, cost in ways.items():
            costs[way].append(cost())
    medians = {way: median_cost(each) for way, each in costs.items()}
    bare = medians["gather"]
    print(f"\n{name}, {len(questions):,} questions, {concurrency} at a time")
    print(f"{'':20}{'wall s':>10}{'times':>8}{'CPU µs a question':>20}{'times':>8}{'more µs':>10}")
    print(f"{'one by one (scaled)':20}{sequential:10.2f}{sequential / bare.wall:8.2f}")
    for way, median in medians.items():
        cpu, more = (1e6 * seconds / len(questions) for seconds in (median.cpu, median.cpu - bare.cpu))
        wall_times, cpu_times = median.wall / bare.wall, median.cpu / bare.cpu
        print(f"{way:20}{median.wall:10.2f}{wall_times:8.2f}{cpu:20.0f}{cpu_times:8.2f}{more:10.0f}")
    if not has_goal:
        return True
    ratio = medians["harness"].wall / bare.wall
    return verdict(f"wall at most {WALL_GOAL} times gather", f"{ratio:.2f} times", is_met=ratio <= WALL_GOAL)


def verdict(goal: str, measured: str, *, is_met: bool) -> bool:
    """Print a goal and the measured value."""
    print(f"  goal, {goal}: {measured}, {'met' if is_met else 'NOT MET'}", flush=True)
    return is_met


# --- memory ----------------------------------------------------------------------------------------------------------


def memory_mb(field: str) -> float:
    """Return a field of this process's memory status on Linux, such as VmRSS (now) or VmHWM (peak)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


async def long_answer(question: str) -> str:
    """Call a tool with an output of 20 kB, without waiting."""
    output = rows_text(question, 3)
    await long_query.ainvoke({"question": question})
    return output


@tool
async def long_query(question: str) -> str:
    """Give what the graph database says, with spaces as some write JSON."""
    return rows_text(question, 3).ljust(RESPONSE_BYTES)


def memory_growth(dataset: str, folder: str) -> tuple[float, float]:
    """Return the memory with the dataset loaded, and the growth from there to the peak of a run, in MB."""
    templates = load_dataset(dataset)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is measured from here
    loaded = memory_mb("VmRSS")
    run_benchmark(long_answer, templates, output_dir=folder, max_concurrency=64, progress="off")
    return loaded, memory_mb("VmHWM") - loaded


def measure_memory(responses: int) -> bool:
    """Print the growth in memory, and return whether the goal is met."""
    if not Path("/proc/self/clear_refs").exists():
        print("\nMemory is measured on Linux only.")
        return True
    with tempfile.TemporaryDirectory() as name:
        dataset, folder = Path(name, "dataset.jsonl"), Path(name, "run")
        with dataset.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(template)}\n" for template in dataset_of(responses, 3))
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            started = time.perf_counter()
            loaded, growth = process.submit(memory_growth, str(dataset), str(folder)).result()
            seconds = time.perf_counter() - started
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"\nMemory, {responses:,} responses of {RESPONSE_BYTES:,} bytes, {size:,.0f} MB of files, {seconds:.0f} s")
    print(f"{'with the dataset':20}{loaded:10.0f} MB\n{'growth to the peak':20}{growth:10.1f} MB")
    return verdict(f"at most {MEMORY_GOAL_MB:.0f} MB", f"{growth:.1f} MB", is_met=growth <= MEMORY_GOAL_MB)


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="take fewer questions, responses and repeats")
    options = parser.parse_args()
    questions, responses, repeats = (QUESTIONS // 4, RESPONSES // 10, 3) if options.quick else (QUESTIONS, RESPONSES, 5)
    templates: Any = dataset_of(questions, 3)
    fewer: Any = dataset_of(questions // 4, 3)
    node, tools = graph_of_one_node(), graph_with_tool()
    is_met = measure_speed("An async function", function, templates, repeats, concurrency=64, has_goal=True)
    is_met &= measure_speed("A graph of one node", node, fewer, repeats, concurrency=16, has_goal=True)
    measure_speed("A graph of one node", node, templates, repeats, concurrency=64, has_goal=False)
    measure_speed("A graph with a model and a tool", tools, fewer, repeats, concurrency=8, has_goal=False)
    is_met &= measure_memory(responses)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
