"""Means of a judge's verdicts, corrected for the errors that labels of people show."""

from collections.abc import Sequence
from itertools import chain
from math import sqrt
from statistics import covariance, fmean, variance
from typing import Final, NamedTuple

from graphrag_eval_lc.metrics.intervals import (
    FEWEST_TEMPLATES,
    cluster_robust_mean,
    normal_quantile,
    student_quantile,
)

# Two labels that contradict the judge, one each way, widen the interval of a mean: a handful of labels may agree with
# it by chance. As Agresti and Coull 1998 (The American Statistician 52) add some to a share.
_CONTRADICTING: Final = ((1.0, 0.0), (0.0, 1.0))


class CalibratedMean(NamedTuple):
    """A corrected mean, 0 to 1, with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def calibrated_share(
    verdicts: Sequence[Sequence[bool]], labelled: Sequence[tuple[bool, bool]], *, confidence: float = 0.95
) -> CalibratedMean | None:
    """Return the share of answers that are right, from the verdicts of a judge that errs.

    ``(q + Sp − 1) / (Se + Sp − 1)`` for the share q that the judge calls right, its sensitivity Se (of right
    answers) and its specificity Sp (of wrong ones): Rogan and Gladen 1978, "Estimating Prevalence from the Results
    of a Screening Test" (American Journal of Epidemiology 107, 71–76). The interval is that of Lang and Reiczigel
    2014, "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity"
    (Preventive Veterinary Medicine 113, 13–22), which includes how uncertain Se and Sp are. Verdicts of one
    template correlate: with at least 5 templates they count as fewer, by the cluster-robust standard error.

    The labelled answers need not be among those with verdicts, and more or fewer of them may be right, as long as the
    judge errs equally often on them.

    ``verdicts`` has by template whether the judge calls each answer right. ``labelled`` has for each labelled answer
    whether the judge, and whether people, call it right. The result is None without a verdict, without right or
    without wrong labelled answers, and if the judge is not better than chance on them.

    Example:
        >>> labels = [(True, True)] * 27 + [(False, True)] * 3 + [(True, False)] * 8 + [(False, False)] * 12
        >>> found = calibrated_share([[True] * 70 + [False] * 30], labels)
        >>> [round(value, 2) for value in found]
        [0.6, 0.29, 0.89]
    """
    groups = [[float(verdict) for verdict in group] for group in verdicts if group]
    right = [verdict for verdict, label in labelled if label]
    wrong = [verdict for verdict, label in labelled if not label]
    if not groups or not right or not wrong:
        return None
    raw, number = fmean(chain.from_iterable(groups)), _effective_number(groups)
    sensitivity, specificity = sum(right) / len(right), 1 - sum(wrong) / len(wrong)
    if sensitivity + specificity <= 1:
        return None
    quantile = normal_quantile((1 + confidence) / 2)
    # Each share moves a little towards the middle.
    q = (number * raw + quantile**2 / 2) / (number + quantile**2)
    se, sp = (sum(right) + 1) / (len(right) + 2), (len(wrong) - sum(wrong) + 1) / (len(wrong) + 2)
    power = se + sp - 1
    share = (q + sp - 1) / power
    of_se, of_sp = se * (1 - se) / (len(right) + 2), sp * (1 - sp) / (len(wrong) + 2)
    shift = 2 * quantile**2 * (share * of_se - (1 - share) * of_sp)
    error = sqrt(q * (1 - q) / (number + quantile**2) + share**2 * of_se + (1 - share) ** 2 * of_sp) / power
    mean = _within((raw + specificity - 1) / (sensitivity + specificity - 1))
    low, high = _within(share + shift - quantile * error), _within(share + shift + quantile * error)
    return CalibratedMean(mean, min(low, mean), max(high, mean))


def calibrated_mean(
    scores: Sequence[Sequence[float]], labelled: Sequence[tuple[float, float]], *, confidence: float = 0.95
) -> CalibratedMean | None:
    """Return the mean score that people would give to answers, from a judge's scores and people's labels of some.

    Prediction-powered inference: ``λ · mean(scores) + mean(label − λ · score)``, the second mean over the labelled
    answers; its variance is ``λ² · var(scores) / N + var(label − λ · score) / n``: Angelopoulos et al. 2023,
    "Prediction-Powered Inference" (Science 382, 669–674). λ, 0 to 1, is chosen so that the variance is smallest, as in
    "PPI++: Efficient Prediction-Powered Inference" (arXiv:2311.01453). So an uninformative judge does no harm. The
    interval uses Student's quantile for n − 1, and counts two more labels that contradict the judge, one each way. The
    standard error of the scores is cluster-robust with at least 5 templates.

    The labelled answers, each with the judge's score and the label from 0 to 1, must be a random sample of those that
    are scored. None with fewer than two scores or labels.

    Example:
        >>> labels = [(0.9, 1.0)] * 20 + [(0.8, 0.0)] * 10 + [(0.1, 0.0)] * 10
        >>> found = calibrated_mean([[0.9] * 60, [0.8] * 30, [0.1] * 10], labels)
        >>> [round(value, 2) for value in found]
        [0.61, 0.48, 0.77]
    """
    groups = [list(group) for group in scores if group]
    every = list(chain.from_iterable(groups))
    if len(every) < 2 or len(labelled) < 2:
        return None
    weight = _weight(every, labelled)
    mean = weight * fmean(every) + fmean(label - weight * score for score, label in labelled)
    widened = [*labelled, *_CONTRADICTING]
    rest = [label - weight * score for score, label in widened]
    of_scores = variance(every) / len(every)
    if len(groups) >= FEWEST_TEMPLATES:
        of_scores = max(of_scores, cluster_robust_mean(groups).standard_error ** 2)
    error = sqrt(weight**2 * of_scores + variance(rest) / len(rest))
    half = student_quantile((1 + confidence) / 2, len(rest) - 1) * error
    centre = weight * fmean(every) + fmean(rest)
    low, high, mean = _within(centre - half), _within(centre + half), _within(mean)
    return CalibratedMean(mean, min(low, mean), max(high, mean))


def _weight(scores: Sequence[float], labelled: Sequence[tuple[float, float]]) -> float:
    """Return λ, the weight of the scores that makes the variance of the mean smallest."""
    spread = variance([*scores, *(score for score, _ in labelled)])
    if not spread:
        return 0.0
    together = covariance(*zip(*labelled, strict=True))
    return _within(together / spread / (1 + len(labelled) / len(scores)))


def _effective_number(groups: Sequence[Sequence[float]]) -> float:
    """Return how many independent verdicts carry as much information as these, which correlate within templates."""
    number = sum(map(len, groups))
    if len(groups) < FEWEST_TEMPLATES:
        return number
    mean, error, _ = cluster_robust_mean(groups)
    return min(max(mean * (1 - mean) / error**2, 1.0), float(number)) if 0 < mean < 1 and error else number


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
