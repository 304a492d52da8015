"""Summing results up: per template, over all questions (micro), and over the templates (macro)."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.records import StepsSummary

# In graphrag-eval's order.
SAMPLE_METRICS = (
    "answer_recall",
    "answer_precision",
    "answer_relevance",
    "answer_f1",
    "steps_score",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "elapsed_sec",
)
STEP_METRICS = (
    "retrieval_answer_precision",
    "retrieval_answer_recall",
    "retrieval_answer_f1",
    "retrieval_context_recall",
    "retrieval_context_precision",
    "retrieval_context_f1",
)
SPENT_METRICS = ("input_tokens", "output_tokens", "total_tokens", "elapsed_sec")

_EMPTY_BINDINGS = re.compile(r'"bindings"\s*:\s*\[\s*\]')

Sample = Mapping[str, Any]


def compute_aggregates(results: Iterable[Sample], config: ConfigSource = None) -> dict[str, Any]:
    """Sum up the results of an evaluation.

    Failed questions are left out of the statistics (``aggregates: {errors: include}`` counts their scores as 0) and
    counted in ``number_of_error_samples``. What was not measured is absent, never 0.

    Args:
        results: The results of ``run_evaluation``.
        config: A path, a dict or an EvaluationConfig; None for the defaults.

    Returns:
        ``per_template`` (by template id, in the order of the results) and ``micro``: the two numbers of samples, each
        metric with ``sum``, ``mean``, ``median``, ``min`` and ``max``, and ``steps`` with ``total``,
        ``once_per_sample``, ``empty_results`` and ``errors`` by tool name. ``macro``: each metric's mean over the
        templates' means. ``totals``: what all questions together spent, failed ones included.

    Example:
        >>> compute_aggregates([{"template_id": "t", "status": "success", "steps_score": 0.5}])["macro"]
        {'steps_score': {'mean': 0.5}}
    """
    include_errors = load_config(config).aggregates.errors == "include"
    by_template: dict[str, list[Sample]] = {}
    samples: list[Sample] = []
    for sample in results:
        by_template.setdefault(str(sample["template_id"]), []).append(sample)
        samples.append(sample)
    per_template = {
        template_id: _summary(group, include_errors=include_errors) for template_id, group in by_template.items()
    }
    return {
        "per_template": per_template,
        "micro": _summary(samples, include_errors=include_errors),
        "macro": _macro(per_template.values()),
        "totals": _totals(samples),
    }


def is_error(sample: Sample) -> bool:
    """Tell whether a result is of a question that failed."""
    return sample.get("status") == "error" or sample.get("error") is not None


def _summary(samples: Sequence[Sample], *, include_errors: bool) -> dict[str, Any]:
    succeeded = [sample for sample in samples if not is_error(sample)]
    summary: dict[str, Any] = {
        "number_of_error_samples": len(samples) - len(succeeded),
        "number_of_success_samples": len(succeeded),
    }
    counted = samples if include_errors else succeeded
    for metric in SAMPLE_METRICS:
        values = _values(counted, metric)
        if values:
            summary[metric] = _statistics(values)
    steps = _steps_summary(counted)
    if steps:
        summary["steps"] = steps
    for metric in STEP_METRICS:
        values = [
            value
            for sample in counted
            for step in _steps(sample)
            if step.get("name") == "retrieval" and (value := _number(step.get(metric))) is not None
        ]
        if values:
            summary[metric] = _statistics(values)
    return summary


def _values(samples: Iterable[Sample], metric: str) -> list[float]:
    """Give a metric's measured values; a failed question's score is 0, what it spent is what it spent."""
    values = []
    for sample in samples:
        value = _number(sample.get(metric))
        if value is not None:
            values.append(0.0 if is_error(sample) and metric not in SPENT_METRICS else value)
    return values


def _number(value: object) -> float | None:
    """Give a measured number; NaN, infinities and integers beyond all floats measure nothing."""
    if not isinstance(value, int | float):
        return None
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        return None
    return (float(value) if isinstance(value, bool) else value) if is_finite else None


def _statistics(values: Sequence[float]) -> dict[str, float]:
    return {
        "sum": _sum(values),
        "mean": mean(values),
        "median": median(values),
        "min": min(values),
        "max": max(values),
    }


def _sum(values: Sequence[float]) -> float:
    """Add up exactly: whole numbers stay whole, and floats do not depend on their order."""
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)


def _macro(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    means: dict[str, list[float]] = {metric: [] for metric in (*SAMPLE_METRICS, *STEP_METRICS)}
    for summary in summaries:
        for metric, values in means.items():
            if metric in summary:
                values.append(summary[metric]["mean"])
    return {metric: {"mean": mean(values)} for metric, values in means.items() if values}


def _steps(sample: Sample) -> Iterable[Mapping[str, Any]]:
    return sample.get("actual_steps") or ()


def _steps_summary(samples: Iterable[Sample]) -> StepsSummary:
    total: Counter[str] = Counter()
    once_per_sample: Counter[str] = Counter()
    empty_results: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for sample in samples:
        names = [str(step.get("name")) for step in _steps(sample)]
        total.update(names)
        once_per_sample.update(dict.fromkeys(names, 1))
        for name, step in zip(names, _steps(sample), strict=True):
            if step.get("status") == "error" or "comparison_error" in step:
                errors[name] += 1
            elif _has_no_rows(step.get("output")):
                empty_results[name] += 1
    counters = {"total": total, "once_per_sample": once_per_sample, "empty_results": empty_results, "errors": errors}
    return cast("StepsSummary", {part: dict(counter) for part, counter in counters.items() if counter})


def _has_no_rows(output: object) -> bool:
    """Tell whether an output is a SPARQL result without rows; only texts that may be one are parsed."""
    if not isinstance(output, str) or not _EMPTY_BINDINGS.search(output):
        return False
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return False
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, dict) and results.get("bindings") == []


def _totals(samples: Sequence[Sample]) -> dict[str, Any]:
    """Give what the run spent; a sum is absent where a response lacks the figure, and it says how many do."""
    totals: dict[str, Any] = {"number_of_samples": len(samples)}
    unmeasured: dict[str, int] = {}
    for metric in SPENT_METRICS:
        values = [value for sample in samples if (value := _number(sample.get(metric))) is not None]
        if values and len(values) == len(samples):
            totals[metric] = _sum(values)
        elif values:
            unmeasured[metric] = len(samples) - len(values)
    if unmeasured:
        totals["unmeasured_samples"] = unmeasured
    return totals
