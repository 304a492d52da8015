"""Compares the run.json of an earlier session with this one: what changed, what is missing, what can be reused."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from graphrag_eval_lc.aggregation.sample_values import grading_change
from graphrag_eval_lc.benchmark.run_manifest import DIGESTS, Run, kept_answers, plugin_text
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig, is_enabled, load_config
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.custom_functions import all_functions
from graphrag_eval_lc.masking import without_masked
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.registry.custom_metrics import register_metric
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import JUDGES, is_declared
from graphrag_eval_lc.registry.plugins import registered_name
from graphrag_eval_lc.run_folder import recorded_dataset
from graphrag_eval_lc.texts import counted, listed, plural, shortened

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import ScoredBy

_AGENT = {"agent": "the agent", "agent_source": "what it resolves to", "agent_config": "the agent's config"}


# --- questions, agent and capture ------------------------------------------------------------------------------------


def changed_questions(earlier: Run, now: Run) -> frozenset[str]:
    """Return the ids of the questions whose text changed."""
    before = earlier.get("questions") or {}
    return frozenset(key for key, digest in (now.get("questions") or {}).items() if before.get(key, digest) != digest)


def refuse_changes(earlier: Run, now: Run, folder: Path, *, is_other_agent_fine: bool = False) -> None:
    """Refuse to resume a run with other questions, another agent or other capture options.

    Changed references and scoring options are fine, as everything is scored again.
    """
    agent = () if is_other_agent_fine else agent_changes(earlier, now)
    changes = [*agent, *_capture_changes(earlier, now), *_question_changes(earlier, now)]
    if changes:
        raise RunFolderError(
            f"the folder holds a run that differs from this one: {'; '.join(changes)}",
            path=folder,
            hint="Give another folder; or --force (force=True) to resume nevertheless, with the answers of unchanged "
            "questions kept; or --overwrite (overwrite=True) to start over.",
        )


def refuse_other_part(earlier: Run, now: Run, folder: Path) -> None:
    """Refuse to resume if the folder holds another shard, or a shard in place of a whole run, or the reverse."""
    before, after = Shard.in_record(earlier), Shard.in_record(now)
    if before == after:
        return
    holds = "a whole run" if before is None else f"shard {before} of a run"
    wanted = "the whole run" if after is None else f"shard {after}"
    ways = ["Give another folder"]
    ways += [] if before is None else [f"--shard {before} (shard='{before}') to resume this one"]
    ways += [] if before is None or after is not None else ["merge to put all shards together first"]
    hint = f"{', or '.join(ways)}; or --overwrite (overwrite=True) to start over."
    raise RunFolderError(f"the folder holds {holds}, and {wanted} was to be asked into it", path=folder, hint=hint)


def capture_warnings(earlier: Run, now: Run) -> list[str]:
    """Return a warning if the answers of earlier sessions were recorded with other capture options."""
    changes = "; ".join(_capture_changes(earlier, now))
    return [f"answers of earlier sessions are kept as they were recorded: {changes}"] if changes else []


def question_warnings(earlier: Run, now: Run) -> Iterator[str]:
    """Yield warnings about questions whose text changed, and about questions that the dataset no longer has."""
    if changed := sorted(changed_questions(earlier, now)):
        yield f"{counted(len(changed), 'question')} with another text than was asked: {listed(changed)}"
    if gone := [key for key in earlier.get("questions") or () if key not in (now.get("questions") or ())]:
        yield f"{counted(len(gone), 'question')} of the run no longer in the dataset: {listed(gone)}"


def agent_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield each change of the agent's spec, of what the spec resolves to, and of the agent's config."""
    for key, name in _AGENT.items():
        before, after = earlier.get(key), now.get(key)
        if before != after:
            yield f"{name} was {'none' if before is None else before} and is {'none' if after is None else after}"


def _capture_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield each changed capture option; answers captured in two ways would be scored together."""
    defaults = CaptureConfig().model_dump()
    before, after = ({**defaults, **(run.get("capture") or {})} for run in (earlier, now))
    for key in defaults:
        if before[key] != after[key]:
            was, is_now = ("none" if value is None else json_text(value) for value in (before[key], after[key]))
            yield f"capture.{key} was {was} and is {is_now}"


def _question_changes(earlier: Run, now: Run) -> Iterator[str]:
    changed = changed_questions(earlier, now)
    before, after = earlier.get("questions") or {}, now.get("questions") or {}
    kinds = {
        "with another text": [key for key in after if key in changed],
        "added": [key for key in after if key not in before],
        "left out": [key for key in before if key not in after],
    }
    for kind, ids in kinds.items():
        if ids:
            yield f"{counted(len(ids), 'question')} {kind}: {listed(ids)}"


# --- answers of an agent whose source changed -------------------------------------------------------------------------


def source_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the files and functions of an agent's source that changed or disappeared since."""
    before, after = earlier.get(DIGESTS) or {}, now.get(DIGESTS) or {}
    changed = [name for name in before if after.get(name) != before[name]]
    files = [name for name in changed if ":" not in name]  # functions change with their files
    return [f"{listed(sorted(files or changed))} changed"] if changed else []


def refuse_other_source(answers: Mapping[str, Any], folder: Path) -> NoReturn:
    """Refuse to reuse answers of an agent whose source changed."""
    raise RunFolderError(
        f"the agent changed since it gave the {kept_answers(answers).removeprefix('1 ')}: {answers['changes']}",
        path=folder,
        hint="Add --overwrite (overwrite=True) to ask everything again, or --keep-answers (keep_answers=True) to keep "
        "these answers and ask only the rest.",
    )


def reuse_text(to_ask: int, reused: int, asked_at: str) -> str:
    """Return how many questions a run still asks, how many answers it reuses, and the time of the newest of these.

    Example:
        >>> reuse_text(0, 48, "2026-11-25 03:26"), reuse_text(12, 36, "")
        ('0 asked, 48 reused from 2026-11-25 03:26 (--overwrite asks again)', '12 to ask, 36 reused (--overwrite ...')
    """
    asked = f"{to_ask:,} to ask" if to_ask else "0 asked"
    return f"{asked}, {reused:,} reused{asked_at and f' from {asked_at}'} (--overwrite asks again)"


def local_minute(*times: object) -> str:
    """Return the first readable time for people, in local time to the minute; empty if none is readable."""
    for each in times:
        try:
            return f"{datetime.fromisoformat(str(each)).astimezone():%Y-%m-%d %H:%M}"
        except (ValueError, OverflowError):
            continue
    return ""


# --- configuration, dataset and metrics ------------------------------------------------------------------------------


def recorded_config(record: Mapping[str, Any]) -> EvaluationConfig:
    """Return the configuration in a run.json for reading, without plugins and the step kinds that need them."""
    config = config_again(record) or {}
    steps = {key: value for key, value in (config.get("steps") or {}).items() if key != "kinds"}
    return load_config({**config, "steps": steps}, has_llm=True, has_embeddings=True)


def config_again(earlier: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the config in a run.json for scoring again, without its plugins: a folder never causes an import.

    A masked key is left out only if OPENAI_API_KEY would be sent to OpenAI itself. For any other endpoint it stays
    masked, and a model call then fails with the hint that the config is needed.
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
    """Return the path of a run's dataset."""
    path = recorded_dataset(earlier, folder)
    if path is None:
        raise RunFolderError(
            "run.json names no file of the dataset, as it was made in Python",
            path=folder,
            hint="Pass it: --dataset FILE (dataset=...).",
        )
    if not os.path.exists(path):  # noqa: PTH110 - unlike Path.exists it never raises
        raise RunFolderError(
            f"the dataset {shortened(path, 200)} of this run does not exist relative to the current folder",
            path=folder,
            hint="Go to the folder in which the run was started, or pass it: --dataset FILE (dataset=...).",
        )
    return path


def register_recorded(record: Mapping[str, Any]) -> None:
    """Register the metrics that a run.json declares, as their plugin may be missing; use ``registered_only_here``."""
    for evaluator in record.get("evaluators") or []:
        key, declares = evaluator.get("name"), evaluator.get("declares")
        if isinstance(key, str) and isinstance(declares, Mapping) and not is_declared(key):
            spec = MetricSpec(**{**declares, "key": key, "range": tuple(declares["range"])})
            register_metric(spec, _measured_elsewhere)


def _measured_elsewhere(question: Question, response: Response) -> None:
    """A placeholder for the function of a recorded metric, which was called during the run."""


# --- plugins, functions and models that scored it, then and now -------------------------------------------------------


def plugin_warnings(earlier: Run, now: Run) -> list[str]:
    """Return a warning for each plugin that has another version or content now."""
    before, after = _plugins_by_thing(earlier), _plugins_by_thing(now)
    content = ("distribution", "version", "sha256")
    changes = {
        (plugin_text(before[thing]), plugin_text(after[thing])): None
        for thing in before
        if thing in after and any(before[thing].get(key) != after[thing].get(key) for key in content)
    }
    return [f"scored with the plugin {new} now, and with {old} before" for old, new in changes]


def _plugins_by_thing(run: Run) -> dict[str, Run]:
    """Return the plugins of a run by what they register, such as ``metric saved_sec``."""
    return {thing: plugin for plugin in (run.get("plugins") or []) for thing in (plugin.get("gives") or [])}


class Missing(NamedTuple):
    """A plugin, function or model that scored a run and is not loaded now, and the option that loads it (``how``)."""

    what: str
    how: str


def missing_scorers(earlier: Run, options: "ScoredBy") -> list[Missing]:
    """Return the functions and models that scored a run and are not loaded, so that scores would silently change.

    What another configuration leaves out is not missing: ``scoring_warnings`` reports that.
    """
    return [*missing_functions(earlier, options.evaluators), *_missing_models(earlier, options)]


def missing_functions(earlier: Run, evaluators: Iterable[Callable[..., Any]] = ()) -> list[Missing]:
    """Return the matchers, metrics and evaluators that scored a run and are not loaded now."""
    given = {evaluator.name for evaluator in all_functions(evaluators)}
    return [*_missing_matchers(earlier), *_missing_evaluators(earlier, given)]


def refuse_missing(missing: Sequence[Missing], folder: Path, otherwise: str) -> None:
    """Refuse to score a run if a plugin, function or model that scored it is missing; ``otherwise`` is the way out."""
    if missing:
        them, ways = plural(len(missing), "it", "them"), dict.fromkeys(each.how for each in missing)
        what = f"what scored the run is missing now: {_missing_text(missing)}"
        raise RunFolderError(
            f"{what}; without {them} its scores would change or go",
            path=folder,
            hint=f"Add {', '.join(ways)} (in Python, import or pass {them}); or {otherwise}.",
        )


def scoring_warnings(earlier: Run, now: Run, judges: Run | None, missing: Sequence[Missing]) -> list[str]:
    """Return warnings about changed scoring: missing functions, plugins, grading, judged metrics and models."""
    dropped = [f"scored without {_missing_text(missing)}"] if missing else []
    grading = grading_change(earlier.get("config") or {}, now.get("config") or {})
    judged = judging_warnings(earlier, judges, is_reported=bool(missing))
    return [*dropped, *plugin_warnings(earlier, now), *([] if grading is None else [grading]), *judged]


def judging_warnings(earlier: Run, now: Run | None, *, is_reported: bool = False) -> list[str]:
    """Return warnings about judged scores: metrics that are no longer computed, and models that changed."""
    before, after = (earlier.get("judges") or {}), now or {}
    warnings = [
        f"judged by {after[key]} now, and by {before[key]} before"
        for key in ("generation", "embedding")
        if key in before and key in after and before[key] != after[key]
    ]
    kinds = ("metrics", "custom_evaluations")
    gone = [name for key in kinds for name in (before.get(key) or []) if name not in (after.get(key) or [])]
    if gone and not is_reported:
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
