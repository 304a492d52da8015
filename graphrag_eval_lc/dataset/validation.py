"""Finding all mistakes of a reference dataset and of responses to it, with their places."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset.key_findings import (
    QUESTION_KEYS,
    RESPONSE_KEYS,
    TEMPLATE_KEYS,
    actual_step_findings,
    answer_findings,
    key_findings,
    number_findings,
    response_status_findings,
)
from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    TEMPLATES,
    read_dataset_records,
    read_response_records,
    with_question_ids,
)
from graphrag_eval_lc.dataset.mistaken import mistaken_for_dataset, mistaken_for_responses
from graphrag_eval_lc.dataset.selected_findings import SelectedFindings
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.dataset.step_findings import step_groups_findings
from graphrag_eval_lc.dataset.unknown_questions import nearest_id
from graphrag_eval_lc.dataset.yaml_ids import ChangedId, changed_ids, dataset_ids, response_ids
from graphrag_eval_lc.errors import DatasetError, OptionError, RunFolderError
from graphrag_eval_lc.files.reading import Source, TextFile
from graphrag_eval_lc.files.record_file import Finding, Location, RecordFile, Severity
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import UnknownTools, reference_names
from graphrag_eval_lc.records import Response, Template, is_error
from graphrag_eval_lc.registry.plugins import load_installed_plugins
from graphrag_eval_lc.registry.step_kinds import step_kinds_by_key
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE, read_run
from graphrag_eval_lc.run_folder.journal import journal_lines, key_of

UNANSWERED = "the question has no response"
NO_QUESTION = Finding("the dataset has no question", "Add questions: each has an id and a question_text.")
# The sections of a run's config that say what its tools are called and how their steps are compared.
_OF_STEPS = ("steps", "sparql", "retrieval")


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a dataset or in responses.

    Attributes:
        what: What is wrong.
        hint: How to put it right.
        path: The file; None for records that were made in Python.
        line: The line in the file, from 1.
        question_id: The question that it concerns.
        key: The key that it concerns, such as ``[0].questions[2].id``.
        severity: ``error`` where what is meant cannot be evaluated, ``warning`` where it can.
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
            check the dataset alone. Of a run the last line of each question and repeat counts, and only the questions
            that it asked need a response.
        config: A path, a dict or an EvaluationConfig with which the responses are scored: it names the tools, and
            those that count as retrieval. None for that of the run, where its folder is given.
        template_ids: Only what is wrong with these templates, and with responses to their questions.
        question_ids: Only what is wrong with these questions, and with responses to them.
        answered_only: Only what is wrong with questions that have a response. Responses to questions that the dataset
            does not have are always told.

    Returns:
        The problems, those of the dataset first, in the order of the file; an empty list where there are none. Those
        with the severity ``warning`` do not keep anything from being evaluated as it is meant.

    Raises:
        DatasetError: The dataset cannot be read at all, or lacks an id that was selected.
        OptionError: ``answered_only`` without responses.
        ResponsesError: The responses cannot be read at all.
        RunFolderError: The folder holds no responses, or its run.json cannot be read.
        ConfigError: The config has a key or value that does not exist.
        MatcherError: The check of a registered step kind returns something that is no Finding.

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
    """Return what ``validate_dataset`` gives, and how many of the questions count where only answered ones do."""
    if selection.answered_only and responses is None:
        hint = "Give them too: --responses FILE (responses=...)."
        raise OptionError("answered_only needs responses", key="answered_only", hint=hint)
    folder = _run_folder_of(responses)
    run = {} if folder is None else read_run(folder) or {}
    if config is None:
        config = _config_of(run)
    settings = load_config(config, has_llm=True, has_embeddings=True)  # nothing is judged here
    templates = read_dataset_records(cast("Source", dataset)) if _is_source(dataset) else RecordFile(_listed(dataset))
    records = None
    if responses is not None:
        records = _response_records(cast("Any", responses)) if folder is None else _journal_records(folder)
    selected = SelectedFindings(selection, templates, records)
    problems = _problems(templates, selected.of_dataset(_dataset_findings(templates, settings)))
    if records is not None:
        problems += _problems(records, selected.of_responses(_response_findings(records, templates)))
    if records is not None and mistaken_for_responses(records.values) is None:
        asked = run.get("questions") or None
        without = _questions_without_response(templates, records, asked)
        problems += _problems(templates, selected.of_dataset(without))
        problems += _problems(records, _unknown_tools(templates, selected.responses(records), settings))
    return problems, selected.note()


def _is_source(records: Any) -> bool:
    return isinstance(records, str | PathLike) or hasattr(records, "read")


def _run_folder_of(responses: Any) -> Path | None:
    """Return the folder of the run that wrote the responses; None for other responses."""
    if not isinstance(responses, str | PathLike):
        return None
    path = Path(responses)
    if path.is_dir():
        return path
    return path.parent if path.name == RESPONSES_FILE and (path.parent / RUN_FILE).is_file() else None


def _config_of(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a run's configuration says of steps; None where its run.json does not tell.

    Kinds of steps that are not known here are left out, as the plugin that registers them need not be given.
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


def _journal_records(folder: Path) -> RecordFile:
    """Read the responses of a run: the last line of each key, but not a line that was cut off as the run ended."""
    path = folder / RESPONSES_FILE
    if not path.is_file():
        hint = "Give the folder of a run, or a file of responses."
        raise RunFolderError(f"the folder holds no {RESPONSES_FILE}", path=folder, hint=hint)
    lines = list(journal_lines(path))
    if any(line.record is None and line.has_newline for line in lines):  # no run writes such a line
        return read_response_records(path)
    last = {key_of(line.record): line for line in lines if line.record is not None}
    lines = sorted(last.values(), key=lambda line: line.number)
    return RecordFile(
        [line.record for line in lines], TextFile("", str(path), "jsonl"), [line.number for line in lines]
    )


def _response_records(responses: Source | Mapping[str, Response] | Sequence[Response]) -> RecordFile:
    if _is_source(responses):
        return read_response_records(cast("Source", responses))
    return RecordFile(with_question_ids(responses) if isinstance(responses, Mapping) else _listed(responses))


def _listed(records: Any) -> Any:
    """Return a collection of records other than a mapping as a list."""
    return list(records) if isinstance(records, Iterable) and not isinstance(records, Mapping | bytes) else records


def _problems(records: RecordFile, findings: Iterable[Finding]) -> list[Problem]:
    return [
        Problem(finding.what, finding.hint, **records.place_of(finding), severity=finding.severity)
        for finding in findings
    ]


def _repeated_keys(records: RecordFile) -> Iterator[Finding]:
    for key, line in records.repeated_keys():
        yield Finding(f"the key {key} stands twice, and only the last counts", "Remove one of them.", line=line)


def _dataset_findings(dataset: RecordFile, config: EvaluationConfig) -> Iterator[Finding]:
    yield from _repeated_keys(dataset)
    mistakes = list(dataset.format_findings(TEMPLATES, mistaken_for_dataset(dataset.values)))
    yield from mistakes
    yield from _changed_ids(changed_ids(dataset, dataset_ids(dataset.values)))
    if not mistakes and not any(_questions(dataset.values)):
        yield NO_QUESTION
    yield from _content_findings(dataset, StepViews(config.steps, config.sparql, config.retrieval))


def usage_findings(dataset: RecordFile, views: StepViews) -> Iterator[Finding]:
    """Find what is wrong with a dataset that keeps its format, besides ids that YAML changed."""
    yield from _repeated_keys(dataset)
    if not any(_questions(dataset.values)):
        yield NO_QUESTION
    yield from _content_findings(dataset, views)


def _content_findings(dataset: RecordFile, views: StepViews) -> Iterator[Finding]:
    templates = _mappings(dataset.values)
    template_ids = (((index, "template_id"), template.get("template_id")) for index, template in templates)
    yield from _repeated(template_ids, "two templates have the id {}", "Give each an id of its own.")
    ids = (((*location, "id"), question.get("id")) for location, question in _questions(dataset.values))
    yield from _repeated(ids, "two questions have the id {}", "Give each question an id of its own.")
    yield from _same_texts(_questions(dataset.values))
    for index, template in _mappings(dataset.values):
        yield from key_findings((index,), template, TEMPLATE_KEYS)
    for location, question in _questions(dataset.values):
        yield from key_findings(location, question, QUESTION_KEYS)
        yield from answer_findings(location, question, "reference_answer")
        yield from step_groups_findings(location, question.get("reference_steps"), views)


def _changed_ids(changed: Iterable[ChangedId]) -> Iterator[Finding]:
    for each in changed:
        yield Finding(each.what, each.hint, each.location, severity="warning")


def _questions(values: Any) -> Iterator[tuple[Location, Mapping[str, Any]]]:
    """Yield each question with its location."""
    for index, template in _mappings(values):
        for place, question in _mappings(template.get("questions")):
            yield (index, "questions", place), question


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else []


def _mappings(records: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the records with their indices; a record that is no mapping is a finding of the format."""
    for index, record in enumerate(_list(records)):
        if isinstance(record, Mapping):
            yield index, record


def _repeated(places: Iterable[tuple[Location, Any]], what: str, hint: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for location, identifier in places:
        text = str(identifier)
        if identifier is not None and text in seen:
            yield Finding(what.format(text), hint, location)
        seen.add(text)


def _same_texts(questions: Iterable[tuple[Location, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find questions with one text in two templates; in one template their parameters may differ."""
    first: dict[str, Location] = {}
    for location, question in questions:
        text = question.get("question_text")
        if not isinstance(text, str):
            continue
        earlier = first.setdefault(" ".join(text.split()).casefold(), location)
        if earlier[0] != location[0]:
            yield Finding(
                f"the same question stands in another template, at [{earlier[0]}].questions[{earlier[2]}]",
                "Keep it in one of them.",
                (*location, "question_text"),
                severity="warning",
            )


def _response_findings(responses: RecordFile, dataset: RecordFile) -> Iterator[Finding]:
    yield from _repeated_keys(responses)
    yield from responses.format_findings(RESPONSES, mistaken_for_responses(responses.values))
    identified = _identified(responses)
    known = {str(question.get("id")): None for _, question in _questions(dataset.values)}
    changed = changed_ids(responses, response_ids(responses.values))
    yield from _changed_ids(changed)
    written = {each.written: each for each in changed_ids(dataset, dataset_ids(dataset.values))}
    read = {each.location: each.written for each in changed}
    for location, response in identified:
        if (identifier := str(response["question_id"])) not in known:
            hint = "Check its question_id."
            if identifier in written:
                hint = f"YAML reads that id of the dataset as {written[identifier].read}. {written[identifier].hint}"
            elif (meant := read.get(location)) in known:
                hint = f"The dataset has {meant}, as it is written here. {hint}"
            elif near := nearest_id(identifier, known):
                hint = f"Perhaps it is {near}. {hint}"
            yield Finding("a response to a question that the dataset does not have", hint, location)
    for index, response in _mappings(responses.values):
        yield from key_findings((index,), response, RESPONSE_KEYS)
        yield from response_status_findings((index,), response)
        yield from answer_findings((index,), response, "actual_answer")
        yield from number_findings((index,), response)
        for place, step in _mappings(response.get("actual_steps")):
            yield from actual_step_findings((index, "actual_steps", place), step)
    yield from _answered_twice(identified)


def _answered_twice(identified: Iterable[tuple[Location, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find second responses, unless a run asked again: the first one failed, or the question had another text."""
    failed: dict[str, bool] = {}
    for location, response in identified:
        key = _key_text(response)
        if not failed.get(key, True) and not response.get("superseded"):
            what = f"two responses to the question {key}; the last one counts"
            yield Finding(what, "Remove one of them.", location)
        failed[key] = is_error(response)


def _key_text(response: Mapping[str, Any]) -> str:
    repeat = response.get("repeat")
    return f"{response['question_id']}" + (f" (repeat {repeat})" if repeat not in (None, 1) else "")


def _identified(responses: RecordFile) -> list[tuple[Location, Mapping[str, Any]]]:
    """Return the responses with a question id, and its location."""
    return [
        ((index, "question_id"), response)
        for index, response in _mappings(responses.values)
        if response.get("question_id") is not None
    ]


def _questions_without_response(
    dataset: RecordFile, responses: RecordFile, asked: Collection[str] | None
) -> Iterator[Finding]:
    answered = {str(response["question_id"]) for _, response in _identified(responses)}
    for location, question in _questions(dataset.values):
        if question.get("id") is None or str(question["id"]) in answered:
            continue
        if asked is None or str(question["id"]) in asked:
            yield Finding(UNANSWERED, "Ask the agent, or leave the question out.", location)


def _unknown_tools(dataset: RecordFile, responses: RecordFile, config: EvaluationConfig) -> Iterator[Finding]:
    """Find tools whose name no reference step has, at their first calls."""
    questions = {str(question.get("id")): question for _, question in _questions(dataset.values)}
    last = {_key_text(response): response for _, response in _identified(responses)}
    tools = UnknownTools(config, reference_names(dataset.values))
    for response in last.values():
        tools.add(questions.get(str(response["question_id"]), {}).get("reference_steps"), response)
    for unknown in tools.found():
        hint = f"{unknown.hint[:1].upper()}{unknown.hint[1:]}."
        yield Finding(unknown.what, hint, _first_call(responses, unknown.tools[0]))


def _first_call(responses: RecordFile, tool: str) -> Location:
    for index, response in _mappings(responses.values):
        for place, step in _mappings(response.get("actual_steps")):
            if str(step.get("name")) == tool:
                return index, "actual_steps", place, "name"
    return ()
