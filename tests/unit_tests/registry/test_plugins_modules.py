"""Loading modules that users name, and the specs of their functions."""

import functools
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.registry.plugins import loaded_module, module_of, place_of, spec_of

FILE = """
def make():
    return 3


class Nested:
    pass
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "my_agent.py"
    path.write_text(FILE)
    return path


def test_spec_of_a_function_names_the_file_as_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert spec_of(loaded_module("my_agent.py").make) == "my_agent.py:make"
    assert spec_of(functools.partial(loaded_module(str(file)).make)) == f"{file}:make"
    assert spec_of(loaded_module("my_agent.py").Nested()) == "my_agent.py:Nested"


def test_spec_of_a_module_can_be_loaded_again(file: Path) -> None:
    module = module_of(loaded_module(str(file)).make)
    assert place_of(module) == str(file)
    assert loaded_module(place_of(module)).__name__ == module
