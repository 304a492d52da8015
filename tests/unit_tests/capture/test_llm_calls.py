from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.llm_calls import answer_problems, message_result, model_call
from graphrag_eval_lc.capture.values import CaptureOptions

INVALID = {"name": "search", "args": '{"query": "a', "id": "c1", "error": "no JSON"}


def result(llm_output: dict[str, Any] | None = None, **message: Any) -> LLMResult:
    return LLMResult(
        generations=[[ChatGeneration(message=AIMessage("", **message))]],
        llm_output=llm_output,
    )


@pytest.mark.full
@pytest.mark.parametrize("by_time", [True, False])
def test_usage_of_langchain_anthropic_has_all_tokens(by_time: bool) -> None:
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
    call = model_call(result(usage_metadata=chat_models._create_usage_metadata(sent)))
    assert (call["input_tokens"], call["cached_input_tokens"], call["cache_write_input_tokens"]) == (4100, 1000, 3000)
    assert call.get("cache_write_1h_input_tokens") == (1000 if by_time else None)
    assert call == model_call(result(response_metadata={"usage": sent.model_dump()}))


def problems(options: CaptureOptions, **message: Any) -> tuple[str, ...]:
    warnings: list[str] = []
    result = message_result(AIMessage("", **message))
    found = answer_problems(result, model_call(result).get("finish_reason"), options, warnings)
    return (*found, *warnings)


def test_messages_are_redacted_before_truncation() -> None:
    options = CaptureOptions(redact=lambda value: value.replace("s3cret", "***") if isinstance(value, str) else value)
    call = {**INVALID, "args": "x" * 196 + "s3cret" + "y" * 90, "error": "s3cret is no JSON"}
    (found,) = problems(options=options, invalid_tool_calls=[call])
    assert "s3c" not in found
    assert found.endswith(f": {'x' * 196}***y… (*** is no JSON)")
    assert problems(options=options, additional_kwargs={"refusal": "no s3cret"}) == ("refused: no ***",)


def test_failing_redact_is_reported_without_values() -> None:
    options = CaptureOptions(redact=lambda value: 1 / 0)
    refused, warning = problems(options=options, additional_kwargs={"refusal": "s3cret"})
    assert refused == "refused: [redaction failed]"
    assert warning == "redact raised ZeroDivisionError on the refusal, which is left out"


def test_many_calls_with_the_same_problem_are_reported_briefly(ai: Any, ask: Any, search: Any, make_agent: Any) -> None:
    script = [ai("", ("search", {"query": "a"}, f"c{turn}")) for turn in range(8)] + [ai("done")]
    for message in script[:-1]:
        message.response_metadata = {"finish_reason": "length"}
    warnings = ask(make_agent(script, [search]))["capture_warnings"]
    cut = "was cut off at the limit of tokens (finish_reason length)"
    assert warnings == [*(f"model call {number} {cut}" for number in range(1, 6)), f"3 more model calls: each {cut}"]


def test_redact_is_not_called_under_the_lock(ai: Any, ask: Any, make_agent: Any) -> None:
    """It may call the handler itself, from another thread."""
    held: list[bool] = []
    handler = GraphRAGEvalCallbackHandler(redact=lambda value: held.append(handler._lock._is_owned()) or value)
    message = ai()
    message.invalid_tool_calls = [INVALID]
    make_agent([message], []).invoke({"messages": [("user", "hi")]}, config={"callbacks": [handler]})
    assert held == [False, False]
    (warning,) = handler.response()["capture_warnings"]
    assert warning.startswith("model call 1 asked for search (c1)")
