"""The engine ``ragas``: what contexts are worth and whether answers are relevant, computed by ragas itself."""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from openai import AsyncOpenAI, omit

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError, JudgeError
from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.context_precision import given_contexts
from graphrag_eval_lc.judges.models import is_openai_compatible, named_settings
from graphrag_eval_lc.judges.prompts import given_text, sendable_text
from graphrag_eval_lc.judges.ragas_client import ACCOUNT, Account, RagasModel
from graphrag_eval_lc.judges.ragas_import import ENGINE_KEY, ragas_module
from graphrag_eval_lc.judges.scores import JudgeScore, paid_error, total_cost
from graphrag_eval_lc.retrying import error_text

_ONCE_MORE = 1  # an answer that breaks the schema is asked again once


def ragas_chat_model(generation: Any, **options: Unpack[AskingOptions]) -> RagasModel:
    """Give the chat model that ragas asks.

    What the config does not set is as ragas has it, but for temperature and max_tokens, which are then not sent.

    Args:
        generation: The section ``llm.generation`` of the config.
        **options: How it is asked.

    Raises:
        ConfigError: ragas cannot be used, or the model is not behind an OpenAI-compatible endpoint.
        MissingExtraError: ragas is not installed.
    """
    factory = ragas_module("ragas.llms").llm_factory
    settings = _checked(generation, GenerationConfig, "llm.generation")
    bounds = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    sent = {name: omit if value is None else value for name, value in bounds.items()}

    def make(client: AsyncOpenAI) -> Any:
        return factory(settings.model, client=client, max_retries=_ONCE_MORE, **sent)

    return RagasModel(settings, make, **options)


def ragas_embedding_model(embedding: Any, **options: Unpack[AskingOptions]) -> RagasModel:
    """Give the embedding model that ragas asks; otherwise as ``ragas_chat_model``."""
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
    name = f"{section.provider}:{section.model}" if isinstance(section, kind) else type(section).__name__
    raise ConfigError(
        f"ragas asks models behind OpenAI-compatible endpoints only, and {name} is none",
        key=ENGINE_KEY,
        mend=f"Name such a model in {key}, with its base_url, or leave engine out.",
    )


class _RagasMetric:
    """A metric of ragas.

    Args:
        llm: The chat model.
        embeddings: The embedding model, where the metric needs one.
    """

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
            failure = account.failure or JudgeError(f"ragas gave no score: {error_text(_first_cause(problem))}")
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


class ContextRecall(_RagasMetric):
    """The share of the statements of the reference that the contexts support."""

    _name = "ContextRecall"

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Give the score; see ``judges.ContextRecall``."""
        return await self._contexts_score(retrieved_contexts, user_input=user_input, reference=reference)


class ContextPrecision(_RagasMetric):
    """The mean of precision@k over the ranks of the contexts that are of use for the reference."""

    _name = "ContextPrecision"

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Give the score; see ``judges.ContextPrecision``."""
        return await self._contexts_score(retrieved_contexts, user_input=user_input, reference=reference)


class ContextUtilization(_RagasMetric):
    """Context precision with the actual answer in place of a reference."""

    _name = "ContextUtilization"

    async def ascore(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Give the score; see ``judges.ContextUtilization``."""
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        return await self._contexts_score(retrieved_contexts, user_input=user_input, response=response)


class AnswerRelevance(_RagasMetric):
    """ragas' answer relevancy."""

    _name = "AnswerRelevancy"

    async def ascore(self, *, user_input: str, response: str) -> JudgeScore:
        """Give the score; see ``judges.AnswerRelevance``."""
        question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        answer = given_text("response", response)
        return await self._score(user_input=sendable_text(question), response=sendable_text(answer))


def _first_cause(problem: BaseException) -> BaseException:
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
