"""Registering custom evaluators, and rejecting invalid ones."""

from functools import partial
from typing import Any

import pytest

from graphrag_eval_lc import register_evaluator, register_metric
from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.registry.custom_metrics import evaluators_of_users


def is_short(question: Any, response: Any) -> bool:
    return True


class Checks:
    def __call__(self, question: Any, response: Any) -> bool:
        return True


def test_function_is_registered_under_its_name_or_another() -> None:
    assert register_evaluator(is_short) is is_short
    register_evaluator(name="brief")(is_short)
    register_evaluator(checks := Checks())
    register_evaluator(name="half")(partial(is_short, None))
    assert list(evaluators_of_users) == ["is_short", "brief", "Checks", "half"]
    assert evaluators_of_users["Checks"] is checks


@pytest.mark.parametrize(
    ("function", "name", "complaint"),
    [
        ("is_short", None, "an evaluator cannot be 'is_short'. Give a function"),
        (lambda question, response: True, None, r"a lambda has no name .* register_evaluator\(name="),
        (is_short, "steps_score", "the key steps_score is one of the results' own, so that no evaluator can have it"),
        (is_short, "two words", "the key of an evaluator cannot be 'two words'"),
    ],
)
def test_invalid_evaluator_is_rejected(function: Any, name: str | None, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        register_evaluator(name=name)(function)  # type: ignore[arg-type]


def test_name_of_a_metric_is_rejected() -> None:
    register_metric(key="is_short")(is_short)
    with pytest.raises(PluginError, match="is that of the metric"):
        register_evaluator(is_short)
