"""Taking up results one at a time, and giving their aggregates at any moment, repeats included."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from graphrag_eval_lc.aggregation.measurements import Sample, is_error, metrics_of
from graphrag_eval_lc.aggregation.samples import Figures, Samples, StepCounts, figures_of
from graphrag_eval_lc.aggregation.totals import JudgeCosts, Totals
from graphrag_eval_lc.config import ConfigSource, RepeatsConfig, load_config
from graphrag_eval_lc.metrics import pass_at_k, pass_hat_k
from graphrag_eval_lc.registry.metrics import NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_QUESTIONS, NUMBER_OF_SUCCESS_SAMPLES


class Aggregator:
    """The aggregates of results that come one at a time, in any order; of each only its numbers are kept.

    That is some 100 bytes a result, and its question id.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        template_ids: The order of ``per_template``; templates that are not named follow as they are first seen.

    Example:
        >>> aggregator = Aggregator()
        >>> aggregator.add({"template_id": "t", "question_id": "q1", "status": "success", "steps_score": 0.5})
        >>> aggregator.add({"template_id": "t", "question_id": "q2", "status": "success", "steps_score": 1.0})
        >>> aggregator.running_mean("steps_score")
        0.75
        >>> aggregator.aggregates()["macro"]
        {'steps_score': {'mean': 0.75}}
    """

    def __init__(self, config: ConfigSource = None, template_ids: Sequence[str] = ()) -> None:
        # Nothing is asked here: a config that needs a model has it elsewhere.
        settings = load_config(config, has_llm=True, has_embeddings=True)
        self._includes_errors = settings.aggregates.errors == "include"
        self._repeats = settings.repeats
        self._template_ids = tuple(map(str, template_ids))
        self._metrics = metrics_of(settings)
        self._samples = Samples(self._metrics)
        self._steps: defaultdict[str, StepCounts] = defaultdict(StepCounts)
        self._totals = Totals(JudgeCosts(settings))

    def add(self, result: Sample) -> None:
        """Take up one result."""
        is_counted = self._includes_errors or not is_error(result)
        self._samples.add(result, is_counted=is_counted)
        if is_counted:
            self._steps[str(result["template_id"])].add(result)
        self._totals.add(result)

    def running_mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the samples so far, at once; None where none has it.

        It counts failed questions as the config says, and each repeat on its own. Another thread may ask while
        results are added.
        """
        return self._samples.running_mean(metric)

    def aggregates(self) -> dict[str, Any]:
        """Return the aggregates of the results so far, as ``compute_aggregates`` does."""
        figures = self._figures()
        counts = self._counts()
        all_steps = StepCounts()
        for steps in self._steps.values():
            all_steps.update(steps)
        aggregates = {
            "per_template": {
                name: self._summary(
                    {
                        key: numbers.get(name, 0)
                        for key, numbers in counts.items()
                        if name in numbers or key not in self._metrics.retrieval.missing_keys
                    },
                    {
                        metric: known.per_template[name]
                        for metric, known in figures.items()
                        if name in known.per_template
                    },
                    self._steps.get(name, StepCounts()),
                )
                for name in self._template_order()
            },
            "micro": self._summary(
                {key: sum(numbers.values()) for key, numbers in counts.items()},
                {metric: known.micro for metric, known in figures.items()},
                all_steps,
            ),
            "macro": {metric: {"mean": known.macro} for metric, known in figures.items()},
            "totals": self._totals.summary(),
        }
        if self._samples.repeats > 1:
            aggregates["repeats"] = repeats_summary(self._samples, figures, self._repeats)
        return aggregates

    def _figures(self) -> dict[str, Figures]:
        """Return the statistics of each metric that was measured."""
        figures = {}
        for metric in (*self._metrics.names(), *self._step_metrics()):
            values = self._samples.values_by_template(metric)
            if values:
                figures[metric] = figures_of(values, with_error=self._samples.repeats > 1)
        return figures

    def _step_metrics(self) -> Iterable[str]:
        yield from self._metrics.step_names()
        yield from self._metrics.retrieval.names(self._samples.metrics())

    def _counts(self) -> dict[str, Mapping[str, int]]:
        """Return each number of samples or questions by template."""
        samples = self._samples.sample_counts()
        counts: dict[str, Mapping[str, int]] = {
            NUMBER_OF_ERROR_SAMPLES: {name: count for (name, failed), count in samples.items() if failed},
            NUMBER_OF_SUCCESS_SAMPLES: {name: count for (name, failed), count in samples.items() if not failed},
        }
        if self._samples.repeats > 1:
            counts[NUMBER_OF_QUESTIONS] = self._samples.question_counts()
        for key in self._metrics.retrieval.missing_keys:
            missing = self._samples.sums_by_template(key)
            if missing:
                counts[key] = {name: int(number) for name, number in missing.items()}
        return counts

    def _summary(
        self, counts: Mapping[str, int], statistics: Mapping[str, Mapping[str, float]], steps: StepCounts
    ) -> dict[str, Any]:
        """Put the parts of a summary into graphrag-eval's order."""
        summary: dict[str, Any] = dict(counts)
        summary.update({metric: statistics[metric] for metric in self._metrics.names() if metric in statistics})
        if steps_summary := steps.summary():
            summary["steps"] = steps_summary
        summary.update({metric: statistics[metric] for metric in self._step_metrics() if metric in statistics})
        return summary

    def _template_order(self) -> Iterable[str]:
        seen = dict.fromkeys(self._samples.template_ids())
        return {name: None for name in self._template_ids if name in seen} | seen


def compute_aggregates(results: Iterable[Sample], config: ConfigSource = None) -> dict[str, Any]:
    """Sum up the results of an evaluation.

    Failed questions are left out of the statistics (``aggregates: {errors: include}`` counts their scores as 0, those
    of which less is better as their greatest value) and counted in ``number_of_error_samples``. What was not measured
    is absent, never 0.

    Where questions were asked several times (a result has ``repeat`` above 1), statistics are taken over the
    questions' means, so that each question counts once; ``number_of_questions`` says how many there are. The
    numbers of samples and ``steps`` count every repeat. A question's mean is over its repeats that count; that of
    a ``retrieval_…`` figure over all retrieval steps of these.

    Reference steps of retrieval that nothing fulfilled are counted in ``retrieval_missing``, where there are such
    reference steps; ``retrieval: {missing: zero}`` takes each into the ``retrieval_ids_…`` and ``retrieval_text_…``
    figures as 0.

    The numbers and booleans that custom evaluations gave are metrics too; their texts are not. Costs are in USD.

    Args:
        results: The results of ``run_evaluation``; they may come one at a time.
        config: A path, a dict or an EvaluationConfig; None for the defaults.

    Returns:
        ``per_template`` (by template id, in the order of the results) and ``micro``: the two numbers of samples, each
        metric with ``sum``, ``mean``, ``median``, ``min`` and ``max``, and ``steps`` with ``total``,
        ``once_per_sample``, ``empty_results`` and ``errors`` by tool name. ``macro``: each metric's mean over the
        templates' means. ``totals``: what all questions together spent, failed ones and failed attempts included:
        tokens, seconds, ``agent_cost``, ``judges_cost`` and ``cost``, their sum. One that is not known of all
        samples is absent, and ``unmeasured_samples`` says of how many.
        ``repeats``, only with repeats: ``count``, ``metric``, ``threshold``, ``number_of_questions``,
        ``number_of_unmeasured_questions``, ``pass@k`` and ``pass^k`` by k as a text ("1", "2", …), and ``metrics``
        with each metric's ``mean`` and its ``standard_error`` clustered by template.

    Example:
        >>> compute_aggregates([{"template_id": "t", "status": "success", "steps_score": 0.5}])["macro"]
        {'steps_score': {'mean': 0.5}}
    """
    aggregator = Aggregator(config)
    for result in results:
        aggregator.add(result)
    return aggregator.aggregates()


def repeats_summary(samples: Samples, figures: Mapping[str, Figures], config: RepeatsConfig) -> dict[str, Any]:
    """Return the section ``repeats`` of the aggregates.

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
    """Return what is shown of a summary: pass@1, and pass@k and pass^k for the most samples that all questions have.

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
    """Return a measure's mean over the questions for each k, from how many questions have n samples of which c passed.

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
