from pathlib import Path

import pytest
import yaml

from graphrag_eval_lc.onboarding.project import repository_of, workflow


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_workflow_of_github_stands_at_the_root_and_runs_in_the_projects_folder(repository: Path) -> None:
    folder = repository / "tests" / "agent"
    folder.mkdir(parents=True)
    (repository / "requirements.txt").write_text("langchain\n")
    path, text, _ = workflow("github", folder)
    assert path == repository / ".github" / "workflows" / "evaluation.yml"
    [job] = yaml.safe_load(text)["jobs"].values()
    assert job["defaults"]["run"]["working-directory"] == "tests/agent"
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].startswith("pip install -r ../../requirements.txt ")
    assert commands[1].startswith("graphrag-eval-lc run --output runs/branch ")
    assert job["steps"][-1]["with"]["path"] == "tests/agent/runs/branch"


def test_workflow_at_the_root_needs_no_folder(repository: Path) -> None:
    (repository / "pyproject.toml").write_text("")
    _, text, _ = workflow("github", repository)
    [job] = yaml.safe_load(text)["jobs"].values()
    assert "defaults" not in job
    assert "pip install . 'graphrag-eval-lc[" in text


def test_workflow_of_gitlab_is_included_where_there_is_one_already(repository: Path) -> None:
    path, text, _ = workflow("gitlab", repository)
    assert path == repository / ".gitlab-ci.yml"
    assert yaml.safe_load(text)["evaluate"]["artifacts"]["reports"] == {"junit": "junit.xml"}
    path.write_text("test: {script: [make]}\n")
    path, _, to_do = workflow("gitlab", repository)
    assert path == repository / ".gitlab" / "evaluation.yml"
    assert "include: [{local: .gitlab/evaluation.yml}]" in to_do


def test_folder_outside_of_a_repository_is_its_own_root(tmp_path: Path) -> None:
    assert repository_of(tmp_path) == tmp_path.resolve()
