"""The projects in ``examples`` run as their READMEs describe."""

import importlib.util
import shutil
from pathlib import Path

import pytest
import yaml
from support.code_blocks import run_blocks

EXAMPLES = Path(__file__).parents[2] / "examples"
PROJECTS = sorted(path.parent for path in EXAMPLES.glob("*/README.md"))
NEEDED = {"create_agent": "pyoxigraph", "cypher": "ladybug", "fastapi_service": "fastapi"}


@pytest.mark.full
@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_example_commands_print_the_output_in_the_readme(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = NEEDED.get(project.name)
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    folder = tmp_path / project.name
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    monkeypatch.chdir(folder)
    assert run_blocks(folder / "README.md")


def test_examples_are_five_and_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(PROJECTS) == 5
    assert all(f"[{project.name}]({project.name})" in listed for project in PROJECTS)


def test_workflow_runs_the_command_in_its_readme() -> None:
    project = EXAMPLES / "pytest_ci"
    workflow = yaml.safe_load((project / ".github/workflows/evaluation.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["evaluate"]["steps"] if "run" in step]
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert all(f"$ {command}" in readme for command in commands)
