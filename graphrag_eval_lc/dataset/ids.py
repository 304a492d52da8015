"""Finds ids that YAML changed, such as 0123 to 83, and response ids that no question has."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphrag_eval_lc.errors import DatasetError, ResponsesError
from graphrag_eval_lc.files.record_file import Location, RecordFile, quoted
from graphrag_eval_lc.texts import counted, listed, plural, shortened

_MOST_NAMED: Final = 3
_LONGEST_ID: Final = 80
# The nearest id is searched among at most this many, because each is compared letter by letter.
_MOST_COMPARED: Final = 2_000
# YAML 1.1 integers whose text differs from their value: octal, binary, hexadecimal, with _ or +, in base 60, -0.
_OTHERWISE: Final = re.compile(
    r"(?<![\w.:+-])(?:[-+]?(?:0[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[1-9][0-9]*_[0-9_]*)"
    r"|\+[0-9]+|-0+)(?![\w.:+-])"
)


@dataclass(frozen=True, slots=True)
class ChangedId:
    """An id that YAML changed: its text in the file, its value, its location, and its line if that is known."""

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
        """How to fix it."""
        return f"Put it in quotes: {quoted(self.written)}."


def mappings(values: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mappings in a list with their indices; other items are skipped, as the format check reports them."""
    for index, value in enumerate(values if isinstance(values, list | tuple) else ()):
        if isinstance(value, Mapping):
            yield index, value


def ids_in(values: Any) -> Iterator[tuple[Location, Any]]:
    """Yield the ids of templates, questions and responses with their locations."""
    for index, record in mappings(values):
        key = "question_id" if "question_id" in record else "template_id"
        if key in record:
            yield (index, key), record[key]
        for place, question in mappings(record.get("questions")):
            if "id" in question:
                yield (index, "questions", place, "id"), question["id"]


def changed_ids(records: RecordFile) -> list[ChangedId]:
    """Return the ids in a file that YAML changed into other ids; ids that became dates break the format instead."""
    if records.file is None or records.file.format != "yaml":
        return []
    are_all = records.has_records_by_id  # its ids are keys of a mapping, which are texts by now
    ids = [
        (place, read)
        for place, read in ids_in(records.values)
        if are_all or (isinstance(read, int) and not isinstance(read, bool))
    ]
    # Finding the lines of a file takes time, so it is only done if it is needed.
    if not ids or not (are_all or _OTHERWISE.search(records.file.text)):
        return []
    return [
        ChangedId(written, str(read), place, records.line_of(place))
        for place, read in ids
        if (written := records.written(place)) is not None and written != str(read)
    ]


def refuse_collisions(changed: Sequence[ChangedId], records: RecordFile) -> None:
    """Refuse a dataset in which an id becomes another one only because YAML changed it."""
    read = [(place[-1], str(each)) for place, each in ids_in(records.values)] if changed else []
    for each in changed:
        kind = each.location[-1]
        if read.count((kind, each.read)) > 1:
            what = f"two {'templates' if kind == 'template_id' else 'questions'} have the id {each.read}"
            path = records.file.path if records.file else None
            raise DatasetError(f"{what}, as {each.what}", path=path, line=each.line, hint=each.hint)


def changed_ids_note(changed: Sequence[ChangedId], records: RecordFile) -> str | None:
    """Return a message about the ids that YAML changed, with the fix; None if there are none."""
    if not changed:
        return None
    shown = [
        f"{each.written} as {each.read}" + (f" (line {each.line})" if each.line is not None else "")
        for each in changed[:_MOST_NAMED]
    ]
    more = f" and {counted(len(changed) - _MOST_NAMED, 'more id')}" if len(changed) > _MOST_NAMED else ""
    place = f"{records.file.path}: " if records.file is not None and records.file.path else ""
    ids = f"{plural(len(changed), 'the id', 'ids')} {', '.join(shown)}{more}"
    return f"{place}YAML reads {ids}. To keep what is written, put it in quotes: {quoted(changed[0].written)}."


def refuse_ids_as_written(
    question_ids: Mapping[str, Any],
    changed_questions: Sequence[ChangedId],
    responses: Iterable[str],
    changed_responses: Sequence[ChangedId],
    paths: tuple[str | None, str | None] = (None, None),
) -> None:
    """Refuse responses that miss their questions only because YAML changed an id on one side."""
    unknown = {identifier for identifier in responses if identifier not in question_ids}
    for each in changed_questions:
        if each.location[-1] == "id" and each.written in unknown:
            what = f"{each.what}, and a response is to the question {each.written}"
            raise DatasetError(what, path=paths[0], line=each.line, hint=each.hint)
    for each in changed_responses:
        if each.read in unknown and each.written in question_ids:
            what = f"{each.what}, and the dataset has a question {each.written}"
            raise ResponsesError(what, path=paths[1], line=each.line, hint=each.hint)


def nearest_id(unknown: str, known: Collection[str]) -> str | None:
    """Return the known id that is most similar to an unknown one; None if none is similar."""
    plain = unknown.strip().casefold()
    if same := next((each for each in known if each.strip().casefold() == plain), None):
        return same
    if len(known) > _MOST_COMPARED or len(unknown) > _LONGEST_ID:
        return None
    return next(iter(difflib.get_close_matches(unknown, known, n=1, cutoff=0.75)), None)


def unknown_questions_warning(answered: Iterable[str], known: Collection[str]) -> str | None:
    """Return a warning about responses whose question does not exist; None if there are none."""
    ids = set(known)
    unknown = list(dict.fromkeys(each for each in answered if each not in ids))
    if not unknown:
        return None
    shown = []
    for each in unknown[:_MOST_NAMED]:
        meant = nearest_id(each, known)
        perhaps = f" (perhaps {shortened(meant, _LONGEST_ID)})" if meant is not None else ""
        shown.append(f"{shortened(each, _LONGEST_ID)}{perhaps}")
    to, scored = plural(len(unknown), "is to a question", "are to questions"), plural(len(unknown), "is", "are")
    what = f"{counted(len(unknown), 'response')} {to} that the dataset does not have, and {scored} not scored"
    return f"{what}: {listed([*shown, *unknown[_MOST_NAMED:]], most=_MOST_NAMED)}"
