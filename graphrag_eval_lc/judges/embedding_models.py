"""Embedding models of judges, of OpenAI-compatible endpoints or LangChain: vectors are checked, cached and priced."""

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from struct import error as struct_error
from struct import iter_unpack, pack
from typing import Any, Literal, Unpack

from langchain_core.embeddings import Embeddings

from graphrag_eval_lc.config import EmbeddingConfig
from graphrag_eval_lc.error_bodies import words_of
from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions, ModelDescription, usage_in
from graphrag_eval_lc.judges.model_interface import Asked, BrokenAnswerError, Usage
from graphrag_eval_lc.judges.openai_models import Endpoint, description_of
from graphrag_eval_lc.judges.request_plan import RequestPlan, size_of
from graphrag_eval_lc.retrying import status_of

Vector = tuple[float, ...]
Vectors = tuple[Vector, ...]


class CachedEmbeddingModel(AskedModel, ABC):
    """An embedding model of judges."""

    @abstractmethod
    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        """Return the vectors of one request, and add its usage to ``paid``."""

    async def aembed(self, texts: Sequence[str]) -> Asked[Vector]:
        """Return the vectors of texts in one request.

        Raises:
            UnusableAnswerError: There are no usable vectors; it has the cost.
        """
        if not texts:
            return Asked((), 0.0)

        def read(record: Mapping[str, Any]) -> Vectors:
            vectors = tuple(unpacked(text, "d") for text in record["vectors"])
            if len(vectors) != len(texts):
                raise ValueError("another number of vectors")
            return vectors

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], Vectors]:
            vectors = await self._vectors(list(texts), paid)
            packed = [base64.b64encode(pack(f"<{len(vector)}d", *vector)).decode() for vector in vectors]
            return {"vectors": packed}, vectors

        def planned(plan: RequestPlan, digest: str) -> Vectors:
            if not plan.is_known(digest):
                plan.add(self.described.model, self.described.provider, [size_of({"input": list(texts)})], 0)
            return ((1.0,),) * len(texts)

        return await self._through_cache({"texts": list(texts)}, read, request, planned)


def check_vectors(vectors: Sequence[Sequence[float]], count: int) -> None:
    """Check that there are as many vectors as texts, of one length and of finite numbers.

    Raises:
        BrokenAnswerError: There are not.
    """
    if len(vectors) != count:
        raise BrokenAnswerError(f"the endpoint gave {len(vectors)} embeddings for {count} texts")
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise BrokenAnswerError(f"the endpoint gave embeddings of {sorted(lengths)} numbers")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise BrokenAnswerError("the endpoint gave an embedding with a number that is not finite")


def unpacked(text: str, kind: str) -> Vector:
    """Return the numbers in base64 of little-endian floats, ``f`` of 32 bits or ``d`` of 64.

    Raises:
        ValueError: The text is none.

    Example:
        >>> unpacked("AAAAPwAAgD8=", "f")
        (0.5, 1.0)
    """
    try:
        return tuple(number for (number,) in iter_unpack(f"<{kind}", base64.b64decode(text, validate=True)))
    except struct_error as problem:
        raise ValueError(str(problem)) from None


class OpenAIEmbeddingModel(CachedEmbeddingModel):
    """An embedding model behind an OpenAI-compatible endpoint; vectors come as base64 if the endpoint can.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(self, embedding: EmbeddingConfig, **options: Unpack[AskingOptions]) -> None:
        super().__init__(description_of(embedding), **options)
        self._endpoint = Endpoint(embedding)
        self._encoding: Literal["base64", "float"] = "base64"

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._endpoint.aclose()

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        request = {"model": self.described.model, "input": texts, **self._endpoint.added_to_body}
        try:
            encoded = {**request, "encoding_format": self._encoding}
            return await self._sent(encoded, partial(self._answered, encoded), paid)
        except Exception as refusal:
            is_of_encoding = status_of(refusal) in {400, 422} and "encoding" in words_of(refusal)
            if self._encoding == "float" or not is_of_encoding:
                raise
        self._encoding = "float"
        encoded = {**request, "encoding_format": "float"}
        return await self._sent(encoded, partial(self._answered, encoded), paid)

    async def _answered(self, request: dict[str, Any], paid: list[Usage]) -> Vectors:
        body = await self._endpoint.post("/embeddings", request)
        if body.get("data") or body.get("usage"):
            paid.append(replace(usage_in(body), output_tokens=0))
        vectors = _vectors_in(body)
        check_vectors(vectors, len(request["input"]))
        return vectors


def _vectors_in(body: Mapping[str, Any]) -> Vectors:
    """Return the vectors of a response in the order of their indices."""
    try:
        entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
        return tuple(_vector(entry["embedding"]) for _, entry in entries)
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint gave embeddings that cannot be read: {problem}") from None


def _vector(embedding: Any) -> tuple[float, ...]:
    return unpacked(embedding, "f") if isinstance(embedding, str) else tuple(float(number) for number in embedding)


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
        return await self._sent({"input": texts}, partial(self._answered, texts), paid)

    async def _answered(self, texts: list[str], paid: list[Usage]) -> Vectors:
        close_connections_of_resting_loops()
        vectors = tuple(tuple(map(float, vector)) for vector in await self._embeddings.aembed_documents(texts))
        paid.append(Usage(None, None, None))
        check_vectors(vectors, len(texts))
        return vectors
