"""Embedding models of judges, of OpenAI-compatible endpoints or LangChain: vectors are checked, cached and priced."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from langchain_core.embeddings import Embeddings

from graphrag_eval_lc.config import EmbeddingConfig
from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions, ModelDescription, usage_in
from graphrag_eval_lc.judges.model_interface import Asked, BrokenAnswerError, Usage, Vectors
from graphrag_eval_lc.judges.openai_models import Endpoint, description_of
from graphrag_eval_lc.judges.request_plan import RequestPlan, size_of
from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS


class CachedEmbeddingModel(AskedModel, ABC):
    """An embedding model of judges."""

    @abstractmethod
    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        """Return the vectors of one request, and add its usage to ``paid``."""

    async def aembed(self, texts: Sequence[str]) -> Asked[Vectors]:
        """Return the vectors of texts in one request.

        Raises:
            UnusableAnswerError: The model returned no usable vectors; it has the cost.
        """
        if not texts:
            return Asked((), 0.0)
        body = {"input": list(texts)}

        def read(record: Mapping[str, Any]) -> Vectors:
            return checked_vectors(record["vectors"], len(texts))

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], Vectors]:
            async def send(usages: list[Usage]) -> Vectors:
                return checked_vectors(await self._vectors(list(texts), usages), len(texts))

            vectors = await self._sent(body, send, paid)
            return {"vectors": vectors}, vectors

        def planned(plan: RequestPlan, digest: str) -> Vectors:
            plan.add(digest, self.described.model, self.described.provider, size_of(body))
            return ((1.0,),) * len(texts)

        return await self._through_cache({"texts": list(texts)}, read, request, planned)


def checked_vectors(vectors: Sequence[Sequence[float]], count: int) -> Vectors:
    """Return as many vectors as texts, of one length and of finite numbers.

    Raises:
        BrokenAnswerError: They are not.

    Example:
        >>> checked_vectors([[1, 0.5]], 1)
        ((1.0, 0.5),)
    """
    try:
        found = tuple(tuple(map(float, vector)) for vector in vectors)
    except (TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint returned embeddings that cannot be read: {problem}") from None
    if len(found) != count:
        raise BrokenAnswerError(f"the endpoint returned {len(found)} embeddings for {count} texts")
    lengths = {len(vector) for vector in found}
    if len(lengths) != 1 or 0 in lengths:
        raise BrokenAnswerError(f"the endpoint returned embeddings of {sorted(lengths)} numbers")
    if not all(math.isfinite(number) for vector in found for number in vector):
        raise BrokenAnswerError("the endpoint returned an embedding with a number that is not finite")
    return found


class OpenAIEmbeddingModel(CachedEmbeddingModel):
    """An embedding model behind an OpenAI-compatible endpoint.

    Raises:
        ConfigError: The API key is missing.
    """

    def __init__(self, embedding: EmbeddingConfig, **options: Unpack[AskingOptions]) -> None:
        super().__init__(description_of(embedding), **options)
        self._endpoint = Endpoint(embedding)

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._endpoint.aclose()

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        request = {"model": self.described.model, "input": texts, "encoding_format": "float"}
        body = await self._endpoint.post("/embeddings", {**request, **self._endpoint.added_to_body})
        if body.get("data") or body.get("usage"):
            paid.append({**usage_in(body), OUTPUT_TOKENS: 0})
        try:
            entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
            return tuple(entry["embedding"] for _, entry in entries)
        except (AttributeError, LookupError, TypeError) as problem:
            raise BrokenAnswerError(f"the endpoint returned embeddings that cannot be read: {problem}") from None


class LangChainEmbeddingModel(CachedEmbeddingModel):
    """An embedding model of LangChain. It reports no tokens, so its cost is unknown."""

    def __init__(self, embeddings: Embeddings, **options: Unpack[AskingOptions]) -> None:
        model = str(getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None) or "")
        kind = type(embeddings).__name__
        settings = {name: getattr(embeddings, name, None) for name in ("dimensions", "base_url", "openai_api_base")}
        name = f"{kind}:{model}" if model else kind
        super().__init__(ModelDescription(name, model or kind, None, settings), **options)
        self._embeddings = embeddings

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        close_connections_of_resting_loops()
        vectors = await self._embeddings.aembed_documents(texts)
        paid.append({})
        return tuple(map(tuple, vectors))
