"""Loads reference datasets and recorded responses from files or from Python, and checks their format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from pydantic import TypeAdapter

from graphrag_eval_lc.dataset.ids import ChangedId, changed_ids, changed_ids_note, refuse_collisions
from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, ResponsesError, RunFolderError, warn
from graphrag_eval_lc.files.reading import Source, TextFile
from graphrag_eval_lc.files.record_file import Finding, RecordFile, read_records
from graphrag_eval_lc.records import Key, Question, Response, ResponseModel, Template, TemplateModel
from graphrag_eval_lc.run_folder import RESPONSES_FILE
from graphrag_eval_lc.run_folder.journal import journal_lines, key_of

DatasetSource = str | PathLike[str] | Sequence[Template]
Responses = Mapping[str, Response] | Iterable[Response]

_RUN_HINT = "It is a run folder: name the dataset first, then the run, as in score DATASET RUN_DIR."

_TABLES: Final = (".csv", ".tsv", ".parquet")
_ORDER: Final = "If both are given, the dataset comes first: score DATASET RESPONSES."
_OF_RESPONSES: Final = ("question_id", "actual_answer", "actual_steps")
_OF_RESULTS: Final = ("template_id", "status")
# The keys of older Talk2PowerSystem datasets, and their present names.
_OLD_KEYS: Final = {
    "nl_question": "question_text",
    "expected_steps": "reference_steps",
    "expected_answer": "reference_answer",
}

TEMPLATES = TypeAdapter(list[TemplateModel])
RESPONSES = TypeAdapter(list[ResponseModel])


@dataclass(frozen=True, slots=True)
class LoadedDataset:
    """A reference dataset, and notes on it for the user."""

    templates: list[Template]
    changed_ids: tuple[ChangedId, ...] = ()  # the ids whose text YAML changed
    notes: tuple[str, ...] = ()  # sentences for the user
    path: str | None = None  # its file; None if it was made in Python


@dataclass(frozen=True, slots=True)
class LoadedResponses:
    """Recorded responses with all repeats of a question, and notes for the user; fields as in LoadedDataset."""

    records: list[Response]
    changed_ids: tuple[ChangedId, ...] = ()
    notes: tuple[str, ...] = ()
    path: str | None = None


def load_dataset(source: DatasetSource | Source) -> list[Template]:
    r"""Read a reference dataset: a list of templates, each with its questions.

    Args:
        source: A path (.yaml, .yml, .json, or .jsonl with one template a line), a file open for reading, or templates
            made in Python, which are checked.

    Returns:
        The templates in the file's order, every key kept. A template may have no questions.

    A ``GraphRAGEvalWarning`` names the ids that YAML changed, such as 0123, which it reads as 83.

    Raises:
        DatasetError: The file cannot be read or breaks the format; with file, line, question id and key.

    Example:
        >>> import io
        >>> load_dataset(io.StringIO("- template_id: t\n  questions: [{id: q1, question_text: Why?}]"))
        [{'template_id': 't', 'questions': [{'id': 'q1', 'question_text': 'Why?'}]}]
    """
    loaded = read_dataset(source)
    for note in loaded.notes:
        warn(note, stacklevel=2)
    return loaded.templates


def load_responses(source: Source) -> dict[str, Response]:
    """Read recorded responses.

    Args:
        source: A path (.jsonl with one response a line, .json, .yaml: a list of responses, or a mapping of
            question ids to responses), or a file open for reading.

    Returns:
        The responses by question id. If there are several for a question, the last one counts, as in a run's journal.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    loaded = read_responses(source)
    for note in loaded.notes:
        warn(note, stacklevel=2)
    return {str(response["question_id"]): response for response in loaded.records}


def read_dataset(dataset: DatasetSource | Source) -> LoadedDataset:
    """Load and check a dataset, and return it with notes.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
    """
    return loaded_dataset(dataset_records(dataset))


def loaded_dataset(dataset: RecordFile) -> LoadedDataset:
    """Check records and return them as a dataset."""
    dataset.check(TEMPLATES, DatasetError, mistaken_for_dataset(dataset.values))
    if dataset.file is None:
        return LoadedDataset(dataset.values)
    changed = changed_ids(dataset)
    refuse_collisions(changed, dataset)
    note = changed_ids_note(changed, dataset)
    for template in dataset.values:
        template["template_id"] = str(template["template_id"])
        for question in template.get("questions") or ():
            question["id"] = str(question["id"])
    return LoadedDataset(dataset.values, tuple(changed), (note,) if note else (), dataset.file.path)


def read_responses(responses: Responses | Source) -> LoadedResponses:
    """Load and check responses, and return them as a list with notes. Responses made in Python need question ids.

    Raises:
        ResponsesError: The file cannot be read or breaks the format, or they are not a mapping or a list of
            responses with question ids.
    """
    if not is_source(responses):
        return LoadedResponses(_given_responses(responses))
    records = response_records(responses)
    records.check(RESPONSES, ResponsesError, mistaken_for_responses(records.values))
    changed = changed_ids(records)
    note = changed_ids_note(changed, records)
    path = records.file.path if records.file is not None else None
    return LoadedResponses(records.values, tuple(changed), (note,) if note else (), path)


def _given_responses(responses: Any) -> list[Response]:
    """Return responses that were made in Python, each with its question id."""
    if isinstance(responses, Mapping):
        return [cast("Response", each) for each in with_question_ids(responses) if isinstance(each, Mapping)]
    if isinstance(responses, str | bytes) or not isinstance(responses, Iterable):
        what = f"responses cannot be read from {type(responses).__name__}"
        raise ResponsesError(what, hint="Give a dict by question id or a list; load_responses(path) reads a file.")
    records = list(responses)
    if mistaken := mistaken_for_responses(records):
        raise ResponsesError(mistaken.what, hint=mistaken.hint)
    for index, response in enumerate(records):
        if not isinstance(response, Mapping) or response.get("question_id") is None:
            hint = "Add the id of the question that it answers."
            raise ResponsesError("a response without question_id", key=f"[{index}]", hint=hint)
    return records


def is_source(records: Any) -> bool:
    """Return whether the argument is a path or an open file, as opposed to records made in Python."""
    return isinstance(records, str | PathLike) or hasattr(records, "read")


def dataset_records(dataset: DatasetSource | Source) -> RecordFile:
    """Return a dataset from a path, an open file or Python, without checking its templates."""
    if not is_source(dataset):
        return RecordFile(_listed(dataset))
    _refuse_folder(dataset, DatasetError, "reference dataset")
    if isinstance(dataset, str | PathLike) and Path(dataset).suffix.lower() in _TABLES and Path(dataset).is_file():
        hint = f"Import it: graphrag-eval-lc dataset import {Path(dataset)} -o questions.yaml."
        raise DatasetError("this is a table, not a reference dataset", path=dataset, hint=hint)
    return read_records(cast("Source", dataset), DatasetError, what="reference dataset")


def response_records(responses: Responses | Source) -> RecordFile:
    """Return responses from a path, an open file or Python as a list, without checking them."""
    if not is_source(responses):
        return RecordFile(with_question_ids(responses) if isinstance(responses, Mapping) else _listed(responses))
    _refuse_folder(responses, ResponsesError, "file of responses")
    records = read_records(cast("Source", responses), ResponsesError, what="file of responses")
    if isinstance(records.values, dict):
        if "question_id" in records.values:
            records.values = [records.values]
        else:
            records.list_by_key("question_id", with_question_ids(records.values))
    return records


def _listed(records: Any) -> Any:
    """Convert a collection of records to a list; mappings are returned unchanged."""
    return list(records) if isinstance(records, Iterable) and not isinstance(records, Mapping | bytes) else records


def _refuse_folder(source: Any, error: type[GraphRAGEvalError], what: str) -> None:
    if not isinstance(source, str | PathLike) or not Path(source).is_dir():
        return
    responses = Path(source) / RESPONSES_FILE
    hint = "Give a file."
    if responses.is_file():
        hint = f"The responses of this run are in {responses}." if error is ResponsesError else _RUN_HINT
    raise error(f"this is a folder, not a {what}", path=source, hint=hint)


def journal_records(folder: Path) -> RecordFile:
    """Read the responses of a run: for each key the last line. A line that a kill cut off is skipped."""
    path = folder / RESPONSES_FILE
    if not path.is_file():
        hint = "Give the folder of a run, or a file of responses."
        raise RunFolderError(f"the folder holds no {RESPONSES_FILE}", path=folder, hint=hint)
    lines = list(journal_lines(path))
    if any(line.record is None and line.has_newline for line in lines):  # no run writes such a line
        return response_records(path)
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


def old_keys(values: Any) -> Finding | None:
    """Return the mistake, and how to convert the dataset, if questions have the keys of older datasets."""
    templates = [each for each in (values if isinstance(values, list) else [values]) if isinstance(each, Mapping)]
    inside = [each for template in templates if isinstance(part := template.get("questions"), list) for each in part]
    # Records with nl_question alone can be imported.
    questions = [*inside, *(each for each in templates if "expected_steps" in each)]
    keys = {key for question in questions if isinstance(question, Mapping) for key in question}
    found = {old: new for old, new in _OLD_KEYS.items() if old in keys and new not in keys}
    if found.keys() <= {"expected_answer"}:  # it may be the user's own key
        return None
    renamed = ", ".join(f"{old} to {new}" for old, new in found.items())
    return Finding(f"the questions have older keys: {', '.join(found)}", f"Rename {renamed}, in the whole file.")


def mistaken_for_dataset(values: Any) -> Finding | None:
    """Return what is wrong if responses, results or older keys are given as a dataset; None if they are not."""
    if (found := old_keys(values)) is not None:
        return found
    records = list(values.values())[:1] if isinstance(values, Mapping) and "template_id" not in values else values
    first = _first_of(records)
    if "questions" in first or not any(key in first for key in _OF_RESPONSES):
        return None
    what = "results" if all(key in first for key in _OF_RESULTS) else "responses"
    return Finding(f"these are {what}, not a reference dataset", _ORDER)


def mistaken_for_responses(values: Any) -> Finding | None:
    """Return what is wrong if a dataset is given as responses; None if it is not."""
    first = _first_of(values)
    is_template = "template_id" in first and "question_id" not in first
    return Finding("this is a reference dataset, not responses", _ORDER) if is_template else None


def _first_of(values: Any) -> Mapping[str, Any]:
    first = values[0] if isinstance(values, list | tuple) and values else None
    return first if isinstance(first, Mapping) else {}


def questions_of(dataset: Iterable[Template]) -> Iterable[tuple[Template, Question]]:
    """Yield each question of a dataset with its template, in the dataset's order."""
    for template in dataset:
        for question in template.get("questions") or ():
            yield template, question


def response_key(response: Mapping[str, Any]) -> Key:
    """Return the key of a response: question id and repeat. Without a repeat of 1 or more, the repeat is 1.

    Example:
        >>> response_key({"question_id": "q1", "repeat": 2}), response_key({"question_id": "q1"})
        (('q1', 2), ('q1', 1))
    """
    repeat = response.get("repeat")
    return str(response["question_id"]), repeat if isinstance(repeat, int) and repeat > 0 else 1


SCHEMA_PATHS = {name: Path(__file__).parent / f"{name}.schema.json" for name in ("dataset", "responses")}
