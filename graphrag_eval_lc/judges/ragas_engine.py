"""The engine ``ragas``: ragas computes the metrics, with this package's requests, cache and prices."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

from openai import AsyncOpenAI, omit
from pydantic import BaseModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError, JudgeError
from graphrag_eval_lc.judges.asked_model import (
    AskedModel,
    AskingOptions,
    ModelSettings,
    model_name_of,
    usage_in,
)
from graphrag_eval_lc.judges.context_metrics import given_contexts
from graphrag_eval_lc.judges.endpoint import AnswerBound
from graphrag_eval_lc.judges.model_calls import RequestSize, most_answer_tokens, size_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, Usage, paid_error, total_cost
from graphrag_eval_lc.judges.models import is_openai_compatible, named_settings
from graphrag_eval_lc.judges.openai_models import (
    LoopBound,
    answer_settings,
    answer_texts,
    client_maker,
    request_settings,
)
from graphrag_eval_lc.judges.prompts import given_text, sendable_text
from graphrag_eval_lc.judges.ragas_import import ENGINE_KEY, ragas_module
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.retrying import masked_error_text

_Send = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class Account:
    """The requests for one score.

    Attributes:
        costs: USD of each answer.
        failure: The error of a failed request; nothing is asked after it, though instructor may try.
        times: How often each request was made: ragas makes three equal ones for three questions.
    """

    costs: list[float | None] = field(default_factory=list)
    failure: JudgeError | None = None
    times: Counter[str] = field(default_factory=Counter)


ACCOUNT: ContextVar[Account] = ContextVar("ACCOUNT")


class RagasModel(AskedModel):
    """A model of the config that ragas asks.

    Attributes:
        added: What the config adds to each request.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(
        self, settings: ModelSettings, make: Callable[[AsyncOpenAI], Any], **options: Unpack[AskingOptions]
    ) -> None:
        bounds = {name: getattr(settings, name, None) for name in ("temperature", "max_tokens")}
        known = {**answer_settings(settings), **bounds}
        super().__init__(model_name_of(settings), settings.model, settings.provider, known, **options)
        self.added = request_settings(settings)
        self._make = make
        self._client = LoopBound(client_maker(settings, partial(_Client, self)), lambda client: client.close())
        self._made: tuple[AsyncOpenAI, Any] | None = None

    async def get(self) -> Any:
        """Return ragas' object for the model, with a client of the running loop."""
        client = await self._client.get()
        if self._made is None or self._made[0] is not client:
            self._made = client, self._make(client)
        return self._made[1]

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._client.aclose()

    async def answer(self, path: str, body: Mapping[str, Any], form: Callable[[Any], Any], send: _Send) -> Any:
        """Return the answer to a request, from the cache or new, and add its cost to the account of the score.

        ``form`` makes the client's object from the JSON of an answer; ``send`` is called for each attempt.

        Raises:
            JudgeError: There is no usable answer.
        """
        account = ACCOUNT.get()
        if account.failure is not None:
            raise account.failure
        digest = self._next_digest(account, path, body)
        known = self._record(digest)
        if known is not None and "ragas" in known:
            account.costs.append(self._known_cost([_usage(path, known["ragas"])]))
            return form(known["ragas"])
        if self._plan is not None:
            self._plan.notes.add("The requests of the engine ragas cannot be counted before they are made.")
            raise JudgeError("only planned")
        paid: list[Usage] = []
        try:
            sent = self._calls.outcome_of(partial(self._sent, path, send), paid, partial(_size, body))
            answer, content = await self._outcome(sent, paid)
        except JudgeError as problem:
            account.failure = problem
            raise
        cost = self._cost(paid)
        self._keep(digest, {"ragas": content}, cost)
        account.costs.append(cost)
        return answer

    def _next_digest(self, account: Account, path: str, body: Mapping[str, Any]) -> str:
        asked = {"ragas": path, "messages": body.get("messages"), "input": body.get("input")}
        digest = self._digest(asked)
        account.times[digest] += 1
        return self._digest({**asked, "time": account.times[digest]})

    async def _sent(self, path: str, send: _Send, paid: list[Usage]) -> tuple[BaseModel, dict[str, Any]]:
        try:
            answer = await send()
        except ValueError as problem:
            raise BrokenAnswerError(f"the endpoint's answer cannot be read: {problem}") from problem
        if not isinstance(answer, BaseModel):
            raise BrokenAnswerError("the endpoint answered with no JSON object")
        content = answer.model_dump(mode="json", exclude_unset=True)
        if content.get("choices") or content.get("data") or content.get("usage"):
            paid.append(_usage(path, content))
        if path == _CHAT:
            answer_texts(content, self.name)
        return answer, content


_CHAT = "/chat/completions"


def _size(body: Mapping[str, Any]) -> RequestSize:
    return size_of(body, 0 if "input" in body else most_answer_tokens(body))


def _usage(path: str, content: Mapping[str, Any]) -> Usage:
    usage = usage_in(content)
    return usage if path == _CHAT else replace(usage, output_tokens=0)


class _Client(AsyncOpenAI):
    """The client for ragas and instructor: its requests go through the model."""

    def __init__(self, model: RagasModel, **options: Any) -> None:
        super().__init__(**options)
        self._asked_model = model

    async def post(self, path: str, *, cast_to: Any, body: Any = None, options: Any = None, **request: Any) -> Any:
        added = self._asked_model.added
        options = dict(options or {})
        options["headers"] = {**options.get("headers", {}), **added["extra_headers"]}
        options["params"] = {**options.get("params", {}), **added["extra_query"]}
        body = {**body, **added["extra_body"]}
        send = partial(super().post, path, cast_to=cast_to, body=body, options=options, **request)
        return await self._asked_model.answer(path, body, cast_to.model_validate, send)


_ONCE_MORE = 1  # how often an answer that breaks the schema is asked for again


def ragas_chat_model(generation: Any, **options: Unpack[AskingOptions]) -> RagasModel:
    """Return the chat model that ragas asks.

    What the config does not set is as in ragas; but no temperature is then sent, and max_tokens is that of
    ``AnswerBound``, where ragas cuts answers at 1,024 tokens.

    Raises:
        ConfigError: ragas cannot be used, or the model is not behind an OpenAI-compatible endpoint.
        MissingExtraError: ragas is not installed.
    """
    factory = ragas_module("ragas.llms").llm_factory
    settings = _checked(generation, GenerationConfig, "llm.generation")
    bound = AnswerBound(settings.max_tokens, settings.model).tokens
    bounds = {"temperature": settings.temperature, "max_tokens": bound}
    sent = {name: omit if value is None else value for name, value in bounds.items()}

    def make(client: AsyncOpenAI) -> Any:
        return factory(settings.model, client=client, max_retries=_ONCE_MORE, **sent)

    return RagasModel(settings, make, **options)


def ragas_embedding_model(embedding: Any, **options: Unpack[AskingOptions]) -> RagasModel:
    """Return the embedding model that ragas asks, as ``ragas_chat_model`` does."""
    kind = ragas_module("ragas.embeddings").OpenAIEmbeddings
    settings = _checked(embedding, EmbeddingConfig, "llm.embedding")

    def make(client: AsyncOpenAI) -> Any:
        return kind(client=client, model=settings.model)

    return RagasModel(settings, make, **options)


def _checked(section: Any, kind: type[Any], key: str) -> Any:
    if isinstance(section, str):
        section = kind.model_validate(named_settings(section))
    if isinstance(section, kind) and is_openai_compatible(section):
        return section
    name = model_name_of(section) if isinstance(section, kind) else type(section).__name__
    raise ConfigError(
        f"ragas asks models behind OpenAI-compatible endpoints only, and {name} is none",
        key=ENGINE_KEY,
        hint=f"Name such a model in {key}, with its base_url, or leave engine out.",
    )


class _RagasMetric:
    """A metric of ragas; ``embeddings`` only where it needs them."""

    _name = ""

    def __init__(self, llm: RagasModel, embeddings: RagasModel | None = None) -> None:
        self._kind = getattr(ragas_module("ragas.metrics.collections"), self._name)
        self._models = {"llm": llm} if embeddings is None else {"llm": llm, "embeddings": embeddings}

    async def _score(self, **asked: Any) -> JudgeScore:
        account = Account()
        token = ACCOUNT.set(account)
        try:
            metric = self._kind(**{name: await model.get() for name, model in self._models.items()})
            value = float((await metric.ascore(**asked)).value)
        except Exception as problem:
            failure = account.failure or JudgeError(f"ragas gave no score: {masked_error_text(_first_cause(problem))}")
            raise paid_error(failure, account.costs) from problem
        finally:
            ACCOUNT.reset(token)
        if not math.isfinite(value):
            raise paid_error(JudgeError("ragas gave no number for a score"), account.costs)
        return JudgeScore(value, None, total_cost(account.costs))

    async def _contexts_score(self, contexts: Sequence[str | None], **asked: str) -> JudgeScore:
        texts = given_contexts(contexts)
        if not texts:
            return JudgeScore(0.0, "Nothing was retrieved.", 0.0)
        if not any(texts):
            return JudgeScore(None, "No retrieved context has a text.", 0.0)
        given = {name: sendable_text(given_text(name, text)) for name, text in asked.items()}
        return await self._score(retrieved_contexts=[sendable_text(text) for text in texts], **given)


class _ReferenceMetric(_RagasMetric):
    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score; see the metric of this name in ``judges``."""
        return await self._contexts_score(retrieved_contexts, user_input=user_input, reference=reference)


class ContextRecall(_ReferenceMetric):
    """The share of the statements of the reference that the contexts support."""

    _name = "ContextRecall"


class ContextPrecision(_ReferenceMetric):
    """The mean of precision@k over the ranks of the contexts that are of use for the reference."""

    _name = "ContextPrecision"


class ContextUtilization(_RagasMetric):
    """Context precision with the actual answer in place of a reference."""

    _name = "ContextUtilization"

    async def ascore(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score; see ``judges.ContextUtilization``."""
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        return await self._contexts_score(retrieved_contexts, user_input=user_input, response=response)


class AnswerRelevance(_RagasMetric):
    """ragas' answer relevancy."""

    _name = "AnswerRelevancy"

    async def ascore(self, *, user_input: str, response: str) -> JudgeScore:
        """Return the score; see ``judges.AnswerRelevance``."""
        question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        answer = given_text("response", response)
        return await self._score(user_input=sendable_text(question), response=sendable_text(answer))


def _first_cause(problem: BaseException) -> BaseException:
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
