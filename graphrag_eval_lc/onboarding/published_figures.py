"""The figures that graphrag-eval published, read from its files, and those that differ here."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

from graphrag_eval_lc.errors import ComparisonError
from graphrag_eval_lc.files.record_file import read_records
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, JUDGES, STEPS_SCORE, TOKENS
from graphrag_eval_lc.texts import shortened

Place = tuple[str | None, str]
"""A question's id and a key of its result; for aggregates None and the path, such as ``micro/elapsed_sec/mean``."""

_COMPARED: Final = (STEPS_SCORE, "status", *TOKENS, ELAPSED_SEC)
_PARTS: Final = ("per_template", "micro", "macro")
_JUDGED: Final = frozenset(key for judge in JUDGES for key in judge.keys)
_TOLERANCE: Final = 1e-9
_LONGEST_REASON: Final = 240


@dataclass(frozen=True, slots=True)
class Difference:
    """A published figure that does not come out here."""

    question_id: str | None  # the question; None for a figure of the aggregates
    key: str  # the key of the result, or the path in the aggregates, with slashes
    published: Any
    here: Any  # what comes out here; None if nothing does
    why: str  # why, in a sentence, as far as it is known


@dataclass(slots=True)
class Published:
    """What graphrag-eval published: its figures, and the keys that models judged, which are not compared."""

    figures: dict[Place, Any] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)


def read_published(published: Any, custom: Sequence[str]) -> Published:
    """Read what graphrag-eval published: results or aggregates, each as a file or as values; or a list of both.

    ``custom`` has the keys of custom evaluations, which models judge.
    """
    is_several = isinstance(published, list | tuple) and not any(map(_is_result, published))
    found, judged = Published(), {*_JUDGED, *custom}
    for source in published if is_several else () if published is None else (published,):
        is_path = isinstance(source, str | PathLike)
        path = str(source) if is_path else None
        values = read_records(source, ComparisonError, what="set of published results").values if is_path else source
        if isinstance(values, Mapping) and any(part in values for part in _PARTS):
            for place, figure in _figures_in({part: values.get(part) for part in _PARTS}):
                if keys := judged.intersection(place):
                    found.judged |= keys
                else:
                    found.figures[None, "/".join(place)] = figure
        elif isinstance(values, list) and values and all(map(_is_result, values)):
            for result in values:
                found.figures.update(_figures_of(result, path))
                found.judged |= judged & result.keys()
        else:
            hint = "Give the list that its run_evaluation returned, or what its compute_aggregates returned."
            raise ComparisonError("these are not results or aggregates of graphrag-eval", path=path, hint=hint)
    return found


def _is_result(value: Any) -> bool:
    return isinstance(value, Mapping) and "question_id" in value


def _figures_of(result: Mapping[str, Any], path: str | None = None) -> Iterator[tuple[Place, Any]]:
    identifier = str(result["question_id"])
    for key in _COMPARED:
        value = result.get(key)
        if key != "status" and (isinstance(value, bool) or not isinstance(value, int | float | None)):
            what, hint = f"{value!r:.60} is no number", "Give the results as graphrag-eval returned them."
            raise ComparisonError(what, path=path, question_id=identifier, key=key, hint=hint)
        if value is not None:
            yield (identifier, key), value


def _figures_in(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _figures_in(value, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, tree


def differences(
    published: Published, results: Sequence[Mapping[str, Any]], aggregates: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield the published figures that do not come out, in the order in which they were published."""
    by_id = {str(result["question_id"]): result for result in results}
    here: dict[Place, Any] = {(None, "/".join(place)): figure for place, figure in _figures_in(aggregates)}
    for result in results:
        here.update(_figures_of(result))
    for place, value in published.figures.items():
        identifier, key = place
        found = here.get(place)
        # Aggregates of graphrag-eval have 0 for what was not measured.
        if not _is_same(value, found) and not (identifier is found is None and value == 0):
            why = "Check that dataset and responses are those that were scored."
            if identifier is not None:
                why = _why(key, by_id.get(identifier)) or why
            yield Difference(identifier, key, value, found, why)


def _is_same(published: Any, here: Any) -> bool:
    """Return whether two figures are the same, apart from rounding."""
    if isinstance(here, int | float) and isinstance(published, int | float):
        return math.isclose(here, published, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(here == published)


def _why(key: str, result: Mapping[str, Any] | None) -> str | None:
    if result is None:
        return "The dataset or the responses that were given do not have the question."
    if key != STEPS_SCORE:
        return None
    diagnosis = result.get("steps_diagnosis") or ()
    for row, (steps, said) in enumerate(zip(result.get("reference_steps") or (), diagnosis, strict=False), start=1):
        for column, (step, each) in enumerate(zip(steps, said, strict=False), start=1):
            if not each["matched"]:
                reason = shortened(each["reason"].rstrip("."), _LONGEST_REASON)
                return f"Reference step {row}.{column} ({step['name']}) has no match here: {reason}."
    return None
