"""Functions that read messages, outputs and results, with one case per line of `vectors.jsonl`."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.outputs import LLMResult
from support.stream_values import Decoder, Encoder

from graphrag_eval_lc.capture import llm_calls, messages, values
from graphrag_eval_lc.capture.values import CaptureOptions

VECTORS = [json.loads(line) for line in Path(__file__).with_name("vectors.jsonl").read_text("utf-8").splitlines()]
NAMES: dict[Any, tuple[str, ...]] = {
    llm_calls: ("is_cache_hit", "is_generated", "model_call"),
    messages: ("answer_in", "question_in", "whole_answer"),
    values: (
        *("args_snapshot", "mcp_text", "output_text", "tool_message_of"),
        *("kept_config", "shown_config"),
    ),
}


def problems_of(result: LLMResult) -> tuple[str, ...]:
    return llm_calls.answer_problems(result, llm_calls.model_call(result).get("finish_reason"), CaptureOptions(), [])


FUNCTIONS: dict[str, Any] = {
    **{name: getattr(module, name) for module, names in NAMES.items() for name in names},
    "answer_problems": problems_of,
    "message_lists": lambda value: list(messages.message_lists(value)),
    "message_outcome": lambda message: tuple(values.message_outcome(message)[:2]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_vectors(function: str) -> None:
    for vector in (vector for vector in VECTORS if vector["function"] == function):
        given = Decoder().decode(vector["given"])
        encoder = Encoder()
        encoder.encode(given)
        assert encoder.encode(FUNCTIONS[function](*given)) == vector["returns"], vector["about"]


def test_vectors_are_unique_and_cover_every_function() -> None:
    lines = [json.dumps([vector["function"], vector["given"]]) for vector in VECTORS]
    assert len(lines) == len(set(lines))
    assert {vector["function"] for vector in VECTORS} == set(FUNCTIONS)
