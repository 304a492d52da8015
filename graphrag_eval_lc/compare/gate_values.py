"""The values that gates bound: of each question for a mean, of each sample for another statistic."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

from graphrag_eval_lc.aggregation import JudgeCosts, QuestionValues, RunValues
from graphrag_eval_lc.aggregation.sample_values import counts_of, number
from graphrag_eval_lc.aggregation.totals import failed_attempts_of
from graphrag_eval_lc.compare.gate_names import MEAN, Statistic, metric_and_statistic
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.runs import NamedRun, RunResults
from graphrag_eval_lc.metrics.intervals import percentile
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    COST,
    COUNTED,
    JUDGES_COST,
    MAIN_METRIC,
    STEPS_SCORE,
    UPPER_BOUNDS,
)

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
    """Return a statistic of at least one value."""
    return _STATISTICS[statistic](values)


@dataclass(frozen=True, slots=True)
class BoundedValues:
    """The values of a metric that a gate bounds, and of how many questions.

    Attributes:
        values: Of each question that has it for a mean, of each sample for another statistic; failed ones as the worst
            score, or with what they spent.
        questions: How many questions have the metric.
        errors: How many of their samples failed.
        left_out: How many questions do not have it.
        upper: The mean if all undecided steps matched; None if none is undecided, or the metric is not about steps.
    """

    values: Sequence[float]
    questions: int
    errors: int
    left_out: int
    upper: float | None = None


class GateValues:
    """The values of metrics in the results of a run, as gates need them.

    Args:
        results: The results.
        names: The metrics, each perhaps with a statistic, as in ``elapsed_sec.p95``.
        letter: The run's letter in a comparison; empty for a run alone.
        main: The main metric of the comparison.
        compared: The comparison of the run with the baseline in the main metric, if there is one.
        undecided: The ids of the questions of which undecided steps count as 0 in the main metric.
    """

    def __init__(
        self,
        results: RunResults,
        names: Iterable[str],
        *,
        letter: str = "",
        main: str | None = MAIN_METRIC,
        compared: MetricComparison | None = None,
        undecided: Collection[str] = (),
    ) -> None:
        self.letter, self.main, self.compared, self.undecided = letter, main, compared, undecided
        named = list(dict.fromkeys(names))
        # A number of the results may have the name of a metric and a statistic.
        wanted = [*map(metric_and_statistic, named), *((name, MEAN) for name in named)]
        metrics = list(dict.fromkeys(metric for metric, _ in wanted))
        config = results.config()
        judge_costs = JudgeCosts(config)
        self._by_question, self._by_sample = RunValues(config, metrics), RunValues(config, metrics)
        # What each sample spent with its failed attempts, by metric and question.
        self._in_all: dict[str, dict[str, list[float]]] = {
            metric: {} for metric, statistic in wanted if statistic == _SUM and metric_spec(metric).is_spent
        }
        is_of_samples = any(statistic != MEAN for _, statistic in wanted)
        for position, result in enumerate(results):
            whole = _with_derived(result, metrics, judge_costs)
            self._by_question.add(whole)
            if is_of_samples:  # each sample as a separate question
                self._by_sample.add({**whole, "question_id": f"{position} {result['question_id']}"})
            for metric, spent in self._in_all.items():
                if (value := _with_failed_attempts(metric, whole)) is not None:
                    spent.setdefault(str(result["question_id"]), []).append(value)
        self._samples: dict[str, list[QuestionValues]] = {}
        for identifier, sample in self._by_sample.questions.items():
            self._samples.setdefault(identifier.partition(" ")[2], []).append(sample)
        self.run = NamedRun(letter, results, self._by_question)

    @property
    def questions(self) -> Mapping[str, QuestionValues]:
        """The questions by id."""
        return self._by_question.questions

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
        """Return the values of a metric that is wanted, of the questions of a template and of some ids only."""
        questions = [
            question
            for identifier, question in self.questions.items()
            if (template is None or question.template_id == template) and (only is None or identifier in only)
        ]
        has = self.has(metric)
        scored = {each.question_id: score for each in questions if has and (score := each.score(metric)) is not None}
        means = list(scored.values())
        upper = None
        if self._by_question.mean_of_upper_bound(metric) is not None:
            key = next(key for key, bounded in UPPER_BOUNDS.items() if bounded == metric)
            bounds = [bound for question in questions if (bound := question.score(key)) is not None]
            upper = statistic_of(bounds, MEAN) if bounds else None
        # In a part of the questions there may be nothing undecided.
        is_decided = len(questions) < len(self.questions) and means and upper == statistic_of(means, MEAN)
        if statistic == _SUM and metric in self._in_all:
            of_samples = [value for identifier in scored for value in self._in_all[metric].get(identifier, ())]
        else:
            samples = (sample for identifier in scored for sample in self._samples.get(identifier, ()))
            of_samples = [value for sample in samples if (value := sample.score(metric)) is not None]
        return BoundedValues(
            values=means if statistic == MEAN else of_samples,
            questions=len(scored),
            errors=sum(question.errors for question in questions if question.question_id in scored),
            left_out=len(questions) - len(scored),
            upper=None if is_decided else upper,
        )


def _with_derived(result: Mapping[str, Any], metrics: Collection[str], judge_costs: JudgeCosts) -> Mapping[str, Any]:
    """Return a result with what it has only in parts under the metrics' keys: costs of judges, counts."""
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
        added |= {key: count for key, count in counts_of(result).items() if key in metrics}
    return {**result, **added} if added else result


def _with_failed_attempts(metric: str, result: Mapping[str, Any]) -> float | None:
    """Return what a sample and the failed attempts before it spent; None if nothing of it is known."""
    of_attempts = AGENT_COST if metric == COST else metric
    spent = [number(result.get(metric)), *(number(each.get(of_attempts)) for each in failed_attempts_of(result))]
    known = [value for value in spent if value is not None]
    return fsum(known) if known else None
