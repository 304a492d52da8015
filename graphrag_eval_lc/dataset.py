"""Reading reference datasets and recorded responses from YAML, JSON and JSON Lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, cast

from pydantic import TypeAdapter

from graphrag_eval_lc.errors import DatasetError, ResponsesError
from graphrag_eval_lc.reading import Source
from graphrag_eval_lc.record_files import RecordFile, read_records
from graphrag_eval_lc.records import Question, Response, ResponseModel, Template, TemplateModel

Key = tuple[str, int]
"""What a response is known by: its question id, and which repeat of the question it is, from 1."""

DatasetSource = str | PathLike[str] | Sequence[Template]

TEMPLATES = TypeAdapter(list[TemplateModel])
RESPONSES = TypeAdapter(list[ResponseModel])


def load_dataset(source: Source) -> list[Template]:
    r"""Read a reference dataset: a list of templates, each with its questions.

    Args:
        source: A path (.yaml, .yml, .json, .jsonl with one template a line), or a file open for reading.

    Returns:
        The templates in the file's order, every key kept. A template may have no questions.

    Raises:
        DatasetError: The file cannot be read or breaks the format; with file, line, question id and key.

    Example:
        >>> import io
        >>> load_dataset(io.StringIO("- template_id: t\n  questions: [{id: q1, question_text: Why?}]"))
        [{'template_id': 't', 'questions': [{'id': 'q1', 'question_text': 'Why?'}]}]
    """
    dataset = read_records(source, DatasetError, what="reference dataset")
    dataset.check(TEMPLATES, DatasetError)
    return _with_text_ids(dataset.values)


def load_responses(source: Source) -> dict[str, Response]:
    """Read recorded responses.

    Args:
        source: A path (.jsonl with one response a line, .json, .yaml: a list of responses, or a mapping of
            question ids to responses), or a file open for reading.

    Returns:
        The responses by question id. Of several lines of one question the last one wins, as in a run's journal.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    return {str(response["question_id"]): response for response in load_response_records(source)}


def load_response_records(source: Source) -> list[Response]:
    """Read recorded responses as a list, as ``load_responses`` does, with all repeats of a question.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    responses = read_response_records(source)
    responses.check(RESPONSES, ResponsesError)
    return cast("list[Response]", responses.values)


def read_response_records(source: Source) -> RecordFile:
    """Read a file of responses as a list, without a check of its records.

    Raises:
        ResponsesError: The file cannot be read or parsed.
    """
    responses = read_records(source, ResponsesError, what="file of responses")
    if isinstance(responses.values, dict):
        responses.values = _listed(responses.values)
    return responses


def _listed(by_id: dict[Any, Any]) -> list[Any]:
    """Give the responses of a mapping, each with the question id that is its key."""
    if "question_id" in by_id:
        return [by_id]
    return [{"question_id": str(key), **value} if isinstance(value, dict) else value for key, value in by_id.items()]


def checked_dataset(values: Any) -> list[Template]:
    """Give templates that were made in Python as a list, once they are known to have graphrag-eval's format.

    Raises:
        DatasetError: With the first thing that is wrong, and how many more there are.
    """
    templates = list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes | dict) else values
    RecordFile(templates).check(TEMPLATES, DatasetError)
    return cast("list[Template]", templates)


def templates_of(dataset: DatasetSource) -> list[Template]:
    """Give the templates of a dataset, read from its path or checked as they are.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
    """
    return load_dataset(dataset) if isinstance(dataset, str | PathLike) else checked_dataset(dataset)


def questions_of(dataset: Iterable[Template]) -> Iterable[tuple[Template, Question]]:
    """Give each question of a dataset with its template, in the dataset's order."""
    for template in dataset:
        for question in template.get("questions") or ():
            yield template, question


def response_key(response: Mapping[str, Any]) -> Key:
    """Give what a response is known by; one that does not say which repeat it is, is the first.

    Example:
        >>> response_key({"question_id": "q1", "repeat": 2}), response_key({"question_id": "q1"})
        (('q1', 2), ('q1', 1))
    """
    repeat = response.get("repeat")
    return str(response["question_id"]), repeat if isinstance(repeat, int) and repeat > 0 else 1


def repeats_of(
    questions: Iterable[tuple[Template, Question]], keys: Iterable[Key], *, only_answered: bool = False
) -> Iterator[tuple[Template, Question, int]]:
    """Give what is to be scored: each question with each of its repeats, in the order of the questions.

    Args:
        questions: The questions with their templates.
        keys: What the responses are known by.
        only_answered: Whether a question without a response is left out; else it stands there once.

    Example:
        >>> asked = [({"template_id": "t"}, {"id": "a"}), ({"template_id": "t"}, {"id": "b"})]
        >>> [(question["id"], repeat) for _, question, repeat in repeats_of(asked, [("a", 2), ("a", 1)])]
        [('a', 1), ('a', 2), ('b', 1)]
    """
    repeats: dict[str, list[int]] = {}
    for question_id, repeat in keys:
        repeats.setdefault(question_id, []).append(repeat)
    for template, question in questions:
        for repeat in sorted(repeats.get(str(question["id"]), [] if only_answered else [1])):
            yield template, question, repeat


def _with_text_ids(templates: list[dict[str, Any]]) -> list[Template]:
    for template in templates:
        template["template_id"] = str(template["template_id"])
        for question in template.get("questions") or ():
            question["id"] = str(question["id"])
    return cast("list[Template]", templates)
