from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graphrag_eval_lc.capture.seen_messages import SeenMessages

NODE = uuid4()


def new(seen: SeenMessages, messages: list[Any]) -> list[Any]:
    return [each.message for reading in seen.read({"messages": messages}) for each in reading.new]


@given(st.lists(st.sampled_from("ath"), max_size=12), st.data())
def test_each_message_is_new_once_however_states_grow(kinds: str, data: st.DataObject) -> None:
    make = {"a": AIMessage, "t": lambda text, id: ToolMessage(text, tool_call_id=id, id=id), "h": HumanMessage}
    messages = [make[kind]("x", id=str(place)) for place, kind in enumerate(kinds)]
    seen, found = SeenMessages(), []
    end = 0
    while end < len(messages):
        end = data.draw(st.integers(end + 1, len(messages)))
        found += new(seen, messages[:end])
    assert found == [message for message in messages if not isinstance(message, HumanMessage)]


def test_a_message_that_gets_its_id_later_stays_known() -> None:
    seen, message = SeenMessages(), AIMessage("x")
    assert new(seen, [message]) == [message]
    message.id = "later"
    assert new(seen, [message]) == []
