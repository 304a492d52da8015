"""What scores a run beside its config (matchers, evaluators, plugins), as run.json has it, and what of it is gone."""

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.benchmark.agent_specs import named_by
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.config.evaluation_config import is_enabled
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, MetricFunction, all_functions
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.matching.steps import custom_matchers_for
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.registry.custom_metrics import declaration
from graphrag_eval_lc.registry.metrics import JUDGES
from graphrag_eval_lc.registry.plugin_records import plugin_records
from graphrag_eval_lc.registry.plugins import SWITCH, loaded_plugin, plugin_of, spec_of
from graphrag_eval_lc.registry.step_kinds import MatcherKey, registered_name
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results
from graphrag_eval_lc.texts import listed, plural

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

Evaluator = Callable[..., Any]


def load_matchers(modules: Iterable[str]) -> None:
    """Load modules that register matchers.

    Args:
        modules: ``package.module`` or ``path/to/file.py``, as whoever starts the command names them.

    Raises:
        AgentError: One of them does not exist, or fails to load.
        OptionError: One of them registers nothing.
    """
    for module in modules:
        place, _, attribute = module.rpartition(":")
        if place and attribute.isidentifier():
            raise OptionError(f"--matchers {module} names an attribute of a module", hint=f"Write --matchers {place}.")
        loaded_plugin(module, "--matchers")
        if not custom_matchers():
            raise OptionError(
                f"--matchers {module} registers no matcher",
                hint="Let it call register_matcher of graphrag_eval_lc.matching when it is loaded.",
            )


def evaluators_of(given: Any) -> tuple[Evaluator, ...]:
    """Return evaluators, of which some may be named by their specs.

    Raises:
        OptionError: It is no list of functions and specs.
        AgentError: What a spec names cannot be loaded.
    """
    if given is None:
        return ()
    if not isinstance(given, str | bytes | Mapping) and isinstance(given, Iterable):
        found = tuple(named_by(each, "an evaluator") if isinstance(each, str) else each for each in given)
        if all(map(callable, found)):
            return found
    raise OptionError(f"evaluators cannot be {given!r}", key="evaluators", hint="Give a list of functions.")


def scored_with(
    questions: Iterable[tuple[Template, Question]],
    config: EvaluationConfig,
    evaluators: Iterable[Evaluator | CustomFunction],
    judges: "Judges | None" = None,
) -> dict[str, list[dict[str, Any]]]:
    """Return what run.json says of the matchers, evaluators and plugins of a run.

    Args:
        questions: Those that are scored.
        config: The configuration.
        evaluators: The functions that are passed.
        judges: Who called the functions, once they are done; None leaves out which metrics they gave.

    Returns:
        ``matchers``: those that users registered for steps of these questions, with ``name`` and ``media_type`` (where
        they are for one) and the spec of the ``function``; ``evaluators``: ``name``, ``function`` and ``metrics``, of
        registered ones the ``plugin`` too, and what a metric ``declares``; ``plugins``, where there are any: what
        ``plugin_records`` gives of those that registered them.
    """
    groups = (group for _, question in questions for group in question.get("reference_steps") or ())
    steps = (step for group in groups for step in group)
    matchers = custom_matchers_for(steps, names=config.steps.names, retrieval=config.retrieval)
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
    if isinstance(evaluator, MetricFunction):
        record["declares"] = declaration(evaluator.spec)
    return record if metrics is None else {**record, "metrics": metrics}


def _matcher_record(key: MatcherKey, function: str) -> dict[str, Any]:
    name, media_type = key
    kinds = {"name": name, "media_type": media_type}
    return {**{kind: value for kind, value in kinds.items() if value is not None}, "function": function}


_DIGITS = 12  # of a digest, as people see it


def giver_of(run: Mapping[str, Any], thing: str) -> Mapping[str, Any] | None:
    """Return what a run.json says of the plugin that gave something, such as ``metric saved_sec``.

    Example:
        >>> run = {"plugins": [{"name": "my_package.metrics", "gives": ["metric saved_sec"]}]}
        >>> giver_of(run, "metric saved_sec")["name"]
        'my_package.metrics'
    """
    return _givers(run).get(thing)


def option_of(plugin: Mapping[str, Any]) -> str | None:
    """Return the option that loads a plugin again; None for what was registered by the program itself.

    Example:
        >>> option_of({"name": "my plugin.py", "via": "--plugin"})
        "--plugin 'my plugin.py'"
    """
    name = str(plugin.get("name"))
    return None if name == "__main__" else f"--plugin {shlex.quote(name)}"


def otherwise_of(plugin: Mapping[str, Any]) -> str:
    """Return how a plugin is had again without the option."""
    if plugin.get("via") == "entry point" and plugin.get("distribution"):
        version = f"=={plugin['version']}" if plugin.get("version") else ""
        package = shlex.quote(str(plugin["distribution"]) + version)
        return f"unset {SWITCH}, with {package} installed" if os.environ.get(SWITCH) else f"pip install {package}"
    return "in Python, import the module that registers it"


def plugin_warnings(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say which plugins of a run have another version or content than when it was scored before.

    Args:
        earlier: The run.json of the run.
        now: The same, or what ``scored_with`` gives, as it is now.
    """
    before, after = _givers(earlier), _givers(now)
    changes = {
        (_told(before[thing]), _told(after[thing])): None
        for thing in before
        if thing in after and _content(before[thing]) != _content(after[thing])
    }
    return [f"scored with the plugin {new} now, and with {old} before" for old, new in changes]


def plugins_text(run: Mapping[str, Any]) -> str:
    """Return the plugins of a run with their versions, for people.

    Example:
        >>> plugins_text({"plugins": [{"name": "my_package.metrics", "distribution": "my-package", "version": "1.2"}]})
        'my_package.metrics (my-package 1.2)'
    """
    return ", ".join(map(_told, _recorded_plugins(run)))


def _givers(run: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(thing): plugin for plugin in _recorded_plugins(run) for thing in _list(plugin.get("gives"))}


def _recorded_plugins(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (each for each in _list(run.get("plugins")) if isinstance(each, Mapping))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _content(plugin: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(plugin.get(key) for key in ("distribution", "version", "sha256"))


def _told(plugin: Mapping[str, Any]) -> str:
    known = [str(plugin[key]) for key in ("distribution", "version") if plugin.get(key)]
    known += [f"sha256 {str(plugin['sha256'])[:_DIGITS]}"] if plugin.get("sha256") else []
    return f"{plugin.get('name')} ({' '.join(known) or 'of unknown content'})"


# The reason of a score that a matcher of somebody's own gave as a bare number.
_OWN_REASON = re.compile(r"the score of (?P<function>\S+) is ")


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that scored a run and is not there now.

    Attributes:
        what: What it is, as part of a sentence.
        how: How to give it.
        option: The option of the command line that loads its plugin; None where no plugin gave it.
    """

    what: str
    how: str
    option: str | None = None


def missing_scorers(
    earlier: Mapping[str, Any],
    folder: Path,
    config: EvaluationConfig,
    *,
    evaluators: Iterable[Evaluator] = (),
    llm: Any = None,
    embeddings: Any = None,
) -> list[Missing]:
    """Return what scored a run and is not there now, so that scores would change or go without a word.

    What another configuration leaves out is no part of it: ``judging_warnings`` tells that.

    Args:
        earlier: The run.json of the run. That of version 0.1.0 names no matchers: there it is seen in the results,
            where one gave bare numbers.
        folder: The run's folder.
        config: The configuration now.
        evaluators: The functions that are given now.
        llm: The chat model that is given now in Python.
        embeddings: The embedding model that is given now in Python.
    """
    return [
        *missing_functions(earlier, folder, evaluators),
        *_missing_models(earlier, config, has_llm=llm is not None, has_embeddings=embeddings is not None),
    ]


def missing_functions(earlier: Mapping[str, Any], folder: Path, evaluators: Iterable[Evaluator] = ()) -> list[Missing]:
    """Return the matchers, metrics and evaluators that scored a run and are not there now; see ``missing_scorers``."""
    given = {evaluator.name for evaluator in all_functions(evaluators)}
    seen = _Seen.in_results(folder, earlier)
    return [*_missing_matchers(earlier, seen), *_missing_evaluators(earlier, given, seen)]


def refuse_missing(missing: Sequence[Missing], folder: Path, otherwise: str, command: str = "") -> None:
    """Refuse to score a run without what scored it.

    Args:
        missing: What is missing.
        folder: The run's folder.
        otherwise: How to score it nevertheless.
        command: The command line to which options that give plugins can be added; empty: the one that was used.

    Raises:
        RunFolderError: Something is missing.
    """
    if missing:
        others = dict.fromkeys(each.how for each in missing if each.option is None)
        ways = ", ".join([*_plugin_way(missing, command), *others])
        them = plural(len(missing), "it", "them")
        raise RunFolderError(
            f"what scored the run is missing now: {_listed(missing)}; without {them} its scores would change or go",
            path=folder,
            hint=f"Give {them}: {ways}; or {otherwise}.",
        )


def _plugin_way(missing: Iterable[Missing], command: str) -> Iterator[str]:
    options = {each.option: each.how for each in missing if each.option}
    if options:
        yield f"{' '.join(filter(None, [command, *options]))} (or {', or '.join(dict.fromkeys(options.values()))})"


def dropped_warning(missing: Sequence[Missing]) -> list[str]:
    """Say what a run is scored without from now on; nothing where nothing is missing."""
    return [f"scored without {_listed(missing)}"] if missing else []


def judging_warnings(
    earlier: Mapping[str, Any], now: Mapping[str, Any] | None, dropped: Sequence[Missing] = ()
) -> list[str]:
    """Say what another configuration does to judged scores: metrics that go, and models that are others now.

    Args:
        earlier: The run.json of the run.
        now: What is told of the judges now; None where nobody judges.
        dropped: What is missing and told already; then nothing is said of metrics.
    """
    before, after = _mapping(earlier.get("judges")), now or {}
    gone = [
        name
        for key in ("metrics", "custom_evaluations")
        for name in _names(before.get(key))
        if name not in _names(after.get(key))
    ]
    warnings = [
        f"judged by {after[key]} now, and by {before[key]} before"
        for key in ("generation", "embedding")
        if key in before and key in after and before[key] != after[key]
    ]
    if gone and not dropped:
        warnings.append(f"judged before and not any more, as the config does not ask for it: {', '.join(gone)}")
    return warnings


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the results of a run show of functions that its record does not tell.

    Attributes:
        matchers: The functions that compared steps, by the steps' names.
        metrics: What evaluators gave.
    """

    matchers: Mapping[str, str]
    metrics: Sequence[str]

    @classmethod
    def in_results(cls, folder: Path, earlier: Mapping[str, Any]) -> "_Seen":
        matchers: dict[str, str] = {}
        metrics: dict[str, None] = {}
        if "matchers" not in earlier or "evaluators" not in earlier:
            try:
                for result in iter_results(folder / RESULTS_FILE):
                    matchers.update(_own_matchers(result))
                    metrics.update(dict.fromkeys(_names(result.get("custom_metrics"))))
            except RunFolderError:  # results that are broken or were never written are no reason to refuse new ones
                pass
        return cls(matchers, list(metrics))


def _own_matchers(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of the reference steps that somebody's own matcher compared, each with that matcher's name."""
    groups = zip(_list(result.get("reference_steps")), _list(result.get("steps_diagnosis")), strict=False)
    for steps, diagnoses in groups:
        for step, diagnosis in zip(_list(steps), _list(diagnoses), strict=False):
            found = _OWN_REASON.match(str(_mapping(diagnosis).get("reason")))
            if found:
                yield str(_mapping(step).get("name")), found["function"]


def _missing_matchers(earlier: Mapping[str, Any], seen: _Seen) -> Iterator[Missing]:
    known = custom_matchers()
    if "matchers" in earlier:
        for record in _records(earlier["matchers"]):
            name, media_type = (_text(record.get(key)) for key in ("name", "media_type"))
            if (name, media_type) not in known:
                thing, function = registered_name((name, media_type)), str(record.get("function"))
                what = f"the matcher for {thing.removeprefix('step kind ')} ({function})"
                by_plugin = _of_plugin(earlier, thing, what, ways=("entry point", "--plugin", "config"))
                yield by_plugin or _missing_matcher(what, function)
        return
    named = {name for name, _ in known}
    for name, function in seen.matchers.items():
        if name not in named and None not in named:
            yield _missing_matcher(f"the matcher for {name} ({function})", function)


def _of_plugin(
    earlier: Mapping[str, Any], thing: str, what: str, ways: Collection[str] | None = None
) -> Missing | None:
    """Return something as missing that a plugin gave, loaded in one of some ways; None where that is not told."""
    plugin = giver_of(earlier, thing)
    option = None if plugin is None else option_of(plugin)
    if plugin is None or option is None or (ways is not None and plugin.get("via") not in ways):
        return None
    return Missing(what, otherwise_of(plugin), option)


def _missing_matcher(what: str, function: str) -> Missing:
    module = function.rpartition(":")[0]
    place = module if module and module != "__main__" else "MODULE"
    return Missing(
        what,
        f"--matchers {place} (in Python, call register_matcher or import the module that does)",
    )


def _missing_evaluators(earlier: Mapping[str, Any], given: set[str], seen: _Seen) -> Iterator[Missing]:
    if "evaluators" in earlier:
        records = list(_records(earlier["evaluators"]))
    else:  # version 0.1.0 had their names among the judges
        records = [{"name": name} for name in _names(_mapping(earlier.get("judges")).get("functions"))]
    for record in records:
        name, function, metrics = str(record.get("name")), record.get("function"), _names(record.get("metrics"))
        if name not in given and "plugin" in record:
            kind = "metric" if "declares" in record else "evaluator"
            what = f"the {kind} {name} ({function})"
            in_python = Missing(what, f"register the {kind} {name} again (register_{kind})")
            yield _of_plugin(earlier, f"{kind} {name}", what) or in_python
        elif name not in given:
            gave = None if metrics in ([], [name]) else f"it gave {listed(metrics)}"
            told = "; ".join(str(each) for each in (function, gave) if each is not None)
            spec = function if isinstance(function, str) and not function.startswith("__main__:") else "SPEC"
            yield Missing(
                f"the evaluator {name}{told and f' ({told})'}",
                f"--evaluator {spec} (evaluators=[…])",
            )
    if not records and not given and seen.metrics:
        yield Missing(f"the evaluators that gave {listed(seen.metrics)}", "--evaluator SPEC (evaluators=[…])")


def _missing_models(
    earlier: Mapping[str, Any], config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool
) -> Iterator[Missing]:
    """Yield the models that were passed in Python, of which run.json has no more than their names."""
    judges, llm = _mapping(earlier.get("judges")), _mapping(_mapping(earlier.get("config")).get("llm"))
    metrics = _names(judges.get("metrics"))
    if "generation" in judges and not llm and not has_llm and config.llm is None:
        judged = [*metrics, *_names(judges.get("custom_evaluations"))]
        yield Missing(
            f"the model {judges['generation']} (it judged {listed(judged)})",
            "llm=… in Python, or --config with an llm section",
        )
        return  # without it nothing is embedded either
    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    needing = [
        judge.key
        for judge in JUDGES
        if judge.needs_embeddings
        and is_enabled(config, judge) is not False
        and judge.key in (config.judges.metrics or metrics)
    ]
    if "embedding" in judges and not llm.get("embedding") and needing and not has_embeddings:
        yield Missing(
            f"the embedding model {judges['embedding']} ({needing[0]} needs it)",
            "embeddings=… in Python, or --config with llm.embedding",
        )


def _listed(missing: Sequence[Missing]) -> str:
    return " and ".join(filter(None, [", ".join(each.what for each in missing[:-1]), missing[-1].what]))


def _records(value: object) -> Iterator[Mapping[str, Any]]:
    return (each for each in _list(value) if isinstance(each, Mapping))


def _names(value: object) -> list[str]:
    return [str(each) for each in _list(value)]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
