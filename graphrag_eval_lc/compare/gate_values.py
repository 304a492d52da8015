"""Collects the values that gates check: one for each question for a mean, for each sample for other statistics."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from statistics import fmean
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.aggregation import JudgeCosts, QuestionValues, RunValues
from graphrag_eval_lc.aggregation.sample_values import Metrics, counts_of, number
from graphrag_eval_lc.aggregation.statistics import failed_attempts_of
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
STATISTIC_OF: Final[Mapping[Statistic, Callable[[Sequence[float]], float]]] = {
    "mean": fmean,
    "median": partial(percentile, share=0.5),
    "p95": partial(percentile, share=0.95),
    "min": min,
    "max": max,
    "sum": fsum,
}


class BoundedValues(NamedTuple):
    """The values of a metric that a gate checks, including failed samples."""

    values: Sequence[float]  # for each question or sample; a failed one has the worst score, or what it spent
    questions: int
    errors: int
    left_out: int  # questions without it
    upper: float | None  # the mean if all undecided steps matched; None if none is undecided


class GateValues:
    """The values of metrics in the results of a run, as gates need them; ``names`` are such as ``elapsed_sec.p95``.

    The other arguments are for a comparison: the run's letter, the main metric, its comparison with the baseline, and
    the ids of the questions with undecided steps, which count as 0 in it.
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
        # A number in the results may have a name that looks like a metric with a statistic.
        wanted = [each for name in names for each in (metric_and_statistic(name), (name, MEAN))]
        metrics = list(dict.fromkeys(metric for metric, _ in wanted))
        config = results.config()
        judge_costs = JudgeCosts(config)
        self.numbers, samples = (RunValues(Metrics(config, metrics)) for _ in range(2))
        # What each sample spent, including its failed attempts, by metric and question.
        spent = {metric for metric, statistic in wanted if statistic == _SUM and metric_spec(metric).is_spent}
        self._in_all: dict[str, defaultdict[str, list[float]]] = {metric: defaultdict(list) for metric in spent}
        for position, result in enumerate(results):
            whole, question_id = _with_derived(result, metrics, judge_costs), str(result["question_id"])
            self.numbers.add(whole)
            if any(statistic != MEAN for _, statistic in wanted):  # each sample as a separate question
                samples.add({**whole, "question_id": f"{position} {question_id}"})
            for metric, by_question in self._in_all.items():
                if (value := _with_failed_attempts(metric, whole)) is not None:
                    by_question[question_id].append(value)
        self._samples: defaultdict[str, list[QuestionValues]] = defaultdict(list)
        for identifier, sample in samples.questions.items():
            self._samples[identifier.partition(" ")[2]].append(sample)
        self.run = NamedRun(letter, results, self.numbers)

    def of(
        self, metric: str, statistic: Statistic, template: str | None = None, only: Collection[str] | None = None
    ) -> BoundedValues:
        """Return the values of one of the ``names``, optionally only for a template or for some question ids."""
        every = self.numbers.questions
        questions = [
            question
            for identifier, question in every.items()
            if template in (None, question.template_id) and (only is None or identifier in only)
        ]
        has = self.numbers.has(metric)
        scored = {each.question_id: score for each in questions if has and (score := each.score(metric)) is not None}
        values, upper = list(scored.values()), None
        if self.numbers.mean_of_upper_bound(metric) is not None:
            key = next(key for key, bounded in UPPER_BOUNDS.items() if bounded == metric)
            bounds = [bound for question in questions if (bound := question.score(key)) is not None]
            upper = STATISTIC_OF[MEAN](bounds) if bounds else None
            if len(questions) < len(every) and values and upper == STATISTIC_OF[MEAN](values):
                upper = None  # nothing is undecided in these questions
        if statistic == _SUM and metric in self._in_all:
            values = [value for identifier in scored for value in self._in_all[metric][identifier]]
        elif statistic != MEAN:
            samples = (sample for identifier in scored for sample in self._samples[identifier])
            values = [value for sample in samples if (value := sample.score(metric)) is not None]
        errors = sum(question.errors for question in questions if question.question_id in scored)
        return BoundedValues(values, len(scored), errors, len(questions) - len(scored), upper)


def _with_derived(result: Mapping[str, Any], metrics: Collection[str], judge_costs: JudgeCosts) -> Mapping[str, Any]:
    """Add the metrics that a result has only in parts: the judges' costs, and counts."""
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
    """Return what a sample and its failed attempts spent; None if nothing is known."""
    of_attempts = AGENT_COST if metric == COST else metric
    spent = [number(result.get(metric)), *(number(each.get(of_attempts)) for each in failed_attempts_of(result))]
    known = [value for value in spent if value is not None]
    return fsum(known) if known else None
