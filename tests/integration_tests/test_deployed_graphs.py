"""Benchmarks of graphs behind a real ``langgraph dev`` server on loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_sync_client
from support.langgraph_server import serving

from graphrag_eval_lc import GraphRAGEvalCallbackHandler, run_benchmark

pytestmark = pytest.mark.full

PROJECT = '''
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


@tool
def search(query: str) -> str:
    """Search."""
    if query == "nothing":
        raise ValueError("no such thing")
    return f"found {query}"


class Model(BaseChatModel):
    """Searches for the first word of the question, twice with the same id, and answers."""

    @property
    def _llm_type(self):
        return "fake"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        since = [message.type for message in messages]
        found = len(since) - 1 - since[::-1].index("human")
        word = messages[found].content.split()[0]
        calls = [{"name": "search", "args": {"query": word}, "id": "call_1", "type": "tool_call"}]
        is_over = len(messages) - found > 4
        message = AIMessage(
            f"It is {word}." if is_over else "",
            tool_calls=[] if is_over else calls,
            usage_metadata={"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
            response_metadata={"model_name": "fake-1"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask_somebody(state: MessagesState):
    return {"messages": [AIMessage(interrupt("sure?"))]}


agent = create_agent(Model(), [search])
pausing = StateGraph(MessagesState).add_node("ask", ask_somebody).add_edge(START, "ask").compile()
'''

CONFIG = '{"dependencies": ["."], "graphs": {"agent": "./agent.py:agent", "pausing": "./agent.py:pausing"}}'


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server with the graphs of ``PROJECT``."""
    folder = tmp_path_factory.mktemp("deployed")
    (folder / "agent.py").write_text(PROJECT, encoding="utf-8")
    (folder / "langgraph.json").write_text(CONFIG, encoding="utf-8")
    with serving(folder) as server:
        yield server.url


def dataset(count: int) -> list[Any]:
    questions = [
        {
            "id": f"q{number}",
            "question_text": f"word{number} please",
            "reference_steps": [[{"name": "search", "args": {}, "output": f"found word{number}"}]],
        }
        for number in range(count)
    ]
    return [{"template_id": "t", "questions": questions}]


def brief(response: Any) -> list[tuple[str, Any, str]]:
    return [(step["id"], step["args"], step["output"]) for step in response["actual_steps"]]


def steps_of(word: str) -> list[tuple[str, Any, str]]:
    return [("call_1", {"query": word}, f"found {word}")] * 2


def test_deployed_graph_is_benchmarked(url: str, tmp_path: Path) -> None:
    run = run_benchmark(RemoteGraph("agent", url=url), dataset(8), output_dir=tmp_path / "run", progress="off")
    assert run.aggregates["micro"]["steps_score"]["mean"] == 1.0
    for number, response in enumerate(run.responses):
        assert (response["status"], response["actual_answer"]) == ("success", f"It is word{number}.")
        assert brief(response) == steps_of(f"word{number}")
        assert (response["input_tokens"], response["output_tokens"], response["total_tokens"]) == (30, 6, 36)
        tokens = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
        assert response["llm_calls"] == [{"model": "fake-1", **tokens}] * 3
        assert not any("elapsed_sec" in step for step in response["actual_steps"])
        assert "reported no run" in response["capture_warnings"][0]
        assert "their times are not known" in response["capture_warnings"][-1]


def test_each_attempt_has_a_thread_with_its_attempt_in_the_metadata(url: str) -> None:
    run = run_benchmark(RemoteGraph("agent", url=url), dataset(1), repeats=2, progress="off")
    assert [response["status"] for response in run.responses] == ["success"] * 2
    client = get_sync_client(url=url)
    found = [
        (UUID(thread["thread_id"]), each["metadata"]["attempt_id"])
        for thread in client.threads.search(metadata={"graph_id": "agent"}, limit=100)
        for each in client.runs.list(thread["thread_id"])
        if each["metadata"].get("attempt_id", "").endswith(("/q0/1/1", "/q0/2/1"))
    ]
    assert len({thread for thread, _ in found}) == len(found) >= 2


@pytest.mark.parametrize("is_async", [False, True])
def test_local_graph_with_a_deployed_node(is_async: bool, url: str) -> None:
    """Each model call counts once: the remote graph's by its messages, the local one's by its callback."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    answer = AIMessage("summed up", usage_metadata=usage, response_metadata={"model_name": "local"})

    def sum_up(state: MessagesState) -> dict[str, Any]:
        return {"messages": [GenericFakeChatModel(messages=iter([answer.model_copy()])).invoke(state["messages"])]}

    async def asum_up(state: MessagesState) -> dict[str, Any]:
        model = GenericFakeChatModel(messages=iter([answer.model_copy()]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("remote", RemoteGraph("agent", url=url))
    graph.add_node("sum_up", asum_up if is_async else sum_up)
    graph.add_edge(START, "remote").add_edge("remote", "sum_up")
    run = run_benchmark(graph.compile(), dataset(2), progress="off")
    for number, response in enumerate(run.responses):
        assert (response["status"], response["actual_answer"]) == ("success", "summed up")
        assert brief(response) == steps_of(f"word{number}")
        assert [call["model"] for call in response["llm_calls"]] == ["fake-1"] * 3 + ["local"]
        assert (response["input_tokens"], response["total_tokens"]) == (40, 48)
        assert any("3 of 4 model calls are taken from messages" in text for text in response["capture_warnings"])


def test_deployed_graph_in_a_function(url: str) -> None:
    remote = RemoteGraph("agent", url=url)

    def agent(question: str) -> Any:
        return remote.invoke({"messages": [{"role": "user", "content": question}]})

    (response,) = run_benchmark(agent, dataset(1), progress="off").responses
    assert (brief(response), response["actual_answer"]) == (steps_of("word0"), "It is word0.")
    assert response["input_tokens"] == 30


def test_handler_records_a_wrapped_deployed_graph(url: str) -> None:
    handler = GraphRAGEvalCallbackHandler()
    config: Any = {"callbacks": [handler], "metadata": {"question_id": "q1"}}
    history = [
        {"role": "user", "content": "old question"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "args": {}, "id": "call_1"}]},
        {"role": "tool", "content": "old", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "old answer"},
        {"role": "user", "content": "word please"},
    ]
    RunnableLambda(RemoteGraph("agent", url=url).invoke).invoke({"messages": history}, config)
    response = handler.response("q1")
    assert (brief(response), response["actual_answer"]) == (steps_of("word"), "It is word.")
    assert (response["input_tokens"], len(response["llm_calls"])) == (30, 3)


def as_text(remote: Any, thread: Any) -> Any:
    return RunnableLambda(lambda question: remote.invoke({"messages": [("user", question)]}, thread))


def as_chain(remote: Any, thread: Any) -> Any:
    return as_text(remote, thread) | RunnableLambda(lambda state: {"messages": state["messages"]})


def as_rewritten(remote: Any, thread: Any) -> Any:
    return RunnableLambda(lambda question: remote.invoke({"messages": [("user", f"{question}, thanks")]}, thread))


def as_node(remote: Any, thread: Any) -> Any:
    """The remote graph has its own thread, and only it keeps the conversation."""
    graph = StateGraph(MessagesState)
    graph.add_node(
        "remote", lambda state: remote.invoke({"messages": [("user", state["messages"][-1].content)]}, thread)
    )
    graph = graph.add_edge(START, "remote").compile()
    return RunnableLambda(lambda question: {"messages": [("user", question)]}) | graph


def as_node_of_a_thread(remote: Any, thread: Any) -> Any:
    """Both keep the conversation."""
    graph = StateGraph(MessagesState).add_node("remote", remote)
    chat = graph.add_edge(START, "remote").compile(checkpointer=InMemorySaver())
    return RunnableLambda(lambda question: chat.invoke({"messages": [("user", question)]}, thread))


@pytest.mark.parametrize(
    ("questions", "shared"), [(["word0 please", "word1 please", "word2 please"], False), (["word please"] * 3, True)]
)
@pytest.mark.parametrize("shape", [as_text, as_chain, as_rewritten, as_node, as_node_of_a_thread])
def test_each_turn_on_a_thread_has_its_own_steps(shape: Any, shared: bool, questions: list[str], url: str) -> None:
    agent = shape(RemoteGraph("agent", url=url), {"configurable": {"thread_id": str(uuid4())}})
    handler = GraphRAGEvalCallbackHandler()
    for number, question in enumerate(questions):
        handler = handler if shared else GraphRAGEvalCallbackHandler()
        config: Any = {"callbacks": [handler], "metadata": {"question_id": str(number)}}
        agent.invoke(question, config)
        response, word = handler.response(str(number)), question.split()[0]
        assert (brief(response), response["actual_answer"]) == (steps_of(word), f"It is {word}.")
        assert (response["input_tokens"], len(response["llm_calls"])) == (30, 3)


def test_each_added_turn_has_its_own_steps(url: str) -> None:
    """``RemoteGraph`` itself calls no handler."""
    remote, handler = RemoteGraph("agent", url=url), GraphRAGEvalCallbackHandler()
    thread: Any = {"configurable": {"thread_id": str(uuid4())}}
    turns = [{"messages": [{"role": "user", "content": "word please"}]}] * 3
    for number, given in enumerate([*turns, None]):
        handler.add_run(given, remote.invoke(given, thread), question_id=str(number))
    responses = handler.responses()
    assert [brief(response) for response in responses] == [*[steps_of("word")] * 3, []]
    assert [response.get("actual_answer") for response in responses] == [*["It is word."] * 3, None]


@pytest.mark.parametrize("given", [lambda message: message, lambda message: ("user", message.content)])
def test_node_that_calls_a_deployed_graph_and_then_a_model(given: Any, url: str) -> None:
    """The user's message to the model follows the output of the remote graph, which is not history."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    remote = RemoteGraph("agent", url=url)

    def agent(state: MessagesState) -> dict[str, Any]:
        messages = remote.invoke({"messages": [given(state["messages"][-1])]})["messages"]
        prompt = [*messages, ("user", "Sum it up.")]
        answer = GenericFakeChatModel(messages=iter([AIMessage("summed up")])).invoke(prompt)
        return {"messages": [*prompt, answer]}

    graph = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent").compile()
    (response,) = run_benchmark(graph, dataset(1), progress="off").responses
    assert (brief(response), response["actual_answer"]) == (steps_of("word0"), "summed up")
    assert len(response["llm_calls"]) == 4


def test_resumed_deployed_graph_has_an_answer(url: str) -> None:
    remote, handler = RemoteGraph("pausing", url=url), GraphRAGEvalCallbackHandler()
    thread: Any = {"configurable": {"thread_id": str(uuid4())}}
    agent = RunnableLambda(lambda given: remote.invoke(given, thread))
    config: Any = {"callbacks": [handler], "metadata": {"question_id": "q1"}}
    agent.invoke({"messages": [{"role": "user", "content": "word please"}]}, config)
    assert "actual_answer" not in handler.response("q1")
    agent.invoke(Command(resume="yes"), config)
    assert handler.response("q1")["actual_answer"] == "yes"
    agent.invoke(None, {**config, "metadata": {"question_id": "q2"}})
    assert "actual_answer" not in handler.response("q2")


def test_interrupted_deployed_graph_is_paused(url: str) -> None:
    (response,) = run_benchmark(RemoteGraph("pausing", url=url), dataset(1), progress="off").responses
    assert "actual_answer" not in response
    assert "the run is paused (interrupted): it waits to be resumed" in response["capture_warnings"]


def test_deployed_graph_failure_is_a_question_error(url: str) -> None:
    questions = dataset(1)
    questions[0]["questions"][0]["question_text"] = "nothing please"
    (response,) = run_benchmark(RemoteGraph("agent", url=url), questions, progress="off").responses
    assert response["status"] == "error"
    assert "no such thing" in response["error"]
