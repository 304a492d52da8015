"""What a migration found: how many figures each setting gives, which differ and why, and what was written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_eval_lc.registry.metrics import STEPS_SCORE
from graphrag_eval_lc.texts import counted, listed, plural


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that were tried, and how many of the published figures they give.

    Attributes:
        settings: The settings that are not our defaults, as keys with dots; empty for the defaults.
        equal_scores: How many questions have the published score.
        scores: How many questions have a published score.
        equal_figures: How many figures of the aggregates are the published ones.
        figures: How many figures of the aggregates were published.
        is_chosen: Whether these are the settings that are written.
        beside: The settings beside which one more was tried; None for a combination.
    """

    settings: tuple[tuple[str, Any], ...]
    equal_scores: int
    scores: int
    equal_figures: int
    figures: int
    is_chosen: bool = False
    beside: tuple[tuple[str, Any], ...] | None = None

    @property
    def text(self) -> str:
        """The settings in one line."""
        return settings_text(self.settings)

    @property
    def added(self) -> str:
        """The setting that was tried beside others, in one line; all of them for a combination."""
        return self.text if self.beside is None else settings_text(self.settings[len(self.beside) :])

    def is_as(self, other: "Trial") -> bool:
        """Return whether as many figures are equal as with another."""
        return (self.equal_scores, self.equal_figures) == (other.equal_scores, other.equal_figures)

    @property
    def is_all_equal(self) -> bool:
        """Whether every published figure comes out."""
        return self.equal_scores == self.scores and self.equal_figures == self.figures


@dataclass(frozen=True, slots=True)
class Difference:
    """A published figure that the chosen settings do not give.

    Attributes:
        question_id: The question; None for a figure of the aggregates.
        key: The key of the result, or where the figure stands in the aggregates, with slashes.
        published: What graphrag-eval gave; None where it gave nothing.
        here: What this package gives; None where it gives nothing.
        why: Why, in a sentence, as far as it is known.
    """

    question_id: str | None
    key: str
    published: Any
    here: Any
    why: str


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration found.

    Attributes:
        questions: How many questions the dataset has.
        trials: The settings that were tried, in the order in which they were.
        differences: The figures that remain different, by question and then of the aggregates.
        settings: The settings that give all or most of what was published, as they are written.
        notes: Sentences on what was moved, left out or not compared.
        files: The files that were written.
        results: The results with these settings, as ``run_evaluation`` gives them.
        aggregates: Their aggregates.
    """

    questions: int
    trials: tuple[Trial, ...]
    differences: tuple[Difference, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    results: Sequence[Any]
    aggregates: dict[str, Any]

    @property
    def chosen(self) -> Trial:
        """The settings that are written."""
        return next(trial for trial in self.trials if trial.is_chosen)

    @property
    def is_compared(self) -> bool:
        """Whether there was anything to compare with."""
        return bool(self.chosen.scores or self.chosen.figures)

    @property
    def verdict(self) -> str:
        """What was found, in plain words."""
        trial = self.chosen
        if not self.is_compared:
            what = f"Nothing published to compare with: {trial.text} is how graphrag-eval 6.6.1 scores."
            return f"{what} Add --published results.yaml to find the settings that give your figures."
        found = " and ".join(_shares(trial))
        if trial.is_all_equal and not self.differences:
            others = [each for each in self.trials if not each.settings and not each.is_all_equal]
            needed = "The defaults give" if not trial.settings else f"With {trial.text} you get"
            lost = f" The defaults give {' and '.join(_shares(others[0]))}." if others else ""
            return f"{needed} what graphrag-eval published: {found}.{lost}"
        if trial.is_all_equal:
            remaining = counted(len(self.differences), "other value")
            differ = plural(len(self.differences), "differs", "differ")
            return f"With {trial.text} you get what graphrag-eval published: {found}; but {remaining} {differ}."
        gives = "gives" if trial.settings else "give"
        return f"No setting gives all that graphrag-eval published; {trial.text} {gives} the most: {found}."

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "questions": self.questions,
            "verdict": self.verdict,
            "settings": self.settings,
            "trials": [
                {
                    "settings": dict(trial.settings),
                    "equal_scores": trial.equal_scores,
                    "scores": trial.scores,
                    "equal_figures": trial.equal_figures,
                    "figures": trial.figures,
                    "chosen": trial.is_chosen,
                }
                for trial in self.trials
            ],
            "differences": [
                {
                    "question_id": each.question_id,
                    "key": each.key,
                    "published": each.published,
                    "here": each.here,
                    "why": each.why,
                }
                for each in self.differences
            ],
            "notes": list(self.notes),
            "files": [str(path) for path in self.files],
        }

    def __repr__(self) -> str:
        """Return the verdict and the first questions that differ."""
        ids = [each.question_id for each in self.differences if each.question_id and each.key == STEPS_SCORE]
        differing = f" Different: {listed(ids)}." if ids else ""
        return f"<Migration: {self.verdict}{differing}>"


def _shares(trial: Trial) -> Iterator[str]:
    for equal, number, noun in (
        (trial.equal_scores, trial.scores, "score"),
        (trial.equal_figures, trial.figures, "aggregate"),
    ):
        if number == equal == 1:
            yield f"the one {noun}"
        elif number:
            yield f"all {counted(number, noun)}" if equal == number else f"{equal} of {counted(number, noun)}"


def settings_text(settings: Iterable[tuple[str, Any]]) -> str:
    """Return settings in one line, as a YAML file has them.

    Example:
        >>> settings_text([("sparql.strict", True)])
        'sparql.strict: true'
    """
    shown = ((key, str(value).lower() if isinstance(value, bool) else value) for key, value in settings)
    return ", ".join(f"{key}: {value}" for key, value in shown) or "the defaults"
