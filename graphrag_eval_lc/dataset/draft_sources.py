"""The sources of a draft: one response per question, the dataset, and the config that names the steps."""

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
    journal_records,
    mistaken_for_responses,
    read_dataset,
    read_responses,
    response_key,
    response_records,
)
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.plugins import registered_now
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results, read_run, recorded_dataset
from graphrag_eval_lc.texts import listed, plural

# The sections of a run's config that name the steps.
_OF_NAMES = ("steps", "retrieval")
# The beginning of the step kinds' names among all that is registered.
_STEP_KIND = "step kind "
Templates = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DraftSource:
    """The sources of a draft.

    Attributes:
        responses: One response per question, by question id.
        templates: The dataset; None if it is not known.
        config: The configuration, for the names of the steps.
        notes: Sentences for the user.
    """

    responses: Mapping[str, Mapping[str, Any]]
    templates: Templates | None
    config: EvaluationConfig
    notes: tuple[str, ...] = ()


def draft_source(
    responses: Responses | str | PathLike[str], dataset: DatasetSource | None, config: ConfigSource
) -> DraftSource:
    """Read the sources of a draft; see ``draft_dataset``."""
    run: Mapping[str, Any] = {}
    notes: list[str] = []
    folder = Path(responses) if isinstance(responses, str | PathLike) and Path(responses).is_dir() else None
    records: Iterable[Mapping[str, Any]]
    if folder is not None:
        run, journal = read_run(folder) or {}, journal_records(folder)
        journal.check(RESPONSES, ResponsesError)
        records = journal.values
        if config is None:
            known = run.get("config") or {}
            config = {key: known[key] for key in _OF_NAMES if known.get(key) is not None}
    elif isinstance(responses, str | PathLike):
        loaded = read_responses(responses)
        records, notes = loaded.records, list(loaded.notes)
    else:
        given = response_records(responses)
        given.check(RESPONSES, ResponsesError, mistaken_for_responses(given.values))
        records = given.values
    chosen = _one_for_each(records)
    notes += _unfinished(run, chosen)
    templates: Templates | None = None
    if dataset is not None:
        read = read_dataset(dataset)
        templates, notes = read.templates, [*notes, *read.notes]
    elif folder is not None:
        templates, of_dataset = _dataset_of(folder, run)
        notes += of_dataset
    notes += _missing_step_kinds(run)
    settings = load_config(config, has_llm=True, has_embeddings=True)  # nothing is judged here
    return DraftSource(chosen, templates, settings, tuple(notes))


def _one_for_each(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return each question's first repeat that did not fail, else its last; the last record of a key counts."""
    by_key = {response_key(record): record for record in records}
    chosen: dict[str, Mapping[str, Any]] = {}
    for (identifier, _), record in sorted(by_key.items(), key=lambda each: each[0][1]):
        if identifier not in chosen or is_error(chosen[identifier]):
            chosen[identifier] = record
    return chosen


def _missing_step_kinds(run: Mapping[str, Any]) -> Iterator[str]:
    """Name the plugins that the run had and that are missing now, if their step kinds would draft steps."""
    registered, plugins = registered_now(), run.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        if isinstance(plugin, Mapping) and isinstance(plugin.get("gives"), list):
            gone = [str(each) for each in plugin["gives"] if str(each) not in registered]
            kinds = [each.removeprefix(_STEP_KIND) for each in gone if each.startswith(_STEP_KIND)]
            if kinds:
                name = str(plugin.get("name"))
                what = f"{plural(len(kinds), 'step kind')} {listed(kinds)} of the plugin {name}"
                yield f"The run had the {what}, which is not given now: --plugin {shlex.quote(name)} gives it."


def _dataset_of(folder: Path, run: Mapping[str, Any]) -> tuple[Templates | None, list[str]]:
    """Return a run's dataset: its file, else the templates and the order of its results."""
    path = recorded_dataset(run, folder)
    if path is not None and os.path.exists(path):  # noqa: PTH110 - a path that no system takes is not there
        loaded = read_dataset(path)
        return loaded.templates, list(loaded.notes)
    lost = "The run names no file of its dataset" if path is None else f"The dataset {path} of the run is not there"
    if (folder / RESULTS_FILE).is_file():
        taken = "the templates and their order are those of its results"
        return _templates_in(iter_results(folder / RESULTS_FILE)), [f"{lost}: {taken}. --dataset FILE gives another."]
    return None, [f"{lost}: all questions stand in one template. --dataset FILE gives it."]


def _templates_in(results: Iterable[Mapping[str, Any]]) -> Templates:
    """Return the questions of results, with their references as they were before the scoring."""
    templates: dict[str, dict[str, Any]] = {}
    for result in results:
        identifier = str(result.get("question_id"))
        question = {"id": identifier, "question_text": result.get("question_text")}
        if result.get("reference_answer") is not None:
            question["reference_answer"] = result["reference_answer"]
        if result.get("reference_steps") is not None:
            question["reference_steps"] = [
                [{key: value for key, value in step.items() if key != "matches"} for step in group]
                for group in result["reference_steps"]
            ]
        templates.setdefault(str(result.get("template_id")), {}).setdefault(identifier, question)
    return [
        {"template_id": template_id, "questions": list(questions.values())}
        for template_id, questions in templates.items()
    ]


def _unfinished(run: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[str]:
    """Say if a run still goes on, or was killed."""
    selected, times = run.get("questions") or {}, run.get("times") or {}
    if times and "finished" not in times:
        answered = sum(1 for identifier in selected if identifier in responses)
        yield f"The run has not ended, or was killed: {answered:,} of its {len(selected):,} questions have a response."
