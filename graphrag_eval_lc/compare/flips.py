"""Finds flips: the questions whose value in a metric changed between runs, with the steps of both side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from math import inf
from typing import Any, Literal, get_args

from graphrag_eval_lc.aggregation import is_error, reason_of
from graphrag_eval_lc.aggregation.sample_values import counts_of, number
from graphrag_eval_lc.compare.metric_comparison import Pair, difference_of
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, UNDECIDED, UPPER_BOUNDS
from graphrag_eval_lc.tables.run_tables import fulfilling_steps
from graphrag_eval_lc.texts import shortened
from graphrag_eval_lc.view.samples import repeat_of

Direction = Literal["now wrong", "now right", "worse", "better"]

# A score of 1 counts as right despite rounding errors.
_ROUNDING = 1e-9
# Steps are kept for at most this many questions of each run.
_MOST_SIDE_BY_SIDE = 500
_MOST_STEPS = 50
_SHOWN_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """A tool call as comparisons show it.

    Attributes:
        name: The tool.
        args: Its arguments as text.
        output: Its output or error; long texts are cut.
        status: ``success`` or ``error``.
        elapsed_sec: Seconds; None if they are not known.
        fulfils: Whether it fulfils a reference step.
    """

    name: str
    args: str
    output: str
    status: str
    elapsed_sec: float | None
    fulfils: bool


@dataclass(frozen=True, slots=True)
class StepPair:
    """A step of A next to one of the other run.

    Attributes:
        a: The step of A; None if only the other run has it.
        b: The step of the other run, likewise.
        is_same: Whether tool and arguments are the same.
    """

    a: ShownStep | None
    b: ShownStep | None
    is_same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSide:
    """A question in one run: with repeats, the sample with the worst score.

    Attributes:
        repeat: The number of the sample; 1 if the question was asked once.
        score: Its score; None if it failed.
        status: ``success`` or ``error``.
        reason: Why it did not score in full; empty if it did.
        answer: Its answer; None if there is none.
        is_undecided: Whether the metric is about steps, and some of these are undecided, which count as 0.
    """

    repeat: int
    score: float | None
    status: str
    reason: str
    answer: str | None
    is_undecided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A question whose value in a metric changed.

    Attributes:
        question_id: Its id.
        template_id: Its template.
        question_text: The question.
        reference_answer: Its reference answer; None if there is none.
        direction: ``now wrong`` or ``now right`` if it is right in only one of the runs; otherwise ``worse`` or
            ``better``. A question is right if it has the best value of the metric, such as 1.0.
        score_a: The metric in A, the mean over repeats.
        score_b: The metric in the other run.
        a: The question in A.
        b: The question in the other run.
        steps: The steps side by side; empty if too many questions flipped to show them all.
    """

    question_id: str
    template_id: str
    question_text: str
    reference_answer: str | None
    direction: Direction
    score_a: float
    score_b: float
    a: QuestionSide
    b: QuestionSide
    steps: tuple[StepPair, ...]

    @property
    def is_undecided(self) -> bool:
        """Whether undecided steps in one of the runs count 0, so that the question may not have flipped at all."""
        return self.a.is_undecided or self.b.is_undecided


def flips_between(
    results_a: Iterable[Mapping[str, Any]],
    results_b: Iterable[Mapping[str, Any]],
    pairs: Mapping[str, Pair],
    template_ids: Mapping[str, str],
    metric: MetricSpec,
) -> tuple[Flip, ...]:
    """Return the flips in a metric, sorted by direction, then the largest change first; ``pairs`` has its values."""
    sizes = {identifier: abs(difference_of(pair)) for identifier, pair in pairs.items()}
    directions = {identifier: direction_of(*pairs[identifier], metric) for identifier, size in sizes.items() if size}
    if not directions:
        return ()
    in_order = get_args(Direction).index
    order = sorted(directions, key=lambda each: (in_order(directions[each]), -sizes[each]))
    has_steps = {identifier: rank < _MOST_SIDE_BY_SIDE for rank, identifier in enumerate(order)}
    in_a, in_b = (_seen_questions(results, has_steps, metric) for results in (results_a, results_b))
    flips = []
    for identifier in order:
        (a, text, answer, steps), (b, _, other_answer, other_steps) = in_a[identifier], in_b[identifier]
        flips.append(
            Flip(
                question_id=identifier,
                template_id=template_ids[identifier],
                question_text=text,
                reference_answer=answer or other_answer,
                direction=directions[identifier],
                score_a=pairs[identifier][0],
                score_b=pairs[identifier][1],
                a=a,
                b=b,
                steps=_side_by_side(steps, other_steps),
            )
        )
    return tuple(flips)


def direction_of(score_a: float, score_b: float, metric: MetricSpec) -> Direction:
    """Return in which direction a question flipped.

    Example:
        >>> f1 = MetricSpec(key="answer_f1")
        >>> direction_of(1.0, 0.5, f1), direction_of(0.0, 1.0, f1), direction_of(0.0, 0.5, f1)
        ('now wrong', 'now right', 'better')
        >>> direction_of(1.0, 0.0, MetricSpec(key="made_up", lower_is_better=True))
        'now right'
    """
    was, now = is_right(score_a, metric), is_right(score_b, metric)
    if was is not now:
        return "now right" if now else "now wrong"
    return "worse" if (score_b > score_a) is metric.lower_is_better else "better"


def _seen_questions(
    results: Iterable[Mapping[str, Any]], has_steps: Mapping[str, bool], metric: MetricSpec
) -> dict[str, tuple[QuestionSide, str, str | None, tuple[ShownStep, ...]]]:
    """Return the questions in ``has_steps`` by id, each in its first sample with the worst score.

    Steps are included only if ``has_steps`` says so.
    """
    seen: dict[str, tuple[QuestionSide, str, str | None, tuple[ShownStep, ...]]] = {}
    ranks: dict[str, float] = {}
    for result in results:
        identifier = str(result["question_id"])
        if identifier not in has_steps:
            continue
        score = _score(result, metric.key)
        rank = -inf if score is None else -score if metric.lower_is_better else score
        if identifier in ranks and rank >= ranks[identifier]:
            continue
        ranks[identifier] = rank
        answer, reference_answer = (
            None if (text := result.get(key)) is None else _text(text) for key in ("actual_answer", "reference_answer")
        )
        reason = ""
        if score is None or not is_right(score, metric):
            judged = None if is_error(result) else result.get(metric.reason_key or reason_key(metric.key))
            reason = reason_of(result) if judged is None else _text(judged)
        side = QuestionSide(
            repeat=repeat_of(result),
            score=score,
            status="error" if is_error(result) else "success",
            reason=reason,
            answer=answer,
            is_undecided=metric.needs == "reference_steps" and counts_of(result).get(UNDECIDED, 0) > 0,
        )
        steps = _steps(result) if has_steps[identifier] else ()
        seen[identifier] = (side, _text(result.get("question_text", "")), reference_answer, steps)
    return seen


def _side_by_side(a: Sequence[ShownStep], b: Sequence[ShownStep]) -> tuple[StepPair, ...]:
    """Pair the steps of two runs: equal calls form a pair, and the calls between them are paired in order."""
    pairs: list[StepPair] = []
    calls_a, calls_b = ([(step.name, step.args) for step in steps] for steps in (a, b))
    matcher = SequenceMatcher(None, calls_a, calls_b, autojunk=False)
    for kind, first_a, last_a, first_b, last_b in matcher.get_opcodes():
        in_order = zip_longest(a[first_a:last_a], b[first_b:last_b])
        pairs += (StepPair(step_a, step_b, kind == "equal") for step_a, step_b in in_order)
    return tuple(pairs)


def _score(result: Mapping[str, Any], metric: str) -> float | None:
    """Return the score of a sample; for a metric of steps, the mean over the steps that have it."""
    if is_error(result):
        return None
    for key in (metric, UPPER_BOUNDS.get(metric, metric)):  # a score without an upper bound is its own bound
        own = number(result.get(key))
        if own is not None:
            return own
    values = [number(step.get(metric)) for step in result.get("actual_steps") or ()]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def is_right(score: float, metric: MetricSpec) -> bool:
    """Return whether a score has the best value. For an undeclared metric that is 1, as for all scores."""
    best = best_value(metric)
    if best is None:
        return False
    return score <= best + _ROUNDING if metric.lower_is_better else score >= best - _ROUNDING


def best_value(metric: MetricSpec) -> float | None:
    """Return the best value of a score; None if its range has no bound on that side."""
    least, greatest = metric.range
    if metric.lower_is_better:
        return least
    return 1.0 if metric.range == (None, None) and metric.unit == "score" else greatest


def _steps(result: Mapping[str, Any]) -> tuple[ShownStep, ...]:
    fulfilling = set(fulfilling_steps(result).values())
    return tuple(
        ShownStep(
            name=str(step.get("name")),
            args=_text(step.get("args")),
            output=_text(step.get("output") if (error := step.get("error")) is None else error),
            status=str(step.get("status", "success" if error is None else "error")),
            elapsed_sec=number(step.get(ELAPSED_SEC)),
            fulfils=index in fulfilling,
        )
        for index, step in enumerate((result.get("actual_steps") or ())[:_MOST_STEPS])
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return shortened(value if isinstance(value, str) else json_text(value), _SHOWN_TEXT, keeps_lines=True, tells=True)
