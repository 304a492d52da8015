"""Chat models at an OpenAI-compatible endpoint, over real HTTP."""

import asyncio
import email.utils
import json
import logging
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from support.openai_stub import (
    Fault,
    OpenAIStub,
    broken_body,
    connection_reset,
    cut_off,
    empty_choices,
    finish_reason,
    hanging,
    http_error,
    missing_usage,
    rate_limit,
    refusal,
    server_error,
    used_up_quota,
)
from support.scripted_judges import MemoryCache

from graphrag_eval_lc.config import GenerationConfig, PriceConfig
from graphrag_eval_lc.errors import ConfigError, JudgeError, RunFolderError
from graphrag_eval_lc.judges.model import usages_cost
from graphrag_eval_lc.judges.model_interface import Asked, CallPool, UnusableAnswerError
from graphrag_eval_lc.judges.openai_models import OpenAIJudgeModel
from graphrag_eval_lc.prices import Pricing

COST = 1000 * 0.15e-6 + 100 * 0.6e-6  # one request to gpt-4o-mini: 1000 tokens in, 100 out
USAGE = {"model": "gpt-4o-mini", "input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 100}
USAGE["total_tokens"] = 1100
GOOD = {"reason": "It says so.", "verdict": 1}


TEXT = json.dumps(GOOD)
MESSAGES: list[dict[str, Any]] = [
    {"tool_calls": [{"function": {"name": "think", "arguments": "{}"}}, {"function": {"arguments": TEXT}}]},
    {"tool_calls": [{"function": {"arguments": TEXT}}, {"function": {"name": "end", "arguments": "{}"}}]},
    {"tool_calls": [{"function": {"arguments": GOOD}}], "content": "Done."},
    {"tool_calls": [None, {"function": None}, {"name": "Verdict", "arguments": TEXT}]},
    {"tool_calls": [{"function": {"name": "end", "arguments": "{}"}}], "content": TEXT},
    {"function_call": {"name": "Verdict", "arguments": TEXT}, "content": None},
    {"parsed": GOOD, "content": "Done."},
    {"content": GOOD},
    {"content": [{"type": "text", "text": TEXT[:9]}, {"type": "text", "text": TEXT[9:]}]},
    {"content": "", "reasoning_content": TEXT},
]


class Verdict(BaseModel):
    reason: str
    verdict: Literal[0, 1]


def model_of(stub: OpenAIStub, generation: dict[str, Any] | None = None, **options: Any) -> OpenAIJudgeModel:
    keys = {"model": "gpt-4o-mini", "base_url": stub.base_url, "api_key": "k", **(generation or {})}
    return OpenAIJudgeModel(GenerationConfig(**keys), **{"max_retries": 2, **options})


async def ask(model: OpenAIJudgeModel) -> Asked[Verdict]:
    return await model.aask("You judge.", "Is it so?", Verdict)


# --- requests --------------------------------------------------------------------------------------------------------


async def test_answer_is_a_value_with_usage_and_cost(openai_stub: OpenAIStub) -> None:
    openai_stub.answers.append(GOOD)
    reply = await ask(model_of(openai_stub))
    assert reply.value == Verdict(**GOOD)
    assert reply.cost == pytest.approx(COST)
    assert reply.usages == (USAGE,)
    assert not reply.is_cached


async def test_request_has_messages_a_strict_schema_and_temperature_0(openai_stub: OpenAIStub) -> None:
    await ask(model_of(openai_stub))
    body = openai_stub.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Is it so?"},
    ]
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["temperature"] == 0.0
    assert set(body) == {"model", "messages", "response_format", "temperature", "max_tokens"}


async def test_unknown_config_keys_are_passed_on(openai_stub: OpenAIStub) -> None:
    keys = {"seed": 7, "top_p": 0.5, "own_key": {"a": 1}, "extra_headers": {"x-team": "kg"}, "max_tokens": 50}
    await ask(model_of(openai_stub, {**keys, "temperature": None}))
    request = openai_stub.requests[0]
    assert {name: request.body[name] for name in ("seed", "top_p", "own_key", "max_tokens")} == {
        "seed": 7,
        "top_p": 0.5,
        "own_key": {"a": 1},
        "max_tokens": 50,
    }
    assert "temperature" not in request.body
    assert request.headers["x-team"] == "kg"
    assert request.headers["authorization"] == "Bearer k"


# --- what an endpoint does not support -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lacks", "modes"),
    [
        (set(), ["json_schema"]),
        ({"json_schema"}, ["json_schema", "tools"]),
        ({"json_schema", "tools"}, ["json_schema", "tools", "json_object"]),
        ({"json_schema", "tools", "json_object"}, ["json_schema", "tools", "json_object", "text"]),
    ],
)
async def test_schema_is_sent_in_the_first_mode_that_the_endpoint_supports(
    openai_stub: OpenAIStub, lacks: set[str], modes: list[str]
) -> None:
    openai_stub.lacks = lacks
    openai_stub.answer = lambda _: GOOD
    model = model_of(openai_stub)
    reply = await ask(model)
    await ask(model)
    assert reply.value == Verdict(**GOOD)
    assert reply.cost == pytest.approx(COST)
    assert [request.mode for request in openai_stub.requests] == [*modes, modes[-1]]


@pytest.mark.parametrize("lacks", [{"json_schema", "tools"}, {"json_schema", "tools", "json_object"}])
async def test_without_schema_and_tools_the_prompt_has_the_schema(openai_stub: OpenAIStub, lacks: set[str]) -> None:
    openai_stub.lacks = lacks
    openai_stub.answer = lambda _: GOOD
    await ask(model_of(openai_stub))
    system = openai_stub.requests[-1].system
    assert system.startswith("You judge.\n\nAnswer with nothing but one JSON object of this JSON schema: {")
    assert '"enum": [0, 1]' in system
    assert openai_stub.requests[-1].user.startswith("Is it so?\n\nAnswer with nothing but one JSON object")


async def test_endpoint_that_ignores_the_schema_is_detected_after_the_first_answer(openai_stub: OpenAIStub) -> None:
    openai_stub.answer = lambda request: GOOD if "JSON schema" in request.user else "Yes, it is so."
    model = model_of(openai_stub)
    for _ in range(3):
        assert (await ask(model)).value == Verdict(**GOOD)
    assert len(openai_stub.requests) == 4


@pytest.mark.parametrize("broken", [["json_schema"], ["json_schema", "tools"], ["json_schema", "tools", "json_object"]])
async def test_next_mode_is_used_after_one_retry_with_a_malformed_answer(
    openai_stub: OpenAIStub, broken: list[str]
) -> None:
    fault = http_error(400, "Failed to generate JSON. Please adjust your prompt.", code="json_validate_failed")
    openai_stub.fault_of = lambda request: fault if request.mode in broken else None
    openai_stub.answer = lambda _: GOOD
    model = model_of(openai_stub, max_retries=3)
    for _ in range(2):
        assert (await ask(model)).value == Verdict(**GOOD)
    retried = [mode for mode in broken for _ in range(2)]
    last = ["json_schema", "tools", "json_object", "text"][len(broken)]
    assert [request.mode for request in openai_stub.requests] == [*retried, last, last]


@pytest.mark.parametrize("message", MESSAGES)
async def test_answer_is_found_anywhere_in_the_message(openai_stub: OpenAIStub, message: dict[str, Any]) -> None:
    openai_stub.chat_faults.append(Fault(change=lambda answer: answer["choices"][0].update(message=message)))
    assert (await ask(model_of(openai_stub))).value == Verdict(**GOOD)
    assert len(openai_stub.requests) == 1


async def test_rejected_temperature_is_omitted_from_then_on(openai_stub: OpenAIStub) -> None:
    openai_stub.lacks = {"temperature", "max_tokens"}
    model = model_of(openai_stub, {"max_tokens": 50})
    await ask(model)
    await ask(model)
    assert ["temperature" in request.body for request in openai_stub.requests] == [True, False, False, False]
    assert openai_stub.requests[-1].body["max_completion_tokens"] == 50
    assert "max_tokens" not in openai_stub.requests[-1].body


# --- malformed answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"reason": "x", "verdict": 2}, "verdict: Input should be 0 or 1"),
        ({"verdict": 1}, "reason: Field required"),
        ("no JSON", "Invalid JSON"),
        ("", "Invalid JSON"),
        ("[1]", "Input should be an object"),
    ],
)
@pytest.mark.parametrize("lacks", [set(), {"json_schema"}])
async def test_malformed_answer_is_retried_with_the_complaint(
    openai_stub: OpenAIStub, broken: Any, complaint: str, lacks: set[str]
) -> None:
    openai_stub.lacks = lacks
    openai_stub.answers.extend([broken, GOOD])
    reply = await ask(model_of(openai_stub))
    assert reply.value == Verdict(**GOOD)
    assert reply.cost == pytest.approx(2 * COST)
    assert [message["role"] for message in openai_stub.requests[-1].body["messages"]][2:] == ["assistant", "user"]
    assert complaint in openai_stub.requests[-1].user


async def test_answer_malformed_twice_is_an_error_with_the_cost(openai_stub: OpenAIStub) -> None:
    openai_stub.answer = lambda _: {"verdict": "maybe"}
    with pytest.raises(
        UnusableAnswerError, match=r"openai:gpt-4o-mini twice returned an answer without the requested form"
    ) as caught:
        await ask(model_of(openai_stub))
    assert len(openai_stub.requests) == 2
    assert caught.value.cost == pytest.approx(2 * COST)


# --- transient failures ----------------------------------------------------------------------------------------------

PASSING: dict[str, Callable[[], Fault]] = {
    "rate limit": rate_limit,
    "rate limit with Retry-After": lambda: rate_limit(retry_after="0"),
    "rate limit with milliseconds": lambda: rate_limit(retry_after_ms="5"),
    "500": server_error,
    "503": lambda: server_error(503),
    "529": lambda: http_error(529, "overloaded"),
    "connection reset": connection_reset,
    "cut body": cut_off,
    "half of the JSON": broken_body,
    "a page of a proxy": lambda: broken_body("<html>Bad gateway</html>"),
    "null": lambda: broken_body("null"),
    "JSON without a bottom": lambda: broken_body("[" * 100_000),
    "an error with the status 200": lambda: Fault(body={"error": {"message": "overloaded", "code": 502}}),
    "a choice without a message": lambda: Fault(body={"choices": [{"finish_reason": "error"}]}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_transient_failure_is_retried(openai_stub: OpenAIStub, fault: Callable[[], Fault]) -> None:
    openai_stub.chat_faults.extend([fault(), fault()])
    reply = await ask(model_of(openai_stub))
    assert reply.value.verdict == 0
    assert len(openai_stub.requests) == 3


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
async def test_persistent_failure_is_an_error(openai_stub: OpenAIStub, fault: Callable[[], Fault]) -> None:
    openai_stub.chat_faults.extend([fault(), fault()])
    with pytest.raises(JudgeError, match=r"openai:gpt-4o-mini could not be asked: .+, after 2 attempts"):
        await ask(model_of(openai_stub, max_retries=1))
    assert len(openai_stub.requests) == 2


async def test_request_that_times_out_is_retried(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults.extend([hanging(), hanging()])
    model = model_of(openai_stub, timeout=0.3, max_retries=1)
    with pytest.raises(JudgeError, match=r"TimeoutError: no answer within 0.3 s, after 2 attempts"):
        await ask(model)
    await ask(model_of(openai_stub))


@pytest.mark.full
@pytest.mark.parametrize("is_date", [False, True])
async def test_retry_after_delays_all_requests(openai_stub: OpenAIStub, is_date: bool) -> None:
    named = email.utils.formatdate(time.time() + 2, usegmt=True) if is_date else "1"
    openai_stub.chat_faults.append(rate_limit(retry_after=named))
    model = model_of(openai_stub, pool=CallPool(1))
    start = time.monotonic()
    await asyncio.gather(*(ask(model) for _ in range(3)))
    assert time.monotonic() - start >= 0.9
    assert len(openai_stub.requests) == 4  # requests that waited for the slot did not hit the rate limit too


@pytest.mark.full
async def test_waiting_request_does_not_hold_a_slot(openai_stub: OpenAIStub) -> None:
    pool = CallPool(1)
    openai_stub.chat_faults.append(rate_limit(retry_after="1"))
    slow = asyncio.create_task(ask(model_of(openai_stub, pool=pool)))
    while not openai_stub.requests:  # noqa: ASYNC110  # the stub runs in another thread
        await asyncio.sleep(0.005)
    await ask(model_of(openai_stub, pool=pool))
    assert not slow.done()
    await slow


async def test_empty_choices_are_retried_and_charged(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults.append(empty_choices())
    reply = await ask(model_of(openai_stub))
    assert reply.cost == pytest.approx(2 * COST)


async def test_concurrency_is_limited_across_all_models_of_a_pool(openai_stub: OpenAIStub) -> None:
    openai_stub.latency_sec = 0.02
    pool = CallPool(4)
    models = [model_of(openai_stub, pool=pool) for _ in range(3)]
    await asyncio.gather(*(ask(model) for model in models for _ in range(8)))
    assert openai_stub.most_in_flight == 4


# --- permanent failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (refusal("I will not."), "openai:gpt-4o-mini refused to answer: I will not."),
        (finish_reason("content_filter"), "was stopped by the provider's content filter"),
        (finish_reason("length"), "did not come to the end of its answer .* Set a higher max_tokens"),
    ],
)
async def test_refusals_filters_and_length_are_errors_without_a_retry(
    openai_stub: OpenAIStub, fault: Fault, text: str
) -> None:
    openai_stub.chat_faults.append(fault)
    with pytest.raises(UnusableAnswerError, match=text) as caught:
        await ask(model_of(openai_stub, {"max_tokens": 50}))
    assert len(openai_stub.requests) == 1
    assert caught.value.cost == pytest.approx(COST)


async def test_answer_truncated_at_our_limit_is_retried_with_a_higher_one(
    openai_stub: OpenAIStub,
) -> None:
    openai_stub.chat_faults.append(finish_reason("length"))
    model = model_of(openai_stub)
    assert (await ask(model)).cost == pytest.approx(2 * COST)
    await ask(model)
    assert [request.body["max_tokens"] for request in openai_stub.requests] == [4096, 16_384, 16_384]


async def test_endless_answer_is_charged_at_most_twice(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults += [finish_reason("length")] * 5
    with pytest.raises(UnusableAnswerError, match="Set a higher max_tokens") as caught:
        await ask(model_of(openai_stub))
    assert len(openai_stub.requests) == 2
    assert caught.value.cost == pytest.approx(2 * COST)


async def test_our_limit_leaves_room_for_the_prompt_in_a_small_context(openai_stub: OpenAIStub) -> None:
    message = (
        "maximum context length is 4096 tokens, but 4500 are asked for (404 in the messages, 4096 in the completion)"
    )
    openai_stub.chat_faults.append(http_error(400, message, code="context_length_exceeded"))
    model = model_of(openai_stub)
    await ask(model)
    await ask(model)
    assert [request.body["max_tokens"] for request in openai_stub.requests] == [4096, 2048, 2048]


@pytest.mark.parametrize("name", ["o3-mini", "gpt-5-mini", "deepseek/deepseek-r1", "kimi-thinking"])
async def test_reasoning_models_get_a_higher_limit(openai_stub: OpenAIStub, name: str) -> None:
    await ask(model_of(openai_stub, {"model": name}))
    assert openai_stub.requests[0].body["max_tokens"] == 16_384


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (used_up_quota(), "You exceeded your current quota"),
        (http_error(400, "context too long", code="context_length_exceeded"), "context too long"),
        (http_error(400, "filtered", code="content_filter"), r"content filter \(content_filter\)"),
        (http_error(404, "no such model"), "no such model.*Check the name of the model"),
        (http_error(401, "Incorrect API key"), "Incorrect API key.*Check the API key"),
    ],
)
async def test_invalid_request_is_an_error_at_once(openai_stub: OpenAIStub, fault: Fault, text: str) -> None:
    openai_stub.chat_faults.append(fault)
    with pytest.raises(UnusableAnswerError, match=text) as caught:
        await ask(model_of(openai_stub))
    assert len(openai_stub.requests) == 1
    assert caught.value.cost == 0.0


async def test_errors_contain_no_secrets(openai_stub: OpenAIStub) -> None:
    secret = "sk-proj-4fK29dLm3Qp8Rt5Vw7Xy1Zab"
    openai_stub.chat_faults.extend([http_error(401, f"Incorrect API key provided: {secret}"), refusal(secret)])
    for _ in range(2):
        with pytest.raises(JudgeError) as caught:
            await ask(model_of(openai_stub, {"api_key": secret}))
        assert secret not in str(caught.value)


def test_missing_key_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ConfigError, match=r"the API key is missing for openai:gpt-4o-mini\. Set the environment variable"
    ):
        OpenAIJudgeModel(GenerationConfig())


@pytest.mark.parametrize(
    ("provider", "sent"), [("openai", "of-openai"), ("my-proxy", "of-my-proxy"), ("deepseek", "none")]
)
async def test_key_from_the_environment_is_sent_to_its_provider_only(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, provider: str, sent: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("MY_PROXY_API_KEY", "of-my-proxy")
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    await ask(model_of(openai_stub, {"provider": provider, "api_key": None}))
    assert openai_stub.requests[0].headers["authorization"] == f"Bearer {sent}"


async def test_litellm_options_are_translated_or_omitted(openai_stub: OpenAIStub) -> None:
    options = {"timeout": 5, "num_retries": 1, "max_retries": 2, "drop_params": True, "api_version": "1"}
    await ask(model_of(openai_stub, {"base_url": None, "api_base": openai_stub.base_url, **options}))
    assert set(openai_stub.requests[0].body) == {"model", "messages", "response_format", "temperature", "max_tokens"}


async def test_too_long_context_does_not_change_the_mode(openai_stub: OpenAIStub) -> None:
    text = "Maximum context length is 9 tokens, with 5 in the functions and response_format, and temperature"
    openai_stub.chat_faults.append(http_error(400, text, code="context_length_exceeded"))
    model = model_of(openai_stub)
    with pytest.raises(JudgeError):
        await ask(model)
    await ask(model)
    assert [request.mode for request in openai_stub.requests] == ["json_schema", "json_schema"]


# --- cost ------------------------------------------------------------------------------------------------------------


async def test_unknown_model_has_no_cost(openai_stub: OpenAIStub) -> None:
    reply = await ask(model_of(openai_stub, {"model": "our-own-model"}))
    assert reply.cost is None
    assert reply.usages[0]["input_tokens"] == 1000


async def test_configured_price_of_the_answering_model_takes_precedence() -> None:
    pricing = Pricing({"our-model": PriceConfig(input=1.0, output=0.0)})
    usage = {"model": "our-model", "input_tokens": 1_000_000, "output_tokens": 0}
    for reply in ("gpt-4o-mini", "no-such-model"):
        assert usages_cost([usage], pricing, model=reply, provider="openai") == pytest.approx(1.0)
    assert usages_cost([{**usage, "model": "gpt-4o-mini"}], pricing, model="alias", provider="openai")
    assert not pricing.unpriced
    assert usages_cost([{**usage, "model": "other"}], pricing, model="alias", provider="openai") is None
    assert "alias" in pricing.unpriced


async def test_request_without_usage_has_no_cost(openai_stub: OpenAIStub) -> None:
    openai_stub.chat_faults.append(missing_usage())
    openai_stub.answers.extend(["broken", GOOD])
    reply = await ask(model_of(openai_stub))
    assert reply.cost is None
    assert [usage.get("input_tokens") for usage in reply.usages] == [None, 1000]


# --- cache -----------------------------------------------------------------------------------------------------------


async def test_answers_are_cached(openai_stub: OpenAIStub) -> None:
    cache = MemoryCache()
    openai_stub.answers.extend(["broken", GOOD])
    first = await ask(model_of(openai_stub, cache=cache))
    repeated = await ask(model_of(openai_stub, cache=cache))
    assert len(openai_stub.requests) == 2
    assert repeated.is_cached
    assert (repeated.value, repeated.usages) == (first.value, first.usages)
    assert repeated.cost == pytest.approx(2 * COST)


@pytest.mark.parametrize(
    "other",
    [{"model": "gpt-4o"}, {"temperature": 0.5}, {"seed": 1}, {"max_tokens": 5}],
    ids=lambda other: next(iter(other)),
)
async def test_cache_key_includes_model_and_parameters(openai_stub: OpenAIStub, other: dict[str, Any]) -> None:
    cache = MemoryCache()
    await ask(model_of(openai_stub, cache=cache))
    assert not (await ask(model_of(openai_stub, other, cache=cache))).is_cached


async def test_cache_key_includes_prompt_and_schema(openai_stub: OpenAIStub) -> None:
    class Other(BaseModel):
        verdict: Literal[0, 1]

    model = model_of(openai_stub, cache=MemoryCache())
    await ask(model)
    assert not (await model.aask("You judge well.", "Is it so?", Verdict)).is_cached
    assert not (await model.aask("You judge.", "Is it so? ", Verdict)).is_cached
    assert not (await model.aask("You judge.", "Is it so?", Other)).is_cached


async def test_failures_are_not_cached(openai_stub: OpenAIStub) -> None:
    cache = MemoryCache()
    openai_stub.chat_faults.extend([refusal()])
    with pytest.raises(JudgeError):
        await ask(model_of(openai_stub, cache=cache))
    assert list(cache.values()) == [{"cost": pytest.approx(COST)}]  # counts towards the budget of a later session
    assert not (await ask(model_of(openai_stub, cache=cache))).is_cached


@pytest.mark.parametrize("record", [{}, {"answer": "{}", "usages": []}, {"answer": None, "usages": []}])
async def test_invalid_cache_record_is_requested_again(openai_stub: OpenAIStub, record: dict[str, Any]) -> None:
    cache = MemoryCache()
    await ask(model_of(openai_stub, cache=cache))
    cache.update(dict.fromkeys(cache, record))
    assert not (await ask(model_of(openai_stub, cache=cache))).is_cached


async def test_concurrent_equal_requests_are_sent_once(openai_stub: OpenAIStub) -> None:
    openai_stub.latency_sec = 0.05
    model = model_of(openai_stub, cache=MemoryCache())
    answers = [*await asyncio.gather(*(ask(model) for _ in range(3))), await ask(model)]
    assert len(openai_stub.requests) == 1
    assert [reply.is_cached for reply in answers] == [False, True, True, True]
    assert [reply.cost for reply in answers] == [pytest.approx(COST), 0.0, 0.0, 0.0]


async def test_equal_request_is_sent_if_the_first_one_fails_or_is_cancelled(openai_stub: OpenAIStub) -> None:
    openai_stub.latency_sec = 0.1
    openai_stub.chat_faults.append(refusal())
    model = model_of(openai_stub, cache=MemoryCache())
    failed, good = await asyncio.gather(ask(model), ask(model), return_exceptions=True)
    assert isinstance(failed, UnusableAnswerError)
    assert isinstance(good, Asked)
    first, second = (asyncio.create_task(model.aask("You judge.", "Or not?", Verdict)) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await second).cost == pytest.approx(COST)


async def test_costs_of_an_earlier_session_count_once(openai_stub: OpenAIStub) -> None:
    cache = MemoryCache()
    await ask(model_of(openai_stub, cache=cache))
    model = model_of(openai_stub, cache=cache)
    assert [(await ask(model)).cost for _ in range(3)] == [pytest.approx(COST), 0.0, 0.0]


async def test_unwritable_cache_does_not_lose_the_answer(
    openai_stub: OpenAIStub, caplog: pytest.LogCaptureFixture
) -> None:
    class FullCache(dict[str, Any]):
        tried = 0

        def put(self, digest: str, record: Any) -> None:
            self.tried += 1
            raise RunFolderError("the disk is full")

    cache = FullCache()
    model = model_of(openai_stub, cache=cache)
    with caplog.at_level(logging.WARNING):
        answers = [await ask(model), await ask(model)]
    assert [reply.cost for reply in answers] == [pytest.approx(COST)] * 2
    assert cache.tried == len(caplog.records) == 1
    assert "the disk is full" in caplog.text


async def test_cache_key_ignores_the_api_key_but_includes_the_url(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = MemoryCache()
    await ask(model_of(openai_stub, cache=cache))
    asker = {"organization": "o", "project": "p", "default_headers": {"x": "1"}, "extra_headers": {"y": "2"}}
    assert (await ask(model_of(openai_stub, asker, cache=cache))).is_cached
    monkeypatch.setenv("OPENAI_BASE_URL", openai_stub.base_url)
    assert (await ask(model_of(openai_stub, {"base_url": None}, cache=cache))).is_cached
    monkeypatch.setenv("OPENAI_BASE_URL", openai_stub.base_url + "/")
    assert not (await ask(model_of(openai_stub, {"base_url": None}, cache=cache))).is_cached


# --- event loops -----------------------------------------------------------------------------------------------------
