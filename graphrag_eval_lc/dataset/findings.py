"""Finds the mistakes in the records of a dataset and of responses, in one pass; ``rules.py`` has their texts."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from numbers import Number
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.dataset.ids import ChangedId, changed_ids, mappings, nearest_id
from graphrag_eval_lc.dataset.rules import found, in_quotes, shown
from graphrag_eval_lc.dataset.step_findings import step_findings
from graphrag_eval_lc.files.record_file import Finding, Location, RecordFile
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import CHECK_KEYS, is_error, step_status
from graphrag_eval_lc.registry.metrics import BUILT_IN
from graphrag_eval_lc.texts import edit_distance, shortened

_SPENT: Final = tuple(spec.key for spec in BUILT_IN if spec.spent_by == "agent" and spec.unit != "usd")
# The known keys of each kind of record. Any other key is copied to the results.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "template": ("template_id", "questions"),
    "question": ("id", "question_text", "reference_answer", "reference_steps", *CHECK_KEYS),
    "reference_number": ("value", "unit", "tolerance"),
    "reference_step": (
        "name", "args", "output", "output_media_type", "required_columns", "ordered", "ignore_duplicates", "strict",
        "tolerance", "relevant_ids",
    ),
    "response": ("question_id", "actual_answer", "actual_steps", *_SPENT),
    "actual_step": ("name", "args", "id", "status", "output", "execution_timestamp"),
}  # fmt: skip
_SWITCHES: Final = ("ordered", "ignore_duplicates", "strict")
# A key up to this length may have one wrong letter to count as a misspelling; a longer one may have two.
_SHORT_KEY: Final = 7
_LONGEST_KEY: Final = 40
_BOOLEAN: Final = TypeAdapter(bool)
_FLOAT: Final = TypeAdapter(float)


def questions_in(dataset: RecordFile) -> Iterator[tuple[Location, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each question with its location and its template."""
    for index, template in mappings(dataset.values):
        for place, question in mappings(template.get("questions")):
            yield (index, "questions", place), template, question


def changed_id_findings(changed: list[ChangedId]) -> Iterator[Finding]:
    """Yield a finding for each id that YAML changed."""
    for each in changed:
        yield found("changed_id", each.location, what=each.what, hint=each.hint)


def dataset_findings(dataset: RecordFile, views: StepViews, *, keeps_format: bool = True) -> Iterator[Finding]:
    """Yield the mistakes in a dataset, except those of its format and ids that YAML changed."""
    yield from repeated_keys(dataset)
    if keeps_format and not any(questions_in(dataset)):
        yield found("no_question")
    seen: dict[str, set[str]] = {"template": set(), "question": set()}
    texts: dict[str, Location] = {}
    for index, template in mappings(dataset.values):
        yield from _repeated_id("template", (index, "template_id"), template.get("template_id"), seen)
        yield from _near_keys((index,), template, KEYS["template"])
        for place, question in mappings(template.get("questions")):
            location: Location = (index, "questions", place)
            yield from _repeated_id("question", (*location, "id"), question.get("id"), seen)
            if isinstance(text := question.get("question_text"), str):
                earlier = texts.setdefault(" ".join(text.split()).casefold(), location)
                if earlier[0] != index:  # within a template, other keys may distinguish questions with the same text
                    place_of_first = f"[{earlier[0]}].questions[{earlier[2]}]"
                    yield found("same_question", (*location, "question_text"), place=place_of_first)
            yield from _near_keys(location, question, KEYS["question"])
            for row, number in mappings(question.get("reference_numbers")):
                yield from _near_keys((*location, "reference_numbers", row), number, KEYS["reference_number"])
            yield from _answer_number(location, question, "reference_answer")
            yield from _reference_steps((*location, "reference_steps"), question.get("reference_steps"), views)


def repeated_keys(records: RecordFile) -> Iterator[Finding]:
    """Yield the keys that a mapping of a file repeats."""
    for key, line in records.repeated_keys():
        yield found("repeated_key", line=line, key=key)


def _repeated_id(kind: str, location: Location, identifier: Any, seen: dict[str, set[str]]) -> Iterator[Finding]:
    text = str(identifier)
    if identifier is not None and text in seen[kind]:
        yield found("repeated_id", location, kind=kind, id=text)
    seen[kind].add(text)


def _reference_steps(location: Location, groups: Any, views: StepViews) -> Iterator[Finding]:
    for row, group in enumerate(groups if isinstance(groups, list | tuple) else ()):
        if isinstance(group, list | tuple) and not group:
            yield found("empty_group", (*location, row))
        for column, step in mappings(group):
            place = (*location, row, column)
            yield from _near_keys(place, step, KEYS["reference_step"])
            for key in _SWITCHES:
                value = step.get(key)
                # Anything else is reported as a mistake of the format.
                if value is not None and not isinstance(value, bool) and (meant := _read(_BOOLEAN, value)) is not None:
                    yield found("switch", (*place, key), key=key, value=shown(value), meant=json_text(meant))
            yield from step_findings(place, step, views)


def response_findings(responses: RecordFile, dataset: RecordFile) -> Iterator[Finding]:
    """Yield the mistakes in responses to the questions of a dataset, except those of their format."""
    changed = changed_ids(responses)
    yield from changed_id_findings(changed)
    known = {str(question.get("id")): None for _, _, question in questions_in(dataset)}
    written = {each.location: each.written for each in changed}
    otherwise = {each.written: each for each in changed_ids(dataset)}
    failed: dict[str, bool] = {}
    for index, response in mappings(responses.values):
        location: Location = (index, "question_id")
        identifier = response.get("question_id")
        if identifier is not None and str(identifier) not in known:
            hint = "Check its question_id."
            if (each := otherwise.get(str(identifier))) is not None:
                hint = f"YAML reads that id of the dataset as {each.read}. {each.hint}"
            elif (meant := written.get(location)) in known:
                hint = f"The dataset has {meant}, as it is written here. {hint}"
            elif near := nearest_id(str(identifier), known):
                hint = f"Perhaps it is {near}. {hint}"
            yield found("unknown_question", location, hint=hint)
        if identifier is not None:
            key = key_text_of(response)
            asked = f"{key}: {response.get('question_text')}"
            if not failed.get(asked, True):  # a run asks again if the first answer failed
                yield found("answered_twice", location, id=key)
            failed[asked] = is_error(response)
        yield from _response(index, response)


def _response(index: int, response: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _near_keys((index,), response, KEYS["response"])
    yield from _status((index, "status"), response.get("status"), "unknown_status")
    yield from _answer_number((index,), response, "actual_answer")
    for key in _SPENT:
        value = response.get(key)
        if isinstance(value, str) and _read(_FLOAT, value) is not None:
            yield found("number_as_text", (index, key), key=key, value=shown(value))
    for number, step in mappings(response.get("actual_steps")):
        location = (index, "actual_steps", number)
        yield from _near_keys(location, step, KEYS["actual_step"])
        yield from _status((*location, "status"), step.get("status"), "unknown_step_status")
        args, output = step.get("args"), step.get("output")
        if args is not None and not isinstance(args, Mapping):
            yield found("args_type", (*location, "args"), value=shown(args))
        if isinstance(output, Number):
            place = (*location, "output")
            yield found("actual_output_number", place, value=shown(output), in_quotes=in_quotes(output))


def key_text_of(response: Mapping[str, Any]) -> str:
    """Return the question id and the repeat of a response as a text for messages."""
    repeat = response.get("repeat")
    return f"{response['question_id']}" + (f" (repeat {repeat})" if repeat not in (None, 1) else "")


def _near_keys(location: Location, record: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[Finding]:
    """Find misspelt keys: those that are close to a known key that the record lacks."""
    for key in record:
        if isinstance(key, str) and key not in known and (meant := near_key(key, known)) and meant not in record:
            yield found("near_key", (*location, key), key=key, meant=meant)


@lru_cache(maxsize=4096)
def near_key(key: str, known: tuple[str, ...]) -> str | None:
    """Return the known key that a key is a misspelling of; None if it is not a misspelling.

    Example:
        >>> near_key("ouput", ("output",)), near_key("requiredColumns", ("required_columns",))
        ('output', 'required_columns')
        >>> near_key("output_type", ("output", "output_media_type")) is None
        True
    """
    if len(key) > _LONGEST_KEY:
        return None
    plain = _plain(key)
    for each in known:
        allowed = 0 if len(each) < 3 else 1 if len(each) <= _SHORT_KEY else 2
        if plain == _plain(each) or (abs(len(key) - len(each)) <= allowed and edit_distance(key, each) <= allowed):
            return each
    return None


def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold()


def _read(adapter: TypeAdapter[Any], value: object) -> Any:
    """Return a value as the format reads it; None if the format rejects it."""
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def _answer_number(location: Location, record: Mapping[str, Any], key: str) -> Iterator[Finding]:
    """Find an answer that is a number and not a text; judges need texts."""
    value = record.get(key)
    if isinstance(value, Number):
        yield found("answer_number", (*location, key), key=key, value=shown(value), in_quotes=in_quotes(value))


def _status(location: Location, status: Any, unknown: str) -> Iterator[Finding]:
    if isinstance(status, str) and status not in ("success", "error"):
        meant = step_status(status)
        rule = unknown if meant == status else "status_read_as"
        yield found(rule, location, status=shortened(status, 40), meant=meant)
