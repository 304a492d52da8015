from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from graphrag_eval_lc.capture.usage import is_cache_hit, model_usage, result_model_name


def result(llm_output: dict[str, Any] | None = None, **message: Any) -> LLMResult:
    return LLMResult(
        generations=[[ChatGeneration(message=AIMessage("", **message))]],
        llm_output=llm_output,
    )


@pytest.mark.parametrize(
    "answer",
    [
        result(usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}),
        result({"token_usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}),
        result({"usage": {"input_tokens": 3, "output_tokens": 4}}),
        result(response_metadata={"token_usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
        result(response_metadata={"usage": {"input_tokens": 3, "output_tokens": 4}}),
        LLMResult(
            generations=[[Generation(text="", generation_info={"usage": {"input_tokens": 3, "output_tokens": 4}})]]
        ),
    ],
)
def test_tokens_are_found_wherever_providers_put_them(answer: LLMResult) -> None:
    assert model_usage(answer) == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


def test_the_message_comes_before_llm_output() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert model_usage(result({"token_usage": {"prompt_tokens": 99}}, usage_metadata=usage))["input_tokens"] == 3


def test_details_are_kept() -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "input_token_details": {"cache_read": 2},
        "output_token_details": {"reasoning": 1},
    }
    call = model_usage(result(usage_metadata=usage))
    assert (call["cached_input_tokens"], call["reasoning_tokens"]) == (2, 1)


@pytest.mark.parametrize(
    "answer",
    [
        LLMResult(generations=[]),
        LLMResult(generations=[[]]),
        result(),
        result({"token_usage": None}),
        result({"token_usage": {"prompt_tokens": None, "completion_tokens": float("nan")}}),
        result({"token_usage": {"prompt_tokens": True, "completion_tokens": -1}}),
        result({"token_usage": {"prompt_tokens": "3", "completion_tokens": float("inf")}}),
    ],
)
def test_what_is_unknown_is_absent(answer: LLMResult) -> None:
    assert model_usage(answer) == {}


def test_the_model_name_is_found() -> None:
    assert result_model_name(result(response_metadata={"model_name": "a"})) == "a"
    assert result_model_name(result(response_metadata={"model": "b"})) == "b"
    assert result_model_name(result({"model_name": "c"})) == "c"
    assert result_model_name(result()) is None


def test_a_cache_hit_is_recognised_by_its_cost_of_zero() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert not is_cache_hit(result(usage_metadata=usage))
    hit = result()
    hit.generations[0][0].message.usage_metadata = {**usage, "total_cost": 0}  # type: ignore[union-attr]
    assert is_cache_hit(hit)
