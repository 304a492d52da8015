"""What the config says of a model: its name, key and address, and what is added to its requests."""

import os
from typing import Any

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.masking import remember_secret

ModelSettings = GenerationConfig | EmbeddingConfig
"""A model of the config."""

# LiteLLM's names of options that no model takes.
LITELLM_OPTIONS = frozenset({"api_base", "drop_params", "num_retries"})
CLIENT_OPTIONS = frozenset({"organization", "project", "default_headers", "default_query"})
_REQUEST_OPTIONS = frozenset({"extra_headers", "extra_query", "extra_body"})
# Options of other clients, which endpoints refuse in a request.
_UNSENT_OPTIONS = LITELLM_OPTIONS | {"api_version", "max_retries", "timeout"}
# Options that say who asks, which does not change the answer.
_ASKER_OPTIONS = frozenset({"organization", "project", "default_headers", "extra_headers"})
_NOT_IN_THE_BODY = CLIENT_OPTIONS | _REQUEST_OPTIONS | _UNSENT_OPTIONS
# Providers whose endpoints are not OpenAI-compatible, whatever their address.
_OWN_LANGUAGE = ("anthropic", "azure", "bedrock", "cohere", "gemini", "google", "vertex_ai")


def named_settings(name: str) -> dict[str, str]:
    """Return provider and model of a name such as ``openai:gpt-4o-mini``, by the config's keys."""
    provider, sign, model = name.partition(":")
    return {"provider": provider, "model": model} if sign else {"model": name}


def model_name_of(settings: ModelSettings) -> str:
    """Return the name of a model in messages and in the cache, such as ``openai:gpt-4o-mini``."""
    return f"{settings.provider}:{settings.model}"


def extra_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return what the config says of a model next to the known keys."""
    return settings.model_extra or {}


def given_api_key(settings: ModelSettings) -> str | None:
    """Return the key that the config gives."""
    return settings.api_key.get_secret_value() if settings.api_key is not None else None


def given_base_url(settings: ModelSettings) -> str | None:
    """Return the address that the config gives: ``base_url``, else ``api_base``, LiteLLM's name of it."""
    return settings.base_url or extra_settings(settings).get("api_base") or None


def effective_base_url(settings: ModelSettings) -> str | None:
    """Return the address to ask; None is OpenAI's own. ``OPENAI_BASE_URL`` is read for the provider openai alone."""
    of_environment = os.environ.get("OPENAI_BASE_URL") if settings.provider == "openai" else None
    return given_base_url(settings) or of_environment or None


def effective_api_key(settings: ModelSettings) -> str:
    """Return the key for an endpoint; ``none`` if the endpoint needs none, as OpenAI's client wants one.

    Raises:
        ConfigError: There is no key for OpenAI's own endpoint.
    """
    name = f"{settings.provider.upper().replace('-', '_')}_API_KEY"  # a key goes to nobody but its provider
    key = given_api_key(settings) or os.environ.get(name)
    if not key and effective_base_url(settings) is None:
        raise ConfigError(
            f"there is no API key for {model_name_of(settings)}",
            hint=f"Set the environment variable {name}, or api_key in the config.",
        )
    remember_secret(key)
    return key or "none"


def is_openai_compatible(settings: ModelSettings) -> bool:
    """Return whether a model of the config is asked through OpenAI's client."""
    base_url = given_base_url(settings)
    if settings.provider == "openai" or base_url is None:
        return settings.provider == "openai"
    if settings.provider == "ollama":  # which has both APIs
        return base_url.rstrip("/").endswith("/v1")
    return not settings.provider.startswith(_OWN_LANGUAGE)


def request_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return what the config adds to each request: ``extra_body``, ``extra_headers`` and ``extra_query``."""
    extra = extra_settings(settings)
    own = {name: value for name, value in extra.items() if name not in _NOT_IN_THE_BODY}
    return {
        "extra_body": {**own, **extra.get("extra_body", {})},
        "extra_headers": extra.get("extra_headers", {}),
        "extra_query": extra.get("extra_query", {}),
    }


def answer_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings on which a model's answers depend, for the cache."""
    left_out = _ASKER_OPTIONS | _UNSENT_OPTIONS
    extra = {name: value for name, value in extra_settings(settings).items() if name not in left_out}
    return {**extra, "base_url": effective_base_url(settings)}
