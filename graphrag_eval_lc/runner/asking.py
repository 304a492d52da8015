"""Asking an agent one question and capturing its response."""

import time
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.runner.agents import Agent


async def aask(agent: Agent, question: Question, *, thread_id: str) -> Response:
    """Ask one question.

    Args:
        agent: The agent; it gets the question's text as the one user message of a messages state.
        question: The question.
        thread_id: The thread for an agent with a checkpointer; each question needs one of its own.

    Returns:
        The response. An exception of the agent does not leave this function: it stands in the response's ``error``,
        beside the steps, tokens and time up to that point.
    """
    handler = GraphRAGEvalCallbackHandler()
    config: RunnableConfig = {
        "callbacks": [handler],
        "metadata": {"question_id": question["id"]},
        "configurable": {"thread_id": thread_id},
    }
    started = time.perf_counter()
    error: Exception | None = None
    try:
        await agent.ainvoke({"messages": [{"role": "user", "content": question["question_text"]}]}, config)
    except Exception as problem:
        error = problem
    return _response(handler, question["id"], error, time.perf_counter() - started)


def _response(
    handler: GraphRAGEvalCallbackHandler, question_id: str, error: Exception | None, elapsed_sec: float
) -> Response:
    if handler.responses():
        response = handler.response(question_id)
    else:
        response = Response(question_id=question_id, status="success", actual_steps=[], elapsed_sec=elapsed_sec)
    if error is not None and "error" not in response:
        failed: dict[str, Any] = {"question_id": question_id, "status": "error"}
        failed["error"] = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return cast("Response", failed | {key: value for key, value in response.items() if key not in failed})
    return response
