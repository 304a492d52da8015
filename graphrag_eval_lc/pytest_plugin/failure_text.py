"""What a failed test says of the question that it asked: the scores, their reasons, the answer and the error."""

from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.pytest_plugin.asking import AskResult, result_of
from graphrag_eval_lc.registry.metric_spec import error_key, reason_key
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.texts import shortened, visible

_LONGEST = 500
_MOST_STEPS = 10


def add_failure_text(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add to the text of a failed test what its question scored, and why; JUnit files have that text too."""
    result = result_of(item)
    if result is None:
        return
    text = "\n".join(failure_lines(result))
    add_section = getattr(report.longrepr, "addsection", None)
    if add_section is not None:
        add_section("graphrag", text)
    else:
        report.sections.append(("graphrag", text))


def failure_lines(result: AskResult) -> Iterator[str]:
    """Yield the lines of a result: the question, its error and answer, its scores, and the steps that do not fit."""
    yield f"{_short(result['template_id'])}/{_short(result['question_id'])}: {_short(result['question_text'])}"
    if "error" in result:
        yield f"error: {_short(result['error'])}"
    if result.get("actual_answer") is not None:
        yield f"answer: {_short(result['actual_answer'])}"
    if result.get("reference_answer") is not None:
        yield f"reference answer: {_short(result['reference_answer'])}"
    for name, value in result.scores_and_spent().items():
        spec = metric_spec(name)
        if spec.is_part:
            continue
        reason = result.get(spec.reason_key or reason_key(name))
        yield f"{_short(name)}: {value:,.4g}" + (f" ({_short(reason)})" if reason and not spec.is_spent else "")
    for key, value in result.items():
        if key.endswith(error_key("")) and isinstance(value, str):
            yield f"{_short(key)}: {_short(value)}"
    yield from _step_lines(result)


def _step_lines(result: AskResult) -> Iterator[str]:
    groups = zip(result.get("reference_steps") or (), result.get("steps_diagnosis") or (), strict=False)
    steps = [
        (step, found)
        for reference, diagnosis in groups
        for step, found in zip(reference, diagnosis, strict=False)
        if found.get("outcome") != "match"
    ]
    for step, found in steps[:_MOST_STEPS]:
        yield f"step {_short(step.get('name'))}: {found.get('outcome')}: {_short(found.get('reason'))}"
    if len(steps) > _MOST_STEPS:
        yield f"and {len(steps) - _MOST_STEPS:,} more steps"


def _short(value: Any) -> str:
    return visible(masked_text(shortened(str(value), _LONGEST)), keeps_lines=False)
