from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import Generation, LLMResult

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.llm_calls import answer_problems, finish_reason, message_result
from graphrag_eval_lc.capture.redaction import CaptureOptions

CALL = {"name": "search", "args": {"query": "a"}, "id": "c1"}
INVALID = {
    "name": "search",
    "args": '{"query": "a',
    "id": "c1",
    "error": 'Function search arguments:\n\n{"query": "a\n\nare not valid JSON.\nFor troubleshooting, visit: https://…',
}


def problems(content: Any = "", options: CaptureOptions | None = None, **message: Any) -> tuple[str, ...]:
    warnings: list[str] = []
    result = message_result(AIMessage(content, **message))
    found = answer_problems(result, finish_reason(result), options or CaptureOptions(), warnings)
    return (*found, *warnings)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Oslo"},
        {"content": "Oslo", "response_metadata": {"finish_reason": "stop"}},
        {"content": [{"type": "text", "text": "Oslo"}], "response_metadata": {"stop_reason": "end_turn"}},
        {"tool_calls": [CALL]},
        {"tool_calls": [CALL], "response_metadata": {"finish_reason": "tool_calls"}},
        {"content": [{"type": "image", "base64": "eA==", "mime_type": "image/png"}]},
        {"additional_kwargs": {"function_call": {"name": "search", "arguments": "{}"}}},
        {"additional_kwargs": {"audio": {"id": "audio_1"}}},
        {"content": "Oslo", "additional_kwargs": {"refusal": None}},
        {"content": "Oslo", "response_metadata": {"finish_reason": "a word that nobody knows"}},
        {"content": "Oslo", "response_metadata": {"object": "response", "status": "completed"}},
    ],
)
def test_an_answer_in_order_has_no_problem(message: dict[str, Any]) -> None:
    assert problems(**message) == ()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("finish_reason", "length"),  # OpenAI, Mistral, Groq
        ("stop_reason", "max_tokens"),  # Anthropic
        ("finish_reason", "MAX_TOKENS"),  # Google
        ("stopReason", "max_tokens"),  # Bedrock
        ("done_reason", "length"),  # Ollama
    ],
)
def test_a_cut_answer_is_told_in_the_providers_word(key: str, reason: str) -> None:
    assert problems("The lines are", response_metadata={key: reason}) == (
        f"was cut off at the limit of tokens (finish_reason {reason})",
    )


def test_an_answer_of_the_responses_api_says_why_it_is_incomplete() -> None:
    metadata = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert problems([{"type": "text", "text": "The"}], response_metadata=metadata) == (
        "was cut off at the limit of tokens (finish_reason max_output_tokens)",
    )


def test_an_answer_that_was_cut_while_the_model_thought_is_empty() -> None:
    thoughts = [{"type": "reasoning", "reasoning": "hm"}]
    assert problems(thoughts, response_metadata={"stop_reason": "max_tokens"}) == (
        "was cut off at the limit of tokens before it gave any text (finish_reason max_tokens)",
    )


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}], [{"type": "thinking"}]])
def test_an_empty_answer_is_told(content: Any) -> None:
    assert problems(content, response_metadata={"finish_reason": "stop"}) == (
        "gave neither text nor a tool call (finish_reason stop)",
    )
    assert problems(content) == ("gave neither text nor a tool call",)


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "guardrail_intervened", "RECITATION"])
def test_a_filter_is_told(reason: str) -> None:
    assert problems(response_metadata={"finish_reason": reason}) == (
        f"was stopped by the provider's filter (finish_reason {reason})",
    )


@pytest.mark.parametrize(
    "message",
    [
        {"additional_kwargs": {"refusal": "I will not."}},
        {"content": [{"type": "refusal", "refusal": "I will not."}]},
        {"content": [{"type": "non_standard", "value": {"type": "refusal", "refusal": "I will not."}}]},
    ],
)
def test_a_refusal_is_told_with_its_words(message: dict[str, Any]) -> None:
    assert problems(**message) == ("refused: I will not.",)


def test_a_refusal_of_anthropic_is_its_stop_reason() -> None:
    assert problems(response_metadata={"stop_reason": "refusal"}) == ("refused (finish_reason refusal)",)


def test_an_invalid_call_is_told_with_its_text_and_error_and_the_answer_is_not_called_empty() -> None:
    assert problems(invalid_tool_calls=[INVALID], response_metadata={"finish_reason": "tool_calls"}) == (
        'asked for search (c1) with arguments that could not be read, so that it did not run: {"query": "a '
        "(Function search arguments: … are not valid JSON.)",
    )


def test_an_invalid_call_may_say_nothing_of_itself() -> None:
    call = {"name": None, "args": None, "id": None, "error": None}
    assert problems(invalid_tool_calls=[call]) == (
        "asked for a tool with arguments that could not be read, so that it did not run",
    )


def test_what_is_shown_is_redacted_before_it_is_shortened() -> None:
    options = CaptureOptions(redact=lambda value: value.replace("s3cret", "***") if isinstance(value, str) else value)
    call = {**INVALID, "args": "x" * 196 + "s3cret" + "y" * 90, "error": "s3cret is no JSON"}
    (found,) = problems(options=options, invalid_tool_calls=[call])
    assert "s3c" not in found
    assert found.endswith(f": {'x' * 196}***y… (*** is no JSON)")
    assert problems(options=options, additional_kwargs={"refusal": "no s3cret"}) == ("refused: no ***",)


def test_a_redact_that_raises_is_told_and_shows_nothing() -> None:
    options = CaptureOptions(redact=lambda value: 1 / 0)
    refused, warning = problems(options=options, additional_kwargs={"refusal": "s3cret"})
    assert refused == "refused: [redaction failed]"
    assert warning == "redact raised ZeroDivisionError on the refusal, which is left out"


def test_a_plain_language_model_tells_how_it_ended_too() -> None:
    cut = LLMResult(generations=[[Generation(text="Os", generation_info={"finish_reason": "length"})]])
    (problem,) = answer_problems(cut, finish_reason(cut), CaptureOptions(), [])
    assert problem == "was cut off at the limit of tokens (finish_reason length)"
    assert answer_problems(LLMResult(generations=[]), None, CaptureOptions(), []) == ()


# --- in a response ---


def test_the_response_says_which_calls_are_meant_and_keeps_each_reason(
    ai: Any, ask: Any, search: Any, chat_model: Any, make_agent: Any
) -> None:
    script = [ai("", ("search", {"query": "a"}, "c1")), ai("", ("search", {"query": "b"}, "c2")), ai("The")]
    for message, reason in zip(script, ("tool_calls", "length", "length"), strict=True):
        message.response_metadata = {"model_name": "m", "finish_reason": reason}
    response = ask(make_agent(script, [search]))
    assert [call["finish_reason"] for call in response["llm_calls"]] == ["tool_calls", "length", "length"]
    assert response["capture_warnings"] == [
        "model call 2 (m) was cut off at the limit of tokens (finish_reason length)",
        "model call 3 (m) was cut off at the limit of tokens (finish_reason length)",
    ]
    assert response["status"] == "success"


def test_many_calls_with_one_problem_are_told_shortly(ai: Any, ask: Any, search: Any, make_agent: Any) -> None:
    script = [ai("", ("search", {"query": "a"}, f"c{turn}")) for turn in range(8)] + [ai("done")]
    for message in script[:-1]:
        message.response_metadata = {"finish_reason": "length"}
    warnings = ask(make_agent(script, [search]))["capture_warnings"]
    cut = "was cut off at the limit of tokens (finish_reason length)"
    assert warnings == [*(f"model call {number} {cut}" for number in range(1, 6)), f"3 more model calls: each {cut}"]


def test_a_model_that_does_not_state_a_reason_has_none(ai: Any, ask: Any, make_agent: Any) -> None:
    response = ask(make_agent([ai("done")], []))
    assert "finish_reason" not in response["llm_calls"][0]
    assert "capture_warnings" not in response


def test_redact_is_not_called_under_the_lock(ai: Any, ask: Any, make_agent: Any) -> None:
    """It may ask the handler itself, from another thread."""
    held: list[bool] = []
    handler = GraphRAGEvalCallbackHandler(redact=lambda value: held.append(handler._lock._is_owned()) or value)
    message = ai()
    message.invalid_tool_calls = [INVALID]
    make_agent([message], []).invoke({"messages": [("user", "hi")]}, config={"callbacks": [handler]})
    assert held == [False, False]
    (warning,) = handler.response()["capture_warnings"]
    assert warning.startswith("model call 1 asked for search (c1)")
