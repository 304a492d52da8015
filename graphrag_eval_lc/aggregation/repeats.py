"""Questions asked several times: the section ``repeats`` of the aggregates, and the chances that are shown of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from graphrag_eval_lc.aggregation.statistics import MetricStatistics
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.metrics import pass_at_k, pass_hat_k
from graphrag_eval_lc.registry.metrics import NUMBER_OF_QUESTIONS


def passes(value: float, threshold: float, *, lower_is_better: bool) -> bool:
    """Return whether a sample passes by its value."""
    return value <= threshold if lower_is_better else value >= threshold


def repeats_summary(
    outcomes: Mapping[Any, Sequence[bool | None]],
    count: int,
    statistics: Mapping[str, MetricStatistics],
    config: RepeatsConfig,
) -> dict[str, Any]:
    """Return the section ``repeats`` of the aggregates.

    Args:
        outcomes: For each question which of its samples passed; None for one that succeeded unmeasured.
        count: The highest repeat.
        statistics: The metrics' statistics over the questions' means.
        config: The metric and threshold that say whether a sample passed.

    Returns:
        ``count`` (the highest repeat), ``metric``, ``threshold``, ``number_of_questions``,
        ``number_of_unmeasured_questions`` (those with a sample that succeeded without the metric, which pass@k and
        pass^k leave out), ``pass@k`` and ``pass^k`` (means over the questions by k as a text, from "1" to the
        smallest number of samples of a question; failed samples did not pass; absent if no question was
        measured), ``metrics`` (each metric's ``mean`` over the questions' means, and from 2 templates its
        ``standard_error``, clustered by template).
    """
    measured = [passed for passed in outcomes.values() if None not in passed]
    summary: dict[str, Any] = {
        "count": count,
        "metric": config.metric,
        "threshold": config.threshold,
        NUMBER_OF_QUESTIONS: len(outcomes),
        "number_of_unmeasured_questions": len(outcomes) - len(measured),
    }
    if measured:
        counts = Counter((len(passed), passed.count(True)) for passed in measured)
        summary["pass@k"] = _means_by_k(pass_at_k, counts)
        summary["pass^k"] = _means_by_k(pass_hat_k, counts)
    summary["metrics"] = {
        metric: {"mean": known.micro["mean"]}
        | ({} if known.standard_error is None else {"standard_error": known.standard_error})
        for metric, known in statistics.items()
    }
    return summary


def _means_by_k(chance: Callable[[int, int, int], float], counts: Mapping[tuple[int, int], int]) -> dict[str, float]:
    """Return a chance's mean over the questions by k as a text, as JSON has no other keys.

    ``counts`` has the number of questions with n samples of which c passed.
    """
    smallest = min(number_of_samples for number_of_samples, _ in counts)
    number_of_questions = sum(counts.values())
    return {
        str(k): fsum(count * chance(n, c, k) for (n, c), count in counts.items()) / number_of_questions
        for k in range(1, smallest + 1)
    }


def shown_chances(summary: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the chances that are shown: pass@1, and pass@k and pass^k for the largest k.

    Example:
        >>> shown_chances({"pass@k": {"1": 0.5, "2": 0.75}, "pass^k": {"1": 0.5, "2": 0.25}})
        [('pass@1', 0.5), ('pass@2', 0.75), ('pass^2', 0.25)]
    """
    if "pass@k" not in summary:
        return []
    most = list(summary["pass@k"])[-1]
    chances = [("pass@", "1")] if most == "1" else [("pass@", "1"), ("pass@", most), ("pass^", most)]
    return [(f"{name}{k}", summary[f"{name}k"][k]) for name, k in chances]
