"""Gates of a run beside a baseline that were checked: drops, lost questions, increases; each tells what it found."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from graphrag_eval_lc.compare.drops import ROUNDING, drop_text, is_above, limit_text
from graphrag_eval_lc.compare.gates import GateResult
from graphrag_eval_lc.compare.metric_comparison import value_text
from graphrag_eval_lc.registry.metric_spec import Unit
from graphrag_eval_lc.texts import counted, listed, on_one_line

# So many questions or templates are named.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class NotComparable:
    """A gate of which nothing could be compared: neither passed nor failed.

    Attributes:
        letter: What the run is called in the comparison.
        name: What the gate is about.
        why: Why nothing could be compared.
    """

    letter: str
    name: str
    why: str

    @property
    def has_passed(self) -> bool:
        """Whether it is passed: never."""
        return False

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: never."""
        return False

    @on_one_line
    def __str__(self) -> str:
        return f"{self.letter}: {self.name} could not be compared: {self.why}"


@dataclass(frozen=True, slots=True)
class RunGate:
    """A gate of one run in a comparison.

    Attributes:
        letter: What the run is called in the comparison.
        result: What was found.
    """

    letter: str
    result: GateResult

    @property
    def has_passed(self) -> bool:
        """Whether it is passed."""
        return self.result.has_passed

    @property
    def is_comparable(self) -> bool:
        """Whether the run has questions that it is about; what nobody measured fails."""
        return self.result.has_questions

    @on_one_line
    def __str__(self) -> str:
        return f"{self.letter}: {self.result}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropGate:
    """Whether the mean of a metric is worse than that of A by no more than a limit.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The metric.
        template: The template whose questions count; None: all.
        limit: The drop that is allowed, at least 0.
        drop: How much worse the mean is, negative where it is better: points where ``is_proportion``, else a share of
            A's mean.
        is_proportion: Whether it is a score with all values between 0 and 1.
        is_confident: Whether only a sure drop fails.
        sure_drop: The lower end of the drop's 95 % interval; None where ``is_confident`` does not ask for it, as the
            drop is within the limit, and where too few questions differ to be sure of anything.
        why_unsure: Why nothing is sure; empty where something is, or is not asked for.
        mean_a: The mean of A.
        mean_b: The mean of the run.
        unit: The unit of the means.
        number_of_questions: How many questions both have.
        number_of_templates: How many templates these have.
        lower_is_better: Whether less is better, so that the mean of a worse run rose.
    """

    letter: str
    metric: str
    template: str | None
    limit: float
    drop: float
    is_proportion: bool
    is_confident: bool = False
    sure_drop: float | None = None
    why_unsure: str = ""
    mean_a: float
    mean_b: float
    unit: Unit
    number_of_questions: int
    number_of_templates: int
    lower_is_better: bool = False

    @property
    def has_passed(self) -> bool:
        """Whether the drop, or as much of it as is sure, is within the limit."""
        if not is_above(self.drop, self.limit):
            return True
        return self.is_confident and (self.sure_drop is None or not is_above(self.sure_drop, self.limit))

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always."""
        return True

    @property
    def size(self) -> str:
        """The drop as text."""
        return drop_text(self.drop, self.limit, is_proportion=self.is_proportion)

    @on_one_line
    def __str__(self) -> str:
        name = f"{self.letter}: {_name(self.metric, self.template)}"
        limit = limit_text(self.limit, is_proportion=self.is_proportion)
        seen = [self.change, counted(self.number_of_questions, "question")]
        if self.number_of_templates > 1:
            seen[-1] += f" in {counted(self.number_of_templates, 'template')}"
        counts = f"({', '.join(seen)})"
        if self.drop <= 0:
            what = "is better" if self.drop < 0 else "is the same in the mean"
            return f"{name} {what}, and a {self.way} of {limit} is allowed {counts}"
        if not self.is_confident or not is_above(self.drop, self.limit):
            return (
                f"{name} is worse by {self.size}, and {'' if self.has_passed else 'only '}{limit} is allowed {counts}"
            )
        if self.sure_drop is None:
            return f"{name} is worse by {self.size}, of which nothing is sure: {self.why_unsure} {counts}"
        sure = drop_text(self.sure_drop, self.limit, is_proportion=self.is_proportion)
        if not self.has_passed:
            return (
                f"{name} is worse by {self.size}, surely by {sure} (the lower end of the 95 % interval), and only "
                f"{limit} is allowed {counts}"
            )
        surely = f"by more than {limit}" if self.sure_drop > 0 else "at all"
        return (
            f"{name} is worse by {self.size}, but not surely {surely}: the lower end of the 95 % interval is "
            f"{sure.replace('-', '−')} {counts}"
        )

    @property
    def way(self) -> str:
        """What a worse mean does, as a word."""
        return "rise" if self.lower_is_better else "drop"

    @property
    def change(self) -> str:
        """Both means as text, that of A first."""
        return _change_text(self.mean_a, self.mean_b, self.unit)


@dataclass(frozen=True, slots=True)
class TemplatesGate:
    """Whether the mean of no template is worse than that of A by more than a limit.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The metric.
        limit: The drop that is allowed in each template.
        templates: Each template that both runs have with the metric, the worst first.
    """

    letter: str
    metric: str
    limit: float
    templates: Sequence[DropGate]

    @property
    def failed(self) -> list[DropGate]:
        """The templates that dropped by more, the worst first."""
        return [template for template in self.templates if not template.has_passed]

    @property
    def has_passed(self) -> bool:
        """Whether none dropped by more."""
        return not self.failed

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always."""
        return True

    @on_one_line
    def __str__(self) -> str:
        name, failed, worst = f"{self.letter}: {self.metric}", self.failed, self.templates[0]
        limit = limit_text(self.limit, is_proportion=worst.is_proportion)
        number = counted(len(self.templates), "template")
        unsure = [each.template or "" for each in self.templates if each.why_unsure]
        doubt = f"; too few questions to be sure of anything: {listed(unsure, _NAMED)}" if unsure else ""
        surely = "surely " if worst.is_confident else ""
        if failed:
            named = [f"{each.template} (by {each.size}: {each.change})" for each in failed]
            return (
                f"{name} is {surely}worse by more than {limit} in {len(failed):,} of {number}: "
                f"{listed(named, _NAMED)}{doubt}"
            )
        if worst.drop <= 0:
            return f"{name} is worse in no template, and a {worst.way} of {limit} is allowed in each ({number})"
        where = f"is worse by at most {worst.size} in a template ({worst.template})"
        if is_above(worst.drop, self.limit):
            return f"{name} {where}, but surely by more than {limit} in none ({number}){doubt}"
        return f"{name} {where}, and {limit} is allowed in each ({number})"


@dataclass(frozen=True, slots=True)
class LostQuestion:
    """A question that was right in A and is wrong in the run.

    Attributes:
        question_id: The question.
        template_id: Its template, as A has it.
        is_undecided: Whether undecided steps count 0 in it, so that it may be right still.
    """

    question_id: str
    template_id: str
    is_undecided: bool = False

    @on_one_line
    def __str__(self) -> str:
        return f"{self.question_id} (undecided)" if self.is_undecided else self.question_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LostGate:
    """Whether no more questions than allowed were right in A and are wrong in the run.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The metric that says what is right: where it has its best value, such as 1.
        template: The template whose questions count; None: all.
        is_per_template: Whether the limit is of each template.
        limit: How many may be lost.
        lost: The questions that were lost, in A's order.
        right_in_a: How many of the compared questions were right in A.
        number_of_questions: How many were compared.
    """

    letter: str
    metric: str
    template: str | None = None
    is_per_template: bool = False
    limit: int
    lost: Sequence[LostQuestion]
    right_in_a: int
    number_of_questions: int

    @property
    def number_lost(self) -> int:
        """How many were lost; of each template the most."""
        return max(map(len, self._by_template.values()), default=0) if self.is_per_template else len(self.lost)

    @property
    def has_passed(self) -> bool:
        """Whether no more were lost than allowed."""
        return self.number_lost <= self.limit

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always."""
        return True

    @property
    def _by_template(self) -> dict[str, list[LostQuestion]]:
        groups: dict[str, list[LostQuestion]] = {}
        for question in self.lost:
            groups.setdefault(question.template_id, []).append(question)
        return groups

    @on_one_line
    def __str__(self) -> str:
        name = f"{self.letter}: {_name(self.metric, self.template)}"
        were = "was" if self.number_of_questions == 1 else "were"
        right = f"{self.right_in_a:,} of {counted(self.number_of_questions, 'question')} {were} right in A"
        only = "" if self.has_passed else "only "
        if not self.is_per_template:
            number = counted(len(self.lost), "lost question")
            named = f": {listed([*map(str, self.lost)], _NAMED)}" if self.lost else ""
            return f"{name} has {number}, and {only}{self.limit:,} may be ({right}){named}"
        worst = sorted(self._by_template.items(), key=lambda each: -len(each[1]))
        if self.has_passed:
            most = f"at most {counted(self.number_lost, 'lost question')} in a template"
            where = f" ({worst[0][0]})" if worst else ""
            return f"{name} has {most}{where}, and {self.limit:,} may be in each ({right})"
        over = [
            f"{template} ({len(lost):,}: {listed([*map(str, lost)], _NAMED)})"
            for template, lost in worst
            if len(lost) > self.limit
        ]
        templates = counted(len(over), "template")
        return (
            f"{name} has more than {counted(self.limit, 'lost question')} in {templates} ({right}): "
            f"{listed(over, _NAMED)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IncreaseGate:
    """Whether a statistic of a metric of which less is better is above that of A by no more than a limit.

    Attributes:
        letter: What the run is called in the comparison.
        name: The metric, with its template and statistic, as texts of the command line have it.
        over: The increase that is allowed, as ``+10%`` or ``+0.05``.
        value_a: The statistic of A.
        value_b: The statistic of the run.
        unit: The unit of both.
        number_of_questions: How many questions both have.
        samples: How many samples of these the statistic is of, in A and in the run; None for a mean over questions.
    """

    letter: str
    name: str
    over: str
    value_a: float
    value_b: float
    unit: Unit
    number_of_questions: int
    samples: tuple[int, int] | None = None

    @property
    def increase(self) -> float:
        """How much it is above A: a share where ``over`` is one, infinite of nothing; else the difference."""
        difference = self.value_b - self.value_a
        if not self._is_share or not difference:
            return difference
        return difference / abs(self.value_a) if self.value_a else inf * difference

    @property
    def limit(self) -> float:
        """The increase that is allowed, as ``increase`` has it."""
        return float(self.over[1:-1]) / 100 if self._is_share else float(self.over[1:])

    @property
    def has_passed(self) -> bool:
        """Whether it is within the limit."""
        # Values of any size: a millionth of a dollar, or millions of tokens.
        slack = ROUNDING if self._is_share else ROUNDING * max(abs(self.value_a), abs(self.value_b))
        return self.increase <= self.limit + slack

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check: always."""
        return True

    @property
    def _is_share(self) -> bool:
        return self.over.endswith("%")

    @on_one_line
    def __str__(self) -> str:
        values = _change_text(self.value_a, self.value_b, self.unit)
        counts = counted(self.number_of_questions, "question")
        if self.samples is not None:
            counts = f"{self.samples[0]:,} and {self.samples[1]:,} samples of {counts}"
        name, only = f"{self.letter}: {self.name}", "" if self.has_passed else "only "
        if self.increase <= 0:
            what = "is lower" if self.increase < 0 else "is the same"
            return f"{name} {what}, and {self.over} is allowed ({values}, {counts})"
        return f"{name} is higher by {self._size()}, and {only}{self.over} is allowed ({values}, {counts})"

    def _size(self) -> str:
        """Return the increase as text, exact enough to show its side of the limit."""
        if self._is_share:
            if self.increase == inf:
                return "more than any share of A's, which is 0"
            return drop_text(self.increase, self.limit, is_proportion=False)
        text = format(self.increase, ",.4g")
        shown = float(text.replace(",", ""))
        return text if (shown <= self.limit) is self.has_passed else format(self.increase, ",.12g")


def _name(metric: str, template: str | None) -> str:
    return metric if template is None else f"{template}/{metric}"


def _change_text(value_a: float, value_b: float, unit: Unit) -> str:
    """Return two values as text, with more digits where they differ and look alike."""
    before, after = value_text(value_a, unit), value_text(value_b, unit)
    if before == after and value_a != value_b:
        more = next((each for each in (4, 6) if f"{value_a:.{each}g}" != f"{value_b:.{each}g}"), None)
        if more is not None:
            before, after = (format(value, f",.{more}g").replace("-", "−", 1) for value in (value_a, value_b))
    return f"{before} → {after}"
