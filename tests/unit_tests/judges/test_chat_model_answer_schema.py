from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from graphrag_eval_lc.judges.chat_model import closed_schema, form_name


class Verdict(BaseModel):
    """One verdict."""

    reason: str = Field(description="Why.")
    verdict: Literal[0, 1] = 0


class Verdicts(BaseModel):
    first: Verdict = Field(description="The first.")
    all: list[Verdict] = Field(min_length=2, max_length=2)
    note: str | None = None
    kind: Literal["only"]


class Tree(BaseModel):
    children: list["Tree"]


VERDICT: dict[str, Any] = {
    "description": "One verdict.",
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "Why."},
        "verdict": {"type": "integer", "enum": [0, 1]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}


def test_objects_are_closed_and_need_all_their_keys() -> None:
    assert closed_schema(Verdict) == VERDICT


def test_nested_forms_are_written_out() -> None:
    assert closed_schema(Verdicts) == {
        "type": "object",
        "properties": {
            "first": {**VERDICT, "description": "The first."},
            "all": {"type": "array", "items": VERDICT, "minItems": 2, "maxItems": 2},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"type": "string", "enum": ["only"]},
        },
        "required": ["first", "all", "note", "kind"],
        "additionalProperties": False,
    }


def test_a_form_that_contains_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot contain itself, as Tree does"):
        closed_schema(Tree)


def test_names_are_those_that_endpoints_take() -> None:
    assert form_name(type("Größe 1" + "x" * 100, (BaseModel,), {})) == "Gr__e_1" + "x" * 57
