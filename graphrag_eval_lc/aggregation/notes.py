"""Sentences about scores: why a question scored less than in full, what is undecided, and how steps are graded."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.config import EvaluationConfig, StepsConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_PRECISION, STEPS_SCORE
from graphrag_eval_lc.texts import counted, shortened

_SHOWN_CAUSE = 180
_SHOWN_REASON = 270
_MOST_DIGITS = 9


def reason_of(result: Mapping[str, Any]) -> str:
    """Say in one line why a question did not score in full.

    That is its error, else the diagnosis of the step that ``unfulfilled_step`` returns, else, if steps are graded, that
    there were more calls than it takes.

    Example:
        >>> reason_of({"status": "error", "error": "TimeoutError: no answer in 600 s"})
        'TimeoutError: no answer in 600 s'
        >>> reason_of({"status": "success", "steps_score": 0.5, "steps_precision": 1 / 3, "steps_diagnosis": []})
        'all is fulfilled, by more calls than it takes: steps_precision is 0.33'
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
        return f"all is fulfilled, by more calls than it takes: {STEPS_PRECISION} is {precision:.2f}"
    return ""


def unfulfilled_step(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the reference step that explains a score below 1, with its diagnosis; None if all are fulfilled.

    That is the first unfulfilled step of the last group that has one. If nothing was called for it, it is the one
    before it for which a call was made in vain, if there is one: without its result the agent could not continue.
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
    """Return a sentence on undecided steps and one on cut outputs, each only if there are any.

    ``score`` and ``upper`` are the means of ``steps_score`` and ``steps_score_upper``.

    Example:
        >>> uncertainty_texts(2, 0, 0.9, 0.95)
        ['2 reference steps are undecided and count 0: steps_score is between 0.900 and 0.950.']
    """
    texts = []
    between = bounds_text(score, upper)
    if undecided or between:
        # Without such steps, a step that may fit would fit better than another or leave more room before it.
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
        'Steps are graded: steps_score is steps_f1, over all groups; scoring: last_group says nothing'
    """
    steps = config.steps
    if steps.grading == "binary":
        return None
    # Where it is the default nobody expects anything of it.
    ignored = f"; scoring: {steps.scoring} says nothing" if "scoring" in steps.model_fields_set else ""
    return f"Steps are graded: {STEPS_SCORE} is {STEPS_F1}, over all groups{ignored}"


def grading_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Say that the config of an earlier scoring, as run.json has it, graded steps otherwise; None if it did not.

    Example:
        >>> grading_change({"steps": {"scoring": "last_group"}}, {"steps": {"grading": "graded"}})
        'steps are graded now and were binary before, so that steps_score is not comparable with that of before'
    """
    old, new = _grading(before), _grading(now)
    if old == new:
        return None
    return f"steps are {new} now and were {old} before, so that {STEPS_SCORE} is not comparable with that of before"


def _grading(config: Mapping[str, Any]) -> Any:
    steps = config.get("steps")
    default = StepsConfig().grading
    return steps.get("grading", default) if isinstance(steps, Mapping) else default
