"""Validates a dataset and responses to it: lists all mistakes with place and fix, or raises the first error."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset.findings import (
    changed_id_findings,
    dataset_findings,
    key_text_of,
    questions_in,
    repeated_keys,
    response_findings,
)
from graphrag_eval_lc.dataset.ids import changed_ids, mappings
from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    TEMPLATES,
    DatasetSource,
    LoadedDataset,
    dataset_records,
    journal_records,
    loaded_dataset,
    mistaken_for_dataset,
    mistaken_for_responses,
    response_records,
)
from graphrag_eval_lc.dataset.rules import found
from graphrag_eval_lc.dataset.selection import Selection, answered_note
from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.files.reading import Source
from graphrag_eval_lc.files.record_file import Finding, Location, RecordFile, Severity
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry.plugins import load_installed_plugins
from graphrag_eval_lc.registry.step_kinds import step_kind_for, step_kinds_by_key
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE, read_run
from graphrag_eval_lc.texts import counted, plural

# The sections of a run's config that map the names of tools and say how steps are compared.
_OF_STEPS = ("steps", "sparql", "retrieval")
_QUESTION_DEPTH = len(("template", "questions", "question"))
_OF_OUTPUT = ((), ("output",), ("output_media_type",))
_STEP_DEPTH = len(("template", "questions", "question", "reference_steps", "group", "step"))


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a dataset or in responses.

    Attributes:
        what: What is wrong.
        hint: How to fix it.
        path: The file; None for records that were made in Python.
        line: The line in the file, from 1.
        question_id: The question that it concerns.
        key: The key that it concerns, such as ``[0].questions[2].id``.
        severity: ``error`` if something cannot be evaluated as intended, ``warning`` if it can.
    """

    what: str
    hint: str
    path: str | None = None
    line: int | None = None
    question_id: str | None = None
    key: str | None = None
    severity: Severity = "error"

    def __str__(self) -> str:
        return str(
            DatasetError(
                self.what, path=self.path, line=self.line, question_id=self.question_id, key=self.key, hint=self.hint
            )
        )


def validate_dataset(
    dataset: Source | Sequence[Template],
    responses: Source | Mapping[str, Response] | Sequence[Response] | None = None,
    config: ConfigSource = None,
    *,
    template_ids: Sequence[str] = (),
    question_ids: Sequence[str] = (),
    answered_only: bool = False,
) -> list[Problem]:
    """Find all mistakes in a dataset and in responses to it.

    Args:
        dataset: A path, an open file, or a list of templates.
        responses: The folder of a run, a path, an open file, responses by question id, or a list of responses; None to
            check the dataset alone. For a run, the last line of each question and repeat counts, and only the
            questions that it asked need a response.
        config: A path, a dict or an EvaluationConfig with which the responses are scored: it names the tools, and
            those that count as retrieval. None: the run's config if its folder is given, otherwise the defaults.
        template_ids: Report only problems of these templates, and of responses to their questions.
        question_ids: Report only problems of these questions, and of responses to them.
        answered_only: Report only problems of questions that have a response. Responses to questions that the dataset
            does not have are always reported.

    Returns:
        The problems, those of the dataset first: mistakes of the format, then the others in the order of the file. An
        empty list if there are none. Problems with the severity ``warning`` do not change what is evaluated.

    Raises:
        DatasetError: The dataset cannot be read at all, or lacks a selected id.
        OptionError: ``answered_only`` without responses.
        ResponsesError: The responses cannot be read at all.
        RunFolderError: The folder holds no responses, or its run.json cannot be read.
        ConfigError: The config has a key or value that does not exist.
        MatcherError: The check of a registered step kind returns something other than a Finding.

    Example:
        >>> [problem.what for problem in validate_dataset([{"template_id": "t", "questions": [{"id": "q"}]}])]
        ['the key question_text is missing']
    """
    selection = Selection(template_ids=template_ids, question_ids=question_ids, answered_only=answered_only)
    return validated(dataset, responses, config, selection)[0]


def validated(
    dataset: Source | Sequence[Template],
    responses: Source | Mapping[str, Response] | Sequence[Response] | None,
    config: ConfigSource,
    selection: Selection,
) -> tuple[list[Problem], str | None]:
    """Return what ``validate_dataset`` returns, and with ``answered_only`` a note on how many questions are checked."""
    if selection.answered_only and responses is None:
        hint = "Give them too: --responses FILE (responses=...)."
        raise OptionError("answered_only needs responses", key="answered_only", hint=hint)
    folder = _run_folder_of(responses)
    run = {} if folder is None else read_run(folder) or {}
    settings = load_config(_config_of(run) if config is None else config, has_llm=True, has_embeddings=True)
    templates = dataset_records(dataset)
    records = None
    if responses is not None:
        records = response_records(responses) if folder is None else journal_records(folder)
    selected = _FindingFilter(selection, templates, records)
    mistakes = list(templates.format_findings(TEMPLATES, mistaken_for_dataset(templates.values)))
    views = StepViews(settings.steps, settings.sparql, settings.retrieval)
    findings = [*mistakes, *changed_id_findings(changed_ids(templates))]
    findings += dataset_findings(templates, views, keeps_format=not mistakes)
    problems = _problems(templates, filter(selected.keeps_dataset_finding, findings))
    if records is None:
        return problems, None
    mistaken = mistaken_for_responses(records.values)
    findings = [*repeated_keys(records), *records.format_findings(RESPONSES, mistaken)]
    findings += response_findings(records, templates)
    problems += _problems(records, filter(selected.keeps_response_finding, findings))
    if mistaken is None:
        unanswered = _unanswered(templates, records, run.get("questions") or None)
        problems += _problems(templates, filter(selected.keeps_dataset_finding, unanswered))
        problems += _problems(records, _unknown_tools(templates, selected.responses(), settings))
    return problems, selected.note()


class _FindingFilter:
    """Decides which findings are reported: those of the selected questions, their templates, and the whole file."""

    def __init__(self, selection: Selection, dataset: RecordFile, responses: RecordFile | None) -> None:
        questions = [
            (place, template.get("template_id"), str(question.get("id")))
            for place, template, question in questions_in(dataset)
        ]
        templates = {index: str(template.get("template_id")) for index, template in mappings(dataset.values)}
        selection.refuse_unknown(templates.values(), [identifier for _, _, identifier in questions])
        self._selection = selection
        self._records = responses.values if responses is not None and isinstance(responses.values, list) else []
        self._known = {identifier for _, _, identifier in questions}
        has_id = selection.by_id()
        self._by_id = {identifier for _, template, identifier in questions if has_id(template, identifier)}
        answered = {str(response.get("question_id")) for _, response in mappings(self._records)}
        self._ids = self._by_id & answered if selection.answered_only else self._by_id
        self._places = {place for place, _, identifier in questions if identifier in self._ids}
        named = () if selection.question_ids else selection.template_ids  # a named template may have no questions
        self._templates = {place[0] for place in self._places}
        self._templates |= {index for index, identifier in templates.items() if identifier in named}

    def keeps_dataset_finding(self, finding: Finding) -> bool:
        location = finding.location
        if self._selection.is_all or not location:
            return True
        is_in_question = len(location) >= _QUESTION_DEPTH and location[1] == "questions"
        return location[:_QUESTION_DEPTH] in self._places if is_in_question else location[0] in self._templates

    def keeps_response_finding(self, finding: Finding) -> bool:
        index = finding.location[0] if finding.location else None
        return self._selection.is_all or not isinstance(index, int) or self._keeps_response(self._records[index])

    def _keeps_response(self, response: Any) -> bool:
        identifier = response.get("question_id") if isinstance(response, Mapping) else None
        return identifier is None or str(identifier) in self._ids or str(identifier) not in self._known

    def responses(self) -> list[Any]:
        """Return the responses, with None for each that is not reported on, so that positions stay the same."""
        return [each if self._selection.is_all or self._keeps_response(each) else None for each in self._records]

    def note(self) -> str | None:
        """Return a sentence on how many questions have a response, if only these are checked; otherwise None."""
        return answered_note(len(self._ids), len(self._by_id), "checked") if self._selection.answered_only else None


def _run_folder_of(responses: Any) -> Path | None:
    """Return the folder of the run that wrote the responses; None for other responses."""
    if not isinstance(responses, str | PathLike):
        return None
    path = Path(responses)
    if path.is_dir():
        return path
    return path.parent if path.name == RESPONSES_FILE and (path.parent / RUN_FILE).is_file() else None


def _config_of(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the sections of a run's config that are about steps; None if its run.json has none.

    Unknown step kinds are left out, because the plugin that registers them may not be loaded.
    """
    config = run.get("config")
    if not isinstance(config, Mapping):
        return None
    sections = {key: config[key] for key in _OF_STEPS if isinstance(config.get(key), Mapping)}
    kinds = sections.get("steps", {}).get("kinds")
    if isinstance(kinds, Mapping):
        load_installed_plugins()
        known = step_kinds_by_key()
        sections["steps"] = {**sections["steps"], "kinds": {name: key for name, key in kinds.items() if key in known}}
    return sections


def _problems(records: RecordFile, findings: Iterable[Finding]) -> list[Problem]:
    return [Problem(each.what, each.hint, **records.place_of(each), severity=each.severity) for each in findings]


def _unanswered(dataset: RecordFile, responses: RecordFile, asked: Any) -> Iterator[Finding]:
    answered = {str(response.get("question_id")) for _, response in mappings(responses.values)}
    for location, _, question in questions_in(dataset):
        identifier = question.get("id")
        if identifier is not None and str(identifier) not in answered and (asked is None or str(identifier) in asked):
            yield found("unanswered", location)


def _unknown_tools(dataset: RecordFile, responses: list[Any], config: EvaluationConfig) -> Iterator[Finding]:
    """Find tools whose name no reference step has; the finding is at the tool's first call."""
    references = {str(question.get("id")): question.get("reference_steps") for _, _, question in questions_in(dataset)}
    tools, first = UnknownTools(config, reference_names(dataset.values)), dict[str, Location]()
    last = {}
    for index, response in mappings(responses):
        if response.get("question_id") is not None:
            last[key_text_of(response)] = response
        for place, step in mappings(response.get("actual_steps")):
            first.setdefault(str(step.get("name")), (index, "actual_steps", place, "name"))
    for response in last.values():
        tools.add(references.get(str(response["question_id"])), response)
    for unknown in tools.found():
        hint = f"{unknown.hint[:1].upper()}{unknown.hint[1:]}."
        location = first.get(unknown.tools[0], ()) if unknown.tools else ()
        yield found("unknown_tool", location, what=unknown.what, hint=hint)


# --- before questions are asked or scored ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedDataset:
    """A dataset whose format is right, and the first error in it, if any."""

    loaded: LoadedDataset  # the dataset; its notes say how many warnings there are
    problem: DatasetError | None = None  # the first error that validate finds, or None
    # whether all errors are in steps without a known kind. The agent's module, which is loaded later, may register it
    may_lack_kinds: bool = False

    def usable(self, *, lacks_kinds: bool = False) -> LoadedDataset:
        """Return the dataset, or raise its error; ``lacks_kinds`` ignores errors that another step kind may remove."""
        if self.problem is not None and not (lacks_kinds and self.may_lack_kinds):
            raise self.problem
        return self.loaded


def check_dataset(dataset: DatasetSource, config: EvaluationConfig, config_source: object = None) -> CheckedDataset:
    """Read a dataset and check it as ``validate`` does."""
    records = dataset_records(dataset)
    loaded = loaded_dataset(records)
    views = StepViews(config.steps, config.sparql, config.retrieval)
    errors: list[Finding] = []
    warnings = 0
    for finding in dataset_findings(records, views):
        if finding.severity == "error":
            errors.append(finding)
        else:
            warnings += 1
    command = _command(loaded.path, config_source)
    if warnings:  # not counting the changed ids, which have their own note
        warnings += len(loaded.changed_ids)
        note = f"{counted(warnings, 'warning')} in the dataset: {command} {plural(warnings, 'shows it', 'lists them')}"
        loaded = replace(loaded, notes=(*loaded.notes, note))
    if not errors:
        return CheckedDataset(loaded)
    hint = errors[0].hint
    if more := len(errors) - 1:
        hint += f" ({counted(more, 'more problem')}: {command} lists all)"
    problem = DatasetError(errors[0].what, hint=hint, **records.place_of(errors[0]))
    return CheckedDataset(loaded, problem, all(_may_lack_kind(each, records, views) for each in errors))


def _command(path: str | None, config_source: object) -> str:
    if path is None:
        return "validate_dataset"
    config = ["--config", str(config_source)] if isinstance(config_source, str | PathLike) else []
    return shlex.join(["graphrag-eval-lc", "validate", path, *config])


def _may_lack_kind(finding: Finding, records: RecordFile, views: StepViews) -> bool:
    """Return whether a finding is about the output of a reference step without a known kind."""
    location = finding.location
    if len(location) < _STEP_DEPTH or location[3] != "reference_steps" or location[_STEP_DEPTH:] not in _OF_OUTPUT:
        return False
    step: Any = records.values
    for part in location[:_STEP_DEPTH]:
        step = step[part]
    return views.kind_of(views.reference_view(step)) is step_kind_for(None, None)
