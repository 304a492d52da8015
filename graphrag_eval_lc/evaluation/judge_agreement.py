"""Measures how well a judge's verdicts agree with the labels of people."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_eval_lc.judges.answer_tables import Cells, is_judged, score_in
from graphrag_eval_lc.metrics import cohens_kappa, kappa_interval, krippendorffs_alpha, wilson_interval

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of cases, as two numbers: how many count, and how many there are."""

    count: int
    number: int

    @property
    def value(self) -> float | None:
        """The share, 0 to 1; None without cases."""
        return self.count / self.number if self.number else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95 % interval; None without a value."""
        return wilson_interval(self.count, self.number) if self.number else None


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The labels of people, a judge's verdicts on the same answers, and measures of their agreement.

    Attributes:
        labels: Whether people call each answer correct; None without a label.
        verdicts: Whether the judge calls each answer correct; None without a verdict.
        people: The labels of each person, if several labelled the answers; ``labels`` then has the majority.
    """

    labels: Sequence[bool | None]
    verdicts: Sequence[bool | None]
    people: Sequence[Sequence[bool | None]] = ()

    @property
    def table(self) -> list[list[int]]:
        """The counts: a row for each label (correct, incorrect), a column for each verdict."""
        pairs = list(zip(self.labels, self.verdicts, strict=True))
        return [[pairs.count((label, verdict)) for verdict in (True, False)] for label in (True, False)]

    @property
    def judged(self) -> int:
        """The number of rows with a label and a verdict."""
        return sum(map(sum, self.table))

    @property
    def unlabelled(self) -> int:
        """The number of rows without a label."""
        return sum(label is None for label in self.labels)

    @property
    def agreement(self) -> Share:
        """The share of rows with a label and a verdict in which both are the same."""
        (both, _), (_, neither) = self.table
        return Share(both + neither, self.judged)

    @property
    def false_positives(self) -> Share:
        """The share of the answers labelled incorrect that the judge calls correct."""
        return Share(self.table[1][0], sum(self.table[1]))

    @property
    def false_negatives(self) -> Share:
        """The share of the answers labelled correct that the judge calls incorrect."""
        return Share(self.table[0][1], sum(self.table[0]))

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None if it is not defined."""
        return cohens_kappa(self.table)

    @property
    def kappa_interval(self) -> Interval | None:
        """The 95 % interval of kappa; None if kappa is not defined."""
        return kappa_interval(self.table)

    @property
    def alpha_of_people(self) -> float | None:
        """Krippendorff's alpha of the people; None with fewer than two, or if it is not defined."""
        return krippendorffs_alpha(zip(*self.people, strict=True)) if len(self.people) > 1 else None

    @property
    def alpha_with_judge(self) -> float | None:
        """Krippendorff's alpha of the people and the judge; lower than ``alpha_of_people`` if the judge agrees less."""
        if len(self.people) < 2:
            return None
        labelled = [
            verdict if label is not None else None for label, verdict in zip(self.labels, self.verdicts, strict=True)
        ]
        return krippendorffs_alpha(zip(*self.people, labelled, strict=True))

    @property
    def disagreements(self) -> list[int]:
        """The indexes of the rows in which label and verdict differ."""
        pairs = enumerate(zip(self.labels, self.verdicts, strict=True))
        return [place for place, (label, verdict) in pairs if None not in (label, verdict) and label is not verdict]


def majority(labels: Sequence[bool | None]) -> bool | None:
    """Return the majority of the labels of an answer; None without a label or for a tie.

    Example:
        >>> majority([True, None, True, False]), majority([True, False])
        (True, None)
    """
    right, wrong = labels.count(True), labels.count(False)
    return None if right == wrong else right > wrong


def verdict_in(cells: Cells, metric: str, threshold: float) -> bool | None:
    """Return whether a judge calls an answer correct, by ``answer_f1`` or ``answer_recall``; None without a score.

    Example:
        >>> verdict_in({"#Reference": "3", "#PTarget": "3", "#Matching": "2", "Error": ""}, "answer_f1", 0.5)
        True
    """
    score = score_in(cells, metric) if is_judged(cells) else None
    return None if score is None else score >= threshold


def verdict_text(verdict: bool | None) -> str:
    """Return the word for a label or verdict.

    Example:
        >>> verdict_text(True), verdict_text(False), verdict_text(None)
        ('correct', 'incorrect', '')
    """
    return "" if verdict is None else "correct" if verdict else "incorrect"
