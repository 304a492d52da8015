"""Finds settings that differ between two runs, and the metrics that may therefore not be comparable."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from graphrag_eval_lc.compare.runs import NamedRun
from graphrag_eval_lc.config import JudgesConfig
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import changed_since
from graphrag_eval_lc.registry.metrics import ANSWER_CHECKS, ANSWER_GROUNDING, JUDGES

_CUSTOM, _EMBEDDING = "custom_evaluations", "llm.embedding"
# Sections that are compared part by part, because their parts affect different metrics.
_BY_PARTS = ("steps", "llm")
_OTHERS = (_CUSTOM, "retrieval", "prices", ANSWER_GROUNDING, ANSWER_CHECKS)
_SECTIONS = ("steps", "sparql", "llm", "judges", *(judge.key for judge in JUDGES), *_OTHERS)
_RECORDED_BY = ("step_names", "retrieval_documents", "nodes", "max_output_chars", "redact")
_MOST_NAMED = 4


def setting_warnings(a: NamedRun, b: NamedRun, metrics: Sequence[str]) -> Iterator[str]:
    """Warn about settings that differ between two runs, with the compared metrics that they affect.

    Settings that affect none of these metrics are left out. Metrics that users add depend on no section of the config.
    """
    for touched, what in _differences(a, b, metrics):
        if touched:
            yield f"{what}, so that {_named(touched, metrics)} may not be comparable."
    for run in (a, b):
        for metric, recorded in run.results.declarations().items():
            if metric in metrics and metric in run.numbers.measured() and (changed := changed_since(metric, recorded)):
                yield (
                    f"{metric} was declared otherwise when {run.letter} was scored ({', '.join(changed)}); it is "
                    "compared by another declaration, so that its values may not be comparable."
                )


def _differences(a: NamedRun, b: NamedRun, metrics: Sequence[str]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the metrics that a difference affects, and what differs; settings that affect the same are joined."""
    before, after = (run.results.section("config") for run in (a, b))
    if before is not None and after is not None:
        custom = {*_custom_metrics(before), *_custom_metrics(after)}
        settings: dict[tuple[str, ...], list[str]] = {}
        for name in changed_settings(before, after):
            touched = tuple(metric for metric in metrics if _is_touched(metric, name, custom))
            settings.setdefault(touched, []).append(name)
        for touched, names in settings.items():
            yield touched, f"A and {b.letter} were scored with other settings ({', '.join(names)})"
    # Different capture settings change the recorded steps and retrieved documents.
    before, after = (run.results.section("capture") or {} for run in (a, b))
    if before and after and (names := [key for key in _RECORDED_BY if before.get(key) != after.get(key)]):
        of_recorded = [metric for metric in metrics if {"steps", "retrieval"} & {*metric_spec(metric).depends_on}]
        yield of_recorded, f"A and {b.letter} were recorded with other options of the capture ({', '.join(names)})"
    mine, others = (_matchers(run.results.mappings_in("matchers")) for run in (a, b))
    if mine is not None and others is not None and (names := sorted(mine ^ others)):
        of_steps = [metric for metric in metrics if "steps" in metric_spec(metric).depends_on]
        yield of_steps, f"The steps of A and {b.letter} were compared by other matchers ({', '.join(names)})"


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the settings, such as ``steps.grading``, that change scores and differ between two configs in run.json."""
    names: list[str] = []
    for key in _SECTIONS:
        one, other = _setting(before, key), _setting(after, key)
        if key in _BY_PARTS and isinstance(one, Mapping) and isinstance(other, Mapping):
            names += (f"{key}.{part}" for part in dict.fromkeys((*one, *other)) if one.get(part) != other.get(part))
        elif one != other:
            names.append(key)
    return names


def _setting(section: Mapping[str, Any], key: str) -> Any:
    """Return the part of a setting that changes scores."""
    value = section.get(key)
    if key == "judges":  # only the engine changes scores, not concurrency or retries
        return {"engine": JudgesConfig().engine, **(value if isinstance(value, Mapping) else {})}["engine"]
    return value or None if key == "prices" else value


def _is_touched(metric: str, setting: str, custom: Set[str]) -> bool:
    """Return whether a setting, such as ``steps.grading``, changes the values of a metric."""
    section = setting.partition(".")[0]
    if metric in custom:
        return section in (_CUSTOM, "llm") and setting != _EMBEDDING
    spec = metric_spec(metric)
    if setting == _EMBEDDING:
        return any(judge.needs_embeddings for judge in JUDGES if judge.key == spec.judge)
    return section in spec.depends_on


def _named(touched: Sequence[str], metrics: Sequence[str]) -> str:
    if len(touched) > 1 and {metric for metric in metrics if not metric_spec(metric).is_spent} <= {*touched}:
        return "all scores"
    if len(touched) > _MOST_NAMED:
        return f"{', '.join(touched[:_MOST_NAMED])} and {len(touched) - _MOST_NAMED} more"
    return " and ".join(filter(None, (", ".join(touched[:-1]), touched[-1])))


def _custom_metrics(config: Mapping[str, Any]) -> Iterable[str]:
    """Return the keys that custom evaluations of a config in run.json write."""
    outputs = (each.get("outputs") for each in config.get(_CUSTOM) or () if isinstance(each, Mapping))
    return (str(key) for output in outputs if isinstance(output, Mapping) for key in output)


def _matchers(listed: Sequence[Mapping[str, Any]] | None) -> set[str] | None:
    """Return the names and media types that users registered matchers for; None if run.json does not say."""
    kinds = None if listed is None else [(each.get("name"), each.get("media_type")) for each in listed]
    return None if kinds is None else {" with ".join(str(part) for part in kind if part is not None) for kind in kinds}
