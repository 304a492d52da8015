"""Chat models and embedding models of judges behind OpenAI-compatible endpoints."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.event_loop.bounded_http import RefusedResponseError, bounded_http
from graphrag_eval_lc.judges.answer_forms import content_text
from graphrag_eval_lc.judges.chat_model import ChatJudgeModel, check_finish_reason, refused
from graphrag_eval_lc.judges.embedding_model import CachedEmbeddingModel, Vectors, check_vectors, unpacked
from graphrag_eval_lc.judges.endpoint import EndpointAbilities, Mode
from graphrag_eval_lc.judges.model import AskingOptions, usage_in
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, Usage
from graphrag_eval_lc.judges.model_settings import (
    CLIENT_OPTIONS,
    ModelSettings,
    answer_settings,
    effective_api_key,
    effective_base_url,
    extra_settings,
    model_name_of,
    request_settings,
)
from graphrag_eval_lc.masking import masked_text


class OpenAIJudgeModel(ChatJudgeModel):
    """A chat model behind an OpenAI-compatible endpoint.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(self, generation: GenerationConfig, **options: Unpack[AskingOptions]) -> None:
        bounds = {"temperature": generation.temperature, "max_tokens": generation.max_tokens}
        super().__init__(
            model_name_of(generation),
            generation.model,
            generation.provider,
            {**answer_settings(generation), **bounds},
            temperature=generation.temperature,
            max_tokens=generation.max_tokens,
            abilities=EndpointAbilities(),
            **options,
        )
        self._endpoint = Endpoint(generation)

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._endpoint.aclose()

    def _request(self, *args: Any) -> dict[str, Any]:
        return {**super()._request(*args), **self._endpoint.added_to_body}

    async def _answered(
        self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]
    ) -> list[str]:
        completion = await self._endpoint.post("/chat/completions", request)
        if completion.get("choices") or completion.get("usage"):
            paid.append(usage_in(completion))
        choices = completion.get("choices")
        if not isinstance(choices, list) or not choices:
            raise BrokenAnswerError("the endpoint answered without choices")
        return [_answer_text(choice, self.name) for choice in choices]


class OpenAIEmbeddingModel(CachedEmbeddingModel):
    """An embedding model behind an OpenAI-compatible endpoint; vectors come as base64 if the endpoint can.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(self, embedding: EmbeddingConfig, **options: Unpack[AskingOptions]) -> None:
        settings = answer_settings(embedding)
        super().__init__(model_name_of(embedding), embedding.model, embedding.provider, settings, **options)
        self._endpoint = Endpoint(embedding)
        self._encoding: Literal["base64", "float"] = "base64"

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._endpoint.aclose()

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        request = {"model": self._model, "input": texts, **self._endpoint.added_to_body}
        try:
            encoded = {**request, "encoding_format": self._encoding}
            return await self._sent(encoded, partial(self._answered, encoded), paid)
        except APIStatusError as refusal:
            is_of_encoding = refusal.status_code in {400, 422} and "encoding" in words_of(refusal)
            if self._encoding == "float" or not is_of_encoding:
                raise
        self._encoding = "float"
        encoded = {**request, "encoding_format": "float"}
        return await self._sent(encoded, partial(self._answered, encoded), paid)

    async def _answered(self, request: dict[str, Any], paid: list[Usage]) -> Vectors:
        body = await self._endpoint.post("/embeddings", request)
        if body.get("data") or body.get("usage"):
            paid.append(replace(usage_in(body), output_tokens=0))
        vectors = _vectors_in(body)
        check_vectors(vectors, len(request["input"]))
        return vectors


def _vectors_in(body: Mapping[str, Any]) -> Vectors:
    """Return the vectors of a response in the order of their indices."""
    try:
        entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
        return tuple(_vector(entry["embedding"]) for _, entry in entries)
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint gave embeddings that cannot be read: {problem}") from None


def _vector(embedding: Any) -> tuple[float, ...]:
    return unpacked(embedding, "f") if isinstance(embedding, str) else tuple(float(number) for number in embedding)


def _answer_text(choice: Any, name: str) -> str:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BrokenAnswerError("the endpoint answered with a choice without a message")
    if message.get("refusal"):
        raise refused(name, str(message["refusal"]))
    if choice.get("error"):
        raise _error_with_200(choice["error"])
    check_finish_reason(name, choice.get("finish_reason"))
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return _arguments_text(calls[0])
    texts = (content_text(message.get(key)) for key in ("content", "reasoning_content", "reasoning"))
    return next((text for text in texts if text.strip()), "")


def _arguments_text(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


_SHOWN_CHARACTERS = 200


class Endpoint:
    """An OpenAI-compatible endpoint: sends requests through a client of the running event loop.

    Retries and timeouts are the model's.

    Args:
        settings: The model, whose further keys are added to each request.

    Attributes:
        added_to_body: The keys that the config adds to the body of each request.

    Raises:
        ConfigError: There is no key for OpenAI's own endpoint.
    """

    def __init__(self, settings: ModelSettings) -> None:
        added = request_settings(settings)
        self.added_to_body: dict[str, Any] = added["extra_body"]
        self._headers, self._query = added["extra_headers"], added["extra_query"]
        self._client_options = {
            "api_key": effective_api_key(settings),
            "base_url": effective_base_url(settings),
            "max_retries": 0,
            "timeout": None,
            **{name: value for name, value in extra_settings(settings).items() if name in CLIENT_OPTIONS},
        }
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: AsyncGenerator[AsyncOpenAI, None] | None = None
        self._client: AsyncOpenAI | None = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request once, and return the JSON object of the response.

        Raises:
            BrokenAnswerError: The response is not a JSON object, or has an error despite the status 200.
            RefusedResponseError: The server redirects to another host, or its response is too large.
            openai.OpenAIError: From the client.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or loop is not self._loop:
            self._life, self._loop = self._living(), loop
            self._client = await anext(self._life)
        # Not the client's method for the path, which accepts broken answers and walks through every schema.
        try:
            text = await self._client.post(
                path, cast_to=str, body=body, options={"headers": self._headers, "params": self._query}
            )
        except APIConnectionError as problem:
            if isinstance(problem.__cause__, RefusedResponseError):  # which the client wraps before its version 3
                raise problem.__cause__ from None
            raise
        return _json_object(text)

    async def aclose(self) -> None:
        """Close the connections now; the next request makes others."""
        life, self._life, self._client = self._life, None, None
        if life is not None and self._loop is asyncio.get_running_loop():
            await life.aclose()

    async def _living(self) -> AsyncGenerator[AsyncOpenAI, None]:
        """Yield the client of a loop, and close it when the loop closes, as it ends its generators first."""
        http_client = DefaultAsyncHttpxClient(event_hooks=bounded_http())
        async with AsyncOpenAI(http_client=http_client, **self._client_options) as client:
            yield client


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise BrokenAnswerError(f"the endpoint answered with no JSON object: {masked_text(text)[:_SHOWN_CHARACTERS]!r}")
    if body.get("error"):
        raise _error_with_200(body["error"])
    return body


def _error_with_200(error: Any) -> BrokenAnswerError:
    """Return the exception for an error in a response with the status 200, which may name the status it stands for."""
    code = str(error.get("code") if isinstance(error, Mapping) else "")
    # Without a status it is the server's failure, which a retry or another way to request the form may end.
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else 500
    shown = masked_text(json.dumps(error, ensure_ascii=False))[:_SHOWN_CHARACTERS]
    return BrokenAnswerError(
        f"the endpoint answered with an error and the status 200: {shown}", status_code=status, body=error
    )
