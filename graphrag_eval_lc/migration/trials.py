"""The settings that are known to differ from graphrag-eval's, each tried on the old responses."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, cast

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.evaluation.evaluate import run_evaluation
from graphrag_eval_lc.migration.findings import Trial
from graphrag_eval_lc.migration.published import Path, Published, figures_of
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry.metrics import STEPS_SCORE
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

SCORING: Final = "steps.scoring"
ERRORS: Final = "aggregates.errors"
AGENTS_K: Final = "recall@k"
"""No key of the config but a change of the dataset: the agent's ``k`` counts where the reference has none."""

ALL_GROUPS: Final = (SCORING, "all_groups")
ERRORS_COUNT: Final = (ERRORS, "include")
OF_AGENT: Final = (AGENTS_K, "the agent's k")

# Tried one by one beside the best of those above.
_SWITCHES: Final = (
    ("sparql.ignore_duplicates", False),
    ("sparql.ordered", True),
    ("sparql.strict", True),
    ("sparql.values.times", False),
    ("sparql.values.durations", False),
    ("sparql.values.wkt", False),
    ("sparql.values.nfc", False),
    ("sparql.values.iri_case", False),
    ("steps.rows.list_order", False),
)
_TOLERANCE: Final = 1e-9

Setting = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """The old responses scored with some settings.

    Attributes:
        settings: The settings that are not the defaults.
        results: The results.
        aggregates: Their aggregates.
        equal_scores: How many questions have the published score.
        equal_figures: The figures of the aggregates that are the published ones.
    """

    settings: tuple[Setting, ...]
    results: Sequence[Mapping[str, Any]]
    aggregates: dict[str, Any]
    equal_scores: int
    equal_figures: frozenset[Path]
    scores: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, int, int]:
        """What is more is better: equal scores, equal figures, and few settings."""
        return self.equal_scores, len(self.equal_figures), -len(self.settings)

    def trial(self, published: Published, *, is_chosen: bool) -> Trial:
        """Return what is told of it."""
        return Trial(
            self.settings,
            self.equal_scores,
            len(published.scores),
            len(self.equal_figures),
            len(published.figures),
            is_chosen,
        )


class Scorer:
    """The old dataset and responses, scored with one setting after the other; each combination once."""

    def __init__(self, dataset: Sequence[Template], responses: Mapping[str, Response], published: Published) -> None:
        self._published = published
        self._responses = responses
        self._datasets = {False: dataset, True: with_agents_k(dataset)}
        self._has_k = self._datasets[True] != self._datasets[False]
        self._results: dict[tuple[Setting, ...], Sequence[Mapping[str, Any]]] = {}

    @property
    def has_k(self) -> bool:
        """Whether reference steps of retrieval name a k, so that it matters whose counts."""
        return self._has_k

    def has_failed(self) -> bool:
        """Whether a question of the dataset failed, or has no response."""
        return any(result.get("status") == "error" for result in self._scored_with(()))

    def scored(self, settings: tuple[Setting, ...]) -> Scored:
        """Return the responses scored with settings."""
        of_scores = tuple(setting for setting in settings if setting[0] != ERRORS)
        results = self._scored_with(of_scores)
        aggregates = compute_aggregates(cast("Any", results), section_of(settings))
        scores = {str(result["question_id"]): result.get(STEPS_SCORE) for result in results}
        expected = self._published.scores
        figures = dict(figures_of(aggregates))
        return Scored(
            settings,
            results,
            aggregates,
            sum(is_near(scores.get(key), value) for key, value in expected.items()),
            frozenset(
                path for path, value in self._published.figures.items() if is_same_figure(figures.get(path), value)
            ),
            scores,
        )

    def tried(self) -> Iterator[Scored]:
        """Yield what was tried: the combinations that are known to differ, then each switch beside the best of them."""
        choices: list[tuple[tuple[Setting, ...], ...]] = [((), (ALL_GROUPS,))]
        if self.has_k:
            choices.append(((), (OF_AGENT,)))
        if self.has_failed():
            choices.append(((), (ERRORS_COUNT,)))
        best: Scored | None = None
        for combination in product(*choices):
            scored = self.scored(tuple(setting for part in combination for setting in part))
            best = scored if best is None or scored.rank > best.rank else best
            yield scored
        if best is None or not (self._published.scores or self._published.figures):
            return
        switches = list(_SWITCHES)
        while switches:
            beside = [self.scored((*best.settings, switch)) for switch in switches]
            yield from beside
            better = max(beside, key=lambda each: each.rank)
            if better.rank[:2] <= best.rank[:2]:
                return
            best = better
            switches = [switch for switch in switches if switch not in best.settings]

    def _scored_with(self, settings: tuple[Setting, ...]) -> Sequence[Mapping[str, Any]]:
        if settings not in self._results:
            dataset = self._datasets[OF_AGENT in settings]
            with warnings.catch_warnings():
                if self._results:  # they are told once
                    warnings.simplefilter("ignore", GraphRAGEvalWarning)
                found = run_evaluation(dataset, self._responses, section_of(settings), answered_only=True)
            self._results[settings] = cast("Sequence[Mapping[str, Any]]", list(found))
        return self._results[settings]


def best_of(tried: Sequence[Scored], published: Published, *, has_failed: bool, has_k: bool) -> Scored:
    """Return what gives the most of what was published; without it, what graphrag-eval 6.6.1 does.

    What the published figures cannot tell is as in graphrag-eval too: without aggregates, failed questions count.
    """
    told = [ERRORS_COUNT] if has_failed and not published.figures else []
    if not published.scores and not published.figures:
        told += [ALL_GROUPS, *([OF_AGENT] if has_k else [])]
    fitting = [each for each in tried if all(setting in each.settings for setting in told)] or list(tried)
    return max(fitting, key=lambda each: each.rank)


def section_of(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return settings as sections of the config.

    Example:
        >>> section_of([("sparql.values.times", False)])
        {'sparql': {'values': {'times': False}}}
    """
    sections: dict[str, Any] = {}
    for key, value in settings:
        if key == AGENTS_K:
            continue
        *places, name = key.split(".")
        section = sections
        for place in places:
            section = section.setdefault(place, {})
        section[name] = value
    return sections


def with_agents_k(dataset: Sequence[Template]) -> list[Template]:
    """Return a copy of a dataset whose reference steps of retrieval name no ``k``, so that the agent's counts."""
    copy = deepcopy(list(dataset))
    for template in copy:
        for question in template["questions"]:
            for group in question.get("reference_steps") or ():
                for step in group:
                    arguments = step.get("args")
                    if step.get("name") == RETRIEVAL and isinstance(arguments, dict):
                        arguments.pop("k", None)
    return copy


def is_near(here: Any, published: Any) -> bool:
    """Return whether two values are the same but for rounding."""
    if isinstance(here, int | float) and isinstance(published, int | float):
        return math.isclose(here, published, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(here == published)


def is_same_figure(here: float | None, published: float) -> bool:
    """Return whether a figure of aggregates is the published one; graphrag-eval writes 0 for what nobody measured."""
    return is_near(here, published) if here is not None else published == 0
