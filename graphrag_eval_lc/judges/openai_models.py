"""Models behind OpenAI-compatible endpoints: reads their settings from the config, and sends their requests."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from importlib import import_module
from typing import Any, Unpack

from pydantic import BaseModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError, MissingExtraError
from graphrag_eval_lc.event_loop.http_connections import RefusedResponseError, bounded_http
from graphrag_eval_lc.judges.answer_forms import message_text
from graphrag_eval_lc.judges.chat_model import (
    ChatJudgeModel,
    EmbeddingJudgeModel,
    EndpointAbilities,
    Mode,
    check_finish_reason,
    refused,
)
from graphrag_eval_lc.judges.model import AskingOptions, ModelDescription, usage_in
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, Usage
from graphrag_eval_lc.masking import masked_text, remember_secret
from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS

# --- what the config says of a model ---

ModelSettings = GenerationConfig | EmbeddingConfig
"""A model of the config."""

# LiteLLM's options, which are not sent to any model.
LITELLM_OPTIONS = frozenset({"api_base", "drop_params", "num_retries"})
_CLIENT_OPTIONS = frozenset({"organization", "project", "default_headers", "default_query"})
# Options of other clients, which endpoints refuse in a request.
_UNSENT_OPTIONS = LITELLM_OPTIONS | {"api_version", "max_retries", "timeout"}
# Options that identify the client and do not change the answer.
_ASKER_OPTIONS = frozenset({"organization", "project", "default_headers", "extra_headers"})
_NOT_IN_THE_BODY = _CLIENT_OPTIONS | _UNSENT_OPTIONS | {"extra_headers", "extra_query", "extra_body"}
# Providers whose endpoints are not OpenAI-compatible, whatever their address.
_OWN_LANGUAGE = ("anthropic", "azure", "bedrock", "cohere", "gemini", "google", "vertex_ai")


def extra_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings of a model other than the known keys."""
    return settings.model_extra or {}


def given_api_key(settings: ModelSettings) -> str | None:
    """Return the key in the config."""
    return settings.api_key.get_secret_value() if settings.api_key is not None else None


def given_base_url(settings: ModelSettings) -> str | None:
    """Return the address in the config: ``base_url``, else ``api_base`` (LiteLLM's name)."""
    return settings.base_url or extra_settings(settings).get("api_base") or None


def is_openai_compatible(settings: ModelSettings) -> bool:
    """Return whether a model of the config is asked through OpenAI's client."""
    base_url = given_base_url(settings)
    if settings.provider == "openai" or base_url is None:
        return settings.provider == "openai"
    if settings.provider == "ollama":  # which has both APIs
        return base_url.rstrip("/").endswith("/v1")
    return not settings.provider.startswith(_OWN_LANGUAGE)


def _effective_base_url(settings: ModelSettings) -> str | None:
    """Return the address; None is OpenAI's. ``OPENAI_BASE_URL`` is only used for the provider openai."""
    of_environment = os.environ.get("OPENAI_BASE_URL") if settings.provider == "openai" else None
    return given_base_url(settings) or of_environment or None


def _effective_api_key(settings: ModelSettings) -> str:
    """Return the key for an endpoint; ``none`` if it needs no key, as OpenAI's client requires a value."""
    name = f"{settings.provider.upper().replace('-', '_')}_API_KEY"  # a key is sent to its provider only
    key = given_api_key(settings) or os.environ.get(name)
    if not key and _effective_base_url(settings) is None:
        raise ConfigError(
            f"the API key is missing for {settings.provider}:{settings.model}",
            hint=f"Set the environment variable {name}, or api_key in the config.",
        )
    remember_secret(key)
    return key or "none"


def _description_of(settings: ModelSettings, **bounds: float | None) -> ModelDescription:
    """Return the description of a model for the cache, with the settings on which its answers depend."""
    left_out = _ASKER_OPTIONS | _UNSENT_OPTIONS
    extra = {name: value for name, value in extra_settings(settings).items() if name not in left_out}
    answers = {**extra, "base_url": _effective_base_url(settings), **bounds}
    return ModelDescription(f"{settings.provider}:{settings.model}", settings.model, settings.provider, answers)


# --- requests ---

_SHOWN_CHARACTERS = 200


class Endpoint:
    """An OpenAI-compatible endpoint: sends requests through a client of the running event loop.

    The model does retries and timeouts. ``added_to_body`` has the keys that the config adds to each request.

    Raises:
        ConfigError: The key for OpenAI's own endpoint is missing.
        MissingExtraError: openai is not installed.
    """

    def __init__(self, settings: ModelSettings) -> None:
        try:
            self._openai = import_module("openai")
        except ModuleNotFoundError as problem:
            if problem.name != "openai":
                raise
            raise MissingExtraError("Asking a model", "judges", "openai") from None
        extra = extra_settings(settings)
        own = {name: value for name, value in extra.items() if name not in _NOT_IN_THE_BODY}
        self.added_to_body: dict[str, Any] = {**own, **extra.get("extra_body", {})}
        self._options = {"headers": extra.get("extra_headers", {}), "params": extra.get("extra_query", {})}
        self._client_options = {
            "api_key": _effective_api_key(settings),
            "base_url": _effective_base_url(settings),
            "max_retries": 0,
            "timeout": None,
            **{name: value for name, value in extra.items() if name in _CLIENT_OPTIONS},
        }
        # Created here, because reading all certificates would block the event loop of the first request.
        self._next_http: Any = self._new_http()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: AsyncGenerator[Any, None] | None = None
        self._client: Any = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request once, and return the JSON object of the response.

        Raises:
            BrokenAnswerError: The response is not a JSON object, or contains an error despite the status 200.
            RefusedResponseError: The server redirects to another host, or its response is too large.
            openai.OpenAIError: From the client.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or loop is not self._loop:
            self._life, self._loop = self._living(), loop
            self._client = await anext(self._life)
        body = {**body, **self.added_to_body}
        # Not the client's method for this path, which accepts broken answers and validates every schema.
        try:
            text = await self._client.post(path, cast_to=str, body=body, options=self._options)
        except self._openai.APIConnectionError as problem:
            if isinstance(problem.__cause__, RefusedResponseError):  # which the client wraps before its version 3
                raise problem.__cause__ from None
            raise
        return _json_object(text)

    def _new_http(self) -> Any:
        return self._openai.DefaultAsyncHttpxClient(event_hooks=bounded_http())

    async def aclose(self) -> None:
        """Close the connections now; the next request opens new ones."""
        life, self._life, self._client = self._life, None, None
        if life is not None and self._loop is asyncio.get_running_loop():
            await life.aclose()

    async def _living(self) -> AsyncGenerator[Any, None]:
        """Yield the client of a loop and close it with the loop, which finishes its generators before it closes."""
        http_client, self._next_http = self._next_http or self._new_http(), None
        async with self._openai.AsyncOpenAI(http_client=http_client, **self._client_options) as client:
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
    """Return the exception for an error in a response with the status 200; the error may name the actual status."""
    code = str(error.get("code") if isinstance(error, Mapping) else "")
    # Without a status, treat it as a server failure: a retry or another mode may help.
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else 500
    shown = masked_text(json.dumps(error, ensure_ascii=False))[:_SHOWN_CHARACTERS]
    return BrokenAnswerError(
        f"the endpoint answered with an error and the status 200: {shown}", status_code=status, body=error
    )


class OpenAIJudgeModel(ChatJudgeModel):
    """A chat model behind an OpenAI-compatible endpoint; raises a ConfigError without its API key."""

    def __init__(self, generation: GenerationConfig, **options: Unpack[AskingOptions]) -> None:
        bounds: dict[str, Any] = {"temperature": generation.temperature, "max_tokens": generation.max_tokens}
        super().__init__(_description_of(generation, **bounds), abilities=EndpointAbilities(), **bounds, **options)
        self._endpoint = Endpoint(generation)
        self.aclose = self._endpoint.aclose

    def _request(self, *args: Any) -> dict[str, Any]:
        return {**super()._request(*args), **self._endpoint.added_to_body}

    async def _answered(self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]) -> str:
        completion = await self._endpoint.post("/chat/completions", request)
        choices = completion.get("choices")
        if choices or completion.get("usage"):
            paid.append(usage_in(completion))
        if not isinstance(choices, list) or not choices:
            raise BrokenAnswerError("the endpoint answered without choices")
        message = choices[0].get("message") if isinstance(choices[0], dict) else None
        if not isinstance(message, dict):
            raise BrokenAnswerError("the endpoint answered with a choice without a message")
        if message.get("refusal"):
            raise refused(self.name, message["refusal"])
        if choices[0].get("error"):
            raise _error_with_200(choices[0]["error"])
        check_finish_reason(self.name, choices[0].get("finish_reason"))
        return message_text(message, form)


class OpenAIEmbeddingModel(EmbeddingJudgeModel):
    """An embedding model behind an OpenAI-compatible endpoint; raises a ConfigError without its API key."""

    def __init__(self, embedding: EmbeddingConfig, **options: Unpack[AskingOptions]) -> None:
        super().__init__(_description_of(embedding), **options)
        self._endpoint = Endpoint(embedding)
        self.aclose = self._endpoint.aclose

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Sequence[Sequence[float]]:
        request = {"model": self.described.model, "input": texts, "encoding_format": "float"}
        body = await self._endpoint.post("/embeddings", request)
        if body.get("data") or body.get("usage"):
            paid.append({**usage_in(body), OUTPUT_TOKENS: 0})
        try:
            entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
            return [entry["embedding"] for _, entry in entries]
        except (AttributeError, LookupError, TypeError) as problem:
            raise BrokenAnswerError(f"the endpoint returned embeddings that cannot be read: {problem}") from None
