"""The section ``calibrated`` of the aggregates: judged means corrected for the judge's errors, next to the raw ones."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any, Final

from graphrag_eval_lc.metrics.calibration import CalibratedMean, calibrated_mean, calibrated_share
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_THRESHOLD

CALIBRATED: Final = "calibrated"
_NO_SHARE: Final = (
    "the share of correct answers cannot be corrected: it needs answers that people call correct and others that they "
    "call incorrect, which the judge tells apart better than chance"
)


def calibrated_summary(
    scores: Mapping[str, Sequence[float]], labelled: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    """Return the section.

    Args:
        scores: The judge's ``answer_f1`` of the answered questions, by template.
        labelled: The judge's score and the label of people, 0 to 1, of the labelled answers.

    Returns:
        ``number_of_labels`` and ``threshold``. ``correct``: the share of correct answers, ``judged`` (as the judge
        says) and ``mean``, ``low`` and ``high`` (corrected), with the judge's ``sensitivity`` and ``specificity`` on
        the labelled answers. ``answer_f1``: its mean, ``judged``, and ``mean``, ``low`` and ``high`` of what people
        would say. What cannot be corrected has only ``judged``, and ``note`` says why. Empty without scores or labels.
    """
    every = list(chain.from_iterable(scores.values()))
    if not every or not labelled:
        return {}
    verdicts = [[score >= ANSWER_THRESHOLD for score in group] for group in scores.values()]
    said = [(score >= ANSWER_THRESHOLD, label >= 0.5) for score, label in labelled]
    right, wrong = ([verdict for verdict, label in said if label is wanted] for wanted in (True, False))
    share = calibrated_share(verdicts, said)
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
    """Return a sentence on the section for people; empty without it.

    Example:
        >>> correct = {"judged": 0.83, "mean": 0.71, "low": 0.6, "high": 0.8}
        >>> calibrated_note({"number_of_labels": 60, "correct": correct})
        "Corrected for the judge's errors by 60 labels: 0.71 (0.60 to 0.80) of answers are correct, not 0.83."
    """
    correct = summary.get("correct")
    if not correct:
        return ""
    if "mean" not in correct:
        return f"By {summary['number_of_labels']:,} labels {summary.get('note', '')}."
    return (
        f"Corrected for the judge's errors by {summary['number_of_labels']:,} labels: {correct['mean']:.2f} "
        f"({correct['low']:.2f} to {correct['high']:.2f}) of answers are correct, not {correct['judged']:.2f}."
    )
