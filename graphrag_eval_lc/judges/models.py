"""The models of judges, made from the config, a name or a LangChain model; and those that ask through LangChain."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeVar, Unpack, cast

import httpx
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.event_loop.bounded_http import bounded_http
from graphrag_eval_lc.judges.answer_forms import closed_schema, form_name
from graphrag_eval_lc.judges.asked_model import (
    LITELLM_OPTIONS,
    AskingOptions,
    ModelSettings,
    extra_settings,
    given_api_key,
    given_base_url,
    usage_in,
    usage_of,
)
from graphrag_eval_lc.judges.chat_model import Messages, StructuredJudgeModel, check_finish_reason, refused
from graphrag_eval_lc.judges.embedding_model import CachedEmbeddingModel, Vectors, check_vectors
from graphrag_eval_lc.judges.endpoint import (
    AnswerBound,
    RequestBound,
    leaves_no_room,
    messages_with_form,
    refuses_part,
)
from graphrag_eval_lc.judges.model_calls import RequestSize, most_answer_tokens, size_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, CutAnswerError, EmbeddingModel, JudgeModel, Usage
from graphrag_eval_lc.judges.text_parts import content_text
from graphrag_eval_lc.masking import remember_secret
from graphrag_eval_lc.retrying import masked_error_text

# Providers whose endpoints are not OpenAI-compatible, whatever their address.
_OWN_LANGUAGE = ("anthropic", "azure", "bedrock", "cohere", "gemini", "google", "vertex_ai")
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
            return cast("JudgeModel", _openai_model("OpenAIJudgeModel", llm, options))
        bounds = {"temperature": llm.temperature, "max_tokens": llm.max_tokens}
        llm = _langchain_model(llm, _langchain_function("langchain.chat_models", "init_chat_model"), **bounds)
    if isinstance(llm, BaseChatModel):
        return LangChainJudgeModel(llm, **options)
    raise OptionError(
        f"{type(llm).__name__} is no model that can judge",
        hint="Give a chat model of LangChain, a name such as openai:gpt-4o-mini, or a GenerationConfig.",
    )


def as_embedding_model(embeddings: Any, **options: Unpack[AskingOptions]) -> EmbeddingModel:
    """Return an embedding model for judges.

    Args:
        embeddings: An EmbeddingModel, which is returned as it is; LangChain's ``Embeddings``; a name such as
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
            return cast("EmbeddingModel", _openai_model("OpenAIEmbeddingModel", embeddings, options))
        embeddings = _langchain_model(embeddings, _langchain_function("langchain.embeddings", "init_embeddings"))
    if isinstance(embeddings, Embeddings):
        return LangChainEmbeddingModel(embeddings, **options)
    raise OptionError(
        f"{type(embeddings).__name__} is no embedding model",
        hint="Give LangChain's Embeddings, a name such as openai:text-embedding-3-small, or an EmbeddingConfig.",
    )


def named_settings(name: str) -> dict[str, str]:
    """Return provider and model of a name such as ``openai:gpt-4o-mini``, by the config's keys."""
    provider, sign, model = name.partition(":")
    return {"provider": provider, "model": model} if sign else {"model": name}


def is_openai_compatible(settings: ModelSettings) -> bool:
    """Return whether a model of the config is asked through OpenAI's client."""
    base_url = given_base_url(settings)
    if settings.provider == "openai" or base_url is None:
        return settings.provider == "openai"
    if settings.provider == "ollama":  # which has both APIs
        return base_url.rstrip("/").endswith("/v1")
    return not settings.provider.startswith(_OWN_LANGUAGE)


def _openai_model(kind: str, settings: ModelSettings, options: AskingOptions) -> Any:
    try:
        module = import_module("graphrag_eval_lc.judges.openai_models")
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


_Mode = Literal["structured", "function_calling", "prompt"]
_NEXT_MODE: dict[_Mode, _Mode] = {"structured": "function_calling", "function_calling": "prompt"}
_REFUSED_FORM = re.compile(r"response.?format|schema|structured|grammar|json|tool|function", re.IGNORECASE)
# Raised by LangChain's models on a body that is no answer.
_UNREADABLE = (json.JSONDecodeError, LookupError, AttributeError, TypeError)


class LangChainJudgeModel(StructuredJudgeModel):
    """A chat model of LangChain, asked for structured output, else by a function to call, else in words.

    Its own retries come before those of this class; but where a budget of money is set it has none, as each of them
    may cost money that nobody sees.
    """

    def __init__(self, model: BaseChatModel, **options: Unpack[AskingOptions]) -> None:
        described = model._get_ls_params()
        provider = described.get("ls_provider")
        model_name = described.get("ls_model_name") or type(model).__name__
        super().__init__(
            f"{provider}:{model_name}" if provider else model_name,
            model_name,
            provider,
            {"model": model._get_llm_string()},  # the key in LangChain's own cache
            **options,
        )
        if _is_limited(options):
            model = _without_own_retries(model)
        self._added = _added_to_requests(model)
        given = _answer_bound_of(model)
        self._bound = AnswerBound(given, model_name)
        self._is_bounded = given is not None or _bound_field(model) is not None
        self._chat_model = model
        self._mode: _Mode = "structured"

    @property
    def _takes_n(self) -> bool:
        return False

    async def _complete(
        self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage], temperature: float | None
    ) -> list[str]:
        bound = RequestBound(self._bound)
        while True:
            base, mode = self._chat_model, self._mode
            model = _with_answer_bound(base, bound.tokens) if self._is_bounded else base
            runnable = _runnable(_with_temperature(model, temperature), mode, form)
            if runnable is None:
                self._leave(mode)
                continue
            told = (
                messages_with_form(messages, closed_schema(form)) if self._tells_form or mode == "prompt" else messages
            )
            size = partial(self._size, told, form, bound.tokens)
            try:
                message = await self._calls.outcome_of(partial(self._answered, runnable, told), paid, size)
            except CutAnswerError as cut:
                if not self._is_bounded or not bound.has_grown():
                    raise (bound.no_room or cut) from None
                continue
            except Exception as refusal:
                if not self._has_learned_from(refusal, base, mode, bound):
                    raise
                continue
            bound.fits()
            return [_answer_text(message)]

    def _sizes(self, messages: Messages, form: type[BaseModel], n: int) -> list[RequestSize]:
        return [self._size(messages, form, self._bound.tokens)] * n

    def _size(self, messages: Messages, form: type[BaseModel], bound: int) -> RequestSize:
        asked = {"messages": messages, "schema": closed_schema(form)}
        answer = {"max_tokens": bound if self._is_bounded else None, **self._added}
        return size_of(asked, most_answer_tokens(answer), overhead=_PROVIDERS_TOKENS)

    def _has_learned_from(self, error: Exception, model: BaseChatModel, mode: _Mode, bound: RequestBound) -> bool:
        """Leave out what the model refused; return whether there is anything to leave out."""
        if leaves_no_room(error) and bound.has_shrunk(error):
            return True
        if not refuses_part(error):
            return False
        text = words_of(error)
        if "temperature" in text and getattr(model, "temperature", None) is not None:
            if self._chat_model is model:
                self._chat_model = model.model_copy(update={"temperature": None})
            return True
        if self._bound.is_open and self._is_bounded and re.search("max_(?:completion_)?tokens", text):
            self._is_bounded = False
            self._chat_model = _with_answer_bound(self._chat_model, None)
            return True
        if mode not in _NEXT_MODE or not _REFUSED_FORM.search(text):
            return False
        self._leave(mode)
        return True

    def _leave(self, mode: _Mode) -> None:
        if self._mode == mode:  # else another request has left it meanwhile
            self._mode = _NEXT_MODE[mode]

    async def _answered(self, runnable: Any, messages: Messages, paid: list[Usage]) -> AIMessage:
        try:
            given: Any = await runnable.ainvoke(messages)
            message = given["raw"] if isinstance(given, dict) else given
        except _UNREADABLE as problem:
            raise BrokenAnswerError(f"the answer cannot be read: {masked_error_text(problem)}") from problem
        except Exception as problem:
            _check_openai_finish_reason(self.name, problem, paid)
            raise
        if not isinstance(message, AIMessage):
            raise BrokenAnswerError(f"the model gave no message but {type(message).__name__}")
        paid.append(usage_of(message))
        self._check_finish_reason(message)
        return message

    def _check_finish_reason(self, message: AIMessage) -> None:
        refusal = message.additional_kwargs.get("refusal")
        if refusal:
            raise refused(self.name, str(refusal))
        for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
            check_finish_reason(self.name, message.response_metadata.get(key))


def _is_limited(options: AskingOptions) -> bool:
    budget = options.get("budget")
    return budget is not None and budget.max_cost is not None


Model = TypeVar("Model", bound=BaseModel)


def _without_own_retries(model: Model) -> Model:
    """Return a copy of LangChain's model that sends each request once, as far as its class tells how."""
    if "max_retries" not in type(model).model_fields:
        return model
    copy = model.model_copy(update={"max_retries": 0})
    for name in set(vars(copy)) - set(type(model).model_fields):  # clients that the class makes at their first use
        del vars(copy)[name]
    # Those of langchain-openai are made with the model, for the endpoint and for a part of it.
    part: Any = getattr(model, "async_client", None)
    client = getattr(part, "_client", None)
    if client is None or not hasattr(client, "with_options"):
        return copy
    once = client.with_options(max_retries=0)
    update: dict[str, Any] = {"async_client": type(part)(once)}
    if getattr(model, "root_async_client", None) is not None:
        update["root_async_client"] = once
    return copy.model_copy(update=update)


def _added_to_requests(model: BaseChatModel) -> dict[str, Any]:
    """Return what a chat model adds to the body of its requests, as far as its fields tell."""
    kwargs = getattr(model, "model_kwargs", None) or {}
    parts = [{"n": getattr(model, "n", None)}, kwargs, getattr(model, "extra_body", None), kwargs.get("extra_body")]
    return {name: value for part in parts if isinstance(part, Mapping) for name, value in part.items()}


# What providers add to a request for a form: instructions, and the schema in other words.
_PROVIDERS_TOKENS = 2000
_BOUND_FIELDS = ("max_tokens", "max_output_tokens", "num_predict", "max_completion_tokens", "max_new_tokens")


def _bound_field(model: BaseChatModel) -> str | None:
    """Return the name under which a chat model keeps the longest answer; None where it has none."""
    fields = type(model).model_fields
    return next((name for name in _BOUND_FIELDS if name in fields), None)


def _answer_bound_of(model: BaseChatModel) -> int | None:
    """Return the longest answer that a chat model was set to, in tokens; None where it is open."""
    field = _bound_field(model)
    tokens = None if field is None else getattr(model, field, None)
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _with_answer_bound(model: BaseChatModel, tokens: int | None) -> BaseChatModel:
    """Return a chat model with a longest answer: a copy, or itself where it has that, or can have none."""
    field = _bound_field(model)
    return model if field is None or getattr(model, field) == tokens else model.model_copy(update={field: tokens})


def _with_temperature(model: BaseChatModel, least: float | None) -> BaseChatModel:
    """Return a chat model with at least a temperature: a copy, or itself where it has that, or sends none."""
    own = getattr(model, "temperature", None)
    if least is None or not isinstance(own, int | float) or own >= least:
        return model
    return model.model_copy(update={"temperature": least})


def _runnable(model: BaseChatModel, mode: _Mode, form: type[BaseModel]) -> Any:
    """Return what is asked; None where the model has no structured output of this kind."""
    if mode == "prompt":
        return model
    # The schema and not the class: langchain-openai drops an answer that breaks the class, and what it cost.
    schema = {"title": form_name(form), "description": "Give the answer.", **closed_schema(form)}
    options: dict[str, Any] = {"method": mode} if mode == "function_calling" else {}
    if mode == "structured" and "strict" in inspect.signature(model.with_structured_output).parameters:
        options["strict"] = True
    try:
        return model.with_structured_output(schema, include_raw=True, **options)
    except (NotImplementedError, TypeError, ValueError):
        return None


def _check_openai_finish_reason(name: str, error: Exception, paid: list[Usage]) -> None:
    """Raise the error for a finish reason that the openai client raised; by name, as it need not be installed."""
    kind = type(error).__name__
    if kind == "LengthFinishReasonError":
        completion = getattr(error, "completion", None)
        paid.append(usage_in(completion.model_dump() if completion is not None else {}))
        check_finish_reason(name, "length")
    if kind == "ContentFilterFinishReasonError":
        paid.append(Usage(None, None, None))
        check_finish_reason(name, "content_filter")


def _answer_text(message: AIMessage) -> str:
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"])
    if message.invalid_tool_calls:
        return message.invalid_tool_calls[0]["args"] or ""
    return str(message.text) or content_text(message.additional_kwargs.get("reasoning_content"))


class LangChainEmbeddingModel(CachedEmbeddingModel):
    """An embedding model of LangChain. It reports no tokens, so its cost is unknown."""

    def __init__(self, embeddings: Embeddings, **options: Unpack[AskingOptions]) -> None:
        if _is_limited(options) and isinstance(embeddings, BaseModel):
            embeddings = _without_own_retries(embeddings)
        model = str(getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None) or "")
        kind = type(embeddings).__name__
        super().__init__(
            f"{kind}:{model}" if model else kind,
            model or kind,
            None,
            {name: getattr(embeddings, name, None) for name in ("dimensions", "base_url", "openai_api_base")},
            **options,
        )
        self._embeddings = embeddings

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        return await self._calls.outcome_of(partial(self._answered, texts), paid, partial(self._size, texts))

    async def _answered(self, texts: list[str], paid: list[Usage]) -> Vectors:
        vectors = tuple(tuple(map(float, vector)) for vector in await self._embeddings.aembed_documents(texts))
        paid.append(Usage(None, None, None))
        check_vectors(vectors, len(texts))
        return vectors
