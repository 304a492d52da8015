"""What one result holds: the values of its metrics, its counts, and why it scored less than in full."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, StepsConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import (
    COUNTED,
    FAMILIES,
    STEPS_F1,
    STEPS_PRECISION,
    STEPS_SCORE,
    UPPER_BOUNDS,
    aggregated_metrics,
    metric_spec,
)
from graphrag_eval_lc.texts import counted, shortened

Values = Mapping[str, Sequence[float]]

# By the beginning of the names of retrieval metrics that need no language model, the key under which results count
# the reference steps that nothing fulfilled.
MISSING_KEYS = {spec.key: spec.missing_key for spec in FAMILIES.values() if spec.missing_key is not None}
_MISSING = tuple(MISSING_KEYS.values())
_OF_FAMILIES = tuple(FAMILIES)
# The judged metrics of retrieval steps, and their costs.
OF_STEPS = tuple(spec.key for spec in aggregated_metrics("steps"))
_COUNTED = tuple((spec.key, str(spec.counted_in)) for spec in COUNTED)


def number(value: object) -> float | None:
    """Return a number as it is and a boolean as 0 or 1; None for NaN, infinities, huge numbers and anything else."""
    if type(value) is float:  # as most are
        return value if abs(value) <= LARGEST else None
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def counts_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts in a mapping of a result, such as the undecided steps, by their keys.

    Example:
        >>> counts_of({"steps_counts": {"extra": 2, "undecided": 1}})
        {'undecided': 1}
    """
    found: dict[str, int] = {}
    for key, counted_in in _COUNTED:
        counts = result.get(counted_in)
        count = counts.get(key) if isinstance(counts, Mapping) else None
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            found[key] = count
    return found


def missing_in(result: Mapping[str, Any]) -> dict[str, int]:
    """Return how many reference steps of retrieval nothing fulfilled, by the keys that a result has for them."""
    counts = ((key, result[key]) for key in _MISSING if key in result)  # most results have none
    return {key: count for key, count in counts if isinstance(count, int) and count >= 0}


class Metrics:
    """Reads the values of metrics in results.

    ``config`` names its tools and custom evaluations, ``more`` further keys of results that are metrics, and with
    ``only`` no time is spent on others. ``found`` are the metrics that results name under ``custom_metrics``:
    registered ones and those of a caller's functions. ``retrieval_names`` are the steps whose documents are judged.

    Example:
        >>> Metrics(EvaluationConfig()).values({"steps_score": 0.5, "total_tokens": 7, "error": "away"})
        {'steps_score': [0.0], 'total_tokens': [7]}
    """

    def __init__(self, config: EvaluationConfig, more: Iterable[str] = (), *, only: bool = False) -> None:
        custom = config.custom_evaluations or ()
        names, retrieving = config.steps.names, config.retrieval.document_step_names(config.steps.names)
        of_config = (
            *(spec.key for spec in aggregated_metrics("questions")),
            *(key for evaluation in custom for key in evaluation.outputs),
            *(evaluation.cost_key for evaluation in custom),
        )
        more = dict.fromkeys(more)
        self._wanted = frozenset(more) if only else None
        self.of_samples = tuple(dict.fromkeys((*(() if only else of_config), *more)))
        self.retrieval_names = retrieving.union(tool for tool, name in names.items() if name in retrieving)
        self.found: dict[str, None] = {}
        self._reads_steps = not only or any(key in OF_STEPS or key.startswith(_OF_FAMILIES) for key in more)
        self._zeros = config.retrieval.metric_keys() if config.retrieval.missing == "zero" else {}

    def names(self) -> tuple[str, ...]:
        """Return the metrics of results, with those that were found so far."""
        return (*self.of_samples, *self.found)

    def values(self, result: Mapping[str, Any], *, has_failed: bool | None = None) -> dict[str, list[float]]:
        """Return all values of a result by metric; those of a failed question are what it counts as.

        A metric of results has one value, a metric of steps one for each step. Reference steps of retrieval that
        nothing fulfilled count as zeros if the config says so.
        """
        custom = result.get("custom_metrics") if self._wanted is None else None
        for metric in custom if isinstance(custom, list) else ():
            if isinstance(metric, str) and metric not in self.of_samples:
                self.found[metric] = None
        values: dict[str, list[float]] = {}
        for metric in chain(self.of_samples, self.found):
            if metric in result and (value := number(result[metric])) is not None:  # most are absent from a result
                values[metric] = [value]
        steps = (result.get("actual_steps") or ()) if self._reads_steps else ()
        missing = missing_in(result) if steps or self._zeros else {}
        for step in steps:
            judged = OF_STEPS if step.get("name") in self.retrieval_names else ()
            measured = [key for key in step if key.startswith(_OF_FAMILIES)] if missing else ()
            for metric in (*judged, *measured):
                given = step.get(metric)
                if given is not None and (value := number(given)) is not None:
                    values.setdefault(metric, []).append(value)
        if is_error(result) if has_failed is None else has_failed:
            values = {metric: counted for metric, each in values.items() if (counted := _of_failed(metric, each))}
        for family, keys in self._zeros.items() if self._reads_steps else ():
            if zeros := missing.get(MISSING_KEYS[family], 0):
                for metric in keys:
                    values.setdefault(metric, []).extend([0.0] * zeros)
        if self._wanted is not None:
            return {metric: of_metric for metric, of_metric in values.items() if metric in self._wanted}
        return values


def _of_failed(metric: str, values: list[float]) -> list[float]:
    """Return what a failed question counts as in a metric that it has; empty if it does not count."""
    spec = metric_spec(metric)
    if spec.kind != "score":
        return values
    return [] if spec.value_of_failure is None else [spec.value_of_failure] * len(values)


def with_bounds(values: Values) -> Values:
    """Add the upper bounds that a result lacks: a value that is certain is its own bound."""
    lacking = {upper: values[key] for upper, key in UPPER_BOUNDS.items() if key in values and upper not in values}
    return {**values, **lacking} if lacking else values


_SHOWN_CAUSE = 180
_SHOWN_REASON = 270
_MOST_DIGITS = 9


def reason_of(result: Mapping[str, Any]) -> str:
    """Say in one line why a question did not score in full.

    The reason is its error, else the diagnosis of the step that ``unfulfilled_step`` returns, or if steps are graded,
    that the agent made more calls than needed.

    Example:
        >>> reason_of({"status": "error", "error": "TimeoutError: no answer in 600 s"})
        'TimeoutError: no answer in 600 s'
        >>> reason_of({"status": "success", "steps_score": 0.5, "steps_precision": 1 / 3, "steps_diagnosis": []})
        'all is fulfilled, but with more calls than needed: steps_precision is 0.33'
    """
    if is_error(result):
        error = str(result.get("error") or "failed without a message")
        step, diagnosis = unfulfilled_step(result) or ({}, {})
        if (query := diagnosis.get("query")) is not None:  # an agent that gets no rows may ask again until it fails
            error = f"{step['name']}: {shortened(query['sentence'], _SHOWN_CAUSE)} The run failed: {error}"
        return shortened(error, _SHOWN_REASON)
    if (found := unfulfilled_step(result)) is not None:
        step, diagnosis = found
        last = next(_unfulfilled(result))[0]
        about = ", undecided" if diagnosis.get("outcome") == "undecided" else ""
        after = "" if step is last else f"; {last['name']} was not called"
        reason = f"{step['name']}{about}: {diagnosis['reason']}"
        return f"{shortened(reason, _SHOWN_REASON - len(after))}{after}"
    score, precision = number(result.get(STEPS_SCORE)), number(result.get(STEPS_PRECISION))
    if score is not None and score < 1 and precision is not None and precision < 1:  # only if steps are graded
        return f"all is fulfilled, but with more calls than needed: {STEPS_PRECISION} is {precision:.2f}"
    return ""


def unfulfilled_step(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the reference step that explains a score below 1, with its diagnosis; None if all are fulfilled.

    It is the first unfulfilled step of the last group that has one. If nothing was called for that step, an earlier
    step with an unsuccessful call explains more: without its result the agent could not continue.
    """
    found = list(_unfulfilled(result))
    if not found or "nearest" in found[0][1]:
        return found[0] if found else None
    compared = (each for each in found if "nearest" in each[1] and each[1]["outcome"] == "mismatch")
    return next((each for each in compared if not each[1]["score"]), found[0])


def _unfulfilled(result: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the unfulfilled reference steps with their diagnoses, those of the last group first."""
    for group, diagnoses in reversed(list(enumerate(result.get("steps_diagnosis", ())))):
        for index, diagnosis in enumerate(diagnoses):
            if not (diagnosis["matched"] and diagnosis["score"] == 1.0):
                yield result["reference_steps"][group][index], diagnosis


def uncertainty_texts(
    undecided: int, outputs_cut: int, score: float | None = None, upper: float | None = None
) -> list[str]:
    """Return a sentence on undecided steps, with the means of ``steps_score`` and its bound, and one on cut outputs.

    Example:
        >>> uncertainty_texts(2, 0, 0.9, 0.95)
        ['2 reference steps are undecided and count 0: steps_score is between 0.900 and 0.950.']
    """
    texts = []
    between = bounds_text(score, upper)
    if undecided or between:
        # Without undecided steps, the bounds still differ if an undecided comparison could lead to better matches.
        steps = counted(undecided, "reference step is undecided and counts", "reference steps are undecided and count")
        text = f"{steps if undecided else 'some comparisons are undecided and count'} 0"
        texts.append(f"{text}: {STEPS_SCORE} is {between}." if between else f"{text}.")
    if outputs_cut:
        text = f"{counted(outputs_cut, 'output ends', 'outputs end')} before the end, and the rest is not known"
        texts.append(f"{text}; raise the length limit of the tool, or of the capture (max_output_chars).")
    return texts


def bounds_text(score: float | None, upper: float | None) -> str:
    """Return the bounds of a mean, as text in which both differ; empty if they are not known or the same.

    Example:
        >>> bounds_text(0.9, 0.95), bounds_text(0.9, 0.9001), bounds_text(0.9, None)
        ('between 0.900 and 0.950', 'between 0.9000 and 0.9001', '')
    """
    if score is None or upper is None or upper <= score:
        return ""
    digits = next((digits for digits in range(3, _MOST_DIGITS) if f"{score:.{digits}f}" != f"{upper:.{digits}f}"), 0)
    return f"between {score:.{digits}f} and {upper:.{digits}f}" if digits else ""


def grading_note(config: EvaluationConfig) -> str | None:
    """Return what ``steps_score`` is if steps are graded; None if they are not.

    Example:
        >>> grading_note(EvaluationConfig(steps=StepsConfig(grading="graded")))
        'Steps are graded: steps_score is steps_f1, over all groups'
        >>> grading_note(EvaluationConfig(steps=StepsConfig(grading="graded", scoring="last_group")))
        'Steps are graded: steps_score is steps_f1, over all groups; scoring: last_group has no effect'
    """
    steps = config.steps
    if steps.grading == "binary":
        return None
    # Only mention a setting that the user made; nobody expects an effect of the default.
    ignored = f"; scoring: {steps.scoring} has no effect" if "scoring" in steps.model_fields_set else ""
    return f"Steps are graded: {STEPS_SCORE} is {STEPS_F1}, over all groups{ignored}"


def grading_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Say that the config of an earlier scoring, as run.json has it, graded steps otherwise; None if it did not."""
    default, steps = StepsConfig().grading, [config.get("steps") for config in (before, now)]
    old, new = (each.get("grading", default) if isinstance(each, Mapping) else default for each in steps)
    if old == new:
        return None
    return f"steps are {new} now and were {old} before, so that {STEPS_SCORE} is not comparable with that of before"
