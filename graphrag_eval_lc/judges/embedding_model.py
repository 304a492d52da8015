"""The base of all embedding models of judges: vectors are checked, cached and priced."""

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from struct import error as struct_error
from struct import iter_unpack, pack
from typing import Any

from graphrag_eval_lc.judges.model import AskedModel
from graphrag_eval_lc.judges.model_interface import Asked, BrokenAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, size_of

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
            return {"vectors": [packed(vector) for vector in vectors]}, vectors

        def planned(plan: RequestPlan, digest: str) -> Vectors:
            if not plan.is_known(digest):
                plan.add(self._model, self._provider, [size_of({"input": list(texts)})], 0)
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


def unpacked(text: str, kind: str) -> tuple[float, ...]:
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


def packed(vector: Sequence[float]) -> str:
    """Return the base64 of a vector, 64 bits a number.

    Example:
        >>> unpacked(packed((0.1, 1.0)), "d")
        (0.1, 1.0)
    """
    return base64.b64encode(pack(f"<{len(vector)}d", *vector)).decode()
