"""The first line of a run: what is right, the main score, what it spent, and what changed since an earlier run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.view.samples import State
from graphrag_eval_lc.view.scores import ScoreLine


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run: its name, and for each question whether all samples are right."""

    run: str
    right: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since an earlier run: the ids of the questions that were right only then, and only now."""

    run: str
    broken: tuple[str, ...]
    fixed: tuple[str, ...]

    @classmethod
    def between(cls, earlier: Earlier, right: Mapping[str, bool]) -> "Changes":
        """Return what changed from an earlier run to the questions of this one."""
        turned = [key for key, is_right in right.items() if earlier.right.get(key, is_right) != is_right]
        return cls(
            earlier.run,
            broken=tuple(key for key in turned if not right[key]),
            fixed=tuple(key for key in turned if right[key]),
        )

    def __str__(self) -> str:
        if not self.broken and not self.fixed:
            return f"nothing broken or fixed since {self.run}"
        return f"{len(self.broken):,} broken, {len(self.fixed):,} fixed since {self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a run is in one line."""

    questions: int
    samples: int  # the same, unless questions were repeated
    repeats: int  # how many times each question was sent at most
    templates: int
    states: Mapping[State, int]  # how many samples are in each
    main: ScoreLine | None  # the main score; None if nothing was scored
    cost: float | None  # of agent and judges in dollars, as far as it is known
    is_cost_whole: bool
    tokens: float | None  # of a question on average, errors included
    changes: Changes | None  # since the baseline or the run before

    @property
    def not_right(self) -> int:
        """How many samples are errors, wrong, undecided or partly right."""
        return sum(self.states.get(state, 0) for state in _WORDS)

    @property
    def noun(self) -> str:
        """What is counted: ``question``, or ``sample`` if questions were repeated."""
        return "sample" if self.repeats > 1 else "question"

    @property
    def counts(self) -> str:
        """How many samples are right and are not: ``30 of 48 right, 4 partly right, 13 wrong, 1 error``."""
        if not self.samples:
            return "no questions"
        if self.states.get("unscored", 0) == self.samples:
            return f"{counted(self.samples, self.noun)}, not scored"
        samples = f" {counted(self.samples, 'sample').split(' ', 1)[1]}" if self.repeats > 1 else ""
        parts = [f"{self.states.get('right', 0):,} of {self.samples:,}{samples} right"]
        for state, word in _WORDS.items():
            if count := self.states.get(state, 0):
                parts.append(counted(count, word) if state == "error" else f"{count:,} {word}")
        if unscored := self.states.get("unscored", 0):
            parts.append(f"{unscored:,} not scored")
        return ", ".join(parts)

    @property
    def score(self) -> str:
        """The main score with its interval: ``steps_score 0.660 (0.46–0.81)``; empty without one."""
        if (main := self.main) is None:
            return ""
        has_interval = main.low is not None and main.high is not None
        return f"{main.metric} {main.mean:.3f}{f' ({main.low:.2f}–{main.high:.2f})' if has_interval else ''}"

    @property
    def cost_text(self) -> str:
        """What the run cost: ``$0.12``, ``at least $0.12``, ``not known``."""
        at_least = "" if self.is_cost_whole else "at least "
        return "not known" if self.cost is None else f"{at_least}{dollars(self.cost)}"

    @property
    def spent(self) -> str:
        """What the run cost and a question took: ``$0.12 · 5.8 k tokens a question``; empty if nothing is known."""
        parts = [self.cost_text] if self.cost else []
        if self.tokens is not None:
            amount = f"{self.tokens / 1000:,.1f} k" if self.tokens >= 1000 else f"{self.tokens:,.0f}"
            parts.append(f"{amount} tokens a question")
        return " · ".join(parts)

    def __str__(self) -> str:
        changes = "" if self.changes is None else str(self.changes)
        return " · ".join(filter(None, (self.counts, self.score, self.spent, changes)))


# The states that are not right, in the order of a headline.
_WORDS: Final[Mapping[State, str]] = {
    "partly": "partly right",
    "wrong": "wrong",
    "undecided": "undecided",
    "error": "error",
}
