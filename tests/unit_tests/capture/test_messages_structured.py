"""Calls by which a model gives structured output: no steps, whether they parsed or not."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command
from pydantic import BaseModel, Field

from graphrag_eval_lc.capture.messages import is_class_name, schema_names

BAD, GOOD = ("City", {"name": "Bern"}, "c1"), ("City", {"name": "Bern", "people": 5}, "c2")


class City(BaseModel):
    name: str
    people: int


class River(BaseModel):
    name: str
    length: float = Field(alias="lengthKm")


# --- nodes that read the arguments themselves ---


class GradeDocument(BaseModel):
    """Whether a document helps."""

    helps: bool


@pytest.mark.parametrize("name", ["City", "GradeDocument", "RouteQuery2"])
def test_classes_have_names_of_their_own(name: str) -> None:
    assert is_class_name(name)
    assert not any(map(is_class_name, [name.lower(), name.upper(), f"_{name}", f"{name}_tool", ""]))


def test_langchains_own_texts_name_the_schema() -> None:
    call: Any = {"name": "City", "args": {}, "id": "c1"}
    for text in (
        "Error: Failed to parse structured output for tool 'City': no.\n Please fix your mistakes.",
        "Error: Model incorrectly returned multiple structured responses (City, River) when only one is expected.",
        "Returning structured response: name='Bern'",
    ):
        messages = [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id="c1", name="City")]
        assert "City" in set(schema_names(messages, None))
    answered = [AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id="c1", name="City")]
    assert set(schema_names(answered, [Command()])) == set()
    assert set(schema_names(answered, [Command()], is_of_model_node=True)) == {"City"}


def test_an_image_of_openai_is_a_step(ask: Any, ai: Any, make_agent: Any) -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "eA=="}
    failed = {**image, "id": "ig_2", "status": "failed", "revised_prompt": "a fjord"}
    message = ai([image, failed, {"type": "text", "text": "done"}])
    message.response_metadata = {"model_provider": "openai"}
    made, not_made = ask(make_agent([message], []))["actual_steps"]
    assert (made["name"], made["args"], made["output"]) == ("image_generation", {}, "")
    assert (not_made["args"], not_made["error"]) == ({"prompt": "a fjord"}, "error without a message")
