"""The handler's options, on real agents."""

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langchain_core.tools.retriever import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler, capture_run
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.matching import match_steps

HI = {"messages": [("user", "hi")]}
THREAD = {"configurable": {"thread_id": "1"}}
SECRET = "secret-4711"

Captured = Callable[..., dict[str, Any]]


@pytest.fixture
def captured() -> Captured:
    """``captured(agent, inputs, step_names=…, …)``: the response of a run recorded with these options."""

    def run(agent: Any, inputs: Any = HI, **options: Any) -> dict[str, Any]:
        handler = GraphRAGEvalCallbackHandler(**options)
        with contextlib.suppress(ValueError):
            agent.invoke(inputs, {"callbacks": [handler]})
        return handler.response()

    return run


class Retriever(BaseRetriever):
    words: tuple[str, ...] = ("a", "b")
    inner: Any = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if query == "fail":
            raise ValueError("no index")
        if self.inner is not None:
            found = self.inner.invoke(query, {"callbacks": run_manager.get_child()})
            return found[:1]
        return [Document(f"text {word}", id=word) for word in self.words]


def documents(*words: str) -> list[dict[str, str]]:
    return [{"id": word, "text": f"text {word}"} for word in words]


def calling(make_agent: Any, ai: Any, used: BaseTool, **args: Any) -> Any:
    """Return an agent that calls a tool once."""
    return make_agent([ai("", (used.name, args, "call_1")), ai("done")], [used])


# --- values ---


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("step_names", ["search"]),
        ("step_names", {"search": 1}),
        ("step_names", {"search": ""}),
        ("retrieval_documents", "lookup"),
        ("retrieval_documents", None),
        ("retrieval_documents", [1]),
        ("max_output_chars", -1),
        ("max_output_chars", True),
        ("max_output_chars", 1.5),
        ("redact", "secret"),
        ("keep_artifacts", None),
        ("keep_messages", "yes"),
    ],
)
def test_invalid_value_raises_immediately(option: str, value: Any) -> None:
    with pytest.raises(CaptureError, match=f"key {option}: ") as caught:
        GraphRAGEvalCallbackHandler(**{option: value})
    assert caught.value.hint
    with pytest.raises(CaptureError), capture_run(**{option: value}):
        pytest.fail("the block must not begin")


def test_options_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        GraphRAGEvalCallbackHandler({"search": "find"})  # type: ignore[misc]


def test_options_are_fixed_at_construction(make_agent, ai, search) -> None:
    names, tools = {"search": "find"}, ["search"]
    handler = GraphRAGEvalCallbackHandler(step_names=names, retrieval_documents=tools)
    names.clear()
    tools.clear()
    calling(make_agent, ai, search, query="a").invoke(HI, {"callbacks": [handler]})
    assert handler.response()["actual_steps"][0]["name"] == "find"


# --- step_names ---


def test_renamed_tool_called_manually_is_one_step(ai, search, captured) -> None:
    def run_tools(state: MessagesState) -> dict[str, Any]:
        (call,) = state["messages"][-1].tool_calls
        output = search.invoke({"query": "other words"})
        return {"messages": [ToolMessage(output, tool_call_id=call["id"], name="search")]}

    graph = StateGraph(MessagesState).add_node("tools", run_tools)
    graph.add_node("model", lambda state: {"messages": [ai("", ("search", {"query": "a"}, "call_1"))]})
    agent = graph.add_edge(START, "model").add_edge("model", "tools").compile()
    options = {"step_names": {"search": "find"}, "max_output_chars": 3, "redact": lambda value: value}
    (step,) = captured(agent, **options)["actual_steps"]
    assert (step["name"], step["id"], step["args"], step["output"]) == (
        "find",
        "call_1",
        {"query": "other words"},
        "fou",
    )


# --- retrieval_documents ---


@pytest.mark.parametrize("wanted", [False, [], ["other"]])
def test_other_tools_keep_their_output(wanted, make_agent, ai, captured) -> None:
    agent = calling(make_agent, ai, create_retriever_tool(Retriever(), "lookup", "Look up."), query="x")
    (step,) = captured(agent, retrieval_documents=wanted)["actual_steps"]
    assert step["output"] == "text a\n\ntext b"


def test_outer_of_nested_retrievers_counts(make_agent, ai, captured) -> None:
    reranker = Retriever(inner=Retriever(words=("c", "d", "e"), metadata={"k": 3}), metadata={"k": 1})
    agent = calling(make_agent, ai, create_retriever_tool(reranker, "lookup", "Look up."), query="x")
    (step,) = captured(agent, retrieval_documents=True)["actual_steps"]
    assert (json.loads(step["output"]), step["args"]["k"]) == (documents("c"), 1)


def test_captured_documents_can_be_matched_as_retrieval(make_agent, ai, captured) -> None:
    lookup = create_retriever_tool(Retriever(metadata={"k": 2}), "lookup", "Look up.")
    response = captured(
        calling(make_agent, ai, lookup, query="x"), retrieval_documents=True, step_names={"lookup": "retrieval"}
    )
    reference = [[{"name": "retrieval", "output": json.dumps([{"id": "b"}, {"id": "z"}])}]]
    assert match_steps(reference, response["actual_steps"]).steps_score == 0.5


@pytest.mark.parametrize("k", [True, 0, -1, "2"])
def test_invalid_k_is_ignored(k: Any) -> None:
    handler = GraphRAGEvalCallbackHandler()
    Retriever(metadata={"k": k}).invoke("x", {"callbacks": [handler]})
    (step,) = handler.response()["actual_steps"]
    assert step["args"] == {"query": "x"}


# --- max_output_chars ---


def test_outputs_of_exactly_that_length_are_kept(make_agent, ai, search, captured) -> None:
    response = captured(calling(make_agent, ai, search, query="a"), max_output_chars=7)
    assert response["actual_steps"][0]["output"] == "found a"
    assert "full_length" not in response["actual_steps"][0]
    assert "capture_warnings" not in response


# --- redact ---


def starred(value: Any) -> Any:
    """Replace the secret everywhere, and try to mutate the argument."""
    if isinstance(value, dict):
        value["touched"] = True
    return json.loads(json.dumps(value).replace(SECRET, "***"))


def raising(value: Any) -> Any:
    raise RuntimeError(f"cannot redact {value}")


@tool(response_format="content_and_artifact")
def read(account: dict[str, Any]) -> Any:
    """Read an account."""
    return f"account of {account['key']}", {"key": account["key"]}


@tool
def refuse(key: str) -> str:
    """Raise an error that tells too much."""
    raise ValueError(f"no access with {key}")


def secretive(make_agent: Any, ai: Any) -> Any:
    """Return an agent with a secret in a successful call, in one that never runs, and in the final error."""
    script = [
        ai("", ("read", {"account": {"key": SECRET}}, "call_1"), ("nothing", {"key": SECRET}, "call_2")),
        ai("", ("refuse", {"key": SECRET}, "call_3")),
    ]
    return make_agent(script, [read, refuse], handle_tool_errors=False)


def test_redact_receives_all_args_outputs_artifacts_and_errors(make_agent, ai, captured) -> None:
    response = captured(secretive(make_agent, ai), redact=starred)
    first, second, third = response["actual_steps"]
    assert first["args"] == {"account": {"key": "***"}, "touched": True}
    assert (first["output"], first["artifact"]) == ("account of ***", {"key": "***", "touched": True})
    assert second["args"] == {"key": "***", "touched": True}
    assert third["error"] == response["error"] == "ValueError: no access with ***"
    assert SECRET not in json.dumps(response)


def test_failing_redact_leaks_nothing_and_breaks_nothing(make_agent, ai, captured) -> None:
    response = captured(secretive(make_agent, ai), redact=raising)
    first, second, third = response["actual_steps"]
    for step in (first, second, third):
        assert step["args"] == {"args": "[redaction failed]"}
    assert (first["output"], first["artifact"]) == ("[redaction failed]", "[redaction failed]")
    assert second["error"] == third["error"] == response["error"] == "[redaction failed]"
    assert SECRET not in json.dumps(response)
    assert response["capture_warnings"][:3] == [
        "redact raised RuntimeError on the args of read, which is left out",
        "redact raised RuntimeError on the output of read, which is left out",
        "redact raised RuntimeError on the artifact of read, which is left out",
    ]


@pytest.mark.parametrize("redact", [starred, raising])
def test_no_raw_value_is_kept_by_the_handler(redact, make_agent, ai) -> None:
    handler = GraphRAGEvalCallbackHandler(redact=redact)
    with pytest.raises(ValueError, match=SECRET):
        secretive(make_agent, ai).invoke(HI, {"callbacks": [handler]})
    (tree,) = handler._records.trees
    assert (tree.events, tree.known) == ([], {})
    part = handler._parts[tree]
    assert len(part.steps) == 3
    for step in part.steps:
        assert SECRET not in repr((step.args, step.text, step.artifact, step.own))
    waiting = [call.args for call in part.thread.waiting]
    assert SECRET not in repr((part.warnings, tree.error, [call.call for call in part.model_calls], waiting))


def test_redact_changes_nothing_for_the_agent(make_agent, ai, search) -> None:
    agent = calling(make_agent, ai, search, query=SECRET)
    handler = GraphRAGEvalCallbackHandler(redact=starred)
    messages = agent.invoke(HI, {"callbacks": [handler]})["messages"]
    assert messages[1].tool_calls[0]["args"] == {"query": SECRET}
    assert messages[2].content == f"found {SECRET}"
    assert handler.response()["actual_steps"][0]["output"] == "found ***"


def test_failing_model_and_capture_leak_no_secret(ai, chat_model, captured, monkeypatch) -> None:
    response = captured(chat_model(script=[ValueError(SECRET)]), "hi", redact=starred)
    assert response["error"] == response["llm_calls"][0]["error"] == "ValueError: ***"
    monkeypatch.setattr("graphrag_eval_lc.capture.record.question_in", lambda inputs: raising(inputs))
    response = captured(RunnableLambda(str.upper), SECRET, redact=starred)
    assert response["capture_warnings"] == ["capture failed in on_chain_start: RuntimeError: cannot redact ***"]


def test_arguments_of_a_standalone_retriever_are_redacted(captured) -> None:
    (step,) = captured(Retriever(words=(SECRET,)), SECRET, redact=starred)["actual_steps"]
    assert step["args"] == {"query": "***", "touched": True}
    assert json.loads(step["output"]) == [{"id": "***", "text": "text ***"}]


def test_slow_redact_does_not_count_as_tool_time(search, captured) -> None:
    (step,) = captured(search, {"query": "a"}, redact=lambda value: time.sleep(0.05) or value)["actual_steps"]
    assert (step["output"], step["elapsed_sec"] < 0.05) == ("found a", True)


def test_redact_result_that_is_not_a_string_is_written_as_json(make_agent, ai, search, captured) -> None:
    (step,) = captured(calling(make_agent, ai, search, query="a"), redact=lambda value: [1])["actual_steps"]
    assert (step["args"], step["output"]) == ({"args": [1]}, "[1]")


def test_manually_called_tools_are_matched_by_their_arguments(ai, search, captured) -> None:
    def run_tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(search.invoke(call["args"]), tool_call_id=call["id"]) for call in calls]}

    graph = StateGraph(MessagesState).add_node("tools", run_tools)
    calls = [("search", {"query": word}, f"call_{word}") for word in "ab"]
    graph.add_node("model", lambda state: {"messages": [ai("", *calls)]})
    agent = graph.add_edge(START, "model").add_edge("model", "tools").compile()
    steps = captured(agent, redact=lambda value: {} if isinstance(value, dict) else "***")["actual_steps"]
    assert [(step["id"], step["args"], step["output"]) for step in steps] == [
        ("call_a", {}, "***"), ("call_b", {}, "***"),
    ]  # fmt: skip


# --- all options, with nested or resumed steps, or steps from messages ---

ALL = {
    "step_names": {"lookup": "retrieval", "expert": "agent"},
    "retrieval_documents": True,
    "max_output_chars": 40,
    "redact": starred,
    "keep_artifacts": False,
}
DOCUMENT = f"text {SECRET} which is long enough to be cut somewhere"
CUT = json.dumps([{"id": "a", "text": DOCUMENT}]).replace(SECRET, "***")[:40]


class SecretRetriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(DOCUMENT, id="a")]


LOOKUP = create_retriever_tool(SecretRetriever(), "lookup", "Look up.", response_format="content_and_artifact")


def check_lookup(step: dict[str, Any]) -> None:
    assert (step["name"], step["args"]["query"]) == ("retrieval", "***")
    assert (step["output"], "artifact" in step) == (CUT, False)


def test_options_apply_to_nested_steps(make_agent, ai, captured) -> None:
    inner = calling(make_agent, ai, LOOKUP, query=SECRET)

    @tool
    def expert(question: str) -> str:
        """Ask the expert."""
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)

    response = captured(calling(make_agent, ai, expert, question=SECRET), **ALL)
    outer, step = response["actual_steps"]
    assert (outer["name"], outer["args"], outer["output"]) == ("agent", {"question": "***", "touched": True}, "done")
    assert step["parent_id"] == outer["id"]
    check_lookup(step)


def test_options_apply_to_resumed_runs(make_agent, ai) -> None:
    @tool
    def confirm(what: str) -> str:
        """Ask somebody."""
        return f"{what}: {interrupt('sure?')}"

    script = [
        ai("", ("lookup", {"query": SECRET}, "call_1")),
        ai("", ("confirm", {"what": SECRET}, "call_2"), ("lookup", {"query": SECRET}, "call_3")),
        ai("done"),
    ]
    agent = make_agent(script, [LOOKUP, confirm], checkpointer=InMemorySaver())
    handler = GraphRAGEvalCallbackHandler(**ALL)
    config = {"callbacks": [handler], "metadata": {"question_id": "q1"}, **THREAD}
    agent.invoke(HI, config)
    agent.invoke(Command(resume="yes"), config)
    response = handler.response("q1")
    first, second, third = response["actual_steps"]
    check_lookup(first)
    assert (second["args"]["what"], second["output"]) == ("***", "***: yes")
    check_lookup(third)
    length = len(json.dumps([{"id": "a", "text": DOCUMENT}]).replace(SECRET, "***"))
    assert response["capture_warnings"] == [
        f"the output of retrieval ({call_id}) had {length} characters and was cut to 40"
        for call_id in ("call_1", "call_3")
    ]


def test_options_apply_to_steps_from_messages(captured) -> None:
    def remote(state: MessagesState) -> dict[str, Any]:
        call = {"name": "lookup", "args": {"query": SECRET}, "id": "call_1", "type": "tool_call"}
        artifact = [Document(DOCUMENT, id="a")]
        answer = ToolMessage(DOCUMENT, tool_call_id="call_1", artifact=artifact, id="m2")
        return {"messages": [AIMessage("", tool_calls=[call], id="m1"), answer, AIMessage("done", id="m3")]}

    agent = StateGraph(MessagesState).add_node("remote", remote).add_edge(START, "remote").compile()
    (step,) = captured(agent, **ALL)["actual_steps"]
    check_lookup(step)


def test_options_apply_to_provider_tools(ai, chat_model, captured) -> None:
    blocks = [
        {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "args": {"query": SECRET}},
        {"type": "server_tool_result", "tool_call_id": "ws_1", "status": "success", "output": [{"url": SECRET}]},
        {"type": "text", "text": "done"},
    ]
    agent = create_agent(chat_model(script=[ai(blocks)]), [])
    (step,) = captured(agent, step_names={"web_search": "search"}, redact=starred, max_output_chars=12)["actual_steps"]
    assert (step["name"], step["args"]["query"], step["output"]) == ("search", "***", '[{"url": "**')
