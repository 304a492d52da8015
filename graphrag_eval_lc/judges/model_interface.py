"""The types between judges and models: protocols, answers, scores, costs and errors, and their keys in results."""

import asyncio
import math
from asyncio import CancelledError
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from graphrag_eval_lc.errors import GraphRAGEvalError, JudgeError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.metric_spec import cost_key, error_key, reason_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_AGREEMENT,
    ANSWER_CORRECTNESS,
    ANSWER_F1,
    ANSWER_PRECISION,
    ANSWER_RECALL,
    ANSWER_RELEVANCE,
    ANSWER_RELEVANCE_BASELINE,
    ANSWER_RELEVANCE_RANK,
    OLDER_CORRECTNESS_ERROR,
)

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
    """The answer of a model: a value of the requested form, or the vectors of texts.

    Attributes:
        value: The answer.
        cost: USD of all requests for it, including repeated ones; None if one cannot be priced.
        usages: The usage of each of these requests.
        is_cached: Whether it comes from the cache, or from an equal request in flight.
        is_planned: Whether no request was sent and the answer is an example.
    """

    value: Value
    cost: float | None
    usages: tuple[Usage, ...] = ()
    is_cached: bool = False
    is_planned: bool = False


class JudgeModel(Protocol):
    """A chat model that answers in a given form; ``name`` is its name in messages and in the cache."""

    name: str

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Ask for an answer of the form ``schema``; raise a JudgeError without a usable one."""
        ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors; ``name`` is its name in messages and in the cache."""

    name: str

    async def aembed(self, texts: Sequence[str]) -> "Asked[Vectors]":
        """Return the vectors of texts in one request; raise a JudgeError without usable ones."""
        ...


class CallPool:
    """The slots for concurrent requests, shared by all models of a run; may be used by one event loop after another."""

    def __init__(self, max_concurrency: int) -> None:
        self._max = max_concurrency
        self._loop: asyncio.AbstractEventLoop | None = None
        self._semaphore = asyncio.Semaphore(max_concurrency)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self._max)
        async with self._semaphore:
            yield


# --- errors and costs ---


class BrokenAnswerError(Exception):
    """A server's response is not an answer; a retry may help.

    ``status_code`` is the HTTP status that an error in a response with status 200 means, and ``body`` that error.
    """

    def __init__(self, what: str, *, status_code: int | None = None, body: Any = None) -> None:
        super().__init__(what)
        self.status_code = status_code
        self.body = body


class UnusableAnswerError(JudgeError):
    """A model returned no usable answer; ``cost`` is what that cost in USD, None if it cannot be priced."""

    def __init__(self, what: str, *, hint: str | None = None, cost: float | None = 0.0) -> None:
        super().__init__(what, hint=hint)
        self.cost = cost


class NotAskedError(UnusableAnswerError):
    """A request was not sent: the budget is used up, or the model refuses everything. Earlier ones may have cost."""


class GivenUpError(NotAskedError):
    """A request was not sent because the model refuses everything, for example for a wrong key."""


class CutAnswerError(UnusableAnswerError):
    """An answer was cut off at its limit of tokens."""


class TooLongError(UnusableAnswerError):
    """The texts of a request are too long for the model."""


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs, whatever their order; None if one is unknown.

    Example:
        >>> total_cost([0.5, 0.25]), total_cost([0.5, None]), total_cost([])
        (0.75, None, 0.0)
    """
    all_costs = list(costs)
    known = [cost for cost in all_costs if cost is not None]
    return math.fsum(known) if len(known) == len(all_costs) else None


def paid_error(error: JudgeError, costs: Iterable[float | None]) -> UnusableAnswerError:
    """Return an error of the same kind whose cost is its own cost and ``costs``."""
    kind = type(error) if isinstance(error, UnusableAnswerError) else UnusableAnswerError
    return kind(error.what, hint=error.hint, cost=total_cost([cost_of(error), *costs]))


def cost_of(error: BaseException) -> float | None:
    """Return the cost in USD that an error carries; 0.0 if it has none."""
    return error.cost if isinstance(error, UnusableAnswerError) else 0.0


# --- scores, and their keys in results ---

# Collects the metrics of a result that are not judged because no more is asked; the caller sets the list.
not_asked: ContextVar[list[str]] = ContextVar("not_asked")


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """The score of one judged metric.

    Attributes:
        value: The score; None if the metric does not apply.
        reason: The reason, in the model's words, or in this package's if no model was asked.
        cost: USD of the requests; 0.0 without any, None if one cannot be priced.
        details: What the score is computed from, under the metric's keys.

    Example:
        >>> JudgeScore(0.5, "One of two statements is covered.", 0.0).value
        0.5
    """

    value: float | None
    reason: str | None
    cost: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


async def metric_record(metric: str, scoring: Awaitable[JudgeScore]) -> dict[str, Any]:
    """Return the keys of a judged metric in results, for its score or its error; unknown values are absent."""
    try:
        score = await scoring
    except (Exception, SystemExit, CancelledError) as problem:
        raise_if_cancelled(problem)
        record = error_record(metric, problem)
        text = record.get(error_key(metric))
        return record if metric != ANSWER_CORRECTNESS or text is None else {**record, OLDER_CORRECTNESS_ERROR: text}
    details = score.details
    values, more = {metric: score.value}, dict[str, Any]()
    if metric == ANSWER_CORRECTNESS:
        values = _correctness_values(details)
        more = {ANSWER_AGREEMENT: details.get("agreement"), "answer_claim_votes": details.get("votes")}
    elif metric == ANSWER_RELEVANCE:
        more = {ANSWER_RELEVANCE_BASELINE: details.get("baseline"), ANSWER_RELEVANCE_RANK: details.get("rank")}
    return _known({**values, reason_key(metric): score.reason, cost_key(metric): score.cost, **more})


def _correctness_values(details: Mapping[str, Any]) -> dict[str, Any]:
    supported, wrong, missing = (details[key] for key in ("true_positives", "false_positives", "false_negatives"))
    covered = details.get("covered_claims")
    return {
        "answer_true_positives": list(supported),
        "answer_false_positives": list(wrong),
        "answer_false_negatives": list(missing),
        "answer_covered_claims": None if covered is None else list(covered),
        "answer_reference_claims_count": len(supported if covered is None else covered) + len(missing),
        "answer_actual_claims_count": len(supported) + len(wrong),
        "answer_matching_claims_count": len(supported),
        ANSWER_RECALL: details["recall"],
        ANSWER_PRECISION: details["precision"],
        ANSWER_F1: details["f1"],
    }


def f1_record(prefix: str, record: Mapping[str, Any]) -> dict[str, float]:
    """Return F1 of the recall and precision in a record, and the sum of their costs; unknown values are absent.

    Example:
        >>> f1_record("p", {"p_recall": 1.0, "p_precision": 0.5, "p_recall_cost": 0.25, "p_precision_cost": 0.5})
        {'p_f1': 0.6666666666666666, 'p_f1_cost': 0.75}
    """
    recall, precision = record.get(f"{prefix}_recall"), record.get(f"{prefix}_precision")
    if recall is None or precision is None:
        return {}
    cost = total_cost(record.get(cost_key(f"{prefix}_{part}")) for part in ("recall", "precision"))
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    return _known({f"{prefix}_f1": f1, cost_key(f"{prefix}_f1"): cost})


def error_record(metric: str, problem: BaseException) -> dict[str, Any]:
    """Return the keys of a metric's error, with secrets masked, and its cost.

    If nothing was asked because no more may be spent, the record is empty: the metric is not judged, which is not an
    error.

    Example:
        >>> error_record("m", ValueError("no claims"))
        {'m_cost': 0.0, 'm_error': 'ValueError: no claims'}
    """
    if isinstance(problem, NotAskedError):
        not_asked.get([]).append(metric)
        if cost_of(problem) == 0.0 and not isinstance(problem, GivenUpError):
            return {}
    text = str(problem) if isinstance(problem, GraphRAGEvalError) else f"{type(problem).__name__}: {problem}"
    return _known({cost_key(metric): cost_of(problem), error_key(metric): masked_text(text)})


def raise_if_cancelled(problem: BaseException) -> None:
    """Re-raise a CancelledError that cancels this task; one raised by a model or function is treated as its error."""
    task = asyncio.current_task()
    if isinstance(problem, CancelledError) and task is not None and task.cancelling():
        raise problem


def _known(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}
