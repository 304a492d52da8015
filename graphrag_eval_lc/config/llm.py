"""The section on the models that judges ask."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, PlainSerializer, SecretStr, SerializationInfo, model_validator

from graphrag_eval_lc.config.environment import is_reference
from graphrag_eval_lc.config.section import Section, mistake
from graphrag_eval_lc.masking import MASK

DEFAULT_PROVIDER = "openai"


def _reference_or_secret(value: SecretStr, info: SerializationInfo) -> Any:
    text = value.get_secret_value()
    if is_reference(text):
        return text
    return value if info.mode == "python" else MASK


Secret = Annotated[SecretStr, PlainSerializer(_reference_or_secret)]


class _ModelConfig(Section):
    model_config = ConfigDict(extra="allow")

    provider: str = Field(default=DEFAULT_PROVIDER, min_length=1)
    model: str = Field(min_length=1)
    base_url: str | None = None
    api_key: Secret | None = None

    @model_validator(mode="after")
    def _model_fits_provider(self) -> Self:
        if self.provider != DEFAULT_PROVIDER and "model" not in self.model_fields_set:
            raise mistake(f"the provider {self.provider} is named without a model", "Add model.", "model")
        return self


class GenerationConfig(_ModelConfig):
    """The chat model that judges. Further keys are passed on to it (``model_extra``).

    Attributes:
        provider: ``openai`` for OpenAI and every endpoint that is compatible with it, else a provider that
            LangChain's ``init_chat_model`` knows.
        model: The model's name at the provider; needed for other providers than ``openai``.
        base_url: The endpoint; None for the provider's own.
        api_key: The key, best as ``${OPENAI_API_KEY}``; None for the provider's usual environment variable.
        temperature: 0 to 2; None sends none, for models that refuse it.
        max_tokens: The longest answer, in tokens; None for the provider's bound.
    """

    model: str = Field(default="gpt-4o-mini", min_length=1)
    temperature: float | None = Field(default=0.0, ge=0.0, le=2.0)
    max_tokens: int | None = Field(default=None, ge=1)


class EmbeddingConfig(_ModelConfig):
    """The model that turns texts into vectors. Further keys are passed on to it (``model_extra``).

    Attributes:
        provider: As for generation.
        model: The model's name at the provider; needed for other providers than ``openai``.
        base_url: The endpoint; None for the provider's own.
        api_key: The key, best as ``${OPENAI_API_KEY}``; None for the provider's usual environment variable.
    """

    model: str = Field(default="text-embedding-3-small", min_length=1)


class LLMConfig(Section):
    """The models. The empty section stands for both defaults.

    Attributes:
        generation: The chat model that judges.
        embedding: The embedding model; None: answer relevance is off.

    Example:
        >>> LLMConfig().embedding.model, LLMConfig(generation=GenerationConfig()).embedding
        ('text-embedding-3-small', None)
    """

    generation: GenerationConfig = Field(default_factory=GenerationConfig)
    embedding: EmbeddingConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        return {"generation": {}, "embedding": {}} if values == {} else values
