from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk

from graphrag_eval_lc.capture.history import History
from graphrag_eval_lc.capture.kept import CaptureOptions
from graphrag_eval_lc.capture.record import Record, Tree

NODE, OTHER_NODE = (
    Record(UUID(int=number), "chain", Tree(UUID(int=number), None, CaptureOptions()), None) for number in (1, 2)
)
USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
MORE: dict[str, Any] = {**USAGE, "input_tokens": 11, "total_tokens": 13}


def said(content: str = "yes", message_id: str | None = "lc_run--a", **keys: Any) -> AIMessage:
    return AIMessage(content, id=message_id, **{"usage_metadata": USAGE, **keys})


class Counted(History):
    """Messages whose model calls count."""

    def __init__(self, nameless: set[int]) -> None:
        super().__init__(set(), nameless)

    def add(self, message: AIMessage, node: Record, *, is_reported: bool) -> None:
        self.count(message, node, is_reported=is_reported)

    def has(self, message: AIMessage, node: Record) -> bool:
        return self.is_counted(message, node)


def counted(message: AIMessage, *, is_reported: bool = True) -> Counted:
    messages = Counted(set() if message.id else {id(message)})
    messages.add(message, NODE, is_reported=is_reported)
    return messages


@pytest.mark.parametrize("is_reported", [True, False])
@pytest.mark.parametrize(
    "copy",
    [
        said(),
        said("whatever the agent made of it"),
        said(message_id=str(UUID(int=7)), name="expert"),
        said(message_id=str(UUID(int=7)), usage_metadata=None),
        AIMessageChunk("yes", id="lc_run--a", usage_metadata=USAGE),
    ],
)
def test_a_copy_is_counted_already_wherever_it_is_met(copy: AIMessage, is_reported: bool) -> None:
    assert counted(said(), is_reported=is_reported).has(copy, OTHER_NODE)


@pytest.mark.parametrize(
    "other",
    [
        said(message_id="lc_run--b"),
        said(message_id=str(UUID(int=7)), usage_metadata=MORE),
        said("no", message_id=str(UUID(int=7))),
        said("no", message_id=None),
    ],
)
def test_another_call_is_not(other: AIMessage) -> None:
    assert not counted(said()).has(other, OTHER_NODE)


def test_what_a_node_rewrote_itself_is_a_copy_in_that_node_only() -> None:
    rewritten = said("The answer is yes.", message_id=None)
    assert counted(said()).has(rewritten, NODE)
    assert not counted(said()).has(rewritten, OTHER_NODE)
    assert not counted(said(), is_reported=False).has(rewritten, NODE)


def test_the_providers_id_of_the_answer_decides_where_both_have_one() -> None:
    first, second = {"id": "chatcmpl-1"}, {"id": "chatcmpl-2"}
    messages = counted(said(response_metadata=first))
    assert messages.has(said("The answer is yes.", message_id=None, response_metadata=first), OTHER_NODE)
    assert not messages.has(said(message_id=None, response_metadata=second), NODE)


def test_messages_without_ids_that_look_alike_are_calls_of_their_own() -> None:
    """A node's own code makes one of each answer of a model that it asked by itself."""
    assert not counted(said(message_id=None), is_reported=False).has(said(message_id=None), NODE)


def test_a_message_that_gets_an_id_later_stays_the_same() -> None:
    """A run is interpreted at its end, when langgraph has given it one."""
    message, other = said(message_id=str(UUID(int=7))), said(message_id=str(UUID(int=9)))
    messages = Counted({id(message), id(other)})
    messages.add(message, NODE, is_reported=False)
    assert messages.has(message, OTHER_NODE)
    assert messages.has(said(message_id=str(UUID(int=8))), OTHER_NODE)
    assert not messages.has(other, OTHER_NODE)


@given(st.lists(st.sampled_from([USAGE, MORE, None]), max_size=8), st.booleans())
def test_each_of_several_messages_is_found_again(usages: list[Any], is_reported: bool) -> None:
    messages = Counted(set())
    all_said = [said(f"{place}", message_id=None, usage_metadata=usage) for place, usage in enumerate(usages)]
    for message in all_said:
        assert not messages.has(message.model_copy(), OTHER_NODE)
        messages.add(message, NODE, is_reported=is_reported)
    assert all(messages.has(each.model_copy(update={"id": str(uuid4())}), OTHER_NODE) for each in all_said)


# --- in a run ---
