"""The settings that are known to differ from graphrag-eval's, each tried on the old responses."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.dataset.loading import questions_of
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.evaluation.evaluate import run_evaluation
from graphrag_eval_lc.migration.findings import Trial
from graphrag_eval_lc.migration.published import Path, Published, figures_of
from graphrag_eval_lc.records import Response, Template, is_error
from graphrag_eval_lc.registry.metrics import STEPS_SCORE
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL
from graphrag_eval_lc.tables import Results

SCORING: Final = "steps.scoring"
ERRORS: Final = "aggregates.errors"
AGENTS_K: Final = "recall@k"
"""No key of the config but a change of the dataset: the agent's ``k`` counts where the reference has none."""

ALL_GROUPS: Final = (SCORING, "all_groups")
ERRORS_COUNT: Final = (ERRORS, "include")
OF_AGENT: Final = (AGENTS_K, "the agent's k")

# Tried one by one beside the best of those above.
_SWITCHES: Final = (
    ("sparql.values.times", False),
    ("sparql.values.durations", False),
    ("sparql.values.wkt", False),
    ("sparql.values.nfc", False),
    ("sparql.values.iri_case", False),
    ("steps.rows.list_order", False),
    ("sparql.ignore_duplicates", False),
    ("sparql.ordered", True),
    ("sparql.strict", True),
)
_TOLERANCE: Final = 1e-9

Setting = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """The old responses scored with some settings.

    Attributes:
        settings: The settings that are not the defaults.
        aggregates: The aggregates of the results, which themselves are not kept: there may be many.
        equal_scores: How many questions have the published score.
        equal_figures: The figures of the aggregates that are the published ones.
        scores: The score of each question.
        base: What one setting was tried beside; None for a combination.
    """

    settings: tuple[Setting, ...]
    aggregates: dict[str, Any]
    equal_scores: int
    equal_figures: frozenset[Path]
    scores: Mapping[str, float | None]
    base: "Scored | None" = None

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
            None if self.base is None else self.base.settings,
        )


class Scorer:
    """The old dataset and responses, scored with one setting after the other."""

    def __init__(self, dataset: Sequence[Template], responses: Mapping[str, Response], published: Published) -> None:
        self._published = published
        self._responses = responses
        self._dataset = dataset
        self._has_k = any(True for _ in _arguments_with_k(dataset))
        self._of_agent = with_agents_k(dataset) if self._has_k else dataset
        self._last: tuple[tuple[Setting, ...], Results] | None = None
        self._failed = frozenset(str(result["question_id"]) for result in self.results(()) if is_error(result))

    def scored(self, settings: tuple[Setting, ...]) -> Scored:
        """Return the responses scored with settings."""
        results = self.results(settings)
        aggregates = compute_aggregates(results, section_of(settings))
        scores = {str(result["question_id"]): result.get(STEPS_SCORE) for result in results}
        expected = self._published.scores
        figures = dict(figures_of(aggregates))
        return Scored(
            settings,
            aggregates,
            sum(is_near(scores.get(key), value) for key, value in expected.items()),
            frozenset(
                path for path, value in self._published.figures.items() if is_same_figure(figures.get(path), value)
            ),
            scores,
        )

    def tried(self) -> Iterator[Scored]:
        """Yield what was tried: the combinations that are known to differ, then each switch beside the best of them."""
        bases = [self.scored(settings) for settings in self._combinations()]
        yield from bases
        if not (self._published.scores or self._published.figures):
            return
        most = max(base.rank[:2] for base in bases)
        for base in bases:
            if base.rank[:2] == most:
                yield from self._climb(base)

    def _climb(self, best: Scored) -> Iterator[Scored]:
        """Yield each switch beside a combination, and beside the switch that gave more, until none does."""
        switches = list(_SWITCHES)
        while switches:
            beside = [replace(self.scored((*best.settings, switch)), base=best) for switch in switches]
            yield from beside
            better = max(beside, key=lambda each: each.rank)
            if better.rank[:2] <= best.rank[:2]:
                return
            best = better
            switches = [switch for switch in switches if switch not in best.settings]

    def _combinations(self) -> Iterator[tuple[Setting, ...]]:
        """Yield what is tried together; where nothing was published only what graphrag-eval 6.6.1 does."""
        published = self._published
        is_compared = bool(published.scores or published.figures)
        either: tuple[bool, ...] = (False, True) if is_compared else (True,)
        of_k = either if self._has_k else (False,)
        errors = either if published.figures else (self._has_scored_failures() or not is_compared,)
        # Scores are the same however failed questions count, so that comes last.
        for has_all, has_k, has_errors in product(either, of_k, errors if self._failed else (False,)):
            yield tuple(
                setting
                for setting, is_on in ((ALL_GROUPS, has_all), (OF_AGENT, has_k), (ERRORS_COUNT, has_errors))
                if is_on
            )

    def _has_scored_failures(self) -> bool:
        """Return whether failed questions have published scores, as from version 6 on; such a version counts them."""
        return bool(self._failed & self._published.scores.keys())

    def results(self, settings: tuple[Setting, ...]) -> Results:
        """Return the results with settings; the last ones are kept."""
        of_scores = tuple(setting for setting in settings if setting[0] != ERRORS)
        if self._last is None or self._last[0] != of_scores:
            dataset = self._of_agent if OF_AGENT in of_scores else self._dataset
            with warnings.catch_warnings():
                if self._last is not None:  # they are told once
                    warnings.simplefilter("ignore", GraphRAGEvalWarning)
                found = run_evaluation(dataset, self._responses, section_of(of_scores), answered_only=True)
            self._last = of_scores, found
        return self._last[1]


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
    for arguments in list(_arguments_with_k(copy)):
        del arguments["k"]
    return copy


def _arguments_with_k(dataset: Sequence[Template]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of the reference steps of retrieval that name a ``k``."""
    for _, question in questions_of(dataset):
        for group in question.get("reference_steps") or ():
            for step in group:
                arguments = step.get("args")
                if step.get("name") == RETRIEVAL and isinstance(arguments, dict) and "k" in arguments:
                    yield arguments


def is_near(here: Any, published: Any) -> bool:
    """Return whether two values are the same but for rounding."""
    if isinstance(here, int | float) and isinstance(published, int | float):
        return math.isclose(here, published, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(here == published)


def is_same_figure(here: float | None, published: float) -> bool:
    """Return whether a figure of aggregates is the published one; graphrag-eval writes 0 for what nobody measured."""
    return is_near(here, published) if here is not None else published == 0
