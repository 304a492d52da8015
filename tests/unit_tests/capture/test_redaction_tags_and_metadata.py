from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.redaction import kept_metadata, kept_tags, shown_config
from graphrag_eval_lc.json_values import json_text

UPPER = RunnableLambda(lambda text: text.upper())


def test_what_langchain_and_langgraph_put_there_is_left_out() -> None:
    own = {"ls_provider": "x", "lc_versions": {}, "langgraph_node": "n", "checkpoint_ns": "n:1", "question_id": "q"}
    assert kept_metadata({**own, "thread_id": "t1", "attempt_id": "r/1", "checkpoint_every": 3}) == {
        "thread_id": "t1",
        "attempt_id": "r/1",
        "checkpoint_every": 3,
    }
    assert kept_tags(["graph:step:1", "seq:step:2", "nightly"]) == ["nightly"]


def test_metadata_is_plain_json_which_later_changes_leave_as_it_is() -> None:
    given: dict[Any, Any] = {"teams": ["a"], "at": {1, 2}, 3: float("nan"), "object": object}
    kept = kept_metadata(given)
    given["teams"].append("b")
    assert kept == {"teams": ["a"], "at": [1, 2], "3": "NaN", "object": "<class 'object'>"}


def test_metadata_is_bounded() -> None:
    kept = kept_metadata({"long": "x" * 5_000, "rows": list(range(100_000)), "small": 1})
    assert len(kept["long"]) == 1_001
    assert kept["small"] == 1
    assert kept["…"] == "1 left out, as they are longer than 10,000 characters"
    many = kept_metadata({f"key {number}": "x" * 150 for number in range(10_000)})
    assert len(json_text(many)) < 12_000
    assert "left out" in many["…"]


def test_tags_are_bounded() -> None:
    kept = kept_tags(["x" * 1_000] * 1_000)
    assert (len(kept), len(kept[0])) == (100, 201)


def test_secrets_are_masked_in_copies() -> None:
    metadata = {"api_key": "abc", "note": "Bearer 0123456789abcdef", "nested": {"password": "pa55"}}
    tags, shown = shown_config(["api_key=5f2a99c1"], metadata)
    assert tags == ["api_key=***"]
    assert shown == {"api_key": "***", "note": "Bearer ***", "nested": {"password": "***"}}
    assert metadata["api_key"] == "abc"


def test_nothing_given_is_nothing() -> None:
    assert (kept_tags(None), kept_metadata(None)) == ([], {})
    assert shown_config([], {}) == ([], {})


def test_the_response_has_tags_and_metadata_of_the_run(handler: GraphRAGEvalCallbackHandler) -> None:
    config: Any = {"callbacks": [handler], "tags": ["nightly"], "metadata": {"question_id": "q1", "token": "abc123"}}
    UPPER.invoke("a", config)
    response = handler.response("q1")
    assert (response["tags"], response["metadata"]) == (["nightly"], {"token": "***"})
    response["metadata"]["more"] = 1
    assert handler.response("q1")["metadata"] == {"token": "***"}


@pytest.mark.parametrize("kind", ["tool", "model"])
def test_tools_and_models_as_roots_have_them_too(kind, handler, search, chat_model, ai) -> None:
    root = search if kind == "tool" else chat_model(script=[ai("b")])
    root.invoke(
        {"query": "a"} if kind == "tool" else "a", {"callbacks": [handler], "tags": ["x"], "metadata": {"a": 1}}
    )
    response = handler.response()
    assert (response["tags"], response["metadata"]) == (["x"], {"a": 1})
