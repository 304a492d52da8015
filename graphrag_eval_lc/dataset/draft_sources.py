"""The sources of a draft: one response a question, the dataset, and the config that names the steps."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    DatasetSource,
    Responses,
    read_dataset,
    read_responses,
    response_key,
    response_records,
    with_question_ids,
)
from graphrag_eval_lc.errors import ResponsesError, RunFolderError
from graphrag_eval_lc.files.record_file import RecordFile
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.plugins import registered_now
from graphrag_eval_lc.run_folder import (
    RESPONSES_FILE,
    RESULTS_FILE,
    iter_responses,
    iter_results,
    read_run,
    recorded_dataset,
)
from graphrag_eval_lc.texts import listed, plural

# The sections of a run's config that name the steps.
_OF_NAMES = ("steps", "retrieval")
# The beginning of the step kinds' names among all that is registered.
_STEP_KIND = "step kind "


@dataclass(frozen=True, slots=True)
class DraftSource:
    """The sources of a draft.

    Attributes:
        responses: One response for each question, by question id.
        templates: The dataset; None where it is not known.
        config: The configuration, for the names of the steps.
        notes: Sentences for the user.
    """

    responses: Mapping[str, Mapping[str, Any]]
    templates: Sequence[Mapping[str, Any]] | None
    config: EvaluationConfig
    notes: tuple[str, ...] = ()


def draft_source(
    responses: Responses | str | PathLike[str], dataset: DatasetSource | None, config: ConfigSource
) -> DraftSource:
    """Read the sources of a draft; see ``draft_dataset``."""
    notes: list[str] = []
    if isinstance(responses, str | PathLike):
        path = Path(responses)
        if path.is_dir():
            return _of_folder(path, dataset, config)
        loaded = read_responses(path)
        records: Iterable[Mapping[str, Any]] = loaded.records
        notes += loaded.notes
    else:
        records = _checked(
            with_question_ids(responses) if isinstance(responses, Mapping) else list(response_records(responses))
        )
    templates, of_dataset = (None, []) if dataset is None else _read(dataset)
    return DraftSource(_one_for_each(records), templates, _config(config), (*notes, *of_dataset))


def _checked(records: list[Any], path: Path | None = None) -> list[Any]:
    try:
        RecordFile(records).check(RESPONSES, ResponsesError)
    except ResponsesError as problem:
        if path is None:
            raise
        raise ResponsesError(
            problem.what, path=path, question_id=problem.question_id, key=problem.key, hint=problem.hint
        ) from None
    return records


def _config(config: ConfigSource) -> EvaluationConfig:
    return load_config(config, has_llm=True, has_embeddings=True)  # nothing is judged here


def _one_for_each(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return each question's first repeat that did not fail, else its last; the last record of a key counts."""
    by_key = {response_key(record): record for record in records}
    chosen: dict[str, Mapping[str, Any]] = {}
    for (identifier, _), record in sorted(by_key.items(), key=lambda each: each[0][1]):
        if identifier not in chosen or is_error(chosen[identifier]):
            chosen[identifier] = record
    return chosen


def _of_folder(folder: Path, dataset: DatasetSource | None, config: ConfigSource) -> DraftSource:
    run = read_run(folder)
    path = folder / RESPONSES_FILE
    if not path.is_file():
        what = "the folder holds no run" if run is None else f"the folder holds no {RESPONSES_FILE}"
        raise RunFolderError(what, path=folder, hint="Give the folder of a run, or a file of responses.")
    responses = _one_for_each(_checked(list(iter_responses(path)), path))
    templates, notes = _read(dataset) if dataset is not None else _dataset_of(folder, run or {})
    if config is None:
        known = (run or {}).get("config") or {}
        config = {key: known[key] for key in _OF_NAMES if known.get(key) is not None}
    settings = _config(config)
    notes = [*_unfinished(run or {}, responses), *notes, *_missing_step_kinds(run or {})]
    return DraftSource(responses, templates, settings, tuple(notes))


def _missing_step_kinds(run: Mapping[str, Any]) -> Iterator[str]:
    """Say which plugins are not given whose step kinds the run had, and which would draft their steps."""
    registered, plugins = registered_now(), run.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        if isinstance(plugin, Mapping) and isinstance(plugin.get("gives"), list):
            gone = [str(each) for each in plugin["gives"] if str(each) not in registered]
            kinds = [each.removeprefix(_STEP_KIND) for each in gone if each.startswith(_STEP_KIND)]
            if kinds:
                name = str(plugin.get("name"))
                what = f"{plural(len(kinds), 'step kind')} {listed(kinds)} of the plugin {name}"
                yield f"The run had the {what}, which is not given now: --plugin {shlex.quote(name)} gives it."


def _read(dataset: DatasetSource) -> tuple[Sequence[Mapping[str, Any]] | None, list[str]]:
    loaded = read_dataset(dataset)
    return loaded.templates, list(loaded.notes)


def _dataset_of(folder: Path, run: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]] | None, list[str]]:
    """Return a run's dataset: its file, else the templates and the order of its results."""
    path = recorded_dataset(run, folder)
    if path is not None and os.path.exists(path):  # noqa: PTH110 - a path that no system takes is not there
        return _read(path)
    lost = "The run names no file of its dataset" if path is None else f"The dataset {path} of the run is not there"
    if (folder / RESULTS_FILE).is_file():
        taken = "the templates and their order are those of its results"
        return _templates_in(iter_results(folder / RESULTS_FILE)), [f"{lost}: {taken}. --dataset FILE gives another."]
    return None, [f"{lost}: all questions stand in one template. --dataset FILE gives it."]


def _templates_in(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    templates: dict[str, dict[str, Any]] = {}
    for result in results:
        questions = templates.setdefault(str(result.get("template_id")), {})
        identifier = str(result.get("question_id"))
        asked = {"id": identifier, "question_text": result.get("question_text")}
        questions.setdefault(identifier, {**asked, **_references_in(result)})
    return [
        {"template_id": template_id, "questions": list(questions.values())}
        for template_id, questions in templates.items()
    ]


def _references_in(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the references of a result, without what scoring wrote into them."""
    references = {key: result[key] for key in ("reference_answer", "reference_steps") if result.get(key) is not None}
    if "reference_steps" in references:
        references["reference_steps"] = [
            [{key: value for key, value in step.items() if key != "matches"} for step in group]
            for group in references["reference_steps"]
        ]
    return references


def _unfinished(run: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[str]:
    """Say if a run still goes on, or was killed."""
    selected, times = run.get("questions") or {}, run.get("times") or {}
    if times and "finished" not in times:
        answered = sum(1 for identifier in selected if identifier in responses)
        yield f"The run has not ended, or was killed: {answered:,} of its {len(selected):,} questions have a response."
