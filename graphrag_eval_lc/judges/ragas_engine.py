"""The engine ``ragas``: ragas computes the metrics, with the models, cache and prices of the judges."""

import math
import os
from collections import Counter
from collections.abc import Awaitable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from graphrag_eval_lc.errors import ConfigError, JudgeError, MissingExtraError
from graphrag_eval_lc.judges.metrics import given_contexts, unscored_contexts
from graphrag_eval_lc.judges.model_interface import (
    Answer,
    Asked,
    EmbeddingModel,
    JudgeModel,
    JudgeScore,
    Value,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.models import as_embedding_model, as_judge_model
from graphrag_eval_lc.judges.prompts import given_text, sendable_text
from graphrag_eval_lc.retrying import masked_error_text

_SYSTEM = "You evaluate texts. Do what the message asks, and nothing else."


def ragas_module(name: str) -> ModuleType:
    """Return a module of ragas, such as ``ragas.llms``, without telemetry unless the environment allows it."""
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    try:
        import_module("ragas")
        return import_module(name)
    except Exception as problem:  # of all the packages that it imports
        if isinstance(problem, ModuleNotFoundError) and problem.name == "ragas":
            raise MissingExtraError("judges.engine: ragas", "ragas", "ragas") from None
        raise ConfigError(
            f"ragas is installed and cannot be imported: {masked_error_text(problem)}",
            key="judges.engine",
            hint="Run: pip install 'graphrag-eval-lc[ragas]', or leave engine out.",
        ) from problem


class _Models:
    """The models that ragas asks for one score, the costs, and the original error, which ragas may wrap."""

    def __init__(self, llm: JudgeModel, embeddings: EmbeddingModel | None) -> None:
        self._llm = llm
        self._embeddings = embeddings
        self._asked: Counter[str] = Counter()
        self.costs: list[float | None] = []
        self.failure: JudgeError | None = None

    async def answer(self, prompt: str, form: type[Answer]) -> Answer:
        """Return an answer to a prompt. A repeated prompt is numbered, as ragas wants another answer then."""
        self._asked[prompt] += 1
        number = self._asked[prompt]
        system = _SYSTEM if number == 1 else f"{_SYSTEM} This is attempt {number}: answer in other words."
        return (await self._paid(self._llm.aask(system, sendable_text(prompt), form))).value

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        assert self._embeddings is not None
        embedded = await self._paid(self._embeddings.aembed([sendable_text(text) for text in texts]))
        return list(map(list, embedded.value))

    async def _paid(self, request: Awaitable[Asked[Value]]) -> Asked[Value]:
        try:
            outcome = await request
        except JudgeError as problem:
            self.failure = problem
            raise
        self.costs.append(outcome.cost)
        return outcome


@cache
def _kinds() -> tuple[type[Any], type[Any]]:
    """Return model classes for ragas, made here because ragas is imported only if it is used."""
    chat_base: Any = ragas_module("ragas.llms.base").InstructorBaseRagasLLM
    embedding_base: Any = ragas_module("ragas.embeddings.base").BaseRagasEmbedding

    class ChatModel(chat_base):  # type: ignore[misc]
        def __init__(self, models: _Models) -> None:
            self._models = models

        def generate(self, prompt: str, response_model: type[Any]) -> Any:
            raise NotImplementedError("the judges ask without waiting")

        async def agenerate(self, prompt: str, response_model: type[Any]) -> Any:
            return await self._models.answer(prompt, response_model)

    class Embedding(embedding_base):  # type: ignore[misc]
        def __init__(self, models: _Models) -> None:
            super().__init__()
            self._models = models

        def embed_text(self, text: str, **_: Any) -> list[float]:
            raise NotImplementedError("the judges ask without waiting")

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return (await self._models.vectors([text]))[0]

        async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
            return await self._models.vectors(texts)

    return ChatModel, Embedding


class _RagasMetric:
    """A metric of ragas, like that of the same name in ``judges``. Without ragas: ConfigError or MissingExtraError."""

    _name = ""

    def __init__(self, llm: Any, embeddings: Any = None) -> None:
        self._kind = getattr(ragas_module("ragas.metrics.collections"), self._name or type(self).__name__)
        self._llm = as_judge_model(llm)
        self._embeddings = None if embeddings is None else as_embedding_model(embeddings)

    async def ascore(self, *, user_input: str, **asked: Any) -> JudgeScore:
        """Return the score."""
        given: dict[str, Any] = {}
        if not str(asked.get("response", "-")).strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        if "retrieved_contexts" in asked:
            given["retrieved_contexts"] = texts = given_contexts(asked.pop("retrieved_contexts"))
            if not any(texts):
                return unscored_contexts(texts)
        given |= {name: given_text(name, text) for name, text in {"user_input": user_input, **asked}.items()}
        models = _Models(self._llm, self._embeddings)
        chat_model, embedding = _kinds()
        made = {"llm": chat_model(models)} | ({} if self._embeddings is None else {"embeddings": embedding(models)})
        try:
            value = float((await self._kind(**made).ascore(**given)).value)
        except Exception as problem:  # of ragas, which may wrap that of a model
            failure = models.failure or JudgeError(f"ragas returned no score: {masked_error_text(problem)}")
            raise paid_error(failure, models.costs) from problem
        if not math.isfinite(value):
            raise paid_error(JudgeError("ragas returned no number for a score"), models.costs)
        return JudgeScore(value, None, total_cost(models.costs))


class ContextRecall(_RagasMetric):
    """The share of the statements of the reference that the contexts support."""


class ContextPrecision(_RagasMetric):
    """The mean of precision@k over the ranks of the contexts that are useful for the reference."""


class ContextUtilization(_RagasMetric):
    """Context precision with the actual answer in place of a reference."""


class AnswerRelevance(_RagasMetric):
    """ragas' answer relevancy."""

    _name = "AnswerRelevancy"
