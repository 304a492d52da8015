"""The settings of two runs that differ, and the metrics whose values may not be comparable for it."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from graphrag_eval_lc.compare.runs import NamedRun
from graphrag_eval_lc.config import JudgesConfig
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.answer_metrics import ANSWER_CHECKS, ANSWER_GROUNDING
from graphrag_eval_lc.registry.custom_metrics import changed_since
from graphrag_eval_lc.registry.metrics import JUDGES

# What a metric may hang on beside sections of the config.
_CUSTOM = "custom_evaluations"
# Sections that are compared part by part, as some of their parts touch other metrics.
_BY_PARTS = ("steps", "llm")
_EMBEDDING = "llm.embedding"
_SECTIONS = (
    "steps",
    "sparql",
    "llm",
    "judges",
    *(judge.key for judge in JUDGES),
    _CUSTOM,
    "retrieval",
    "prices",
    ANSWER_GROUNDING,
    ANSWER_CHECKS,
)
_RECORDED_BY = ("step_names", "retrieval_documents", "max_output_chars", "redact")
# What is recorded otherwise changes what is made of steps and of the documents that they retrieved.
_OF_RECORDED = frozenset({"steps", "retrieval"})
_MOST_NAMED = 4


def setting_warnings(a: NamedRun, b: NamedRun, metrics: Sequence[str]) -> list[str]:
    """Say which settings of two runs differ, and which of the compared metrics may not be comparable for it.

    Settings that affect none of them are left out. Metrics of users depend on no section of the config.
    """
    warnings = [*_config_warnings(a, b, metrics)]
    before, after = (run.results.section("capture") for run in (a, b))
    if before is not None and after is not None:
        names = [key for key in _RECORDED_BY if before.get(key) != after.get(key)]
        touched = [metric for metric in metrics if _OF_RECORDED.intersection(metric_spec(metric).depends_on)]
        if names and touched:
            which = f"recorded with other options of the capture ({', '.join(names)})"
            warnings.append(f"A and {b.letter} were {which}, {_so_that(touched, metrics)}.")
    for run in (a, b):
        for metric, told in run.results.declarations().items():
            if metric in metrics and metric in run.numbers.measured() and (changed := changed_since(metric, told)):
                warnings.append(
                    f"{metric} was declared otherwise when {run.letter} was scored ({', '.join(changed)}); it is "
                    "compared by another declaration, so that its values may not be comparable."
                )
    matchers = [_matchers(run.results.mappings_in("matchers")) for run in (a, b)]
    touched = [metric for metric in metrics if "steps" in metric_spec(metric).depends_on]
    if matchers[0] is not None and matchers[1] is not None and matchers[0] != matchers[1] and touched:
        names = sorted(matchers[0] ^ matchers[1])
        which = f"compared by other matchers ({', '.join(names)})"
        warnings.append(f"The steps of A and {b.letter} were {which}, {_so_that(touched, metrics)}.")
    return warnings


def _matchers(listed: Sequence[Mapping[str, Any]] | None) -> set[str] | None:
    """Return the names and media types that users registered matchers for; None if run.json does not say."""
    kinds = None if listed is None else [(each.get("name"), each.get("media_type")) for each in listed]
    return None if kinds is None else {" with ".join(str(part) for part in kind if part is not None) for kind in kinds}


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the settings that score otherwise, such as ``steps.grading``, between the configs of two run.json."""
    return [name for key in _SECTIONS for name in _differing(before, after, key)]


def _config_warnings(a: NamedRun, b: NamedRun, metrics: Sequence[str]) -> Iterable[str]:
    """Name the settings that differ; those that affect the same metrics are in one sentence."""
    sections = [run.results.section("config") for run in (a, b)]
    if sections[0] is None or sections[1] is None:
        return
    custom = _custom_metrics(sections[0]) | _custom_metrics(sections[1])
    settings: dict[tuple[str, ...], list[str]] = {}
    for key in _SECTIONS:
        for name in _differing(sections[0], sections[1], key):
            if touched := tuple(metric for metric in metrics if _is_touched(metric, name, custom)):
                settings.setdefault(touched, []).append(name)
    for touched, names in settings.items():
        yield f"A and {b.letter} were scored with other settings ({', '.join(names)}), {_so_that(touched, metrics)}."


def _so_that(touched: Sequence[str], metrics: Sequence[str]) -> str:
    """Say which metrics may not be comparable."""
    scores = [metric for metric in metrics if not metric_spec(metric).is_spent]
    if len(touched) > 1 and set(scores) <= set(touched):
        which = "all scores"
    elif len(touched) > _MOST_NAMED:
        which = f"{', '.join(touched[:_MOST_NAMED])} and {len(touched) - _MOST_NAMED} more"
    else:
        which = f"{', '.join(touched[:-1])} and {touched[-1]}" if len(touched) > 1 else touched[0]
    return f"so that {which} may not be comparable"


def _is_touched(metric: str, setting: str, custom: Set[str]) -> bool:
    """Return whether a setting, such as ``steps.grading``, changes the values of a metric."""
    section = setting.partition(".")[0]
    if metric in custom:
        return section in (_CUSTOM, "llm") and setting != _EMBEDDING
    spec = metric_spec(metric)
    if setting == _EMBEDDING:
        return any(judge.needs_embeddings for judge in JUDGES if judge.key == spec.judge)
    return section in spec.depends_on


def _custom_metrics(config: Mapping[str, Any]) -> set[str]:
    """Return the keys that custom evaluations of a config in run.json write."""
    evaluations = config.get(_CUSTOM)
    outputs = (each.get("outputs") for each in evaluations or () if isinstance(each, Mapping))
    return {str(key) for output in outputs if isinstance(output, Mapping) for key in output}


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], key: str) -> list[str]:
    """Return the names of the settings that differ, such as ``steps.grading``; none if they score alike."""
    one, other = _setting(a, key), _setting(b, key)
    if one == other:
        return []
    if key in _BY_PARTS and isinstance(one, Mapping) and isinstance(other, Mapping):
        return [f"{key}.{part}" for part in dict.fromkeys((*one, *other)) if one.get(part) != other.get(part)]
    return [key]


def _setting(section: Mapping[str, Any], key: str) -> Any:
    """Return a setting as it changes scores."""
    value = section.get(key)
    if key == "judges":  # how many are asked at once, and how often, changes nothing
        return {"engine": JudgesConfig().engine, **(value if isinstance(value, Mapping) else {})}["engine"]
    return value or None if key == "prices" else value
