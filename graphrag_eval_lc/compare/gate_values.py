"""The values that gates bound: a metric of each question, or of each sample where they bound another statistic."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

from graphrag_eval_lc.aggregation import JudgeCosts, QuestionValues, RunValues
from graphrag_eval_lc.aggregation.sample_values import counts_of, number
from graphrag_eval_lc.aggregation.totals import failed_attempts_of
from graphrag_eval_lc.compare.gate_texts import MEAN, Statistic
from graphrag_eval_lc.compare.runs import RunResults
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    COST,
    COUNTED,
    JUDGES_COST,
    STEPS_SCORE,
    UPPER_BOUNDS,
)
from graphrag_eval_lc.stats.percentiles import percentile

_SUM: Final = "sum"


_STATISTICS: Final[Mapping[Statistic, Callable[[Sequence[float]], float]]] = {
    "mean": lambda values: fsum(values) / len(values),
    "median": lambda values: percentile(values, 0.5),
    "p95": lambda values: percentile(values, 0.95),
    "min": min,
    "max": max,
    "sum": fsum,
}


def statistic_of(values: Sequence[float], statistic: Statistic) -> float:
    """Return a statistic of at least one value.

    Example:
        >>> statistic_of([1.0, 2.0, 6.0], "mean"), statistic_of([1.0, 2.0, 6.0], "max")
        (3.0, 6.0)
    """
    return _STATISTICS[statistic](values)


@dataclass(frozen=True, slots=True)
class BoundedValues:
    """The values of a metric that a gate bounds, and of how many questions.

    Attributes:
        values: Of each question that has it for a mean, of each sample for another statistic; failed ones as the worst
            score, or with what they spent.
        mean: Their mean over questions; None where no question has it.
        questions: How many questions have the metric.
        errors: How many of their samples failed.
        left_out: How many questions do not have it.
        upper: The mean if all undecided steps fitted; None where none is undecided, or the metric is none of steps.
    """

    values: Sequence[float]
    mean: float | None
    questions: int
    errors: int
    left_out: int
    upper: float | None = None


class GateValues:
    """The values of metrics in the results of a run.

    Args:
        results: The results.
        wanted: The metrics, each with a statistic.
    """

    def __init__(self, results: RunResults, wanted: Iterable[tuple[str, Statistic]]) -> None:
        config, listed = results.config(), list(wanted)
        metrics = [metric for metric, _ in listed]
        judge_costs = JudgeCosts(config)
        self._by_question = RunValues(config, metrics)
        self._by_sample = RunValues(config, metrics)
        # What each sample spent with its failed attempts, by metric and question.
        self._in_all: dict[str, dict[str, list[float]]] = {
            metric: {} for metric, statistic in listed if statistic == _SUM and metric_spec(metric).is_spent
        }
        is_of_samples = any(statistic != MEAN for _, statistic in listed)
        for position, result in enumerate(results):
            whole = _with_derived(result, metrics, judge_costs)
            self._by_question.add(whole)
            if is_of_samples:  # each sample as a question of its own
                self._by_sample.add({**whole, "question_id": f"{position} {result['question_id']}"})
            for metric, spent in self._in_all.items():
                if (value := _with_failed_attempts(metric, whole)) is not None:
                    spent.setdefault(str(result["question_id"]), []).append(value)
        self._samples: dict[str, list[QuestionValues]] = {}
        for identifier, sample in self._by_sample.questions.items():
            self._samples.setdefault(identifier.partition(" ")[2], []).append(sample)

    @property
    def questions(self) -> Mapping[str, QuestionValues]:
        """The questions by id."""
        return self._by_question.questions

    def measured(self) -> Sequence[str]:
        """Return the metrics that some sample has."""
        return self._by_question.measured()

    def has(self, metric: str) -> bool:
        """Return whether some sample has a metric."""
        return self._by_question.has(metric)

    def of(
        self,
        metric: str,
        statistic: Statistic = MEAN,
        template: str | None = None,
        only: Collection[str] | None = None,
    ) -> BoundedValues:
        """Return the values of a metric.

        Args:
            metric: One of those that are wanted.
            statistic: The statistic that is bounded.
            template: Only the questions of this template.
            only: Only the questions with these ids.
        """
        questions = [
            question
            for identifier, question in self.questions.items()
            if (template is None or question.template_id == template) and (only is None or identifier in only)
        ]
        has = self.has(metric)
        scored = [(question, score) for question in questions if has and (score := question.score(metric)) is not None]
        means = [score for _, score in scored]
        mean = statistic_of(means, MEAN) if means else None
        values = means if statistic == MEAN else self._of_samples(metric, statistic, [each for each, _ in scored])
        errors = sum(question.errors for question, _ in scored)
        upper = self._upper(metric, questions)
        is_part = len(questions) < len(self.questions)
        return BoundedValues(
            values,
            mean,
            len(scored),
            errors,
            len(questions) - len(scored),
            None if is_part and upper == mean else upper,
        )

    def _upper(self, metric: str, questions: Sequence[QuestionValues]) -> float | None:
        if self._by_question.mean_of_upper_bound(metric) is None:
            return None
        key = next(key for key, bounded in UPPER_BOUNDS.items() if bounded == metric)
        bounds = [bound for question in questions if (bound := question.score(key)) is not None]
        return statistic_of(bounds, MEAN) if bounds else None

    def _of_samples(self, metric: str, statistic: Statistic, questions: Sequence[QuestionValues]) -> Sequence[float]:
        ids = [question.question_id for question in questions]
        if statistic == _SUM and metric in self._in_all:
            return [value for identifier in ids for value in self._in_all[metric].get(identifier, ())]
        samples = (sample for identifier in ids for sample in self._samples.get(identifier, ()))
        return [value for sample in samples if (value := sample.score(metric)) is not None]


def _with_derived(result: Mapping[str, Any], metrics: Collection[str], judge_costs: JudgeCosts) -> Mapping[str, Any]:
    """Return a result with what it tells only in parts under the metrics' keys: costs of judges, counts."""
    added: dict[str, Any] = {}
    if JUDGES_COST in metrics or COST in metrics:
        judged = list(judge_costs.of(result))
        costs = [cost for cost in judged if cost is not None]
        agent = number(result.get(AGENT_COST))
        if judged and len(costs) == len(judged):
            added[JUDGES_COST] = fsum(costs)
        if agent is not None and len(costs) == len(judged):
            added[COST] = agent + fsum(costs)
    if STEPS_SCORE in result:
        added |= {spec.key: 0 for spec in COUNTED if spec.key in metrics}
        added |= {key: count for key, count in counts_of(result) if key in metrics}
    return {**result, **added} if added else result


def _with_failed_attempts(metric: str, result: Mapping[str, Any]) -> float | None:
    """Return what a sample and the failed attempts before it spent; None where nothing of it is known."""
    of_attempts = AGENT_COST if metric == COST else metric
    spent = [number(result.get(metric)), *(number(each.get(of_attempts)) for each in failed_attempts_of(result))]
    known = [value for value in spent if value is not None]
    return fsum(known) if known else None
