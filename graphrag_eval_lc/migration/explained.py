"""The published values that remain different with the chosen settings, each with its reason as far as it is known."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.evaluation.question_result import NO_RESPONSE
from graphrag_eval_lc.migration.findings import Difference, settings_text
from graphrag_eval_lc.migration.published import Path, Published, figures_of, metric_of
from graphrag_eval_lc.migration.trials import OF_AGENT, Scored, is_near, is_same_figure
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, STEPS_SCORE, TOKENS
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL
from graphrag_eval_lc.texts import counted, shortened

_FROM_RESPONSE = (*TOKENS, ELAPSED_SEC)
_LONGEST_REASON = 240


def differences_of(
    published: Published, chosen: Scored, tried: Sequence[Scored], found: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    """Yield what differs: of each question in the published order, then of the aggregates.

    Args:
        published: What graphrag-eval gave.
        chosen: The settings that give most of it.
        tried: All that was tried.
        found: The results with the chosen settings.
    """
    results = {str(result["question_id"]): result for result in found}
    for identifier, values in published.values.items():
        result = results.get(identifier)
        for key, value in values.items():
            here = None if result is None else result.get(key)
            if not is_near(here, value):
                yield Difference(identifier, key, value, here, _why(identifier, key, result, published, chosen, tried))
    yield from _of_aggregates(published, chosen, results)


def _why(
    identifier: str,
    key: str,
    result: Mapping[str, Any] | None,
    published: Published,
    chosen: Scored,
    tried: Sequence[Scored],
) -> str:
    if result is None:
        return f"{NO_RESPONSE[:1].upper()}{NO_RESPONSE[1:]} in the dataset and the responses that were given."
    if key in _FROM_RESPONSE:
        return "It is copied from the response, so these may not be the responses that were scored."
    if key == "status":
        said = shortened(str(result.get("error") or "it has no error"), 80)
        return f"Here the status follows from the response: {said}."
    value = published.scores[identifier]
    giving = [each for each in tried if is_near(each.scores.get(identifier), value)]
    if giving:
        nearest = min(giving, key=lambda each: len(set(each.settings) ^ set(chosen.settings)))
        added = [setting for setting in nearest.settings if setting not in chosen.settings]
        is_beside = set(chosen.settings) <= set(nearest.settings)
        return f"Equal with {settings_text(added if is_beside else nearest.settings)}."
    if is_error(result):
        return "The question failed: graphrag-eval's versions differ in what they score of it."
    return _why_of_steps(result, published.matches.get(identifier))


def _why_of_steps(result: Mapping[str, Any], matches: Sequence[Sequence[Any]] | None) -> str:
    """Return why a score differs, by the first reference step that something else fulfils."""
    groups = result.get("reference_steps") or ()
    if not groups:
        return "The dataset has no reference steps for it, so that nothing is scored here."
    diagnosis = result.get("steps_diagnosis") or ()
    for row, group in enumerate(groups):
        for column, step in enumerate(group):
            here = step.get("matches")
            there = _at(matches, row, column) if matches is not None else None
            said = _at(diagnosis, row, column) or {}
            is_other = here != there if matches is not None else here is None
            if not is_other:
                continue
            place = f"Reference step {row + 1}.{column + 1} ({step.get('name')})"
            reason = shortened(str(said.get("reason") or "").rstrip("."), _LONGEST_REASON)
            fulfilled = f"{place}: {here or 'no step'} fulfils it here"
            if matches is not None:
                fulfilled += f", {there or 'no step'} in graphrag-eval"
            return f"{fulfilled}{f'. {reason}' if reason else ''}."
    if any(step.get("name") == RETRIEVAL for group in groups for step in group):
        return (
            f"The same steps, and another {OF_AGENT[0]}: graphrag-eval cuts the reference's documents at k too, here "
            "all of them count."
        )
    return "The same steps fulfil the reference steps, and no setting that is known gives this score."


def _at(rows: Sequence[Sequence[Any]] | None, row: int, column: int) -> Any:
    try:
        return None if rows is None else rows[row][column]
    except (IndexError, TypeError):
        return None


def _of_aggregates(
    published: Published, chosen: Scored, results: Mapping[str, Mapping[str, Any]]
) -> Iterator[Difference]:
    figures = dict(figures_of(chosen.aggregates))
    differing = {
        str(results[identifier]["template_id"])
        for identifier, score in published.scores.items()
        if identifier in results and not is_near(chosen.scores.get(identifier), score)
    }
    failed = sum(map(is_error, results.values()))
    for path, value in published.figures.items():
        here = figures.get(path)
        if is_same_figure(here, value):
            continue
        yield Difference(None, "/".join(path), value, here, _why_of_figure(path, here, differing, failed, chosen))


def _why_of_figure(path: Path, here: float | None, differing: set[str], failed: int, chosen: Scored) -> str:
    of_template = path[1] if path[0] == "per_template" else None
    if of_template is not None and of_template not in chosen.aggregates["per_template"]:
        return "No question of this template was scored here."
    if metric_of(path) == STEPS_SCORE and (of_template in differing or (of_template is None and differing)):
        return "It follows from the questions whose scores differ."
    if failed:
        return f"{counted(failed, 'question')} failed, of which graphrag-eval's versions count different figures."
    if here is None:
        return "Nothing here gives this figure; where a model judges it, name it in the old config (--config)."
    return "No setting that is known gives this figure; check that dataset and responses are those that were scored."
