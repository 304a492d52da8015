"""What graphrag-eval published: scores by question and figures of aggregates, read from its files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

from graphrag_eval_lc.errors import ComparisonError
from graphrag_eval_lc.files.record_file import read_records
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, JUDGES, STEPS_SCORE, TOKENS

Path = tuple[str, ...]
"""Where a figure stands in aggregates: ``("micro", "elapsed_sec", "mean")``."""

COMPARED: Final = (STEPS_SCORE, "status", *TOKENS, ELAPSED_SEC)
"""The keys of results that are compared; they need no model."""

_PARTS = ("per_template", "micro", "macro")
_WHAT = "set of published results"
_JUDGED = frozenset(key for judge in JUDGES for key in judge.keys)
_STATISTICS = frozenset(("sum", "mean", "median", "min", "max"))


@dataclass(slots=True)
class Published:
    """What graphrag-eval published.

    Attributes:
        values: For each question the values of the keys that are compared.
        matches: For each question, in the shape of its reference steps, the id of the step that fulfils each; only
            where it was published.
        figures: The figures of the aggregates, by where they stand.
        judged: The keys of judged metrics and custom evaluations that were published; they are not compared.
    """

    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    matches: dict[str, list[list[Any]]] = field(default_factory=dict)
    figures: dict[Path, float] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)

    @property
    def scores(self) -> dict[str, float]:
        """The published ``steps_score`` of each question that has one."""
        found = ((identifier, values.get(STEPS_SCORE)) for identifier, values in self.values.items())
        return {identifier: score for identifier, score in found if score is not None}


def read_published(sources: Sequence[str | PathLike[str] | Any], custom: Sequence[str] = ()) -> Published:
    """Read what graphrag-eval published.

    Args:
        sources: Files (YAML, JSON, JSON Lines), or what stands in them: the list of results that its
            ``run_evaluation`` gives, or the aggregates that its ``compute_aggregates`` gives.
        custom: The keys of custom evaluations.

    Raises:
        ComparisonError: A file cannot be read, or is neither.
    """
    published = Published()
    for source in sources:
        is_path = isinstance(source, str | PathLike)
        values = read_records(source, ComparisonError, what=_WHAT).values if is_path else source
        path = str(source) if is_path else None
        if isinstance(values, Mapping) and any(part in values for part in _PARTS):
            _add_aggregates(published, values, {*_JUDGED, *custom})
        elif (
            isinstance(values, list)
            and values
            and all(isinstance(each, Mapping) and "question_id" in each for each in values)
        ):
            _add_results(published, values, path, {*_JUDGED, *custom})
        else:
            raise ComparisonError(
                "these are neither results nor aggregates of graphrag-eval",
                path=path,
                hint="Give the list that its run_evaluation returned, or the per_template, micro and macro of its "
                "compute_aggregates.",
            )
    return published


def _add_results(
    published: Published, results: Sequence[Mapping[str, Any]], path: str | None, judged: set[str]
) -> None:
    for result in results:
        identifier = str(result["question_id"])
        values = {key: result[key] for key in COMPARED if result.get(key) is not None}
        for key, value in values.items():
            if key != "status" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ComparisonError(
                    f"{value!r:.60} is no number",
                    path=path,
                    question_id=identifier,
                    key=key,
                    hint="Give the results as graphrag-eval returned them.",
                )
        published.values[identifier] = values
        published.judged |= judged & result.keys()
        matches = _matches_in(result)
        if matches is not None:
            published.matches[identifier] = matches


def _matches_in(result: Mapping[str, Any]) -> list[list[Any]] | None:
    """Return the ids of the steps that fulfil the reference steps, as graphrag-eval writes them beside each."""
    groups = result.get("reference_steps")
    try:
        if groups is not None:
            return [[step.get("matches") for step in group] for group in groups]
        matches = result.get("matches")
        return None if matches is None else [list(group) for group in matches]
    except (AttributeError, TypeError):
        return None


def _add_aggregates(published: Published, aggregates: Mapping[str, Any], judged: set[str]) -> None:
    for path, figure in figures_of({part: aggregates.get(part) for part in _PARTS}):
        keys = judged.intersection(path)
        if keys:
            published.judged |= keys
        else:
            published.figures[path] = figure


def figures_of(tree: Any, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """Yield the figures of aggregates, with where each stands.

    Example:
        >>> list(figures_of({"micro": {"steps_score": {"mean": 0.5}}}))
        [(('micro', 'steps_score', 'mean'), 0.5)]
    """
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from figures_of(value, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, tree


def metric_of(path: Path) -> str:
    """Return the metric or count that a figure is of.

    Example:
        >>> metric_of(("per_template", "t", "steps_score", "mean"))
        'steps_score'
    """
    return path[-2] if path[-1] in _STATISTICS else path[-1]
