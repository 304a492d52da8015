"""The models of judges, made from the config, a name or a model of LangChain."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, Unpack, cast

import httpx
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config import EmbeddingConfig, EvaluationConfig, GenerationConfig, expanded
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.event_loop.bounded_http import bounded_http
from graphrag_eval_lc.judges.embedding_models import LangChainEmbeddingModel, OpenAIEmbeddingModel
from graphrag_eval_lc.judges.langchain_models import LangChainJudgeModel
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions
from graphrag_eval_lc.judges.model_interface import CallPool, EmbeddingModel, JudgeModel
from graphrag_eval_lc.judges.openai_models import (
    LITELLM_OPTIONS,
    ModelSettings,
    OpenAIJudgeModel,
    extra_settings,
    given_api_key,
    given_base_url,
    is_openai_compatible,
)
from graphrag_eval_lc.masking import remember_secret
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.retrying import masked_error_text

SettingsT = TypeVar("SettingsT", bound=BaseModel)

# LiteLLM's names of providers, and those of LangChain.
_LANGCHAIN_PROVIDERS = {
    "azure": "azure_openai",
    "gemini": "google_genai",
    "mistral": "mistralai",
    "vertex_ai": "google_vertexai",
}


def as_judge_model(llm: Any, **options: Unpack[AskingOptions]) -> JudgeModel:
    """Return a chat model for judges.

    Args:
        llm: A JudgeModel, which is returned as it is; a chat model of LangChain; a name such as ``gpt-4o-mini`` or
            ``anthropic:claude-haiku-4-5``; or the config's ``GenerationConfig``.
        **options: How it is asked.

    Raises:
        ConfigError: The API key is missing, or the provider is unknown.
        MissingExtraError: A package is missing.
        OptionError: ``llm`` is none of these.
    """
    if hasattr(llm, "aask") and not isinstance(llm, type):
        return cast("JudgeModel", llm)
    if isinstance(llm, str):
        llm = _config_of(GenerationConfig, llm)
    if isinstance(llm, GenerationConfig):
        if is_openai_compatible(llm):
            return OpenAIJudgeModel(llm, **options)
        bounds = {"temperature": llm.temperature, "max_tokens": llm.max_tokens}
        llm = _langchain_model(llm, _langchain_function("langchain.chat_models", "init_chat_model"), **bounds)
    if isinstance(llm, BaseChatModel):
        return LangChainJudgeModel(llm, **options)
    raise OptionError(
        f"{type(llm).__name__} cannot judge",
        hint="Give a chat model of LangChain, a name such as openai:gpt-4o-mini, or a GenerationConfig.",
    )


def _config_of(section: type[SettingsT], name: str) -> SettingsT:
    try:
        return section.model_validate(_named_settings(name))
    except ValidationError as problem:
        what, hint = f"{name!r:.80} does not name a model", "Give a name such as openai:gpt-4o-mini."
        raise OptionError(what, hint=hint) from problem


def as_embedding_model(embeddings: Any, **options: Unpack[AskingOptions]) -> EmbeddingModel:
    """Return an embedding model for judges.

    Args:
        embeddings: An EmbeddingModel, which is returned as it is; LangChain's ``Embeddings``; a name such as
            ``text-embedding-3-small``; or the config's ``EmbeddingConfig``.
        **options: How it is asked.

    Raises:
        ConfigError: The API key is missing, or the provider is unknown.
        MissingExtraError: A package is missing.
        OptionError: ``embeddings`` is none of these.
    """
    if hasattr(embeddings, "aembed") and not isinstance(embeddings, type):
        return cast("EmbeddingModel", embeddings)
    if isinstance(embeddings, str):
        embeddings = _config_of(EmbeddingConfig, embeddings)
    if isinstance(embeddings, EmbeddingConfig):
        if is_openai_compatible(embeddings):
            return OpenAIEmbeddingModel(embeddings, **options)
        embeddings = _langchain_model(embeddings, _langchain_function("langchain.embeddings", "init_embeddings"))
    if isinstance(embeddings, Embeddings):
        return LangChainEmbeddingModel(embeddings, **options)
    raise OptionError(
        f"{type(embeddings).__name__} is not an embedding model",
        hint="Give LangChain's Embeddings, a name such as openai:text-embedding-3-small, or an EmbeddingConfig.",
    )


@dataclass(frozen=True, slots=True)
class RunModels:
    """The models of a run.

    Attributes:
        generation: The chat model; None: nothing is asked.
        embedding: The embedding model; None: answer relevance is off.
        voters: More chat models, which vote on the claims that the first one finds.
        own: Those of them that were made here, to be closed with the judges.
    """

    generation: JudgeModel | None = None
    embedding: EmbeddingModel | None = None
    voters: tuple[JudgeModel, ...] = ()
    own: tuple[Any, ...] = ()

    def names(self) -> dict[str, str | list[str]]:
        """Return the models' names by what they are for."""
        models = {"generation": self.generation, "embedding": self.embedding}
        names = {purpose: model.name for purpose, model in models.items() if model is not None}
        return {**names, **({"voters": [model.name for model in self.voters]} if self.voters else {})}


def run_models(
    config: EvaluationConfig,
    *,
    llm: Any = None,
    embeddings: Any = None,
    needs_embeddings: bool = True,
    **options: Unpack[AskingOptions],
) -> RunModels:
    """Return the models of a run.

    Args:
        config: The configuration.
        llm: A chat model that overrides that of the config.
        embeddings: An embedding model that overrides that of the config.
        needs_embeddings: Whether texts are to be embedded.
        **options: How they are asked; what is left open is that of the config.

    Raises:
        ConfigError: An environment variable is not set, or a model cannot be made from what was given.
        MissingExtraError: The package that a model needs is not installed.
        OptionError: The budget has a limit of money, and requests to a model are not counted.
    """
    section = config.llm
    generation, embedding = llm, embeddings
    if llm is None and section is not None:
        generation = expanded(section.generation, "llm.generation")
    if generation is None:
        return RunModels()
    if embeddings is None and section is not None:
        embedding = expanded(section.embedding, "llm.embedding")
    budget = options.get("budget")
    shared: AskingOptions = {
        **options,
        "pool": CallPool(config.judges.max_concurrency),
        "pricing": options.get("pricing") or Pricing(config.prices),
        "cache": options.get("cache") if config.judges.cache else None,
        "max_retries": config.judges.max_retries,
        "timeout": config.judges.timeout,
    }
    asked = as_judge_model(generation, **shared)
    embedded = None
    if needs_embeddings and embedding is not None:
        embedded = as_embedding_model(embedding, **shared)
    voters = tuple(as_judge_model(each, **shared) for each in expanded(config.judges.voters, "judges.voters"))
    for model in (asked, embedded):
        if budget is not None and budget.max_cost is not None and not isinstance(model, AskedModel | None):
            raise OptionError(
                f"requests to {model.name} cannot be counted, as it is not named and not LangChain's",
                key="max_cost",
                hint="Leave max_cost out, or pass a chat model of LangChain.",
            )
    made = [model for model in (asked, embedded, *voters) if model is not None]
    return RunModels(asked, embedded, voters, tuple(each for each in made if each not in (llm, embeddings)))


def _named_settings(name: str) -> dict[str, str]:
    """Return provider and model of a name such as ``openai:gpt-4o-mini``, by the config's keys."""
    provider, sign, model = name.partition(":")
    return {"provider": provider, "model": model} if sign else {"model": name}


def _langchain_function(module: str, name: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as problem:
        if problem.name != "langchain":
            raise
        raise MissingExtraError("Asking a model of a provider that is not OpenAI's", "judges", "langchain") from None
    return function


def _langchain_model(settings: ModelSettings, make: Callable[..., Any], **bounds: float | None) -> Any:
    provider = _LANGCHAIN_PROVIDERS.get(settings.provider, settings.provider)
    name = f"{provider}:{settings.model}"
    key = given_api_key(settings)
    remember_secret(key)
    # Azure's class has its own name for the address of a resource.
    address = "base_url" if settings.base_url or provider != "azure_openai" else "azure_endpoint"
    options: dict[str, Any] = {address: given_base_url(settings), "api_key": key, **bounds}
    if provider == "azure_openai":  # the clients of other packages are theirs
        options["http_async_client"] = httpx.AsyncClient(
            timeout=None, follow_redirects=True, event_hooks=bounded_http()
        )
    extra = {option: value for option, value in extra_settings(settings).items() if option not in LITELLM_OPTIONS}
    given = {option: value for option, value in options.items() if value is not None}
    try:
        return make(name, **{**given, **extra})
    except Exception as problem:  # of any package
        raise ConfigError(f"LangChain cannot make the model {name}: {masked_error_text(problem)}") from problem
