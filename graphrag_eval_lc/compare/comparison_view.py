"""What people read of a comparison: terminal, notebook, Markdown, JSON and HTML all show what is computed here."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from graphrag_eval_lc.compare.flips import Flip
from graphrag_eval_lc.compare.gate_checks import GateResult
from graphrag_eval_lc.compare.metric_comparison import (
    FEWEST_FOR_A_VERDICT,
    MetricComparison,
    Pair,
    better_or_worse,
    change_text,
    difference_of,
    interval_text,
    is_same,
    means_text,
    p_text,
    undecided_text,
    value_text,
    verdict_text,
)
from graphrag_eval_lc.compare.runs import RunResults


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One of the runs.

    Attributes:
        letter: What it is called in the comparison; A is the baseline.
        label: Its given name, else that of its folder, else its letter. Runs with the same name have those of their
            folders.
        path: Its folder; None if the results were given.
        number_of_questions: How many questions it has.
        number_of_samples: How many results it has, which is more with repeats.
        number_of_errors: How many of these failed.
    """

    letter: str
    label: str
    path: str | None
    number_of_questions: int
    number_of_samples: int
    number_of_errors: int


@dataclass(frozen=True, slots=True)
class ComparedQuestion:
    """One question of both runs.

    Attributes:
        question_id: Its id.
        template_id: Its template, as A has it.
        values: By metric its values in A and in the other run, each the mean over repeats.
    """

    question_id: str
    template_id: str
    values: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """A run compared with the baseline A.

    Attributes:
        run: The run that is compared with A.
        number_of_questions: How many questions both have; no others are compared.
        number_of_templates: How many templates these have.
        errors_a: How many samples of these questions failed in A.
        errors_b: How many in the other run. A failed sample's scores count as 0, or as the greatest possible value if
            lower is better.
        left_out_a: How many questions only A has.
        left_out_b: How many only the other run has.
        metrics: The metrics that both runs have, scores before what was spent.
        flips: The questions whose value in the comparison's ``metric`` changed: first broken ones,
            then fixed ones, then the others, the largest change first. Empty if the metric is what was spent.
        questions: The common questions with their values.
    """

    run: RunSummary
    number_of_questions: int
    number_of_templates: int
    errors_a: int
    errors_b: int
    left_out_a: int
    left_out_b: int
    metrics: tuple[MetricComparison, ...]
    flips: tuple[Flip, ...]
    questions: tuple[ComparedQuestion, ...]

    @property
    def fixed(self) -> tuple[Flip, ...]:
        """The questions that are right now and were not in A."""
        return tuple(flip for flip in self.flips if flip.direction == "fixed")

    @property
    def broken(self) -> tuple[Flip, ...]:
        """The questions that were right in A and are not now."""
        return tuple(flip for flip in self.flips if flip.direction == "broken")

    @property
    def flips_text(self) -> str:
        """How many questions are broken and fixed, and how many else changed."""
        broken, fixed = len(self.broken), len(self.fixed)
        others = len(self.flips) - broken - fixed
        return f"{broken:,} broken, {fixed:,} fixed" + (f", {others:,} better or worse" if others else "")

    def metric(self, name: str) -> MetricComparison | None:
        """Return the comparison in one metric; None if it was not compared."""
        return next((metric for metric in self.metrics if metric.metric == name), None)


def verdict_word(metric: MetricComparison) -> str:
    """Return the verdict as tables show it: ``better``, ``worse``, ``the same``, ``no evidence`` or ``cannot tell``.

    ``no evidence`` of ``MetricComparison.verdict`` is ``the same`` if no question differs, and ``cannot tell`` if the
    test could not decide.
    """
    if is_same(metric):
        return "the same"
    return "cannot tell" if metric.verdict == "no evidence" and not metric.can_tell else metric.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDifference:
    """A template in A and in another run, over the questions that have the metric in both."""

    template_id: str
    number_of_questions: int
    mean_a: float
    mean_b: float
    difference: float
    broken: int  # right in A, and not right now
    fixed: int
    worse: int  # not right in A, and worse now
    better: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """A metric of two runs as texts for a table."""

    metric: MetricComparison
    name: str  # with the number of questions left out, and the better direction if that is unusual
    a: str
    b: str
    change: str
    interval: str
    p: str  # the p-value that decides
    counts: str  # how many questions are better, the same and worse
    verdict: str  # a word of ``verdict_word``; empty if ``PairView.doubt`` says that no metric has a verdict
    reason: str  # the verdict in a few words; if there is no evidence, how many questions it needs


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """A run compared with A: its metrics, and its templates in the main metric, that with the largest drop first."""

    pair: PairComparison
    main: MetricComparison | None  # in the main metric
    headline: str  # the verdict, both means, and how many questions are broken and fixed
    doubt: str  # why no test can find a difference: too few templates; otherwise empty
    undecided: str  # for which metrics the test cannot tell, and why; otherwise empty, also if there is a ``doubt``
    rows: tuple[MetricRow, ...]
    templates: tuple[TemplateDifference, ...]

    @property
    def letter(self) -> str:
        """The run's letter."""
        return self.pair.run.letter

    @property
    def has_flips(self) -> bool:
        """Whether flips are shown. They are not for what was spent, which differs in nearly every question."""
        return self.main is not None and not self.main.is_spent

    @property
    def flips_text(self) -> str:
        """How many questions are broken and fixed, and how many else changed."""
        return self.pair.flips_text

    @property
    def certainty(self) -> list[str]:
        """How sure the verdict is: a sentence on the main metric, then on each other one with a certain difference."""
        others = [row.metric for row in self.rows if not row.metric.is_main and row.metric.verdict != "no evidence"]
        return [metric.sentence for metric in ([self.main] if self.main else []) + others]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """Runs compared with the first one, A, in a main metric."""

    runs: tuple[RunSummary, ...]
    metric: str | None
    pairs: tuple[PairView, ...]
    gates: tuple[GateResult, ...]
    warnings: tuple[str, ...]  # what may make the runs hard to compare
    note: str  # which p-values decide, and what the intervals are of
    sources: tuple[RunResults, ...]  # the results, which the HTML page reads again


def pair_view(pair: PairComparison, metric: str | None) -> PairView:
    """Return what is shown of a run that is compared with A; ``metric`` is the main one."""
    main = None if metric is None else pair.metric(metric)
    number, doubt = pair.number_of_templates, ""
    if 1 < number < FEWEST_FOR_A_VERDICT:
        doubt = (
            f"With {number} templates no test can distinguish a difference from chance: with fewer than "
            f"{FEWEST_FOR_A_VERDICT}, no p-value is below 0.05."
        )
    return PairView(
        pair=pair,
        main=main,
        headline=_headline(pair, main),
        doubt=doubt,
        undecided="" if doubt else undecided_text(pair.metrics),
        rows=tuple(_row(each, pair.run.letter, is_doubtful=bool(doubt)) for each in pair.metrics),
        templates=() if main is None else tuple(template_differences(pair, main)),
    )


def _headline(pair: PairComparison, main: MetricComparison | None) -> str:
    """Return the verdict with its numbers, such as "B is worse: steps_score 0.620 → 0.550; 9 broken, 3 fixed"."""
    letter = pair.run.letter
    if main is None:
        return f"A and {letter} have no main metric in common"
    word, way = verdict_word(main), better_or_worse(main)
    if word in ("better", "worse", "the same"):
        verdict = f"is {word}"
    elif not main.difference:
        verdict = "is as good in the mean"
    else:
        verdict = f"may be {way}" if word == "cannot tell" else f"is not clearly {way}"
    flips = "" if main.is_spent or not pair.flips else f"; {pair.flips_text}"
    return f"{letter} {verdict}: {main.metric} {means_text(main)}{flips}"


def _row(metric: MetricComparison, letter: str, *, is_doubtful: bool) -> MetricRow:
    left_out = f"{metric.left_out:,} left out" if metric.left_out else ""
    note = ", ".join(filter(None, (left_out, metric.direction_note)))
    has_verdict = is_same(metric) or not is_doubtful
    return MetricRow(
        metric=metric,
        name=f"{metric.metric} ({note})" if note else metric.metric,
        a=value_text(metric.mean_a, metric.unit),
        b=value_text(metric.mean_b, metric.unit),
        change=change_text(metric.difference, metric.unit),
        interval=interval_text(metric),
        p=p_text(metric.deciding_p_value),
        counts=f"{metric.wins:,}/{metric.ties:,}/{metric.losses:,}",
        verdict=verdict_word(metric) if has_verdict else "",
        reason=verdict_text(metric, letter) if has_verdict else "",
    )


def template_differences(pair: PairComparison, metric: MetricComparison) -> list[TemplateDifference]:
    """Return the templates in the comparison's main metric, which also decides flips; the largest drop comes first.

    Templates with equal drops are in the dataset's order.
    """
    directions = {flip.question_id: flip.direction for flip in pair.flips}
    groups: dict[str, dict[str, Pair]] = {}
    for question in pair.questions:
        if metric.metric in question.values:
            groups.setdefault(question.template_id, {})[question.question_id] = question.values[metric.metric]
    rows = []
    for template_id, pairs in groups.items():
        mean_a, mean_b = (fsum(values[side] for values in pairs.values()) / len(pairs) for side in (0, 1))
        turned = Counter(directions.get(each) for each in pairs)
        rows.append(
            TemplateDifference(
                template_id=template_id,
                number_of_questions=len(pairs),
                mean_a=mean_a,
                mean_b=mean_b,
                difference=difference_of((mean_a, mean_b)),
                broken=turned["broken"],
                fixed=turned["fixed"],
                worse=turned["worse"],
                better=turned["better"],
            )
        )
    return sorted(rows, key=lambda row: -row.difference if metric.lower_is_better else row.difference)
