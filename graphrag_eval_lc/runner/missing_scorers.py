"""What scored a run of a folder and is missing now, so that scoring it again would change or lose scores silently."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.config.evaluation_config import is_enabled
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.judges.registered_functions import all_functions
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.registry.metrics import JUDGES
from graphrag_eval_lc.registry.step_kinds import registered_name
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results
from graphrag_eval_lc.runner.recorded_plugins import giver_of, option_of, otherwise_of
from graphrag_eval_lc.runner.scored_with import Evaluator
from graphrag_eval_lc.texts import listed, plural

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
    """Give what scored a run and is not there now, so that scores would change or go without a word.

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
    """Give the matchers, metrics and evaluators that scored a run and are not there now; see ``missing_scorers``."""
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
            mend=f"Give {them}: {ways}; or {otherwise}.",
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
    """Give the names of the reference steps that somebody's own matcher compared, each with that matcher's name."""
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
    """Give something as missing that a plugin gave, loaded in one of some ways; None where that is not told."""
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
    """Give the models that were passed in Python, of which run.json has no more than their names."""
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


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
