"""Finds flips: the questions whose value in a metric changed between runs, with the steps of both side by side."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from math import inf
from typing import Any, Final, Literal, NamedTuple, get_args

from graphrag_eval_lc.aggregation import is_error, reason_of
from graphrag_eval_lc.aggregation.sample_values import counts_of, number, unfulfilled_step
from graphrag_eval_lc.compare.metric_comparison import Pair, difference_of
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, UNDECIDED, UPPER_BOUNDS
from graphrag_eval_lc.tables.run_tables import fulfilling_steps, has_same_name, named_step
from graphrag_eval_lc.texts import shortened
from graphrag_eval_lc.view.samples import repeat_of

Direction = Literal["broken", "fixed", "worse", "better"]

# A score of 1 counts as right despite rounding errors.
_ROUNDING = 1e-9
# Steps are kept for at most this many questions of each run.
_MOST_SIDE_BY_SIDE = 500
_MOST_STEPS = 50
_SHOWN_TEXT = 2000
_SHOWN_REASON, _SHOWN_CAUSE = 270, 180
_COMMENT: Final = re.compile(r"(?m)(?:^|\s)(?:#|//|--)")
_LAYOUT: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s+""")
_ROWS: Final = re.compile(r"\b(?:rows?|columns?)\b")


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
        is_same: Whether tool and arguments are the same, up to white space.
        has_same_output: Whether both have the same output or error.
    """

    a: ShownStep | None
    b: ShownStep | None
    is_same: bool
    has_same_output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSide:
    """A question in one run: with repeats, the sample with the worst score.

    Attributes:
        repeat: The number of the sample; 1 if the question was asked once.
        score: Its score; None if it failed.
        status: ``success`` or ``error``.
        reason: Why it did not score in full; empty if it did.
        answer: Its answer, or None.
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
        reference_answer: Its reference answer, or None.
        direction: ``broken`` or ``fixed`` if it is right in only one of the runs; otherwise ``worse`` or ``better``.
            A question is right if it has the best value of the metric, such as 1.0.
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
    def why(self) -> str:
        """Why it is not right now; if it is, why it was not in A. Empty if nothing is known."""
        return self.b.reason or (f"before: {self.a.reason}" if self.a.reason else "")

    @property
    def is_undecided(self) -> bool:
        """Whether undecided steps in one of the runs count 0, so that the question may not have flipped at all."""
        return self.a.is_undecided or self.b.is_undecided


class _Call(NamedTuple):
    """Hashes of a tool call: tool and arguments up to white space, and the output or error."""

    request: int
    output: int


class _Failing(NamedTuple):
    """The reference step that explains a score, and what its diagnosis says apart from the query."""

    place: tuple[int, int]  # its group, and its index in the group
    score: float
    name: str
    at: int | None  # the index of the nearest call
    error: str  # that of the nearest call
    reason: str
    run_error: str


class _Seen(NamedTuple):
    """A question in one run: what is shown of its worst sample, and what a comparison with the other run needs."""

    side: QuestionSide
    text: str
    reference_answer: str | None
    steps: tuple[ShownStep, ...]
    calls: tuple[_Call, ...]
    fulfilling: Mapping[tuple[int, int], tuple[int, float]]  # by reference step: the index of its call, and the score
    failing: _Failing | None


def flips_between(
    results_a: Iterable[Mapping[str, Any]],
    results_b: Iterable[Mapping[str, Any]],
    pairs: Mapping[str, Pair],
    template_ids: Mapping[str, str],
    metric: MetricSpec,
    letter: str = "B",
) -> tuple[Flip, ...]:
    """Return the flips in a metric, sorted by direction, then the largest change first.

    ``pairs`` has the values of the metric, and ``letter`` names the other run.
    """
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
        a, b = in_a[identifier], in_b[identifier]
        flips.append(
            Flip(
                question_id=identifier,
                template_id=template_ids[identifier],
                question_text=a.text,
                reference_answer=a.reference_answer or b.reference_answer,
                direction=directions[identifier],
                score_a=pairs[identifier][0],
                score_b=pairs[identifier][1],
                a=_side_against(a, b, "A", letter),
                b=_side_against(b, a, letter, "A"),
                steps=_side_by_side(a, b),
            )
        )
    return tuple(flips)


def direction_of(score_a: float, score_b: float, metric: MetricSpec) -> Direction:
    """Return in which direction a question flipped.

    Example:
        >>> f1 = MetricSpec(key="answer_f1")
        >>> direction_of(1.0, 0.5, f1), direction_of(0.0, 1.0, f1), direction_of(0.0, 0.5, f1)
        ('broken', 'fixed', 'better')
        >>> direction_of(1.0, 0.0, MetricSpec(key="made_up", lower_is_better=True))
        'fixed'
    """
    was, now = is_right(score_a, metric), is_right(score_b, metric)
    if was is not now:
        return "fixed" if now else "broken"
    return "worse" if (score_b > score_a) is metric.lower_is_better else "better"


def _seen_questions(
    results: Iterable[Mapping[str, Any]], has_steps: Mapping[str, bool], metric: MetricSpec
) -> dict[str, _Seen]:
    """Return the questions in ``has_steps`` by id, each in its first sample with the worst score.

    Steps are included only if ``has_steps`` says so.
    """
    seen: dict[str, _Seen] = {}
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
        reason, failing = "", None
        fulfilling = _fulfilling_calls(result)
        if score is None or not is_right(score, metric):
            judged = None if is_error(result) else result.get(metric.reason_key or reason_key(metric.key))
            reason = reason_of(result) if judged is None else _text(judged)
            failing = _failing_step(result) if judged is None else None
        side = QuestionSide(
            repeat=repeat_of(result),
            score=score,
            status="error" if is_error(result) else "success",
            reason=reason,
            answer=answer,
            is_undecided=metric.needs == "reference_steps" and counts_of(result).get(UNDECIDED, 0) > 0,
        )
        seen[identifier] = _Seen(
            side=side,
            text=_text(result.get("question_text", "")),
            reference_answer=reference_answer,
            steps=_steps(result, {at for at, _ in fulfilling.values()}) if has_steps[identifier] else (),
            calls=tuple(map(_call, result.get("actual_steps") or ())),
            fulfilling=fulfilling,
            failing=failing,
        )
    return seen


def _fulfilling_calls(result: Mapping[str, Any]) -> dict[tuple[int, int], tuple[int, float]]:
    """Return by fulfilled reference step the index of its call, and the step's score, which is 1 if it is not known."""
    diagnoses = {
        (group, index): diagnosis
        for group, of_group in enumerate(result.get("steps_diagnosis") or ())
        for index, diagnosis in enumerate(of_group)
    }
    return {place: (at, diagnoses.get(place, {}).get("score", 1.0)) for place, at in fulfilling_steps(result).items()}


def _failing_step(result: Mapping[str, Any]) -> _Failing | None:
    """Return the step that explains the score; None if there is none, if it is undecided, or if the error explains."""
    if (found := unfulfilled_step(result)) is None:
        return None
    reference, diagnosis = found
    query = diagnosis.get("query")
    if diagnosis.get("outcome") == "undecided" or (is_error(result) and query is None):
        return None
    place = next(
        (group, index)
        for group, steps in enumerate(result["reference_steps"])
        for index, step in enumerate(steps)
        if step is reference
    )
    calls = result.get("actual_steps") or ()
    nearest = diagnosis.get("nearest")
    at = None if nearest is None else named_step(nearest, reference, calls, has_same_name)
    return _Failing(
        place=place,
        score=diagnosis.get("score", 0.0),
        name=str(reference["name"]),
        at=at,
        error="" if at is None else _text(calls[at].get("error")),
        reason=str(diagnosis.get("reason") or "").removeprefix(query["sentence"] if query else "").strip(),
        run_error=str(result.get("error") or "") if is_error(result) else "",
    )


def _call(step: Mapping[str, Any]) -> _Call:
    request = hash((str(step.get("name")), json_text(_without_layout(step.get("args")))))
    output = step.get("output") if (error := step.get("error")) is None else error
    return _Call(request, hash(output if isinstance(output, str) else json_text(output)))


def _without_layout(args: Any) -> Any:
    """Return arguments with single spaces in their texts, except in quotes; a text with comments stays as it is."""
    if isinstance(args, str):
        return args if _COMMENT.search(args) else _LAYOUT.sub(lambda found: found[1] or " ", args).strip()
    if isinstance(args, Mapping):
        return {key: _without_layout(value) for key, value in args.items()}
    return [_without_layout(value) for value in args] if isinstance(args, list | tuple) else args


def _side_against(seen: _Seen, other: _Seen, letter: str, other_letter: str) -> QuestionSide:
    """Return a side whose reason says what differs from the other run, in which the failing reference step matched.

    If the call that matched there was made here too, or is missing here, the difference from the reference's query,
    which both runs have, did not change the score.
    """
    failing, text = seen.failing, ""
    if failing is None or failing.at is None:
        return seen.side
    at, score = other.fulfilling.get(failing.place, (None, 0.0))
    if at is None or score <= failing.score:
        return seen.side
    reason = f": {failing.reason}" if failing.reason else ""
    mine, matched, same = seen.calls[failing.at], other.calls[at], f"the same call as in {other_letter}"
    if mine.request == matched.request:
        if mine.output == matched.output:
            text = f"{same} returned the same output, which matched there{reason}"
        elif failing.error:
            text = f"{same} failed: {failing.error}"
        else:
            other_output = "other rows" if _ROWS.search(failing.reason) else "another output"
            text = f"{same} returned {other_output}{reason}"
    elif outputs := [call.output for call in seen.calls if call.request == matched.request]:
        text = "" if matched.output in outputs else f"{same} returned another output"
    elif mine.request in {call.request for call in other.calls}:
        text = f"the call of {failing.name} that matched in {other_letter} is missing in {letter}"
    if text and failing.run_error:
        text = f"{shortened(text, _SHOWN_CAUSE)}; the run failed: {failing.run_error}"
    return replace(seen.side, reason=shortened(text, _SHOWN_REASON)) if text else seen.side


def _side_by_side(a: _Seen, b: _Seen) -> tuple[StepPair, ...]:
    """Pair the steps of two runs: equal calls form a pair, and the calls between them are paired in order."""
    pairs: list[StepPair] = []
    in_a, in_b = (list(zip(each.steps, each.calls, strict=False)) for each in (a, b))  # not all steps are shown
    requests_a, requests_b = ([call.request for _, call in steps] for steps in (in_a, in_b))
    matcher = SequenceMatcher(None, requests_a, requests_b, autojunk=False)
    for kind, first_a, last_a, first_b, last_b in matcher.get_opcodes():
        for of_a, of_b in zip_longest(in_a[first_a:last_a], in_b[first_b:last_b]):
            (step_a, call_a), (step_b, call_b) = of_a or (None, None), of_b or (None, None)
            has_same_output = call_a is not None and call_b is not None and call_a.output == call_b.output
            pairs.append(StepPair(step_a, step_b, kind == "equal", has_same_output))
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


def _steps(result: Mapping[str, Any], fulfilling: Collection[int]) -> tuple[ShownStep, ...]:
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
    return shortened(
        value if isinstance(value, str) else json_text(value), _SHOWN_TEXT, keeps_lines=True, counts_rest=True
    )
