import asyncio
import json
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import tool

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.llm_calls import KeptMessages, given_messages, ranges
from graphrag_eval_lc.capture.values import CaptureOptions

HI: Any = {"messages": [("user", "hi")]}
SECRET = "s3cr3t"
PNG = "iVBORw0KGgo" + "A" * 4_000


@pytest.fixture
def keeper() -> GraphRAGEvalCallbackHandler:
    return GraphRAGEvalCallbackHandler(keep_messages=True)


def expanded(of: Any) -> list[int]:
    return [place for start, stop in of for place in range(start, stop)]


def prompts_and_replies(response: Any) -> list[tuple[list[Any], Any]]:
    """Return the messages that each model call received, and its reply."""
    messages = response["llm_messages"]
    return [
        ([messages[place] for place in expanded(call["input_messages"])], messages[call["output_message"]])
        for call in response["llm_calls"]
    ]


def kept(*messages: AnyMessage | str, **options: Any) -> list[dict[str, Any]]:
    """Return the contents of a table after adding messages one by one."""
    warnings: list[str] = []
    table = KeptMessages(CaptureOptions(**options), warnings)
    table.add(given_messages(messages))
    assert warnings == []
    return list(table.messages.values())


# --- real agents ---


def looping(chat_model: Any, ai: Any, search: Any, turns: int) -> Any:
    script = [ai("x" * 1_000, ("search", {"query": f"{turn}"}, f"call_{turn}")) for turn in range(turns)]
    return create_agent(chat_model(script=[*script, ai("done")]), [search], system_prompt="Search.")


def test_growing_loop_is_linear_in_its_messages(chat_model, ai, search) -> None:
    sizes = []
    for turns in (20, 40):
        keeper = GraphRAGEvalCallbackHandler(keep_messages=True)
        looping(chat_model, ai, search, turns).invoke(HI, {"callbacks": [keeper], "recursion_limit": 200})
        response = keeper.response()
        assert len(response["llm_messages"]) == 2 + 2 * turns + 1
        assert all(len(call["input_messages"]) == 1 for call in response["llm_calls"])
        assert len(prompts_and_replies(response)[-1][0]) == 2 + 2 * turns
        sizes.append(len(json.dumps(response)))
    assert sizes[1] < 2.1 * sizes[0]


def test_equal_messages_of_two_agents_are_stored_twice() -> None:
    same = [AIMessage("I do not know.", name=name) for name in ("a", "b", "a")]
    assert [entry["name"] for entry in kept(*same)] == ["a", "b"]


@pytest.mark.full
@pytest.mark.parametrize("way", ["threads", "gather"])
async def test_concurrent_runs_keep_their_messages_separate(way: str, chat_model, ai, search, keeper) -> None:
    class Echo(chat_model):
        def _next(self, messages):
            word = messages[0].content
            return ai("", ("search", {"query": word}, "call_1")) if len(messages) == 1 else ai(f"{word}!")

    agent = create_agent(Echo(script=[]), [search])
    words = [f"w{number:03}" for number in range(40)]
    inputs: list[Any] = [{"messages": [("user", word)]} for word in words]
    configs: list[Any] = [{"callbacks": [keeper], "metadata": {"question_id": word}} for word in words]
    if way == "threads":
        agent.batch(inputs, configs)
    else:
        await asyncio.gather(*(agent.ainvoke(*pair) for pair in zip(inputs, configs, strict=True)))
    for word in words:
        messages = keeper.response(word)["llm_messages"]
        assert [message["content"] for message in messages] == [word, "", f"found {word}", f"{word}!"]


# --- options ---


def starred(value: Any) -> Any:
    return json.loads(json.dumps(value).replace(SECRET, "***"))


def test_everything_is_redacted(chat_model, ai) -> None:
    @tool
    def read(account: str) -> str:
        """Read."""
        return f"balance of {account}"

    redacted: list[Any] = []

    def redact(value: Any) -> Any:
        redacted.append(value)
        return starred(value)

    keeper = GraphRAGEvalCallbackHandler(keep_messages=True, redact=redact)
    script = [
        ai([{"type": "text", "text": f"I read {SECRET}"}], ("read", {"account": SECRET}, "call_1")),
        ai(f"{SECRET} is rich."),
    ]
    agent = create_agent(chat_model(script=script), [read], system_prompt=f"The key is {SECRET}.")
    agent.invoke({"messages": [HumanMessage(f"How is {SECRET}?")]}, {"callbacks": [keeper]})
    response = keeper.response()
    assert SECRET not in json.dumps([response["llm_messages"], response["actual_steps"], response["llm_calls"]])
    assert [message["content"] for message in response["llm_messages"]] == [
        "The key is ***.",
        "How is ***?",
        [{"type": "text", "text": "I read ***"}],
        "balance of ***",
        "*** is rich.",
    ]
    assert response["llm_messages"][2]["tool_calls"][0]["args"] == {"account": "***"}
    assert redacted.count(f"The key is {SECRET}.") == 1  # once per message


def test_texts_outside_the_content_are_redacted() -> None:
    texts = {"refusal": SECRET, "reasoning_content": SECRET}
    [entry] = kept(AIMessage("", additional_kwargs=texts), redact=starred)
    assert {key: entry[key] for key in texts} == dict.fromkeys(texts, "***")


def test_messages_of_exactly_the_limit_are_not_truncated() -> None:
    assert [entry.get("full_length") for entry in kept("abc", "abcd", max_output_chars=3)] == [None, 4]


def test_values_on_which_redact_raises_are_dropped_with_a_warning(make_agent, ai) -> None:
    def redact(value: Any) -> Any:
        raise ValueError(SECRET)

    keeper = GraphRAGEvalCallbackHandler(keep_messages=True, redact=redact)
    make_agent([ai("done")], []).invoke(HI, {"callbacks": [keeper]})
    response = keeper.response()
    assert {message["content"] for message in response["llm_messages"]} == {"[redaction failed]"}
    assert (
        "redact raised ValueError on the content of a message (user), which is left out"
        in (response["capture_warnings"])
    )


# --- messages of all kinds ---


def test_messages_can_be_restored() -> None:
    call = {"name": "search", "args": {"query": "a"}, "id": "c1", "type": "tool_call"}
    invalid = {"name": "search", "args": "{", "id": "c2", "error": "no JSON", "type": "invalid_tool_call"}
    messages = [
        SystemMessage("s"),
        HumanMessage([{"type": "text", "text": "a"}], name="bob"),
        AIMessage("", tool_calls=[call], invalid_tool_calls=[invalid], additional_kwargs={"refusal": "No."}),
        ToolMessage("it broke", tool_call_id="c1", status="error"),
        ChatMessage("x", role="critic"),
    ]
    entries = kept(*messages)
    assert [entry["role"] for entry in entries] == ["system", "user", "assistant", "tool", "critic"]
    assert entries[2]["refusal"] == "No."
    assert entries[2]["invalid_tool_calls"] == [{"name": "search", "args": "{", "id": "c2", "error": "no JSON"}]
    again = convert_to_messages([entry for entry in entries if entry["role"] != "critic"])
    for before, after in zip(messages, again, strict=False):
        assert (before.type, before.content, before.name) == (after.type, after.content, after.name)
    assert again[2].tool_calls == [call]
    assert again[3].status == "error"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PNG}", "filename": "a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
        {"type": "image", "data": PNG.encode()},
        {"type": "reasoning", "encrypted_content": PNG},
        {"type": "text", "text": f"See ![it](data:image/png;base64,{PNG}) there"},
    ],
)
def test_binary_contents_are_replaced_by_their_length(block: dict[str, Any]) -> None:
    (entry,) = kept(HumanMessage([{"type": "text", "text": "What is this?"}, block]))
    text = json.dumps(entry)
    assert PNG not in text
    assert len(text) < 300
    assert "4,011" in text
    assert entry["content"][1]["type"] == block["type"]


def test_images_of_the_same_length_are_distinct() -> None:
    blocks = [[{"type": "image", "base64": PNG[:-1] + last, "mime_type": "image/png"}] for last in "AB"]
    assert len(kept(*(HumanMessage(block) for block in blocks))) == 2


def test_long_texts_and_identifiers_are_not_binary() -> None:
    text = "word " * 200
    block = {"type": "text", "text": "A" * 1_000}
    call = {"name": "search", "args": {"query": text, "url": f"https://a.example/{'a' * 300}"}, "id": "c1"}
    (entry,) = kept(AIMessage([text, block], tool_calls=[call]))
    assert entry["content"] == [text, block]
    assert entry["tool_calls"][0]["args"] == call["args"]


def test_content_without_a_json_type_is_converted() -> None:
    (entry,) = kept(HumanMessage([{"type": "custom", "at": {1}, "x": float("inf"), "é": "\ud800"}]))
    assert json.loads(json.dumps(entry)) == entry
    assert entry["content"][0]["at"] == [1]


# --- tables ---


@given(st.lists(st.integers(0, 30)))
def test_ranges_contain_the_indices_in_order(of: list[int]) -> None:
    found = ranges(of)
    assert expanded(found) == of
    assert all(before[1] != after[0] for before, after in pairwise(found))


@given(st.lists(st.sampled_from("abcdef")))
def test_each_text_is_stored_once_at_its_first_index(texts: list[str]) -> None:
    entries = kept(*(HumanMessage(text) for text in texts))
    assert [entry["content"] for entry in entries] == list(dict.fromkeys(texts))


def test_messages_are_released_when_their_run_ends(make_agent, ai, keeper) -> None:
    message = HumanMessage("hi")
    before = sys.getrefcount(message)
    make_agent([ai("done")], []).invoke({"messages": [message]}, {"callbacks": [keeper]})
    assert sys.getrefcount(message) == before
    keeper.clear()
    assert keeper.responses() == []
