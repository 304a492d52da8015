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
