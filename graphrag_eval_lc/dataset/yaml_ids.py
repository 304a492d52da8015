"""Ids that YAML reads otherwise than they are written, such as 0123 as the number 83: where they stand, what to do."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.errors import DatasetError, ResponsesError
from graphrag_eval_lc.files.record_file import Location, RecordFile, quoted
from graphrag_eval_lc.texts import counted, plural

_MOST_SHOWN = 3
# Integers of YAML 1.1 that are not written as they are read: octal, binary, hexadecimal, with _ or +, in base 60, -0.
_OTHERWISE = re.compile(
    r"(?<![\w.:+-])(?:[-+]?(?:0[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[1-9][0-9]*_[0-9_]*)"
    r"|\+[0-9]+|-0+)(?![\w.:+-])"
)


@dataclass(frozen=True, slots=True)
class ChangedId:
    """An id that YAML changed.

    Attributes:
        written: How it is written.
        read: How it is read.
        location: The keys and indices that lead to it.
        line: Its line; None where that is not known.
    """

    written: str
    read: str
    location: Location
    line: int | None

    @property
    def what(self) -> str:
        """What is wrong, in a sentence."""
        return f"YAML reads the id {self.written} as {self.read}"

    @property
    def hint(self) -> str:
        """How to put it right."""
        return f"Put it in quotes: {quoted(self.written)}."


def changed_ids(records: RecordFile, ids: Iterable[tuple[Location, Any]]) -> list[ChangedId]:
    """Return those of some ids of a file that YAML changed into other ids; what is none is a mistake of the format.

    Args:
        records: The file.
        ids: The ids as they were read, with their locations.
    """
    if records.file is None or records.file.format != "yaml":
        return []
    given = [(location, read) for location, read in ids if records.has_records_by_id or _is_integer(read)]
    if not records.has_records_by_id and not _may_be_changed(records.file.text, {read for _, read in given}):
        return []
    found = []
    for location, read in given:
        written = records.written(location)
        if written is not None and written != str(read):
            found.append(ChangedId(written, str(read), location, records.line_of(location)))
    return found


def _is_integer(read: object) -> bool:
    return isinstance(read, int) and not isinstance(read, bool)


def _may_be_changed(text: str, numbers: set[int]) -> bool:
    """Return whether one of the numbers may be written otherwise; lines and tokens are not looked for else."""
    return bool(numbers) and any(_number(each) in numbers for each in set(_OTHERWISE.findall(text)))


def _number(written: str) -> int | None:
    """Return the integer that YAML 1.1 reads; None where it reads none."""
    digits = written.lstrip("+-").replace("_", "")
    try:
        if digits.startswith(("0b", "0x")):
            value = int(digits, 0)
        elif digits.startswith("0"):
            value = int(digits, 8)
        else:
            value = 0
            for part in digits.split(":"):
                value = value * 60 + int(part)
    except ValueError:
        return None
    return -value if written.startswith("-") else value


def dataset_ids(values: Any) -> Iterator[tuple[Location, Any]]:
    """Yield the ids of templates and questions with their locations; what breaks the format is passed over."""
    for index, template in _mappings(values):
        if "template_id" in template:
            yield (index, "template_id"), template["template_id"]
        for place, question in _mappings(template.get("questions")):
            if "id" in question:
                yield (index, "questions", place, "id"), question["id"]


def response_ids(values: Any) -> Iterator[tuple[Location, Any]]:
    """Yield the question ids of responses with their locations; what breaks the format is passed over."""
    for index, response in _mappings(values):
        if "question_id" in response:
            yield (index, "question_id"), response["question_id"]


def _mappings(values: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, value in enumerate(values if isinstance(values, list | tuple) else ()):
        if isinstance(value, Mapping):
            yield index, value


def refuse_collisions(changed: Sequence[ChangedId], records: RecordFile, ids: Iterable[tuple[Location, Any]]) -> None:
    """Refuse a dataset in which an id becomes another one only because YAML changed it.

    Raises:
        DatasetError: An id that YAML changed is the id of another template or question.
    """
    if not changed:
        return
    places: dict[tuple[object, str], list[Location]] = {}
    for location, read in ids:
        places.setdefault((location[-1], str(read)), []).append(location)
    for each in changed:
        if len(places[each.location[-1], each.read]) > 1:
            what = f"two {'templates' if each.location[-1] == 'template_id' else 'questions'} have the id {each.read}"
            path = records.file.path if records.file else None
            raise DatasetError(f"{what}, as {each.what}", path=path, line=each.line, hint=each.hint)


def changed_ids_note(changed: Sequence[ChangedId], records: RecordFile) -> str | None:
    """Say in a sentence or two which ids YAML changed, and how to mend it; None where there are none."""
    if not changed:
        return None
    shown = [
        f"{each.written} as {each.read}" + (f" (line {each.line})" if each.line is not None else "")
        for each in changed[:_MOST_SHOWN]
    ]
    more = f" and {counted(len(changed) - _MOST_SHOWN, 'more id')}" if len(changed) > _MOST_SHOWN else ""
    place = f"{records.file.path}: " if records.file is not None and records.file.path else ""
    ids = plural(len(changed), "the id", "ids")
    return f"{place}YAML reads {ids} {', '.join(shown)}{more}. To keep what is written, put it in quotes: " + (
        f"{quoted(changed[0].written)}."
    )


def refuse_ids_as_written(
    question_ids: Mapping[str, Any],
    changed_questions: Sequence[ChangedId],
    responses: Iterable[str],
    changed_responses: Sequence[ChangedId],
    paths: tuple[str | None, str | None] = (None, None),
) -> None:
    """Refuse responses that miss their questions only because YAML changed an id on one side.

    Args:
        question_ids: The ids of the dataset, as they were read.
        changed_questions: Those of them that YAML changed.
        responses: The question ids of the responses, as they were read.
        changed_responses: Those of them that YAML changed.
        paths: The files of the dataset and of the responses.

    Raises:
        DatasetError: A response is to a question by the id that is written in the dataset, and read as another one.
        ResponsesError: A response was written with the id of a question, and is read as another one.
    """
    unknown = {identifier for identifier in responses if identifier not in question_ids}
    for each in changed_questions:
        if each.location[-1] == "id" and each.written in unknown:
            what = f"{each.what}, and a response is to the question {each.written}"
            raise DatasetError(what, path=paths[0], line=each.line, hint=each.hint)
    for each in changed_responses:
        if each.read in unknown and each.written in question_ids:
            what = f"{each.what}, and the dataset has a question {each.written}"
            raise ResponsesError(what, path=paths[1], line=each.line, hint=each.hint)
