"""A judge's embedding model behind an OpenAI-compatible endpoint."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Unpack

from openai import APIStatusError

from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.cached_embedding_model import CachedEmbeddingModel, Vectors, check_vectors
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.openai_client import (
    ModelSettings,
    answer_settings,
    model_name_of,
    openai_client,
    posted,
)
from graphrag_eval_lc.judges.packed_vectors import unpacked
from graphrag_eval_lc.judges.usage import usage_in


class OpenAIEmbeddingModel(CachedEmbeddingModel):
    """An embedding model behind an OpenAI-compatible endpoint; vectors come as base64 where it has that.

    Args:
        embedding: The section ``llm.embedding`` of the config.
        **options: How it is asked.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(
        self,
        embedding: ModelSettings,
        **options: Unpack[AskingOptions],
    ) -> None:
        super().__init__(
            model_name_of(embedding),
            embedding.model,
            embedding.provider,
            answer_settings(embedding),
            **options,
        )
        self._embedding = embedding
        self._client = openai_client(embedding)
        self._encoding: Literal["base64", "float"] = "base64"

    async def aclose(self) -> None:
        """Close its connections; a loop that ends does so as well."""
        await self._client.aclose()

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        try:
            return await self._calls.outcome_of(lambda: self._answered(texts, paid))
        except APIStatusError as refusal:
            if refusal.status_code not in {400, 422} or self._encoding == "float" or "encoding" not in str(refusal):
                raise
        self._encoding = "float"
        return await self._calls.outcome_of(lambda: self._answered(texts, paid))

    async def _answered(self, texts: list[str], paid: list[Usage]) -> Vectors:
        client = await self._client.get()
        request = {"model": self._model, "input": texts, "encoding_format": self._encoding}
        body = await posted(client, "/embeddings", request, self._embedding)
        if body.get("data") or body.get("usage"):
            paid.append(replace(usage_in(body), output_tokens=0))
        vectors = _vectors_in(body)
        check_vectors(vectors, len(texts))
        return vectors


def _vectors_in(body: Mapping[str, Any]) -> Vectors:
    """Give the vectors of a response in the order of their indices."""
    try:
        entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
        return tuple(_vector(entry["embedding"]) for _, entry in entries)
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint gave embeddings that cannot be read: {problem}") from None


def _vector(embedding: Any) -> tuple[float, ...]:
    return unpacked(embedding) if isinstance(embedding, str) else tuple(float(number) for number in embedding)
