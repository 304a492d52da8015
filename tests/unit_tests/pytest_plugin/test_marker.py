"""The marker: what it selects, and one clear error for each misuse."""

import subprocess
import sys

import pytest
from support.pytest_projects import environment, run_in, write_project

WRONG = """\
import pytest


@pytest.mark.graphrag_dataset({marker})
def test_it({fixtures}):
    pass
"""
MISTAKES = {
    "missing.py": (
        '"missing.yaml"',
        "graphrag_ask",
        "the reference dataset cannot be read (the file does not exist). Fix",
    ),
    "template.py": ('"qa.yaml", templates="wher"', "graphrag_ask", "unknown template wher. Did you mean where"),
    "keyword.py": ('"qa.yaml", template="where"', "graphrag_ask", "takes no keyword template. Did you mean templates?"),
    "config.py": ('"qa.yaml", config={"stps": {}}', "graphrag_ask", "unknown key stps. Did you mean steps?"),
    "sample.py": ('"qa.yaml", sample=1', "graphrag_ask", "a sample needs a seed. Add seed=1"),
    "both.py": (
        '"qa.yaml", sample=1, seed=1, limit=1',
        "graphrag_ask",
        "limit and sample exclude each other: limit selects",
    ),
    "fixture.py": ('"qa.yaml"', "", "does not take graphrag_question or graphrag_ask. Let it take one of them."),
    "typo.py": (
        '[{"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": [[{"name": "add", '
        '"ouput": "3"}]]}]}]',
        "graphrag_ask",
        "the key ouput is read by nothing, and output is missing. Write output. (1 more problem: validate_dataset",
    ),
    "empty.py": ("[]", "graphrag_ask", "the dataset has no question. Add questions: each has an id and a"),
    "nothing.py": ("", "graphrag_ask", "graphrag_dataset takes one dataset: a path, or loaded templates."),
}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of a session in which every file has a mistake."""
    folder = write_project(tmp_path_factory.mktemp("marker") / "project")
    (folder / "test_agent.py").unlink()
    for name, (marker, fixtures, _) in MISTAKES.items():
        (folder / f"test_{name}").write_text(WRONG.format(marker=marker, fixtures=fixtures))
    (folder / "test_unmarked.py").write_text("def test_it(graphrag_question):\n    pass\n")
    (folder / "test_gate.py").write_text(WRONG.format(marker='"qa.yaml"', fixtures="graphrag_ask"))
    return run_in(folder, "--graphrag-fail-under=step_score=0.5").stdout


@pytest.mark.parametrize("name", MISTAKES)
def test_invalid_marker_is_one_clear_error(output: str, name: str) -> None:
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if f"ERROR collecting test_{name}" in line)
    assert lines[start + 1].startswith(f"test_{name}::test_it: ")
    assert MISTAKES[name][2] in lines[start + 1]
    assert lines[start + 2].startswith(("___", "==="))  # only that line


def test_fixture_without_a_dataset_is_one_clear_error(output: str) -> None:
    assert "the test takes graphrag_question or graphrag_ask, and is marked with no dataset. Write @pytest" in output


def test_gate_on_an_unknown_metric_is_an_error_before_the_first_question(output: str) -> None:
    assert "test_gate.py::test_it: unknown metric step_score. Did you mean steps_score?" in output


def test_unused_plugin_imports_nothing_heavy() -> None:
    code = "import graphrag_eval_lc.pytest_plugin, sys; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    heavy = {"pydantic", "pydantic_core", "langchain_core", "langgraph", "yaml", "typer", "numpy", "xdist"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in loaded)
    package_modules = {name for name in loaded if name.startswith("graphrag_eval_lc")}
    plugin = "graphrag_eval_lc.pytest_plugin"
    assert package_modules == {"graphrag_eval_lc", "graphrag_eval_lc.public_names", plugin, f"{plugin}.settings"}
