"""One view of a run: the headline, numbers and reasons that terminal, notebook, Markdown, JUnit, JSON and HTML show."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.aggregator import CALIBRATED, calibrated_note
from graphrag_eval_lc.aggregation.sample_values import Metrics, counts_of, grading_note, number, uncertainty_texts
from graphrag_eval_lc.aggregation.statistics import StepCounts, repeats_summary, shown_chances
from graphrag_eval_lc.config import EvaluationConfig, RepeatsConfig
from graphrag_eval_lc.judges.certificates import certificate_note
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import NO_RESPONSE
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    ANSWER_F1,
    ELAPSED_SEC,
    JUDGES_COST,
    NUMBER_OF_QUESTIONS,
    OUTPUTS_CUT,
    RETRIEVAL_MISSING,
    STEPS_SCORE,
    TOTAL_TOKENS,
    UNDECIDED,
    metric_spec,
)
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.view.failures import Failure, FailureGroup, FailurePart, Failures, parts_of
from graphrag_eval_lc.view.samples import SeenSample, State, Verdict, seen_samples, verdict_of
from graphrag_eval_lc.view.scores import (
    Extreme,
    Extremes,
    ScoreLine,
    Spent,
    SpentLine,
    TemplateScore,
    passing_sign,
    score_lines,
    score_note,
    shown_scores,
    template_scores,
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run: its name, for each question whether all samples are right, and its folder, if it has one."""

    run: str
    right: Mapping[str, bool]
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since an earlier run: the ids of the questions that were right only then, and only now."""

    run: str
    broken: tuple[str, ...]
    fixed: tuple[str, ...]
    path: str | None = None  # the earlier run's folder

    @classmethod
    def between(cls, earlier: Earlier, right: Mapping[str, bool]) -> "Changes":
        """Return what changed from an earlier run to the questions of this one."""
        turned = [key for key, is_right in right.items() if earlier.right.get(key, is_right) != is_right]
        return cls(
            earlier.run,
            broken=tuple(key for key in turned if not right[key]),
            fixed=tuple(key for key in turned if right[key]),
            path=earlier.path,
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


MOST_FAILURES: Final = 50
_FEW_TEMPLATES: Final = 10


@dataclass(frozen=True, slots=True)
class GateLine:
    """A gate: ``passed``, ``failed`` or ``not checked``, and what was found."""

    state: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateLine:
    """A template of a run: its counts, its scores by metric, and the means of what its samples spent."""

    template_id: str
    questions: int
    samples: int
    errors: int  # samples that failed
    right: int  # samples that are right
    is_answered: bool  # whether a sample has a response
    scores: Mapping[str, TemplateScore]
    spent: Mapping[str, float]
    failed_calls: int
    empty_results: int
    missing: int | None  # reference steps of retrieval that were not fulfilled; None if it has none

    @property
    def tokens(self) -> float | None:
        """Its mean tokens."""
        return self.spent.get(TOTAL_TOKENS)

    @property
    def seconds(self) -> float | None:
        """Its mean seconds."""
        return self.spent.get(ELAPSED_SEC)

    @property
    def usd(self) -> float | None:
        """Its mean cost of the agent."""
        return self.spent.get(AGENT_COST)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Everything that is shown of a run, as plain data."""

    headline: Headline
    gates: tuple[GateLine, ...]
    groups: tuple[FailureGroup, ...]  # of all failures, the largest first
    failures: tuple[Failure, ...]  # the worst first; as many as were wanted
    scores: tuple[ScoreLine, ...]  # the main one first
    templates: tuple[TemplateLine, ...]  # the worst by the main score first
    spent: tuple[SpentLine, ...]
    spent_note: str  # what only its totals include
    totals: Mapping[str, Any]  # what the run spent, as in aggregates.yaml
    chances: tuple[tuple[str, float], ...]  # pass@k and pass^k by name; empty without repeats
    chances_note: str  # what passing means there
    slowest: tuple[Extreme, ...]
    most_expensive: tuple[Extreme, ...]
    notes: tuple[str, ...]  # on undecided steps and cut outputs
    grading_note: str | None  # what steps_score is if steps are graded
    judge_note: str  # what the judge's certificate says, or that there is none; empty if no answer was judged
    score_note: str  # what the main score says, and at which score a sample is right
    is_mostly_unanswered: bool

    @property
    def parts(self) -> tuple[FailurePart, ...]:
        """The groups by the part of the agent's work that they are about."""
        return parts_of(self.groups)

    @property
    def main(self) -> ScoreLine | None:
        """The main score; None if nothing was scored."""
        return self.headline.main

    @property
    def hidden_templates(self) -> tuple[TemplateLine, ...]:
        """The templates without any response, if they would be most of a long table."""
        without = tuple(line for line in self.templates if not line.is_answered)
        return without if self.is_mostly_unanswered and len(without) > _FEW_TEMPLATES else ()


def run_view(
    results: Iterable[Mapping[str, Any]],
    config: EvaluationConfig | None = None,
    *,
    metrics: Sequence[str] = (),
    gates: Sequence[GateLine] = (),
    earlier: Earlier | None = None,
    judges: Mapping[str, Any] | None = None,
    most_failures: int = MOST_FAILURES,
) -> RunView:
    """Return the view of a run's results, which are read once, one at a time.

    ``metrics`` are those that the configuration does not name, ``judges`` is what run.json says of the judges.
    """
    config = config or EvaluationConfig()
    seen = RunSummary(config, Metrics(config, metrics), most_failures=most_failures)
    for sample in seen_samples(results, seen.metrics):
        seen.add(sample)
    return seen.view(gates, earlier, judges)


def right_questions(
    results: Iterable[Mapping[str, Any]], config: EvaluationConfig, metrics: Metrics
) -> dict[str, bool]:
    """Return, for each question that was scored, whether all its samples are right."""
    right: dict[str, bool] = {}
    for sample in seen_samples(results, metrics):
        if (state := verdict_of(sample, config.repeats).state) != "unscored":
            right[sample.question_id] = right.get(sample.question_id, True) and state == "right"
    return right


@dataclass(slots=True)
class _Template:
    samples: int = 0
    errors: int = 0
    right: int = 0
    is_answered: bool = False
    missing: int | None = None
    steps: StepCounts = field(default_factory=StepCounts)


class RunSummary:
    """Adds up samples, one at a time, to the view of a run; it keeps numbers, not results."""

    def __init__(self, config: EvaluationConfig, metrics: Metrics, *, most_failures: int = MOST_FAILURES) -> None:
        self.config, self.metrics = config, metrics
        self._numbers = RunValues(metrics)
        self._failures = Failures(most_failures)
        self._spent, self._extremes = Spent(config), Extremes()
        self._repeats = 1
        self._outcomes: defaultdict[str, list[bool | None]] = defaultdict(list)  # whether samples passed, by question
        self._states = Counter[State]()
        self._right: dict[str, bool] = {}
        self._uncertain = Counter[str]()
        self._templates: defaultdict[str, _Template] = defaultdict(_Template)

    def add(self, sample: SeenSample) -> tuple[Verdict, Failure | None]:
        """Add a sample; return its verdict, and its failure if it is not right."""
        result = sample.result
        self._numbers.add(result, sample.values)
        for part in (self._spent, self._extremes):
            part.add(sample)
        verdict = verdict_of(sample, self.config.repeats)
        self._states[verdict.state] += 1
        self._repeats = max(self._repeats, sample.repeat)
        is_measured = sample.has_failed or verdict.metric == self.config.repeats.metric
        self._outcomes[sample.question_id].append(verdict.state == "right" if is_measured else None)
        if verdict.state != "unscored":
            self._right[sample.question_id] = self._right.get(sample.question_id, True) and verdict.state == "right"
        self._uncertain.update(counts_of(result))
        template = self._templates[str(result.get("template_id"))]
        template.samples += 1
        template.errors += sample.has_failed
        template.right += verdict.state == "right"
        template.is_answered = template.is_answered or result.get("error") != NO_RESPONSE
        template.steps.add(result)
        if (missing := number(result.get(RETRIEVAL_MISSING))) is not None:
            template.missing = (template.missing or 0) + int(missing)
        return verdict, self._failures.add(sample, verdict)

    def view(
        self,
        gates: Sequence[GateLine] = (),
        earlier: Earlier | None = None,
        judges: Mapping[str, Any] | None = None,
    ) -> RunView:
        """Return the view of all samples that were added, compared with an earlier run; see ``run_view``."""
        changes = None if earlier is None else Changes.between(earlier, self._right)
        values = shown_scores(self._numbers)
        number_of_questions = len(self._numbers.questions)
        scores = score_lines(values, number_of_questions)
        steps = next((line for line in scores if line.metric == STEPS_SCORE), None)
        main = next((line for line in scores if not line.is_part), None)
        totals = self._spent.totals.summary()
        spent, attempts = self._spent.lines(totals), totals.get("number_of_failed_attempts")
        chances, chances_note = _chances(self._outcomes, self._repeats, self.config.repeats)
        notes = (certificate_note(judges), calibrated_note((judges or {}).get(CALIBRATED, {})))
        return RunView(
            headline=self._headline(main, spent, changes),
            gates=tuple(gates),
            groups=self._failures.groups(),
            failures=self._failures.worst(),
            scores=scores,
            templates=self._template_lines(template_scores(values), main),
            spent=spent,
            spent_note=f"totals include {counted(attempts, 'failed attempt')}" if attempts else "",
            totals=totals,
            chances=chances,
            chances_note=chances_note,
            slowest=self._extremes.most("seconds"),
            most_expensive=self._extremes.most("usd") or self._extremes.most("tokens"),
            notes=tuple(
                uncertainty_texts(
                    self._uncertain[UNDECIDED],
                    self._uncertain[OUTPUTS_CUT],
                    None if steps is None else steps.mean,
                    None if steps is None else steps.upper,
                )
            ),
            grading_note=grading_note(self.config) if steps is not None else None,
            judge_note=" ".join(filter(None, notes)) if any(line.metric == ANSWER_F1 for line in scores) else "",
            score_note="" if main is None else score_note(main, values, self.config.repeats),
            is_mostly_unanswered=self._failures.is_mostly_unanswered,
        )

    def _headline(self, main: ScoreLine | None, spent: Sequence[SpentLine], changes: Changes | None) -> Headline:
        lines = {line.metric: line for line in spent}
        costs = [line for metric, line in lines.items() if metric in (AGENT_COST, JUDGES_COST)]
        return Headline(
            questions=len(self._numbers.questions),
            samples=self._states.total(),
            repeats=self._repeats,
            templates=len(self._templates),
            states=dict(self._states),
            main=main,
            cost=sum(line.total for line in costs) if costs else None,
            is_cost_whole=(AGENT_COST in lines or TOTAL_TOKENS not in lines) and not any(line.note for line in costs),
            tokens=lines[TOTAL_TOKENS].mean if TOTAL_TOKENS in lines else None,
            changes=changes,
        )

    def _template_lines(
        self, scores: Mapping[str, Mapping[str, TemplateScore]], main: ScoreLine | None
    ) -> tuple[TemplateLine, ...]:
        questions = Counter(question.template_id for question in self._numbers.questions.values())
        lines = []
        for template_id, seen in self._templates.items():
            steps = seen.steps.summary()
            line = TemplateLine(
                template_id=template_id,
                questions=questions[template_id],
                samples=seen.samples,
                errors=seen.errors,
                right=seen.right,
                is_answered=seen.is_answered,
                scores=scores.get(template_id, {}),
                spent=self._spent.means(template_id),
                failed_calls=sum(steps.get("errors", {}).values()),
                empty_results=sum(steps.get("empty_results", {}).values()),
                missing=seen.missing,
            )
            lines.append(line)

        def worth(line: TemplateLine) -> float:
            score = None if main is None else line.scores.get(main.metric)
            if main is None or score is None:
                return float("inf")
            return -score.mean if metric_spec(main.metric).lower_is_better else score.mean

        return tuple(sorted(lines, key=worth))


def _chances(
    outcomes: Mapping[str, Sequence[bool | None]], count: int, passing: RepeatsConfig
) -> tuple[tuple[tuple[str, float], ...], str]:
    """Return pass@1, pass@k and pass^k for the largest k that all questions allow, and a note; empty without repeats.

    The note says what passing means, and how many questions are left out.
    """
    if count == 1:
        return (), ""
    summary = repeats_summary(outcomes, count, {}, passing)
    unmeasured = summary["number_of_unmeasured_questions"]
    without = f"; {unmeasured:,} of {summary[NUMBER_OF_QUESTIONS]:,} questions were not measured" if unmeasured else ""
    note = f"passed: {passing.metric} {passing_sign(passing.metric)} {passing.threshold:g}{without}"
    return tuple(shown_chances(summary)), note
