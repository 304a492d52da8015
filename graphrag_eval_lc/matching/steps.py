"""Matches the reference steps of one question with the agent's steps, and computes the steps score and quality."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from math import fsum, inf, isclose
from typing import Any, Final

from graphrag_eval_lc.config import (
    Grading,
    OutputConfig,
    RetrievalConfig,
    RowsConfig,
    Scoring,
    SparqlConfig,
    StepsConfig,
    check_step_kinds,
)
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.matching.assignment import best_assignment, order_share
from graphrag_eval_lc.matching.candidates import Candidates, StepDiagnosis, diagnosis_of
from graphrag_eval_lc.matching.matchers import StepScore, StepView
from graphrag_eval_lc.matching.retrieval import RetrievalPair
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.registry.metrics import STEPS_F1, STEPS_ORDER, STEPS_PRECISION, STEPS_RECALL

_EFFORT: Final = 100_000  # of the search for a better order: tries times reference steps
Group = Sequence[Mapping[str, Any]]
Place = tuple[int, int]
"""The position of a reference step: the index of its group, and its index in the group."""


@dataclass(frozen=True, slots=True)
class StepsQuality:
    """How well the reference steps of all groups were fulfilled, each group compared separately; all from 0 to 1.

    Attributes:
        recall: The mean grade of the reference steps.
        precision: The sum of their grades ÷ the number of successful calls whose names could fulfil some reference
            step; 0 without such a call.
        order: The share of pairs of matched steps from different groups that are in the reference's order; 1 without
            pairs.
    """

    recall: float
    precision: float
    order: float

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0

    def record(self) -> dict[str, float]:
        """Return the metrics under their keys in results."""
        return {STEPS_RECALL: self.recall, STEPS_PRECISION: self.precision, STEPS_F1: self.f1, STEPS_ORDER: self.order}


@dataclass(frozen=True, slots=True)
class Match:
    """A reference step and the actual step that fulfils it.

    Attributes:
        group: The index of the group among the question's reference steps.
        reference: The index of the reference step in its group.
        actual: The index of the actual step.
        score: How well the actual step fulfils the reference step, above 0 and up to 1; its grade if steps are graded.
        reason: The reason for the score.
    """

    group: int
    reference: int
    actual: int
    score: float
    reason: str


class StepsMatch:
    """The outcome of ``match_steps``.

    Attributes:
        steps_score: 0 to 1; None without reference steps to score.
        matches: The matches of the scored groups, by group and reference step.
        undecided: The number of unmatched reference steps in the scored groups for which a comparison is undecided.
            Groups that were not reached because a later group is not fully matched do not count. If steps are graded,
            reference steps that an undecided step fulfils in part count too.
        steps_score_upper: What ``steps_score`` would be if each undecided comparison were a full match; never below
            ``steps_score``. None if that would change nothing and no reference step is undecided.
        actual_steps: The actual steps as matchers read them.
        repeated: The indices of the steps that call the same tool with the same arguments as an earlier one.
        failed: The indices of the steps that failed.
    """

    def __init__(self, candidates: list[list[Candidates]], actual_steps: list[StepView], steps: StepsConfig) -> None:
        self._candidates = candidates
        self.actual_steps = actual_steps
        self._is_graded = steps.grading == "graded"
        self._groups = scored_groups(candidates, steps.counted)
        self.steps_score: float | None
        if self._is_graded:
            self._actual_of = whole_assignment(candidates)
            self._before = dict.fromkeys(self._groups, len(actual_steps))
            self.steps_score = None if self.quality is None else self.quality.f1
        else:
            self.steps_score, self._actual_of, self._before = _walk(candidates, self._groups, len(actual_steps))
        self.matches: list[Match] = [
            Match(group, place, actual, each.worth(actual), each.reason(actual))
            for (group, place), actual in sorted(self._actual_of.items())
            for each in (candidates[group][place],)
        ]
        self.undecided = sum(
            each.is_open(self._actual_of.get((group, place))) and bool(each.undecided(before))
            for group, before in self._before.items()
            for place, each in enumerate(candidates[group])
        )
        self.steps_score_upper = self._upper_score()
        self.repeated = _repeated_steps(actual_steps)
        self.failed = [index for index, step in enumerate(actual_steps) if step.get("status") != "success"]

    def _upper_score(self) -> float | None:
        score = self.steps_score
        if score is None or not any(each.undecided() for group in self._candidates for each in group):
            return None
        if self._is_graded:
            quality = steps_quality(self._candidates, {}, best_total(self._candidates, of_undecided=1.0))
            upper = 0.0 if quality is None else quality.f1
        else:
            upper = _walk(self._candidates, self._groups, len(self.actual_steps), of_undecided=1.0)[0] or 0.0
        return max(upper, score) if self.undecided or upper > score else None

    @cached_property
    def diagnosis(self) -> list[list[StepDiagnosis]]:
        """For each group, scored or not, and each of its reference steps: the nearest actual step and the reason."""
        taken = frozenset(self._actual_of.values())
        return [
            [
                diagnosis_of(each, matched=self._actual_of.get((at, place)), taken=taken, before=self._before.get(at))
                for place, each in enumerate(group)
            ]
            for at, group in enumerate(self._candidates)
        ]

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """By index of the actual step: why its output could not be compared although the call succeeded."""
        made = self._all_comparisons()
        read = {index for index, step in enumerate(self.actual_steps) if step.is_read}
        read |= {index for index, each, of_step in made if each.score > 0 and not of_step.finds_iris}
        why = {index: each.unreadable for index, each, _ in reversed(made) if each.unreadable}
        return {index: why[index] for index in sorted(why) if index not in read}

    @cached_property
    def cut(self) -> dict[int, str]:
        """By index of the actual step, for compared steps: at what point the output is cut."""
        cut = {index: each.cut for index, each, _ in reversed(self._all_comparisons()) if each.cut is not None}
        return dict(sorted(cut.items()))

    def _all_comparisons(self) -> list[tuple[int, StepScore, Candidates]]:
        """Return all comparisons. The diagnosis runs first and adds its own, so the order of calls does not matter."""
        _ = self.diagnosis
        every = chain.from_iterable(self._candidates)
        return [(index, comparison, each) for each in every for index, comparison in each.made.items()]

    @cached_property
    def quality(self) -> StepsQuality | None:
        """Recall, precision, F1 and order of all groups; None without reference steps to score."""
        if self._is_graded:
            actual_of = self._actual_of
        else:
            _ = self.unreadable, self.cut  # computed first, since the next line compares more steps
            actual_of = whole_assignment(self._candidates)
        worths = {(at, place): self._candidates[at][place].worth(actual) for (at, place), actual in actual_of.items()}
        return steps_quality(self._candidates, actual_of, worths)

    def retrieval_pairs(self) -> Iterator[RetrievalPair]:
        """Yield the reference steps of retrieval in the scored groups, each with the step that fulfils it."""
        for group in self._groups:
            for place, candidates in enumerate(self._candidates[group]):
                if candidates.is_retrieval:
                    actual = self._actual_of.get((group, place))
                    step = None if actual is None else self.actual_steps[actual]
                    yield RetrievalPair(candidates.reference, step, actual)

    @property
    def extra(self) -> list[int]:
        """The indices of the successful steps that match no reference step, scored or not, and cannot match one."""
        fitting = {
            step.nearest for group in self.diagnosis for step in group if step.matched or step.outcome != "mismatch"
        }
        failed = set(self.failed)
        return [index for index in range(len(self.actual_steps)) if index not in fitting and index not in failed]


def match_steps(
    reference_steps: Sequence[Group],
    actual_steps: Sequence[Mapping[str, Any]],
    *,
    scoring: Scoring = "last_group",
    sparql: SparqlConfig | None = None,
    names: Mapping[str, str] | None = None,
    retrieval: RetrievalConfig | None = None,
    outputs: Mapping[str, OutputConfig] | None = None,
    kinds: Mapping[str, str] | None = None,
    rows: RowsConfig | None = None,
    grading: Grading = "binary",
) -> StepsMatch:
    """Match the steps of an agent with the groups of reference steps so that the score is as high as possible.

    Only successful steps match, each at most once. Inside a group, the assignment with the highest total wins. If
    totals are equal, the one with the later actual steps wins.

    Args:
        reference_steps: The groups in order; inside a group the steps may come in any order.
        actual_steps: The steps that the agent took, in order.
        scoring: ``last_group``: the sum of the match scores in the last group ÷ its size. ``all_groups``: the mean
            of that over the groups, walking back from the last; an earlier group may match only steps before the
            earliest one matched so far; after a group that is not matched in full the rest scores 0. It has no
            effect if steps are graded.
        sparql: Defaults for the keys of SPARQL reference steps.
        names: Step names by tool name, for tools that have other names than the reference steps.
        retrieval: Which steps count as retrieval as well as those called ``retrieval``, by the name of their tool or
            of the reference steps; they are compared by their ids.
        outputs: How the outputs of actual steps are read, by the name of their tool or, after ``names``, of the step.
        kinds: The kinds by which reference steps are compared, by their name or that of the tool; see ``StepsConfig``.
        rows: How rows of a query language are compared.
        grading: ``binary``: as ``scoring`` says. ``graded``: a step is worth its grade, and ``steps_score`` is
            ``steps_f1`` of all groups, each compared separately.

    Raises:
        DatasetError: The name of a reference step is a list or a mapping.
        ConfigError: The kind is unknown, or several for the same steps.

    Example:
        >>> actual = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "status": "success", "output": "3"}
        >>> match_steps([[{"name": "add", "output": "3"}]], [actual]).steps_score
        1.0
    """
    steps = StepsConfig.model_construct(
        scoring=scoring,
        grading=grading,
        names=dict(names or {}),
        kinds=dict(kinds or {}),
        outputs=dict(outputs or {}),
        rows=rows or RowsConfig(),
    )
    if kinds:
        check_step_kinds(steps.kinds, steps.names, retrieval or RetrievalConfig())
    return match_viewed_steps(reference_steps, actual_steps, steps, StepViews(steps, sparql, retrieval))


def match_viewed_steps(
    reference_steps: Sequence[Group], actual_steps: Sequence[Mapping[str, Any]], steps: StepsConfig, views: StepViews
) -> StepsMatch:
    """Match steps as ``match_steps`` does, with ``views`` that all questions of a config share."""
    for at, group in enumerate(reference_steps):
        for place, step in enumerate(group):
            if not isinstance(name := step.get("name"), Hashable):
                raise DatasetError(
                    f"the name of a reference step is {name!r:.60}, which is not a text",
                    key=f"reference_steps[{at}][{place}].name",
                    hint="Give the name of one step kind or tool.",
                )
    actual = [views.actual_view(step) for step in actual_steps]
    candidates = [
        [Candidates(views.reference_view(step), actual, views) for step in group] for group in reference_steps
    ]
    return StepsMatch(candidates, actual, steps)


def _repeated_steps(actual_steps: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the steps that call the same tool with the same arguments as an earlier one."""
    seen: set[tuple[str, str]] = set()
    repeated = []
    for index, step in enumerate(actual_steps):
        args = step.get("args")
        try:
            call = (str(step.get("name")), repr(sorted(args.items()) if isinstance(args, Mapping) else args))
        except (TypeError, ValueError, RecursionError):  # keys that cannot be sorted, values that JSON cannot hold
            continue
        if call in seen:
            repeated.append(index)
        seen.add(call)
    return repeated


def _walk(
    candidates: Sequence[Sequence[Candidates]], groups: Sequence[int], step_count: int, of_undecided: float = 0.0
) -> tuple[float | None, dict[Place, int], dict[int, int]]:
    """Match the scored groups, from the last one back, each with its best assignment.

    Returns the score, the assigned actual steps, and for each group that was reached the index before which its steps
    must be. ``of_undecided`` is the least that an undecided comparison is worth.
    """
    actual_of: dict[Place, int] = {}
    before_of: dict[int, int] = {}
    before, totals = step_count, []
    for at in reversed(groups):
        group = candidates[at]
        scores = []
        for each in group:
            indices = each.latest_best(before) if len(group) == 1 else [at for at in each.indices if at < before]
            pairs = {index: each[index] for index in indices}
            scores.append({index: of_undecided if pair.is_undecided else pair.score for index, pair in pairs.items()})
        assigned = {place: index for place, index in enumerate(best_assignment(scores)) if index is not None}
        actual_of |= {(at, place): index for place, index in assigned.items()}
        before_of[at] = before
        # fsum is exact: the mean of equal scores is that score.
        totals.append(fsum(scores[place][index] for place, index in assigned.items()) / len(group))
        if len(assigned) < len(group):
            break
        before = min(assigned.values())
    return (fsum(totals) / len(groups) if groups else None), actual_of, before_of


def scored_groups(groups: Sequence[Collection[Any]], scoring: Scoring) -> list[int]:
    """Return the indices of the groups that count for the score; a group without steps never does."""
    filled = [index for index, steps in enumerate(groups) if steps]
    return filled if scoring == "all_groups" else filled[-1:]


def steps_quality(
    candidates: Sequence[Sequence[Candidates]], actual_of: Mapping[Place, int], worths: Mapping[Place, float]
) -> StepsQuality | None:
    """Return the quality of the fulfilled reference steps; None without reference steps to score.

    ``actual_of`` has the actual step and ``worths`` the grade of each reference step that is fulfilled.
    """
    references = sum(map(len, candidates))
    if not references:
        return None
    calls = len(set[int]().union(*(each.indices for group in candidates for each in group)))
    total = fsum(worths.values())
    return StepsQuality(
        recall=total / references,
        precision=total / calls if calls else 0.0,
        order=_order_of(actual_of),
    )


def whole_assignment(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int]:
    """Assign actual steps, each used once, to the reference steps of all groups, for the highest total worth.

    If each reference step can have its best step in the order of the groups, it has that one. Otherwise the assignment
    is changed, a step or two at a time, as long as its total stays the same and its order improves.
    """
    in_order = _assigned_in_order(candidates)
    if in_order is not None:
        return in_order
    worths = _worths(candidates)
    return _in_better_order(worths, _assigned(worths))


def best_total(candidates: Sequence[Sequence[Candidates]], *, of_undecided: float) -> dict[Place, float]:
    """Return the best worths of the reference steps if each undecided comparison is worth at least ``of_undecided``."""
    worths = _worths(candidates, of_undecided)
    return {place: worths[place][actual] for place, actual in _assigned(worths).items()}


def _worths(candidates: Sequence[Sequence[Candidates]], of_undecided: float = 0.0) -> dict[Place, dict[int, float]]:
    rows = {(at, place): each for at, group in enumerate(candidates) for place, each in enumerate(group)}
    return {
        place: {
            index: worth
            for index in each.indices
            if (worth := max(each.worth(index), of_undecided if each[index].is_undecided else 0.0)) > 0
        }
        for place, each in rows.items()
    }


def _assigned(worths: Mapping[Place, Mapping[int, float]]) -> dict[Place, int]:
    assigned = best_assignment(list(worths.values()))
    return {place: actual for place, actual in zip(worths, assigned, strict=True) if actual is not None}


def _assigned_in_order(candidates: Sequence[Sequence[Candidates]]) -> dict[Place, int] | None:
    """Return an assignment in order that has the best step for each reference step, or None."""
    actual_of: dict[Place, int] = {}
    before: float = inf
    for at in reversed(range(len(candidates))):
        rows: dict[Place, dict[int, float]] = {}
        for place, each in enumerate(candidates[at]):
            most = max(map(each.worth, each.latest_best()), default=0.0)
            if most == 0:
                continue
            fitting = (index for index in reversed(each.indices) if index < before and each.worth(index) == most)
            chosen = fitting if len(candidates[at]) > 1 else islice(fitting, 1)
            rows[at, place] = dict.fromkeys(chosen, 1.0)
        of_group = _assigned(rows)
        if len(of_group) < len(rows):
            return None
        actual_of |= of_group
        before = min(of_group.values(), default=before)
    return actual_of


def _in_better_order(worths: Mapping[Place, Mapping[int, float]], actual_of: dict[Place, int]) -> dict[Place, int]:
    """Let a step take another actual step, and the one that had it take its own, if that improves the order."""
    share, tries = _order_of(actual_of), _EFFORT // (len(worths) + 1)
    options = [(place, index) for place, row in worths.items() for index in row]
    is_better = True
    while is_better and share < 1.0:
        is_better = False
        for place, index in options:
            had, holder = actual_of.get(place), next((at for at, actual in actual_of.items() if actual == index), None)
            changed = {at: actual for at, actual in actual_of.items() if at not in (place, holder)} | {place: index}
            if holder is not None and had is not None and had in worths[holder]:
                changed[holder] = had
            lost = sum(worths[at][actual_of[at]] for at in (place, holder) if at in actual_of)
            won = sum(worths[at][changed[at]] for at in (place, holder) if at in changed)
            if index == had or len(changed) < len(actual_of) or not isclose(lost, won, rel_tol=0, abs_tol=1e-12):
                continue
            tries -= 1
            if (changed_share := _order_of(changed)) > share:
                actual_of, share, is_better = changed, changed_share, True
            if tries == 0:
                return actual_of
    return actual_of


def _order_of(actual_of: Mapping[Place, int]) -> float:
    return order_share([(group, actual) for (group, _), actual in actual_of.items()])
