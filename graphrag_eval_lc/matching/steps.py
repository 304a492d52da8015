"""Matching the reference steps of one question with the agent's steps: the best assignment in each group."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphrag_eval_lc.config import OutputConfig, RetrievalConfig, Scoring, SparqlConfig
from graphrag_eval_lc.matching.candidates import Candidates, RetrievalSteps, StepDiagnosis, diagnosis_of
from graphrag_eval_lc.matching.matchers import Matcher, StepView, custom_matchers
from graphrag_eval_lc.matching.retrieval import RetrievalPair
from graphrag_eval_lc.registry.step_kinds import MatcherKey

Group = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Match:
    """A reference step and the actual step that fulfils it.

    Attributes:
        group: The index of the group among the question's reference steps.
        reference: The index of the reference step in its group.
        actual: The index of the actual step.
        score: How well it fulfils it, above 0 and up to 1.
        reason: Why, for people.
    """

    group: int
    reference: int
    actual: int
    score: float
    reason: str


class StepsMatch:
    """The outcome of ``match_steps``.

    Attributes:
        steps_score: 0 to 1; None where there are no reference steps to score.
        matches: The matches of the scored groups, by group and reference step.
        repeated: The indices of the steps that call the same tool with the same arguments as an earlier one.
        failed: The indices of the steps that failed.
    """

    def __init__(
        self,
        candidates: list[list[Candidates]],
        actual_steps: list[StepView],
        unreadable: dict[int, str | None],
        scoring: Scoring,
    ) -> None:
        self._candidates = candidates
        self._actual_steps = actual_steps
        self._chosen = _Chosen(candidates, len(actual_steps), scoring)
        self.steps_score: float | None = self._chosen.score
        self.matches: list[Match] = [
            Match(group, reference, actual, comparison.score, comparison.reason())
            for (group, reference), actual in sorted(self._chosen.actual_of.items())
            for comparison in (candidates[group][reference][actual],)
        ]
        self._unreadable = unreadable
        self.repeated = _repeated_steps(actual_steps)
        self.failed = [index for index, step in enumerate(actual_steps) if step.get("status") != "success"]

    @cached_property
    def diagnosis(self) -> list[list[StepDiagnosis]]:
        """For each group, scored or not, and each of its reference steps: the nearest actual step and why (not)."""
        return [
            [
                diagnosis_of(
                    candidates,
                    self._actual_steps,
                    matched=self._chosen.actual_of.get((group, index)),
                    taken=self._chosen.taken,
                    before=self._chosen.before.get(group),
                )
                for index, candidates in enumerate(references)
            ]
            for group, references in enumerate(self._candidates)
        ]

    @property
    def unreadable(self) -> dict[int, str]:
        """By index of the actual step: why its output could not be compared with any, although the call succeeded."""
        _ = self.diagnosis  # so that it does not matter what was asked for before
        return {index: why for index, why in sorted(self._unreadable.items()) if why is not None}

    def retrieval_pairs(self) -> Iterator[RetrievalPair]:
        """Yield the reference steps of retrieval in the scored groups, each with the step that fulfils it."""
        for group in self._chosen.groups:
            for index, candidates in enumerate(self._candidates[group]):
                if candidates.is_retrieval:
                    actual = self._chosen.actual_of.get((group, index))
                    step = None if actual is None else self._actual_steps[actual]
                    yield RetrievalPair(candidates.reference, step, actual)

    @property
    def extra(self) -> list[int]:
        """The indices of the successful steps that fit no reference step of any group, scored or not."""
        fitting = {step.nearest for group in self.diagnosis for step in group if step.score > 0}
        return [
            index
            for index, step in enumerate(self._actual_steps)
            if step.get("status") == "success" and index not in fitting
        ]


def match_steps(
    reference_steps: Sequence[Group],
    actual_steps: Sequence[Mapping[str, Any]],
    *,
    scoring: Scoring = "last_group",
    sparql: SparqlConfig | None = None,
    names: Mapping[str, str] | None = None,
    retrieval: RetrievalConfig | None = None,
    outputs: Mapping[str, OutputConfig] | None = None,
) -> StepsMatch:
    """Match the steps of an agent with the groups of reference steps so that the score is the best.

    Only successful steps match, each at most once. Inside a group the assignment with the highest total wins; of
    equal ones the one with the later actual steps.

    Args:
        reference_steps: The groups in order; inside a group the steps may come in any order.
        actual_steps: The steps that the agent took, in order.
        scoring: ``last_group``: the sum of the match scores in the last group ÷ its size. ``all_groups``: the mean
            of that over the groups, walking back from the last; an earlier group may match only steps before the
            earliest one matched so far; after a group that is not matched in full the rest scores 0.
        sparql: Defaults for the keys of SPARQL reference steps.
        names: Step names by tool name, for tools that have other names than the reference steps.
        retrieval: Which steps count as retrieval beside those called ``retrieval``, by the name of their tool or of
            the reference steps; they are compared by their ids.
        outputs: How the outputs of actual steps are read, by the name of their tool or, after ``names``, of the step.

    Example:
        >>> actual = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "status": "success", "output": "3"}
        >>> match_steps([[{"name": "add", "output": "3"}]], [actual]).steps_score
        1.0
    """
    defaults = (sparql or SparqlConfig()).step_defaults()
    views = RetrievalSteps(retrieval or RetrievalConfig(), names or {}, outputs)
    actual = [views.actual_view(step) for step in actual_steps]
    unreadable: dict[int, str | None] = {}
    candidates = [
        [Candidates(views.reference_view(step, defaults), actual, unreadable, views) for step in group]
        for group in reference_steps
    ]
    return StepsMatch(candidates, actual, unreadable, scoring)


def custom_matchers_for(
    reference_steps: Iterable[Mapping[str, Any]],
    *,
    names: Mapping[str, str] | None = None,
    retrieval: RetrievalConfig | None = None,
) -> dict[MatcherKey, Matcher]:
    """Return the matchers that users registered for some of these reference steps.

    Args:
        reference_steps: The steps of any number of questions.
        names: As in ``match_steps``.
        retrieval: As in ``match_steps``.
    """
    unused = custom_matchers()
    used: dict[MatcherKey, Matcher] = {}
    retrieving = RetrievalSteps(retrieval or RetrievalConfig(), names or {})
    seen: set[tuple[str, str | None]] = set()
    for step in reference_steps if unused else ():
        kind = retrieving.compared_by(retrieving.reference_view(step, {}))
        if kind in seen:
            continue
        seen.add(kind)
        name, media_type = kind
        for key in [key for key in unused if key[0] in (None, name) and key[1] in (None, media_type)]:
            used[key] = unused.pop(key)
    return used


def _repeated_steps(actual_steps: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the steps that call the same tool with the same arguments as an earlier one."""
    names = Counter(str(step.get("name")) for step in actual_steps)
    seen: set[tuple[str, str]] = set()
    repeated = []
    for index, step in enumerate(actual_steps):
        name = str(step.get("name"))
        if names[name] > 1:
            call = (name, _call_text(step.get("args")))
            if call in seen:
                repeated.append(index)
            seen.add(call)
    return repeated


def _call_text(args: Any) -> str:
    """Return a call's arguments as a text that is the same in any order."""
    try:
        return repr(sorted(args.items()) if isinstance(args, Mapping) else args)
    except (TypeError, ValueError, RecursionError):  # keys that have no order, or what cannot be written
        return str(id(args))


class _Chosen:
    """Which actual step fulfils which reference step, and the score that follows.

    ``groups`` are the groups that count for the score. ``before`` holds, for each of them that was matched, the index
    that its actual steps had to come before.
    """

    def __init__(self, candidates: Sequence[Sequence[Candidates]], step_count: int, scoring: Scoring) -> None:
        self.groups = scored_groups(candidates, scoring)
        self.actual_of: dict[tuple[int, int], int] = {}
        self.before: dict[int, int] = {}
        before, total = step_count, 0.0
        for group in reversed(self.groups):
            total += self._fill(group, candidates[group], before)
            matched = [index for (of_group, _), index in self.actual_of.items() if of_group == group]
            if len(matched) < len(candidates[group]):
                break
            before = min(matched)
        self.score = total / len(self.groups) if self.groups else None

    @property
    def taken(self) -> set[int]:
        return set(self.actual_of.values())

    def _fill(self, group: int, references: Sequence[Candidates], before: int) -> float:
        """Match one group in the best way and return its score, 0 to 1."""
        compared = [
            candidates.latest_best(before) if len(references) == 1 else candidates.compared(before)
            for candidates in references
        ]
        scores = [{index: pair.score for index, pair in row.items() if pair.score > 0} for row in compared]
        self.before[group] = before
        total = 0.0
        for reference, actual in enumerate(best_assignment(scores)):
            if actual is not None:
                self.actual_of[group, reference] = actual
                total += scores[reference][actual]
        return total / len(references)


def scored_groups(groups: Sequence[Sequence[Any]], scoring: Scoring) -> list[int]:
    """Return the indices of the groups that count for the score; a group without steps never does.

    Example:
        >>> scored_groups([["a"], ["b"], []], "last_group"), scored_groups([["a"], ["b"], []], "all_groups")
        ([1], [0, 1])
    """
    filled = [index for index, steps in enumerate(groups) if steps]
    return filled if scoring == "all_groups" else filled[-1:]


# Scores are compared to 12 digits, so that sums of floats that should be equal are.
_SCALE = 10**12


def best_assignment(scores: Sequence[Mapping[int, float]]) -> list[int | None]:
    """Assign to each reference step at most one actual step, each used once, with the highest total score.

    Of assignments with equal totals the one that fulfils more reference steps wins; of those the one with the later
    actual steps (its earliest actual step is the latest possible, then its second earliest, and so on); of those the
    one that gives later reference steps the later actual steps.

    Args:
        scores: For each reference step the scores above 0 by the index of the actual step.

    Returns:
        For each reference step the index of its actual step, or None.

    Example:
        >>> best_assignment([{0: 1.0, 1: 1.0}, {1: 1.0}])
        [0, 1]
    """
    columns = sorted({index for row in scores for index, score in row.items() if score > 0})
    if not columns:
        return [None] * len(scores)
    if len(scores) == 1:
        return [max(scores[0], key=lambda index: (round(scores[0][index] * _SCALE), index))]
    weights = [
        [
            _weight(scores[row].get(index, 0.0), row, rank, len(scores), len(columns))
            for rank, index in enumerate(columns)
        ]
        for row in range(len(scores))
    ]
    chosen = _maximum_weight(weights)
    return [
        columns[rank] if rank is not None and row.get(columns[rank], 0.0) > 0 else None
        for row, rank in zip(scores, chosen, strict=True)
    ]


def _weight(score: float, row: int, rank: int, rows: int, columns: int) -> int:
    """Pack score, number of matches, lateness and order into one whole number, the score in the highest digits.

    An actual step of rank r costs 2^(columns - 1 - r): an earlier one costs more than all later ones together. Order
    is the product of both places, whose sum is highest where later reference steps have later actual steps.
    """
    if score <= 0:
        return 0
    match = 1 << columns
    weight = max(1, round(score * _SCALE)) * match * (rows + 1) + match - (1 << (columns - 1 - rank))
    return weight * (rows * rows * columns + 1) + (row + 1) * (rank + 1)


def _maximum_weight(weights: Sequence[Sequence[int]]) -> list[int | None]:
    """Solve the assignment problem by the Hungarian method with potentials, in O(rows² · columns).

    Kuhn, The Hungarian method for the assignment problem, 1955. Beside the real columns each row has one of its own
    with weight 0, which stands for "not matched".
    """
    rows, real = len(weights), len(weights[0])
    columns = real + rows
    cost = [[-weight for weight in row] + [0] * rows for row in weights]
    row_potential, column_potential = [0] * (rows + 1), [0] * (columns + 1)
    row_of: list[int] = [0] * (columns + 1)  # 1-based; 0 is free
    for row in range(1, rows + 1):
        _augment(row, cost, row_potential, column_potential, row_of)
    assigned: list[int | None] = [None] * rows
    for column in range(1, real + 1):
        if row_of[column]:
            assigned[row_of[column] - 1] = column - 1
    return assigned


def _augment(
    start: int, cost: list[list[int]], row_potential: list[int], column_potential: list[int], row_of: list[int]
) -> None:
    """Assign a column to one more row, along the cheapest alternating path."""
    columns = len(row_of) - 1
    slack: list[int | None] = [None] * (columns + 1)
    previous = [0] * (columns + 1)
    used = [False] * (columns + 1)
    row_of[0], column = start, 0
    while row_of[column]:
        used[column] = True
        row, delta, following = row_of[column], None, 0
        for candidate in range(1, columns + 1):
            if used[candidate]:
                continue
            reduced = cost[row - 1][candidate - 1] - row_potential[row] - column_potential[candidate]
            known = slack[candidate]
            if known is None or reduced < known:
                slack[candidate] = known = reduced
                previous[candidate] = column
            if delta is None or known < delta:
                delta, following = known, candidate
        _shift(delta or 0, used, slack, row_potential, column_potential, row_of)
        column = following
    while column:
        row_of[column] = row_of[previous[column]]
        column = previous[column]


def _shift(
    delta: int,
    used: list[bool],
    slack: list[int | None],
    row_potential: list[int],
    column_potential: list[int],
    row_of: list[int],
) -> None:
    for column, is_used in enumerate(used):
        if is_used:
            row_potential[row_of[column]] += delta
            column_potential[column] -= delta
        else:
            known = slack[column]
            slack[column] = None if known is None else known - delta
