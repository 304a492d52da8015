"""The base of all embedding models of judges: vectors are checked, cached and priced."""

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from struct import pack, unpack

from graphrag_eval_lc.judges.asked_model import AskedModel
from graphrag_eval_lc.judges.model_calls import RequestSize, size_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, Embedded, Usage

Vectors = tuple[tuple[float, ...], ...]


class CachedEmbeddingModel(AskedModel, ABC):
    """An embedding model of judges."""

    @abstractmethod
    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        """Return the vectors of one request, and add its usage to ``paid``."""

    async def aembed(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of texts in one request.

        Raises:
            UnusableAnswerError: There are no usable vectors; it has the cost.
        """
        if not texts:
            return Embedded((), 0.0)
        digest = self._digest({"texts": list(texts)})
        known = self._known(digest, len(texts))
        if known is not None:
            return known
        if self._plan is not None:
            if not self._plan.is_known(digest):
                self._plan.add(self._model, self._provider, [self._size(list(texts))], 0)
            return Embedded(((1.0,),) * len(texts), 0.0)
        return await self._shared(digest, lambda: self._embedded(digest, list(texts)))

    @staticmethod
    def _size(texts: list[str]) -> RequestSize:
        return size_of({"input": texts}, 0)

    async def _embedded(self, digest: str, texts: list[str]) -> Embedded:
        paid: list[Usage] = []
        vectors = await self._outcome(self._vectors(texts, paid), paid)
        usages, cost = [asdict(usage) for usage in paid], self._cost(paid)
        self._keep(digest, {"vectors": [packed(vector) for vector in vectors], "usages": usages}, cost)
        return Embedded(vectors, cost, tuple(paid))

    def _known(self, digest: str, count: int) -> Embedded | None:
        record = self._record(digest)
        if record is None:
            return None
        try:
            vectors = tuple(unpacked(text, kind) for kind, text in record["vectors"])
            usages = tuple(Usage(**usage) for usage in record["usages"])
        except (ValueError, KeyError, TypeError):  # of another version, or changed by hand
            return None
        if len(vectors) != count:
            return None
        return Embedded(vectors, self._known_cost(usages, digest), usages, is_cached=True)


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


_BYTES = {"f": 4, "d": 8}


def unpacked(text: str, kind: str = "f") -> tuple[float, ...]:
    """Return the numbers in base64 of little-endian floats, ``f`` of 32 bits or ``d`` of 64.

    Raises:
        ValueError: The text is none.

    Example:
        >>> unpacked("AAAAPwAAgD8=")
        (0.5, 1.0)
    """
    content = base64.b64decode(text, validate=True)
    count, rest = divmod(len(content), _BYTES[kind])
    if rest:
        raise ValueError(f"{len(content)} bytes are no vector")
    return unpack(f"<{count}{kind}", content)


def packed(vector: Sequence[float]) -> tuple[str, str]:
    """Return the kind and the base64 of a vector: 32 bits where they hold it exactly, else 64.

    Example:
        >>> packed((0.5, 1.0))
        ('f', 'AAAAPwAAgD8=')
    """
    kind = "f" if _fits_32_bits(vector) else "d"
    return kind, base64.b64encode(pack(f"<{len(vector)}{kind}", *vector)).decode()


def _fits_32_bits(vector: Sequence[float]) -> bool:
    form = f"<{len(vector)}f"
    try:
        return unpack(form, pack(form, *vector)) == tuple(vector)
    except OverflowError:
        return False
