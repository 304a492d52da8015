"""LangChain chat models: langchain-openai over real HTTP, and scripted ones."""

import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from support.openai_stub import (
    Fault,
    OpenAIStub,
    broken_body,
    connection_reset,
    cut_off,
    empty_choices,
    finish_reason,
    rate_limit,
    refusal,
    server_error,
)
from support.scripted_judges import MemoryCache

from graphrag_eval_lc.judges.model_interface import Asked, UnusableAnswerError
from graphrag_eval_lc.judges.models import LangChainJudgeModel

COST = 1000 * 0.15e-6 + 100 * 0.6e-6  # one request to gpt-4o-mini: 1000 tokens in, 100 out
USAGE = {"model": "gpt-4o-mini", "input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 100}
USAGE["total_tokens"] = 1100
GOOD = {"reason": "It says so.", "verdict": 1}


class Verdict(BaseModel):
    """A verdict."""

    reason: str
    verdict: Literal[0, 1]


def chat_model(stub: OpenAIStub, **keys: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "gpt-4o-mini", "base_url": stub.base_url, "api_key": "k", "max_retries": 0, **keys})


def model_of(stub: OpenAIStub, chat: dict[str, Any] | None = None, **options: Any) -> LangChainJudgeModel:
    return LangChainJudgeModel(chat_model(stub, **(chat or {})), **{"max_retries": 2, **options})


async def ask(model: LangChainJudgeModel) -> Asked[Verdict]:
    return await model.aask("You judge.", "Is it so?", Verdict)


STREAMING = {"streaming": True, "stream_usage": True}


@pytest.mark.parametrize("chat", [{}, STREAMING], ids=["whole", "streamed"])
async def test_answer_is_a_value_with_usage_and_cost(openai_stub: OpenAIStub, chat: dict[str, Any]) -> None:
    openai_stub.answers.append(GOOD)
    model = model_of(openai_stub, chat)
    reply = await ask(model)
    assert model.name == "openai:gpt-4o-mini"
    assert reply.value == Verdict(**GOOD)
    assert reply.cost == pytest.approx(COST)
    assert reply.usages == (USAGE,)
    assert openai_stub.requests[0].body["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("chat", [{}, STREAMING], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("lacks", "modes"),
    [({"json_schema"}, ["json_schema", "tools"]), ({"json_schema", "tools"}, ["json_schema", "tools", "text"])],
)
async def test_schema_is_sent_in_the_first_mode_that_the_endpoint_supports(
    openai_stub: OpenAIStub, lacks: set[str], modes: list[str], chat: dict[str, Any]
) -> None:
    openai_stub.lacks = lacks
    openai_stub.answer = lambda _: GOOD
    model = model_of(openai_stub, chat)
    assert (await ask(model)).value == (await ask(model)).value == Verdict(**GOOD)
    assert [request.mode for request in openai_stub.requests] == [*modes, modes[-1]]


async def test_model_without_structured_output_gets_the_schema_in_the_prompt() -> None:
    fake = GenericFakeChatModel(messages=iter([AIMessage('{"reason": "x", "verdict": 1}')]))
    reply = await ask(LangChainJudgeModel(fake))
    assert reply.value.verdict == 1
    assert reply.cost is None


async def test_thinking_before_the_answer_is_ignored() -> None:
    thinking, text = {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": '{"reason": "x", "verdict": 1}'}
    fake = GenericFakeChatModel(messages=iter([AIMessage([thinking, text])]))
    assert (await ask(LangChainJudgeModel(fake))).value.verdict == 1


@pytest.mark.parametrize("lacks", [set(), {"json_schema"}])
@pytest.mark.parametrize(
    "message",
    [
        {
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "think", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "Verdict", "arguments": json.dumps(GOOD)}},
            ]
        },
        {"function_call": {"name": "Verdict", "arguments": json.dumps(GOOD)}},
        {"content": json.dumps(GOOD)},
    ],
)
async def test_answer_is_found_anywhere_in_the_message(
    openai_stub: OpenAIStub, message: dict[str, Any], lacks: set[str]
) -> None:
    openai_stub.lacks = lacks
    message = {"role": "assistant", "content": None, **message}
    openai_stub.chat_faults += [None] * len(lacks)
    openai_stub.chat_faults.append(Fault(change=lambda answer: answer["choices"][0].update(message=message)))
    assert (await ask(model_of(openai_stub))).value == Verdict(**GOOD)
    assert len(openai_stub.requests) == 1 + len(lacks)


async def test_rejected_temperature_is_omitted_from_then_on(openai_stub: OpenAIStub) -> None:
    openai_stub.lacks = {"temperature"}
    chat = chat_model(openai_stub, temperature=0.0)
    model = LangChainJudgeModel(chat)
    await ask(model)
    await ask(model)
    assert ["temperature" in request.body for request in openai_stub.requests] == [True, False, False]
    assert chat.temperature == 0.0


PASSING: dict[str, Callable[[], Fault]] = {
    "rate limit": lambda: rate_limit(retry_after="0"),
    "500": server_error,
    "connection reset": connection_reset,
    "cut body": cut_off,
    "half of the JSON": broken_body,
    "a page of a proxy": lambda: broken_body("<html>Bad gateway</html>"),
    "null": lambda: broken_body("null"),
    "empty choices": empty_choices,
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_transient_failure_is_retried(openai_stub: OpenAIStub, fault: Callable[[], Fault]) -> None:
    openai_stub.chat_faults.extend([fault(), fault()])
    assert (await ask(model_of(openai_stub))).value.verdict == 0
    assert len(openai_stub.requests) == 3


async def test_truncated_stream_is_retried(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults.append(cut_off())
    openai_stub.answer = lambda _: GOOD
    reply = await ask(model_of(openai_stub, STREAMING))
    assert reply.value == Verdict(**GOOD)
    assert len(openai_stub.requests) == 2


@pytest.mark.parametrize("chat", [{}, STREAMING], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (refusal("I will not."), "openai:gpt-4o-mini refused to answer: I will not."),
        (finish_reason("content_filter"), "was stopped by the provider's content filter"),
        (finish_reason("length"), "did not come to the end of its answer"),
    ],
)
async def test_refusals_filters_and_length_are_errors_without_a_retry(
    openai_stub: OpenAIStub, fault: Fault, text: str, chat: dict[str, Any]
) -> None:
    openai_stub.chat_faults.append(fault)
    with pytest.raises(UnusableAnswerError, match=text) as caught:
        await ask(model_of(openai_stub, {**chat, "max_tokens": 50}))
    assert len(openai_stub.requests) == 1
    assert caught.value.cost != 0.0


async def test_answers_are_cached_across_equal_models(openai_stub: OpenAIStub) -> None:
    cache = MemoryCache()
    first = await ask(model_of(openai_stub, cache=cache))
    repeated = await ask(model_of(openai_stub, cache=cache))
    assert repeated.is_cached
    assert repeated.value == first.value
    assert not (await ask(model_of(openai_stub, {"temperature": 1.0}, cache=cache))).is_cached
