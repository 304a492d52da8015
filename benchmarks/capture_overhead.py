"""The overhead of the capture handler, compared with RunCollectorCallbackHandler, LangChainTracer and langfuse.

Run it as ``python benchmarks/capture_overhead.py``. It measures the process's CPU time per tool call, relative to the
same run without a handler, in five columns: tool events only (``tool.invoke`` in a loop) and full agent turns
(``create_agent`` with a scripted model), each sync and async, and full turns after a history of 400 messages, which
every prompt and state then contains. The handlers alternate in short repeats, so that noise of the machine affects all
of them. A handler's cost in a repeat is its time relative to the bare run of the same repeat, and the median of all
repeats counts. Nothing is sent over the network: LangChainTracer has a client that sends nothing, and langfuse's spans
are dropped by the exporter. langfuse is skipped if it is not installed. ``--quick`` runs a fifth of the repeats. The
exit code is 1 if a column misses the goal: at most 0.6 of RunCollectorCallbackHandler.
"""

import argparse
import asyncio
import gc
import importlib
import importlib.metadata
import sys
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from statistics import median
from typing import Any, cast

import langsmith
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from graphrag_eval_lc import GraphRAGEvalCallbackHandler

GOAL = 0.6
TURNS = 10  # tool calls per agent run
OURS, RUN_COLLECTOR = "GraphRAGEvalCallbackHandler", "RunCollectorCallbackHandler"

NewHandler = Callable[[], BaseCallbackHandler]
Workload = Callable[[list[BaseCallbackHandler], int], Any]


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


class ScriptedModel(BaseChatModel):
    """Requests one tool call per turn, and answers after the last."""

    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}  # langfuse warns about models without a name on every call

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Return the model unchanged; its script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        own = takewhile(lambda message: not isinstance(message, HumanMessage), reversed(messages))
        turn = sum(isinstance(message, AIMessage) for message in own)
        call = {"name": "search", "args": {"query": f"word {turn}"}, "id": f"call_{turn}", "type": "tool_call"}
        message = AIMessage(
            "" if turn < TURNS else "done",
            tool_calls=[call] if turn < TURNS else [],
            usage_metadata={"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


AGENT = create_agent(ScriptedModel(), [search])
QUESTION: Any = {"messages": [("user", "Which words are there?")]}
HISTORY: list[BaseMessage] = [
    message
    for number in range(100)
    for message in (
        HumanMessage("Which word is next?", id=f"question_{number}"),
        AIMessage("", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "call_1"}], id=f"calls_{number}"),
        ToolMessage("found x", tool_call_id="call_1", id=f"found_{number}"),
        AIMessage("It is x.", id=f"answer_{number}"),
    )
]
LATE_QUESTION: Any = {"messages": [*HISTORY, *QUESTION["messages"]]}


def config(handlers: list[BaseCallbackHandler]) -> RunnableConfig:
    """Return a run config with these handlers."""
    return {"callbacks": handlers, "metadata": {"question_id": "q1"}, "recursion_limit": 10 * TURNS}


def tool_events(handlers: list[BaseCallbackHandler], calls: int) -> None:
    """Call a tool repeatedly."""
    for _ in range(calls):
        search.invoke({"query": "word"}, config(handlers))


async def async_tool_events(handlers: list[BaseCallbackHandler], calls: int) -> None:
    """Call a tool repeatedly in an event loop."""
    for _ in range(calls):
        await search.ainvoke({"query": "word"}, config(handlers))


def history_turns(handlers: list[BaseCallbackHandler], calls: int) -> None:
    """Run an agent that calls a tool in every turn, after a long conversation."""
    for _ in range(calls // TURNS):
        AGENT.invoke(LATE_QUESTION, config(handlers))


def full_turns(handlers: list[BaseCallbackHandler], calls: int) -> None:
    """Run an agent that calls a tool in every turn."""
    for _ in range(calls // TURNS):
        AGENT.invoke(QUESTION, config(handlers))


async def async_full_turns(handlers: list[BaseCallbackHandler], calls: int) -> None:
    """Run an agent that calls a tool in every turn, in an event loop."""
    for _ in range(calls // TURNS):
        await AGENT.ainvoke(QUESTION, config(handlers))


WORKLOADS: dict[str, tuple[Workload, int]] = {  # with the tool calls per repeat
    "tool, sync": (tool_events, 250),
    "tool, async": (async_tool_events, 250),
    "turn, sync": (full_turns, 50),
    "turn, async": (async_full_turns, 50),
    "400 messages": (history_turns, 20),
}


class SilentClient(langsmith.Client):
    """A LangSmith client that sends nothing."""

    def create_run(self, *args: Any, **kwargs: Any) -> None:
        """Drop a started run."""

    def update_run(self, *args: Any, **kwargs: Any) -> None:
        """Drop a finished run."""


def langchain_tracer() -> NewHandler:
    """Return a LangChainTracer with a client that sends nothing."""
    client = SilentClient(api_url="http://localhost:9", api_key="none", auto_batch_tracing=False)
    return lambda: LangChainTracer(project_name="benchmark", client=client)


class SilentExporter:
    """An OpenTelemetry exporter that drops all spans."""

    def export(self, spans: Any) -> Any:
        """Drop the spans."""
        return importlib.import_module("opentelemetry.sdk.trace.export").SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing."""
        return True


def langfuse_handler() -> NewHandler | None:
    """Return langfuse's handler with an exporter that drops all spans, or None if langfuse is not installed."""
    try:
        langfuse = importlib.import_module("langfuse")
        handler_class = importlib.import_module("langfuse.langchain").CallbackHandler
    except ImportError as error:
        print(f"langfuse is left out: {error}")
        return None
    try:
        langfuse.Langfuse(
            public_key="none", secret_key="none", host="http://localhost:9", span_exporter=SilentExporter()
        )
    except TypeError:
        print(f"langfuse {importlib.metadata.version('langfuse')} is left out: it takes no exporter of its own")
        return None
    return lambda: cast("BaseCallbackHandler", handler_class(public_key="none"))


def cpu_microseconds(workload: Workload, handlers: list[BaseCallbackHandler], calls: int) -> float:
    """Return the process's CPU time per tool call."""
    gc.collect()
    started = time.process_time()
    done = workload(handlers, calls)
    if asyncio.iscoroutine(done):
        asyncio.run(done)
    return (time.process_time() - started) / calls * 1e6


def times(workload: Workload, new_handlers: Sequence[NewHandler | None], calls: int, repeats: int) -> list[list[float]]:
    """Return the times of all handlers (None is a bare run) in each repeat, after one warm-up repeat."""
    measured = [
        [cpu_microseconds(workload, [] if new is None else [new()], calls) for new in new_handlers]
        for _ in range(repeats + 1)
    ]
    return measured[1:]


def measure(handlers: dict[str, NewHandler], *, is_quick: bool) -> dict[str, dict[str, float]]:
    """Return each handler's cost relative to a bare run by column; ``bare run`` has the absolute times."""
    costs: dict[str, dict[str, float]] = {}
    for column, (workload, calls) in WORKLOADS.items():
        repeats = times(workload, [None, *handlers.values()], calls, 11 if is_quick else 51)
        costs[column] = {"bare run": median(bare for bare, *_ in repeats)}
        for place, name in enumerate(handlers, 1):
            costs[column][name] = median(repeat[place] - repeat[0] for repeat in repeats)
    return costs


def print_table(costs: dict[str, dict[str, float]]) -> None:
    """Print the costs with their ratios to RunCollectorCallbackHandler."""
    print("CPU microseconds per tool call over the bare run (times RunCollectorCallbackHandler)")
    print(f"{'':32}" + "".join(f"{column:>18}" for column in costs))
    for name in next(iter(costs.values())):
        cells = [
            f"{column[name]:.1f}"
            + ("       " if name == "bare run" else f" ({column[name] / column[RUN_COLLECTOR]:.2f})")
            for column in costs.values()
        ]
        print(f"{name:32}" + "".join(f"{cell:>18}" for cell in cells))


def is_goal_met(costs: dict[str, dict[str, float]]) -> bool:
    """Print the verdict on each column, and return whether all meet the goal."""
    ratios = {column: cost[OURS] / cost[RUN_COLLECTOR] for column, cost in costs.items()}
    for column, ratio in ratios.items():
        verdict = "met" if ratio <= GOAL else "NOT MET"
        print(f"  goal, {column}: at most {GOAL} times {RUN_COLLECTOR}: {ratio:.2f} times, {verdict}")
    return all(ratio <= GOAL for ratio in ratios.values())


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="take fewer repeats")
    options = parser.parse_args()
    handlers: dict[str, NewHandler] = {
        OURS: GraphRAGEvalCallbackHandler,
        RUN_COLLECTOR: RunCollectorCallbackHandler,
        "LangChainTracer": langchain_tracer(),
    }
    langfuse = langfuse_handler()
    if langfuse is not None:
        handlers["langfuse"] = langfuse
    costs = measure(handlers, is_quick=options.quick)
    print_table(costs)
    return 0 if is_goal_met(costs) else 1


if __name__ == "__main__":
    sys.exit(main())
