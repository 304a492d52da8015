"""The models of judges, from all that can name one: the config, a name, or a model of LangChain."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Unpack, cast

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.endpoint_address import given_base_url
from graphrag_eval_lc.judges.langchain_embeddings import LangChainEmbeddingModel
from graphrag_eval_lc.judges.langchain_model import LangChainJudgeModel
from graphrag_eval_lc.judges.model import EmbeddingModel, JudgeModel
from graphrag_eval_lc.masking import remember_secret
from graphrag_eval_lc.retrying import error_text

# Providers whose endpoints speak a language of their own, whatever their address.
_OWN_LANGUAGE = ("anthropic", "azure", "bedrock", "cohere", "gemini", "google", "vertex_ai")
# LiteLLM's names of providers, and those of LangChain.
_LANGCHAIN_PROVIDERS = {
    "azure": "azure_openai",
    "gemini": "google_genai",
    "mistral": "mistralai",
    "vertex_ai": "google_vertexai",
}
_LITELLM_OPTIONS = frozenset({"api_base", "drop_params", "num_retries"})


def as_judge_model(llm: Any, **options: Unpack[AskingOptions]) -> JudgeModel:
    """Give the chat model that judges.

    Args:
        llm: A JudgeModel, which is given back as it is; a chat model of LangChain; a name such as ``gpt-4o-mini`` or
            ``anthropic:claude-haiku-4-5``; or the config's ``GenerationConfig``.
        **options: How it is asked.

    Raises:
        ConfigError: There is no API key, or the provider is not known.
        MissingExtraError: A package is missing.
        OptionError: ``llm`` is none of these.
    """
    if hasattr(llm, "aask") and not isinstance(llm, type):
        return cast("JudgeModel", llm)
    if isinstance(llm, str):
        llm = GenerationConfig.model_validate(named_settings(llm))
    if isinstance(llm, GenerationConfig):
        if is_openai_compatible(llm):
            return cast("JudgeModel", _openai_model("openai_model", "OpenAIJudgeModel", llm, options))
        bounds = {"temperature": llm.temperature, "max_tokens": llm.max_tokens}
        llm = _langchain_model(llm, _langchain_function("langchain.chat_models", "init_chat_model"), **bounds)
    if isinstance(llm, BaseChatModel):
        return LangChainJudgeModel(llm, **options)
    raise OptionError(
        f"{type(llm).__name__} is no model that can judge",
        mend="Give a chat model of LangChain, a name such as openai:gpt-4o-mini, or a GenerationConfig.",
    )


def as_embedding_model(embeddings: Any, **options: Unpack[AskingOptions]) -> EmbeddingModel:
    """Give the embedding model of judges.

    Args:
        embeddings: An EmbeddingModel, which is given back as it is; LangChain's ``Embeddings``; a name such as
            ``text-embedding-3-small``; or the config's ``EmbeddingConfig``.
        **options: How it is asked.

    Raises:
        ConfigError: There is no API key, or the provider is not known.
        MissingExtraError: A package is missing.
        OptionError: ``embeddings`` is none of these.
    """
    if hasattr(embeddings, "aembed") and not isinstance(embeddings, type):
        return cast("EmbeddingModel", embeddings)
    if isinstance(embeddings, str):
        embeddings = EmbeddingConfig.model_validate(named_settings(embeddings))
    if isinstance(embeddings, EmbeddingConfig):
        if is_openai_compatible(embeddings):
            return cast(
                "EmbeddingModel", _openai_model("openai_embeddings", "OpenAIEmbeddingModel", embeddings, options)
            )
        embeddings = _langchain_model(embeddings, _langchain_function("langchain.embeddings", "init_embeddings"))
    if isinstance(embeddings, Embeddings):
        return LangChainEmbeddingModel(embeddings, **options)
    raise OptionError(
        f"{type(embeddings).__name__} is no embedding model",
        mend="Give LangChain's Embeddings, a name such as openai:text-embedding-3-small, or an EmbeddingConfig.",
    )


def named_settings(name: str) -> dict[str, str]:
    """Give provider and model of a name such as ``openai:gpt-4o-mini``, as a section of the config has them."""
    provider, sign, model = name.partition(":")
    return {"provider": provider, "model": model} if sign else {"model": name}


def is_openai_compatible(settings: GenerationConfig | EmbeddingConfig) -> bool:
    """Tell whether a model of the config is asked through openai's client."""
    base_url = given_base_url(settings)
    if settings.provider == "openai" or base_url is None:
        return settings.provider == "openai"
    if settings.provider == "ollama":  # which has both languages
        return base_url.rstrip("/").endswith("/v1")
    return not settings.provider.startswith(_OWN_LANGUAGE)


def _openai_model(file: str, kind: str, settings: GenerationConfig | EmbeddingConfig, options: AskingOptions) -> Any:
    try:
        module = import_module(f"graphrag_eval_lc.judges.{file}")
    except ModuleNotFoundError as problem:
        if problem.name != "openai":
            raise
        raise MissingExtraError("Asking a model", "judges", "openai") from None
    return getattr(module, kind)(settings, **options)


def _langchain_function(module: str, name: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as problem:
        if problem.name != "langchain":
            raise
        raise MissingExtraError("Asking a model of a provider that is not OpenAI's", "judges", "langchain") from None
    return function


def _langchain_model(
    settings: GenerationConfig | EmbeddingConfig, make: Callable[..., Any], **bounds: float | None
) -> Any:
    """Give the model that LangChain makes of a section of the config."""
    provider = _LANGCHAIN_PROVIDERS.get(settings.provider, settings.provider)
    name = f"{provider}:{settings.model}"
    key = settings.api_key.get_secret_value() if settings.api_key is not None else None
    remember_secret(key)
    # Azure's class takes the address of a resource under a name of its own.
    address = "base_url" if settings.base_url or provider != "azure_openai" else "azure_endpoint"
    options = {address: given_base_url(settings), "api_key": key, **bounds}
    extra = {key: value for key, value in (settings.model_extra or {}).items() if key not in _LITELLM_OPTIONS}
    given = {option: value for option, value in options.items() if value is not None}
    try:
        return make(name, **{**given, **extra})
    except Exception as problem:  # of any package
        raise ConfigError(f"LangChain cannot make the model {name}: {error_text(problem)}") from problem
