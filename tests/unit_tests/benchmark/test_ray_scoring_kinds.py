"""User-defined step kinds reach other processes through their plugin, or pickled by value."""

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.ray_scoring import ShippedKinds
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.matching import register_matcher
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import load_plugins

PLUGIN = """
from graphrag_eval_lc.matching import register_matcher

@register_matcher(name="guess")
def match(reference, actual):
    return 0.5
"""
GUESS = ("guess", None)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with registered_only_here():
        yield


def same(reference: Any, actual: Any) -> float:
    return 1.0


def shipped() -> ShippedKinds:
    Path("half.py").write_text(PLUGIN, encoding="utf-8")
    with registered_only_here():
        load_plugins(["half.py"], via="--plugin")
        return ShippedKinds.of_this_process()


def test_nothing_is_sent_without_custom_kinds() -> None:
    kinds = ShippedKinds.of_this_process()
    assert (kinds.plugins, pickle.loads(kinds.by_value)) == ({}, [])


def test_plugin_file_is_loaded_from_its_path() -> None:
    kinds = shipped()
    kinds.register()
    assert custom_matchers()[GUESS](None, None) == 0.5  # type: ignore[arg-type]


def test_missing_plugin_file_is_sent_with_its_source() -> None:
    kinds = shipped()
    Path("half.py").unlink()
    kinds.register()
    assert custom_matchers()[GUESS](None, None) == 0.5  # type: ignore[arg-type]


def test_different_plugin_file_at_the_path_is_not_used() -> None:
    kinds = shipped()
    Path("half.py").write_text(PLUGIN.replace("0.5", "0.9"), encoding="utf-8")
    kinds.register()
    assert custom_matchers()[GUESS](None, None) == 0.5  # type: ignore[arg-type]


def test_kinds_registered_by_the_program_are_pickled() -> None:
    with registered_only_here():
        register_matcher(name="guess")(same)
        kinds = ShippedKinds.of_this_process()
    assert kinds.plugins == {}
    kinds.register()
    assert custom_matchers()[GUESS] is same


def test_unpicklable_kind_is_one_error() -> None:
    lock = threading.Lock()
    register_matcher(name="guess")(lambda reference, actual: 1.0 if lock else 0.0)
    with pytest.raises(OptionError, match=r"the matcher of guess cannot be sent to another process .*--plugin FILE"):
        ShippedKinds.of_this_process()
