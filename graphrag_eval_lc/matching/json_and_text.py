"""Compares outputs as JSON values of any depth, or as texts if no media type is declared."""

import json
import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from graphrag_eval_lc.json_values import JSON_MEDIA_TYPE, json_text, parse_json
from graphrag_eval_lc.matching.matchers import CutOutput, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import cut_json
from graphrag_eval_lc.registry.step_kinds import StepKind
from graphrag_eval_lc.texts import shortened

_SHORT = 60
_LONGEST_PLACE = 160
_MISSING = object()


def parse_json_output(output: Any) -> Any:
    """Return the value of a JSON text. What is not a text is returned as it is: a YAML dataset may hold the value."""
    if output is None:
        raise UnreadableOutput("the output is missing")
    if not isinstance(output, str):
        return output
    try:
        return parse_json(output)
    except RecursionError as problem:
        raise UnreadableOutput("the output is JSON that is nested too deeply to be compared") from problem
    except ValueError as problem:
        where = cut_json(output)
        if where is not None:
            raise CutOutput(where) from problem
        raise UnreadableOutput(f"the output is not JSON: {_short_text(output)}") from problem


def first_difference(found: Any, expected: Any) -> tuple[str, Any, Any] | None:
    """Return the path of the first difference and both parts ("nothing" for a missing one), or None."""
    levels: list[Iterator[tuple[str, Any, Any]]] = [iter([("", found, expected)])]
    path: list[str] = []
    while levels:
        for part, one, other in levels[-1]:
            path[len(levels) - 1 :] = [part]
            if _are_equal(one, other):
                continue
            inner = _parts(one, other)
            if inner is not None:
                levels.append(inner)
                break
            one, other = ("nothing" if each is _MISSING else each for each in (one, other))
            return _place(path), one, other
        else:
            levels.pop()
    return None


def _parts(found: Any, expected: Any) -> Iterator[tuple[str, Any, Any]] | None:
    """Return the parts of two objects or two arrays, in the order of the expected one; None for other values."""
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = (*expected, *(key for key in found if key not in expected))
        return ((f".{key}", found.get(key, _MISSING), expected.get(key, _MISSING)) for key in keys)
    if isinstance(found, list) and isinstance(expected, list):
        pairs = enumerate(zip_longest(found, expected, fillvalue=_MISSING))
        return ((f"[{index}]", one, other) for index, (one, other) in pairs)
    return None


def _are_equal(left: Any, right: Any) -> bool:
    """Return whether Python's own comparison, which is fast, finds two values equal."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    try:
        return bool(left == right)
    except RecursionError:
        return False


def _place(parts: list[str]) -> str:
    text = "".join(parts).removeprefix(".")
    if len(text) <= _LONGEST_PLACE:
        return text
    half = _LONGEST_PLACE // 2
    return f"{text[:half]}…{text[-half:]} ({len(parts) - 1:,} levels deep)"


def have_same_text(reference: StepView, actual: StepView) -> bool:
    """Return whether two outputs are the same text apart from surrounding white space; such outputs always match."""
    text = reference.once(_whole_text)
    return bool(text) and text == actual.once(_whole_text)


def _whole_text(step: StepView) -> str | None:
    """Return an output as a text; None if it is cut, or if something else is compared instead."""
    output, declared = step.get("output"), step.declared
    if output is None or step.cut_by_capture is not None or (declared is not None and declared.artifact):
        return None
    return output.strip() if isinstance(output, str) else json_text(output)


def match_json_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if both outputs are the same JSON value; the order of keys and the white space do not matter.

    Values are equal as in graphrag-eval: numbers by value, true as 1, and NaN equal to NaN.
    """
    try:
        expected = reference.parsed(parse_json_output)
    except UnreadableOutput as problem:
        if have_same_text(reference, actual):
            return explained(1.0, "the same text, although it is not JSON")
        return explained(0.0, f"the reference cannot be compared: {problem}")
    try:
        found = actual.parsed(parse_json_output)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        return explained(0.0, str(problem), unreadable=str(problem))
    is_plain = reference.once(_is_plain) and actual.once(_is_plain)
    if found == expected if is_plain else first_difference(found, expected) is None:
        return explained(1.0, "the same JSON value")
    return StepScore(0.0, lambda: _json_difference(found, expected), float)  # not near at all


def _is_plain(step: StepView) -> bool:
    """Return whether Python compares the output correctly and fast: it has no NaN and is not nested too deeply."""
    try:
        json.dumps(step.parsed(parse_json_output), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _json_difference(found: Any, expected: Any) -> str:
    place, found, expected = first_difference(found, expected) or ("", found, expected)
    where = f" at {place}" if place else ""
    return f"another JSON value{where}: {_short_text(found)} instead of {_short_text(expected)}"


def match_texts(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 if both outputs are the same text, apart from surrounding white space."""
    expected, found = reference.get("output"), actual.get("output")
    if expected is None:
        return explained(0.0, "the reference step has no output to compare with")
    if found is None:
        return explained(0.0, "the output is missing")
    if expected == found or have_same_text(reference, actual):
        return explained(1.0, "the same text")
    cut = actual.cut_by_capture
    is_beginning = isinstance(expected, str) and isinstance(found, str) and expected.startswith(found)
    if cut is not None and is_beginning and len(expected) == actual.get("full_length"):
        return explained(0.0, f"{cut}, and so far it is the same text", is_undecided=True, cut=cut)
    return StepScore(0.0, lambda: _text_difference(found, expected), float)  # not near at all


def _text_difference(found: Any, expected: Any) -> str:
    start = 0
    if isinstance(expected, str) and isinstance(found, str):
        pairs = enumerate(zip(expected, found, strict=False))
        start = next((index for index, (one, other) in pairs if one != other), min(len(expected), len(found)))
    if start > _SHORT:
        where = f"another text from character {start + 1:,} on"
        return f"{where}: {_short_text(found[start:])!r} instead of {_short_text(expected[start:])!r}"
    return f"another text: {_short_text(found)} instead of {_short_text(expected)}"


def _short_text(value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return shortened(text[: 4 * _SHORT], _SHORT)


JSON = StepKind(
    key="json", title="JSON", serves=((None, JSON_MEDIA_TYPE),), matcher=match_json_steps, parse=parse_json_output
)
TEXT = StepKind(key="text", serves=((None, None),), matcher=match_texts)
