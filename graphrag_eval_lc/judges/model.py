"""The door through which every judge asks a model: what is asked, what comes back, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one request reported of its tokens; None: not reported.

    Attributes:
        model: The model that answered.
        input_tokens: Tokens of the prompt, cached ones included; of the texts for embeddings.
        output_tokens: Tokens of the answer; 0 for embeddings.
        cached_input_tokens: Those of the prompt that the provider had in its cache.
        cache_write_input_tokens: Those that it wrote to its cache.
        cache_write_1h_input_tokens: Those of the written ones that it keeps for an hour.
    """

    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_write_1h_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Asked(Generic[Answer]):
    """What a model answered.

    Attributes:
        values: The answers, as many as were asked for.
        cost: USD of all requests that were paid for them, those asked again included; None where one cannot be priced.
        usages: What each of these requests reported.
        is_cached: Whether nothing was asked now, as the answers were known from an earlier run.
    """

    values: tuple[Answer, ...]
    cost: float | None
    usages: tuple[Usage, ...] = ()
    is_cached: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of texts.

    Attributes:
        vectors: One for each text, in their order.
        cost: USD; None where it cannot be priced.
        usages: What each request reported.
        is_cached: Whether nothing was asked now.
    """

    vectors: tuple[tuple[float, ...], ...]
    cost: float | None
    usages: tuple[Usage, ...] = ()
    is_cached: bool = False


class JudgeModel(Protocol):
    """A chat model that answers in a given form.

    Attributes:
        name: What it is called in messages and in the cache, such as ``openai:gpt-4o-mini``.
    """

    name: str

    async def aask(self, system: str, user: str, schema: type[Answer], *, n: int = 1) -> Asked[Answer]:
        """Ask for ``n`` answers of the form ``schema``.

        Raises:
            JudgeError: There is no answer that can be used.
        """
        ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors.

    Attributes:
        name: What it is called in messages and in the cache.
    """

    name: str

    async def aembed(self, texts: Sequence[str]) -> Embedded:
        """Give the vectors of texts in one request.

        Raises:
            JudgeError: There are none that can be used.
        """
        ...
