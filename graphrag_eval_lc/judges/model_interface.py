"""What a judge asks a model through: the models' interface, the places they share, and what goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from graphrag_eval_lc.errors import JudgeError, OptionError

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
        """Return the vectors of texts in one request.

        Raises:
            JudgeError: There are none that can be used.
        """
        ...


class BrokenAnswerError(Exception):
    """A server answered with something that is no answer, which may pass when it is asked again."""


class UnusableAnswerError(JudgeError):
    """A model's answer cannot be used, and may have been paid for nevertheless.

    Attributes:
        cost: USD of what was paid in vain: 0.0 where nothing was, None where it cannot be priced.
        usages: What each of these requests reported.
    """

    def __init__(
        self, what: str, *, hint: str | None = None, cost: float | None = 0.0, usages: Sequence[Usage] = ()
    ) -> None:
        super().__init__(what, hint=hint)
        self.cost = cost
        self.usages = tuple(usages)


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None where one is unknown.

    Example:
        >>> total_cost([0.5, 0.25]), total_cost([0.5, None]), total_cost([])
        (0.75, None, 0.0)
    """
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def paid_error(error: JudgeError, costs: Iterable[float | None]) -> UnusableAnswerError:
    """Return an error with all that was paid in vain: the error's own cost and ``costs``.

    Example:
        >>> paid_error(JudgeError("refused"), [0.5]).cost
        0.5
    """
    cost = total_cost([cost_of(error), *costs])
    return UnusableAnswerError(error.what, hint=error.hint, cost=cost, usages=getattr(error, "usages", ()))


def cost_of(error: BaseException) -> float | None:
    """Return the USD paid in vain, as the error says; 0.0 where it says nothing."""
    return error.cost if isinstance(error, UnusableAnswerError) else 0.0


_FACTORIES = "graphrag_eval_lc.judges.models"


def given_judge_model(llm: Any) -> JudgeModel:
    """Return the chat model to ask: ``llm`` itself, or what ``as_judge_model`` makes of it."""
    if hasattr(llm, "aask"):
        model: JudgeModel = llm
    else:
        model = import_module(_FACTORIES).as_judge_model(llm)
    return model


def given_embedding_model(embeddings: Any) -> EmbeddingModel:
    """Return the embedding model to ask: ``embeddings`` itself, or what ``as_embedding_model`` makes of it."""
    if hasattr(embeddings, "aembed"):
        model: EmbeddingModel = embeddings
    else:
        model = import_module(_FACTORIES).as_embedding_model(embeddings)
    return model


class CallPool:
    """The places for requests, shared by all models of a run.

    It may serve several event loops, one after the other: it belongs to the one in which it was used last.

    Args:
        max_concurrency: The number of places, at least 1.

    Raises:
        OptionError: There is no place.
    """

    def __init__(self, max_concurrency: int) -> None:
        if max_concurrency < 1:
            raise OptionError(f"max_concurrency is at least 1, not {max_concurrency}")
        self.max_concurrency = max_concurrency
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(max_concurrency)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._places = loop, asyncio.Semaphore(self.max_concurrency)
        async with self._places:
            yield
