"""What all models of judges share: their places, retries, prices and cache."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from graphrag_eval_lc.errors import JudgeError, RunFolderError
from graphrag_eval_lc.judges.call_pool import CallPool
from graphrag_eval_lc.judges.judge_problems import UnusableAnswerError
from graphrag_eval_lc.judges.known_costs import note_known_cost
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.model_calls import ModelCalls
from graphrag_eval_lc.judges.request_digest import request_digest
from graphrag_eval_lc.judges.usage import usages_cost
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.retrying import error_text

Outcome = TypeVar("Outcome")

_log = logging.getLogger(__name__)

_DEFAULT_CONCURRENCY = 16
_DEFAULT_RETRIES = 3
_DEFAULT_TIMEOUT_SEC = 120.0
_MENDS = {
    401: "Check the API key.",
    403: "Check what the API key may do.",
    404: "Check the name of the model, and base_url.",
}


class AnswerCache(Protocol):
    """Where answers are kept from one run to the next."""

    def get(self, digest: str) -> Mapping[str, Any] | None:
        """Give the record of a request; None where there is none."""

    def put(self, digest: str, record: Mapping[str, Any]) -> None:
        """Keep the record of a request."""


class AskingOptions(TypedDict, total=False):
    """How a model is asked.

    Attributes:
        pool: The places for requests; None, the default: 16 of its own.
        pricing: The prices; None, the default: those that are known.
        cache: Where answers are kept; None, the default: nowhere.
        max_retries: How many requests may follow one that failed; 3 by default.
        timeout: The longest that a request may take, in seconds; 120 by default.
    """

    pool: CallPool | None
    pricing: Pricing | None
    cache: AnswerCache | None
    max_retries: int
    timeout: float


@dataclass(slots=True)
class _Flight:
    """A request in flight, and how many wait for it."""

    task: asyncio.Task[Any]
    waiters: int = 0


class AskedModel:
    """A model that judges ask.

    Args:
        name: What it is called in messages and in the cache.
        model: The model's name at its provider.
        provider: Who runs it.
        settings: All else that determines its answers.
        **options: How it is asked.
    """

    def __init__(
        self, name: str, model: str, provider: str | None, settings: Mapping[str, Any], **options: Unpack[AskingOptions]
    ) -> None:
        self.name = name
        self._model = model
        self._provider = provider
        self._settings = settings
        self._pricing = options.get("pricing") or Pricing()
        self._cache = options.get("cache")
        self._takes_records = self._cache is not None
        self._in_flight: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}
        self._counted: set[str] = set()
        self._calls = ModelCalls(
            options.get("pool") or CallPool(_DEFAULT_CONCURRENCY),
            max_retries=options.get("max_retries", _DEFAULT_RETRIES),
            timeout=options.get("timeout", _DEFAULT_TIMEOUT_SEC),
        )

    def _digest(self, asked: Mapping[str, Any]) -> str:
        """Give what a request is known by in the cache; nothing where there is none."""
        return request_digest(self.name, {**asked, "settings": self._settings}) if self._cache is not None else ""

    def _record(self, digest: str) -> Mapping[str, Any] | None:
        return self._cache.get(digest) if self._cache is not None else None

    def _keep(self, digest: str, record: Mapping[str, Any]) -> None:
        """Keep a paid answer for later; where that fails it is used nevertheless, and no other is tried."""
        self._counted.add(digest)
        if self._cache is None or not self._takes_records:
            return
        try:
            self._cache.put(digest, record)
        except RunFolderError as problem:
            self._takes_records = False
            _log.warning("answers of %s are not kept from here on: %s", self.name, problem)

    async def _shared(self, digest: str, request: Callable[[], Coroutine[Any, Any, Outcome]]) -> tuple[Outcome, bool]:
        """Give what a request gives, and whether another one equal to it was in flight, which then paid for both.

        Where there is no cache each is sent. The request is cancelled with the last that waits for it.

        Raises:
            UnusableAnswerError: There is no answer that can be used; the cost is with the first that asked.
        """
        if self._cache is None:
            return await request(), False
        key = asyncio.get_running_loop(), digest
        flight = self._in_flight.get(key)
        is_shared = flight is not None
        if flight is None:
            flight = self._in_flight[key] = _Flight(asyncio.create_task(request()))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task), is_shared
        except UnusableAnswerError as problem:
            if not is_shared:
                raise
            raise UnusableAnswerError(problem.what, mend=problem.mend, cost=0.0, usages=()) from problem.__cause__
        finally:
            flight.waiters -= 1
            if (flight.task.done() or not flight.waiters) and self._in_flight.get(key) is flight:
                del self._in_flight[key]
                flight.task.cancel()

    def _cost(self, usages: Iterable[Usage]) -> float | None:
        return usages_cost(usages, self._pricing, model=self._model, provider=self._provider)

    def _known_cost(self, usages: Iterable[Usage], digest: str | None = None) -> float | None:
        """Give what an answer once cost that is known from an earlier run; 0 from the second time of a digest on."""
        if digest in self._counted:
            return 0.0
        if digest is not None:
            self._counted.add(digest)
        cost = self._cost(usages)
        note_known_cost(cost)
        return cost

    async def _outcome(self, request: Awaitable[Outcome], paid: list[Usage]) -> Outcome:
        """Give what is asked for, and any failure as the one error that has the cost."""
        try:
            return await request
        except JudgeError as problem:
            cost = self._cost(paid)
            raise UnusableAnswerError(problem.what, mend=problem.mend, cost=cost, usages=paid) from problem.__cause__
        except Exception as problem:
            text = ", ".join((error_text(problem), *getattr(problem, "__notes__", ())))
            raise UnusableAnswerError(
                f"{self.name} could not be asked: {text}",
                mend=_MENDS.get(getattr(problem, "status_code", 0)),
                cost=self._cost(paid),
                usages=paid,
            ) from problem
