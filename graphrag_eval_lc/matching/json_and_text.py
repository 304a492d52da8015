"""Comparing outputs as JSON values, or as texts where no media type says more."""

from typing import Any

from graphrag_eval_lc.json_values import json_text, parse_deep_json
from graphrag_eval_lc.matching.json_equality import ComparableJson, first_difference
from graphrag_eval_lc.matching.matchers import CutOutput, StepScore, StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.outputs import cut_json
from graphrag_eval_lc.registry.step_kinds import StepKind
from graphrag_eval_lc.texts import shortened

_SHORT = 60


def parse_json_output(output: Any) -> Any:
    """Return the value of a JSON text; a dataset in YAML may have the value itself, which is returned as it is.

    Raises:
        CutOutput: It is JSON that breaks off before its end.
        UnreadableOutput: There is no output, or it is not JSON.
    """
    if output is None:
        raise UnreadableOutput("there is no output")
    if not isinstance(output, str):
        return output
    try:
        return parse_deep_json(output)
    except ValueError as problem:
        where = cut_json(output)
        if where is not None:
            raise CutOutput(where) from problem
        raise UnreadableOutput(f"the output is not JSON: {_short_text(output)}") from problem


def match_json_steps(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 where both outputs are the same JSON value; the order of keys and the white space do not matter."""
    try:
        expected = reference.once(_comparable)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    try:
        found = actual.once(_comparable)
    except CutOutput:
        raise
    except UnreadableOutput as problem:
        return explained(0.0, str(problem), unreadable=str(problem))
    if expected.equals(found):
        return explained(1.0, "the same JSON value")
    return StepScore(0.0, lambda: _json_difference(found.value, expected.value), _none)


def _comparable(step: StepView) -> ComparableJson:
    return ComparableJson(step.parsed(parse_json_output))


def _json_difference(found: Any, expected: Any) -> str:
    place, found, expected = first_difference(found, expected) or ("", found, expected)
    where = f" at {place}" if place else ""
    return f"another JSON value{where}: {_short_text(found)} instead of {_short_text(expected)}"


def match_texts(reference: StepView, actual: StepView) -> StepScore:
    """Score 1 where both outputs are the same text, to the letter."""
    expected, found = reference.get("output"), actual.get("output")
    if expected is None:
        return explained(0.0, "the reference step has no output to compare with")
    if found is None:
        return explained(0.0, "there is no output")
    if expected == found:
        return explained(1.0, "the same text")
    cut = actual.cut_by_capture
    is_beginning = isinstance(expected, str) and isinstance(found, str) and expected.startswith(found)
    if cut is not None and is_beginning and len(expected) == actual.get("full_length"):
        return explained(0.0, f"{cut}, and so far it is the same text", is_undecided=True, cut=cut)
    return StepScore(0.0, lambda: _text_difference(found, expected), _none)


def _text_difference(found: Any, expected: Any) -> str:
    start = _common_length(expected, found) if isinstance(expected, str) and isinstance(found, str) else 0
    if start > _SHORT:
        where = f"another text from character {start + 1:,} on"
        return f"{where}: {_short_text(found[start:])!r} instead of {_short_text(expected[start:])!r}"
    return f"another text: {_short_text(found)} instead of {_short_text(expected)}"


def _none() -> float:
    return 0.0


def _common_length(left: str, right: str) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))


def _short_text(value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return shortened(text[: 4 * _SHORT], _SHORT)


JSON = StepKind(
    key="json",
    title="JSON",
    serves=((None, "application/json"),),
    matcher=match_json_steps,
    parse=parse_json_output,
)
TEXT = StepKind(key="text", serves=((None, None),), matcher=match_texts)
