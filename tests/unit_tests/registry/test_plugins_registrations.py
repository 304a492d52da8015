"""Registrations inside a block end with it."""

import importlib
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc import register_evaluator, register_matcher, register_metric
from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.registry import metric_spec, registered_only_here
from graphrag_eval_lc.registry.plugins import known_plugins, load_plugins, registered_now

MODULE = """
from graphrag_eval_lc import register_evaluator


@register_evaluator
def is_short(question, response):
    return True
"""


def length(question: object, response: object) -> float:
    return 1.0


def test_registrations_in_the_block_are_removed_and_earlier_ones_kept() -> None:
    register_metric(key="before")(length)
    with registered_only_here():
        register_metric(key="length", lower_is_better=True)(length)
        register_evaluator(name="tone")(length)
        register_matcher(name="count_rows", fulfilled_by=["count"])(lambda reference, actual: 1.0)
        assert list(registered_now()) == [
            "evaluator tone",
            "metric before",
            "metric length",
            "step kind count_rows",
        ]
    assert list(registered_now()) == ["metric before"]
    assert not metric_spec("length").lower_is_better


def test_plugin_that_fails_to_load_registers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_metric(key="before")(length)
    monkeypatch.chdir(tmp_path)
    Path("half.py").write_text(MODULE + "\nraise RuntimeError\n")
    with pytest.raises(PluginError, match="failed with RuntimeError"):
        load_plugins(["half.py"])
    assert list(registered_now()) == ["metric before"]


def test_registrations_are_removed_after_an_error_too() -> None:
    with pytest.raises(PluginError), registered_only_here():
        register_metric(key="length")(register_evaluator(name="length")(length))
    assert not registered_now()


@pytest.mark.parametrize("has_import", [True, False])
def test_module_registers_again_in_the_next_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_import: bool
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "checks_of_the_test").mkdir()
    (tmp_path / "checks_of_the_test" / "__init__.py").write_text("from checks_of_the_test import inner")
    (tmp_path / "checks_of_the_test" / "inner.py").write_text(MODULE)
    for _ in range(2):
        with registered_only_here():
            if has_import:
                importlib.import_module("checks_of_the_test.inner")
            else:
                load_plugins(["checks_of_the_test"])
            assert list(registered_now()) == ["evaluator is_short"]
        assert not registered_now()
        assert not known_plugins()
