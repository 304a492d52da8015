"""The statistics of questions that were asked several times: pass@k, pass^k and standard errors."""

from collections import Counter
from collections.abc import Callable, Mapping
from math import fsum
from typing import Any

from graphrag_eval_lc.aggregation.figures import Figures
from graphrag_eval_lc.aggregation.samples import Samples
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.metrics import pass_at_k, pass_hat_k
from graphrag_eval_lc.registry.metrics import NUMBER_OF_QUESTIONS


def repeats_summary(samples: Samples, figures: Mapping[str, Figures], config: RepeatsConfig) -> dict[str, Any]:
    """Give the section ``repeats`` of the aggregates.

    Args:
        samples: Results of which some are repeats.
        figures: Each measured metric's statistics over the questions' means.
        config: The metric and threshold that say whether a sample passed.

    Returns:
        ``count`` (the highest repeat), ``metric``, ``threshold``, ``number_of_questions``,
        ``number_of_unmeasured_questions`` (those with a sample that succeeded without the metric; pass@k and
        pass^k leave them out), ``pass@k`` and ``pass^k`` (means over the questions by k as a text, "1" to the
        smallest number of samples of a question; absent where no question was measured; failed samples did not
        pass), ``metrics`` (each metric's ``mean`` over the questions' means with the ``standard_error`` clustered
        by template, which is absent with fewer than 2 templates).
    """
    outcomes = samples.outcomes(config.metric, config.threshold)
    measured = [passed for passed in outcomes.values() if None not in passed]
    summary: dict[str, Any] = {
        "count": samples.repeats,
        "metric": config.metric,
        "threshold": config.threshold,
        NUMBER_OF_QUESTIONS: len(outcomes),
        "number_of_unmeasured_questions": len(outcomes) - len(measured),
    }
    if measured:
        counts = Counter((len(passed), passed.count(True)) for passed in measured)
        summary["pass@k"] = _means_by_k(pass_at_k, counts)
        summary["pass^k"] = _means_by_k(pass_hat_k, counts)
    summary["metrics"] = {metric: _mean_with_error(figure) for metric, figure in figures.items()}
    return summary


def shown_chances(summary: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Give what is shown of a summary: pass@1, and pass@k and pass^k for the most samples that all questions have.

    Example:
        >>> shown_chances({"pass@k": {"1": 0.5, "2": 0.75}, "pass^k": {"1": 0.5, "2": 0.25}})
        [('pass@1', 0.5), ('pass@2', 0.75), ('pass^2', 0.25)]
    """
    if "pass@k" not in summary:
        return []
    most = list(summary["pass@k"])[-1]
    chances = [("pass@", "1")] if most == "1" else [("pass@", "1"), ("pass@", most), ("pass^", most)]
    return [(f"{name}{k}", summary[f"{name}k"][k]) for name, k in chances]


def _means_by_k(measure: Callable[[int, int, int], float], counts: Mapping[tuple[int, int], int]) -> dict[str, float]:
    """Give a measure's mean over the questions for each k, from how many questions have n samples of which c passed.

    The keys are texts, as JSON has no others.
    """
    smallest = min(number_of_samples for number_of_samples, _ in counts)
    number_of_questions = sum(counts.values())
    return {
        str(k): fsum(count * measure(n, c, k) for (n, c), count in counts.items()) / number_of_questions
        for k in range(1, smallest + 1)
    }


def _mean_with_error(figures: Figures) -> dict[str, float]:
    summary = {"mean": figures.micro["mean"]}
    if figures.standard_error is not None:
        summary["standard_error"] = figures.standard_error
    return summary
