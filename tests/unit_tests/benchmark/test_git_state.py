"""The commit at which a run started, with real git."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import run_benchmark, score_responses
from graphrag_eval_lc.benchmark.run_manifest import git_state

DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "?"}]}]


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    result = subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return result.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    folder.joinpath("agent.py").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "First")
    monkeypatch.chdir(folder)
    return folder


def run_in(folder: Path, **options: Any) -> dict[str, Any]:
    run_benchmark(lambda question: "1", DATASET, output_dir=folder, progress="off", **options)
    return record_in(folder)


def test_clean_tree_is_recorded_as_its_commit(repository: Path) -> None:
    assert git_state() == {"commit": git(repository, "rev-parse", "HEAD"), "branch": "trunk", "clean": True}


def test_changed_file_is_dirty_and_an_untracked_one_is_not(repository: Path) -> None:
    repository.joinpath("run.log").write_text("")
    assert (git_state() or {})["clean"] is True
    repository.joinpath("agent.py").write_text("2\n")
    assert (git_state() or {})["clean"] is False


def test_folder_without_commits_or_git_has_no_commit(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    git(new, "init", "-q")
    monkeypatch.chdir(new)
    assert git_state() is None
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    assert git_state() is None
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(repository)
    assert git_state() is None


def test_record_of_a_run_has_the_commit(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert run_in(tmp_path / "run")["git"] == {"commit": commit, "branch": "trunk", "clean": True}
    score_responses(DATASET, {"q": {"actual_answer": "1"}}, output_dir=tmp_path / "scored")
    assert record_in(tmp_path / "scored")["git"]["commit"] == commit


@pytest.mark.parametrize("git_dir", [".git", "elsewhere"])
def test_commit_is_of_the_folder_whatever_a_git_hook_sets(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git_dir: str
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "Other")
    inner = repository / "inner"
    inner.mkdir()
    monkeypatch.setenv("GIT_DIR", ".git" if git_dir == ".git" else str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "next-index.lock"))

    monkeypatch.chdir(inner)
    assert git_state() == {"commit": commit, "branch": "trunk", "clean": True}
