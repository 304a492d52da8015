"""Calls and messages whose ids are equal: each step has the arguments and the output of its own call."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage

WORDS = ("a", "b", "c")


def outcomes(response: Any) -> list[tuple[str, str]]:
    return [(step["args"]["query"], step.get("output", step.get("error"))) for step in response["actual_steps"]]


def rewritten(request: Any, run: Callable[[Any], Any]) -> Any:
    message = run(request)
    return message.model_copy(update={"content": message.content.upper()})


def blocked(request: Any, run: Callable[[Any], Any]) -> Any:
    run(request)
    query = request.tool_call["args"]["query"]
    return ToolMessage(f"blocked {query}", tool_call_id=request.tool_call["id"], name="search", status="error")


def answered(request: Any, run: Callable[[Any], Any]) -> Any:
    query = request.tool_call["args"]["query"]
    return ToolMessage(f"known {query}", tool_call_id=request.tool_call["id"], name="search")


@pytest.mark.parametrize("call_id", ["search", ""])
@pytest.mark.parametrize("concurrency", [1, None])
@pytest.mark.parametrize(
    ("wrap", "text"),
    [(rewritten, "FOUND {}"), (blocked, "blocked {}"), (answered, "known {}")],
    ids=["rewritten", "blocked", "answered"],
)
def test_middleware_makes_the_results_of_calls_that_share_an_id(
    ask: Any, ai: Any, chat_model: Any, search: Any, wrap: Any, text: str, concurrency: int | None, call_id: str
) -> None:
    script = [ai("", *(("search", {"query": word}, call_id) for word in WORDS)), ai("done")]
    agent = create_agent(chat_model(script=script), [search], middleware=[wrap_tool_call(wrap)])
    expected = [(word, text.format(word.upper() if wrap is rewritten else word)) for word in WORDS]
    assert outcomes(ask(agent, max_concurrency=concurrency)) == expected


def test_middleware_runs_a_tool_twice_for_calls_that_share_an_id(
    ask: Any, ai: Any, chat_model: Any, search: Any
) -> None:
    def twice(request: Any, run: Callable[[Any], Any]) -> Any:
        call = request.tool_call
        for number in range(2):
            result = run(request.override(tool_call={**call, "args": {"query": f"{call['args']['query']}{number}"}}))
        return result

    script = [ai("", *(("search", {"query": word}, "search") for word in WORDS)), ai("done")]
    agent = create_agent(chat_model(script=script), [search], middleware=[wrap_tool_call(twice)])
    response = ask(agent, max_concurrency=1)
    ran = [f"{word}{number}" for word in WORDS for number in range(2)]
    assert outcomes(response) == [(word, f"found {word}") for word in ran]
    assert not any("tool_output" in step for step in response["actual_steps"])
