import asyncio
import copy
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import RunnableLambda

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.errors import CaptureError

UPPER = RunnableLambda(lambda text: text.upper())


def config(handler: GraphRAGEvalCallbackHandler, question_id: Any = None) -> dict[str, Any]:
    metadata = {} if question_id is None else {"metadata": {"question_id": question_id}}
    return {"callbacks": [handler], **metadata}


def test_a_single_run_without_an_id_gets_the_one_asked_for(handler) -> None:
    UPPER.invoke("a", config(handler))
    assert handler.response("q1")["question_id"] == "q1"
    assert "question_id" not in handler.response()


def test_a_single_question_needs_no_id(handler) -> None:
    UPPER.invoke("a", config(handler, 7))
    assert handler.response()["question_id"] == "7"
    assert handler.response("7")["actual_answer"] == "A"


@pytest.mark.parametrize(
    ("recorded", "asked", "words"),
    [
        ([], None, "No run was recorded"),
        ([], "q1", "question q1: No run was recorded"),
        ([None, None], None, "2 runs were recorded"),
        (["q1", "q2"], None, "2 runs were recorded"),
        (["q1", "q2"], "q3", "recorded ids: q1, q2"),
        (["q1"], "q3", "recorded ids: q1"),
        ([None, None], "q3", "recorded ids: none"),
    ],
)
def test_an_unclear_question_is_an_error(recorded, asked, words, handler) -> None:
    for question_id in recorded:
        UPPER.invoke("a", config(handler, question_id))
    with pytest.raises(CaptureError, match=words):
        handler.response(asked)


def test_responses_stand_in_start_order(handler) -> None:
    for word in "abc":
        UPPER.invoke(word, config(handler))
    assert [response["actual_answer"] for response in handler.responses()] == ["A", "B", "C"]


def test_responses_are_deep_copies_of_plain_json(handler, make_agent, ai, ask, search) -> None:
    response = ask(make_agent([ai("", ("search", {"query": "\ud800"}, "call_1")), ai("done")], [search]))
    before = copy.deepcopy(response)
    assert json.loads(json.dumps(response, allow_nan=False)) == response
    response["actual_steps"][0]["args"]["query"] = "changed"
    response["llm_calls"].clear()
    assert handler.response("q1") == before


def test_clear_forgets_everything(handler) -> None:
    UPPER.invoke("a", config(handler))
    handler.clear()
    assert handler.responses() == []
    assert handler._runs._runs == {}


def test_a_run_under_way_is_not_recorded_after_clear(handler, search) -> None:
    def agent(text: str) -> str:
        handler.clear()
        return str(search.invoke({"query": text}))

    RunnableLambda(agent).invoke("a", config(handler))
    assert handler.responses() == []
    assert handler._runs._runs == {}


def test_a_finished_run_leaves_only_its_root_id(handler, make_agent, ai, ask, search) -> None:
    ask(make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search]))
    assert len(handler._runs._runs) == 1


def word_agent(make_agent, ai, chat_model, search) -> Any:
    """An agent that searches for the word that it is asked, twice at once."""

    class Echo(chat_model):
        def _next(self, messages):
            word = messages[0].content
            if len(messages) == 1:
                return ai("", ("search", {"query": word}, "call_1"), ("search", {"query": word * 2}, "call_2"))
            return ai(word)

    return make_agent([], [search], model=Echo(script=[]))


def check(responses: list[dict[str, Any]], words: list[str]) -> None:
    assert sorted(response["actual_answer"] for response in responses) == words
    for response in responses:
        word = response["actual_answer"]
        assert [step["output"] for step in response["actual_steps"]] == [f"found {word}", f"found {word * 2}"]
        assert response["input_tokens"] == 20


WORDS = [f"w{number:02}" for number in range(20)]


@pytest.mark.parametrize("way", ["batch", "abatch", "gather", "threads"])
async def test_many_runs_at_once_do_not_mix(way, make_agent, ai, chat_model, search, handler) -> None:
    agent = word_agent(make_agent, ai, chat_model, search)
    inputs = [{"messages": [("user", word)]} for word in WORDS]
    configs = [config(handler, word) for word in WORDS]
    if way == "batch":
        agent.batch(inputs, configs)
    elif way == "abatch":
        await agent.abatch(inputs, configs)
    elif way == "gather":
        await asyncio.gather(*(agent.ainvoke(*pair) for pair in zip(inputs, configs, strict=True)))
    else:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(agent.invoke, inputs, configs))
    check(handler.responses(), WORDS)
    assert all(handler.response(word)["actual_answer"] == word for word in WORDS)


def test_a_handler_registered_twice_records_once(handler, make_agent, ai, search) -> None:
    manager = CallbackManager(handlers=[handler, handler], inheritable_handlers=[handler, handler])
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    agent.with_config(callbacks=[handler]).invoke({"messages": [("user", "hi")]}, {"callbacks": manager})
    (response,) = handler.responses()
    assert len(response["actual_steps"]) == 1
    assert response["input_tokens"] == 20
    assert "capture_warnings" not in response


def test_a_parent_that_is_not_ours_makes_a_root(handler, make_agent, ai, search) -> None:
    manager = CallbackManager(handlers=[handler], inheritable_handlers=[handler], parent_run_id=uuid.uuid4())
    agent = make_agent([ai("", ("search", {"query": "a"}, "call_1")), ai("done")], [search])
    agent.invoke({"messages": [("user", "hi")]}, {"callbacks": manager})
    assert [step["id"] for step in handler.response("q1")["actual_steps"]] == ["call_1"]


def test_subclasses_keep_their_class() -> None:
    class Mine(GraphRAGEvalCallbackHandler):
        def __init__(self, label: str) -> None:
            super().__init__()
            self.label = label

    assert isinstance(Mine("x"), Mine)
    assert Mine("x").label == "x"
