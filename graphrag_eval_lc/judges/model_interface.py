"""The interface between judges and models: protocols, answers, costs, errors, and the places that requests share."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from graphrag_eval_lc.errors import JudgeError, OptionError

Answer = TypeVar("Answer", bound=BaseModel)
Value = TypeVar("Value")
Vectors = tuple[tuple[float, ...], ...]
Usage = Mapping[str, Any]
"""The model and the tokens of one request, by the keys of ``llm_calls``; what the provider did not report is absent."""


class ClosedAnswer(BaseModel):
    """The form of an answer without further keys. Its docstring and those of its parts are sent with the schema."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Value]):
    """The answer of a model: a value of the form, or the vectors of texts.

    Attributes:
        value: The answer.
        cost: USD of all requests paid for it, repeated ones too; None if one cannot be priced.
        usages: The usage of each of these requests.
        is_cached: Whether it comes from the cache, or from an equal request in flight.
        is_planned: Whether nothing was asked, and the answer is an example.
    """

    value: Value
    cost: float | None
    usages: tuple[Usage, ...] = ()
    is_cached: bool = False
    is_planned: bool = False


class JudgeModel(Protocol):
    """A chat model that answers in a given form.

    Attributes:
        name: Its name in messages and in the cache, such as ``openai:gpt-4o-mini``.
    """

    name: str

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Ask for an answer of the form ``schema``.

        Args:
            system: The system message.
            user: The user's message.
            schema: The form.

        Raises:
            JudgeError: The model returned no usable answer.
        """
        ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors.

    Attributes:
        name: Its name in messages and in the cache.
    """

    name: str

    async def aembed(self, texts: Sequence[str]) -> "Asked[Vectors]":
        """Return the vectors of texts in one request.

        Raises:
            JudgeError: The model returned no usable vectors.
        """
        ...


class BrokenAnswerError(Exception):
    """A server's response is not an answer; a retry may help.

    Attributes:
        status_code: The HTTP status that an error in a response with status 200 means; None if it names none.
        body: That error.
    """

    def __init__(self, what: str, *, status_code: int | None = None, body: Any = None) -> None:
        super().__init__(what)
        self.status_code = status_code
        self.body = body


class UnusableAnswerError(JudgeError):
    """A model returned no usable answer, which may have cost something all the same.

    Attributes:
        cost: USD paid in vain; 0.0 if nothing was paid, None if it cannot be priced.
    """

    def __init__(self, what: str, *, hint: str | None = None, cost: float | None = 0.0) -> None:
        super().__init__(what, hint=hint)
        self.cost = cost


class NotAskedError(UnusableAnswerError):
    """A request was not sent, as no more may be spent or the model refuses everything; others may have been paid."""


class GivenUpError(NotAskedError):
    """A request was not sent, as the model refuses everything, such as a wrong key."""


class CutAnswerError(UnusableAnswerError):
    """A model did not come to the end of its answer within the tokens that it has."""


class TooLongError(UnusableAnswerError):
    """The texts of a request are too long for the model."""


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None if one is unknown.

    It is summed exactly and rounded once, so that the order in which requests were answered changes no digit of it.

    Example:
        >>> total_cost([0.5, 0.25]), total_cost([0.5, None]), total_cost([])
        (0.75, None, 0.0)
    """
    all_costs = list(costs)
    known = [cost for cost in all_costs if cost is not None]
    return math.fsum(known) if len(known) == len(all_costs) else None


def paid_error(error: JudgeError, costs: Iterable[float | None]) -> UnusableAnswerError:
    """Return an error of the same kind with all that was paid in vain: its own cost and ``costs``.

    Example:
        >>> paid_error(JudgeError("refused"), [0.5]).cost
        0.5
    """
    kind = type(error) if isinstance(error, UnusableAnswerError) else UnusableAnswerError
    return kind(error.what, hint=error.hint, cost=total_cost([cost_of(error), *costs]))


def cost_of(error: BaseException) -> float | None:
    """Return the USD paid in vain, as the error says; 0.0 if it says nothing."""
    return error.cost if isinstance(error, UnusableAnswerError) else 0.0


class CallPool:
    """The places for requests, shared by all models of a run.

    It may serve several event loops, one after the other: it belongs to the one in which it was used last.

    Args:
        max_concurrency: The number of places, at least 1.

    Raises:
        OptionError: It is less than 1.
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
