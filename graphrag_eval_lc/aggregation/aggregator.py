"""Aggregates of results that are added one at a time, repeats and labels of people included."""

import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import (
    MISSING_KEYS,
    OF_STEPS,
    Metrics,
    counts_of,
    missing_in,
    with_bounds,
)
from graphrag_eval_lc.aggregation.statistics import (
    Column,
    JudgeCosts,
    MetricStatistics,
    StepCounts,
    Totals,
    passes,
    repeats_summary,
)
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.judges.answer_tables import JudgeLabels, judge_labels
from graphrag_eval_lc.metrics.calibration import CalibratedMean, calibrated_mean, calibrated_share
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import (
    ANSWER_F1,
    ANSWER_THRESHOLD,
    COUNTED,
    FAMILIES,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SUCCESS_SAMPLES,
    UPPER_BOUNDS,
    metric_spec,
)

_RESULTS_HINT = "Give what run_evaluation returned: a list of dicts, each with its template_id."

# The counts that aggregates have if results state them, in their order.
_COUNTS = (*MISSING_KEYS.values(), *(spec.key for spec in COUNTED))
_ALL_COUNTS = (NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES, NUMBER_OF_QUESTIONS, *_COUNTS)

_Question = tuple[str, Hashable]


@dataclass(slots=True)
class _Template:
    """The counts of a template's results: all but ``errors`` leave out failed ones unless the config includes them."""

    errors: int = 0
    successes: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # by their keys in aggregates
    steps: StepCounts = field(default_factory=StepCounts)
    bounded: set[str] = field(default_factory=set)  # the upper bounds that a result states


class Aggregator:
    """The aggregates of results that are added one at a time, in any order.

    Only the values of results are kept: some 100 bytes per result, and its question id. ``template_ids`` sets the order
    of ``per_template``; other templates follow as they are first seen. ``labels`` of people correct judged means.

    Example:
        >>> aggregator = Aggregator()
        >>> aggregator.add({"template_id": "t", "question_id": "q1", "status": "success", "steps_score": 0.5})
        >>> aggregator.add({"template_id": "t", "question_id": "q2", "status": "success", "steps_score": 1.0})
        >>> aggregator.aggregates()["macro"]
        {'steps_score': {'mean': 0.75}}
    """

    def __init__(
        self,
        config: EvaluationConfig | None = None,
        template_ids: Sequence[str] = (),
        *,
        labels: JudgeLabels | None = None,
    ) -> None:
        self._settings = settings = config or EvaluationConfig()
        self._labels = labels
        self._template_ids = tuple(map(str, template_ids))
        self._metrics = Metrics(settings)
        self._totals, self._judge_costs = Totals(), JudgeCosts(settings)
        # One entry per result: its question, and whether it failed. The values of metrics are in columns.
        self._questions: list[_Question] = []
        self._failures = bytearray()
        self._columns: defaultdict[str, Column] = defaultdict(Column)
        self._repeats = 1
        self._templates: defaultdict[str, _Template] = defaultdict(_Template)

    def add(self, result: Mapping[str, Any]) -> None:
        """Add a result."""
        row, has_failed, question_id = len(self._questions), is_error(result), result.get("question_id")
        template_id = sys.intern(str(result["template_id"]))  # one object for all results
        self._questions.append((template_id, row if question_id is None else str(question_id)))
        self._failures.append(has_failed)
        template = self._templates[template_id]
        template.errors += has_failed
        template.successes += not has_failed
        repeat = result.get("repeat")
        if isinstance(repeat, int) and repeat > self._repeats:
            self._repeats = repeat
        self._totals.add(result, self._judge_costs.of(result))
        if self._labels is not None:
            self._labels.add(result)
        if has_failed and self._settings.aggregates.errors == "exclude":
            return
        template.steps.add(result)
        for key, count in missing_in(result).items():
            template.counts[key] += count
        for key, count in counts_of(result).items():
            if count:  # without any, the aggregates are the same as those of graphrag-eval
                template.counts[key] += count
        values = self._metrics.values(result, has_failed=has_failed)
        template.bounded |= values.keys() & UPPER_BOUNDS.keys()
        for metric, of_metric in with_bounds(values).items():
            self._columns[metric].add(row, of_metric)

    def aggregates(self) -> dict[str, Any]:
        """Return the aggregates of the results so far, as ``compute_aggregates`` does."""
        statistics = {
            metric: MetricStatistics.of(self._values_by_template(metric), with_error=self._repeats > 1)
            for metric in self._measured()
        }
        questions = Counter(template_id for template_id, _ in set(self._questions)) if self._repeats > 1 else {}
        per_template: dict[str, Any] = {}
        all_counts, all_steps = Counter({NUMBER_OF_ERROR_SAMPLES: 0, NUMBER_OF_SUCCESS_SAMPLES: 0}), StepCounts()
        wanted = [name for name in self._template_ids if name in self._templates]
        for name in dict.fromkeys((*wanted, *self._templates)):
            template = self._templates[name]
            counts = {
                NUMBER_OF_ERROR_SAMPLES: template.errors,
                NUMBER_OF_SUCCESS_SAMPLES: template.successes,
                **({NUMBER_OF_QUESTIONS: questions[name]} if questions else {}),
                **{key: template.counts[key] for key in _COUNTS if key in template.counts},
            }
            known_here = {
                metric: known.per_template[name]
                for metric, known in statistics.items()
                if name in known.per_template and (metric not in UPPER_BOUNDS or metric in template.bounded)
            }
            per_template[name] = self._summary(counts, known_here, template.steps)
            all_counts.update(counts)
            all_steps.update(template.steps)
        aggregates = {
            "per_template": per_template,
            "micro": self._summary(
                {key: all_counts[key] for key in _ALL_COUNTS if key in all_counts},
                {metric: known.micro for metric, known in statistics.items()},
                all_steps,
            ),
            "macro": {metric: {"mean": known.macro} for metric, known in statistics.items()},
            "totals": self._totals.summary(),
        }
        if self._repeats > 1:
            repeats = self._settings.repeats
            outcomes = self._outcomes(repeats.metric, repeats.threshold)
            aggregates["repeats"] = repeats_summary(outcomes, self._repeats, statistics, repeats)
        if self._labels is not None and ANSWER_F1 in self._columns:
            pairs = self._labels.pairs()
            if calibrated := calibrated_summary(self._values_by_template(ANSWER_F1), pairs):
                aggregates[CALIBRATED] = calibrated
        return aggregates

    def _measured(self) -> list[str]:
        """Return the metrics that have values, in graphrag-eval's order; bounds only if a result states one."""
        families = [key for family in FAMILIES for key in self._columns if key.startswith(family)]
        named = [key for key in (*self._metrics.names(), *OF_STEPS) if key in self._columns]
        bounded = set().union(*(template.bounded for template in self._templates.values()))
        return [key for key in (*named, *families) if key not in UPPER_BOUNDS or key in bounded]

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

    def _values_by_template(self, metric: str) -> dict[str, list[float]]:
        """Return the values that statistics summarise: a metric's, or with repeats its mean for each question."""
        by_question: defaultdict[_Question, list[float]] = defaultdict(list)
        values: defaultdict[str, list[float]] = defaultdict(list)
        for row, value in self._columns[metric].items():
            if self._repeats > 1:
                by_question[self._questions[row]].append(value)
            else:
                values[self._questions[row][0]].append(value)
        for (template_id, _), repeated in by_question.items():
            values[template_id].append(fmean(repeated))
        return dict(values)

    def _outcomes(self, metric: str, threshold: float) -> dict[_Question, list[bool | None]]:
        """Return for each question which of its samples passed; None for one that succeeded unmeasured.

        A sample passes if it did not fail and its value is at least the threshold, or at most the threshold if lower is
        better. The value of a metric of steps is the mean over them.
        """
        values: defaultdict[int, list[float]] = defaultdict(list)
        for row, value in self._columns[metric].items() if metric in self._columns else ():
            values[row].append(value)
        is_lower_better = metric_spec(metric).lower_is_better
        passed = {row: passes(fmean(each), threshold, lower_is_better=is_lower_better) for row, each in values.items()}
        outcomes: defaultdict[_Question, list[bool | None]] = defaultdict(list)
        for row, question in enumerate(self._questions):
            outcomes[question].append(False if self._failures[row] else passed.get(row))
        return outcomes


def compute_aggregates(results: Iterable[Mapping[str, Any]], config: ConfigSource = None) -> dict[str, Any]:
    """Return the aggregates of the results of an evaluation.

    Failed questions are counted in ``number_of_error_samples`` and left out of the statistics. With ``aggregates:
    {errors: include}`` their scores count as 0, or as the greatest value if less is better. What was not measured
    is absent, never 0.

    If questions were repeated (a result has ``repeat`` above 1), statistics are taken over the
    questions' means, so that each question counts once; ``number_of_questions`` says how many there are. The
    numbers of samples and ``steps`` count every repeat. A question's mean is over its repeats that count; that of
    a ``retrieval_…`` metric over all retrieval steps of these.

    If there are reference steps of retrieval, those that nothing fulfilled are counted in ``retrieval_missing``;
    with ``retrieval: {missing: zero}`` each of them counts as 0 in the ``retrieval_ids_…`` and ``retrieval_text_…``
    metrics.

    ``undecided`` counts the reference steps for which it is unknown whether a step fulfils them, and ``outputs_cut``
    the outputs that were truncated. ``steps_score_upper``, over the same questions as ``steps_score``, is what that
    would be if all undecided steps matched: a question without such steps counts with its ``steps_score``.
    All three are absent without such steps or outputs, and in results that do not have them.

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
        ``calibrated``, only with ``judges: {labels: FILE}`` in the config: judged means corrected for the judge's
        errors, as ``calibrated_summary`` returns them.

    Raises:
        ResponsesError: What is given is not a list of results.
        ConfigError: The labels that the config names cannot be used.

    Example:
        >>> compute_aggregates([{"template_id": "t", "status": "success", "steps_score": 0.5}])["macro"]
        {'steps_score': {'mean': 0.5}}
    """
    if not isinstance(config, EvaluationConfig):  # no models are needed, as nothing is judged here
        config = load_config(config, has_llm=True, has_embeddings=True)
    path = config.judges.labels
    aggregator = Aggregator(config, labels=None if path is None else judge_labels(path))
    if not isinstance(results, Iterable) or isinstance(results, str | Mapping):
        raise ResponsesError(f"the results cannot be a {type(results).__name__}", hint=_RESULTS_HINT)
    for number, result in enumerate(results):
        if not isinstance(result, Mapping) or "template_id" not in result:
            raise ResponsesError("this is not a result", key=f"results[{number}]", hint=_RESULTS_HINT)
        aggregator.add(result)
    return aggregator.aggregates()


CALIBRATED: Final = "calibrated"
_NO_SHARE: Final = (
    "the share of correct answers cannot be corrected: it needs answers that people call correct and others that they "
    "call incorrect, which the judge distinguishes better than chance"
)


def calibrated_summary(
    scores: Mapping[str, Sequence[float]], labelled: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    """Return the section, empty without scores or labels; what cannot be corrected has only ``judged``, and a ``note``.

    ``scores`` are the judge's ``answer_f1`` of the answered questions by template, ``labelled`` the judge's score and
    the label of people, 0 to 1, of the labelled answers. ``judged`` is what the judge says; ``mean``, ``low`` and
    ``high`` are what people would say.
    """
    every = list(chain.from_iterable(scores.values()))
    if not every or not labelled:
        return {}
    verdicts = [[score >= ANSWER_THRESHOLD for score in group] for group in scores.values()]
    labelled_verdicts = [(score >= ANSWER_THRESHOLD, label >= 0.5) for score, label in labelled]
    right, wrong = ([verdict for verdict, label in labelled_verdicts if label is wanted] for wanted in (True, False))
    share = calibrated_share(verdicts, labelled_verdicts)
    return {
        "number_of_labels": len(labelled),
        "threshold": ANSWER_THRESHOLD,
        "correct": {
            "judged": fmean(chain.from_iterable(verdicts)),
            **_record(share),
            **({"sensitivity": sum(right) / len(right)} if right else {}),
            **({"specificity": 1 - sum(wrong) / len(wrong)} if wrong else {}),
        },
        ANSWER_F1: {"judged": fmean(every), **_record(calibrated_mean(list(scores.values()), labelled))},
        **({"note": _NO_SHARE} if share is None else {}),
    }


def _record(found: CalibratedMean | None) -> dict[str, float]:
    return {} if found is None else found._asdict()


def calibrated_note(summary: Mapping[str, Any]) -> str:
    """Return a sentence on the section for people; empty without it."""
    correct = summary.get("correct")
    if not correct:
        return ""
    if "mean" not in correct:
        return f"By {summary['number_of_labels']:,} labels {summary.get('note', '')}."
    return (
        f"Corrected for the judge's errors by {summary['number_of_labels']:,} labels: {correct['mean']:.2f} "
        f"({correct['low']:.2f} to {correct['high']:.2f}) of answers are correct, not {correct['judged']:.2f}."
    )
