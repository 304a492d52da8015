"""Nodes that query a graph without a tool: each run of a node that the options name is a step."""

import contextlib
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.config import NodeConfig

ROWS = [{"name": "Oslo"}, {"name": "Bergen"}]
EXECUTE = {"args": {"query": "statement", "parameter": "parameters.0"}, "output": "records"}


class State(TypedDict, total=False):
    question: str
    statement: str
    records: list[Any]


class Model(BaseModel):
    question: str = ""
    statement: str = ""
    records: list[Any] = []


def pipeline(execute: Callable[[Any], Any], state: type[Any] = State, **options: Any) -> Any:
    """Return a graph that writes a query in one node and runs it in another, as LangChain's tutorials do."""
    graph = StateGraph(state)
    graph.add_node("generate", lambda _: {"statement": "MATCH (s) RETURN s.name"})
    graph.add_node("execute", execute)
    return graph.add_edge(START, "generate").add_edge("generate", "execute").compile(**options)


def execute(state: Any) -> dict[str, Any]:
    if isinstance(state, dict):
        state["statement"] += " LIMIT 5"  # after the step has begun
    return {"records": ROWS}


def steps_of(graph: Any, inputs: Any, **nodes: Any) -> list[dict[str, Any]]:
    handler = GraphRAGEvalCallbackHandler(nodes=nodes)
    with contextlib.suppress(ValueError):
        graph.invoke(inputs, {"callbacks": [handler], "configurable": {"thread_id": "1"}})
    steps = handler.response()["actual_steps"]
    return [{key: step[key] for key in ("name", "args", "status", "output", "error") if key in step} for step in steps]


OF_EXECUTE = {"name": "execute", "args": {"query": "MATCH (s) RETURN s.name"}}
READ = {**OF_EXECUTE, "status": "success", "output": '[{"name": "Oslo"}, {"name": "Bergen"}]'}


@pytest.mark.parametrize(
    ("graph", "node", "step"),
    [
        (pipeline(execute), EXECUTE, READ),
        (pipeline(execute, Model), NodeConfig(**EXECUTE), READ),
        (pipeline(lambda _: Command(update={"records": ROWS})), EXECUTE, READ),
        (pipeline(lambda _: {"records": "| name |\n|---|"}), EXECUTE, {**READ, "output": "| name |\n|---|"}),
        (pipeline(lambda _: {}), EXECUTE, {**READ, "output": "null"}),
        (pipeline(execute), {}, {**READ, "args": {}, "output": '{"records": [{"name": "Oslo"}, {"name": "Bergen"}]}'}),
    ],
)
def test_step_has_parts_of_what_a_node_gets_and_returns(graph: Any, node: Any, step: dict[str, Any]) -> None:
    assert steps_of(graph, {"question": "?"}, execute=node) == [step]


def test_other_nodes_are_no_steps() -> None:
    assert steps_of(pipeline(execute), {"question": "?"}) == []


def test_failing_node_is_a_failed_step() -> None:
    def fail(_: Any) -> Any:
        raise ValueError("no such label")

    step = {**OF_EXECUTE, "status": "error", "error": "ValueError: no such label"}
    assert steps_of(pipeline(fail), {"question": "?"}, execute=EXECUTE) == [step]


def test_node_that_pauses_and_resumes_is_one_step() -> None:
    graph = pipeline(lambda _: {"records": interrupt("Run it?")}, checkpointer=InMemorySaver())
    handler = GraphRAGEvalCallbackHandler(nodes={"execute": EXECUTE})
    config: Any = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    graph.invoke({"question": "?"}, config)
    graph.invoke(Command(resume=ROWS), config)
    steps = [step for step in handler.response()["actual_steps"] if step["status"] == "success"]
    assert [step["output"] for step in steps] == [READ["output"]]


class Task(TypedDict, total=False):
    task: str
    cyphers: Annotated[list[Any], operator.add]


class Found(TypedDict):
    cyphers: Annotated[list[Any], operator.add]


async def execute_task(state: Task) -> Task:
    return {"cyphers": [{"task": state["task"], "records": [state["task"]]}]}


async def test_each_branch_of_a_fan_out_is_a_step() -> None:
    inner = StateGraph(Task, output_schema=Found).add_node("execute", execute_task).add_edge(START, "execute").compile()
    outer = StateGraph(Found).add_node("query", inner)
    outer.add_conditional_edges(START, lambda _: [Send("query", {"task": each}) for each in "ab"], ["query"])
    handler = GraphRAGEvalCallbackHandler(
        nodes={"execute": {"args": {"task": "task"}, "output": "cyphers.0.records"}}, step_names={"execute": "cypher"}
    )
    await outer.compile().ainvoke({"cyphers": []}, {"callbacks": [handler]})
    steps = [(step["name"], step["args"], step["output"]) for step in handler.response()["actual_steps"]]
    assert steps == [("cypher", {"task": "a"}, '["a"]'), ("cypher", {"task": "b"}, '["b"]')]


class Broken:
    @property
    def rows(self) -> Any:
        raise RuntimeError("closed")


def test_output_that_cannot_be_read_loses_nothing_else() -> None:
    handler = GraphRAGEvalCallbackHandler(nodes={"execute": {"output": "records.rows"}})
    graph = pipeline(lambda _: {"records": Broken()})
    graph.invoke({"question": "?"}, {"callbacks": [handler]})
    response = handler.response()
    assert response["status"] == "success"
    assert [step["name"] for step in response["actual_steps"]] == ["execute"]
    assert not handler._records.open
