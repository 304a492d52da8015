"""Reading reference datasets and recorded responses; their questions, repeats and JSON Schemas."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from graphrag_eval_lc.dataset.ids import ChangedId, changed_ids, changed_ids_note, refuse_collisions
from graphrag_eval_lc.dataset.mistaken import mistaken_for_dataset, mistaken_for_responses
from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, ResponsesError, RunFolderError, warn
from graphrag_eval_lc.files.reading import Source, TextFile
from graphrag_eval_lc.files.record_file import RecordFile, read_records
from graphrag_eval_lc.records import Key, Question, Response, ResponseModel, Template, TemplateModel
from graphrag_eval_lc.run_folder import RESPONSES_FILE
from graphrag_eval_lc.run_folder.journal import journal_lines, key_of

DatasetSource = str | PathLike[str] | Sequence[Template]
Responses = Mapping[str, Response] | Iterable[Response]

_RUN_HINT = "It is that of a run: give the dataset first, then the run, as in score DATASET RUN_DIR."

TEMPLATES = TypeAdapter(list[TemplateModel])
RESPONSES = TypeAdapter(list[ResponseModel])


def load_dataset(source: Source) -> list[Template]:
    r"""Read a reference dataset: a list of templates, each with its questions.

    Args:
        source: A path (.yaml, .yml, .json, .jsonl with one template a line), or a file open for reading.

    Returns:
        The templates in the file's order, every key kept. A template may have no questions.

    A ``GraphRAGEvalWarning`` names ids that YAML reads otherwise than they are written, such as 0123 as 83.

    Raises:
        DatasetError: The file cannot be read or breaks the format; with file, line, question id and key.

    Example:
        >>> import io
        >>> load_dataset(io.StringIO("- template_id: t\n  questions: [{id: q1, question_text: Why?}]"))
        [{'template_id': 't', 'questions': [{'id': 'q1', 'question_text': 'Why?'}]}]
    """
    return _warned(_read_dataset(source)).templates


@dataclass(frozen=True, slots=True)
class LoadedDataset:
    """A reference dataset, and what its user should know of it.

    Attributes:
        templates: The templates.
        changed_ids: The ids that YAML reads otherwise than they are written.
        notes: Sentences for the user.
        path: Its file; None where it was made in Python.
    """

    templates: list[Template]
    changed_ids: tuple[ChangedId, ...] = ()
    notes: tuple[str, ...] = ()
    path: str | None = None


@dataclass(frozen=True, slots=True)
class LoadedResponses:
    """Recorded responses, and what their user should know of them.

    Attributes:
        records: The responses, with all repeats of a question.
        changed_ids: The question ids that YAML reads otherwise than they are written.
        notes: Sentences for the user.
        path: Their file; None where they were made in Python.
    """

    records: list[Response]
    changed_ids: tuple[ChangedId, ...] = ()
    notes: tuple[str, ...] = ()
    path: str | None = None


Loaded = TypeVar("Loaded", LoadedDataset, LoadedResponses)


def _warned(loaded: Loaded) -> Loaded:
    for note in loaded.notes:
        warn(note, stacklevel=3)
    return loaded


def read_dataset(dataset: DatasetSource) -> LoadedDataset:
    """Return a dataset with notes, read from its path or checked.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
    """
    return _read_dataset(dataset) if isinstance(dataset, str | PathLike) else LoadedDataset(checked_dataset(dataset))


def _read_dataset(source: Source) -> LoadedDataset:
    return loaded_dataset(read_dataset_records(source))


def loaded_dataset(dataset: RecordFile) -> LoadedDataset:
    """Return the dataset of a file that was read.

    Raises:
        DatasetError: It breaks the format.
    """
    dataset.check(TEMPLATES, DatasetError, mistaken_for_dataset(dataset.values))
    changed = changed_ids(dataset)
    refuse_collisions(changed, dataset)
    note = changed_ids_note(changed, dataset)
    path = dataset.file.path if dataset.file is not None else None
    return LoadedDataset(_with_text_ids(dataset.values), tuple(changed), (note,) if note else (), path)


def load_responses(source: Source) -> dict[str, Response]:
    """Read recorded responses.

    Args:
        source: A path (.jsonl with one response a line, .json, .yaml: a list of responses, or a mapping of
            question ids to responses), or a file open for reading.

    Returns:
        The responses by question id. Of several for one question the last one counts, as in a run's journal.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    return {str(response["question_id"]): response for response in load_response_records(source)}


def load_response_records(source: Source) -> list[Response]:
    """Read recorded responses as ``load_responses`` does, as a list with all repeats of a question.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    return _warned(_read_responses(source)).records


def read_responses(responses: str | PathLike[str] | Responses) -> LoadedResponses:
    """Return responses as a list with notes, read from their path or as ``response_records`` does.

    Raises:
        ResponsesError: The file cannot be read or breaks the format, or they are neither a mapping nor a list of
            responses with question ids.
    """
    return (
        _read_responses(responses)
        if isinstance(responses, str | PathLike)
        else LoadedResponses(response_records(responses))
    )


def _read_responses(source: Source) -> LoadedResponses:
    responses = read_response_records(source)
    responses.check(RESPONSES, ResponsesError, mistaken_for_responses(responses.values))
    changed = changed_ids(responses)
    note = changed_ids_note(changed, responses)
    path = responses.file.path if responses.file is not None else None
    return LoadedResponses(responses.values, tuple(changed), (note,) if note else (), path)


def read_dataset_records(source: Source) -> RecordFile:
    """Read a reference dataset without checking its records.

    Raises:
        DatasetError: The file cannot be read or parsed.
    """
    _refuse_folder(source, DatasetError, "reference dataset")
    return read_records(source, DatasetError, what="reference dataset")


def _refuse_folder(source: Source, error: type[GraphRAGEvalError], what: str) -> None:
    if not isinstance(source, str | PathLike) or not Path(source).is_dir():
        return
    responses = Path(source) / RESPONSES_FILE
    hint = "Give a file."
    if responses.is_file():
        hint = f"The responses of this run are in {responses}." if error is ResponsesError else _RUN_HINT
    raise error(f"this is a folder, not a {what}", path=source, hint=hint)


def read_response_records(source: Source) -> RecordFile:
    """Read a file of responses as a list, without checking its records.

    Raises:
        ResponsesError: The file cannot be read or parsed.
    """
    _refuse_folder(source, ResponsesError, "file of responses")
    responses = read_records(source, ResponsesError, what="file of responses")
    if isinstance(responses.values, dict):
        if "question_id" in responses.values:
            responses.values = [responses.values]
        else:
            responses.list_by_key("question_id", with_question_ids(responses.values))
    return responses


def journal_records(folder: Path) -> RecordFile:
    """Read the responses of a run: the last line of each key, but not a line that was cut off as the run ended.

    Raises:
        RunFolderError: The folder has no responses.
        ResponsesError: A line within the file cannot be parsed.
    """
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


def with_question_ids(by_id: Mapping[Any, Any]) -> list[Any]:
    """Return responses by question id as a list of responses with their question ids, unchecked."""
    return [
        {"question_id": str(key), **response} if isinstance(response, Mapping) else response
        for key, response in by_id.items()
    ]


def response_records(responses: Responses) -> list[Response]:
    """Return responses as a list, each with its question id.

    Raises:
        ResponsesError: They are neither a mapping nor a list of responses with question ids.
    """
    if isinstance(responses, Mapping):
        return [cast("Response", each) for each in with_question_ids(responses) if isinstance(each, Mapping)]
    if isinstance(responses, str | bytes) or not isinstance(responses, Iterable):
        raise ResponsesError(
            f"responses cannot be read from {type(responses).__name__}",
            hint="Give a dict by question id or a list; load_responses(path) reads a file.",
        )
    records = list(responses)
    if mistaken := mistaken_for_responses(records):
        raise ResponsesError(mistaken.what, hint=mistaken.hint)
    for index, response in enumerate(records):
        if not isinstance(response, Mapping) or response.get("question_id") is None:
            raise ResponsesError(
                "a response without question_id", key=f"[{index}]", hint="Add the id of the question that it answers."
            )
    return records


def checked_dataset(values: Any) -> list[Template]:
    """Return templates that were made in Python as a list, after checking their format.

    Raises:
        DatasetError: They break the format; with the first mistake, and how many more there are.
    """
    if isinstance(values, str | PathLike):
        what = f"a list of templates is needed, not the path {os.fspath(values)!r:.80}"
        raise DatasetError(what, hint="load_dataset(path) reads a file.")
    templates = list(values) if isinstance(values, Iterable) and not isinstance(values, bytes | dict) else values
    RecordFile(templates).check(TEMPLATES, DatasetError, mistaken_for_dataset(templates))
    return cast("list[Template]", templates)


def templates_of(dataset: DatasetSource) -> list[Template]:
    """Return the templates of a dataset, read from its path or checked.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
    """
    return _warned(read_dataset(dataset)).templates


def questions_of(dataset: Iterable[Template]) -> Iterable[tuple[Template, Question]]:
    """Yield each question of a dataset with its template, in the dataset's order."""
    for template in dataset:
        for question in template.get("questions") or ():
            yield template, question


def response_key(response: Mapping[str, Any]) -> Key:
    """Return the key of a response; without a repeat from 1 it is the first.

    Example:
        >>> response_key({"question_id": "q1", "repeat": 2}), response_key({"question_id": "q1"})
        (('q1', 2), ('q1', 1))
    """
    repeat = response.get("repeat")
    return str(response["question_id"]), repeat if isinstance(repeat, int) and repeat > 0 else 1


def _with_text_ids(templates: list[dict[str, Any]]) -> list[Template]:
    for template in templates:
        template["template_id"] = str(template["template_id"])
        for question in template.get("questions") or ():
            question["id"] = str(question["id"])
    return cast("list[Template]", templates)


SCHEMA_PATHS = {name: Path(__file__).parent / f"{name}.schema.json" for name in ("dataset", "responses")}

_SCHEMA_SOURCES: dict[str, tuple[TypeAdapter[Any], str]] = {
    "dataset": (TEMPLATES, "A reference dataset in graphrag-eval's format: templates with their questions."),
    "responses": (RESPONSES, "Responses of an agent in graphrag-eval's format."),
}


def format_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a format.

    Args:
        name: ``dataset`` or ``responses``.

    Example:
        >>> format_schema("dataset")["type"]
        'array'
    """
    adapter, description = _SCHEMA_SOURCES[name]
    schema = _without_noise(adapter.json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "description": description, **schema}


def format_schema_text(name: str) -> str:
    """Return the JSON Schema of a format as the text of its file."""
    return json.dumps(format_schema(name), indent=2, ensure_ascii=False) + "\n"


def _without_noise(schema: Any) -> Any:
    """Return a schema without pydantic's titles and null defaults, which editors would show beside the descriptions."""
    if isinstance(schema, list):
        return [_without_noise(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_noise(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
