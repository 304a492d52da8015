"""Specs such as `package.module:attribute` or `path/to/file.py:attribute`, and their errors."""

import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.benchmark.options import named_by
from graphrag_eval_lc.errors import AgentError

FILE = """
from langchain_core.runnables import RunnableLambda

graph = RunnableLambda(lambda state: state)
nothing = 3


def make():
    return graph


class Nested:
    agent = graph
"""


@pytest.fixture
def agent_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "my_agent.py"
    path.write_text(FILE)
    return path


def test_file_spec_loads_the_attribute(agent_file: Path) -> None:
    assert named_by(f"{agent_file}:nothing") == 3
    assert named_by(f"{agent_file}:make").__name__ == "make"


def test_module_spec_is_searched_in_the_current_folder(agent_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_file.rename(agent_file.with_name("module_of_the_test.py"))
    monkeypatch.chdir(agent_file.parent)
    assert named_by("module_of_the_test:nothing") == 3


def test_files_with_the_same_name_do_not_mix(agent_file: Path) -> None:
    for folder in ("a", "b"):
        path = agent_file.parent / folder / "same_name.py"
        path.parent.mkdir()
        path.write_text(f"where = {folder!r}")
        assert named_by(f"{path}:where") == folder


def test_unknown_attribute_is_reported_with_the_existing_ones(agent_file: Path) -> None:
    with pytest.raises(AgentError, match=r"my_agent\.py has no attribute absent\. It has: make, graph\."):
        named_by(f"{agent_file}:absent")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("agent", "'agent' is not the spec of an agent. Write package.module:attribute"),
        (":graph", "is not the spec of an agent"),
        ("agent.py:", "is not the spec of an agent"),
        ("absent_module_of_the_test:graph", "the module absent_module_of_the_test was not found"),
        ("absent_package_of_the_test.module:graph", "the module absent_package_of_the_test.module was not found"),
        ("absent.py:graph", "the file absent.py was not found"),
    ],
)
def test_invalid_spec_is_explained(spec: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(AgentError) as caught:
        named_by(spec)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("code", ["import absent_module_of_the_test", "1 / 0", "def", "raise SystemExit(1)"])
@pytest.mark.parametrize("spec", ["{path}:graph", "broken_module_of_the_test:graph"])
def test_file_that_cannot_be_loaded_is_explained(
    tmp_path: Path, code: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "broken_module_of_the_test.py"
    path.write_text(code)
    with pytest.raises(AgentError, match=r"loading .*broken_module_of_the_test(\.py)? failed with \w+(Error|Exit)"):
        named_by(spec.format(path=path))


@pytest.mark.parametrize(
    ("code", "line"),
    [("import json\nx = 1\njson.loads('{')\n", 3), ("def f(:\n", 1), ("def f():\n    return y\n\nf()\n", 2)],
    ids=["in a library", "no Python", "in a function"],
)
def test_code_that_cannot_be_loaded_is_reported_with_its_line(
    code: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("failing.py").write_text(code)
    with pytest.raises(AgentError) as caught:
        named_by("failing.py:f")
    assert caught.value.hint == f"Look at failing.py, line {line}, or run it with --debug for the traceback."
