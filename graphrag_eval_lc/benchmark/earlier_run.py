"""What a run.json of before says against what is there now: what changed, and which scorers are missing."""

import shlex
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphrag_eval_lc.aggregation.grading import grading_change
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.config.evaluation_config import is_enabled
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.custom_functions import all_functions
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.registry.metrics import JUDGES
from graphrag_eval_lc.registry.step_kinds import registered_name
from graphrag_eval_lc.texts import counted, listed, plural

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import ScoredBy

Run = Mapping[str, Any]
"""What run.json holds; one that was changed by hand may lack any key or have other types."""


# --- questions, agent and capture ------------------------------------------------------------------------------------


def changed_questions(earlier: Run, now: Run) -> frozenset[str]:
    """Return the ids of the questions whose text is another one now."""
    before = ChainMap(
        *(cast("dict[str, Any]", _mapping(earlier.get(key))) for key in ("questions", "earlier_questions"))
    )
    return frozenset(key for key, digest in _questions(now).items() if before.get(key, digest) != digest)


def refuse_changes(earlier: Run, now: Run, folder: Path, *, is_other_agent_fine: bool = False) -> None:
    """Refuse to go on with a run of other questions, of another agent, or of which other things are kept.

    A mended reference and another configuration of the scoring are no such change: all is scored anew anyway.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
        folder: Where the run is.
        is_other_agent_fine: Whether the answers of another agent are kept.

    Raises:
        RunFolderError: With everything that changed.
    """
    agent = () if is_other_agent_fine else agent_changes(earlier, now)
    changes = [*agent, *_capture_changes(earlier, now), *_question_changes(earlier, now)]
    if changes:
        raise RunFolderError(
            f"the folder holds a run that differs from this one: {'; '.join(changes)}",
            path=folder,
            hint="Give another folder; or --force (force=True) to go on nevertheless, with the answers of unchanged "
            "questions kept; or --overwrite (overwrite=True) to start anew.",
        )


def refuse_other_part(earlier: Run, now: Run, folder: Path) -> None:
    """Refuse to go on with another shard than the folder holds, or with a shard as with a whole run.

    Raises:
        RunFolderError: It is another one.
    """
    before, after = Shard.in_record(earlier), Shard.in_record(now)
    if before == after:
        return
    holds = "a whole run" if before is None else f"shard {before} of a run"
    wanted = "the whole run" if after is None else f"shard {after}"
    ways = ["Give another folder"]
    ways += [] if before is None else [f"--shard {before} (shard='{before}') to go on with this one"]
    ways += [] if before is None or after is not None else ["merge to put all shards together first"]
    hint = f"{', or '.join(ways)}; or --overwrite (overwrite=True) to start anew."
    raise RunFolderError(f"the folder holds {holds}, and {wanted} was to be asked into it", path=folder, hint=hint)


def capture_warnings(earlier: Run, now: Run) -> list[str]:
    """Say which options of the capture the answers of earlier sessions were recorded with, where they were others."""
    changes = "; ".join(_capture_changes(earlier, now))
    return [f"answers of earlier sessions are kept as they were recorded: {changes}"] if changes else []


def question_warnings(earlier: Run, now: Run) -> Iterator[str]:
    """Say which questions of a run have another text now, and which the dataset has no more."""
    if changed := sorted(changed_questions(earlier, now)):
        yield f"{counted(len(changed), 'question')} with another text than was asked: {listed(changed)}"
    if gone := _gone(_questions(earlier), _questions(now)):
        yield f"{counted(len(gone), 'question')} of the run no longer in the dataset: {listed(gone)}"


def agent_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield which of the agent's spec, what it resolves to, and its config changed."""
    names = {"agent": "the agent", "agent_source": "what it stands for", "agent_config": "the agent's config"}
    for key, name in names.items():
        before, after = earlier.get(key), now.get(key)
        if before != after:
            yield f"{name} was {'none' if before is None else before} and is {'none' if after is None else after}"


def _capture_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield what is kept of the agent's runs otherwise; answers of both kinds would be scored beside each other."""
    defaults = CaptureConfig().model_dump()
    before, after = ({**defaults, **_mapping(run.get("capture"))} for run in (earlier, now))
    for key in defaults:
        if before[key] != after[key]:
            was, is_now = ("none" if value is None else json_text(value) for value in (before[key], after[key]))
            yield f"capture.{key} was {was} and is {is_now}"


def _question_changes(earlier: Run, now: Run) -> Iterator[str]:
    changed = changed_questions(earlier, now)
    before, after = _questions(earlier), _questions(now)
    kinds = {
        "with another text": [key for key in after if key in changed],
        "added": [key for key in after if key not in before],
        "left out": _gone(before, after),
    }
    for kind, ids in kinds.items():
        if ids:
            yield f"{counted(len(ids), 'question')} {kind}: {listed(ids)}"


def _gone(before: Run, after: Run) -> list[str]:
    """Return the ids that are there no more."""
    if sum(key in before for key in after) == len(before):  # nearly always, and a set of all takes memory
        return []
    known = set(after)
    return [key for key in before if key not in known]


# --- plugins ---------------------------------------------------------------------------------------------------------

_DIGEST_LENGTH = 12  # as people see it


def plugins_text(run: Run) -> str:
    """Return the plugins of a run with their versions, for people.

    Example:
        >>> plugins_text({"plugins": [{"name": "my_package.metrics", "distribution": "my-package", "version": "1.2"}]})
        'my_package.metrics (my-package 1.2)'
    """
    return ", ".join(map(_plugin_text, _records(run.get("plugins"))))


def plugin_warnings(earlier: Run, now: Run) -> list[str]:
    """Say which plugins of a run have another version or content now.

    Args:
        earlier: The run.json of the run.
        now: The same, or what ``scored_with`` gives, as it is now.
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
    """Return the plugins of a run by what they gave, such as ``metric saved_sec``."""
    return {str(thing): plugin for plugin in _records(run.get("plugins")) for thing in _list(plugin.get("gives"))}


def _plugin_text(plugin: Run) -> str:
    known = [str(plugin[key]) for key in ("distribution", "version") if plugin.get(key)]
    known += [f"sha256 {str(plugin['sha256'])[:_DIGEST_LENGTH]}"] if plugin.get("sha256") else []
    return f"{plugin.get('name')} ({' '.join(known) or 'of unknown content'})"


# --- missing scorers -------------------------------------------------------------------------------------------------


class Missing(NamedTuple):
    """Something that scored a run and is not loaded now: what it is, and the option that gives it."""

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
        now: The same, or what ``scored_with`` gives, as it is now.
        judges: What the judges of now are; None where nobody judges.
        missing: What is missing.
    """
    dropped = [f"scored without {_missing_text(missing)}"] if missing else []
    grading = grading_change(_mapping(earlier.get("config")), _mapping(now.get("config")))
    judged = judging_warnings(earlier, judges, is_told=bool(missing))
    return [*dropped, *plugin_warnings(earlier, now), *([] if grading is None else [grading]), *judged]


def judging_warnings(earlier: Run, now: Run | None, *, is_told: bool = False) -> list[str]:
    """Say what another configuration does to judged scores: metrics that go, and models that are others now.

    Args:
        earlier: The run.json of the run.
        now: What the judges of now are; None where nobody judges.
        is_told: Whether missing scorers are told already; then nothing is said of metrics.
    """
    before, after = _mapping(earlier.get("judges")), now or {}
    warnings = [
        f"judged by {after[key]} now, and by {before[key]} before"
        for key in ("generation", "embedding")
        if key in before and key in after and before[key] != after[key]
    ]
    kinds = ("metrics", "custom_evaluations")
    gone = [name for key in kinds for name in _names(before.get(key)) if name not in _names(after.get(key))]
    if gone and not is_told:
        warnings.append(f"judged before and not any more, as the config does not ask for it: {', '.join(gone)}")
    return warnings


def _missing_text(missing: Sequence[Missing]) -> str:
    *others, last = (each.what for each in missing)
    return f"{', '.join(others)} and {last}" if others else last


def _missing_matchers(earlier: Run) -> Iterator[Missing]:
    known, plugins = custom_matchers(), _plugins_by_thing(earlier)
    for record in _records(earlier.get("matchers")):
        key = (_text(record.get("name")), _text(record.get("media_type")))
        if key not in known:
            thing, function = registered_name(key), str(record.get("function"))
            place = function.rpartition(":")[0]
            how = f"--matchers {place if place and place != '__main__' else 'MODULE'}"
            if plugins.get(thing, {}).get("via") in ("entry point", "--plugin", "config"):
                how = _option_of(plugins[thing])
            yield Missing(f"the matcher for {thing.removeprefix('step kind ')} ({function})", how)


def _missing_evaluators(earlier: Run, given: set[str]) -> Iterator[Missing]:
    plugins = _plugins_by_thing(earlier)
    for record in _records(earlier.get("evaluators")):
        name, function, metrics = str(record.get("name")), record.get("function"), _names(record.get("metrics"))
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
    judges, llm = _mapping(earlier.get("judges")), _mapping(_mapping(earlier.get("config")).get("llm"))
    metrics = _names(judges.get("metrics"))
    if "generation" in judges and not llm and options.llm is None and config.llm is None:
        judged = [*metrics, *_names(judges.get("custom_evaluations"))]
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


# --- values of any type ----------------------------------------------------------------------------------------------


def _mapping(value: object) -> Run:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _records(value: object) -> list[Run]:
    return [each for each in _list(value) if isinstance(each, Mapping)]


def _names(value: object) -> list[str]:
    return [str(each) for each in _list(value)]


def _questions(run: Run) -> Run:
    return _mapping(run.get("questions"))
