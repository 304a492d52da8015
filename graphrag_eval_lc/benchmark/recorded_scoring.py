"""What scored a run, as its run.json names it: config, dataset, plugins, metrics, and what of them is missing now."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_eval_lc.aggregation.sample_values import grading_change
from graphrag_eval_lc.benchmark.run_identity import Run
from graphrag_eval_lc.config import EvaluationConfig, is_enabled, load_config
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, all_functions
from graphrag_eval_lc.masking import without_masked
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.registry.custom_metrics import declaration, register_metric
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import JUDGES, is_declared
from graphrag_eval_lc.registry.modules import spec_of
from graphrag_eval_lc.registry.plugins import plugin_of, plugin_records, registered_name
from graphrag_eval_lc.registry.step_kinds import MatcherKey
from graphrag_eval_lc.run_folder import recorded_dataset
from graphrag_eval_lc.texts import listed, plural, shortened

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import ScoredBy
    from graphrag_eval_lc.judges.judging import Judges


# --- configuration, dataset and metrics ------------------------------------------------------------------------------


def recorded_config(record: Mapping[str, Any]) -> EvaluationConfig:
    """Return the configuration of a run.json: nothing is compared or judged by it, so that it needs no plugins."""
    config = config_again(record) or {}
    steps = {key: value for key, value in (config.get("steps") or {}).items() if key != "kinds"}
    return load_config({**config, "steps": steps}, has_llm=True, has_embeddings=True)


def config_again(earlier: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the config of a run.json for scoring again, without its plugins: nothing is imported as a folder names it.

    A masked key is left out only where OPENAI_API_KEY would reach OpenAI itself. With any other endpoint it stays
    masked, and asking a model then says that the config is needed.
    """
    config: Any = earlier.get("config") or {}
    if config:
        config = {key: value for key, value in config.items() if key != "plugins"}
        steps = config.get("steps")
        if isinstance(steps, Mapping) and steps.get("grading") == "graded":  # the record has defaults too
            config["steps"] = {key: value for key, value in steps.items() if key != "scoring"}
    sections = config.get("llm") or {}
    kept = {
        name: without_masked(section)
        if isinstance(section, Mapping) and section.get("provider") == "openai" and not section.get("base_url")
        else section
        for name, section in sections.items()
    }
    return {**config, "llm": kept} if sections else config or None


def dataset_of(earlier: Mapping[str, Any], folder: Path) -> str:
    """Return the path of a run's dataset.

    Raises:
        RunFolderError: Its run.json names none, or it is not there, or no file.
    """
    path = recorded_dataset(earlier, folder)
    if path is None:
        raise RunFolderError(
            "run.json names no file of the dataset, as it was made in Python",
            path=folder,
            hint="Pass it: --dataset FILE (dataset=...).",
        )
    if not os.path.exists(path):  # noqa: PTH110 - a path that no system takes is not there
        raise RunFolderError(
            f"the dataset {shortened(path, 200)} of this run is not there, seen from the current folder",
            path=folder,
            hint="Go to the folder in which the run was started, or pass it: --dataset FILE (dataset=...).",
        )
    return path


def register_recorded(record: Mapping[str, Any]) -> None:
    """Register the metrics that a run.json declares, in ``registered_only_here``, as their plugin may be missing."""
    for evaluator in record.get("evaluators") or []:
        key, declares = evaluator.get("name"), evaluator.get("declares")
        if isinstance(key, str) and isinstance(declares, Mapping) and not is_declared(key):
            spec = MetricSpec(**{**declares, "key": key, "range": tuple(declares["range"])})
            register_metric(spec, _measured_elsewhere)


def _measured_elsewhere(question: Question, response: Response) -> None:
    """Replace a function that was called during the run."""


# --- what run.json says of it -----------------------------------------------------------------------------------------


def scored_with(
    evaluators: Iterable[Callable[..., Any] | CustomFunction], judges: "Judges | None" = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the keys ``matchers``, ``evaluators`` and ``plugins`` of run.json.

    Args:
        evaluators: The functions that are passed.
        judges: Who called the functions; given at the end, for which metrics each of them returned.

    Returns:
        ``matchers``: those that users registered, with ``name`` and ``media_type`` (if they are for one) and the
        spec of the ``function``; ``evaluators``: ``name``, ``function`` and ``metrics``, of
        registered ones the ``plugin`` too, and what a metric ``declares``; ``plugins``, if there are any: what
        ``plugin_records`` returns of those that registered them.
    """
    matchers = custom_matchers()
    metrics = {} if judges is None else judges.metrics_of_functions()
    functions = all_functions(evaluators)
    used = {each.registered_as: each.function for each in functions if each.registered_as is not None}
    plugins = plugin_records({**used, **{registered_name(key): matcher for key, matcher in matchers.items()}})
    return {
        "matchers": [_matcher_record(key, spec_of(matcher)) for key, matcher in matchers.items()],
        "evaluators": [_evaluator_record(each, metrics.get(each.name)) for each in functions],
        **({"plugins": plugins} if plugins else {}),
    }


def _evaluator_record(evaluator: CustomFunction, metrics: Sequence[str] | None) -> dict[str, Any]:
    record: dict[str, Any] = {"name": evaluator.name, "function": spec_of(evaluator.function)}
    if evaluator.registered_as is not None:
        record["plugin"] = plugin_of(evaluator.registered_as, evaluator.function).name
    if evaluator.spec is not None:
        record["declares"] = declaration(evaluator.spec)
    return record if metrics is None else {**record, "metrics": metrics}


def _matcher_record(key: MatcherKey, function: str) -> dict[str, Any]:
    name, media_type = key
    kinds = {"name": name, "media_type": media_type}
    return {**{kind: value for kind, value in kinds.items() if value is not None}, "function": function}


# --- plugins ---------------------------------------------------------------------------------------------------------

_DIGEST_LENGTH = 12  # as people see it


def plugins_text(run: Run) -> str:
    """Return the plugins of a run with their versions, for people.

    Example:
        >>> plugins_text({"plugins": [{"name": "my_package.metrics", "distribution": "my-package", "version": "1.2"}]})
        'my_package.metrics (my-package 1.2)'
    """
    return ", ".join(map(_plugin_text, run.get("plugins") or []))


def plugin_warnings(earlier: Run, now: Run) -> list[str]:
    """Say which plugins of a run have another version or content now.

    Args:
        earlier: The run.json of the run.
        now: The same, or what ``scored_with`` returns, as it is now.
    """
    before, after = _plugins_by_thing(earlier), _plugins_by_thing(now)
    content = ("distribution", "version", "sha256")
    changes = {
        (_plugin_text(before[thing]), _plugin_text(after[thing])): None
        for thing in before
        if thing in after and any(before[thing].get(key) != after[thing].get(key) for key in content)
    }
    return [f"scored with the plugin {new} now, and with {old} before" for old, new in changes]


def _plugins_by_thing(run: Run) -> dict[str, Run]:
    """Return the plugins of a run by what they register, such as ``metric saved_sec``."""
    return {thing: plugin for plugin in (run.get("plugins") or []) for thing in (plugin.get("gives") or [])}


def _plugin_text(plugin: Run) -> str:
    known = [str(plugin[key]) for key in ("distribution", "version") if plugin.get(key)]
    known += [f"sha256 {str(plugin['sha256'])[:_DIGEST_LENGTH]}"] if plugin.get("sha256") else []
    return f"{plugin.get('name')} ({' '.join(known) or 'of unknown content'})"


# --- missing scorers -------------------------------------------------------------------------------------------------


class Missing(NamedTuple):
    """Something that scored a run and is not loaded now: what it is, and the option that loads it."""

    what: str
    how: str


def missing_scorers(earlier: Run, options: "ScoredBy") -> list[Missing]:
    """Return what scored a run and is not loaded now, so that scores would change or go without a word.

    What another configuration leaves out is not missing: ``scoring_warnings`` reports that.

    Args:
        earlier: The run.json of the run.
        options: The configuration, the evaluators and the models that are given now.
    """
    return [*missing_functions(earlier, options.evaluators), *_missing_models(earlier, options)]


def missing_functions(earlier: Run, evaluators: Iterable[Callable[..., Any]] = ()) -> list[Missing]:
    """Return the matchers, metrics and evaluators that scored a run and are not loaded now."""
    given = {evaluator.name for evaluator in all_functions(evaluators)}
    return [*_missing_matchers(earlier), *_missing_evaluators(earlier, given)]


def refuse_missing(missing: Sequence[Missing], folder: Path, otherwise: str) -> None:
    """Refuse to score a run without what scored it.

    Args:
        missing: What is missing.
        folder: The run's folder.
        otherwise: How to score it nevertheless.

    Raises:
        RunFolderError: Something is missing.
    """
    if missing:
        them, ways = plural(len(missing), "it", "them"), dict.fromkeys(each.how for each in missing)
        what = f"what scored the run is missing now: {_missing_text(missing)}"
        raise RunFolderError(
            f"{what}; without {them} its scores would change or go",
            path=folder,
            hint=f"Add {', '.join(ways)} (in Python, import or pass {them}); or {otherwise}.",
        )


def scoring_warnings(earlier: Run, now: Run, judges: Run | None, missing: Sequence[Missing]) -> list[str]:
    """Say what scores a run otherwise than before: what is missing, plugins, the grading, judged metrics and models.

    Args:
        earlier: The run.json of the run.
        now: The same, or what ``scored_with`` returns, as it is now.
        judges: What the judges of now are; None if nobody judges.
        missing: What is missing.
    """
    dropped = [f"scored without {_missing_text(missing)}"] if missing else []
    grading = grading_change(earlier.get("config") or {}, now.get("config") or {})
    judged = judging_warnings(earlier, judges, is_told=bool(missing))
    return [*dropped, *plugin_warnings(earlier, now), *([] if grading is None else [grading]), *judged]


def judging_warnings(earlier: Run, now: Run | None, *, is_told: bool = False) -> list[str]:
    """Say how a changed config affects judged scores: metrics that are no longer computed, and models that changed.

    Args:
        earlier: The run.json of the run.
        now: The current judges; None if there are none.
        is_told: Whether missing scorers were already reported; if so, missing metrics are not.
    """
    before, after = (earlier.get("judges") or {}), now or {}
    warnings = [
        f"judged by {after[key]} now, and by {before[key]} before"
        for key in ("generation", "embedding")
        if key in before and key in after and before[key] != after[key]
    ]
    kinds = ("metrics", "custom_evaluations")
    gone = [name for key in kinds for name in (before.get(key) or []) if name not in (after.get(key) or [])]
    if gone and not is_told:
        warnings.append(f"judged before and not any more, as the config does not ask for it: {', '.join(gone)}")
    return warnings


def _missing_text(missing: Sequence[Missing]) -> str:
    *others, last = (each.what for each in missing)
    return f"{', '.join(others)} and {last}" if others else last


def _missing_matchers(earlier: Run) -> Iterator[Missing]:
    known, plugins = custom_matchers(), _plugins_by_thing(earlier)
    for record in earlier.get("matchers") or []:
        name, media_type = record.get("name"), record.get("media_type")
        key = (None if name is None else str(name), None if media_type is None else str(media_type))
        if key not in known:
            thing, function = registered_name(key), str(record.get("function"))
            what = f"the matcher for {thing.removeprefix('step kind ')} ({function})"
            yield Missing(what, _option_of(plugins.get(thing, {})))


def _missing_evaluators(earlier: Run, given: set[str]) -> Iterator[Missing]:
    plugins = _plugins_by_thing(earlier)
    for record in earlier.get("evaluators") or []:
        name, function, metrics = str(record.get("name")), record.get("function"), record.get("metrics") or []
        if name in given:
            continue
        if "plugin" in record:
            kind = "metric" if "declares" in record else "evaluator"
            yield Missing(f"the {kind} {name} ({function})", _option_of(plugins.get(f"{kind} {name}", {})))
        else:
            gave = "" if metrics in ([], [name]) else f"; it returned {listed(metrics)}"
            spec = function if isinstance(function, str) and not function.startswith("__main__:") else "SPEC"
            yield Missing(f"the evaluator {name} ({function}{gave})", f"--evaluator {spec}")


def _option_of(plugin: Run) -> str:
    """Return the option that loads a plugin again."""
    name = plugin.get("name")
    return f"--plugin {shlex.quote(str(name))}" if name not in (None, "__main__") else "--plugin MODULE"


def _missing_models(earlier: Run, options: "ScoredBy") -> Iterator[Missing]:
    """Yield the models that were passed in Python, of which run.json has only the names."""
    config: EvaluationConfig = options.config
    judges, llm = (earlier.get("judges") or {}), ((earlier.get("config") or {}).get("llm") or {})
    metrics = judges.get("metrics") or []
    if "generation" in judges and not llm and options.llm is None and config.llm is None:
        judged = [*metrics, *(judges.get("custom_evaluations") or [])]
        what = f"the model {judges['generation']} (it judged {listed(judged)})"
        yield Missing(what, "llm=… in Python, or --config with an llm section")
        return  # without it nothing is embedded either
    has_embeddings = options.embeddings is not None or (config.llm is not None and config.llm.embedding is not None)
    needing = [
        judge.key
        for judge in JUDGES
        if judge.needs_embeddings
        and is_enabled(config, judge) is not False
        and judge.key in (config.judges.metrics or metrics)
    ]
    if "embedding" in judges and not llm.get("embedding") and needing and not has_embeddings:
        what = f"the embedding model {judges['embedding']} ({needing[0]} needs it)"
        yield Missing(what, "embeddings=… in Python, or --config with llm.embedding")
