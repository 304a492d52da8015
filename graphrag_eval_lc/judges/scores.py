"""The score of a judged metric: value, reason and cost, and their keys in results."""

from asyncio import CancelledError, current_task
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.judges.model_interface import GivenUpError, NotAskedError, cost_of
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

# The metrics of a result that are not judged, as no more is asked: a list that whoever counts them sets.
not_asked: ContextVar[list[str]] = ContextVar("not_asked")


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """The score of one judged metric.

    Attributes:
        value: The score; None if the metric does not apply.
        reason: Why, in the model's words, or in ours if no model was asked.
        cost: USD of the requests; 0.0 without any, None if one cannot be priced.
        details: What the score is computed from, by the metric's own keys.

    Example:
        >>> JudgeScore(0.5, "One of two statements is covered.", 0.0).value
        0.5
    """

    value: float | None
    reason: str | None
    cost: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


async def correctness_record(scoring: Awaitable[JudgeScore]) -> dict[str, Any]:
    """Return the keys of answer correctness in results; unknown values are absent."""
    try:
        score = await scoring
    except (Exception, SystemExit, CancelledError) as problem:
        raise_if_cancelled(problem)
        record = error_record(ANSWER_CORRECTNESS, problem)
        text = record.get(error_key(ANSWER_CORRECTNESS))
        return record if text is None else {**record, OLDER_CORRECTNESS_ERROR: text}
    details = score.details
    supported, wrong, missing = (details[key] for key in ("true_positives", "false_positives", "false_negatives"))
    covered = details.get("covered_claims")
    return _known(
        {
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
            reason_key(ANSWER_CORRECTNESS): score.reason,
            cost_key(ANSWER_CORRECTNESS): score.cost,
            ANSWER_AGREEMENT: details.get("agreement"),
            "answer_claim_votes": details.get("votes"),
        }
    )


async def metric_record(metric: str, scoring: Awaitable[JudgeScore]) -> dict[str, Any]:
    """Return the keys of a metric with one value; unknown values are absent."""
    try:
        score = await scoring
    except (Exception, SystemExit, CancelledError) as problem:
        raise_if_cancelled(problem)
        return error_record(metric, problem)
    return _known({metric: score.value, reason_key(metric): score.reason, cost_key(metric): score.cost})


async def relevance_record(scoring: Awaitable[JudgeScore]) -> dict[str, Any]:
    """Return the keys of answer relevance: those of its value, and what it is compared with."""
    details: Mapping[str, Any] = {}

    async def noted() -> JudgeScore:
        nonlocal details
        score = await scoring
        details = score.details
        return score

    record = await metric_record(ANSWER_RELEVANCE, noted())
    compared = {
        ANSWER_RELEVANCE_BASELINE: details.get("baseline"),
        ANSWER_RELEVANCE_RANK: details.get("rank"),
    }
    return {**record, **_known(compared)}


def f1_record(prefix: str, record: Mapping[str, Any]) -> dict[str, float]:
    """Return F1 of the recall and precision in a record, and the sum of their costs; unknown values are absent.

    Example:
        >>> f1_record("p", {"p_recall": 1.0, "p_precision": 0.5, "p_recall_cost": 0.25, "p_precision_cost": 0.5})
        {'p_f1': 0.6666666666666666, 'p_f1_cost': 0.75}
    """
    recall, precision = record.get(f"{prefix}_recall"), record.get(f"{prefix}_precision")
    if recall is None or precision is None:
        return {}
    costs = [record.get(cost_key(f"{prefix}_{part}")) for part in ("recall", "precision")]
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    return _known({f"{prefix}_f1": f1, cost_key(f"{prefix}_f1"): None if None in costs else sum(filter(None, costs))})


def error_record(metric: str, problem: BaseException) -> dict[str, Any]:
    """Return the keys of a metric's error, with secrets masked, and of what was paid in vain.

    There are none if nothing was asked, as no more may be spent: such a metric is not judged, which is not an error.

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
    """Raise a CancelledError that cancels this task; one raised by a model or function is only its error."""
    task = current_task()
    if isinstance(problem, CancelledError) and task is not None and task.cancelling():
        raise problem


def _known(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}
