from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from graphrag_eval_lc.capture.llm_calls import finish_reason, is_cache_hit, is_generated, model_usage, result_model_name


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
    assert not is_cache_hit(AIMessage("Oslo", usage_metadata=usage))
    hit = AIMessage("Oslo")
    hit.usage_metadata = {**usage, "total_cost": 0}  # type: ignore[typeddict-unknown-key]
    assert is_cache_hit(hit)


# --- tokens that were written to the provider's cache ---


def usage_with(**details: Any) -> dict[str, Any]:
    return {"input_tokens": 100, "output_tokens": 4, "total_tokens": 104, "input_token_details": details}


@pytest.mark.parametrize(
    ("details", "written", "hourly"),
    [
        ({"cache_creation": 30}, 30, None),
        ({"cache_creation": 0, "ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10}, 30, 10),
        ({"cache_creation": 30, "ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10}, 30, 10),
        ({"cache_creation": 0, "ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0}, 30, None),
        ({"cache_creation": 0}, 0, None),
        ({"priority_cache_creation": 30}, 30, None),
        ({"cache_read": 5}, None, None),
    ],
)
def test_cache_writes_are_part_of_the_prompt(details: dict[str, Any], written: int | None, hourly: int | None) -> None:
    call = model_usage(result(usage_metadata=usage_with(**details)))
    assert call["input_tokens"] == 100
    assert (call.get("cache_write_input_tokens"), call.get("cache_write_1h_input_tokens")) == (written, hourly)


def test_the_tokens_that_anthropic_itself_reports_are_added_up() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 1000},
    }
    assert model_usage(result({"usage": usage})) == {
        "input_tokens": 4100,
        "output_tokens": 10,
        "total_tokens": 4110,
        "cached_input_tokens": 1000,
        "cache_write_input_tokens": 3000,
        "cache_write_1h_input_tokens": 1000,
    }


def test_a_proxy_that_counts_them_in_already_is_believed() -> None:
    usage = {"prompt_tokens": 4100, "completion_tokens": 10, "cache_creation_input_tokens": 3000}
    call = model_usage(result({"token_usage": usage}))
    assert (call["input_tokens"], call["cache_write_input_tokens"]) == (4100, 3000)


@pytest.mark.full
@pytest.mark.parametrize("by_time", [True, False])
def test_langchain_anthropics_own_usage_has_all_tokens(by_time: bool) -> None:
    chat_models = pytest.importorskip("langchain_anthropic.chat_models")
    types = pytest.importorskip("anthropic.types")
    creation = {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 1000} if by_time else None
    sent = types.Usage(
        input_tokens=100,
        output_tokens=10,
        cache_read_input_tokens=1000,
        cache_creation_input_tokens=3000,
        cache_creation=creation,
    )
    call = model_usage(result(usage_metadata=chat_models._create_usage_metadata(sent)))
    assert (call["input_tokens"], call["cached_input_tokens"], call["cache_write_input_tokens"]) == (4100, 1000, 3000)
    assert call.get("cache_write_1h_input_tokens") == (1000 if by_time else None)
    assert call == model_usage(result(response_metadata={"usage": sent.model_dump()}))


# --- how an answer ended ---


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "STOPSTOP"}, "STOP"),  # chunks of a stream that each said it
        ({"stop_reason": "end_turn"}, "end_turn"),
        ({"finish_reason": None, "stop_reason": "tool_use"}, "tool_use"),
        ({"object": "response", "status": "completed"}, "completed"),
        ({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
         "max_output_tokens"),
        ({"status": "open"}, None),
        ({"finish_reason": 1}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_reason_is_the_providers_word(metadata: dict[str, Any], expected: str | None) -> None:
    assert finish_reason(result(response_metadata=metadata)) == expected


# --- who wrote a message ---


@pytest.mark.parametrize(
    "message",
    [
        {"usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}},
        {"response_metadata": {"model_name": "m"}},
        {"response_metadata": {"finish_reason": "stop"}},
        {"id": "lc_run--01a2"},
        {"id": "run-01a2"},
        {"id": "chatcmpl-9xyz"},
        {"id": "resp_0123456789abcdef0123"},
        {"id": "msg_01GM3zQtoFv8jGQMW7abLnhi"},
    ],
)
def test_a_model_says_what_its_answer_cost_or_how_it_was_made(message: dict[str, Any]) -> None:
    assert is_generated(AIMessage("yes", **message))


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"id": "4b1f0c9e-6d0e-4c55-9f0e-2a7f4c1c8f11"},
        {"id": "msg_1"},
        {"response_metadata": {"__is_handoff_back": True}},
        {"response_metadata": {"source": "a rule"}},
    ],
)
def test_a_nodes_own_message_is_no_models(message: dict[str, Any]) -> None:
    assert not is_generated(AIMessage("yes", **message))
