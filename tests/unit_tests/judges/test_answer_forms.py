import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_name


class Judged(BaseModel):
    reason: str
    verdict: Literal[0, 1]


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


def test_nested_models_are_inlined() -> None:
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


def test_recursive_model_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot contain itself, as Tree does"):
        closed_schema(Tree)


def test_schema_names_are_valid_for_endpoints() -> None:
    assert form_name(type("Größe 1" + "x" * 100, (BaseModel,), {})) == "Gr__e_1" + "x" * 57


ONE, ZERO = '{"reason": "yes", "verdict": 1}', '{"reason": "no", "verdict": 0}'


@pytest.mark.parametrize(
    "text",
    [
        f"<thinking>{ZERO}</thinking>{ONE}",
        f"{ONE}<think>That is all.</think>\n",
        f"[THINK]{ZERO}[/THINK]{ONE}",
        f"<|channel|>analysis<|message|>{ZERO}<|end|><|start|>assistant<|channel|>final<|message|>{ONE}<|return|>",
        f"[{ZERO}, {ONE}]",
        f'He said "it is {{so}}" and 5" then {ONE}',
        f'{{ open, "quoted {ONE}',
        json.dumps({"answers": [{"deep": ONE}]}),
        f"<tool_call>{ONE}</tool_call> and {ONE[:20]}",
        '{"reason": "two\nlines", "verdict": 1} }',
    ],
)
def test_last_complete_matching_object_is_read(text: str) -> None:
    assert answer_in(text, Judged).verdict == 1


@pytest.mark.parametrize(
    "text",
    [f"<think>{ONE}</think>I cannot.", f"<think>{ONE} hm", f"<|channel|>analysis<|message|>{ONE}", "[" * 60_000, ""],
)
def test_thinking_alone_is_not_an_answer(text: str) -> None:
    with pytest.raises(WrongFormError):
        answer_in(text, Judged)
