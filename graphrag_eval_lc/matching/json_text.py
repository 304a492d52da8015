"""Comparing outputs as JSON values, or as texts where no media type says more."""

import json
import math
from typing import Any

from graphrag_eval_lc.matching.comparison import Comparison, StepView, UnreadableOutput, explained
from graphrag_eval_lc.reading import json_value

_SHOWN = 60


def parse_json_output(output: Any) -> Any:
    """Give the value of a JSON text; a value that is no text stands for itself, as datasets in YAML have it.

    Raises:
        UnreadableOutput: There is no output, or it is not JSON.
    """
    if output is None:
        raise UnreadableOutput("there is no output")
    if not isinstance(output, str):
        return output
    try:
        return json_value(output)
    except (ValueError, RecursionError) as problem:
        raise UnreadableOutput(f"the output is not JSON: {_shown(output)}") from problem


def match_json_steps(reference: StepView, actual: StepView) -> Comparison:
    """Score 1 where both outputs are the same JSON value; the order of keys and the white space do not matter."""
    try:
        expected = reference.parsed(parse_json_output)
    except UnreadableOutput as problem:
        return explained(0.0, f"the reference cannot be compared: {problem}")
    try:
        found = actual.parsed(parse_json_output)
    except UnreadableOutput as problem:
        return explained(0.0, str(problem), unreadable=str(problem))
    if are_json_equal(expected, found):
        return explained(1.0, "the same JSON value")
    return explained(0.0, f"another JSON value: {_shown(found)} instead of {_shown(expected)}")


def match_texts(reference: StepView, actual: StepView) -> Comparison:
    """Score 1 where both outputs are the same text, to the letter."""
    expected, found = reference.get("output"), actual.get("output")
    if expected is None:
        return explained(0.0, "the reference step has no output to compare with")
    if found is None:
        return explained(0.0, "there is no output")
    if expected == found:
        return explained(1.0, "the same text")
    return explained(0.0, f"another text: {_shown(found)} instead of {_shown(expected)}")


def are_json_equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal: numbers by value, true as 1 (as in graphrag-eval), NaN equal to NaN."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_json_equal, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text[: 4 * _SHOWN].split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
