"""The client of an OpenAI-compatible endpoint, as a section of the config describes it."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from openai import AsyncOpenAI

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.judges.endpoint_address import effective_base_url
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError
from graphrag_eval_lc.judges.loop_bound import LoopBound
from graphrag_eval_lc.masking import masked_text, remember_secret

_CLIENT_OPTIONS = frozenset({"organization", "project", "default_headers", "default_query"})
_REQUEST_OPTIONS = frozenset({"extra_headers", "extra_query", "extra_body"})
# LiteLLM's names of what is settled elsewhere here; endpoints refuse them in a request.
_LITELLM_OPTIONS = frozenset({"api_base", "api_version", "drop_params", "max_retries", "num_retries", "timeout"})
# Who asks, which does not change the answer.
_ASKER_OPTIONS = frozenset({"organization", "project", "default_headers", "extra_headers"})
_NOT_IN_THE_BODY = _CLIENT_OPTIONS | _REQUEST_OPTIONS | _LITELLM_OPTIONS
_SHOWN_CHARACTERS = 200


class ModelSettings(Protocol):
    """A model of the config: ``GenerationConfig`` or ``EmbeddingConfig``."""

    @property
    def provider(self) -> str: ...  # noqa: D102

    @property
    def model(self) -> str: ...  # noqa: D102

    @property
    def base_url(self) -> str | None: ...  # noqa: D102

    @property
    def api_key(self) -> Any: ...  # noqa: D102

    @property
    def model_extra(self) -> dict[str, Any] | None: ...  # noqa: D102


def model_name_of(settings: ModelSettings) -> str:
    """Give what a model is called in messages and in the cache, such as ``openai:gpt-4o-mini``."""
    return f"{settings.provider}:{settings.model}"


def secret_text(secret: Any) -> str | None:
    """Give a secret as text, whether it is kept in pydantic's SecretStr or as it is."""
    text: str | None = secret.get_secret_value() if hasattr(secret, "get_secret_value") else secret
    return text


def openai_client(settings: ModelSettings, kind: Callable[..., AsyncOpenAI] = AsyncOpenAI) -> LoopBound[AsyncOpenAI]:
    """Give the client for a model's endpoint; retries and timeouts are not its business.

    Args:
        settings: The model of the config.
        kind: Makes a client.

    Raises:
        ConfigError: OpenAI's own endpoint is asked, and there is no key.
    """
    base_url = effective_base_url(settings)
    key_name = f"{settings.provider.upper().replace('-', '_')}_API_KEY"  # a key goes to nobody but its provider
    key = secret_text(settings.api_key) or os.environ.get(key_name)
    if not key and base_url is None:
        raise ConfigError(
            f"there is no API key for {model_name_of(settings)}",
            mend=f"Set the environment variable {key_name}, or api_key in the config.",
        )
    remember_secret(key)
    options = {name: value for name, value in _extra(settings).items() if name in _CLIENT_OPTIONS}
    return LoopBound(
        # An endpoint of one's own may want no key, but the client does.
        lambda: kind(api_key=key or "none", base_url=base_url, max_retries=0, timeout=None, **options),
        lambda client: client.close(),
    )


async def posted(client: AsyncOpenAI, path: str, body: Mapping[str, Any], settings: ModelSettings) -> Mapping[str, Any]:
    """Send a request and give the JSON object of its answer.

    What the config says beside the known keys goes into the body, but for ``extra_headers`` and ``extra_query``.

    Args:
        client: The client of the endpoint.
        path: Such as ``/chat/completions``.
        body: The request.
        settings: The model of the config.

    Raises:
        BrokenAnswerError: The answer is no JSON object, or one that tells of an error in spite of the status 200.
        openai.OpenAIError: What the client raises.
    """
    sent = request_settings(settings)
    # Not the client's methods for each endpoint: those take broken answers for good, and walk through every schema.
    text = await client.post(
        path,
        cast_to=str,
        body={**body, **sent["extra_body"]},
        options={"headers": sent["extra_headers"], "params": sent["extra_query"]},
    )
    return _json_object(text)


def request_settings(settings: ModelSettings) -> dict[str, Any]:
    """Give what the config adds to each request: ``extra_body``, ``extra_headers`` and ``extra_query``."""
    extra = _extra(settings)
    own = {name: value for name, value in extra.items() if name not in _NOT_IN_THE_BODY}
    return {
        "extra_body": {**own, **extra.get("extra_body", {})},
        "extra_headers": extra.get("extra_headers", {}),
        "extra_query": extra.get("extra_query", {}),
    }


def answer_settings(settings: ModelSettings) -> dict[str, Any]:
    """Give what determines a model's answers beside its name and what it is asked."""
    left_out = _ASKER_OPTIONS | _LITELLM_OPTIONS
    extra = {name: value for name, value in _extra(settings).items() if name not in left_out}
    return {**extra, "base_url": effective_base_url(settings)}


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict) or body.get("error"):
        what = "an error with the status 200" if isinstance(body, dict) else "no JSON object"
        raise BrokenAnswerError(f"the endpoint answered with {what}: {masked_text(text)[:_SHOWN_CHARACTERS]!r}")
    return body


def _extra(settings: ModelSettings) -> dict[str, Any]:
    return settings.model_extra or {}
