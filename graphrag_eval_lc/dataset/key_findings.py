"""Keys of records that are nearly known ones, and values of known keys that have another type than is meant."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from numbers import Number
from typing import Any

from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.files.record_file import Finding, Location, quoted
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.json_and_text import JSON
from graphrag_eval_lc.records import step_status
from graphrag_eval_lc.registry.metrics import BUILT_IN
from graphrag_eval_lc.texts import edit_distance, shortened

# What is read of the records; any other key is handed through to the results.
TEMPLATE_KEYS = ("template_id", "questions")
QUESTION_KEYS = ("id", "question_text", "reference_answer", "reference_steps")
REFERENCE_STEP_KEYS = (
    "name",
    "args",
    "output",
    "output_media_type",
    "required_columns",
    "ordered",
    "ignore_duplicates",
    "strict",
    "tolerance",
    "relevant_ids",
)
_SPENT_KEYS = tuple(spec.key for spec in BUILT_IN if spec.spent_by == "agent" and spec.unit != "usd")
RESPONSE_KEYS = ("question_id", "actual_answer", "actual_steps", *_SPENT_KEYS)
ACTUAL_STEP_KEYS = ("name", "args", "id", "status", "output", "execution_timestamp")

# In keys up to this length one letter may be wrong, in longer ones two.
_SHORT_KEY = 7
_LONGEST_KEY = 40
_BOOLEAN = TypeAdapter(bool)
_FLOAT = TypeAdapter(float)
_JSON = JSON.serves[0][1]


def key_findings(location: Location, record: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[Finding]:
    """Find keys that are nearly a known key which the record lacks."""
    for key in record:
        if isinstance(key, str) and key not in known and (meant := near_key(key, known)) and meant not in record:
            yield Finding(
                f"the key {key} is read by nothing, and {meant} is missing", f"Write {meant}.", (*location, key)
            )


@lru_cache(maxsize=4096)
def near_key(key: str, known: tuple[str, ...]) -> str | None:
    """Return the known key that another one is a misspelling of; None where it is a key of its own.

    Example:
        >>> near_key("ouput", REFERENCE_STEP_KEYS), near_key("requiredColumns", REFERENCE_STEP_KEYS)
        ('output', 'required_columns')
        >>> near_key("output_type", REFERENCE_STEP_KEYS) is None
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


def switch_findings(location: Location, step: Mapping[str, Any]) -> Iterator[Finding]:
    """Find switches of a reference step that are a text or a number; the comparison takes only true and false."""
    for key in ("ordered", "ignore_duplicates", "strict"):
        value = step.get(key)
        if value is None or isinstance(value, bool):
            continue
        meant = _boolean(value)
        if meant is None:  # which the format finds
            continue
        hint = f"Write {key}: {json_text(meant)}, without quotes."
        yield Finding(f"{key} is {_shown(value)}, which is neither true nor false", hint, (*location, key))


def _boolean(value: object) -> bool | None:
    try:
        return _BOOLEAN.validate_python(value)
    except ValidationError:
        return None


def answer_findings(location: Location, record: Mapping[str, Any], key: str) -> Iterator[Finding]:
    """Find an answer that is a number, not a text; the judges get texts."""
    value = record.get(key)
    if isinstance(value, Number):
        yield Finding(f"{key} is {_shown(value)}, not a text", _in_quotes(value), (*location, key), severity="warning")


def actual_step_findings(location: Location, step: Mapping[str, Any]) -> Iterator[Finding]:
    """Find what is wrong with the keys and values of an actual step."""
    yield from key_findings(location, step, ACTUAL_STEP_KEYS)
    status, args, output = step.get("status"), step.get("args"), step.get("output")
    if isinstance(status, str) and status not in ("success", "error"):
        if (meant := step_status(status)) != status:
            what = f"the status {shortened(status, 40)} is read as {meant}"
            yield Finding(what, f"Write {meant}.", (*location, "status"), severity="warning")
        else:
            what = f"the status {shortened(status, 40)} is neither success nor error, so that the step counts as failed"
            yield Finding(what, "Write success or error.", (*location, "status"))
    if args is not None and not isinstance(args, Mapping):
        what = f"args are {_shown(args)}, no mapping, so that the step counts as called without arguments"
        yield Finding(what, "Give a mapping of names to values.", (*location, "args"))
    if isinstance(output, Number):
        what = f"the output is {_shown(output)}, not a text"
        yield Finding(what, _in_quotes(output), (*location, "output"), severity="warning")


def response_status_findings(location: Location, response: Mapping[str, Any]) -> Iterator[Finding]:
    """Find a status of a response that is written otherwise than the format has it."""
    status = response.get("status")
    if isinstance(status, str) and status not in ("success", "error"):
        meant = step_status(status)
        known = "is neither success nor error, and is not read" if meant == status else f"is read as {meant}"
        hint = f"Write {'success or error' if meant == status else meant}."
        what = f"the status {shortened(status, 40)} {known}"
        yield Finding(what, hint, (*location, "status"), severity="warning")


def number_findings(location: Location, response: Mapping[str, Any]) -> Iterator[Finding]:
    """Find counts and times of a response that are numbers in quotes; other texts are mistakes of the format."""
    for key in _SPENT_KEYS:
        value = response.get(key)
        if isinstance(value, str) and _is_number(value):
            what = f"{key} is {_shown(value)}, a text, so that it is not counted"
            yield Finding(what, "Write the number without quotes.", (*location, key))


def _is_number(text: str) -> bool:
    try:
        _FLOAT.validate_python(text)
    except ValidationError:
        return False
    return True


def output_findings(location: Location, output: object) -> Iterator[Finding]:
    """Find a reference output that is no text although texts are compared."""
    if output is None or isinstance(output, str):
        return
    if isinstance(output, Number):
        hint = f"{_in_quotes(output)[:-1]}, or add output_media_type: {_JSON}."
        yield Finding(f"the output is {_shown(output)}, and texts are compared", hint, (*location, "output"))
    else:
        hint = f"Add output_media_type: {_JSON}, or give the text that the tool gives."
        yield Finding(f"the output is a {type(output).__name__}, and texts are compared", hint, (*location, "output"))


def _in_quotes(value: object) -> str:
    return f"Put it in quotes: {quoted(json_text(value))}."


def _shown(value: object) -> str:
    """Return a value for people: a text in quotes, true and false in JSON's way, a number with its kind."""
    if isinstance(value, bool):
        return json_text(value)
    return f"the number {json_text(value)}" if isinstance(value, int | float) else shortened(repr(value), 60)
