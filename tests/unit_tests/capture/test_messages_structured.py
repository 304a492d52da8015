"""Model calls for structured output are not steps, whether they could be parsed or not."""

from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from graphrag_eval_lc.capture.llm_calls import message_result
from graphrag_eval_lc.capture.messages import is_class_name, schema_names


@pytest.mark.parametrize("name", ["City", "GradeDocument", "RouteQuery2"])
def test_classes_have_distinct_names(name: str) -> None:
    assert is_class_name(name)
    assert not any(map(is_class_name, [name.lower(), name.upper(), f"_{name}", f"{name}_tool", ""]))


def test_langchain_texts_name_the_schema() -> None:
    call: Any = {"name": "City", "args": {}, "id": "c1"}
    for text in (
        "Error: Failed to parse structured output for tool 'City': no.\n Please fix your mistakes.",
        "Error: Model incorrectly returned multiple structured responses (City, River) when only one is expected.",
        "Returning structured response: name='Bern'",
    ):
        messages = [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id="c1", name="City")]
        assert "City" in set(schema_names(messages, None))
    answered = [AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id="c1", name="City")]
    assert set(schema_names(answered, Command())) == set()
    assert set(schema_names(answered, [Command()])) == {"City"}


def test_all_answers_with_the_same_id_count() -> None:
    calls: Any = [{"name": name, "args": {}, "id": ""} for name in ("City", "River")]
    text = "Returning structured response: name='Bern'"
    answers = [ToolMessage(text, tool_call_id="", name=call["name"]) for call in calls]
    assert list(schema_names([AIMessage("", tool_calls=calls), *answers], None)) == ["City", "River"]


@pytest.mark.parametrize(
    ("options", "is_warned"), [({"ls_structured_output_format": {"schema": {}}}, False), ({}, True)]
)
def test_structured_output_call_has_no_result(handler: Any, options: Any, is_warned: bool) -> None:
    call: Any = {"name": "grade", "args": {"helps": True}, "id": "c1"}
    root, run_id = uuid4(), uuid4()
    handler.on_chain_start(None, {"question": "why?"}, run_id=root)
    handler.on_chat_model_start(None, [[HumanMessage("why?")]], run_id=run_id, parent_run_id=root, options=options)
    handler.on_llm_end(message_result(AIMessage("", tool_calls=[call])), run_id=run_id)
    handler.on_chain_end({"helps": True}, run_id=root)
    warnings = handler.response().get("capture_warnings", ())
    assert any("never answered" in warning for warning in warnings) is is_warned
