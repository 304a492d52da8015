"""The questions that flipped from one run to another: what each run did, step beside step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import inf
from typing import Any, Literal

from graphrag_eval_lc.aggregation import is_error, reason_of
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.tables.fulfilling_steps import fulfilling_steps
from graphrag_eval_lc.tables.run_tables import repeat_of
from graphrag_eval_lc.texts import shortened

Direction = Literal["now wrong", "now right", "worse", "better"]

# A score of 1 is right, whatever rounding makes of it.
_ROUNDING = 1e-9
_MOST_STEPS = 50
_SHOWN_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """One call of a tool, for people.

    Attributes:
        name: The tool.
        args: Its arguments as text.
        output: What it gave, or its error; long texts are cut.
        status: ``success`` or ``error``.
        elapsed_sec: Seconds; None where they are not known.
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
    """A step of A beside one of the other run.

    Attributes:
        a: The step of A; None where only the other run has it.
        b: The step of the other run, likewise.
        is_same: Whether tool and arguments are the same.
    """

    a: ShownStep | None
    b: ShownStep | None
    is_same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSide:
    """What became of a question in one run: with repeats, in the sample with the worst score.

    Attributes:
        repeat: Which sample that is; 1 where the question was asked once.
        score: Its score; None where it failed.
        status: ``success`` or ``error``.
        reason: Why it did not score in full; empty where it did.
        answer: The answer; None where there is none.
    """

    repeat: int
    score: float | None
    status: str
    reason: str
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A question of which a metric changed.

    Attributes:
        question_id: Its id.
        template_id: Its template.
        question_text: The question.
        reference_answer: Its reference answer; None where there is none.
        direction: ``now wrong`` or ``now right`` where it was right in one of the runs only (1.0, or what else is
            the best value of the metric), else ``worse`` or ``better``.
        score_a: The metric in A, the mean over repeats.
        score_b: The metric in the other run.
        a: What became of it in A.
        b: What became of it in the other run.
        steps: The steps side by side; empty where too many questions flipped to show them all.
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


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a question in one run."""

    side: QuestionSide
    question_text: str
    reference_answer: str | None
    steps: tuple[ShownStep, ...]


def direction_of(score_a: float, score_b: float, metric: MetricSpec) -> Direction:
    """Return which way a question flipped.

    Example:
        >>> f1 = MetricSpec(key="answer_f1")
        >>> direction_of(1.0, 0.5, f1), direction_of(0.0, 1.0, f1), direction_of(0.0, 0.5, f1)
        ('now wrong', 'now right', 'better')
        >>> direction_of(1.0, 0.0, MetricSpec(key="made_up", lower_is_better=True))
        'now right'
    """
    was_right, is_right = _is_right(score_a, metric), _is_right(score_b, metric)
    if was_right is not is_right:
        return "now right" if is_right else "now wrong"
    return "worse" if (score_b > score_a) is metric.lower_is_better else "better"


def seen_questions(
    results: Iterable[Mapping[str, Any]], wanted: Mapping[str, bool], metric: MetricSpec
) -> dict[str, Seen]:
    """Return what is shown of questions: of each the sample with the worst score, the first of those.

    Args:
        results: The results of a run.
        wanted: The ids of the questions, and whether their steps are shown.
        metric: The score.
    """
    seen: dict[str, Seen] = {}
    for result in results:
        identifier = str(result["question_id"])
        if identifier not in wanted:
            continue
        score = _score(result, metric.key)
        if identifier not in seen or _rank(score, metric) < _rank(seen[identifier].side.score, metric):
            seen[identifier] = _seen(result, metric, score, has_steps=wanted[identifier])
    return seen


def side_by_side(a: Sequence[ShownStep], b: Sequence[ShownStep]) -> tuple[StepPair, ...]:
    """Return the steps of two runs beside each other: the same calls on one line, and between them the others in order.

    Example:
        >>> def step(args):
        ...     return ShownStep(name="t", args=args, output="", status="success", elapsed_sec=None, fulfils=False)
        >>> pairs = side_by_side([step("1"), step("2")], [step("2"), step("3")])
        >>> [(pair.a and pair.a.args, pair.b and pair.b.args) for pair in pairs]
        [('1', None), ('2', '2'), (None, '3')]
    """
    pairs: list[StepPair] = []
    matcher = SequenceMatcher(None, [_call(step) for step in a], [_call(step) for step in b], autojunk=False)
    for kind, first_a, last_a, first_b, last_b in matcher.get_opcodes():
        of_a, of_b = a[first_a:last_a], b[first_b:last_b]
        for index in range(max(len(of_a), len(of_b))):
            step_a = of_a[index] if index < len(of_a) else None
            step_b = of_b[index] if index < len(of_b) else None
            pairs.append(StepPair(step_a, step_b, kind == "equal"))
    return tuple(pairs)


def _call(step: ShownStep) -> tuple[str, str]:
    return step.name, step.args


def _score(result: Mapping[str, Any], metric: str) -> float | None:
    """Return the score of a sample; that of a retrieval step is the mean over the steps that have it."""
    if is_error(result):
        return None
    own = number(result.get(metric))
    if own is not None:
        return own
    values = [number(step.get(metric)) for step in result.get("actual_steps") or ()]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _rank(score: float | None, metric: MetricSpec) -> float:
    """Return what is the higher the better a sample is; one that failed is below all others."""
    if score is None:
        return -inf
    return -score if metric.lower_is_better else score


def _is_right(score: float, metric: MetricSpec) -> bool:
    """Return whether a score is as good as it can be; of a number that nobody declared 1 is, as of all scores."""
    least, greatest = metric.range
    if metric.lower_is_better:
        return least is not None and score <= least + _ROUNDING
    if metric.range == (None, None) and metric.unit == "score":
        greatest = 1.0
    return greatest is not None and score >= greatest - _ROUNDING


def _seen(result: Mapping[str, Any], metric: MetricSpec, score: float | None, *, has_steps: bool) -> Seen:
    reference_answer = result.get("reference_answer")
    answer = result.get("actual_answer")
    return Seen(
        QuestionSide(
            repeat=repeat_of(result),
            score=score,
            status="error" if is_error(result) else "success",
            reason=_reason(result, metric, score),
            answer=None if answer is None else _cut(str(answer)),
        ),
        question_text=_cut(str(result.get("question_text", ""))),
        reference_answer=None if reference_answer is None else _cut(str(reference_answer)),
        steps=_steps(result) if has_steps else (),
    )


def _reason(result: Mapping[str, Any], metric: MetricSpec, score: float | None) -> str:
    if score is not None and _is_right(score, metric):
        return ""
    judged = result.get(metric.reason_key or reason_key(metric.key))
    return _cut(str(judged)) if judged is not None and not is_error(result) else reason_of(result)


def _steps(result: Mapping[str, Any]) -> tuple[ShownStep, ...]:
    fulfilling = set(fulfilling_steps(result).values())
    steps = (result.get("actual_steps") or ())[:_MOST_STEPS]
    return tuple(_shown(step, index in fulfilling) for index, step in enumerate(steps))


def _shown(step: Mapping[str, Any], fulfils: bool) -> ShownStep:
    error, output = step.get("error"), step.get("output")
    return ShownStep(
        name=str(step.get("name")),
        args=_text(step.get("args")),
        output=_text(output if error is None else error),
        status=str(step.get("status", "success" if error is None else "error")),
        elapsed_sec=number(step.get(ELAPSED_SEC)),
        fulfils=fulfils,
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return _cut(value if isinstance(value, str) else json_text(value))


def _cut(text: str) -> str:
    return shortened(text, _SHOWN_TEXT, keeps_lines=True, tells=True)
