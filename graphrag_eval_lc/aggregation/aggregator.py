"""Aggregates of results that are added one at a time, repeats included."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import Sample, metrics_of
from graphrag_eval_lc.aggregation.samples import MetricStatistics, Samples, StepCounts, metric_statistics
from graphrag_eval_lc.aggregation.totals import JudgeCosts, Totals
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, RepeatsConfig, load_config
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.metrics import pass_at_k, pass_hat_k
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import (
    COUNTED,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SUCCESS_SAMPLES,
)

# The counts that each template has; the others only templates that have something to count.
_OF_SAMPLES = (NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES, NUMBER_OF_QUESTIONS)

_RESULTS_HINT = "Give what run_evaluation returned: a list of dicts, each with its template_id."


class Aggregator:
    """The aggregates of results that are added one at a time, in any order.

    Only their values are kept: some 100 bytes a result, and its question id.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        template_ids: The order of ``per_template``; other templates follow as they are first seen.

    Example:
        >>> aggregator = Aggregator()
        >>> aggregator.add({"template_id": "t", "question_id": "q1", "status": "success", "steps_score": 0.5})
        >>> aggregator.add({"template_id": "t", "question_id": "q2", "status": "success", "steps_score": 1.0})
        >>> aggregator.aggregates()["macro"]
        {'steps_score': {'mean': 0.75}}
    """

    def __init__(self, config: ConfigSource = None, template_ids: Sequence[str] = ()) -> None:
        if isinstance(config, EvaluationConfig):
            settings = config
        else:  # no model is asked here
            settings = load_config(config, has_llm=True, has_embeddings=True)
        self._includes_errors = settings.aggregates.errors == "include"
        self._repeats = settings.repeats
        self._template_ids = tuple(map(str, template_ids))
        self._metrics = metrics_of(settings)
        self._samples = Samples(self._metrics)
        self._steps: defaultdict[str, StepCounts] = defaultdict(StepCounts)
        self._totals = Totals(JudgeCosts(settings))

    def add(self, result: Sample) -> None:
        """Add a result."""
        is_counted = self._includes_errors or not is_error(result)
        self._samples.add(result, is_counted=is_counted)
        if is_counted:
            self._steps[str(result["template_id"])].add(result)
        self._totals.add(result)

    def aggregates(self) -> dict[str, Any]:
        """Return the aggregates of the results so far, as ``compute_aggregates`` does."""
        statistics = self._statistics()
        counts = self._counts()
        all_steps = StepCounts()
        for steps in self._steps.values():
            all_steps.update(steps)
        bounded = {metric: self._samples.bounded(metric) for metric in statistics}
        aggregates = {
            "per_template": {
                name: self._summary(
                    {
                        key: by_template.get(name, 0)
                        for key, by_template in counts.items()
                        if name in by_template or key in _OF_SAMPLES
                    },
                    {
                        metric: known.per_template[name]
                        for metric, known in statistics.items()
                        if name in known.per_template and ((told := bounded[metric]) is None or name in told)
                    },
                    self._steps.get(name, StepCounts()),
                )
                for name in self._template_order()
            },
            "micro": self._summary(
                {key: sum(by_template.values()) for key, by_template in counts.items()},
                {metric: known.micro for metric, known in statistics.items()},
                all_steps,
            ),
            "macro": {metric: {"mean": known.macro} for metric, known in statistics.items()},
            "totals": self._totals.summary(),
        }
        if self._samples.repeats > 1:
            outcomes = self._samples.outcomes(self._repeats.metric, self._repeats.threshold)
            aggregates["repeats"] = repeats_summary(outcomes, self._samples.repeats, statistics, self._repeats)
        return aggregates

    def _statistics(self) -> dict[str, MetricStatistics]:
        """Return the statistics of each metric that has values, in graphrag-eval's order."""
        known = self._samples.metrics()
        named = [each for each in (*self._metrics.names(), *self._metrics.step_names()) if each in known]
        return {
            metric: metric_statistics(values, with_error=self._samples.repeats > 1)
            for metric in (*named, *self._metrics.retrieval.names(known))
            if self._samples.bounded(metric) != set() and (values := self._samples.values_by_template(metric))
        }

    def _counts(self) -> dict[str, Mapping[str, int]]:
        """Return the numbers of samples and questions, of missing and undecided steps and cut outputs by template."""
        samples = self._samples.sample_counts()
        counts: dict[str, Mapping[str, int]] = {
            NUMBER_OF_ERROR_SAMPLES: {name: count for (name, failed), count in samples.items() if failed},
            NUMBER_OF_SUCCESS_SAMPLES: {name: count for (name, failed), count in samples.items() if not failed},
        }
        if self._samples.repeats > 1:
            counts[NUMBER_OF_QUESTIONS] = self._samples.question_counts()
        for key in self._metrics.retrieval.missing_keys:
            if missing := self._samples.sums_by_template(key):
                counts[key] = {name: int(number) for name, number in missing.items()}
        # Where there are none, aggregates are those of graphrag-eval.
        for spec in COUNTED:
            if counted := {
                name: int(number) for name, number in self._samples.sums_by_template(spec.key).items() if number
            }:
                counts[spec.key] = counted
        return counts

    def _summary(
        self, counts: Mapping[str, int], statistics: Mapping[str, Mapping[str, float]], steps: StepCounts
    ) -> dict[str, Any]:
        """Put the parts of a summary into graphrag-eval's order."""
        of_samples = self._metrics.names()
        summary: dict[str, Any] = dict(counts)
        summary.update({metric: known for metric, known in statistics.items() if metric in of_samples})
        if steps_summary := steps.summary():
            summary["steps"] = steps_summary
        summary.update({metric: known for metric, known in statistics.items() if metric not in of_samples})
        return summary

    def _template_order(self) -> Iterable[str]:
        seen = dict.fromkeys(self._samples.template_ids())
        return {name: None for name in self._template_ids if name in seen} | seen


def compute_aggregates(results: Iterable[Sample], config: ConfigSource = None) -> dict[str, Any]:
    """Return the aggregates of the results of an evaluation.

    Failed questions are counted in ``number_of_error_samples`` and left out of the statistics. With ``aggregates:
    {errors: include}`` their scores count as 0, or as the greatest value where less is better. What was not measured
    is absent, never 0.

    Where questions were asked several times (a result has ``repeat`` above 1), statistics are taken over the
    questions' means, so that each question counts once; ``number_of_questions`` says how many there are. The
    numbers of samples and ``steps`` count every repeat. A question's mean is over its repeats that count; that of
    a ``retrieval_…`` metric over all retrieval steps of these.

    Where there are reference steps of retrieval, those that nothing fulfilled are counted in ``retrieval_missing``;
    with ``retrieval: {missing: zero}`` each of them counts as 0 in the ``retrieval_ids_…`` and ``retrieval_text_…``
    metrics.

    ``undecided`` counts the reference steps of which it is not known whether a step fulfils them, and ``outputs_cut``
    the outputs that end before their end. ``steps_score_upper``, beside ``steps_score`` and over the same questions,
    is what that would be if all undecided steps fitted: a question without such steps counts with its ``steps_score``.
    All three are absent where there are no such steps or outputs, and in results that do not tell.

    Numbers and booleans of custom evaluations are metrics too; texts are not. Costs are in USD.

    Args:
        results: The results of ``run_evaluation``, also from an iterator.
        config: A path, a dict or an EvaluationConfig; None for the defaults.

    Returns:
        ``per_template`` (by template id, in the order of the results) and ``micro``: the two numbers of samples, each
        metric with ``sum``, ``mean``, ``median``, ``min`` and ``max``, and ``steps`` with ``total``,
        ``once_per_sample``, ``empty_results`` and ``errors`` by tool name. ``macro``: each metric's mean over the
        templates' means. ``totals``: what all questions together spent, failed ones and failed attempts included:
        tokens, seconds, ``agent_cost``, ``judges_cost`` and ``cost``, their sum. A total that some samples lack is
        absent, and ``unmeasured_samples`` says how many do.
        ``repeats``, only with repeats: ``count``, ``metric``, ``threshold``, ``number_of_questions``,
        ``number_of_unmeasured_questions``, ``pass@k`` and ``pass^k`` by k as a text ("1", "2", …), and ``metrics``
        with each metric's ``mean`` and its ``standard_error`` clustered by template.

    Raises:
        ResponsesError: What is given is no list of results.

    Example:
        >>> compute_aggregates([{"template_id": "t", "status": "success", "steps_score": 0.5}])["macro"]
        {'steps_score': {'mean': 0.5}}
    """
    aggregator = Aggregator(config)
    if not isinstance(results, Iterable) or isinstance(results, str | Mapping):
        raise ResponsesError(f"the results cannot be a {type(results).__name__}", hint=_RESULTS_HINT)
    for number, result in enumerate(results):
        if not isinstance(result, Mapping) or "template_id" not in result:
            raise ResponsesError("this is no result", key=f"results[{number}]", hint=_RESULTS_HINT)
        aggregator.add(result)
    return aggregator.aggregates()


def repeats_summary(
    outcomes: Mapping[Any, Sequence[bool | None]],
    count: int,
    statistics: Mapping[str, MetricStatistics],
    config: RepeatsConfig,
) -> dict[str, Any]:
    """Return the section ``repeats`` of the aggregates.

    Args:
        outcomes: For each question which of its samples passed; None stands for one that succeeded unmeasured.
        count: The highest repeat.
        statistics: The metrics' statistics over the questions' means.
        config: The metric and threshold that say whether a sample passed.

    Returns:
        ``count`` (the highest repeat), ``metric``, ``threshold``, ``number_of_questions``,
        ``number_of_unmeasured_questions`` (those with a sample that succeeded without the metric, which pass@k and
        pass^k leave out), ``pass@k`` and ``pass^k`` (means over the questions by k as a text, from "1" to the
        smallest number of samples of a question; failed samples did not pass; absent where no question was
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
    summary["metrics"] = {metric: _mean_with_error(known) for metric, known in statistics.items()}
    return summary


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


def _mean_with_error(statistics: MetricStatistics) -> dict[str, float]:
    error = statistics.standard_error
    return {"mean": statistics.micro["mean"], **({} if error is None else {"standard_error": error})}
