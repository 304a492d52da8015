"""Creates the models of judges from the config, a name or a LangChain model, and adapts LangChain's models."""

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, Unpack, cast

import httpx
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config import EmbeddingConfig, EvaluationConfig, GenerationConfig, expanded
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.event_loop.http_connections import bounded_http, close_connections_of_resting_loops
from graphrag_eval_lc.judges.answer_forms import closed_schema, form_name, message_text
from graphrag_eval_lc.judges.chat_model import (
    ChatJudgeModel,
    EmbeddingJudgeModel,
    EndpointAbilities,
    Mode,
    check_finish_reason,
    refused,
)
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions, ModelDescription, usage_in, usage_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, CallPool, EmbeddingModel, JudgeModel, Usage
from graphrag_eval_lc.judges.openai_models import (
    LITELLM_OPTIONS,
    ModelSettings,
    OpenAIEmbeddingModel,
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

# Provider names: LiteLLM's, and the corresponding one of LangChain.
_LANGCHAIN_PROVIDERS = {
    "azure": "azure_openai",
    "gemini": "google_genai",
    "mistral": "mistralai",
    "vertex_ai": "google_vertexai",
}


def as_judge_model(llm: Any, **options: Unpack[AskingOptions]) -> JudgeModel:
    """Return a chat model for judges from a JudgeModel, a LangChain chat model, a name or a ``GenerationConfig``.

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


def as_embedding_model(embeddings: Any, **options: Unpack[AskingOptions]) -> EmbeddingModel:
    """Return an embedding model for judges, like ``as_judge_model``: from LangChain Embeddings, a name or a config."""
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


def _config_of(section: type[SettingsT], name: str) -> SettingsT:
    provider, sign, model = name.partition(":")
    try:
        return section.model_validate({"provider": provider, "model": model} if sign else {"model": name})
    except ValidationError as problem:
        what, hint = f"{name!r:.80} does not name a model", "Give a name such as openai:gpt-4o-mini."
        raise OptionError(what, hint=hint) from problem


@dataclass(frozen=True, slots=True)
class RunModels:
    """The models of a run.

    Attributes:
        generation: The chat model; None if no model judges.
        embedding: The embedding model; None if answer relevance is off.
        voters: More chat models, which vote on the claims that the first one found.
        own: The models that were created here and are closed with the judges.
    """

    generation: JudgeModel | None = None
    embedding: EmbeddingModel | None = None
    voters: tuple[JudgeModel, ...] = ()
    own: tuple[Any, ...] = ()

    def names(self) -> dict[str, str | list[str]]:
        """Return the names of the models by their roles."""
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
    """Return the models of a run: those that are passed, else those of the config.

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
    embedded = as_embedding_model(embedding, **shared) if needs_embeddings and embedding is not None else None
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


# --- models of LangChain ---


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
        client = httpx.AsyncClient(timeout=None, follow_redirects=True, event_hooks=bounded_http())
        options["http_async_client"] = client
    extra = {option: value for option, value in extra_settings(settings).items() if option not in LITELLM_OPTIONS}
    given = {option: value for option, value in options.items() if value is not None}
    try:
        return make(name, **{**given, **extra})
    except Exception as problem:  # of any package
        raise ConfigError(f"LangChain cannot make the model {name}: {masked_error_text(problem)}") from problem


# Names under which chat models have the limit of an answer.
_TOKENS_FIELDS = ("max_tokens", "max_output_tokens", "num_predict", "max_completion_tokens", "max_new_tokens")
# Raised by LangChain's models on a body that is not an answer.
_UNREADABLE = (json.JSONDecodeError, LookupError, AttributeError, TypeError)


class LangChainJudgeModel(ChatJudgeModel):
    """A LangChain chat model, asked for structured output, else with a function to call, else in words.

    The model's own retries come first, then those of this class.
    """

    def __init__(self, model: BaseChatModel, **options: Unpack[AskingOptions]) -> None:
        described = model._get_ls_params()
        provider = described.get("ls_provider")
        model_name = described.get("ls_model_name") or type(model).__name__
        temperature = getattr(model, "temperature", None)
        fields = type(model).model_fields
        self._tokens_field = next((name for name in _TOKENS_FIELDS if name in fields), None)
        tokens = getattr(model, self._tokens_field) if self._tokens_field is not None else None
        settings = {"model": model._get_llm_string()}  # the key in LangChain's own cache
        super().__init__(
            ModelDescription(f"{provider}:{model_name}" if provider else model_name, model_name, provider, settings),
            temperature=temperature if isinstance(temperature, int | float) else None,
            max_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
            # The model itself knows under which name to send the limit of the answer.
            abilities=EndpointAbilities(tokens_key=None if self._tokens_field is None else "max_completion_tokens"),
            **options,
        )
        self._chat_model = model

    async def _answered(self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]) -> str:
        close_connections_of_resting_loops()  # the model's class may share an HTTP client between event loops
        try:
            given: Any = await self._runnable(request, mode, form).ainvoke(request["messages"])
            message, parsed = (given["raw"], given.get("parsed")) if isinstance(given, dict) else (given, None)
        except _UNREADABLE as problem:
            raise BrokenAnswerError(f"the answer cannot be read: {masked_error_text(problem)}") from problem
        except Exception as problem:
            _check_openai_finish_reason(self.name, problem, paid)
            raise
        if not isinstance(message, AIMessage):
            raise BrokenAnswerError(f"the model returned no message but {type(message).__name__}")
        paid.append(usage_of(message))
        if refusal := message.additional_kwargs.get("refusal"):
            raise refused(self.name, refusal)
        for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
            check_finish_reason(self.name, message.response_metadata.get(key))
        calls = [{"arguments": call["args"]} for call in (*message.tool_calls, *message.invalid_tool_calls)]
        parts = {"parsed": parsed, "tool_calls": calls, "content": str(message.text)}
        return message_text({**message.additional_kwargs, **parts}, form)

    def _runnable(self, request: dict[str, Any], mode: Mode, form: type[BaseModel]) -> Any:
        """Return the chat model with the settings of a request and structured output."""
        update: dict[str, Any] = {}
        if self._temperature is not None:
            update["temperature"] = request.get("temperature")  # None if the endpoint refuses one
        if self._tokens_field is not None:
            update[self._tokens_field] = request.get("max_completion_tokens")
        changed = {name: value for name, value in update.items() if getattr(self._chat_model, name) != value}
        model = self._chat_model.model_copy(update=changed) if changed else self._chat_model
        if mode in {"json_object", "text"}:
            return model
        # The schema, not the class: langchain-openai drops an answer that does not fit the class, and its usage.
        schema = {"title": form_name(form), "description": "Give the answer.", **closed_schema(form)}
        options: dict[str, Any] = {"method": "function_calling"} if mode == "tools" else {}
        if mode == "json_schema" and "strict" in inspect.signature(model.with_structured_output).parameters:
            options["strict"] = True
        try:
            return model.with_structured_output(schema, include_raw=True, **options)
        except (NotImplementedError, TypeError, ValueError) as problem:
            # The same error as from an endpoint that does not accept this mode.
            what = "response_format and tools are not supported"
            raise BrokenAnswerError(f"{what}: {masked_error_text(problem)}", status_code=400) from None


def _check_openai_finish_reason(name: str, error: Exception, paid: list[Usage]) -> None:
    """Raise our error for one of the openai client, recognised by name, as openai may not be installed."""
    kind = type(error).__name__
    if kind == "LengthFinishReasonError":
        completion = getattr(error, "completion", None)
        paid.append(usage_in(completion.model_dump() if completion is not None else {}))
        check_finish_reason(name, "length")
    if kind == "ContentFilterFinishReasonError":
        paid.append({})
        check_finish_reason(name, "content_filter")


class LangChainEmbeddingModel(EmbeddingJudgeModel):
    """An embedding model of LangChain. It reports no tokens, so its cost is unknown."""

    def __init__(self, embeddings: Embeddings, **options: Unpack[AskingOptions]) -> None:
        model = str(getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None) or "")
        kind = type(embeddings).__name__
        settings = {name: getattr(embeddings, name, None) for name in ("dimensions", "base_url", "openai_api_base")}
        name = f"{kind}:{model}" if model else kind
        super().__init__(ModelDescription(name, model or kind, None, settings), **options)
        self._embeddings = embeddings

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Sequence[Sequence[float]]:
        close_connections_of_resting_loops()
        vectors = await self._embeddings.aembed_documents(texts)
        paid.append({})
        return vectors
