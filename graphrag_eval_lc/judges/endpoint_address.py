"""Where a model of the config is asked, whichever of its names the address was given under."""

import os
from typing import Any, Protocol


class Addressed(Protocol):
    """A model of the config, as far as its address is concerned."""

    @property
    def provider(self) -> str: ...  # noqa: D102

    @property
    def base_url(self) -> str | None: ...  # noqa: D102

    @property
    def model_extra(self) -> dict[str, Any] | None: ...  # noqa: D102


def given_base_url(settings: Addressed) -> str | None:
    """Give the address that the config names: ``base_url``, else ``api_base``, as LiteLLM calls it."""
    return settings.base_url or (settings.model_extra or {}).get("api_base") or None


def effective_base_url(settings: Addressed) -> str | None:
    """Give the address that is asked; ``OPENAI_BASE_URL`` counts for OpenAI alone. None: OpenAI's own."""
    of_environment = os.environ.get("OPENAI_BASE_URL") if settings.provider == "openai" else None
    return given_base_url(settings) or of_environment or None
